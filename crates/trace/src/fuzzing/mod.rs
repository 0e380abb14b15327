//! What must hold whatever is in a capture. The fuzz targets, and tests, call these functions.

mod frames;
mod messages;
mod pieces;

use std::io::Cursor;

pub use messages::{messages, operations};
pub use pieces::{fragments, segments};

use crate::capture::{Capture, End, Link, Packet, Place};
use crate::{Analyzer, BUFFERS_MAX, CONNECTIONS_MAX, Filter};

/// Any bytes as a file: read to the end, or refused.
pub fn capture(input: &[u8]) {
    let Ok(mut capture) = Capture::open("input", Box::new(Cursor::new(input))) else { return };
    let mut analyzer = Analyzer::new(Filter::default());
    while let Ok(true) = capture.advance() {
        if let Some(packet) = capture.packet() {
            assert!(packet.wire_len as usize >= packet.data.len());
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
        let place = Place { file: u16::from(len & 1), interface: 0 };
        let packet = Packet { frame: 0, at_ns, place, link, wire_len, data };
        analyzer.packet(&packet, &mut |_, _, _| {});
    }
    ended(analyzer);
}

/// A packet without a link layer, of which the first bytes were captured.
fn take(analyzer: &mut Analyzer, at_ns: u64, data: &[u8], snap_len: usize) {
    let wire_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let data = &data[..data.len().min(snap_len)];
    let place = Place::default();
    let packet = Packet { frame: 0, at_ns, place, link: Link::Raw, wire_len, data };
    analyzer.packet(&packet, &mut |_, _, _| {});
}

/// What holds at the end of any capture.
fn ended(mut analyzer: Analyzer) {
    analyzer.end();
    let totals = analyzer.totals();
    assert!(totals.replies() <= totals.calls());
    assert!(analyzer.connections().0 <= CONNECTIONS_MAX);
    assert!(analyzer.buffered() <= BUFFERS_MAX);
    for (_, flow) in analyzer.flows().iter() {
        let (none, one, more) = flow.pace.time_with();
        assert!(none.checked_add(one).and_then(|sum| sum.checked_add(more)).is_some());
    }
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

    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 6] = [
        ("trace_capture", super::capture),
        ("trace_packets", super::packets),
        ("trace_messages", super::messages),
        ("trace_operations", super::operations),
        ("trace_segments", super::segments),
        ("trace_fragments", super::fragments),
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn any_input_is_survived(input in prop::collection::vec(any::<u8>(), 0..400)) {
            for (_, target) in TARGETS {
                target(&input);
            }
            super::end(&input);
        }
    }

    #[test]
    fn seeds_are_replayed() {
        for (name, target) in TARGETS {
            let folder = format!("{}/../../fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
            let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
            assert!(!seeds.is_empty(), "{name}");
            for seed in seeds {
                target(&std::fs::read(seed.unwrap().path()).unwrap());
            }
        }
    }
}
