//! The rules: candidates with their shares of the time, and the choice among them.

use super::chosen::is_in_vain;
use super::evidence::{is_delayed, share};
use super::{Certainty, Diagnosis, Doubt, Evidence, Finding, Gaps, SideNumbers, Suspect, ways};
use crate::work::Work;

/// Replies below which nothing is stated.
pub const CALLS_MIN: u64 = 16;
/// What has less of the time is not named as the cause.
pub const SHARE_MIN: f64 = 0.25;
/// What has less is not named at all.
const ALSO_MIN: f64 = 0.1;

/// Share of the time from which on a cause is sure, and likely.
const SURE: f64 = 0.6;
const LIKELY: f64 = 0.4;
/// Times that it was seen for that.
const SURE_EVENTS: u64 = 8;
const LIKELY_EVENTS: u64 = 4;
/// A rival is nearer than this.
const MARGIN: f64 = 0.15;

/// Below it a round trip is that of a LAN: 1 ms. Martin & Culler 1999 see a slope from 150 us on.
pub(super) const LONG_NS: u64 = 1_000_000;
/// Round trips of acknowledgements in the fastest call, from which on something else than the
/// server may acknowledge (threshold ours).
const EARLY: u64 = 10;
/// Of what a call takes at the median, from which on a gap is a server that stands still (ours).
const STILL: u64 = 4;
/// Of all calls, from which on those for attributes are a storm (threshold ours).
const STORM: f64 = 0.6;
/// Segments lost, of 1: worth a look, and never harmless (thresholds ours).
const LOSS_MIN: f64 = 0.001;
/// Losses below which a share of them says nothing.
const LOSSES_MIN: u64 = 5;
/// Mathis et al. 1997: periodic loss, every segment acknowledged.
const MATHIS: f64 = 1.22;
const SEGMENT_BYTES: f64 = 1448.0;
/// Round trips of a call, at the median, from which on TCP can be what it waits for. One that takes
/// no more was sent at once, whatever was lost beside it.
const WINDOWS_MIN: u64 = 2;
/// Share of the time in which messages pass, from their first byte to their last.
const STRETCHED: f64 = 0.6;

/// Messages that may have been cut off for each reply: calls of which the reply is not seen seem
/// to be outstanding, and with many of them all of the time passes in the server.
const CUT_MAX: f64 = 0.1;

/// Share of the calls that RPC refuses, or that fail, from which on what takes the time is no work.
const REFUSED_MIN: f64 = 0.1;
/// Share of the calls of which is not known what they are for (ours).
const NAMELESS_MIN: f64 = 0.1;
/// Share of the time in which messages were lost, from which on a verdict is less sure.
const UNKNOWN_MIN: f64 = 0.1;

/// Rates that links have, in Mbit/s.
const NOMINAL_MBPS: [f64; 11] =
    [10.0, 100.0, 200.0, 500.0, 1e3, 2.5e3, 5e3, 10e3, 25e3, 40e3, 100e3];

/// The verdict on a conversation.
pub fn judge(evidence: &Evidence) -> Diagnosis {
    let none = Diagnosis { verdict: None, doubts: Vec::new(), also: Vec::new() };
    if evidence.unseen_datagrams() > 0 {
        return Diagnosis { doubts: vec![Doubt::Fragments], ..none };
    }
    // A client that hangs soon after it began had few.
    if evidence.replies() < CALLS_MIN && !is_in_vain(&evidence.waited) {
        return Diagnosis { doubts: vec![Doubt::FewEvents], ..none };
    }
    if evidence.waited.all() == 0 {
        return Diagnosis { doubts: vec![Doubt::NoTime], ..none };
    }
    if is_cut_too_much(evidence) {
        return Diagnosis { doubts: vec![Doubt::CaptureCut], ..none };
    }
    let mut found: Vec<Finding> = Shares::of(evidence).candidates();
    found.retain(|finding| finding.share >= ALSO_MIN);
    found.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.suspect.cmp(&b.suspect)));
    let mut doubts = lost(evidence);
    // What is not known may be any one cause: it has to be less than the largest.
    let least = SHARE_MIN.max(unknown_share(evidence));
    let Some(&first) = found.first().filter(|first| first.share >= least) else {
        return Diagnosis { also: found, doubts, ..none };
    };
    doubts.extend(against(evidence, &first, found.get(1)));
    let verdict = Some((first, certainty(&first, &doubts)));
    Diagnosis { verdict, doubts, also: found.split_off(1) }
}

