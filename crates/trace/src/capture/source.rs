//! One capture file as packets.
//!
//! The file is read in large pieces into one buffer, from which packets are borrowed: for files in
//! the page cache that copy stays in the processor's cache, and pipes and packed files take the
//! same way.

use std::io::{self, Read};

use pcap_file::pcap::PcapParser;
use pcap_file::pcapng::PcapNgParser;
use pcap_file::{Endianness, PcapError, TsResolution};

use super::{CaptureError, Link, Note, Packet, Place};

/// Bytes read at once: few system calls, and a buffer that fits the second-level cache.
const READ_BYTES: usize = 128 << 10;

/// Longest packet or block; longer ones are damage.
pub const BLOCK_LEN_MAX: usize = 16 << 20;

/// Interfaces that a section of a pcapng file may have.
pub const INTERFACES_MAX: usize = 4096;

/// A file that is being read.
pub struct Capture<'r> {
    name: String,
    reader: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    /// What is in the buffer and not yet taken.
    start: usize,
    end: usize,
    /// Where in the file `start` is.
    at_byte: u64,
    format: Format,
    packets: u64,
    /// Those without a time, too, which are left out.
    frames: u64,
    timeless: u64,
    /// Where the current packet's data lie in the buffer.
    current: Option<Located>,
    notes: Vec<Note>,
    is_at_end: bool,
}

enum Format {
    Pcap { parser: PcapParser, link: Link, nanos_per_unit: u32 },
    PcapNg { parser: PcapNgParser, interfaces: Vec<Interface> },
}

#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    /// Units of its time stamps in a second.
    units_per_s: u64,
    offset_s: i64,
}

#[derive(Clone, Copy)]
struct Located {
    at_ns: u64,
    link: Link,
    interface: u32,
    wire_len: u32,
    start: usize,
    len: usize,
}

/// What one block gave.
enum Step {
    Packet(Located),
    /// A packet without a time.
    Timeless,
    Other,
}

impl<'r> Capture<'r> {
    /// Reads the head of a capture, which may be packed.
    ///
    /// # Errors
    /// When it is no capture, or of a link type that we do not read.
    pub fn open(name: &str, reader: Box<dyn Read + 'r>) -> Result<Self, CaptureError> {
        let io = |cause| CaptureError::Io { name: name.to_owned(), cause };
        let reader = super::unpack(reader).map_err(io)?;
        let empty = Format::PcapNg { parser: no_parser(), interfaces: Vec::new() };
        let mut capture = Self {
            name: name.to_owned(),
            reader,
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            at_byte: 0,
            format: empty,
            packets: 0,
            frames: 0,
            timeless: 0,
            current: None,
            notes: Vec::new(),
            is_at_end: false,
        };
        while !capture.begin()? {
            if capture.fill().map_err(io)? == 0 {
                return Err(capture.not_a_capture());
            }
        }
        Ok(capture)
    }

    /// What was wrong so far.
    pub fn notes(&self) -> impl Iterator<Item = Note> {
        let (name, packets) = (&self.name, self.timeless);
        let timeless = (packets > 0).then(|| Note::Timeless { name: name.clone(), packets });
        self.notes.iter().cloned().chain(timeless)
    }

    /// Packets read.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The number of the current packet in its file, as Wireshark counts.
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes of the unpacked file that were read.
    pub const fn bytes(&self) -> u64 {
        self.at_byte
    }

    /// Goes to the next packet; false at the end of what can be read.
    ///
    /// # Errors
    /// When the file cannot be read any more. What was read stays good.
    pub fn advance(&mut self) -> Result<bool, CaptureError> {
        self.current = None;
        while !self.is_at_end {
            match self.step() {
                Ok(Step::Packet(located)) => {
                    self.packets += 1;
                    self.frames += 1;
                    if let Link::Unread(number) = located.link {
                        self.note_link(number);
                        continue;
                    }
                    self.current = Some(located);
                    return Ok(true);
                }
                Ok(Step::Timeless) => {
                    self.frames += 1;
                    self.timeless += 1;
                }
                Ok(Step::Other) => {}
                Err(PcapError::IncompleteBuffer) => self.more()?,
                Err(error) => self.damaged(error.to_string()),
            }
        }
        Ok(false)
    }

