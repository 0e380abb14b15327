//! TCP: the same transactions however the streams are cut, reordered, repeated and lost.

use proptest::prelude::*;
use wire::record::Fragment;

use crate::frames::{RAW, Rpc, WHOLE, analyze, ipv4, pcap, tcp};

/// A conversation: each call and its reply.
fn conversation() -> impl Strategy<Value = Vec<(Rpc, Rpc)>> {
    let pair = prop_oneof![
        (0..40_000_u32).prop_map(|bytes| (0, bytes)),
        (0..200_u32).prop_map(|len| (1, len)),
        Just((2, 0)),
    ];
    prop::collection::vec(pair, 1..12).prop_map(|pairs| {
        let all = (100_u32..).zip(pairs);
        all.map(|(xid, (kind, n))| match kind {
            0 => (Rpc::Write { xid, bytes: n }, Rpc::Written { xid, bytes: n }),
            1 => {
                let name = "n".repeat(1 + n as usize);
                (Rpc::Lookup { xid, name }, Rpc::Found { xid, handle: 50 + xid })
            }
            _ => (Rpc::Null { xid }, Rpc::Nothing { xid }),
        })
        .collect()
    })
}

/// A piece of a stream: which direction, from where, how long.
type Piece = (bool, usize, usize);

/// Calls first and replies then, in pieces.
fn pieces(exchanges: &[(Rpc, Rpc)], cuts: &[usize]) -> (Vec<u8>, Vec<u8>, Vec<Piece>) {
    let calls: Vec<u8> = exchanges.iter().flat_map(|(call, _)| call.record()).collect();
    let replies: Vec<u8> = exchanges.iter().flat_map(|(_, reply)| reply.record()).collect();
    let mut all = Vec::new();
    for (from_client, stream) in [(true, &calls), (false, &replies)] {
        let mut at = 0;
        for len in cuts.iter().cycle() {
            if at == stream.len() {
                break;
            }
            let len = (*len).min(stream.len() - at);
            all.push((from_client, at, len));
            at += len;
        }
    }
    (calls, replies, all)
}

/// The first packet of a direction.
fn begin(from_client: bool) -> Vec<u8> {
    let next = if from_client { 0xffff_f000 } else { 77_u32 };
    let mut syn = tcp(from_client, next - 1, 0, &[]);
    syn[13] = 2;
    ipv4(6, from_client, &syn)
}

fn packet(calls: &[u8], replies: &[u8], (from_client, at, len): Piece) -> Vec<u8> {
    let (calls, replies) = ((calls, 0xffff_f000), (replies, 77_u32));
    let ((stream, begin), (_, ack)) = if from_client { (calls, replies) } else { (replies, calls) };
    let seq = begin.wrapping_add(u32::try_from(at).unwrap());
    ipv4(6, from_client, &tcp(from_client, seq, ack, &stream[at..at + len]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cuts_any_near_order_and_any_repetition_give_the_same_transactions(
        exchanges in conversation(),
        cuts in prop::collection::vec(28..9000_usize, 1..8),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), 1..4_usize), 0..12),
        repeats in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        grown in prop::collection::vec((any::<prop::sample::Index>(), 0..500_usize), 0..6),
    ) {
        let (calls, replies, all) = pieces(&exchanges, &cuts);
        let mut frames = vec![begin(true), begin(false)];
        for direction in [true, false] {
            let of = all.iter().filter(|piece| piece.0 == direction);
            let mut pieces: Vec<Piece> = of.copied().collect();
            // Segments that begin before what they bring, as retransmissions are cut anew.
            for (index, grow) in &grown {
                let piece = index.get_mut(&mut pieces[..]);
                let grow = (*grow).min(piece.1);
                *piece = (piece.0, piece.1 - grow, piece.2 + grow);
            }
            for index in &repeats {
                pieces.push(*index.get(&pieces));
                let len = pieces.len();
                pieces.swap(index.index(len), len - 1);
            }
            for (index, far) in &swaps {
                let at = index.index(pieces.len());
                let to = (at + far).min(pieces.len() - 1);
                pieces.swap(at, to);
            }
            frames.extend(pieces.iter().map(|piece| packet(&calls, &replies, *piece)));
        }
        let found = analyze(pcap(RAW, &frames, WHOLE));
        let mut seen: Vec<u32> = found.transactions.iter().map(|found| found.xid).collect();
        seen.sort_unstable();
        let expected: Vec<u32> = (100..).take(exchanges.len()).collect();
        prop_assert_eq!(seen, expected);
        for transaction in &found.transactions {
            let (call, reply) = &exchanges[transaction.xid as usize - 100];
            prop_assert_eq!(transaction.call_len as usize, call.message().len());
            prop_assert_eq!(transaction.reply_len as usize, reply.message().len());
            if let Rpc::Write { bytes, .. } = call {
                prop_assert_eq!(transaction.bytes, *bytes);
            }
        }
        let flow = found.analyzer.flows().iter().next().unwrap().1;
        prop_assert_eq!((flow.streams.missing_bytes, flow.streams.resyncs), (0, 0));
    }

    #[test]
    fn whatever_is_lost_what_comes_behind_is_found_again(
        exchanges in conversation(),
        cuts in prop::collection::vec(200..3000_usize, 1..6),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        snap in 60..4000_usize,
    ) {
        let mut exchanges = exchanges;
        exchanges.extend((1000..1010).map(|xid| (Rpc::Null { xid }, Rpc::Nothing { xid })));
        let (calls, replies, mut pieces) = pieces(&exchanges, &cuts);
        for index in lost {
            pieces.remove(index.index(pieces.len()));
            if pieces.is_empty() {
                break;
            }
        }
        let frames: Vec<Vec<u8>> =
            pieces.iter().map(|piece| packet(&calls, &replies, *piece)).collect();
        let found = analyze(pcap(RAW, &frames, snap));
        prop_assert!(found.transactions.len() <= exchanges.len());
    }
}

