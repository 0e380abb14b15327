//! A call that hangs (of one file, one lock, one disk) while the server answers others: whose the
//! time is, and what it is no longer taken for.

use trace::Hung;
use trace::verdict::{Certainty, Chosen, Suspect, hangs, judge};

use crate::frames::{Rpc, analyze, pcap_at};
use crate::scopes::moved;
use crate::waits::{MS, RST, SECOND, Tape, share_of, verdict};

/// Calls that hang, and 500 others over `port`, of 1 ms, one each 10 ms.
fn beside(hanging: u32, port: u16, answered_ns: Option<u64>) -> Tape {
    let mut tape = Tape::default();
    let hung: Vec<u32> = (0..hanging).map(|_| tape.called(0, 900)).collect();
    (1..=500).for_each(|number| tape.other(number * 10 * MS, port, MS));
    if let Some(at) = answered_ns {
        hung.iter().for_each(|xid| tape.says(at, 900, &Rpc::Found { xid: *xid, handle: 5 }));
    }
    tape
}

#[test]
fn a_call_that_hangs_while_others_are_answered_is_the_verdict_answered_or_not() {
    let hangs = Some((Suspect::HangingCalls, Certainty::Sure));
    for (hanging, port, answered_ns) in
        [(1, 800, None), (1, 900, None), (4, 800, None), (1, 900, Some(5_020 * MS))]
    {
        let (diagnosis, evidence, _) = beside(hanging, port, answered_ns).judged();
        assert_eq!(verdict(&diagnosis), hangs, "{hanging} {port} {answered_ns:?}");
        // All but the first second, and what others are outstanding.
        assert!((0.65..0.75).contains(&share_of(&diagnosis, Suspect::HangingCalls)));
        assert!(share_of(&diagnosis, Suspect::SlowServer) < 0.25, "{diagnosis:?}");
        let Hung { calls, unanswered, longest_ns, frame, is_answered } = evidence.hung;
        assert_eq!(calls, u64::from(hanging));
        assert_eq!(unanswered, if is_answered { 0 } else { calls });
        assert_eq!((frame, is_answered), (1, answered_ns.is_some()));
        assert!(longest_ns > 5 * SECOND, "{longest_ns}");
    }
    // None of it without that call: the client is idle.
    let (diagnosis, evidence, _) = beside(0, 900, None).judged();
    assert_eq!(verdict(&diagnosis), Some((Suspect::IdleClient, Certainty::Sure)));
    assert_eq!((evidence.hung, evidence.waited.late), (Hung::default(), 0));
}

/// A client's calls beside another client's, which is busier: 1,500 of half a millisecond in 15 s.
fn beside_a_busier_client(tape: &Tape) -> Chosen {
    let mut other = Tape { xid: 50_000, ..Tape::default() };
    (0..1_500).for_each(|number| other.other(number * 10 * MS, 900, MS / 2));
    let other = other.captured().into_iter();
    let other = other.map(|(at, packet)| (at, moved(packet, [3, 2], [801, 2049])));
    let mut packets: Vec<_> = tape.captured().into_iter().chain(other).collect();
    packets.sort_by_key(|(at, _)| *at);
    Chosen::of(analyze(pcap_at(&packets)).analyzer.flows()).unwrap()
}

#[test]
fn a_client_that_waits_in_vain_is_the_verdict_beside_a_busier_one() {
    for (answered, hanging) in [(200, 4_u32), (3, 1)] {
        let mut tape = Tape::default();
        (0..answered).for_each(|number| tape.other(number * 10 * MS, 900, 3 * MS));
        (0..hanging).for_each(|_| {
            tape.called(2 * SECOND, 900);
        });
        let Chosen { evidence, busiest, hanging: others, more } = beside_a_busier_client(&tape);
        assert_eq!(evidence.hosts.unwrap().client().to_string(), "10.0.0.1");
        assert_eq!(verdict(&judge(&evidence)), Some((Suspect::NoReply, Certainty::Sure)));
        assert_eq!((evidence.is_busiest, evidence.unanswered), (false, u64::from(hanging)));
        let busiest = busiest.unwrap();
        assert_eq!(verdict(&judge(&busiest)), Some((Suspect::IdleClient, Certainty::Sure)));
        assert!(busiest.is_busiest && others.is_empty() && more == 0);
    }
}

#[test]
fn the_busiest_client_is_the_verdict_beside_others_of_which_single_calls_hang_or_none() {
    let mut idle = Tape::default();
    (0..200).for_each(|number| idle.other(number * 10 * MS, 900, 3 * MS));
    for (tape, is_hanging) in [(idle, false), (beside(1, 900, None), true)] {
        let Chosen { evidence, busiest, hanging, .. } = beside_a_busier_client(&tape);
        assert_eq!(evidence.hosts.unwrap().client().to_string(), "10.0.0.3");
        assert!(evidence.is_busiest && busiest.is_none());
        let found: Vec<_> = hanging.iter().filter_map(hangs).map(|found| found.suspect).collect();
        assert_eq!(found, if is_hanging { vec![Suspect::HangingCalls] } else { vec![] });
    }
}

#[test]
fn a_call_that_hangs_does_so_until_its_connection_ends_and_no_longer() {
    let with = |reset_ns: Option<u64>| {
        let mut tape = Tape::default();
        tape.called(0, 900);
        (1..=3_000).for_each(|number| tape.other(number * 100 * MS, 800, MS));
        if let Some(at) = reset_ns {
            tape.events.push((at, 900, false, RST, 0xffff, Vec::new()));
        }
        let (_, evidence, _) = tape.judged();
        (evidence.waited.late / SECOND, evidence.hung.calls, evidence.hung.longest_ns / SECOND)
    };
    assert_eq!(with(None), (296, 1, 300), "longer than the patience of a table of calls");
    assert_eq!(with(Some(11 * SECOND)), (9, 1, 11));
    assert_eq!(with(Some(SECOND / 2)), (0, 0, 0));
}

#[test]
fn a_first_call_that_takes_most_of_the_time_is_a_gap_as_any_other() {
    let with = |first_ns: u64| {
        let (mut tape, mut at) = (Tape::default(), 0);
        for number in 0..500 {
            let response_ns = if number == 0 { first_ns } else { MS * 3 / 10 };
            tape.other(at, 900, response_ns);
            at += response_ns + MS / 50;
        }
        let (diagnosis, evidence, _) = tape.judged();
        (verdict(&diagnosis), evidence.silences.count)
    };
    assert_eq!(with(3 * SECOND), (Some((Suspect::Stalls, Certainty::Possible)), 1));
    assert_eq!(with(MS), (Some((Suspect::OneOutstanding, Certainty::Sure)), 0));
}

#[test]
fn calls_that_all_take_seconds_are_not_late() {
    let mut tape = Tape::default();
    for number in 0..100 {
        tape.other(number * SECOND, 900, 3 * SECOND);
        tape.written(number * SECOND + SECOND / 2, 800, MS);
    }
    let (diagnosis, evidence, _) = tape.judged();
    assert_ne!(verdict(&diagnosis).map(|(suspect, _)| suspect), Some(Suspect::HangingCalls));
    assert!(evidence.waited.late < 3 * SECOND, "{:?}", evidence.waited);
}
