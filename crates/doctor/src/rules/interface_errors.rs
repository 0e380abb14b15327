//! Network interfaces report errors, drops, or half a duplex.

use std::fmt;

use counters::host::device::Device;
use counters::sum;

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

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
    explanation: "Errors come from the cable, the plug or the card; drops come from a ring that is \
                  too small or a host that is too slow. Half duplex, with collisions, means that \
                  one end was set by hand while the other negotiates.",
    remedy: "Another cable or port; `ethtool -G` for a larger ring; autonegotiation on both ends.",
    gain: "Cannot be predicted: what a lost packet costs depends on where it is lost.",
    explained_by: &[],
    judge,
};

/// An interface with enough packets to judge it by.
struct Interface<'a> {
    name: &'a str,
    packets: u64,
    /// Errors and drops.
    bad: u64,
    collisions: u64,
    /// Of the packets that it sent.
    collided: f64,
    is_half_duplex: bool,
}

impl<'a> Interface<'a> {
    fn of(case: &Case<'_>, device: &'a Device) -> Option<Self> {
        let Device { name, received, sent, collisions, .. } = device;
        let packets = received.packets.saturating_add(sent.packets);
        let duplex = case.evidence.setting(&format!("sys/class/net/{name}/duplex"));
        let is_used = name != "lo" && packets as f64 >= case.limit(&RULE, "packets_min");
        is_used.then(|| Self {
            name,
            packets,
            bad: sum([received.errors, received.drops, received.overruns, sent.errors, sent.drops]),
            collisions: *collisions,
            collided: *collisions as f64 / (sent.packets as f64).max(1.0),
            is_half_duplex: duplex == Some("half"),
        })
    }

    fn share(&self) -> f64 {
        self.bad as f64 / self.packets as f64
    }

    fn is_bad(&self, case: &Case<'_>) -> bool {
        let is_chance = (self.bad as f64) < case.limit(&RULE, "events_min");
        self.share() > case.limit(&RULE, "share") && !is_chance
            || self.collided > case.limit(&RULE, "collisions")
            || self.is_half_duplex
    }

    fn severity(&self, case: &Case<'_>) -> Severity {
        let is_high = self.share() > HIGH_SHARE
            || self.is_half_duplex
            || self.collided > case.limit(&RULE, "collisions_high");
        if is_high { Severity::High } else { Severity::Medium }
    }

    fn weight(&self) -> f64 {
        self.share() + self.collided + if self.is_half_duplex { 1.0 } else { 0.0 }
    }
}

impl fmt::Display for Interface<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, packets, bad, collisions, .. } = self;
        let percent = self.share() * 100.0;
        write!(f, "{name}: {bad} errors and drops in {packets} packets ({percent:.3} %)")?;
        if *collisions > 0 {
            let percent = self.collided * 100.0;
            write!(f, "; {collisions} collisions ({percent:.1} % of what it sent)")?;
        }
        f.write_str(if self.is_half_duplex { "; half duplex" } else { "" })
    }
}

fn judge(case: &Case<'_>) -> Judged {
    let used: Vec<_> =
        case.host.devices.iter().filter_map(|device| Interface::of(case, device)).collect();
    let bad = used.iter().filter(|interface| interface.is_bad(case));
    // Of two that are as bad, the first.
    let worst = bad.reduce(|worst, one| if one.weight() > worst.weight() { one } else { worst });
    let Some(worst) = worst else {
        return Err(match used.len() {
            0 => NoFinding::NotApplicable,
            count => NoFinding::Fine(format!("{count} interfaces without errors")),
        });
    };
    let kinds = kinds(case, worst.name);
    Found::new(&RULE, worst.to_string(), "ethtool -S DEVICE; ethtool DEVICE; another cable")
        .evidence_if(!kinds.is_empty(), || format!("since the boot: {}", kinds.join(", ")))
        .severity(worst.severity(case))
        .against("drops of unwanted packets (multicast, VLANs) count as well")
        .unpredicted("what a lost packet costs depends on where it is lost")
        .into()
}

/// Which errors the kernel tells apart, of those that there have been.
fn kinds(case: &Case<'_>, device: &str) -> Vec<String> {
    const KINDS: [(&str, &str); 6] = [
        ("rx_crc_errors", "broken checksums"),
        ("rx_fifo_errors", "full queues of the card"),
        ("rx_frame_errors", "broken frames"),
        ("rx_length_errors", "wrong lengths"),
        ("rx_missed_errors", "packets for which there was no buffer"),
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
