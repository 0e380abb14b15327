//! What must hold whatever is in a capture. The fuzz targets, and tests, call these functions.

use std::io::Cursor;

use wire::record::Fragment;

use crate::capture::{Capture, End, Link, Packet};
use crate::trace::{Analyzer, BUFFERS_MAX, CONNECTIONS_MAX, Filter};

/// Any bytes as a file: read to the end, or refused.
pub fn capture(input: &[u8]) {
    let Ok(mut capture) = Capture::open("input", Box::new(Cursor::new(input))) else { return };
    let mut analyzer = Analyzer::new(Filter::default());
    while let Ok(true) = capture.advance() {
        if let Some(packet) = capture.packet() {
            assert!(packet.wire_len as usize >= packet.data.len() || packet.wire_len > 0);
            analyzer.packet(&packet, &mut |_, _, _| {});
        }
    }
    ended(analyzer);
}

/// Any bytes as packets: the first says of which link, and each packet is preceded by its length.
pub fn packets(input: &[u8]) {
    let Some((&link, mut rest)) = input.split_first() else { return };
    let links = [Link::Raw, Link::Ethernet, Link::Null, Link::CookedV1, Link::CookedV2];
    let link = links[usize::from(link) % links.len()];
    let mut analyzer = Analyzer::new(Filter::default());
    let mut at_ns = 1;
    while let Some((&len, behind)) = rest.split_first() {
        let (data, behind) = behind.split_at(usize::from(len).min(behind.len()));
        rest = behind;
        at_ns += 1000;
        let wire_len = u32::from(len);
        analyzer.packet(&Packet { at_ns, link, wire_len, data }, &mut |_, _, _| {});
    }
    ended(analyzer);
}

/// Any bytes as messages over UDP: a call, and what answers it.
pub fn messages(input: &[u8]) {
    let Some((&len, rest)) = input.split_first() else { return };
    let (call, reply) = rest.split_at(usize::from(len).min(rest.len()));
    let mut analyzer = Analyzer::new(Filter::default());
    for (at_ns, from_client, message) in [(1, true, call), (2, false, reply)] {
        let data = datagram(from_client, message);
        let wire_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let packet = Packet { at_ns, link: Link::Raw, wire_len, data: &data };
        analyzer.packet(&packet, &mut |_, _, _| {});
    }
    ended(analyzer);
}

/// Records of NULL calls in a stream that is cut as the input says: each two bytes are a step
/// (further, back, or leaving bytes out) and a length. What is never left out is found.
pub fn segments(input: &[u8]) {
    const CALLS: u32 = 200;
    let stream: Vec<u8> = (0..CALLS).flat_map(null_call).collect();
    let mut analyzer = Analyzer::new(Filter::default());
    let (mut at, mut at_ns, mut is_whole) = (0_usize, 1, true);
    let mut reached = 0;
    let mut send = |at_ns: u64, from: usize, to: usize| {
        let data = segment(u32::try_from(from).unwrap_or(0), &stream[from..to]);
        let wire_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let packet = Packet { at_ns, link: Link::Raw, wire_len, data: &data };
        analyzer.packet(&packet, &mut |_, _, _| {});
    };
    send(1, 0, 44); // a whole record, from which on the stream is known
    for step in input.chunks(2) {
        let &[how, len] = step else { break };
        at_ns += 1000;
        let len = usize::from(len) + 1;
        match how % 8 {
            0 => at = at.saturating_sub(len * usize::from(how / 8)),
            1 => {
                at = (at + len).min(stream.len());
                is_whole &= at <= reached;
            }
            _ => {}
        }
        let to = (at + len).min(stream.len());
        is_whole &= at <= reached.max(44);
        send(at_ns, at, to);
        at = to;
        reached = reached.max(to);
    }
    analyzer.end();
    let calls = analyzer.totals().calls();
    assert!(calls <= u64::from(CALLS), "{calls} of {CALLS}");
    if is_whole {
        let expected = reached.max(44) / 44;
        assert_eq!(calls, expected as u64, "of {reached} bytes");
    }
}

/// What holds at the end of any capture.
fn ended(mut analyzer: Analyzer) {
    analyzer.end();
    let totals = analyzer.totals();
    assert!(totals.replies() <= totals.calls());
    assert!(analyzer.connections().0 <= CONNECTIONS_MAX);
    assert!(analyzer.buffered() <= BUFFERS_MAX);
    for (_, talk) in analyzer.talks().iter() {
        let (none, one, more) = talk.pace.time_with();
        assert!(none.checked_add(one).and_then(|sum| sum.checked_add(more)).is_some());
    }
}

/// A NULL call with its mark: 44 bytes.
fn null_call(xid: u32) -> Vec<u8> {
    let words = [xid, 0, 2, 100_003, 3, 0, 0, 0, 0, 0];
    let message: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    [&Fragment { last: true, len: 40 }.to_header()[..], &message].concat()
}

fn ip(protocol: u8, from_client: bool, carried: &[&[u8]]) -> Vec<u8> {
    let len: usize = carried.iter().map(|part| part.len()).sum();
    let total = u16::try_from(20 + len).unwrap_or(0).to_be_bytes();
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let (own, peer) = (ends[usize::from(!from_client)], ends[usize::from(from_client)]);
    let head = [0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&head[..], &own, &peer, &carried.concat()].concat()
}

fn datagram(from_client: bool, payload: &[u8]) -> Vec<u8> {
    let ports: [u8; 4] = if from_client { [3, 132, 8, 1] } else { [8, 1, 3, 132] };
    ip(17, from_client, &[&ports, &[0; 4], payload])
}

fn segment(seq: u32, payload: &[u8]) -> Vec<u8> {
    let head = [&[3, 132, 8, 1][..], &seq.to_be_bytes(), &[0; 4], &[0x50, 0, 1, 1, 0, 0, 0, 0]];
    ip(6, true, &[&head.concat(), payload])
}

/// Ends are the same however they are written.
pub fn end(input: &[u8]) {
    let Some(address) = input.first_chunk::<16>() else { return };
    let end = End::v6(*address, 1);
    assert_eq!(End::from(std::net::SocketAddr::new(end.ip(), 1)), end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn any_input_is_survived(input in prop::collection::vec(any::<u8>(), 0..400)) {
            super::capture(&input);
            super::packets(&input);
            super::messages(&input);
            super::segments(&input);
            super::end(&input);
        }
    }
}