    /// What its times are multiples of, of the interface with the coarsest.
    pub fn resolution_ns(&self) -> u64 {
        match &self.format {
            Format::Pcap { nanos_per_unit, .. } => u64::from(*nanos_per_unit),
            Format::PcapNg { interfaces, .. } => {
                let units = interfaces.iter().map(|interface| interface.units_per_s);
                units.map(|per_s| 1_000_000_000 / per_s.max(1)).max().unwrap_or(1)
            }
        }
    }

    /// When the current packet came.
    pub fn at_ns(&self) -> Option<u64> {
        self.current.map(|current| current.at_ns)
    }

    /// The packet that [`Self::advance`] went to.
    pub fn packet(&self) -> Option<Packet<'_>> {
        let Located { at_ns, link, interface, wire_len, start, len } = self.current?;
        let data = self.buffer.get(start..start + len)?;
        let place = Place { file: 0, interface };
        Some(Packet { frame: self.frames, at_ns, place, link, wire_len, data })
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads the head of the file; false when more of it is needed.
    fn begin(&mut self) -> Result<bool, CaptureError> {
        let unread = &self.buffer[self.start..self.end];
        let Some(&first) = unread.first() else { return Ok(false) };
        let (rest, format) = if first == 0x0a {
            match PcapNgParser::new(unread) {
                Ok((rest, parser)) => {
                    (rest.len(), Format::PcapNg { parser, interfaces: Vec::new() })
                }
                Err(PcapError::IncompleteBuffer) if unread.len() < READ_BYTES => return Ok(false),
                Err(_) => return Err(self.not_a_capture()),
            }
        } else {
            match PcapParser::new(unread) {
                Ok((rest, parser)) => {
                    let header = parser.header();
                    let link = Link::from_number(u32::from(header.datalink));
                    if let Link::Unread(number) = link {
                        return Err(CaptureError::Link { name: self.name.clone(), number });
                    }
                    let nanos_per_unit = match header.ts_resolution {
                        TsResolution::MicroSecond => 1000,
                        TsResolution::NanoSecond => 1,
                    };
                    (rest.len(), Format::Pcap { parser, link, nanos_per_unit })
                }
                Err(PcapError::IncompleteBuffer) => return Ok(false),
                Err(_) => return Err(self.not_a_capture()),
            }
        };
        self.format = format;
        self.take(self.unread().len() - rest);
        Ok(true)
    }

    fn not_a_capture(&self) -> CaptureError {
        let name = self.name.clone();
        let unread = self.unread();
        if unread.is_empty() {
            return CaptureError::Empty { name };
        }
        let begins = format!("\"{}\"", unread[..unread.len().min(8)].escape_ascii());
        CaptureError::NotACapture { name, begins }
    }

    fn take(&mut self, bytes: usize) {
        self.start += bytes;
        self.at_byte += bytes as u64;
    }

