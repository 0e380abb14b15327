//! rsize and wsize are small.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Gain, Judged, Layer, Severity};
use crate::floor;
use crate::limits::Threshold;
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "small-transfers",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "high_bytes", default: 32_768.0, of: "bytes, below which it is high" },
        Threshold { name: "bytes", default: 262_144.0, of: "bytes, below which it is told" },
        Threshold { name: "gain", default: 1.2, of: "predicted gain, from which that is medium" },
        Threshold { name: "time_share", default: 0.1, of: "share of the time, else it is low" },
    ],
    source: "nfs(5) (1 MiB at most, negotiated); Azure NetApp Files (256 KiB); AWS EFS performance \
             tips (1 MiB)",
    explanation: "READ and WRITE carry at most rsize and wsize bytes. Small ones cost a call, with \
                  its headers, interrupts and round trip, for every few KiB.",
    remedy: "Without `rsize` and `wsize` the largest that both ends know is taken.",
    gain: "By one time for each call and one for each byte, fitted to small calls and to these.",
    explained_by: &["udp-mount"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let Some(mount) = case.mount else { return Judged::Quiet };
    let sizes = [("READ", "rsize"), ("WRITE", "wsize")];
    let known: Vec<(&str, &str, f64)> = sizes
        .into_iter()
        .filter_map(|(name, option)| Some((name, option, mount.number(option)?)))
        .filter(|(_, _, size)| *size > 0.0)
        .collect();
    let limit = case.limit(&RULE, "bytes");
    let small: Vec<&(&str, &str, f64)> =
        known.iter().filter(|(_, _, size)| *size < limit).collect();
    if small.is_empty() {
        let said =
            known.iter().map(|(_, option, size)| format!("{option} {:.0} KiB", size / 1024.0));
        return match known.is_empty() {
            true => Judged::Quiet,
            false => Judged::Fine(said.collect::<Vec<_>>().join(", ")),
        };
    }
    let total = mount.total();
    let names: Vec<&str> = small.iter().map(|(name, _, _)| *name).collect();
    let moved = mount.group(&names);
    let share = moved.time_share_of(&total);
    let least = small.iter().map(|(_, _, size)| *size).fold(f64::INFINITY, f64::min);
    let said = small.iter().map(|(_, option, size)| format!("{option}={size:.0}"));
    let what = format!(
        "transfers are small ({}){}",
        said.collect::<Vec<_>>().join(", "),
        mount.of_time(share)
    );
    let gain = match (moved.means(), floor::cheapest_call_ms(mount)) {
        (Some(means), Some(cheap)) => {
            let fixed = (cheap.min(means.rtt_ms) * 0.7, cheap.min(means.rtt_ms));
            model::larger_transfers(means.rtt_ms, least, 262_144.0, fixed)
        }
        _ => Gain::unpredicted("no small calls to fit the part that does not depend on bytes"),
    };
    let pays = matches!(gain, Gain::Faster { least, .. } if least > case.limit(&RULE, "gain"));
    let severity = match share > case.limit(&RULE, "time_share") {
        true if least < case.limit(&RULE, "high_bytes") => Severity::High,
        true if pays => Severity::Medium,
        _ => Severity::Low,
    };
    Found::new(
        &RULE,
        what,
        "mount again without rsize and wsize, or with rsize=1048576,wsize=1048576",
    )
    .of_settings()
    .severity(severity)
    .evidence(format!("{} READs and WRITEs of {} calls", moved.calls, total.calls))
    .against("some servers offer no more: the kernel takes the smaller of both")
    .gain(gain)
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one};

    const READ: &str = "READ: 1000 1000 0 0 4200000 1 600 700 0";
    const GETATTR: &str = "GETATTR: 100 100 0 0 0 1 40 45 0";

    #[test]
    fn small_transfers_are_found_and_matter_by_their_time() {
        let text = mount("rw,rsize=4096,wsize=1048576", &[READ, GETATTR]);
        let tiny = found(&RULE, &one(&text));
        assert!(tiny.what.starts_with("transfers are small (rsize=4096): 94 %"), "{tiny:?}");
        assert_eq!(tiny.severity, Severity::High);
        let idle = mount("rw,rsize=4096,wsize=1048576", &[GETATTR]);
        assert_eq!(found(&RULE, &one(&idle)).severity, Severity::Low);
    }

    #[test]
    fn large_ones_are_fine() {
        is_fine(&RULE, &one(&mount("rw,rsize=1048576,wsize=1048576", &[READ, GETATTR])));
    }
}
