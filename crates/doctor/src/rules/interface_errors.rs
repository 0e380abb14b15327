//! Network interfaces report errors, drops, or half a duplex.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Gain, Judged, Layer, Severity};
use crate::limits::Threshold;

pub(super) static RULE: Rule = Rule {
    name: "interface-errors",
    about: About::Host,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/net/dev", "/sys/class/net/*/duplex", "/sys/class/net/*/statistics"],
    thresholds: &[
        Threshold { name: "packets_min", default: 1000.0, of: "fewest packets for a finding" },
        Threshold { name: "events_min", default: 10.0, of: "errors and drops, else it is chance" },
        Threshold { name: "share", default: 0.00025, of: "errors and drops among the packets" },
        Threshold { name: "collisions", default: 0.05, of: "collisions among packets sent" },
        Threshold { name: "collisions_high", default: 0.1, of: "the same, which is certainly bad" },
    ],
    source: "Sun 1990, section 4.2 (0.025 % of errors; collisions of 5 % possible, 10 % certain: \
             history)",
    explanation: "Errors are of the cable, the plug or the card; drops of a ring that is too small \
                  or a host that is too slow. Half a duplex, with collisions, is an end that was \
                  set by hand where the other negotiates.",
    remedy: "Another cable or port; `ethtool -G` for a larger ring; autonegotiation on both ends.",
    gain: "Cannot be predicted: what a lost packet costs depends on where it is lost.",
    explained_by: &[],
    judge,
};

struct Worst {
    weight: f64,
    what: String,
    is_bad: bool,
    kinds: Vec<String>,
}

/// Which errors the kernel tells apart, of those that there have been.
fn kinds(case: &Case<'_>, device: &str) -> Vec<String> {
    const KINDS: [(&str, &str); 6] = [
        ("rx_crc_errors", "broken checksums"),
        ("rx_fifo_errors", "full queues of the card"),
        ("rx_frame_errors", "broken frames"),
        ("rx_length_errors", "wrong lengths"),
        ("rx_missed_errors", "packets that no buffer was there for"),
        ("tx_carrier_errors", "losses of the carrier"),
    ];
    let count =
        |name: &str| case.evidence.number(&format!("sys/class/net/{device}/statistics/{name}"));
    let known = KINDS.iter().filter_map(|(name, what)| Some((count(name)?, what)));
    known
        .filter(|(count, _)| *count > 0.0)
        .map(|(count, what)| format!("{count:.0} {what}"))
        .collect()
}

/// Errors and drops among the packets, from which it is high: a guess.
const HIGH_SHARE: f64 = 0.01;

fn judge(case: &Case<'_>) -> Judged {
    let setting =
        |name: &str, what: &str| case.evidence.setting(&format!("sys/class/net/{name}/{what}"));
    let mut worst: Option<Worst> = None;
    let mut seen = 0;
    for device in case.host.devices.iter().filter(|device| device.name != "lo") {
        let (received, sent) = (device.received, device.sent);
        let packets = received.packets.saturating_add(sent.packets);
        if (packets as f64) < case.limit(&RULE, "packets_min") {
            continue;
        }
        seen += 1;
        let bad = received.errors + received.drops + received.overruns + sent.errors + sent.drops;
        let share = bad as f64 / packets as f64;
        let collisions = device.collisions as f64 / (sent.packets as f64).max(1.0);
        let is_half = setting(&device.name, "duplex") == Some("half");
        let is_chance = (bad as f64) < case.limit(&RULE, "events_min");
        if share > case.limit(&RULE, "share") && !is_chance
            || collisions > case.limit(&RULE, "collisions")
            || is_half
        {
            let half = if is_half { "; half duplex" } else { "" };
            let collided = match device.collisions {
                0 => String::new(),
                count => {
                    format!("; {count} collisions ({:.1} % of what it sent)", collisions * 100.0)
                }
            };
            let what = format!(
                "{}: {bad} errors and drops in {packets} packets ({:.3} %){collided}{half}",
                device.name,
                share * 100.0
            );
            let is_bad =
                share > HIGH_SHARE || is_half || collisions > case.limit(&RULE, "collisions_high");
            let weight = share + collisions + if is_half { 1.0 } else { 0.0 };
            if worst.as_ref().is_none_or(|other| weight > other.weight) {
                let kinds = kinds(case, &device.name);
                worst = Some(Worst { weight, what, is_bad, kinds });
            }
        }
    }
    match worst {
        Some(Worst { what, is_bad, kinds, .. }) => {
            let found = Found::new(&RULE, what, "ethtool -S DEVICE; ethtool DEVICE; another cable");
            let found = match kinds.is_empty() {
                true => found,
                false => found.evidence(format!("since the boot: {}", kinds.join(", "))),
            };
            found
                .severity(if is_bad { Severity::High } else { Severity::Medium })
                .against("drops of packets that nobody wanted (multicast, VLANs) count, too")
                .gain(Gain::unpredicted("what a lost packet costs depends on where it is lost"))
                .into()
        }
        None if seen > 0 => Judged::Fine(format!("{seen} interfaces without errors")),
        None => Judged::Quiet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine};

    fn dev(drops: u64) -> String {
        format!("Inter-| x\n face | y\n  eth0: 9 9000 0 {drops} 0 0 0 0 9 1000 0 0 0 0 0 0\n")
    }

    #[test]
    fn errors_and_half_a_duplex_are_found() {
        let evidence = files(&[("proc/net/dev", &dev(40))]);
        assert!(found(&RULE, &evidence).what.starts_with("eth0: 40 errors and drops in 10000"));
        let crc = ("sys/class/net/eth0/statistics/rx_crc_errors", "31\n");
        let known = found(&RULE, &files(&[("proc/net/dev", &dev(40)), crc]));
        assert_eq!(known.evidence, ["since the boot: 31 broken checksums"]);
        let half = [("proc/net/dev", &*dev(0)), ("sys/class/net/eth0/duplex", "half\n")];
        assert_eq!(found(&RULE, &files(&half)).severity, Severity::High);
    }

    #[test]
    fn the_guides_limits_of_collisions_hold() {
        let of = |collisions: u64| {
            files(&[(
                "proc/net/dev",
                &dev(0).replace("1000 0 0 0 0 0 0", &format!("1000 0 0 0 {collisions} 0 0")),
            )])
        };
        let (possible, certain) = (found(&RULE, &of(60)), found(&RULE, &of(120)));
        assert!(possible.what.contains("60 collisions (6.0 % of what it sent)"), "{possible:?}");
        assert_eq!((possible.severity, certain.severity), (Severity::Medium, Severity::High));
        is_fine(&RULE, &of(40));
    }

    #[test]
    fn a_sound_interface_is_fine() {
        is_fine(&RULE, &files(&[("proc/net/dev", &dev(0))]));
        is_fine(&RULE, &files(&[("proc/net/dev", &dev(9))]));
    }
}
