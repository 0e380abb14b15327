use proptest::prelude::*;

use super::*;
use crate::shape::conditions::{Outage, Reordering};

const US: Nanos = Nanos::from_micros(1);
const MS: Nanos = Nanos::from_millis(1);
const SECOND: Nanos = Nanos::from_secs(1);

/// 100 us away, 1 Gbit/s.
const GIGABIT: Link =
    Link { latency: Nanos::from_micros(100), gap: Nanos::ZERO, gap_per_byte_ps: 8_000 };

fn lane(conditions: Conditions) -> Lane {
    Lane::new(conditions, 7, Instant::EPOCH)
}

fn at(span: Nanos) -> Instant {
    Instant::EPOCH + span
}

fn gigabit() -> Conditions {
    GIGABIT.into()
}

#[test]
fn each_parameter_of_loggp_takes_its_own_time_and_no_other() {
    let nothing = lane(Conditions::default()).datagram(at(SECOND), 8192);
    assert_eq!((nothing.departs, nothing.arrival), (at(SECOND), Ok(at(SECOND))));
    let latency = Link { latency: MS * 5, ..Link::default() };
    let mut far = lane(latency.into());
    let arrivals = [0, 1, 2].map(|_| far.message(at(SECOND), 8192).arrival.unwrap());
    assert_eq!(arrivals, [at(SECOND + MS * 5); 3], "L delays, and lets everything pass at once");
    let pause = Link { gap: US * 10, ..Link::default() };
    let mut slow = lane(pause.into());
    let arrivals = [0, 1, 2].map(|_| slow.datagram(at(SECOND), 8192).arrival.unwrap());
    assert_eq!(arrivals, [0, 10, 20].map(|wait| at(SECOND + US * wait)), "g is after each");
    let mut thin = lane(gigabit());
    let fates = [0, 1].map(|_| thin.message(at(SECOND), 8192));
    let ser = Nanos::from_nanos(65_536);
    assert_eq!(fates.map(|fate| fate.departs), [at(SECOND + ser), at(SECOND + ser + ser)]);
    assert_eq!(fates[1].arrival, Ok(at(SECOND + ser + ser + US * 100)));
}

#[test]
fn a_datagram_is_cut_as_ip_cuts_it() {
    let cut = |bytes, mtu| {
        let packets = Packets::fragments(bytes, mtu);
        (packets.count, packets.bytes)
    };
    assert_eq!(cut(1472, 1500), (1, 1500), "the largest that is whole");
    assert_eq!(cut(1473, 1500), (2, 1473 + 8 + 40));
    // "An 8KB NFS block must be fragmented into six parts", section 8.4 of the thesis.
    assert_eq!(cut(8192 + 120, 1500), (6, 8320 + 120));
    assert_eq!(cut(8192 + 120, 9000).0, 1, "jumbo frames");
    // 68 bytes of MTU carry 48 bytes of each fragment.
    assert_eq!(cut(96 - 8, 68), (2, 96 + 40));
    assert_eq!(cut(97 - 8, 68).0, 3);
    // Where the room is no multiple of 8, only the last fragment fills it.
    assert_eq!(cut(52 - 8, 72).0, 1);
    assert_eq!(cut(48 + 52 - 8, 72).0, 2);
    let segments = Packets::segments(2920, 1500);
    assert_eq!((segments.count, segments.bytes), (2, 2920 + 80));
    assert_eq!(Packets::segments(0, 1500).count, 1);
}

#[test]
fn headers_of_fragments_take_their_time_on_the_link() {
    let mut cut = lane(Conditions { mtu: Some(1500), ..gigabit() });
    let fate = cut.datagram(at(SECOND), 8312);
    assert_eq!(fate.packets, 6);
    assert_eq!(fate.departs, at(SECOND + Nanos::from_nanos((8320 + 120) * 8)));
}

