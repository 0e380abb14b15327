//! The sentences of a verdict: every number in them is one of the evidence.

use perf::units::Nanos;
use perf::words::counted;
use trace::verdict::{
    CALLS_MIN, Diagnosis, Doubt, Evidence, Finding, Gaps, SHARE_MIN, SideNumbers, Suspect,
    WorkNumbers, is_cut_too_much, nominal_rate, unknown_share,
};
use trace::{Hung, Repeats, Syncs, Work};
use wire::nfs3::NfsStat3;

use crate::amounts::bytes;

pub(super) fn undecided(evidence: &Evidence, diagnosis: &Diagnosis) -> String {
    if diagnosis.doubts.contains(&Doubt::Fragments) {
        return format!("cannot be decided: {}", unseen(evidence.unseen_datagrams()));
    }
    if diagnosis.doubts.contains(&Doubt::NoTime) {
        return "cannot be decided: all packets with calls and replies have the same time"
            .to_owned();
    }
    if diagnosis.doubts.contains(&Doubt::FewEvents) {
        let replies = evidence.replies();
        return format!("none: {replies} replies are too few to tell ({CALLS_MIN} are needed)");
    }
    if is_cut_too_much(evidence) {
        return "cannot be decided: of too many packets only the beginning was captured, and calls \
                and replies in the rest were not seen (tcpdump -s 0 captures whole packets)"
            .to_owned();
    }
    let unknown = unknown_share(evidence);
    if unknown >= SHARE_MIN {
        return format!(
            "cannot be decided: the capture lost messages in {:.0} % of the time{}, and what was \
             waited for then is not known",
            unknown * 100.0,
            of(evidence)
        );
    }
    format!(
        "nothing stands out: no cause takes {:.0} % of the time and more{}",
        SHARE_MIN * 100.0,
        of(evidence)
    )
}

/// That the capture has no fragments but first ones.
pub(super) fn unseen(datagrams: u64) -> String {
    format!(
        "of {} over UDP no fragment but the first was captured, if that: a filter by ports such as \
         port 2049 lets no others through, nor do some firewalls. To capture them: tcpdump 'port \
         2049 or (ip[6:2] & 0x1fff != 0) or ip6 proto 44'",
        counted(datagrams, "datagram")
    )
}

/// That one direction of connections was not captured; none where both were.
pub(crate) fn one_way([clients, servers]: [usize; 2]) -> Option<String> {
    let of = |connections: usize, own: usize| {
        let what = format!(
            "of {} only what the {} sends was captured, and acknowledgements of the rest",
            counted(connections as u64, "connection"),
            ENDS[own]
        );
        (connections > 0).then_some(what)
    };
    let all: Vec<String> = [of(clients, 0), of(servers, 1)].into_iter().flatten().collect();
    let remedy = "a port that mirrors both directions, or tcpdump on the host itself, shows both";
    (!all.is_empty()).then(|| format!("{}: {remedy}", all.join("; ")))
}

/// Whose it is, where that is not clear.
fn of(evidence: &Evidence) -> String {
    match (evidence.hosts, evidence.pairs) {
        (Some(hosts), pairs @ 2..) => {
            let (client, server) = (hosts.client(), hosts.server);
            let which = if evidence.is_busiest { "the busiest" } else { "one" };
            format!(" of {client} with {server}, {which} of {pairs} pairs")
        }
        _ => String::new(),
    }
}

fn ns(ns: u64) -> Nanos {
    Nanos::from_nanos(ns)
}