/// That calls of a client hang, where that is much of its time.
pub fn hangs(evidence: &Evidence) -> Option<Finding> {
    if evidence.unseen_datagrams() > 0 {
        return None;
    }
    let all = evidence.waited.all();
    let found = no_reply(evidence, all).into_iter().chain(hanging(evidence, all));
    found.filter(|found| found.share >= SHARE_MIN).max_by(|a, b| a.share.total_cmp(&b.share))
}

fn certainty(first: &Finding, doubts: &[Doubt]) -> Certainty {
    let is = |least: f64, events: u64| first.share >= least && is_seen(first, events);
    let mut certainty = match () {
        () if is(SURE, SURE_EVENTS) => Certainty::Sure,
        () if is(LIKELY, LIKELY_EVENTS) => Certainty::Likely,
        () => Certainty::Possible,
    };
    for _ in 0..doubts.iter().map(|doubt| doubt.steps()).sum() {
        certainty = match certainty {
            Certainty::Sure => Certainty::Likely,
            _ => Certainty::Possible,
        };
    }
    certainty
}

/// Whether something was seen as often. What lasts until the end cannot happen twice, and a call
/// that hangs hardly ends.
fn is_seen(found: &Finding, events: u64) -> bool {
    let lasts = matches!(found.suspect, Suspect::NoReply | Suspect::HangingCalls);
    lasts || found.events >= events
}

/// Whether the capture is whole.
fn lost(evidence: &Evidence) -> Vec<Doubt> {
    let bytes = evidence.sides.iter().map(|side| side.bytes).sum();
    let missing = evidence.sides.iter().map(|side| side.missing_bytes).sum();
    let is_lossy = share(missing, bytes) > 0.001
        || share(evidence.untimed, evidence.replies()) > 0.01
        || unknown_share(evidence) > UNKNOWN_MIN;
    let is_cut = cut_share(evidence) > 0.01;
    let is_one_way = evidence.one_way > 0;
    let all =
        [(is_one_way, Doubt::OneWay), (is_lossy, Doubt::CaptureLost), (is_cut, Doubt::CaptureCut)];
    all.into_iter().filter_map(|(is_so, doubt)| is_so.then_some(doubt)).collect()
}

/// Of the time, that in which the capture lost messages.
pub fn unknown_share(evidence: &Evidence) -> f64 {
    share(evidence.waited.unknown, evidence.waited.all())
}

/// Whether so many packets were cut off that nothing can be concluded.
pub fn is_cut_too_much(evidence: &Evidence) -> bool {
    cut_share(evidence) > CUT_MAX
}

/// Messages that began in what was cut off of packets, for each reply that was seen.
fn cut_share(evidence: &Evidence) -> f64 {
    share(evidence.sides.iter().map(|side| side.cut).sum(), evidence.replies())
}

fn against(evidence: &Evidence, first: &Finding, second: Option<&Finding>) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if !is_seen(first, LIKELY_EVENTS) {
        doubts.push(Doubt::FewEvents);
    }
    if evidence.set_back > 0 {
        doubts.push(Doubt::SetBack);
    }
    if let Some(second) = second.filter(|second| first.share - second.share < MARGIN) {
        doubts.push(Doubt::Rival(second.suspect));
    }
    if is_by_round_trip(first.suspect) {
        doubts.extend(round_trip_unknown(evidence));
    }
    if is_acknowledged_early(evidence, first.suspect) {
        doubts.push(Doubt::EarlyAcks);
    }
    doubts.extend(ways::doubt(evidence, first.suspect));
    if share(evidence.nameless, evidence.replies()) > NAMELESS_MIN && is_by_work(first.suspect) {
        doubts.push(Doubt::Nameless);
    }
    if share(evidence.refused, evidence.replies()) > REFUSED_MIN {
        doubts.push(Doubt::Refused);
    }
    // Who waits for nothing does not work, either way.
    if share(evidence.failed, evidence.replies()) > REFUSED_MIN
        && !matches!(first.suspect, Suspect::IdleClient | Suspect::NoReply | Suspect::HangingCalls)
    {
        doubts.push(Doubt::Failed);
    }
    let side = heavier(evidence);
    if first.suspect == Suspect::Rate && nominal_rate(side.bytes_per_s_mean).is_none() {
        doubts.push(Doubt::OddRate);
    }
    doubts
}

