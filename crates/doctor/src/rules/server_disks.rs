//! The server's disks are busy.

use counters::host::disk::Disk;

use super::{
    About, Case, Found, Gain, Judged, Layer, NoFinding, Rule, Severity, Threshold, fine_if,
};

pub(super) static RULE: Rule = Rule {
    name: "server-disks",
    about: About::Server,
    layer: Layer::Storage,
    severity: Severity::High,
    needs: &["/proc/diskstats", "/proc/stat"],
    thresholds: &[
        Threshold { name: "busy", default: 0.8, of: "share of the time in which a disk is busy" },
        Threshold { name: "wait_ms", default: 5.0, of: "mean time of its requests, ms" },
        Threshold { name: "skew", default: 1.5, of: "times the mean of the disks in use" },
    ],
    source: "Sun 1990, chapters 3 and 5 (spread the load); the thresholds are ours",
    explanation: "Calls wait for a disk that is busy nearly all the time and has requests waiting. \
                  If one disk is far busier than the others, the load is not spread.",
    remedy: "More memory for reads; a log on fast stable storage for writes; the load over more \
             disks.",
    gain: "That of an evenly spread load: up to the ratio of the busiest disk to the mean.",
    explained_by: &[],
    judge,
};

/// Parts of disks, and what lies on others, would count twice; RAM and loops are none.
fn is_disk(name: &str) -> bool {
    let virtual_ones = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];
    let is_part = name.starts_with("sd") && name.ends_with(|one: char| one.is_ascii_digit())
        || name.starts_with("nvme") && name.contains('p');
    !is_part && !virtual_ones.iter().any(|begin| name.starts_with(begin))
}

/// The disks that did anything, each with its share of the time, of 1.
fn used<'a>(case: &Case<'a>) -> Result<Vec<(f64, &'a Disk)>, NoFinding> {
    case.server()?;
    let seconds = case.host.seconds.filter(|_| !case.host.is_lifetime);
    let seconds = seconds.ok_or(NoFinding::NotApplicable)?;
    let disks = case.host.disks.iter().filter(|disk| is_disk(&disk.name));
    let used = disks.filter(|disk| disk.reads > 0 || disk.writes > 0);
    Ok(used.map(|disk| (disk.busy_ms as f64 / 1e3 / seconds, disk)).collect())
}

/// How many times busier the busiest is than the mean, if that is a skew.
fn skew(case: &Case<'_>, used: &[(f64, &Disk)], busiest: f64) -> Option<f64> {
    let mean = used.iter().map(|(share, _)| share.min(1.0)).sum::<f64>() / used.len() as f64;
    let skew = busiest / mean;
    (used.len() > 1 && skew > case.limit(&RULE, "skew")).then_some(skew)
}

fn judge(case: &Case<'_>) -> Judged {
    let used = used(case)?;
    let busiest = used.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0));
    let (share, disk) = busiest.ok_or(NoFinding::NotApplicable)?;
    let (share, wait_ms) = (share.min(1.0), disk.wait_ms().unwrap_or(0.0));
    let numbers = format!(
        "disk {} is busy {:.0} %, a request takes {wait_ms:.1} ms",
        disk.name,
        share * 100.0
    );
    fine_if(share < case.limit(&RULE, "busy") || wait_ms < case.limit(&RULE, "wait_ms"), &numbers)?;
    let mut found = match skew(case, &used, share) {
        Some(skew) => Found::new(&RULE, numbers, SPREAD)
            .gain(Gain::faster("disk requests", (1.0, skew), "an even load"))
            .evidence(format!("{skew:.1} times the mean of {} disks", used.len())),
        None => Found::new(&RULE, numbers, FASTER)
            .unpredicted("what faster storage takes for these requests is not known"),
    };
    let wait = case.host.processors.and_then(|all| all.share(all.io_wait));
    found
        .evidence
        .extend(wait.map(|wait| format!("processors wait for disks {:.0} %", wait * 100.0)));
    Ok(found)
}

const SPREAD: &str = "spread the exported data over the disks (iostat -x 1 shows the idle ones)";
const FASTER: &str = "iostat -x 1: reads want memory, writes a log on fast stable storage";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, server_twice};

    const IDLE: &str = "8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_busy_disk_is_found_and_an_uneven_load_named() {
        let now = "8 0 sda 100 0 0 900 400 0 0 9000 0 9700 9900\n\
            8 16 sdb 10 0 0 9 0 0 0 0 0 90 90\n8 1 sda1 100 0 0 900 400 0 0 9000 0 9700 9900\n";
        let found = found(&RULE, &server_twice("proc/diskstats", IDLE, now));
        assert!(
            found.what.starts_with("disk sda is busy 97 %, a request takes 19.8 ms"),
            "{found:?}"
        );
        assert!(found.evidence[0].contains("times the mean of 2 disks"), "{found:?}");
    }

    #[test]
    fn idle_disks_are_fine() {
        let now = "8 0 sda 100 0 0 90 0 0 0 0 0 97 99\n8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n";
        is_fine(&RULE, &server_twice("proc/diskstats", IDLE, now));
    }
}
