//! Which parts of a file to fetch before they are requested.
//!
//! A read that begins about where an earlier one has ended belongs to a stream, and so does one at
//! the beginning of the file; readers of a kernel ask for several parts at once and not quite in
//! order, so that "about" is `SLACK_BYTES`. A stream is fetched in chunks, a number of them
//! ahead of its reader: as many as a read has, at the least. When the reader has to wait for a
//! chunk that number is doubled, once in a round trip, so that it grows until the path is full or
//! the reader is the slower of the two. The path is full when chunks take much longer than they
//! did at best: more of them would only wait in a queue, and others' calls behind them.
//!
//! Bounded: `STREAMS_MAX` streams of an open file; the one that was used longest ago makes room.

use std::collections::BTreeMap;

use perf::units::{Instant, Nanos};

/// Readers of one open file that are distinguished.
const STREAMS_MAX: usize = 4;

/// How far from the expected place a read may be: four of the largest requests of a kernel,
/// however small the chunks are; and `SLACK_CHUNKS` at the least.
const SLACK_BYTES: u64 = 4 << 20;
const SLACK_CHUNKS: u64 = 4;

/// Chunks ahead of a reader, at most, whatever the bound on bytes says.
const AHEAD_MAX: u64 = 1024;

/// How much longer than twice its least time a chunk may take before the path counts as full: as
/// long as a disk may take (guess).
const QUEUE_MAX: Nanos = Nanos::from_millis(100);

/// See the module's head. `T` is what stands for the content of a chunk.
#[derive(Debug)]
pub struct Streams<T> {
    chunk_bytes: u64,
    streams: Vec<Stream<T>>,
    /// Counts reads, to know which stream was used longest ago.
    reads: u64,
}

#[derive(Debug)]
struct Stream<T> {
    id: StreamId,
    /// Where the reader has got to.
    next: u64,
    ahead: u64,
    chunks: BTreeMap<u64, Chunk<T>>,
    used: u64,
    /// The read after which `ahead` was last doubled.
    grown: u64,
    /// What was fetched since then has arrived, and the path was not full.
    may_grow: bool,
    /// The least time that a chunk has taken.
    least: Option<Nanos>,
}

#[derive(Debug)]
struct Chunk<T> {
    content: T,
    begun: Instant,
    /// The read for which it is fetched.
    read: u64,
    /// None while it is on its way: the server has yet to read it, perhaps.
    arrived: Option<Instant>,
    /// Bytes that no reader has taken.
    left: u64,
}

/// Names a stream, also after others have gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamId(u64);

/// What a read comes to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// The stream it belongs to; none for a read that follows no other: it is not chunked.
    pub stream: Option<StreamId>,
    /// Beginnings of chunks that the read itself needs and nobody has fetched yet.
    pub needed: Vec<u64>,
    /// Beginnings of chunks that are worth fetching, in order.
    pub ahead: Vec<u64>,
}

impl<T: Clone> Streams<T> {
    pub fn new(chunk_bytes: u32) -> Self {
        Self { chunk_bytes: u64::from(chunk_bytes.max(1)), streams: Vec::new(), reads: 0 }
    }

    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Forgets everything that was fetched; who reads where is remembered.
    pub fn clear(&mut self) {
        for stream in &mut self.streams {
            stream.chunks.clear();
        }
    }

    /// Somebody reads `count` bytes at `offset` of a file of `file_bytes`. What has arrived before
    /// `oldest` is fetched again.
    pub fn read(&mut self, offset: u64, count: u32, file_bytes: u64, oldest: Instant) -> Plan {
        self.reads += 1;
        let end = offset.saturating_add(u64::from(count)).min(file_bytes);
        let (chunk_bytes, slack) = (self.chunk_bytes, self.slack());
        let reads = self.reads;
        let Some(stream) = self.stream_at(offset, end) else {
            return Plan { stream: None, needed: Vec::new(), ahead: Vec::new() };
        };
        stream.used = reads;
        stream.next = stream.next.max(end);
        stream.ahead = stream.ahead.max(u64::from(count).div_ceil(chunk_bytes)).min(AHEAD_MAX);
        let behind = stream.next.saturating_sub(slack).min(offset);
        let is_new = |chunk: &Chunk<T>| chunk.arrived.is_none_or(|arrived| arrived >= oldest);
        stream.chunks.retain(|&at, chunk| at + chunk_bytes > behind && is_new(chunk));
        let first = offset / chunk_bytes * chunk_bytes;
        let step = usize::try_from(chunk_bytes).unwrap_or(usize::MAX);
        let chunks = |from: u64, to: u64| (from..to).step_by(step);
        let needed: Vec<u64> =
            chunks(first, end).filter(|at| !stream.chunks.contains_key(at)).collect();
        let from = stream.next.div_ceil(chunk_bytes) * chunk_bytes;
        let to = from.saturating_add(stream.ahead * chunk_bytes).min(file_bytes);
        let ahead = chunks(from, to).filter(|at| !stream.chunks.contains_key(at)).collect();
        Plan { stream: Some(stream.id), needed, ahead }
    }

