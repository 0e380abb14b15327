//! Captures made up: as large as wanted, the same every time, written as they are made.
//!
//! `writes`: WRITEs of 64 KiB in segments of 1,448 bytes, with an acknowledgement for every other,
//! over four connections. `metadata`: GETATTR, LOOKUP and ACCESS, one packet for a call and one
//! for its reply, over 64 connections and 10,000 files. `changing`: both by turns, each connection
//! for four calls only, each call of another file, and one in 1,000 without a reply.

use std::io::{self, Write};

use wire::nfs3::{self, FileHandle, StableHow, access, getattr, lookup, write};
use wire::record::Message;
use wire::rpc::{CallHeader, OpaqueAuth, ReplyHeader};
use wire::xdr::{Bulk, Encode};

/// What is to be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(super) enum Kind {
    Writes,
    Metadata,
    Changing,
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Made {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) calls: u64,
}

/// Connections at a time, but of `writes`.
const LINES: u32 = 64;
const SEGMENT: usize = 1448;
const HEADERS: usize = 14 + 20 + 32;
const WRITE_LEN: u32 = 64 << 10;
/// From one packet to the next.
const STEP_NS: u64 = 1_500;

/// Writes a capture of at least `bytes_min` bytes.
pub(super) fn generate(kind: Kind, bytes_min: u64, out: &mut impl Write) -> io::Result<Made> {
    let mut writer = Writer { out, now_ns: 1_700_000_000_000_000_000, made: Made::default() };
    writer.head()?;
    let lines = if kind == Kind::Writes { 4 } else { LINES };
    let mut lines: Vec<Line> = (0..lines).map(Line::new).collect();
    let mut turn = 0_u32;
    while writer.made.bytes < bytes_min {
        let place = turn as usize % lines.len();
        let line = &mut lines[place];
        match kind {
            Kind::Writes => one_write(&mut writer, line, turn, line.client)?,
            Kind::Metadata => {
                one_look(&mut writer, line, turn, turn.wrapping_mul(2_654_435_761) % 10_000)?;
            }
            Kind::Changing => {
                if (turn / LINES).is_multiple_of(4) {
                    *line = Line::new(turn);
                }
                line.is_silent = turn.is_multiple_of(1000);
                match turn % 2 {
                    0 => one_write(&mut writer, line, turn, turn)?,
                    _ => one_look(&mut writer, line, turn, turn)?,
                }
            }
        }
        turn = turn.wrapping_add(1);
    }
    writer.out.flush()?;
    Ok(writer.made)
}

/// One connection: how far both directions are.
struct Line {
    client: u32,
    sent: [u32; 2],
    /// The server does not answer.
    is_silent: bool,
}

impl Line {
    fn new(client: u32) -> Self {
        Self { client, sent: [1000, 5000], is_silent: false }
    }

    /// Where the client is: each has an address of its own.
    fn client_end(&self) -> ([u8; 4], u16) {
        let [_, high, middle, low] = self.client.to_be_bytes();
        ([10, 64 | (high & 63), middle, low], 700 + u16::from(low))
    }
}

struct Writer<'o, W> {
    out: &'o mut W,
    now_ns: u64,
    made: Made,
}

impl<W: Write> Writer<'_, W> {
    fn head(&mut self) -> io::Result<()> {
        let mut head = Vec::new();
        head.extend(0xa1b2_3c4d_u32.to_le_bytes());
        head.extend(2_u16.to_le_bytes());
        head.extend(4_u16.to_le_bytes());
        head.extend([0; 8]);
        head.extend(262_144_u32.to_le_bytes());
        head.extend(1_u32.to_le_bytes());
        self.made.bytes += head.len() as u64;
        self.out.write_all(&head)
    }

    /// One frame from the client (0) or the server (1).
    fn frame(&mut self, line: &mut Line, from: usize, payload: &[u8]) -> io::Result<()> {
        self.now_ns += STEP_NS;
        let len = u32::try_from(HEADERS + payload.len()).map_err(io::Error::other)?;
        let mut head = [0_u8; 16 + HEADERS];
        let seconds = u32::try_from(self.now_ns / 1_000_000_000).map_err(io::Error::other)?;
        let nanos = u32::try_from(self.now_ns % 1_000_000_000).map_err(io::Error::other)?;
        head[0..4].copy_from_slice(&seconds.to_le_bytes());
        head[4..8].copy_from_slice(&nanos.to_le_bytes());
        head[8..12].copy_from_slice(&len.to_le_bytes());
        head[12..16].copy_from_slice(&len.to_le_bytes());
        let frame = &mut head[16..];
        frame[12..14].copy_from_slice(&[8, 0]);
        let ip = &mut frame[14..];
        ip[0] = 0x45;
        let total = u16::try_from(len - 14).map_err(io::Error::other)?;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        (ip[8], ip[9]) = (64, 6);
        let ends = [line.client_end(), ([10, 0, 1, 1], 2049)];
        let (own, peer) = (ends[from], ends[1 - from]);
        ip[12..16].copy_from_slice(&own.0);
        ip[16..20].copy_from_slice(&peer.0);
        let tcp = &mut ip[20..];
        tcp[0..2].copy_from_slice(&own.1.to_be_bytes());
        tcp[2..4].copy_from_slice(&peer.1.to_be_bytes());
        tcp[4..8].copy_from_slice(&line.sent[from].to_be_bytes());
        tcp[8..12].copy_from_slice(&line.sent[1 - from].to_be_bytes());
        (tcp[12], tcp[13]) = (0x80, 0x10);
        tcp[14..16].copy_from_slice(&5000_u16.to_be_bytes());
        tcp[20..24].copy_from_slice(&[1, 1, 8, 10]);
        self.out.write_all(&head)?;
        self.out.write_all(payload)?;
        let bytes = u32::try_from(payload.len()).map_err(io::Error::other)?;
        line.sent[from] = line.sent[from].wrapping_add(bytes);
        self.made.packets += 1;
        self.made.bytes += (16 + HEADERS + payload.len()) as u64;
        Ok(())
    }

    /// A record, in segments, each second one acknowledged.
    fn record(&mut self, line: &mut Line, from: usize, message: &Message) -> io::Result<()> {
        let stream = [&message.marker()[..], &message.to_vec()].concat();
        for (index, segment) in stream.chunks(SEGMENT).enumerate() {
            self.frame(line, from, segment)?;
            if index % 2 == 1 {
                self.frame(line, 1 - from, &[])?;
            }
        }
        Ok(())
    }
}