#[test]
fn a_message_starts_when_the_link_is_free_and_not_stalled() {
    let stall = Outage { kind: OutageKind::Stall, at: SECOND * 2, span: MS, every: None };
    for mtu in [None, Some(1500)] {
        let conditions = Conditions { mtu, schedule: vec![stall], ..gigabit() };
        let mut busy = lane(conditions.clone());
        let fates = [0, 1].map(|_| busy.datagram(at(SECOND), 8312));
        assert_eq!(fates.map(|fate| fate.starts), [at(SECOND), fates[0].departs], "{mtu:?}");
        assert_eq!(busy.message(at(SECOND * 2), 8).starts, at(SECOND * 2 + MS));
        let queue_bytes_max = Some(128 << 10);
        let mut queued = lane(Conditions { queue_bytes_max, ..conditions });
        let fates = [0, 1].map(|_| queued.datagram(at(SECOND), 8312));
        assert_eq!(fates.map(|fate| fate.starts), [at(SECOND), fates[0].departs], "{mtu:?}");
    }
}

#[test]
fn a_lost_fragment_loses_the_datagram() {
    let lost = Ppm::percent(10);
    let loses = |mtu| {
        let mut lane = lane(Conditions { mtu, lost, ..Conditions::default() });
        let fates = (0..20_000).map(|_| lane.datagram(Instant::EPOCH, 8312));
        fates.filter(|fate| fate.arrival == Err(Lost::Chance)).count() as f64 / 20_000.0
    };
    // Three standard deviations of 20,000 trials are 0.006 and 0.011.
    assert!((loses(None) - 0.1).abs() < 0.007, "{}", loses(None));
    let six = 1.0 - 0.9_f64.powi(6);
    assert!((loses(Some(1500)) - six).abs() < 0.011, "{}", loses(Some(1500)));
}

#[test]
fn what_finds_the_queue_full_is_lost_from_its_tail() {
    let queue_bytes_max = Some(64 << 10);
    let mut full = lane(Conditions { queue_bytes_max, ..gigabit() });
    let fates: Vec<_> = (0..20).map(|_| full.datagram(Instant::EPOCH, 8192)).collect();
    let arrived: Vec<_> = fates.iter().map(|fate| fate.arrival.is_ok()).collect();
    assert_eq!(arrived, [[true; 8].to_vec(), [false; 12].to_vec()].concat());
    assert_eq!(fates[19].arrival, Err(Lost::Queue));
    assert_eq!(full.queue_bytes(Instant::EPOCH), 64 << 10);
    // When the first has left there is room for one.
    let later = at(Nanos::from_nanos(65_536));
    assert!(full.datagram(later, 8192).arrival.is_ok());
    assert_eq!(full.datagram(later, 1).arrival, Err(Lost::Queue));
    // A stream has no room before, and one message over the bound is taken.
    assert!(!full.has_room(later));
    assert_eq!(full.room_at(), Some(at(Nanos::from_nanos(2 * 65_536))));
    assert!(full.has_room(at(Nanos::from_nanos(2 * 65_536))));
}

#[test]
fn a_queue_that_takes_some_of_the_fragments_loses_the_datagram_and_carries_them() {
    let conditions = Conditions { queue_bytes_max: Some(3000), mtu: Some(1500), ..gigabit() };
    let mut full = lane(conditions);
    let fate = full.datagram(Instant::EPOCH, 8312);
    assert_eq!(fate.arrival, Err(Lost::Queue));
    // Two of 1500 bytes fit and are sent in vain.
    assert_eq!(full.queue_bytes(Instant::EPOCH), 3000);
    assert_eq!(fate.departs, at(Nanos::from_nanos(3000 * 8)));
}

#[test]
fn a_queue_is_bounded_in_packets_too() {
    let slow = Link { gap_per_byte_ps: 1_000_000_000, ..GIGABIT };
    let conditions = Conditions { queue_bytes_max: Some(64 << 10), lost: Ppm::ALL, ..slow.into() };
    let mut full = lane(conditions);
    full.datagram(Instant::EPOCH, 60_000);
    let fates = (0..300_000).map(|_| full.datagram(Instant::EPOCH, 0));
    let queued = fates.filter(|fate| fate.arrival != Err(Lost::Queue)).count();
    assert_eq!(queued + 1, QUEUE_PACKETS_MAX);
}