/// Whether the round trip distinguishes a cause from the network.
const fn is_by_round_trip(suspect: Suspect) -> bool {
    matches!(
        suspect,
        Suspect::Latency
            | Suspect::OneOutstanding
            | Suspect::SlowServer
            | Suspect::SlowCommit
            | Suspect::SlowStableWrite
            | Suspect::SmallSyncs
    )
}

/// Whether what calls are for distinguishes a cause from others.
const fn is_by_work(suspect: Suspect) -> bool {
    is_by_round_trip(suspect) || matches!(suspect, Suspect::AttributeStorm | Suspect::Stalls)
}

fn round_trip_unknown(evidence: &Evidence) -> Option<Doubt> {
    if evidence.round_trip_ns().is_some_and(|ns| evidence.is_too_short(ns)) {
        return Some(Doubt::CoarseTimes);
    }
    let Evidence { server_ack_ns, between_ns, .. } = evidence;
    let is_known = server_ack_ns.or(*between_ns).is_some() || evidence.relay_ns.is_some();
    match evidence.round_trip_ns() {
        _ if is_known => None,
        None => Some(Doubt::NoRoundTrip),
        Some(_) => Some(Doubt::RoundTripUnknown),
    }
}

/// Even the fastest call takes many round trips of acknowledgements, and others of its kind hardly
/// more: a server that is busy answers some sooner, and what ends TCP before it (a relay, a proxy)
/// acknowledges by itself.
fn is_acknowledged_early(evidence: &Evidence, suspect: Suspect) -> bool {
    let (Some(way_ns), Some((least_ns, median_ns))) =
        (evidence.server_ack_ns.and_then(|_| evidence.round_trip_ns()), evidence.fastest_ns)
    else {
        return false;
    };
    let is_early = least_ns >= LONG_NS.max(EARLY * way_ns) && median_ns <= 2 * least_ns;
    let is_its = match suspect {
        Suspect::SlowServer => true,
        Suspect::SlowCommit => 2 * least_ns >= evidence.work(Work::Commit).median_ns,
        Suspect::SlowStableWrite => 2 * least_ns >= evidence.work(Work::StableWrite).median_ns,
        _ => false,
    };
    is_early && is_its && evidence.relay_ns.is_none()
}

/// The rate of a link, in Mbit/s, that carries this much data: on Ethernet 1,448 of 1,538
/// bytes are data, in jumbo frames and with a relay nearly all.
pub fn nominal_rate(bytes_per_s: f64) -> Option<f64> {
    let mbps = bytes_per_s * 8.0 / 1e6;
    NOMINAL_MBPS.into_iter().find(|rate| (0.9 * rate..=1.01 * rate).contains(&mbps))
}

/// The direction that carries more.
fn heavier(evidence: &Evidence) -> &SideNumbers {
    let [client, server] = &evidence.sides;
    if client.bytes >= server.bytes { client } else { server }
}

/// Shares of the time, 0 to 1.
struct Shares<'e> {
    evidence: &'e Evidence,
    all: u64,
    idle: f64,
    commit: f64,
    stable: f64,
    write: f64,
    attributes: f64,
    /// Calls that need nothing stable, with the way to the client.
    rest: f64,
    /// The server takes most of each call, however many are outstanding.
    is_slow: bool,
    /// The round trip, of what such calls take.
    network: f64,
    is_long: bool,
    is_rate: bool,
    /// Calls wait for a relay, or for the link that it passes them on by.
    waits_at_relay: bool,
    /// A call takes so many round trips that TCP may have let it wait.
    waits_for_tcp: bool,
}