    /// A chunk of a stream is being fetched.
    pub fn fetching(&mut self, stream: StreamId, at: u64, content: T, now: Instant) {
        let left = self.chunk_bytes;
        if let Some(stream) = self.stream(stream) {
            let chunk = Chunk { content, begun: now, read: stream.used, arrived: None, left };
            stream.chunks.insert(at, chunk);
        }
    }

    /// A chunk has arrived, whole or not.
    pub fn arrived(&mut self, stream: StreamId, at: u64, now: Instant) {
        let Some(stream) = self.stream(stream) else { return };
        let Some(chunk) = stream.chunks.get_mut(&at) else { return };
        chunk.arrived = Some(now);
        let took = now.since(chunk.begun);
        let least = stream.least.map_or(took, |least| least.min(took));
        stream.least = Some(least);
        if chunk.read >= stream.grown {
            stream.may_grow = took <= least * 2 + QUEUE_MAX;
        }
    }

    /// The chunk that holds `offset`, and where it begins.
    pub fn chunk(&mut self, stream: StreamId, offset: u64) -> Option<(u64, T)> {
        let at = offset / self.chunk_bytes * self.chunk_bytes;
        let chunk = self.stream(stream)?.chunks.get(&at)?;
        Some((at, chunk.content.clone()))
    }

    /// A reader has taken bytes of the chunk at `at`; when all are taken it goes.
    pub fn taken(&mut self, stream: StreamId, at: u64, bytes: u64) {
        let Some(stream) = self.stream(stream) else { return };
        if let Some(chunk) = stream.chunks.get_mut(&at) {
            chunk.left = chunk.left.saturating_sub(bytes);
            if chunk.left == 0 {
                stream.chunks.remove(&at);
            }
        }
    }

    /// A chunk could not be fetched, or is not what it should be.
    pub fn failed(&mut self, stream: StreamId, at: u64) {
        if let Some(stream) = self.stream(stream) {
            stream.chunks.remove(&at);
        }
    }

    /// The reader had to wait: more is to be fetched ahead of it, unless the path is full.
    pub fn waited(&mut self, stream: StreamId) {
        if let Some(stream) = self.stream(stream).filter(|stream| stream.may_grow) {
            stream.ahead = (stream.ahead * 2).min(AHEAD_MAX);
            (stream.grown, stream.may_grow) = (stream.used, false);
        }
    }

    fn slack(&self) -> u64 {
        SLACK_BYTES.max(SLACK_CHUNKS * self.chunk_bytes)
    }