/// The same of a time that the capture may not be exact enough for.
fn shown(evidence: &Evidence, time_ns: u64) -> String {
    match evidence.is_too_short(time_ns) {
        true => format!("less than {}", ns(evidence.resolution_ns)),
        false => ns(time_ns).to_string(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / (whole as f64).max(1.0)
}

/// The direction in which most was lost: 0 from the client, 1 from the server.
fn losing(evidence: &Evidence) -> usize {
    usize::from(evidence.loss(1) > evidence.loss(0))
}

const ENDS: [&str; 2] = ["client", "server"];

/// The end with the longer windows of zero.
fn full(evidence: &Evidence) -> usize {
    usize::from(evidence.sides[1].zero_window_ns > evidence.sides[0].zero_window_ns)
}

/// The end that sends more.
fn busier(evidence: &Evidence) -> usize {
    usize::from(evidence.sides[1].bytes > evidence.sides[0].bytes)
}

/// What is found, in one sentence.
pub(super) fn sentence(evidence: &Evidence, found: &Finding) -> String {
    let share = &*format!("{:.0} % of the time{}", found.share * 100.0, of(evidence));
    match found.suspect {
        Suspect::NoReply => no_reply(evidence, share),
        Suspect::HangingCalls => hanging(evidence, share),
        Suspect::SlowCommit => slow_commit(evidence, share),
        Suspect::SlowStableWrite => slow_stable_write(evidence, share),
        Suspect::SmallSyncs => small_syncs(evidence, share),
        Suspect::Latency => latency(evidence, share),
        Suspect::OneOutstanding => one_outstanding(evidence, share),
        Suspect::Rate => full_network(evidence, share),
        Suspect::Loss => loss(evidence, share),
        Suspect::Stalls => stalls(evidence, found),
        Suspect::AttributeStorm => attribute_storm(evidence, share),
        Suspect::Retransmission => format!(
            "calls are retransmitted when the client's timer ends: {share} is spent waiting for it"
        ),
        Suspect::ZeroWindow => zero_window(evidence, share),
        Suspect::IdleClient => idle(evidence, share),
        Suspect::Postponed => format!(
            "the server puts calls off (NFS3ERR_JUKEBOX, NFS4ERR_DELAY or NFS4ERR_GRACE): {share} \
             passes until the client calls again"
        ),
        Suspect::SlowServer => slow_server(evidence, share),
        Suspect::Relay => format!(
            "the relay, or the link that it passes calls on by, is slow or full: {share} is spent \
             on the way to the server, with at most {} calls outstanding",
            evidence.outstanding_max
        ),
    }
}

fn no_reply(evidence: &Evidence, share: &str) -> String {
    let (calls, for_ns) = (evidence.unanswered, ns(evidence.waited.unanswered));
    let calls = match calls {
        1 => "1 call has".to_owned(),
        calls => format!("{calls} calls have"),
    };
    format!(
        "the server answers no more: {calls} no reply, and nothing was answered in the last \
         {for_ns} of the capture, {share}"
    )
}

fn hanging(evidence: &Evidence, share: &str) -> String {
    let Hung { calls, unanswered, longest_ns, .. } = evidence.hung;
    let (hang, longest) = (if calls == 1 { "hangs" } else { "hang" }, ns(longest_ns));
    let never =
        if unanswered > 0 { format!(", {unanswered} without a reply") } else { String::new() };
    format!(
        "{} {hang} while the server answers others: {longest} at the longest{never}; {share} \
         passes with no other outstanding",
        counted(calls, "call")
    )
}

fn longest(evidence: &Evidence) -> String {
    let Hung { longest_ns, frame, is_answered, .. } = evidence.hung;
    let end = if is_answered { "was answered after" } else { "has had no reply for" };
    format!("the call in frame {frame} {end} {}", ns(longest_ns))
}

fn idle(evidence: &Evidence, share: &str) -> String {
    let Gaps { count, longest_ns, .. } = evidence.pauses;
    let when = match evidence.is_idle_in_pauses() {
        true => {
            format!("most of it in {}, the longest {}", counted(count, "pause"), ns(longest_ns))
        }
        false => {
            let median = shown(evidence, evidence.think_median_ns);
            format!("{median} at the median from a reply to the next call")
        }
    };
    format!("the client is idle: no call is outstanding in {share}, {when}")
}

fn slow_server(evidence: &Evidence, share: &str) -> String {
    let slow = format!("the server is slow or busy: {share} is spent in it");
    if !evidence.is_alone() {
        return format!("{slow}, with at most {} calls outstanding", evidence.outstanding_max);
    }
    let main = evidence.main();
    let (each, took) = (name(main), shown(evidence, evidence.work(main).mean_ns));
    format!("{slow}, with one call outstanding at a time, {each}s of {took} on average")
}

fn slow_commit(evidence: &Evidence, share: &str) -> String {
    let each = ns(evidence.work(Work::Commit).mean_ns);
    format!(
        "the server's disk is slow: {share} is spent waiting for COMMIT, {each} each on average"
    )
}

fn slow_stable_write(evidence: &Evidence, share: &str) -> String {
    let writes = evidence.work(Work::StableWrite);
    let (size, each) = (bytes(writes.bytes / writes.calls.max(1)), ns(writes.mean_ns));
    format!(
        "the server's disk is slow: {share} is spent waiting for stable WRITEs (FILE_SYNC) of \
         {size}, {each} each on average"
    )
}

fn small_syncs(evidence: &Evidence, share: &str) -> String {
    let size = bytes(evidence.syncs.small_bytes / evidence.syncs.small.max(1));
    format!(
        "a program makes every {size} stable before it goes on (fsync, O_SYNC or a mount with \
         sync): {share} is spent waiting for that"
    )
}

fn latency(evidence: &Evidence, share: &str) -> String {
    let round_trip = ns(evidence.round_trip_ns().unwrap_or(0));
    format!("the network's latency dominates: {share} is round trips of {round_trip}")
}

fn one_outstanding(evidence: &Evidence, share: &str) -> String {
    let alone = evidence.stop_and_wait.unwrap_or(0.0) * 100.0;
    format!(
        "the client makes one call at a time: exactly one was outstanding in {alone:.0} % of the \
         busy time, and {share} is spent that way"
    )
}

fn loss(evidence: &Evidence, share: &str) -> String {
    let side = losing(evidence);
    let (lost, end) = (evidence.loss(side) * 100.0, ENDS[side]);
    format!(
        "the network loses packets: {lost:.2} % of the segments that the {end} sends; {share} goes \
         to repairing that, or is as slow as TCP is then"
    )
}

fn stalls(evidence: &Evidence, found: &Finding) -> String {
    let (whom, count, longest_ns) = match evidence.clients {
        ..=1 => (
            ", or a call in it, stands still",
            evidence.silences.count,
            evidence.silences.longest_ns,
        ),
        _ => (" stalls for all of its clients", evidence.stalls.count, evidence.stalls.longest_ns),
    };
    let (times, longest) = (counted(count, "time"), ns(longest_ns));
    let percent = found.share * 100.0;
    format!("the server{whom}: {times}, {longest} at the longest, {percent:.0} % of the time")
}

fn attribute_storm(evidence: &Evidence, share: &str) -> String {
    let part = ratio(evidence.work(Work::Attributes).calls, evidence.replies()) * 100.0;
    format!(
        "the calls are for attributes: {part:.0} % of them are GETATTR, LOOKUP or ACCESS, and \
         {share} is spent waiting for these"
    )
}

fn zero_window(evidence: &Evidence, share: &str) -> String {
    let side = full(evidence);
    let (end, times) = (ENDS[side], evidence.sides[side].zero_windows);
    format!("the {end} does not read what comes: its TCP window was zero {times} times, {share}")
}

/// That the link carries all it can.
fn full_network(evidence: &Evidence, share: &str) -> String {
    let side = busier(evidence);
    let (sends, link) = (sends(evidence, side), as_link(evidence, side));
    format!("the network is full: {sends}{link}; {share} waits for it")
}

/// `the server sends 11.3 MiB/s all the time`
fn sends(evidence: &Evidence, side: usize) -> String {
    let per_s = evidence.sides[side].bytes_per_s_mean / f64::from(1 << 20);
    format!("the {} sends {per_s:.1} MiB/s all the time", ENDS[side])
}

/// As a link does: `, as a link of 100 Mbit/s carries`.
fn as_link(evidence: &Evidence, side: usize) -> String {
    nominal_rate(evidence.sides[side].bytes_per_s_mean)
        .map_or_else(String::new, |mbps| format!(", as a link of {mbps:.0} Mbit/s carries"))
}

/// The numbers behind it.
pub(super) fn grounds(evidence: &Evidence, found: &Finding) -> Vec<String> {
    let mut grounds = match found.suspect {
        Suspect::SlowCommit | Suspect::SlowStableWrite => vec![synced(evidence)],
        Suspect::SmallSyncs => vec![synced(evidence), synced_small(evidence)],
        Suspect::Loss => vec![lost(evidence)],
        Suspect::HangingCalls => vec![longest(evidence)],
        Suspect::Stalls if evidence.clients > 1 => vec![stalled(evidence)],
        Suspect::SlowServer if evidence.udp.had_arrived() => retransmitted(evidence),
        Suspect::Retransmission => retransmitted(evidence),
        Suspect::Rate => vec![carried(evidence)],
        Suspect::Postponed => vec![put_off(evidence)],
        _ => Vec::new(),
    };
    grounds.extend([medians(evidence), round_trip(evidence)]);
    grounds
}

fn synced(evidence: &Evidence) -> String {
    let Syncs { calls, bytes: all, ns: took, .. } = evidence.syncs;
    if calls == 0 {
        return "how much each COMMIT made stable is not known: WRITEs before it were not captured"
            .to_owned();
    }
    let (size, took) = (bytes(all / calls.max(1)), ns(took / calls.max(1)));
    format!("{calls} calls made data stable, {size} each on average, in {took} on average")
}

fn synced_small(evidence: &Evidence) -> String {
    let Syncs { small, small_bytes, small_ns, .. } = evidence.syncs;
    let (size, took) = (bytes(small_bytes / small.max(1)), ns(small_ns / small.max(1)));
    format!("{small} of them made {size} stable on average, in {took}")
}

fn lost(evidence: &Evidence) -> String {
    let side = losing(evidence);
    let SideNumbers { packets, again, filled, had, .. } = evidence.sides[side];
    let (from, to) = (ENDS[side], ENDS[1 - side]);
    let had = match had {
        0 => String::new(),
        had => format!("; {had} more the {to} had already"),
    };
    format!(
        "of {packets} segments {again} were retransmitted after they had been captured: lost \
         between the capture and the {to}; {filled} were missing at first: lost between the {from} \
         and the capture{had}"
    )
}

fn put_off(evidence: &Evidence) -> String {
    let Evidence { postponed, called_again, .. } = evidence;
    format!(
        "{postponed} of {} replies put a call off; for {called_again} of them the client called \
         again, after {} at the median",
        evidence.replies(),
        ns(evidence.called_again_median_ns)
    )
}

fn stalled(evidence: &Evidence) -> String {
    let (clients, stalls) = (evidence.clients, evidence.stalls);
    format!(
        "{clients} clients waited meanwhile, in {} of the {} for a COMMIT or a stable WRITE of \
         another",
        stalls.behind_sync, stalls.count
    )
}

fn carried(evidence: &Evidence) -> String {
    let sent = evidence.sides[busier(evidence)];
    let [half, most] =
        [sent.bytes_per_s_p50, sent.bytes_per_s_p95].map(|rate| rate / f64::from(1 << 20));
    format!("half of all 50 ms carry {half:.1} MiB/s and more, one of 20 more than {most:.1}")
}

/// Over UDP, where a client retransmits calls.
fn retransmitted(evidence: &Evidence) -> Vec<String> {
    let Repeats { calls, repeated, times, twice, waited_ns, .. } = evidence.udp;
    if calls == 0 {
        return Vec::new();
    }
    let after = ns(waited_ns / repeated.max(1));
    let calls = format!(
        "over UDP {repeated} of {calls} calls were retransmitted, {after} on average after they \
         were sent first"
    );
    let replies = match evidence.udp.had_arrived() {
        true => format!(
            "{twice} replies came twice: the server had got those calls, and was slower than the \
             timer"
        ),
        false => format!(
            "only {twice} replies came twice: the others of the {times} calls retransmitted were \
             lost, or their replies"
        ),
    };
    vec![calls, replies]
}

/// The kinds of calls that took most of the time, and what one took.
fn medians(evidence: &Evidence) -> String {
    let works = Work::ALL.into_iter().map(|work| (work, evidence.work(work)));
    let mut works: Vec<_> = works.filter(|(_, numbers)| numbers.calls > 0).collect();
    works.sort_by_key(|(work, _)| std::cmp::Reverse(evidence.waited.of(*work)));
    let kinds = works.iter().take(3).map(|(work, numbers)| calls(evidence, *work, numbers));
    format!("at the median: {}", kinds.collect::<Vec<String>>().join(", "))
}

/// `4 READs of 8 KiB in 1.2 ms`
fn calls(evidence: &Evidence, work: Work, numbers: &WorkNumbers) -> String {
    let each = bytes(numbers.bytes / numbers.calls);
    let of = if numbers.bytes > 0 { format!(" of {each}") } else { String::new() };
    let time = shown(evidence, numbers.median_ns);
    // A few that are long, or two kinds in one: the median is what none of the time goes for.
    let is_uneven = numbers.mean_ns >= 2 * numbers.median_ns.max(1);
    let mean =
        if is_uneven { format!(" ({} on average)", ns(numbers.mean_ns)) } else { String::new() };
    format!("{}{of} in {time}{mean}", counted(numbers.calls, name(work)))
}

fn round_trip(evidence: &Evidence) -> String {
    if let (Some((least, mean)), None) = (evidence.between_ns, evidence.relay_ns) {
        return format!(
            "the round trip between the two places where it was captured took {} on average, {} at \
             least",
            ns(mean),
            ns(least)
        );
    }
    match (evidence.round_trip_ns(), evidence.server_ack_ns, evidence.relay_ns) {
        (None, ..) => "the round trip is not known: nothing was acknowledged".to_owned(),
        (Some(round_trip), ..) if evidence.is_too_short(round_trip) => format!(
            "the round trip is not known: it is below the {} that the capture's times are \
             multiples of",
            ns(evidence.resolution_ns)
        ),
        (Some(round_trip), _, Some(_)) => {
            let relayed = evidence.relayed_works.iter();
            let [behind, whole] = relayed
                .fold([0; 2], |[behind, whole], of| [behind + of.behind_ns, whole + of.whole_ns])
                .map(|sum| ns(sum / evidence.relayed.max(1)));
            format!(
                "the relay and the path to it take {} at least; behind it calls took {behind} on \
                 average, of {whole} in all",
                ns(round_trip)
            )
        }
        (Some(round_trip), Some((_, median)), None) => format!(
            "the round trip is {} at least, by acknowledgements; the server's came after {} at \
             the median",
            ns(round_trip),
            ns(median)
        ),
        (Some(_), None, None) if evidence.client_ack_ns.is_some() => format!(
            "the round trip is {} at least, by acknowledgements of the client; the server \
             acknowledges by its replies",
            ns(evidence.client_end_ns())
        ),
        (Some(round_trip), None, None) => format!(
            "the round trip is {} at most: the fastest call that waits for nothing",
            ns(round_trip)
        ),
    }
}

const fn name(work: Work) -> &'static str {
    match work {
        Work::Read => "READ",
        Work::Write => "UNSTABLE WRITE",
        Work::StableWrite => "stable WRITE",
        Work::Commit => "COMMIT",
        Work::Attributes => "attribute call",
        Work::Listing => "READDIR",
        Work::Change => "metadata change",
        Work::Other => "other call",
    }
}

pub(super) fn doubt(evidence: &Evidence, doubt: Doubt) -> String {
    match doubt {
        Doubt::CaptureLost => format!(
            "the capture has lost packets: {} that were acknowledged are not in it, the times of \
             {} calls are not known, nor what was waited for in {:.0} % of the time",
            bytes(evidence.sides.iter().map(|side| side.missing_bytes).sum()),
            evidence.untimed,
            unknown_share(evidence) * 100.0
        ),
        Doubt::Rival(rival) => {
            format!("another cause has nearly as large a share: {}", rival.name().replace('_', " "))
        }
        Doubt::CaptureCut => CUT_OFF.to_owned(),
        Doubt::FewEvents => "it was seen only a few times".to_owned(),
        Doubt::RoundTripUnknown if evidence.client_ack_ns.is_some() => BY_REPLIES.to_owned(),
        Doubt::RoundTripUnknown => UNACKNOWLEDGED.to_owned(),
        Doubt::NoRoundTrip => NO_ROUND_TRIP.to_owned(),
        Doubt::NoTime => "all packets have the same time".to_owned(),
        Doubt::Refused => format!(
            "{} of {} calls were refused by RPC (credentials, or a version that the server has \
             not)",
            evidence.refused,
            evidence.replies()
        ),
        Doubt::OneWay => format!(
            "of {} between these hosts one direction was captured, as where the other takes \
             another way: what is outstanding there is not known. A capture at an end has both",
            counted(evidence.one_way, "connection")
        ),
        Doubt::Fragments => unseen(evidence.unseen_datagrams()),
        Doubt::Nameless => format!(
            "of {} of {} calls the operations were not seen, cut off or encrypted: what they wait \
             for is not known",
            evidence.nameless,
            evidence.replies()
        ),
        Doubt::Failed => failed(evidence),
        Doubt::SetBack => {
            "the capture's clock was set back: times across that are not known".to_owned()
        }
        Doubt::CoarseTimes => format!(
            "the capture's times are multiples of {}: what is the network's and what the server's \
             within that is not known",
            ns(evidence.resolution_ns)
        ),
        Doubt::EarlyAcks => acknowledged_early(evidence),
        Doubt::LateAcks(end) => acknowledged_late(evidence, end),
        Doubt::NoAcks => NO_ACKS.to_owned(),
        Doubt::Steady(side) => steady(evidence, side),
        Doubt::OddRate => ODD_RATE.to_owned(),
    }
}

fn failed(evidence: &Evidence) -> String {
    let (status, times) = evidence.failure.unwrap_or_default();
    let most = NfsStat3::from_code(status)
        .map_or_else(|| format!("status {status}"), |status| status.name().to_owned());
    format!(
        "{} of {} calls were answered with an error ({most} {}): what takes the time is no work",
        evidence.failed,
        evidence.replies(),
        counted(times, "time")
    )
}

fn acknowledged_early(evidence: &Evidence) -> String {
    let (least, _) = evidence.fastest_ns.unwrap_or_default();
    format!(
        "even the fastest call takes {}, where acknowledgements take {}: a relay, a proxy or an \
         accelerator that acknowledges before the server looks the same, and the time may be its \
         network's. The same capture at the server tells",
        ns(least),
        shown(evidence, evidence.round_trip_ns().unwrap_or(0))
    )
}

fn acknowledged_late(evidence: &Evidence, end: usize) -> String {
    let acks = [evidence.client_ack_ns, evidence.server_ack_ns][end];
    let ((least, median), end) = (acks.unwrap_or_default(), ENDS[end]);
    format!(
        "it may be the network, full with this or with other traffic: the {end}'s kernel \
         acknowledged after {} at the median, {} at least. A capture at the {end} tells",
        ns(median),
        shown(evidence, least)
    )
}

fn steady(evidence: &Evidence, side: usize) -> String {
    format!(
        "it may be a full link before the capture: {}{}, in one packet for each message, and none \
         shows how long it was on its way. A capture at the {} tells",
        sends(evidence, side),
        as_link(evidence, side),
        ENDS[side]
    )
}

const NO_ACKS: &str = "nothing shows the way to the client: captured at the server, it may be the \
                       network's. A capture at the client tells";
const CUT_OFF: &str =
    "packets were cut off, so that calls and replies in them were not seen (tcpdump -s 0)";
const UNACKNOWLEDGED: &str =
    "nothing acknowledges, so that the round trip is known by replies only";
const BY_REPLIES: &str =
    "the server acknowledges by its replies only: its part of the round trip is at most these";
const NO_ROUND_TRIP: &str =
    "nothing shows the round trip: what is the network's and what the server's is not known";
const ODD_RATE: &str =
    "no link has that rate by itself: it may be limited on purpose, or by an end";

#[cfg(test)]
mod tests {
    use trace::verdict::judge;

    use super::*;

    /// READs that take as long as the network needs for them, of a capture in which so many of 100
    /// replies were cut off.
    fn answer(cut: u64) -> (Diagnosis, String) {
        const RTT_NS: u64 = 500_000;
        let mut evidence =
            Evidence { server_ack_ns: Some((RTT_NS, RTT_NS)), ..Evidence::default() };
        let reads = WorkNumbers { calls: 100, bytes: 1 << 20, median_ns: RTT_NS, mean_ns: RTT_NS };
        evidence.works[Work::Read as usize] = reads;
        evidence.waited.works[Work::Read as usize] = 100 * RTT_NS;
        evidence.sides[1] = SideNumbers { cut, ..SideNumbers::default() };
        let diagnosis = judge(&evidence);
        let sentence = undecided(&evidence, &diagnosis);
        (diagnosis, sentence)
    }

    #[test]
    fn an_idle_client_has_pauses_where_these_are_most_of_it_and_a_median_otherwise() {
        let sentence = |pauses_ns: u64| {
            let mut evidence = Evidence { think_median_ns: 4_600_000, ..Evidence::default() };
            evidence.waited.idle = 6_400_000_000;
            evidence.pauses = Gaps { count: 9, ns: pauses_ns, longest_ns: 704_000_000 };
            idle(&evidence, "68 % of the time")
        };
        assert!(sentence(6_340_000_000).ends_with("in 9 pauses, the longest 704 ms"));
        assert!(sentence(1_000_000_000).contains("4.60 ms at the median"));
    }

    #[test]
    fn a_few_packets_that_were_cut_off_are_a_doubt_and_many_are_why_nothing_can_be_decided() {
        let (diagnosis, few) = answer(2);
        assert_eq!((diagnosis.verdict, diagnosis.also.len()), (None, 0), "{diagnosis:?}");
        assert_eq!(diagnosis.doubts, [Doubt::CaptureCut]);
        assert!(few.starts_with("nothing stands out"), "{few}");
        let (diagnosis, many) = answer(11);
        assert_eq!((diagnosis.verdict, diagnosis.doubts), (None, vec![Doubt::CaptureCut]));
        assert!(many.starts_with("cannot be decided: of too many packets"), "{many}");
    }
}