impl<'e> Shares<'e> {
    fn of(evidence: &'e Evidence) -> Self {
        let waited = &evidence.waited;
        let all = waited.all();
        // Captured at the server a client looks idle while replies and calls are on their way.
        let way = (evidence.thinks * evidence.client_end_ns()).min(waited.idle);
        let of = |work: Work| share(waited.of(work), all);
        let others = Work::ALL.into_iter().filter(|work| !work.is_sync());
        let main = evidence.main();
        let rest = others.map(of).sum::<f64>() + share(way + waited.arriving, all);
        let longest = Work::ALL.into_iter().max_by_key(|work| waited.of(*work));
        let round_trip_ns = evidence.round_trip_ns().unwrap_or(0);
        let response_ns = evidence.work(main).median_ns + evidence.client_end_ns();
        // From the first byte of a message to its last, which a response time leaves out.
        let stretch_ns = heavier(evidence).stretch_ns / evidence.work(main).calls.max(1);
        let network = evidence.way_share(main);
        let mean_ns = evidence.work(main).mean_ns + evidence.client_end_ns();
        let in_server_ns = mean_ns.saturating_sub(evidence.network_ns(main));
        Self {
            evidence,
            all,
            idle: share(waited.idle - way, all),
            commit: of(Work::Commit),
            stable: of(Work::StableWrite),
            write: of(Work::Write),
            attributes: of(Work::Attributes),
            rest,
            is_slow: in_server_ns >= LONG_NS && network <= 0.5,
            network,
            is_long: round_trip_ns >= LONG_NS,
            is_rate: is_rate(evidence, all),
            waits_at_relay: longest.is_some_and(|work| evidence.waits_at_relay(work)),
            waits_for_tcp: response_ns + stretch_ns >= WINDOWS_MIN * round_trip_ns,
        }
    }

    fn candidates(&self) -> Vec<Finding> {
        let candidates = [
            self.small_syncs(),
            self.sync(Suspect::SlowCommit, Work::Commit, self.commit),
            self.sync(Suspect::SlowStableWrite, Work::StableWrite, self.stable),
            self.network(),
            self.loss(),
            self.stalls(),
            self.storm(),
            self.retransmission(),
            self.zero_window(),
            self.idle_client(),
            no_reply(self.evidence, self.all),
            hanging(self.evidence, self.all),
            self.postponed(),
        ];
        self.attributed(candidates.into_iter().flatten().collect())
    }

    /// What several name is one's alone: of those, the cause of the others.
    fn attributed(&self, mut found: Vec<Finding>) -> Vec<Finding> {
        let of = |found: &[Finding], suspect| {
            found.iter().find(|finding| finding.suspect == suspect).map(|finding| finding.share)
        };
        // One names the other's cause.
        if let Some(small) = of(&found, Suspect::SmallSyncs) {
            found.retain(|one| match one.suspect {
                Suspect::SlowCommit | Suspect::SlowStableWrite => false,
                // Who waits until data are stable has nothing else outstanding.
                Suspect::OneOutstanding => one.share > small,
                _ => true,
            });
        }
        if of(&found, Suspect::AttributeStorm).is_some() {
            let rest = (self.rest - self.attributes).max(0.0);
            found.iter_mut().for_each(|one| {
                let is_rest = match one.suspect {
                    Suspect::Latency | Suspect::OneOutstanding | Suspect::Relay => true,
                    Suspect::SlowServer => !self.is_slow,
                    _ => false,
                };
                one.share = if is_rest { one.share.min(rest) } else { one.share };
            });
        }
        // What a server that stands still makes everybody wait for.
        if let Some(stalled) = of(&found, Suspect::Stalls) {
            found.iter_mut().for_each(|one| {
                let is_its = self.is_of_stalls(one.suspect);
                one.share = if is_its { (one.share - stalled).max(0.0) } else { one.share };
            });
        }
        // What TCP carries after losses is what losses let it carry.
        if of(&found, Suspect::Loss).is_some_and(|share| share >= self.rest) {
            found.retain(|one| {
                !matches!(
                    one.suspect,
                    Suspect::SlowServer
                        | Suspect::Rate
                        | Suspect::Relay
                        | Suspect::OneOutstanding
                        | Suspect::Latency
                )
            });
        }
        found
    }

    /// Whether the time in which the server stood still is in that of this suspect, too. What makes
    /// data stable is, where others wait for it; one client's gaps have causes of their own then.
    fn is_of_stalls(&self, suspect: Suspect) -> bool {
        match suspect {
            Suspect::SlowServer | Suspect::OneOutstanding => true,
            Suspect::SlowCommit | Suspect::SlowStableWrite => self.evidence.clients > 1,
            Suspect::Latency | Suspect::AttributeStorm => self.evidence.clients <= 1,
            _ => false,
        }
    }

    /// What the disk takes: less the round trip, which any call takes.
    fn sync(&self, suspect: Suspect, work: Work, share_of: f64) -> Option<Finding> {
        finding(suspect, share_of * self.at_server(work), self.evidence.work(work).calls)
    }