#[test]
fn a_record_may_be_divided_into_fragments_shorter_than_its_head() {
    let message = Rpc::Null { xid: 7 }.message();
    let parts = message.len().div_ceil(12);
    let record = message.chunks(12).enumerate().flat_map(|(index, part)| {
        let last = index + 1 == parts;
        let mark = Fragment { last, len: u32::try_from(part.len()).unwrap() }.to_header();
        [&mark[..], part].concat()
    });
    // A record before it, and one behind: there are three.
    let around = Rpc::Null { xid: 6 }.record();
    let stream = [&around[..], &record.collect::<Vec<u8>>(), &Rpc::Null { xid: 8 }.record()];
    let found = analyze(pcap(RAW, &[ipv4(6, true, &tcp(true, 1, 1, &stream.concat()))], WHOLE));
    assert_eq!(found.analyzer.totals().calls(), 3);
}

/// One packet for each message, calls and replies by turns.
fn by_turns(exchanges: &[(Rpc, Rpc)]) -> Vec<Vec<u8>> {
    let (mut sent, mut frames) = ([1_u32, 1], Vec::new());
    for (call, reply) in exchanges {
        for (direction, message) in [call, reply].into_iter().enumerate() {
            let record = message.record();
            let segment = tcp(direction == 0, sent[direction], sent[1 - direction], &record);
            frames.push(ipv4(6, direction == 0, &segment));
            sent[direction] += u32::try_from(record.len()).unwrap();
        }
    }
    frames
}

fn lookups(count: u32) -> Vec<(Rpc, Rpc)> {
    let one = |xid| {
        let name = format!("file-{xid}");
        (Rpc::Lookup { xid, name }, Rpc::Found { xid, handle: 1000 + xid })
    };
    (0..count).map(one).collect()
}

#[test]
fn a_transaction_has_its_names_sizes_and_times() {
    let exchanges = [
        (Rpc::Lookup { xid: 1, name: "a name".into() }, Rpc::Found { xid: 1, handle: 1 }),
        (Rpc::Write { xid: 2, bytes: 30_000 }, Rpc::Written { xid: 2, bytes: 30_000 }),
    ];
    let found = analyze(pcap(RAW, &by_turns(&exchanges), WHOLE));
    let [lookup, write] = found.transactions[..] else { panic!("{:?}", found.transactions) };
    assert_eq!((lookup.operation.name(), write.operation.name()), ("LOOKUP", "WRITE"));
    assert_eq!((write.bytes, write.stable, write.xid), (30_000, 2, 2));
    assert_eq!(found.paths[1], "a name");
    assert_eq!(lookup.latency().unwrap().as_nanos(), 1000);
    assert_eq!(lookup.call_ns, 1_000_000_001_000);
}

#[test]
fn bytes_that_were_not_captured_are_given_up_when_the_other_end_has_them() {
    let exchanges = lookups(20);
    let mut frames = by_turns(&exchanges);
    frames.remove(10); // a call
    frames.remove(16); // a reply
    let found = analyze(pcap(RAW, &frames, WHOLE));
    // The reply without its call, and the call without its reply, are all that is missing.
    assert_eq!(found.transactions.len(), 18);
    let flow = found.analyzer.flows().iter().next().unwrap().1;
    assert_eq!((flow.unsolicited_replies, flow.unanswered), (1, 1));
    assert!(flow.streams.missing_bytes > 0);
}

