//! `--pcap`: what comes to the relay and what leaves it, as a file that tshark and others read.
//!
//! A thread of its own builds the frames and writes them, with times to the nanosecond. At most
//! 16 Ki messages and 64 MiB wait for it; what comes on top is missing in the file (its sequence
//! numbers are not, so that readers show the hole) and counted. When the file cannot be written,
//! the capture ends with a warning; the relay goes on.

mod frames;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use harness::sink;
use net::clock::Clock;
use net::relay::{Leg, Opened, Seen, Side, Tap, Watcher};
use net::serve::Carrier;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, PcapError, TsResolution};
use perf::units::Instant;
use wire::record::Fragment;

use self::frames::{Conversation, End, Packet};

/// What waits to be written.
const QUEUE_MAX: usize = 16 << 10;
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Longer than any frame.
const SNAPLEN: u32 = 128 << 10;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// A capture that runs.
#[derive(Debug)]
pub struct Capture {
    shared: Arc<Shared>,
    queue: SyncSender<Option<Event>>,
    writer: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    queued_bytes: AtomicUsize,
    missed: AtomicU64,
    written: AtomicU64,
    /// The file could not be written: nothing is captured any more.
    ended: AtomicBool,
    /// What the relay's clock had at `began_1970`.
    began: Instant,
    began_1970: Duration,
}

/// What a capture has done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Captured {
    /// Frames in the file.
    pub frames: u64,
    /// Messages that are not.
    pub missed: u64,
    /// It ended before the relay: the file could not be written any more.
    pub is_cut: bool,
}

/// A message, or part of a conversation without one.
struct Event {
    at: Instant,
    packets: Vec<(Packet, std::ops::Range<usize>)>,
    /// Before the data, on streams.
    mark: Option<[u8; 4]>,
    data: Bytes,
}

impl Capture {
    /// Makes the file. `failed` is called when it cannot be written any more.
    ///
    /// # Errors
    /// The file cannot be made, or no thread be started.
    pub fn start(
        path: &Path,
        clock: &Clock,
        failed: impl Fn(&io::Error) + Send + 'static,
    ) -> io::Result<(Self, Tap)> {
        // Files of all who are relayed are in it, and only who relays may read them.
        let file = BufWriter::with_capacity(BUFFER_BYTES, sink::private(path)?);
        let shared = Arc::new(Shared {
            queued_bytes: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            written: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            began: clock.now(),
            began_1970: clock.since_1970(),
        });
        let (sender, queue) = mpsc::sync_channel(QUEUE_MAX);
        let own = Arc::clone(&shared);
        let writer = thread::Builder::new().name("nfskit-pcap".to_owned()).spawn(move || {
            if let Err(cause) = write(file, &queue, &own) {
                own.ended.store(true, Ordering::Relaxed);
                failed(&cause);
            }
        })?;
        let seen_by = Arc::clone(&shared);
        let queue = sender.clone();
        let tap: Tap = Arc::new(move |at, opened: &Opened| {
            let is_open = !seen_by.ended.load(Ordering::Relaxed);
            is_open.then(|| {
                let line = Line { queue: sender.clone(), shared: Arc::clone(&seen_by) };
                Box::new(Scribe::new(line, at, opened)) as Box<dyn Watcher>
            })
        });
        Ok((Self { shared, queue, writer }, tap))
    }

    /// Waits until everything before is written.
    pub fn end(self) -> Captured {
        // Where the writer has given up, nobody receives this.
        self.queue.send(None).ok();
        // A panic there has been reported already.
        self.writer.join().ok();
        Captured {
            frames: self.shared.written.load(Ordering::Relaxed),
            missed: self.shared.missed.load(Ordering::Relaxed),
            is_cut: self.shared.ended.load(Ordering::Relaxed),
        }
    }
}

/// The way to the thread that writes.
struct Line {
    queue: SyncSender<Option<Event>>,
    shared: Arc<Shared>,
}

