//! rsize and wsize are small.

use super::{About, Case, Found, Gain, Judged, Layer, NoFinding, Rule, Severity, Threshold};
use crate::model;
use crate::subject::{Group, Mounted};

pub(super) static RULE: Rule = Rule {
    name: "small-transfers",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "high_bytes", default: 32_768.0, of: "bytes, below which it is high" },
        Threshold { name: "bytes", default: 262_144.0, of: "bytes, below which it is reported" },
        Threshold { name: "gain", default: 1.2, of: "predicted gain, from which that is medium" },
        Threshold { name: "time_share", default: 0.1, of: "share of the time, else it is low" },
        Threshold { name: "full", default: 0.5, of: "part of its size that a call uses, else low" },
    ],
    source: "nfs(5) (1 MiB at most, negotiated); Azure NetApp Files (256 KiB); AWS EFS performance \
             tips (1 MiB)",
    explanation: "READ and WRITE carry at most rsize and wsize bytes. Small ones cost a call, with \
                  its headers, interrupts and round trip, for every few KiB.",
    remedy: "Mount without `rsize` and `wsize`: client and server then negotiate the largest size \
             that both support.",
    gain: "By one time for each call and one for each byte, fitted to small calls and to these; \
           without small calls, to TCP's round trip.",
    explained_by: &["udp-mount"],
    judge,
};

/// An operation, its option, and the bytes that this allows.
type Size = (&'static str, &'static str, f64);

fn sizes(mount: &Mounted<'_>) -> Vec<Size> {
    let sizes = [("READ", "rsize"), ("WRITE", "wsize")].into_iter();
    let known = sizes.filter_map(|(name, option)| Some((name, option, mount.number(option)?)));
    known.filter(|(_, _, size)| *size > 0.0).collect()
}

fn listed(sizes: &[Size], one: impl Fn(&str, f64) -> String) -> String {
    let each = sizes.iter().map(|(_, option, size)| one(option, *size));
    each.collect::<Vec<_>>().join(", ")
}

/// The sizes below the threshold.
fn small(case: &Case<'_>) -> Result<Vec<Size>, NoFinding> {
    let known = sizes(case.mount()?);
    let limit = case.limit(&RULE, "bytes");
    let small: Vec<Size> = known.iter().copied().filter(|(_, _, size)| *size < limit).collect();
    match (small.is_empty(), known.is_empty()) {
        (true, true) => Err(NoFinding::NotApplicable),
        (true, false) => Err(NoFinding::Fine(listed(&known, |option, size| {
            format!("{option} {:.0} KiB", size / 1024.0)
        }))),
        (false, _) => Ok(small),
    }
}

fn gain(case: &Case<'_>, moved: &Group, least: f64) -> Gain {
    match moved.means().zip(case.cheapest_ms()) {
        Some((means, cheap)) => {
            let fixed = (cheap.min(means.rtt_ms) * 0.7, cheap.min(means.rtt_ms));
            model::larger_transfers(means.rtt_ms, least, 262_144.0, fixed)
        }
        None => Gain::unpredicted("no small calls to fit the part that does not depend on bytes"),
    }
}

fn judge(case: &Case<'_>) -> Judged {
    let (mount, small) = (case.mount()?, small(case)?);
    let names: Vec<&str> = small.iter().map(|(name, _, _)| *name).collect();
    let (moved, total) = (mount.group(&names), mount.total());
    let share = moved.time_share_of(&total);
    let least = small.iter().map(|(_, _, size)| *size).fold(f64::INFINITY, f64::min);
    let gain = gain(case, &moved, least);
    let bytes = moved.sent_bytes.max(moved.received_bytes) as f64;
    let bytes_of_call = bytes / (moved.calls as f64).max(1.0);
    // Where nobody counts bytes, they may be.
    let is_full = bytes == 0.0 || bytes_of_call >= case.limit(&RULE, "full") * least;
    let pays = matches!(gain, Gain::Faster { least, .. } if least > case.limit(&RULE, "gain"));
    let severity = match share > case.limit(&RULE, "time_share") && is_full {
        true if least < case.limit(&RULE, "high_bytes") => Severity::High,
        true if pays => Severity::Medium,
        _ => Severity::Low,
    };
    let sizes = listed(&small, |option, size| format!("{option}={size:.0}"));
    let what = format!("transfers are small ({sizes}){}", mount.of_time(share));
    Found::new(&RULE, what, REMEDY)
        .of_settings()
        .severity(severity)
        .evidence(format!("{} READs and WRITEs of {} calls", moved.calls, total.calls))
        .against("some servers offer no more: the kernel takes the smaller of both")
        .gain(gain)
        .evidence_if(bytes > 0.0, || {
            format!("{:.1} KiB in each, with headers", bytes_of_call / 1024.0)
        })
        .against_if(!is_full, "calls carry less than they may: the program makes them small")
        .into()
}

const REMEDY: &str = "mount again without rsize and wsize, or with rsize=1048576,wsize=1048576";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, mount, one};

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
    fn calls_that_a_program_makes_small_are_not_blamed_on_the_mount() {
        let read = READ.replace("4200000", "1100000");
        let text = mount("rw,rsize=4096,wsize=1048576", &[&read, GETATTR]);
        let found = found(&RULE, &one(&text));
        assert_eq!(found.severity, Severity::Low);
        assert!(found.against[1].starts_with("calls carry less"), "{found:?}");
    }

    #[test]
    fn without_small_calls_the_round_trip_is_what_each_costs() {
        // 0.6 ms a call, 0.3 of that the way: 64 times as much in 19.5 ms.
        let text = mount("rw,addr=10.0.0.1,rsize=4096,wsize=1048576", &[READ]);
        let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:0.3/1 minrtt:0.3\n";
        let of = |files: &crate::Evidence| found(&RULE, files).gain;
        let Gain::Faster { least, most, .. } =
            of(&files(&[("proc/self/mountstats", &text), ("ss.txt", ss)]))
        else {
            panic!("a round trip is known");
        };
        assert!((1.4..1.6).contains(&least) && (1.9..2.0).contains(&most), "{least} {most}");
        assert!(matches!(of(&one(&text)), Gain::Unpredicted(_)));
    }

    #[test]
    fn large_ones_are_fine() {
        is_fine(&RULE, &one(&mount("rw,rsize=1048576,wsize=1048576", &[READ, GETATTR])));
    }
}