/// Calls to write 1 MiB each, and their replies.
fn large_writes(count: u32) -> Vec<(Rpc, Rpc)> {
    let bytes = 1 << 20;
    (100..100 + count).map(|xid| (Rpc::Write { xid, bytes }, Rpc::Written { xid, bytes })).collect()
}

#[test]
fn what_a_large_window_had_behind_a_lost_segment_is_complete_when_that_comes_again() {
    let exchanges = large_writes(5);
    let (calls, replies, pieces) = pieces(&exchanges, &[1448]);
    let count = pieces.iter().filter(|piece| piece.0).count();
    // Lost: inside the data of the first call, and where the second begins.
    for lost in [100, exchanges[0].0.record().len() / 1448] {
        let mut pieces = pieces.clone();
        pieces[lost..count].rotate_left(1);
        let mut frames = vec![begin(true), begin(false)];
        frames.extend(pieces.iter().map(|piece| packet(&calls, &replies, *piece)));
        let found = analyze(pcap(RAW, &frames, WHOLE));
        assert_eq!(found.transactions.len(), exchanges.len(), "piece {lost}");
        let came_ns = 1_000_000_000_000 + 1_000 * (2 + count) as u64;
        for transaction in &found.transactions {
            assert_eq!(transaction.call_ns, came_ns, "piece {lost}: {transaction:?}");
        }
        let flow = found.analyzer.flows().iter().next().unwrap().1;
        assert_eq!((flow.streams.missing_bytes, flow.streams.resyncs), (0, 0));
    }
}

#[test]
fn what_never_comes_is_given_up_when_too_much_waits_behind_it() {
    let exchanges = large_writes(12);
    let (calls, replies, mut pieces) = pieces(&exchanges, &[1448]);
    pieces.remove(100);
    let mut frames = vec![begin(true), begin(false)];
    frames.extend(pieces.iter().map(|piece| packet(&calls, &replies, *piece)));
    let found = analyze(pcap(RAW, &frames, WHOLE));
    assert_eq!(found.transactions.len(), exchanges.len());
    let flow = found.analyzer.flows().iter().next().unwrap().1;
    assert_eq!((flow.streams.missing_bytes, flow.streams.resyncs), (1448, 0));
}

#[test]
fn a_capture_that_begins_in_the_middle_of_a_write_finds_the_next_record() {
    let write = Rpc::Write { xid: 1, bytes: 5_000 }.record();
    let mut frames = vec![ipv4(6, true, &tcp(true, 1, 1, &write[3_001..]))];
    let mut seq = 1 + u32::try_from(write.len() - 3_001).unwrap();
    for xid in 2..10 {
        let call = Rpc::Null { xid }.record();
        frames.push(ipv4(6, true, &tcp(true, seq, 1, &call)));
        seq += u32::try_from(call.len()).unwrap();
        let reply = Rpc::Nothing { xid }.record();
        let at = 1 + (xid - 2) * u32::try_from(reply.len()).unwrap();
        frames.push(ipv4(6, false, &tcp(false, at, seq, &reply)));
    }
    let found = analyze(pcap(RAW, &frames, WHOLE));
    assert!(found.transactions.len() >= 7, "{}", found.transactions.len());
}

#[test]
fn calls_and_replies_that_come_again_are_distinguished() {
    let exchanges = lookups(4);
    let frames = |repeated: &[&Rpc]| {
        let mut frames: Vec<Vec<u8>> = Vec::new();
        for (id, message) in (1_u8..).zip(repeated) {
            let datagram = crate::frames::udp(message.is_call(), &message.message());
            let mut packet = ipv4(17, message.is_call(), &datagram);
            packet[5] = id;
            frames.push(packet);
        }
        frames
    };
    let [(a, ra), (b, rb), (c, rc), (d, _)] = &exchanges[..] else { panic!() };
    // a: retransmitted before its reply; b: behind it; c: answered twice; d: never answered.
    let order = [a, a, ra, b, rb, b, rb, c, rc, rc, d];
    let found = analyze(pcap(RAW, &frames(&order), WHOLE));
    assert_eq!(found.transactions.len(), 3);
    assert_eq!(found.transactions[0].retransmissions, 1);
    let flow = found.analyzer.flows().iter().next().unwrap().1;
    assert_eq!((flow.retransmissions, flow.duplicate_replies, flow.unanswered), (2, 2, 1));
}
