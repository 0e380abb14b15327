//! The server's storage takes the time of writing.

use super::{About, Case, Rule, Threshold};
use crate::finding::{
    Certainty, Found, Gain, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if,
};
use crate::floor;
use crate::model;
use crate::stable;
use crate::subject::{Group, Mounted};

pub(super) static RULE: Rule = Rule {
    name: "slow-commit",
    about: About::Mount,
    layer: Layer::Storage,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "calls_min", default: 20.0, of: "calls that must be stable" },
        Threshold { name: "times", default: 4.0, of: "times what the cheapest call takes" },
        Threshold { name: "ms", default: 2.0, of: "mean time of such a call, ms" },
        Threshold { name: "share", default: 0.2, of: "share of the time of all calls" },
    ],
    source: "Sun 1990, chapter 3 (a write log where 5 to 15 % of the mix are writes); Boumenot \
             2002; the thresholds are ours",
    explanation: "COMMIT, and what changes names and attributes, is answered when it is on stable \
                  storage. Where that takes several times as long as a GETATTR over the same path, \
                  the disk of the server is waited for. Where no call shows what the path takes, \
                  or the mount's own bytes may queue on it, TCP's smoothed round trip is taken off.",
    remedy: "Storage that is stable without a disk (a battery, an SSD with power-loss protection) \
             for the log of the server's file system; for stable WRITEs nfskit serve --write-log \
             FILE on such a device. Not `async`, which loses data silently.",
    gain: "By the share of the time, when such a call takes as long as one or two of the \
           cheapest (0.9 and 1.7 were measured with a server in memory) and a write of a log of 30 \
           to 200 us: the model of nfskit model whatif write-log=DEVICE.",
    explained_by: &["full-path", "tcp-loss"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let (stable, total) = (stable::calls(mount), mount.total());
    let times = stable.means().zip(case.cheapest_ms());
    let (means, cheap) = times.ok_or(NoFinding::NotApplicable)?;
    let network_most = case.floor().map_or(0.0, |floor| floor.most_ms);
    not_applicable_if((stable.calls as f64) < case.limit(&RULE, "calls_min"))?;
    let (share, ms) = (stable.time_share_of(&total), means.rtt_ms);
    let numbers = format!(
        "what must be stable takes {ms:.1} ms a call ({:.0} % of the calls' time), the least \
         {cheap:.2} ms",
        share * 100.0
    );
    fine_if(ms <= case.limit(&RULE, "ms") || ms <= case.limit(&RULE, "times") * cheap, &numbers)?;
    // Otherwise network-or-server has it: less than half is certainly not the network's.
    not_applicable_if(ms <= 2.0 * network_most)?;
    let longer = longer(mount, cheap);
    let is_near = ms <= case.limit(&RULE, "times") * network_most;
    let is_in_doubt = is_near || longer.is_some();
    let is_much = share > case.limit(&RULE, "share");
    Found::new(&RULE, numbers, remedy(mount, &stable))
        .severity(if is_much { Severity::High } else { Severity::Low })
        .certainty(if is_in_doubt { Certainty::Possible } else { Certainty::Likely })
        .evidence(format!("{} calls that must be stable of {}", stable.calls, total.calls))
        .against_if(is_near, &format!("{network_most:.1} ms may be the network's"))
        .against_if(longer.is_some(), &longer.unwrap_or_default())
        .against("WRITEs that wait for the disk under memory pressure look the same")
        .gain(gain(mount, &stable, share, (ms, cheap.max(network_most))))
        .into()
}

/// TCP's round trip has become longer between the samples, than calls take that do least: they may
/// have been made before.
fn longer(mount: &Mounted<'_>, cheap_ms: f64) -> Option<String> {
    let (before, now) = mount.smoothed_ms();
    let (before, now) = before.zip(now)?;
    let says = format!(
        "TCP's round trip was {before:.2} ms and is {now:.2} ms: a path that has become longer \
         since the light calls looks the same"
    );
    (now > 2.0 * before.max(cheap_ms)).then_some(says)
}

/// Of a write log: `times` are of a stable call and of the cheapest one, ms.
fn gain(mount: &Mounted<'_>, stable: &Group, share: f64, (ms, cheap): (f64, f64)) -> Gain {
    // By Little's law; counters since the beginning have all the time in them in which nobody
    // called.
    let seconds = mount.rates.span.seconds.filter(|_| !mount.is_lifetime());
    let on_way = seconds.map_or(1.0, |seconds| stable.calls as f64 / seconds * ms / 1e3);
    match (share > 0.02, floor::cheapest_call_ms(mount)) {
        // What it does besides takes as long as one of the cheapest calls, or as two (0.9 and 1.7
        // were measured with the drill's memory).
        (true, Some(_)) => model::logged(share, ms, (cheap, 2.0 * cheap), on_way),
        (true, None) => Gain::unpredicted("no call shows what the server takes without its disk"),
        (false, _) => Gain::unpredicted("it takes little of the time now"),
    }
}

