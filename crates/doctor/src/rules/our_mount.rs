//! Where the time of a call goes in our own mount, by its metrics.

use super::{About, Certainty, Found, Layer, NoFinding, Rule, Severity};
use crate::model;
use crate::shares::{Shares, Where};

/// The finding is made of a page of metrics ([`found`]), not of the kernel's counters.
pub(super) static RULE: Rule = Rule {
    name: "our-mount",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["nfskit mount --metrics ADDRESS:PORT"],
    thresholds: &[],
    source: "docs/metrics.md; the limits (those of client-queue and retransmissions; 2 ms for a \
             reply, a twentieth of the time with a call under way) are ours",
    explanation: "For each call, our mount counts how long it waited before it was sent and how \
                  long its reply took. Since our mount is a program, the kernel counts none of \
                  this.",
    remedy: "For calls that wait in the client, more connections; for slow replies, nfskit doctor \
             with the server as its subject, which distinguishes network and server.",
    gain: "By a closed model of the calls that wait and those that are outstanding.",
    explained_by: &[],
    judge: |_| Err(NoFinding::NotApplicable),
};

pub(crate) fn rule() -> &'static Rule {
    &RULE
}

/// What a page of metrics says, or what came between two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OurMounted {
    /// The place and the server, as its command line has them.
    pub point: String,
    pub source: String,
    pub calls: f64,
    pub calls_per_s: Option<f64>,
    /// Of a mean call.
    pub queue_ms: f64,
    pub rtt_ms: f64,
    pub execute_ms: f64,
    /// Between sending and reply, on average.
    pub outstanding: Option<f64>,
    /// Under way at the last sample.
    pub in_flight: Option<f64>,
    pub retransmissions: f64,
    pub major_timeouts: f64,
    pub reconnects: f64,
}

/// Calls that are under way, of which none has ended.
fn is_stuck(mounted: &OurMounted) -> bool {
    mounted.calls == 0.0 && mounted.in_flight.is_some_and(|calls| calls > 0.0)
}

/// What takes most of a call's time, if calls take long; or that nothing is answered.
pub(crate) fn found(mounted: &OurMounted) -> Option<(Layer, Found)> {
    let is_idle = mounted.outstanding.is_some_and(|calls| calls < 0.05);
    unanswered(mounted)
        .or_else(|| retransmitted(mounted))
        .or_else(|| queued(mounted).filter(|_| !is_idle))
        .or_else(|| slow_replies(mounted).filter(|_| !is_idle))
}

fn ask(mounted: &OurMounted) -> String {
    format!("nfskit doctor {}", mounted.source)
}

const UNTIMED: &str = "calls without a reply have no time";

fn unanswered(mounted: &OurMounted) -> Option<(Layer, Found)> {
    let (in_flight, timeouts) = (mounted.in_flight.unwrap_or(0.0), mounted.major_timeouts);
    let what = format!("the server does not answer: {in_flight:.0} calls wait for a reply");
    let found = Found::new(&RULE, what, ask(mounted))
        .severity(Severity::High)
        .evidence(format!("{timeouts:.0} major timeouts, {} calls ended", mounted.calls))
        .unpredicted(UNTIMED);
    (is_stuck(mounted) || timeouts > 0.0).then_some((Layer::Server, found))
}

fn retransmitted(mounted: &OurMounted) -> Option<(Layer, Found)> {
    let (calls, again) = (mounted.calls, mounted.retransmissions);
    let share = 100.0 * again / calls.max(1.0);
    let what = format!("{again:.0} of {calls:.0} calls retransmitted ({share:.2} %)");
    let found = Found::new(&RULE, what, format!("proto=tcp, if it is UDP; {}", ask(mounted)))
        .severity(if share > 5.0 { Severity::High } else { Severity::Medium })
        .unpredicted(UNTIMED);
    (again > 0.01 * calls).then_some((Layer::Network, found))
}

fn queued(mounted: &OurMounted) -> Option<(Layer, Found)> {
    let OurMounted { queue_ms: queue, rtt_ms: rtt, execute_ms: execute, .. } = *mounted;
    let share = queue / execute.max(queue).max(f64::MIN_POSITIVE);
    let is_long = queue > 10.0 && share > 0.25 || queue > rtt && queue >= 1.0;
    let what =
        format!("calls wait in the client: {queue:.1} of {execute:.1} ms before they are sent");
    let on_way = mounted.outstanding.unwrap_or(1.0).max(1.0);
    let busy = mounted.calls_per_s.map(|rate| rate * execute / 1e3);
    let found = Found::new(&RULE, what, "mount again with -o nconnect=4")
        .evidence(format!("the reply takes {rtt:.1} ms"))
        .gain(model::more_outstanding(on_way, rtt, queue, None).of_all_time(busy));
    is_long.then_some((Layer::Client, found))
}