    /// The share of calls of this work that the server takes, less their way to it.
    fn at_server(&self, work: Work) -> f64 {
        let is_carried = self.is_rate && work == Work::StableWrite;
        if is_carried { 0.0 } else { 1.0 - self.evidence.way_share(work) }
    }

    fn small_syncs(&self) -> Option<Finding> {
        let syncs = self.evidence.syncs;
        if syncs.small * 2 < syncs.calls {
            return None;
        }
        let small = share(syncs.small_ns, syncs.ns);
        // The WRITEs before small COMMITs belong to them.
        let write = self.evidence.work(Work::Write);
        let is_small = write.calls <= 4 * syncs.small;
        let writes = if is_small { self.write } else { 0.0 };
        let commit = self.commit * self.at_server(Work::Commit);
        let waits = commit + self.stable * self.at_server(Work::StableWrite);
        finding(Suspect::SmallSyncs, small * waits + writes, syncs.small)
    }

    /// Latency, one call outstanding, a link's rate, a relay or the server: what calls take that
    /// wait for nothing else.
    fn network(&self) -> Option<Finding> {
        let stable = if self.is_rate { self.stable } else { 0.0 };
        let way_of = |work| self.evidence.way_share(work);
        let ways = self.commit * way_of(Work::Commit) + self.stable * way_of(Work::StableWrite);
        let network = self.rest * self.network + ways;
        let is_most = network * 2.0 >= self.rest + ways;
        let is_alone = self.evidence.is_alone();
        let is_relayed = self.evidence.relay_ns.is_some() && !is_alone && is_most;
        let again = match self.evidence.udp.had_arrived() {
            true => share(self.evidence.waited.retransmission, self.all),
            false => 0.0,
        };
        let in_server = self.rest * (1.0 - self.network);
        let (suspect, share_of) = match () {
            () if self.is_rate => (Suspect::Rate, self.rest + stable),
            () if is_relayed && self.waits_at_relay => (Suspect::Relay, network),
            () if self.is_long && is_most => (Suspect::Latency, network),
            () if is_relayed => (Suspect::Relay, network),
            () if again > 0.0 => (Suspect::SlowServer, in_server + again),
            () if is_alone && !self.is_slow => (Suspect::OneOutstanding, self.rest + ways),
            () => (Suspect::SlowServer, in_server),
        };
        finding(suspect, share_of, self.evidence.replies())
    }

    fn loss(&self) -> Option<Finding> {
        let evidence = self.evidence;
        let side = usize::from(evidence.loss(1) > evidence.loss(0));
        let loss = evidence.loss(side);
        let lost = evidence.sides[side].again + evidence.sides[side].filled;
        if loss < LOSS_MIN || lost < LOSSES_MIN {
            return None;
        }
        let repairs = share(evidence.waited.recovery, self.all);
        // Half of what losses let through, and it is they that limit the rest, too.
        let seconds = 1e-9 * precise(self.all - evidence.waited.idle);
        let carried = precise(evidence.sides[side].bytes) / seconds.max(1e-9);
        let way_s = 1e-9 * precise(evidence.round_trip_ns().unwrap_or(0).max(1));
        let limit = SEGMENT_BYTES / way_s * MATHIS / loss.sqrt();
        let is_limited = self.waits_for_tcp && carried >= limit / 2.0;
        let limited = if is_limited { self.rest + self.stable } else { 0.0 };
        finding(Suspect::Loss, (repairs + limited).min(1.0), lost)
    }

    fn stalls(&self) -> Option<Finding> {
        let Evidence { stalls, server_ns, clients, silences, .. } = self.evidence;
        match clients {
            ..=1 if self.is_rhythm(*silences) => None,
            // Whether it answers others is not to be seen.
            ..=1 => finding(Suspect::Stalls, share(silences.ns, self.all), silences.count),
            _ => finding(Suspect::Stalls, share(stalls.ns, *server_ns), stalls.count),
        }
    }

    /// Whether gaps are hardly longer than calls take: several connections in step have them.
    fn is_rhythm(&self, gaps: Gaps) -> bool {
        let usual_ns = self.evidence.work(self.evidence.main()).median_ns;
        gaps.ns < STILL.saturating_mul(usual_ns).saturating_mul(gaps.count)
    }

    /// Where a few long pauses are most of it, these are what was seen, and no short one is.
    fn idle_client(&self) -> Option<Finding> {
        let Evidence { pauses, thinks, .. } = self.evidence;
        let is_theirs = self.evidence.is_idle_in_pauses();
        finding(Suspect::IdleClient, self.idle, if is_theirs { pauses.count } else { *thinks })
    }