    /// Takes one packet or block.
    fn step(&mut self) -> Result<Step, PcapError> {
        let unread = &self.buffer[self.start..self.end];
        let (step, taken) = match &mut self.format {
            Format::Pcap { parser, link, nanos_per_unit } => {
                // Its header is in the buffer before its data are, and may be damage.
                if let Some(&[a, b, c, d]) = unread.get(8..12) {
                    let len = match parser.header().endianness {
                        Endianness::Big => u32::from_be_bytes([a, b, c, d]),
                        Endianness::Little => u32::from_le_bytes([a, b, c, d]),
                    };
                    if len as usize > BLOCK_LEN_MAX {
                        return Err(PcapError::InvalidField("a packet of more than 16 MiB"));
                    }
                }
                let (rest, packet) = parser.next_raw_packet(unread)?;
                let at_ns = u64::from(packet.ts_sec) * 1_000_000_000
                    + u64::from(packet.ts_frac) * u64::from(*nanos_per_unit);
                let located = Located {
                    at_ns,
                    link: *link,
                    interface: 0,
                    wire_len: packet.orig_len.max(packet.incl_len),
                    start: self.start + 16,
                    len: packet.data.len(),
                };
                (Step::Packet(located), unread.len() - rest.len())
            }
            Format::PcapNg { parser, interfaces } => block(parser, interfaces, unread, self.start)?,
        };
        self.take(taken);
        Ok(step)
    }

    /// Reads on, or notes that the file ends here.
    fn more(&mut self) -> Result<(), CaptureError> {
        if self.unread().len() > BLOCK_LEN_MAX {
            self.damaged("a block of more than 16 MiB".to_owned());
            return Ok(());
        }
        match self.fill() {
            Ok(0) => {
                self.is_at_end = true;
                if !self.unread().is_empty() {
                    self.notes.push(Note::Truncated {
                        name: self.name.clone(),
                        at_byte: self.at_byte,
                        packets: self.packets,
                    });
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            // A packed file that ends early is cut off like any other.
            Err(cause) if self.packets > 0 => {
                self.damaged(cause.to_string());
                Ok(())
            }
            Err(cause) => Err(CaptureError::Io { name: self.name.clone(), cause }),
        }
    }

    fn damaged(&mut self, what: String) {
        self.is_at_end = true;
        let (name, at_byte, packets) = (self.name.clone(), self.at_byte, self.packets);
        self.notes.push(Note::Damaged { name, at_byte, packets, what });
    }

    fn note_link(&mut self, link: u32) {
        let is_room = self.notes.len() < INTERFACES_MAX;
        let same = self.notes.iter_mut().find_map(|note| match note {
            Note::Link { number, packets, .. } if *number == link => Some(packets),
            _ => None,
        });
        match same {
            Some(packets) => *packets += 1,
            // As many notes as interfaces, which are limited.
            None if is_room => {
                self.notes.push(Note::Link { name: self.name.clone(), number: link, packets: 1 });
            }
            None => {}
        }
    }

    /// Reads more behind what is in the buffer.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < READ_BYTES / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(n) => {
                    self.end += n;
                    return Ok(n);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
    }
}

impl std::fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("name", &self.name).field("at_byte", &self.at_byte).finish()
    }
}

/// A parser of an empty file, until the head is read.
fn no_parser() -> PcapNgParser {
    const HEAD: [u8; 28] = [
        0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28,
    ];
    PcapNgParser::new(&HEAD).expect("the head of an empty file is well formed").1
}

const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const SECTION: u32 = 0x0a0d_0d0a;

/// Takes one block, whose data begin at `start` of the buffer, and says how long it was.
fn block(
    parser: &mut PcapNgParser,
    interfaces: &mut Vec<Interface>,
    unread: &[u8],
    start: usize,
) -> Result<(Step, usize), PcapError> {
    let (rest, raw) = parser.next_raw_block(unread)?;
    let taken = unread.len() - rest.len();
    let body = Body { bytes: &raw.body, endianness: parser.section().endianness };
    let step = match raw.type_ {
        SECTION => {
            interfaces.clear();
            Step::Other
        }
        INTERFACE if interfaces.len() >= INTERFACES_MAX => {
            return Err(PcapError::InvalidField("more interfaces than 4096"));
        }
        INTERFACE => {
            interfaces.push(body.interface()?);
            Step::Other
        }
        ENHANCED_PACKET => Step::Packet(body.packet(body.word(0)?, interfaces, start)?),
        OLD_PACKET => Step::Packet(body.packet(body.first_half()?, interfaces, start)?),
        // It has no time, without which nothing can be concluded.
        SIMPLE_PACKET => Step::Timeless,
        _ => Step::Other,
    };
    Ok((step, taken))
}