#[test]
fn a_partition_loses_what_leaves_and_a_stall_keeps_it() {
    let outage = |kind| Outage { kind, at: SECOND, span: MS * 10, every: Some(SECOND) };
    let only = |kind| Conditions { schedule: vec![outage(kind)], ..gigabit() };
    let mut parted = lane(only(OutageKind::Partition));
    let mut stalled = lane(only(OutageKind::Stall));
    for seconds in [1, 2, 7] {
        let within = at(SECOND * seconds + MS);
        assert_eq!(parted.datagram(within, 100).arrival, Err(Lost::Partition));
        let delayed = stalled.datagram(within, 0).arrival;
        assert_eq!(delayed, Ok(at(SECOND * seconds + MS * 10 + US * 100)));
        let after = at(SECOND * seconds + MS * 20);
        assert!(parted.datagram(after, 100).arrival.is_ok());
        assert_eq!(stalled.datagram(after, 0).arrival, Ok(after + US * 100));
    }
}

#[test]
fn stalls_without_a_pause_between_do_not_hang() {
    let stall = |at| Outage { kind: OutageKind::Stall, at, span: SECOND, every: Some(SECOND * 2) };
    let schedule = vec![stall(Nanos::ZERO), stall(SECOND)];
    let fate = lane(Conditions { schedule, ..gigabit() }).datagram(Instant::EPOCH, 1);
    assert!(fate.departs >= at(SECOND * 60) && fate.departs < at(SECOND * 70), "{fate:?}");
}

#[test]
fn on_a_stream_a_loss_costs_a_round_trip_or_the_timer_and_holds_up_what_follows() {
    // Whole messages: nothing follows in the same one, so the timer it is.
    let mut tail = lane(Conditions { lost: Ppm::ALL, ..gigabit() });
    tail.replace(Conditions { lost: Ppm::percent(50), ..gigabit() }, Instant::EPOCH);
    let fates: Vec<_> = (0..50).map(|_| tail.message(Instant::EPOCH, 125)).collect();
    let first = fates.iter().find(|fate| fate.retransmissions == 1).unwrap();
    let waited = first.arrival.unwrap().since(first.departs);
    assert!(waited >= US * 300 + RTO_MIN, "L, a round trip and the timer: {waited}");
    let arrivals: Vec<_> = fates.iter().map(|fate| fate.arrival.unwrap()).collect();
    assert!(arrivals.is_sorted(), "whatever is behind waits");
    // Of a large message most packets have three behind them.
    let cut = Conditions { mtu: Some(1500), lost: Ppm(2_000), ..gigabit() };
    let mut long = lane(cut);
    let costs: Vec<_> = (0..200)
        .map(|turn| {
            let fate = long.message(at(SECOND * (10 * turn)), 146_000);
            (fate.retransmissions, fate.arrival.unwrap().since(fate.departs))
        })
        .collect();
    assert!(costs.iter().all(|&(lost, took)| lost > 0 || took == US * 100), "{costs:?}");
    let quick = costs.iter().filter(|&&(lost, took)| lost > 0 && took == US * 300).count();
    let slow = costs.iter().filter(|&&(_, took)| took >= RTO_MIN).count();
    assert!(quick > 20 && slow < 10, "{quick} by duplicate ACKs, {slow} by the timer");
}

#[test]
fn a_stream_gets_over_a_partition_with_the_first_retransmission_after_it() {
    let outage = Outage { kind: OutageKind::Partition, at: SECOND, span: SECOND, every: None };
    let mut parted = lane(Conditions { schedule: vec![outage], ..gigabit() });
    let fate = parted.message(at(SECOND + MS), 125);
    // At 0.2, 0.6 and 1.4 s after the first, each with its round trip of 0.2 ms.
    let waited = (RTO_MIN + US * 200) * 7;
    assert_eq!(fate.arrival, Ok(at(SECOND + MS) + US + waited + US * 100));
    assert_eq!(fate.retransmissions, 3);
}

#[test]
fn a_stream_that_loses_everything_arrives_in_the_end_of_days_and_not_never() {
    let mut void = lane(Conditions { lost: Ppm::ALL, mtu: Some(1500), ..gigabit() });
    let fate = void.message(Instant::EPOCH, 1 << 20);
    assert!(fate.arrival.unwrap() > at(SECOND * 3600), "{fate:?}");
}