    fn storm(&self) -> Option<Finding> {
        let calls = self.evidence.work(Work::Attributes).calls;
        let is_storm = share(calls, self.evidence.replies()) >= STORM;
        // With the way to the client, as far as it was theirs.
        let waits = self.evidence.waited.of(Work::Attributes);
        let others: u64 = Work::ALL.into_iter().map(|work| self.evidence.waited.of(work)).sum();
        let way = (self.rest - self.others()).max(0.0) * share(waits, others);
        finding(Suspect::AttributeStorm, self.attributes + way, calls).filter(|_| is_storm)
    }

    /// Calls that need nothing stable, as they were captured.
    fn others(&self) -> f64 {
        let others = Work::ALL.into_iter().filter(|work| !work.is_sync());
        others.map(|work| share(self.evidence.waited.of(work), self.all)).sum()
    }

    fn retransmission(&self) -> Option<Finding> {
        let udp = self.evidence.udp;
        // The server took all of that time, and no timer.
        if udp.had_arrived() {
            return None;
        }
        let seen = share(self.evidence.waited.retransmission, self.all);
        // Where others go on meanwhile, their replies hide who waits for his timer.
        let waits = share(udp.waited_ns, udp.ns) * (1.0 - self.idle);
        finding(Suspect::Retransmission, seen.max(waits), udp.repeated.max(u64::from(seen > 0.0)))
    }

    fn postponed(&self) -> Option<Finding> {
        let waits = share(self.evidence.waited.postponed, self.all);
        finding(Suspect::Postponed, waits, self.evidence.postponed)
    }

    fn zero_window(&self) -> Option<Finding> {
        let sides = &self.evidence.sides;
        let most = sides.iter().max_by_key(|side| side.zero_window_ns)?;
        finding(Suspect::ZeroWindow, share(most.zero_window_ns, self.all), most.zero_windows)
    }
}

/// Calls have no reply when the capture ends.
fn no_reply(evidence: &Evidence, all: u64) -> Option<Finding> {
    let Evidence { waited, unanswered, .. } = evidence;
    finding(Suspect::NoReply, share(waited.unanswered, all), *unanswered)
}

/// Calls hang while others are answered.
fn hanging(evidence: &Evidence, all: u64) -> Option<Finding> {
    let Evidence { waited, hung, .. } = evidence;
    finding(Suspect::HangingCalls, share(waited.late, all), hung.calls)
}

/// Whether a link carries what it can.
fn is_rate(evidence: &Evidence, all: u64) -> bool {
    let side = heavier(evidence);
    // What carries the data.
    let carriers = [Work::Read, Work::Write, Work::StableWrite];
    let carrier = carriers.into_iter().max_by_key(|work| evidence.work(*work).bytes);
    let carrier = carrier.unwrap_or(Work::Other);
    let most = evidence.work(carrier);
    let response_ns = most.median_ns + evidence.client_end_ns();
    // Where an end's kernel acknowledges late, packets wait in a queue of the network: of the end
    // that receives, the data do; of the one that sends, its acknowledgements wait behind them.
    let acks = [evidence.server_ack_ns, evidence.client_ack_ns];
    let acks = acks.into_iter().flatten().filter(|acks| !is_delayed(*acks));
    let is_queued = acks
        .chain(evidence.between_ns)
        .any(|(least, usual)| usual >= 3 * least && usual * 2 >= response_ns)
        || evidence.waits_at_relay(carrier);
    let is_alone = evidence.is_alone();
    // Of one connection: on each of several messages of the others wait beside its own.
    let is_stretched = share(side.stretch_ns_max, all) >= STRETCHED;
    // Where no data are moved a link carries nothing.
    most.bytes > 0 && side.is_steady() && (is_stretched || (is_queued && !is_alone))
}

fn finding(suspect: Suspect, share: f64, events: u64) -> Option<Finding> {
    (share > 0.0 && events > 0).then_some(Finding { suspect, share: share.min(1.0), events })
}