impl Line {
    fn emit(&self, event: Event) {
        let bytes = event.data.len();
        let shared = &self.shared;
        if shared.ended.load(Ordering::Relaxed) {
            return;
        }
        let queued = shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if queued + bytes > QUEUE_BYTES_MAX || self.queue.try_send(Some(event)).is_err() {
            shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            shared.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Looks at one connection, which is two conversations: of the client with the relay, and of the
/// relay with the server.
struct Scribe {
    line: Line,
    carrier: Carrier,
    client: Conversation,
    server: Conversation,
}

impl Scribe {
    fn new(line: Line, at: Instant, opened: &Opened) -> Self {
        let Opened { carrier, client, server } = *opened;
        let ends = |leg: Leg, side| -> [SocketAddr; 2] {
            match side {
                Side::Client => [leg.peer, leg.own],
                Side::Server => [leg.own, leg.peer],
            }
        };
        let (client, server) = (ends(client, Side::Client), ends(server, Side::Server));
        if carrier == Carrier::Datagram {
            let [client, server] = [client, server].map(Conversation::datagrams);
            return Self { line, carrier, client, server };
        }
        let [(client, made), (server, made_there)] = [client, server].map(Conversation::stream);
        for packet in made.into_iter().chain(made_there) {
            line.emit(bare(at, packet));
        }
        Self { line, carrier, client, server }
    }

    /// A message between the relay and the peer on `side`, from whom it comes or to whom it goes.
    fn message(&mut self, at: Instant, side: Side, comes: bool, data: &Bytes) {
        let mark = (self.carrier == Carrier::Stream).then(|| {
            let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
            Fragment { last: true, len }.to_header()
        });
        let bytes = data.len() + mark.map_or(0, |mark| mark.len());
        let from = end(side, comes);
        let packets = self.conversation(side).message(from, bytes).collect();
        self.line.emit(Event { at, packets, mark, data: data.clone() });
    }

    fn end(&mut self, at: Instant, side: Side, comes: bool) {
        if let Some(packet) = self.conversation(side).end(end(side, comes)) {
            self.line.emit(bare(at, packet));
        }
    }

    fn conversation(&mut self, side: Side) -> &mut Conversation {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

/// Who speaks: the peer on that side, or the relay to it.
fn end(side: Side, comes: bool) -> End {
    match (side, comes) {
        (Side::Client, true) | (Side::Server, false) => End::Connecting,
        (Side::Client, false) | (Side::Server, true) => End::Accepting,
    }
}

fn bare(at: Instant, packet: Packet) -> Event {
    Event { at, packets: vec![(packet, 0..0)], mark: None, data: Bytes::new() }
}

impl Watcher for Scribe {
    fn see(&mut self, at: Instant, seen: Seen<'_>) {
        match seen {
            Seen::Came(side, data) => self.message(at, side, true, data),
            Seen::Left(side, data) => self.message(at, side, false, data),
            Seen::CameEnd(side) => self.end(at, side, true),
            Seen::LeftEnd(side) => self.end(at, side, false),
        }
    }
}

/// The file, of which `pcap_file` and we both have a hand.
struct Shelf<'f>(&'f RefCell<BufWriter<File>>);

impl Write for Shelf<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

/// Writes until the end.
fn write(
    file: BufWriter<File>,
    queue: &Receiver<Option<Event>>,
    shared: &Shared,
) -> io::Result<()> {
    let file = RefCell::new(file);
    let header = PcapHeader {
        snaplen: SNAPLEN,
        datalink: DataLink::ETHERNET,
        ts_resolution: TsResolution::NanoSecond,
        ..PcapHeader::default()
    };
    let mut pcap = PcapWriter::with_header(Shelf(&file), header).map_err(system)?;
    let (mut message, mut frame) = (Vec::new(), Vec::new());
    loop {
        let event = match queue.try_recv() {
            Err(TryRecvError::Empty) => {
                // What there is can be read while nothing happens.
                file.borrow_mut().flush()?;
                queue.recv().ok().flatten()
            }
            event => event.ok().flatten(),
        };
        let Some(event) = event else { break };
        let Event { at, packets, mark, data } = event;
        message.clear();
        message.extend(mark.iter().flatten());
        message.extend_from_slice(&data);
        shared.queued_bytes.fetch_sub(data.len(), Ordering::Relaxed);
        let at = shared.began_1970 + Duration::from_nanos(at.since(shared.began).as_nanos());
        for (packet, part) in packets {
            frame.clear();
            packet.write(&message[part], &mut frame).map_err(io::Error::other)?;
            let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
            pcap.write_packet(&PcapPacket::new(at, len, &frame)).map_err(system)?;
            shared.written.fetch_add(1, Ordering::Relaxed);
        }
    }
    file.borrow_mut().flush()
}

fn system(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(cause) => cause,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nobody_else_may_read_what_is_captured() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("link.pcap");
        let (capture, _tap) = Capture::start(&path, &Clock::real(), |_| ()).unwrap();
        assert!(!capture.end().is_cut);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