#[test]
fn duplicates_and_overtaking_come_as_often_as_requested() {
    let share = Ppm::percent(5);
    let reordered = Reordering { share, by: MS };
    let mut lane = lane(Conditions { duplicated: share, reordered, ..gigabit() });
    let fates: Vec<_> = (0..20_000).map(|_| lane.datagram(Instant::EPOCH, 0)).collect();
    let again = fates.iter().filter(|fate| fate.again.is_some()).count();
    let late = fates.iter().filter(|fate| fate.arrival == Ok(at(US * 1100))).count();
    // 1000, and three standard deviations.
    assert!(again.abs_diff(1000) < 93 && late.abs_diff(1000) < 93, "{again}, {late}");
    assert_eq!(late, fates.iter().filter(|fate| fate.reordered).count());
}

#[test]
fn damage_names_a_bit_of_the_datagram() {
    let mut lane = lane(Conditions { corrupted: Ppm::ALL, ..gigabit() });
    for bytes in [1, 2, 1000] {
        let bit = lane.datagram(Instant::EPOCH, bytes).flipped_bit.unwrap();
        assert!(bit < bytes * 8, "{bit} of {bytes} bytes");
    }
    assert_eq!(lane.datagram(Instant::EPOCH, 0).flipped_bit, None);
}

/// Mean and standard deviation of what the jitter adds, in microseconds.
fn spread(jitter: Jitter) -> (f64, f64) {
    let latency = MS * 10;
    let link = Link { latency, ..Link::default() };
    let mut lane = lane(Conditions { jitter, ..link.into() });
    let mut added = || {
        let arrives = lane.datagram(Instant::EPOCH, 1).arrival.unwrap();
        arrives.since(Instant::EPOCH).as_micros_f64() - latency.as_micros_f64()
    };
    let added: Vec<f64> = (0..40_000).map(|_| added()).collect();
    let mean = added.iter().sum::<f64>() / added.len() as f64;
    let variance = added.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / added.len() as f64;
    (mean, variance.sqrt())
}

#[test]
fn jitter_has_the_distribution_that_was_requested() {
    let close = |got: (f64, f64), mean: f64, deviation: f64| {
        let near = (got.0 - mean).abs() < 0.03 * deviation;
        assert!(near && (got.1 / deviation - 1.0).abs() < 0.05, "{got:?}, not {mean}, {deviation}");
    };
    close(spread(Jitter::Uniform(US * 600)), 300.0, 600.0 / 12_f64.sqrt());
    close(spread(Jitter::Normal(US * 200)), 0.0, 200.0);
    close(spread(Jitter::Exponential(US * 200)), 200.0, 200.0);
    // Lomax: mean scale / (a - 1), deviation mean x sqrt(a / (a - 2)).
    let tail = Jitter::Pareto { scale: US * 800, shape: 5.0 };
    close(spread(tail), 200.0, 200.0 * (5.0 / 3.0_f64).sqrt());
    assert_eq!(spread(Jitter::None), (0.0, 0.0));
}

#[test]
fn new_conditions_hold_for_what_comes_and_not_for_what_is_under_way() {
    let mut lane = lane(gigabit());
    let before = lane.message(Instant::EPOCH, 1250);
    let far = Link { latency: MS, ..GIGABIT };
    lane.replace(far.into(), Instant::EPOCH);
    let after = lane.message(Instant::EPOCH, 1250);
    assert_eq!(before.arrival, Ok(at(US * 110)));
    assert_eq!(after.arrival, Ok(at(US * 1020)), "behind what still uses the link");
    lane.replace(gigabit(), Instant::EPOCH);
    let last = lane.message(Instant::EPOCH, 1250);
    assert_eq!(last.arrival, Ok(at(US * 1020)), "a stream keeps its order");
}