/// A block without its type and length, in its section's order of bytes.
struct Body<'a> {
    bytes: &'a [u8],
    endianness: Endianness,
}

impl Body<'_> {
    fn word(&self, at: usize) -> Result<u32, PcapError> {
        let word = self.bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        let word = word.ok_or(PcapError::InvalidField("a block shorter than its header"))?;
        Ok(match self.endianness {
            Endianness::Big => u32::from_be_bytes(word),
            Endianness::Little => u32::from_le_bytes(word),
        })
    }

    /// The number of 16 bits at its begin.
    fn first_half(&self) -> Result<u32, PcapError> {
        let word = self.word(0)?;
        Ok(match self.endianness {
            Endianness::Big => word >> 16,
            Endianness::Little => word & 0xffff,
        })
    }

    fn interface(&self) -> Result<Interface, PcapError> {
        let options = self.bytes.get(8..).unwrap_or_default();
        Ok(interface(self.first_half()?, options, self.endianness))
    }

    /// A packet of interface number `id`; the block begins at `start` of the buffer.
    fn packet(
        &self,
        id: u32,
        interfaces: &[Interface],
        start: usize,
    ) -> Result<Located, PcapError> {
        let (high, low) = (self.word(4)?, self.word(8)?);
        let (len, wire_len) = (self.word(12)?, self.word(16)?);
        if self.bytes.len() - 20 < len as usize {
            return Err(PcapError::InvalidField("a packet longer than its block"));
        }
        let interface = interfaces
            .get(id as usize)
            .ok_or(PcapError::InvalidField("a packet of an interface that is not described"))?;
        let at_ns = interface.nanos((u64::from(high) << 32) | u64::from(low));
        // Behind type, length and the 20 bytes of its own header.
        let (link, start) = (interface.link, start + 28);
        // Some writers do not say how long it was.
        let (wire_len, len) = (wire_len.max(len), len as usize);
        Ok(Located { at_ns, link, interface: id, wire_len, start, len })
    }
}

/// An interface with its options: the resolution (9) and the offset (14) of its time stamps.
fn interface(number: u32, mut options: &[u8], endianness: Endianness) -> Interface {
    let mut interface =
        Interface { link: Link::from_number(number), units_per_s: 1_000_000, offset_s: 0 };
    while let [a, b, c, d, rest @ ..] = options {
        let half = |a, b| match endianness {
            Endianness::Big => u16::from_be_bytes([a, b]),
            Endianness::Little => u16::from_le_bytes([a, b]),
        };
        let (code, len) = (half(*a, *b), usize::from(half(*c, *d)));
        let Some(value) = rest.get(..len) else { break };
        match (code, value) {
            (0, _) => break,
            (9, [power]) if power & 0x80 != 0 => {
                interface.units_per_s = 1 << (power & 0x7f).min(62);
            }
            (9, [power]) => {
                interface.units_per_s = 10_u64.saturating_pow(u32::from(*power)).max(1);
            }
            (14, value) => {
                if let Ok(bytes) = value.try_into() {
                    interface.offset_s = match endianness {
                        Endianness::Big => i64::from_be_bytes(bytes),
                        Endianness::Little => i64::from_le_bytes(bytes),
                    };
                }
            }
            _ => {}
        }
        options = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    interface
}

impl Interface {
    fn nanos(self, units: u64) -> u64 {
        let ns = match self.units_per_s {
            1_000_000_000 => units,
            1_000_000 => units.saturating_mul(1000),
            per_s => {
                let ns = u128::from(units) * 1_000_000_000 / u128::from(per_s);
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        };
        ns.saturating_add_signed(self.offset_s.saturating_mul(1_000_000_000))
    }
}
