//! Streams and datagrams in pieces: cut, repeated, overlapping, too early, missing, as the input
//! says. What is there whole is found.

use std::sync::LazyLock;

use wire::record::Fragment;

use super::frames::{NO_AUTH, call, ip, tcp, udp};
use super::{ended, take};
use crate::{Analyzer, EARLY_BYTES_MAX, EARLY_MAX, Filter};

const NFS: (u32, u32) = (100_003, 3);
/// Bytes of messages behind their heads: in one segment, in a few, longer than what is stored of a
/// record, and of a length that leaves a mark split.
const BODIES: [usize; 7] = [0, 160, 1_420, 3_001, 0, 9_000, 2_502];
const RECORDS: u32 = 42;
/// Where the stream begins: its numbers begin anew in it.
const BEGIN: u32 = 0xffff_e000;
/// What snap lengths leave of a packet: little more than the headers.
const SNAP_LEN: usize = 120;

/// What the pieces of something are: how far from the last one, and how long.
fn steps(input: &[u8], unit: usize, len_max: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0_usize;
    input.as_chunks::<2>().0.iter().map(move |&[how, len]| {
        let len = (usize::from(len) + 1) * unit * [1, 7, 40, 120][usize::from(how / 8 % 4)];
        match how % 8 {
            0 => at = at.saturating_sub(len * (1 + usize::from(how / 32))),
            1 => at = (at + len).min(len_max),
            _ => {}
        }
        let from = at;
        at = (at + len).min(len_max);
        (from, at)
    })
}

/// Records in a stream. The first byte says whether its beginning was captured, and whether all of
/// each packet was.
pub fn segments(input: &[u8]) {
    let Some((&choice, rest)) = input.split_first() else { return };
    let (stream, ends) = &*STREAM;
    let mut analyzer = Analyzer::new(Filter::default());
    let mut seen = vec![false; stream.len()];
    let snap_len = if choice & 2 == 0 { usize::MAX } else { SNAP_LEN };
    let begin = match choice & 1 {
        // A whole record, from which on the stream is known.
        0 => Some((0, ends[0])),
        _ => {
            take(&mut analyzer, 1, &tcp(true, true, BEGIN.wrapping_sub(1), &[]), usize::MAX);
            None
        }
    };
    let pieces = begin.into_iter().chain(steps(rest, 1, stream.len()));
    let mut sent_bytes = 0;
    for (at_ns, (from, to)) in (2..).zip(pieces).filter(|(_, (from, to))| from < to) {
        let seq = BEGIN.wrapping_add(u32::try_from(from).unwrap_or(0));
        let data = tcp(true, false, seq, &stream[from..to]);
        take(&mut analyzer, at_ns * 1000, &data, snap_len);
        seen[from..to].fill(true);
        sent_bytes += to - from;
    }
    // What waits for what is missing is not given up.
    let is_stored = sent_bytes < EARLY_BYTES_MAX && rest.len() / 2 < EARLY_MAX;
    let whole = seen.iter().position(|seen| !seen).unwrap_or(stream.len());
    let whole = ends.iter().filter(|end| **end <= whole).count();
    let calls = usize::try_from(analyzer.totals().calls()).unwrap_or(usize::MAX);
    assert!(calls <= ends.len(), "{calls} calls");
    if snap_len == usize::MAX && is_stored {
        assert_eq!(calls, whole);
    }
    ended(analyzer);
}

/// Made once: that takes longer than to read it.
static STREAM: LazyLock<(Vec<u8>, Vec<usize>)> = LazyLock::new(records);

/// Calls with their marks, and where each ends. Every third is divided.
fn records() -> (Vec<u8>, Vec<usize>) {
    let (mut stream, mut ends) = (Vec::new(), Vec::new());
    for (xid, body) in (0..RECORDS).zip(BODIES.iter().cycle()) {
        // Data that look like marks and messages.
        let data = [0x80, 0, 0, 100, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
        let mut message = call(xid, NFS, 0, &NO_AUTH);
        message.extend(data.into_iter().cycle().take(*body));
        let parts = if xid % 3 == 2 { 3 } else { 1 };
        let part_len = message.len().div_ceil(parts);
        for (index, part) in message.chunks(part_len).enumerate() {
            let last = (index + 1) * part_len >= message.len();
            let len = u32::try_from(part.len()).unwrap_or(0);
            stream.extend(Fragment { last, len }.to_header());
            stream.extend_from_slice(part);
        }
        ends.push(stream.len());
    }
    (stream, ends)
}

/// A datagram's fragments.
pub fn fragments(input: &[u8]) {
    const BODY: usize = 3_000;
    /// Pieces without neighbours that are stored.
    const STEPS_MAX: usize = 60;
    let message = [call(7, NFS, 0, &NO_AUTH), vec![0xa5; BODY]].concat();
    let datagram = udp(true, &message);
    let mut analyzer = Analyzer::new(Filter::default());
    let mut seen = vec![false; datagram.len()];
    let mut is_found = false;
    let input = &input[..input.len().min(STEPS_MAX * 2)];
    for (at_ns, (from, to)) in (1..).zip(steps(input, 8, datagram.len())) {
        let (from, more) = (from / 8 * 8, to < datagram.len());
        if from >= to {
            continue;
        }
        let offset = u16::try_from(from / 8).unwrap_or(0);
        let data = ip(17, true, (offset, more), &datagram[from..to]);
        take(&mut analyzer, at_ns, &data, usize::MAX);
        if offset == 0 && !more {
            // No fragment: what waits goes on waiting.
            is_found = true;
            continue;
        }
        seen[from..to].fill(true);
        if seen.iter().all(|seen| *seen) {
            is_found = true;
            seen.fill(false);
        }
    }
    assert_eq!(analyzer.totals().calls(), u64::from(is_found));
    ended(analyzer);
}