fn anything() -> impl Strategy<Value = Conditions> {
    let share = || prop_oneof![Just(Ppm::NONE), Just(Ppm::ALL), (0..=1_000_000_u32).prop_map(Ppm)];
    let span = || (0..50_000_000_u64).prop_map(Nanos::from_nanos);
    let jitter = prop_oneof![
        Just(Jitter::None),
        span().prop_map(Jitter::Uniform),
        span().prop_map(Jitter::Normal),
        span().prop_map(Jitter::Exponential),
        (span(), 1.01..5.0_f64).prop_map(|(scale, shape)| Jitter::Pareto { scale, shape }),
    ];
    let kind = prop_oneof![Just(OutageKind::Partition), Just(OutageKind::Stall)];
    let outage = (kind, span(), 1..20_000_000_u64, prop::option::of(20_000_000..90_000_000_u64));
    let outage = outage.prop_map(|(kind, at, span, every)| {
        let (span, every) = (Nanos::from_nanos(span), every.map(Nanos::from_nanos));
        Outage { kind, at, span, every }
    });
    // Without a rate, or with one of which the way does not hold more than it may.
    let gap_per_byte_ps = prop_oneof![Just(0_u64), 1_000..1_000_000_u64];
    let link = (span(), span(), gap_per_byte_ps).prop_map(|(latency, gap, gap_per_byte_ps)| Link {
        latency,
        gap,
        gap_per_byte_ps,
    });
    let mtu = prop::option::of(68..=u16::MAX);
    let queue = prop::option::of(65_536..2_000_000_u64);
    let shares = (share(), share(), share(), share(), span());
    (link, queue, shares, jitter, prop::collection::vec(outage, 0..3), mtu).prop_map(
        |(
            link,
            queue_bytes_max,
            (lost, duplicated, share, corrupted, by),
            jitter,
            schedule,
            mtu,
        )| {
            let reordered = Reordering { share, by };
            Conditions {
                link,
                queue_bytes_max,
                lost,
                duplicated,
                reordered,
                corrupted,
                jitter,
                schedule,
                mtu,
            }
        },
    )
}

proptest! {
    #[test]
    fn every_datagram_arrives_after_it_has_left_or_is_lost_and_the_queue_keeps_its_bound(
        conditions in anything(),
        seed: u64,
        sent in prop::collection::vec((0..3_000_000_u64, 0..=65_507_u64), 1..60),
    ) {
        prop_assert_eq!(conditions.impossible(), None);
        let run = || {
            let mut lane = Lane::new(conditions.clone(), seed, Instant::EPOCH);
            let mut now = Instant::EPOCH;
            let mut departed = Instant::EPOCH;
            let fates: Vec<Fate> = sent.iter().map(|&(pause, bytes)| {
                now += Nanos::from_nanos(pause);
                let fate = lane.datagram(now, bytes);
                if let Some(max) = conditions.queue_bytes_max {
                    assert!(lane.queue_bytes(now) <= max);
                }
                assert!(fate.departs >= now);
                match fate.arrival {
                    Ok(arrives) => {
                        assert!(arrives >= fate.departs);
                        assert!(fate.departs >= departed, "one after the other");
                        departed = fate.departs;
                    }
                    Err(_) => assert_eq!((fate.again, fate.flipped_bit), (None, None)),
                }
                assert!(fate.again.is_none_or(|again| again >= fate.departs));
                fate
            }).collect();
            fates
        };
        prop_assert_eq!(run(), run(), "the same seed has the same fates");
    }

    #[test]
    fn every_message_of_a_stream_arrives_in_its_order_and_not_before_its_time(
        conditions in anything(),
        seed: u64,
        sent in prop::collection::vec((0..3_000_000_u64, 4..=200_000_u64), 1..60),
    ) {
        let mut lane = Lane::new(conditions.clone(), seed, Instant::EPOCH);
        let (mut now, mut latest) = (Instant::EPOCH, Instant::EPOCH);
        for (pause, bytes) in sent {
            now += Nanos::from_nanos(pause);
            let fate = lane.message(now, bytes);
            let arrives = fate.arrival.unwrap();
            prop_assert!(arrives >= latest && arrives >= fate.departs);
            prop_assert!(fate.departs >= now + conditions.link.serialization(bytes));
            prop_assert_eq!((fate.again, fate.flipped_bit), (None, None));
            latest = arrives;
        }
    }
}