/// What to do on the server; where WRITEs are stable, also what ours has for them.
fn remedy(mount: &Mounted<'_>, stable: &Group) -> String {
    const LOG: &str = "on the server: its file system's log on storage with a battery or \
                       power-loss protection";
    let writes = mount.group(&["WRITE"]);
    if !stable::has_writes(mount) || writes.calls == 0 {
        return LOG.to_owned();
    }
    format!(
        "{LOG}; for the WRITEs ({:.0} % of this time) nfskit serve DIR --write-log FILE, on such a \
         device",
        100.0 * writes.time_share_of(stable)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, is_quiet, mount, one};

    fn evidence(ms: u64) -> crate::Evidence {
        let commit = format!("COMMIT: 100 100 0 0 0 0 {ms} {ms} 0");
        one(&mount("rw", &["GETATTR: 1000 1000 0 0 0 0 300 310 0", &commit]))
    }

    #[test]
    fn commits_that_wait_for_a_disk_are_found() {
        let found = found(&RULE, &evidence(1_500));
        assert!(found.what.contains("15.0 ms a call (83 %"), "{found:?}");
        let Gain::Faster { least, most, .. } = found.gain else { panic!("{found:?}") };
        assert!(least > 4.0 && (5.0..6.0).contains(&most), "{least} {most}");
        assert!(!found.remedy.contains("--write-log"), "it answers no COMMIT: {found:?}");
    }

    #[test]
    fn a_program_that_only_commits_is_compared_with_the_round_trip() {
        let commit = "COMMIT: 100 100 0 0 0 0 1000 1010 0";
        let stats = mount("rw,addr=10.0.0.1", &[commit]);
        let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:0.3/1 minrtt:0.2\n";
        is_quiet(&RULE, &one(&stats));
        let found = found(&RULE, &files(&[("proc/self/mountstats", &stats), ("ss.txt", ss)]));
        assert!(found.what.contains("the least 0.20 ms"), "{found:?}");
        let delayed = |smoothed: &str| {
            let ss = ss.replace("rtt:0.3", &format!("rtt:{smoothed}"));
            files(&[("proc/self/mountstats", &stats), ("ss.txt", &ss)])
        };
        assert_eq!(found.certainty, Certainty::Likely);
        let half = crate::testing::found(&RULE, &delayed("4.0"));
        assert_eq!(half.certainty, Certainty::Possible, "{half:?}");
        is_quiet(&RULE, &delayed("9.9"));
    }

    #[test]
    fn light_calls_that_may_be_of_another_time_leave_a_doubt() {
        let ss =
            |ms: &str| format!("ESTAB 0 0 10.0.0.2:7 10.0.0.1:2049\n\t rtt:{ms}/1 minrtt:0.1\n");
        let of = |before: &str| {
            let stats = |calls: [&str; 2]| mount("rw,addr=10.0.0.1", &calls);
            let first = stats(["GETATTR: 0 0 0 0 0 0 0 0 0", "COMMIT: 0 0 0 0 0 0 0 0 0"]);
            let commits = "COMMIT: 900 900 0 90000 0 0 9000 9010 0";
            let last = stats(["GETATTR: 100 100 0 0 0 0 30 30 0", commits]);
            let last = last.replace("age:\t1234", "age:\t1244");
            let (before, now) = (ss(before), ss("9.9"));
            let files = [("1/ss.txt", &*before), ("2/ss.txt", &*now)];
            found(&RULE, &crate::testing::host_twice("proc/self/mountstats", &first, &last, &files))
        };
        let steady = of("9.8");
        assert_eq!((steady.certainty, steady.against.len()), (Certainty::Likely, 1), "{steady:?}");
        let changed = of("0.1");
        assert_eq!(changed.certainty, Certainty::Possible, "{changed:?}");
        assert!(changed.against[0].contains("was 0.10 ms and is 9.90 ms"), "{changed:?}");
    }

    #[test]
    fn small_writes_without_commits_are_stable_ones() {
        let of = |bytes: u64, commits: u32| {
            let write = format!("WRITE: 500 500 0 {bytes} 0 0 5000 5010 0");
            let commit = format!("COMMIT: {commits} {commits} 0 0 0 0 {commits} {commits} 0");
            one(&mount("rw", &["GETATTR: 1000 1000 0 0 0 0 300 310 0", &write, &commit]))
        };
        let found = found(&RULE, &of(4_200_000, 0));
        assert!(found.what.contains("10.0 ms a call"), "{found:?}");
        assert!(found.remedy.contains("(100 % of this time) nfskit serve DIR --write-log FILE"));
        is_quiet(&RULE, &of(420_000_000, 0));
        is_fine(&RULE, &of(4_200_000, 100));
    }

    #[test]
    fn quick_ones_are_fine() {
        is_fine(&RULE, &evidence(80));
    }
}
