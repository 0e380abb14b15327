//! The server's disks are busy.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Gain, Judged, Layer, Severity};
use crate::limits::Threshold;

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
    explanation: "A disk that is busy nearly all the time, with requests that wait, is what calls \
                  wait for. With one that is far busier than the others the load is not spread.",
    remedy: "More memory for reads; a log on fast stable storage for writes; the load over more \
             disks.",
    gain: "Of a load that is spread evenly: up to the ratio of the busiest disk to the mean.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if case.server.is_none() || case.host.is_lifetime {
        return Judged::Quiet;
    }
    let Some(seconds) = case.host.seconds else { return Judged::Quiet };
    // Parts of disks, and what lies on others, would count twice; RAM and loops are none.
    let is_disk = |name: &str| {
        let virtual_ones = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];
        let is_part = name.starts_with("sd") && name.ends_with(|one: char| one.is_ascii_digit())
            || name.starts_with("nvme") && name.contains('p');
        !is_part && !virtual_ones.iter().any(|begin| name.starts_with(begin))
    };
    let disks = case.host.disks.iter().filter(|disk| is_disk(&disk.name));
    let busy: Vec<(f64, &str, f64)> = disks
        .filter(|disk| disk.reads + disk.writes > 0)
        .map(|disk| {
            let share = disk.busy_ms as f64 / 1e3 / seconds;
            (share, disk.name.as_str(), disk.wait_ms().unwrap_or(0.0))
        })
        .collect();
    let Some((share, name, wait_ms)) = busy.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))
    else {
        return Judged::Quiet;
    };
    let share = share.min(1.0);
    let numbers =
        format!("disk {name} is busy {:.0} %, a request takes {wait_ms:.1} ms", share * 100.0);
    if share < case.limit(&RULE, "busy") || wait_ms < case.limit(&RULE, "wait_ms") {
        return Judged::Fine(numbers);
    }
    let mean = busy.iter().map(|(share, _, _)| share.min(1.0)).sum::<f64>() / busy.len() as f64;
    let skew = share / mean;
    let is_skewed = busy.len() > 1 && skew > case.limit(&RULE, "skew");
    let remedy = match is_skewed {
        true => "spread the exported data over the disks (iostat -x 1 shows the idle ones)",
        false => "iostat -x 1: reads want memory, writes a log on fast stable storage",
    };
    let gain = match is_skewed {
        true => Gain::faster("disk requests", (1.0, skew), "an even load"),
        false => Gain::unpredicted("what faster storage takes for these requests is not known"),
    };
    let mut found = Found::new(&RULE, numbers, remedy).gain(gain);
    if is_skewed {
        found = found.evidence(format!("{skew:.1} times the mean of {} disks", busy.len()));
    }
    if let Some(wait) = case.host.processors.and_then(|all| all.share(all.io_wait)) {
        found = found.evidence(format!("processors wait for disks {:.0} %", wait * 100.0));
    }
    found.into()
}

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