fn slow_replies(mounted: &OurMounted) -> Option<(Layer, Found)> {
    let OurMounted { rtt_ms: rtt, execute_ms: execute, .. } = *mounted;
    let what = format!("replies take {rtt:.1} of the {execute:.1} ms of a call");
    let found = Found::new(&RULE, what, ask(mounted))
        .certainty(Certainty::Possible)
        .against("network and server cannot be distinguished from here")
        .unpredicted("what the replies wait for is not known here");
    (rtt > 2.0).then_some((Layer::Server, found))
}

/// Where the time of a mean call goes.
pub(crate) fn shares(mounted: &OurMounted) -> Option<Shares> {
    let all = mounted.execute_ms.max(mounted.queue_ms + mounted.rtt_ms);
    (all > 0.0).then(|| Shares {
        of_calls: vec![
            (Where::Layer(Layer::Client), (all - mounted.rtt_ms) / all),
            (Where::Layer(Layer::NetworkOrServer), mounted.rtt_ms / all),
        ],
        call_ms: all,
        application: None,
    })
}

/// The numbers of a mount that is well.
pub(crate) fn well(mounted: &OurMounted) -> String {
    if mounted.calls == 0.0 {
        return "no call was made meanwhile".to_owned();
    }
    let rate = mounted.calls_per_s.map_or(String::new(), |rate| format!(", {rate:.1}/s"));
    format!(
        "{:.0} calls{rate}, {:.2} ms each, {:.2} ms of that before they are sent, {:.0} \
         retransmitted",
        mounted.calls, mounted.execute_ms, mounted.queue_ms, mounted.retransmissions
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(queue_ms: f64, rtt_ms: f64) -> OurMounted {
        OurMounted {
            source: "nfs://server/export".to_owned(),
            calls: 1_000.0,
            queue_ms,
            rtt_ms,
            execute_ms: queue_ms + rtt_ms + 0.1,
            outstanding: Some(2.0),
            ..OurMounted::default()
        }
    }

    #[test]
    fn what_takes_most_of_a_slow_call_is_found() {
        let (layer, queue) = found(&mounted(30.0, 2.0)).unwrap();
        assert_eq!(layer, Layer::Client);
        assert!(queue.what.contains("30.0 of 32.1 ms"), "{queue:?}");
        let (layer, reply) = found(&mounted(0.0, 12.0)).unwrap();
        assert!(layer == Layer::Server && reply.remedy == "nfskit doctor nfs://server/export");
        let lossy = OurMounted { retransmissions: 80.0, ..mounted(0.0, 1.0) };
        let (layer, lossy) = found(&lossy).unwrap();
        assert_eq!((layer, lossy.severity), (Layer::Network, Severity::High));
        let stuck = OurMounted { calls: 0.0, in_flight: Some(3.0), ..mounted(0.0, 0.0) };
        assert!(found(&stuck).unwrap().1.what.contains("3 calls wait"));
    }

    #[test]
    fn fast_calls_and_few_of_them_are_well() {
        assert_eq!(found(&mounted(0.0, 0.3)), None);
        assert_eq!(found(&OurMounted { outstanding: Some(0.01), ..mounted(0.0, 12.0) }), None);
        let shares = shares(&mounted(1.0, 2.9)).unwrap();
        assert!((shares.of_calls[1].1 - 2.9 / 4.0).abs() < 1e-9, "{shares:?}");
        assert!(well(&mounted(1.0, 1.0)).starts_with("1000 calls"));
    }

    #[test]
    fn of_a_mount_that_nobody_uses_no_times_are_reported() {
        // As sums of no numbers are.
        let idle = OurMounted { calls: -0.0, execute_ms: -0.0, ..mounted(-0.0, -0.0) };
        assert_eq!(well(&idle), "no call was made meanwhile");
        let report = crate::reason::of_our_mount(&idle, counters::rates::Span::sample(1.0));
        assert_eq!(report.verdict, "not known: no call was made meanwhile");
        assert_eq!(report.certainty, Certainty::Possible);
    }
}