    fn stream(&mut self, id: StreamId) -> Option<&mut Stream<T>> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    /// The stream that a read from `offset` to `end` belongs to; none if it follows no other.
    fn stream_at(&mut self, offset: u64, end: u64) -> Option<&mut Stream<T>> {
        let slack = self.slack();
        // What followed another read exactly may follow it roughly from then on.
        let is_next = |stream: &Stream<T>| match stream.ahead {
            0 => stream.next == offset,
            _ => stream.next.abs_diff(offset) <= slack,
        };
        if let Some(index) = self.streams.iter().position(is_next) {
            let stream = &mut self.streams[index];
            stream.ahead = stream.ahead.max(1);
            return Some(stream);
        }
        if self.streams.len() == STREAMS_MAX {
            let oldest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.used);
            self.streams.swap_remove(oldest.map_or(0, |(index, _)| index));
        }
        let ahead = u64::from(offset == 0);
        let (id, used) = (StreamId(self.reads), self.reads);
        let (chunks, least) = (BTreeMap::new(), None);
        let (grown, may_grow) = (used, true);
        let stream = Stream { id, next: end, ahead, chunks, used, grown, may_grow, least };
        self.streams.push(stream);
        self.streams.last_mut().filter(|_| ahead > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::EPOCH;
    const MIB: u64 = 1 << 20;
    const CHUNK: u32 = 1 << 20;
    const FILE: u64 = 1000 * MIB;

    fn fetch(streams: &mut Streams<u64>, plan: &Plan) {
        for &at in plan.needed.iter().chain(&plan.ahead) {
            streams.fetching(plan.stream.unwrap(), at, at, NOW);
        }
    }

    #[test]
    fn a_sequential_reader_is_ahead_of_by_ever_more_while_it_waits() {
        let mut streams = Streams::new(CHUNK);
        let plan = streams.read(0, CHUNK, FILE, NOW);
        assert_eq!((plan.needed.as_slice(), plan.ahead.as_slice()), (&[0][..], &[MIB][..]));
        fetch(&mut streams, &plan);
        let stream = plan.stream.unwrap();
        streams.waited(stream);
        streams.taken(stream, 0, MIB);
        let plan = streams.read(MIB, CHUNK, FILE, NOW);
        assert_eq!((plan.needed.len(), plan.ahead.as_slice()), (0, &[2 * MIB, 3 * MIB][..]));
        assert_eq!(streams.chunk(stream, MIB + 5), Some((MIB, MIB)));
        fetch(&mut streams, &plan);
        for _ in 0..100 {
            streams.waited(stream);
        }
        assert_eq!(streams.streams[0].ahead, 2, "nothing has arrived since");
        for _ in 0..100 {
            streams.arrived(stream, 3 * MIB, NOW);
            streams.waited(stream);
        }
        let plan = streams.read(2 * MIB, CHUNK, FILE, NOW);
        assert_eq!(plan.ahead.last(), Some(&(999 * MIB)), "not beyond the end of the file");
    }

    #[test]
    fn no_more_is_fetched_ahead_when_chunks_take_much_longer_than_they_did_at_best() {
        let mut streams = Streams::new(CHUNK);
        let ahead_after = |streams: &mut Streams<u64>, at: u64, took: Nanos| {
            let plan = streams.read(at, CHUNK, FILE, NOW);
            fetch(streams, &plan);
            let stream = plan.stream.unwrap();
            streams.arrived(stream, at, NOW + took);
            streams.waited(stream);
            streams.streams[0].ahead
        };
        let millis = Nanos::from_millis;
        assert_eq!(ahead_after(&mut streams, 0, millis(10)), 2);
        assert_eq!(ahead_after(&mut streams, 5 * MIB, millis(120)), 4);
        for mib in 20..30 {
            streams.streams[0].next = mib * MIB;
            assert_eq!(ahead_after(&mut streams, mib * MIB, millis(121)), 4);
        }
    }

    #[test]
    fn random_reads_fetch_nothing_and_two_readers_are_distinguished() {
        let mut streams: Streams<u64> = Streams::new(CHUNK);
        for mib in [500, 100, 900, 300, 700] {
            assert_eq!(streams.read(mib * MIB, 5, FILE, NOW).stream, None);
        }
        let one = streams.read(700 * MIB + 5, 5, FILE, NOW).stream.unwrap();
        let other = streams.read(300 * MIB + 5, 5, FILE, NOW).stream.unwrap();
        assert_ne!(one, other);
        assert_eq!(streams.read(700 * MIB + 10, 5, FILE, NOW).stream, Some(one));
        assert!(streams.streams.len() <= STREAMS_MAX);
    }

    #[test]
    fn parts_requested_out_of_order_are_one_stream() {
        for chunk_bytes in [CHUNK, 4096] {
            let mut streams = Streams::new(chunk_bytes);
            let plan = streams.read(0, CHUNK, FILE, NOW);
            fetch(&mut streams, &plan);
            for mib in [2, 1, 3] {
                assert_eq!(streams.read(mib * MIB, CHUNK, FILE, NOW).stream, plan.stream);
            }
        }
    }

    #[test]
    fn what_is_too_old_or_behind_the_reader_is_dropped() {
        let mut streams = Streams::new(CHUNK);
        let plan = streams.read(0, CHUNK, FILE, NOW);
        fetch(&mut streams, &plan);
        let later = Instant::from_nanos(1);
        assert!(streams.read(MIB, CHUNK, FILE, later).needed.is_empty(), "it is on its way");
        streams.arrived(plan.stream.unwrap(), MIB, NOW);
        assert_eq!(streams.read(MIB, CHUNK, FILE, later).needed, [MIB]);
        for mib in 2..10 {
            let plan = streams.read(mib * MIB, CHUNK, FILE, NOW);
            fetch(&mut streams, &plan);
        }
        assert!(streams.streams[0].chunks.keys().all(|&at| at >= 5 * MIB));
    }
}
