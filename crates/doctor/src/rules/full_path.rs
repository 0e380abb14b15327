//! Queues stand in the network: its rate is used up.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Gain, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};
use crate::floor::Floor;
use crate::flow::Flow;
use crate::model;
use crate::subject::Mounted;

pub(super) static RULE: Rule = Rule {
    name: "full-path",
    about: About::Mount,
    layer: Layer::Network,
    severity: Severity::High,
    needs: &["/proc/self/mountstats, twice", "ss -tino, twice"],
    thresholds: &[
        Threshold { name: "queue_ms", default: 5.0, of: "round trip beyond the smallest, ms" },
        Threshold { name: "times", default: 4.0, of: "times the smallest round trip" },
        Threshold { name: "bytes", default: Flow::QUEUE_BYTES, of: "bytes that come in that time" },
        Threshold { name: "idle", default: 0.1, of: "share of idle processors, else it is them" },
        Threshold {
            name: "delivered",
            default: Flow::DELIVERED,
            of: "share of what TCP says it delivers",
        },
        Threshold { name: "peer", default: 50.0, of: "percent held up by the peer's window" },
    ],
    source: "Jacobson 1988 and RFC 8289 (a queue that stands: the delay above its minimum); the \
             thresholds are ours",
    explanation: "While bytes flow, TCP's round trip is far above its own minimum: the bytes wait \
                  in front of the slowest link, whose rate is used up. Calls queue behind them in \
                  the network and, when the socket is full, in the client. The slowest link need \
                  not be an interface of this host: it may be a switch, a VPN, or a cloud's limit \
                  for a host.",
    remedy: "A faster link, or a higher limit of the cloud. Until then, fewer bytes: caches, large \
             files read once instead of often, compression in the program.",
    gain: "That of a path twice as fast, by a closed model of the calls outstanding.",
    explained_by: &["slow-interface"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount_now()?;
    let stands = case.floor().and_then(|floor| standing(mount, floor));
    let (floor, now_ms) = stands.ok_or(NoFinding::NotApplicable)?;
    let flow = Flow::of(mount);
    let queue_ms = now_ms - floor.ms;
    not_applicable_if(!flow.fills(queue_ms, case.limit(&RULE, "bytes")))?;
    let numbers = format!(
        "TCP's round trip is {now_ms:.1} ms and was {:.2} ms at least, at {:.1} MB/s",
        floor.ms,
        flow.bytes_per_s() / 1e6
    );
    let stands =
        queue_ms > case.limit(&RULE, "queue_ms") && now_ms > case.limit(&RULE, "times") * floor.ms;
    fine_if(!stands, &numbers)?;
    // Packets that wait for a processor, or for a peer that does not read, wait as long.
    let idle = case.idle_now();
    let is_busy = idle.is_some_and(|idle| idle < case.limit(&RULE, "idle"));
    let peer = mount.connections.iter().filter_map(|one| one.peer_limited).fold(0.0, f64::max);
    let is_in_bursts = flow.is_in_bursts(case.limit(&RULE, "delivered"));
    not_applicable_if(is_busy || is_in_bursts || peer > case.limit(&RULE, "peer"))?;
    let host = mount.host();
    let mut found = Found::new(
        &RULE,
        format!("{numbers}: bytes wait for a link whose rate is used up"),
        format!("nfskit probe nfs://{host}/ for the rate; ethtool, the switch, the cloud's limits"),
    )
    .gain(gain(mount, floor));
    let idle = idle.map(|idle| format!("processors idle {:.0} %", idle * 100.0));
    let delivered = flow.delivered_bits_per_s;
    let delivered = delivered.map(|rate| format!("TCP delivers {:.1} Mbit/s", rate / 1e6));
    found.evidence.extend([idle, delivered].into_iter().flatten());
    Ok(found)
}

/// Of a path that is twice as fast.
fn gain(mount: &Mounted<'_>, floor: Floor) -> Gain {
    let known = mount.total().means().zip(mount.rates.total.outstanding_mean);
    let Some((means, outstanding)) = known else {
        return Gain::unpredicted("there are no times of calls");
    };
    model::faster_service(outstanding, means.rtt_ms, floor.ms, 2.0)
}

/// The floor, and the round trip at the quieter one of the two samples.
fn standing(mount: &Mounted<'_>, floor: Floor) -> Option<(Floor, f64)> {
    let (before, now) = mount.smoothed_ms();
    Some((floor, now?.min(before?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Evidence;
    use crate::testing::{files, found, is_fine, is_quiet, mount};

    /// Ten seconds in which `bytes` were written, with this round trip at both samples.
    fn evidence(bytes: u64, rtt_ms: [f64; 2], more: &str, idle_ticks: u32) -> Evidence {
        let ss = |rtt: f64| {
            format!("ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:{rtt}/1 minrtt:0.2{more}\n")
        };
        let write = format!("WRITE: 1000 1000 0 {bytes} 0 60000 20000 81000 0");
        let now = mount("rw,addr=10.0.0.1", &[&write]).replace("age:\t1234", "age:\t1244");
        files(&[
            ("1/proc/uptime", "1000.0 0\n"),
            ("1/proc/self/mountstats", &mount("rw,addr=10.0.0.1", &["WRITE: 0 0 0 0 0 0 0 0 0"])),
            ("1/proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\n"),
            ("1/ss.txt", &ss(rtt_ms[0])),
            ("2/proc/uptime", "1010.0 0\n"),
            ("2/proc/self/mountstats", &now),
            ("2/proc/stat", &format!("cpu 0 0 {} {idle_ticks} 0 0 0 0 0 0\n", 1000 - idle_ticks)),
            ("2/ss.txt", &ss(rtt_ms[1])),
        ])
    }

    const MUCH: u64 = 50_000_000;

    #[test]
    fn a_queue_that_stands_is_a_rate_that_is_used_up() {
        let found = found(&RULE, &evidence(MUCH, [25.0, 22.0], " delivery_rate 40000000bps", 900));
        assert!(found.what.contains("22.0 ms and was 0.20 ms"), "{found:?}");
        let Gain::Faster { least, most, .. } = found.gain else { panic!("{found:?}") };
        assert!((1.8..=2.0).contains(&least) && (1.8..=2.0).contains(&most), "{least} {most}");
        assert!(found.evidence.iter().any(|line| line.contains("40.0 Mbit/s")), "{found:?}");
    }

    #[test]
    fn a_round_trip_near_its_minimum_is_fine_also_when_it_was_long_for_a_moment() {
        is_fine(&RULE, &evidence(MUCH, [4.0, 4.5], "", 900));
        is_fine(&RULE, &evidence(MUCH, [4.0, 45.0], "", 900));
    }

    #[test]
    fn what_waits_for_processors_for_the_peer_or_for_nothing_is_no_queue_of_the_network() {
        is_quiet(&RULE, &evidence(MUCH, [25.0, 22.0], "", 50));
        is_quiet(&RULE, &evidence(MUCH, [25.0, 22.0], " rwnd_limited:9ms(90.0%)", 900));
        is_quiet(&RULE, &evidence(MUCH, [25.0, 22.0], " delivery_rate 900000000bps", 900));
        is_quiet(&RULE, &evidence(100_000, [25.0, 22.0], "", 900));
    }
}