#[expect(clippy::cast_precision_loss, reason = "times and bytes as shares")]
const fn precise(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Waited;
    use crate::pair::Syncs;
    use crate::verdict::{SideNumbers, WorkNumbers};

    /// 256 WRITEs of 32 KiB behind a round trip of 20 ms, of 5,883 segments 7 lost.
    fn writes(median_ns: u64) -> Evidence {
        let mut evidence = Evidence { relay_ns: Some(20_080_000), ..Evidence::default() };
        evidence.works[Work::Write as usize] =
            WorkNumbers { calls: 256, bytes: 256 << 15, median_ns, mean_ns: median_ns };
        let mut waited = Waited { recovery: 40_000_000, ..Waited::default() };
        waited.works[Work::Write as usize] = 5_760_000_000;
        evidence.waited = waited;
        evidence.stop_and_wait = Some(0.5);
        evidence.sides[0] = SideNumbers {
            packets: 5_883,
            bytes: 256 << 15,
            again: 6,
            filled: 1,
            ..SideNumbers::default()
        };
        evidence
    }

    /// 100 stable WRITEs of 8 KiB, 40 ms each.
    fn stable_writes() -> Evidence {
        let mut evidence = Evidence::default();
        let median_ns = 40_000_000;
        let writes = WorkNumbers { calls: 100, bytes: 100 << 13, median_ns, mean_ns: median_ns };
        evidence.works[Work::StableWrite as usize] = writes;
        evidence.waited.works[Work::StableWrite as usize] = 100 * median_ns;
        evidence.stop_and_wait = Some(1.0);
        evidence
    }

    #[test]
    fn what_the_round_trip_distinguishes_from_the_network_is_not_sure_where_that_is_not_known() {
        let small = Syncs {
            calls: 100,
            bytes: 100 << 13,
            small: 100,
            ns: 4,
            small_ns: 4,
            ..Syncs::default()
        };
        for (syncs, suspect) in
            [(Syncs::default(), Suspect::SlowStableWrite), (small, Suspect::SmallSyncs)]
        {
            let nothing = Evidence { syncs, ..stable_writes() };
            let replies = Evidence { light_ns: Some(300_000), ..nothing.clone() };
            let acks = Evidence { server_ack_ns: Some((200_000, 250_000)), ..nothing.clone() };
            let judged = [nothing, replies, acks].map(|evidence| {
                let Diagnosis { verdict, doubts, .. } = judge(&evidence);
                let (found, certainty) = verdict.unwrap();
                assert_eq!(found.suspect, suspect);
                (certainty, doubts)
            });
            assert_eq!(judged[0], (Certainty::Possible, vec![Doubt::NoRoundTrip]));
            assert_eq!(judged[1], (Certainty::Likely, vec![Doubt::RoundTripUnknown]));
            assert_eq!(judged[2], (Certainty::Sure, vec![]));
        }
    }

    #[test]
    fn replies_at_one_rate_behind_acknowledgements_that_wait_are_a_full_links() {
        let reads = |server_ack_ns, p50| {
            let mut evidence = Evidence { outstanding_max: 8, ..Evidence::default() };
            let (bytes, median_ns) = (1_000 << 15, 10_000_000);
            let reads = WorkNumbers { calls: 1_000, bytes, median_ns, mean_ns: median_ns };
            evidence.works[Work::Read as usize] = reads;
            evidence.waited.works[Work::Read as usize] = 1_000 * median_ns;
            evidence.server_ack_ns = Some(server_ack_ns);
            evidence.client_ack_ns = Some((7_000, 20_000));
            let (bytes_per_s_p50, bytes_per_s_p95, bytes_per_s_mean) = (p50, 12e6, 12e6);
            let rates = SideNumbers { bytes_per_s_p50, bytes_per_s_p95, ..SideNumbers::default() };
            evidence.sides[1] = SideNumbers { bins: 200, bytes, bytes_per_s_mean, ..rates };
            let (finding, certainty) = judge(&evidence).verdict.unwrap();
            (finding.suspect, certainty)
        };
        let late = (10_000, 6_000_000);
        assert_eq!(reads(late, 11.9e6), (Suspect::Rate, Certainty::Sure));
        // The server itself is late, or it sends at no rate of a link's, or its kernel waits.
        assert_eq!(reads((10_000, 20_000), 11.9e6), (Suspect::SlowServer, Certainty::Likely));
        assert_eq!(reads(late, 6e6), (Suspect::SlowServer, Certainty::Likely));
        assert_eq!(reads((10_000, 40_000_000), 11.9e6).0, Suspect::SlowServer);
    }

    #[test]
    fn calls_that_rpc_refuses_speak_against_any_cause() {
        let judged = |refused| {
            let acks = Some((200_000, 250_000));
            judge(&Evidence { refused, server_ack_ns: acks, ..stable_writes() }).doubts
        };
        assert_eq!((judged(10), judged(11)), (vec![], vec![Doubt::Refused]));
    }

    #[test]
    fn calls_without_a_name_speak_against_what_calls_are_for() {
        let judged = |nameless| {
            let acks = Some((200_000, 250_000));
            judge(&Evidence { nameless, server_ack_ns: acks, ..stable_writes() }).doubts
        };
        assert_eq!((judged(10), judged(11)), (vec![], vec![Doubt::Nameless]));
    }

    #[test]
    fn a_fastest_call_far_above_acknowledgements_speaks_against_the_server() {
        let mut evidence = writes(10_200_000);
        evidence.relay_ns = None;
        evidence.sides = <[SideNumbers; 2]>::default();
        evidence.server_ack_ns = Some((13_000, 13_000));
        let judged = |least_ns, median_ns| {
            let fastest_ns = Some((least_ns, median_ns));
            let found = judge(&Evidence { fastest_ns, ..evidence.clone() });
            let (finding, certainty) = found.verdict.unwrap();
            assert_eq!(finding.suspect, Suspect::SlowServer);
            (certainty, found.doubts)
        };
        let doubted = (Certainty::Likely, vec![Doubt::EarlyAcks]);
        assert_eq!(judged(6_300_000, 6_420_000), doubted);
        let sure = (Certainty::Sure, vec![]);
        // One that is busy has answered some calls at once, or hides no more than a LAN.
        assert_eq!(judged(6_300_000, 20_000_000), sure);
        assert_eq!(judged(100_000, 6_420_000), sure);
        assert_eq!(judged(900_000, 1_000_000), sure);
    }

    #[test]
    fn a_round_trip_below_what_times_are_multiples_of_is_not_known() {
        let judged = |resolution_ns, ack_ns| {
            let server_ack_ns = Some((ack_ns, ack_ns));
            judge(&Evidence { resolution_ns, server_ack_ns, ..stable_writes() }).doubts
        };
        assert_eq!(judged(1_000_000, 0), vec![Doubt::CoarseTimes]);
        assert_eq!(judged(1_000_000, 2_000_000), vec![]);
        assert_eq!(judged(1_000, 0), vec![]);
    }

    #[test]
    fn where_only_the_client_acknowledges_its_way_is_the_networks() {
        let reads = |mean_ns: u64, client_ack_ns, light_ns| {
            let mut evidence = Evidence { client_ack_ns, light_ns, ..Evidence::default() };
            let median_ns = mean_ns;
            evidence.works[Work::Read as usize] =
                WorkNumbers { calls: 200, bytes: 200 << 10, median_ns, mean_ns };
            evidence.waited.works[Work::Read as usize] = 200 * mean_ns;
            (evidence.thinks, evidence.waited.idle) = (200, 200 * 20_050_000);
            evidence.stop_and_wait = Some(1.0);
            let Diagnosis { verdict, doubts, .. } = judge(&evidence);
            (verdict.unwrap().0.suspect, doubts)
        };
        let far = Some((20_000_000, 20_000_000));
        let doubts = vec![Doubt::RoundTripUnknown];
        assert_eq!(reads(300_000, far, None), (Suspect::Latency, doubts.clone()));
        assert_eq!(reads(300_000, far, Some(300_000)), (Suspect::Latency, doubts));
        assert_eq!(reads(300_000, None, None).0, Suspect::IdleClient);
        assert_eq!(reads(200_000_000, far, None).0, Suspect::SlowServer);
    }

    #[test]
    fn packets_of_one_time_say_nothing_and_are_not_too_few() {
        let none = Diagnosis { verdict: None, doubts: vec![Doubt::NoTime], also: vec![] };
        assert_eq!(judge(&Evidence { waited: Waited::default(), ..stable_writes() }), none);
    }

    #[test]
    fn calls_that_take_one_round_trip_do_not_wait_for_what_was_lost() {
        let verdict = |median_ns| judge(&writes(median_ns)).verdict.map(|found| found.0.suspect);
        assert_eq!(verdict(22_500_000), Some(Suspect::Latency));
        assert_eq!(verdict(90_000_000), Some(Suspect::Loss));
    }
}