fn handle(file: u32) -> FileHandle {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&file.to_be_bytes());
    FileHandle::new(&bytes).expect("32 bytes are no more than 64")
}

fn call(xid: u32, procedure: nfs3::Procedure) -> Vec<u8> {
    const CREDENTIAL: [u8; 32] = [0; 32];
    let mut head = Vec::with_capacity(256);
    let credential = OpaqueAuth { flavor: 1, body: &CREDENTIAL };
    CallHeader::new(xid, wire::Procedure::Nfs3(procedure), credential).encode(&mut head);
    head
}

fn reply(xid: u32) -> Vec<u8> {
    let mut head = Vec::with_capacity(256);
    ReplyHeader::success(xid).encode(&mut head);
    head
}

fn one_write<W: Write>(
    writer: &mut Writer<'_, W>,
    line: &mut Line,
    xid: u32,
    file: u32,
) -> io::Result<()> {
    static DATA: [u8; WRITE_LEN as usize] = [0xa5; WRITE_LEN as usize];
    let mut head = call(xid, nfs3::Procedure::Write);
    let args = write::Args {
        file: handle(file),
        offset: u64::from(xid / 4) * u64::from(WRITE_LEN),
        count: WRITE_LEN,
        stable: StableHow::Unstable,
        data: &DATA,
    };
    args.encode_head(&mut head);
    let payload = bytes::Bytes::from_static(&DATA);
    writer.record(line, 0, &Message { head, payload })?;
    let mut head = reply(xid);
    let ok = write::ReplyOk {
        file_wcc: nfs3::WccData::default(),
        count: WRITE_LEN,
        committed: StableHow::Unstable,
        verf: [1; 8],
    };
    write::Reply::Ok(ok).encode(&mut head);
    answer(writer, line, head)
}

fn one_look<W: Write>(
    writer: &mut Writer<'_, W>,
    line: &mut Line,
    xid: u32,
    file: u32,
) -> io::Result<()> {
    let file = handle(file);
    let mut message;
    let mut answered = reply(xid);
    match xid / 64 % 3 {
        0 => {
            message = call(xid, nfs3::Procedure::Getattr);
            getattr::Args { object: file }.encode(&mut message);
            // NFS3_OK and a fattr3
            answered.extend([0; 4 + 84]);
        }
        1 => {
            message = call(xid, nfs3::Procedure::Lookup);
            let name = b"a-file-of-no-name.txt";
            lookup::Args { what: nfs3::DirOp { dir: file, name } }.encode(&mut message);
            answered.extend(nfs3::NfsStat3::NoEnt.code().to_be_bytes());
            answered.extend([0; 4]);
        }
        _ => {
            message = call(xid, nfs3::Procedure::Access);
            access::Args { object: file, access: 0x1f }.encode(&mut message);
            answered.extend([0; 8]);
            answered.extend(0x1f_u32.to_be_bytes());
        }
    }
    writer.record(line, 0, &Message::new(message))?;
    answer(writer, line, answered)
}

fn answer<W: Write>(writer: &mut Writer<'_, W>, line: &mut Line, head: Vec<u8>) -> io::Result<()> {
    writer.made.calls += 1;
    match line.is_silent {
        true => Ok(()),
        false => writer.record(line, 1, &Message::new(head)),
    }
}
