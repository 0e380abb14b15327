//! Disks of a host are busy, by what iostat has printed.

use super::{
    About, Case, Found, Gain, Judged, Layer, NoFinding, Rule, Severity, Threshold, fine_if,
};

pub(super) static RULE: Rule = Rule {
    name: "busy-disks",
    about: About::Host,
    layer: Layer::Storage,
    severity: Severity::Medium,
    needs: &["iostat -x 10 2"],
    thresholds: &[
        Threshold { name: "busy", default: 0.8, of: "share of the time that a disk is busy" },
        Threshold { name: "wait_ms", default: 5.0, of: "mean time of a request, ms" },
        Threshold { name: "skew", default: 2.0, of: "times the mean of the disks in use" },
    ],
    source: "Sun 1990, section 5.3 (spread the load over disks); the thresholds are ours",
    explanation: "A disk that is always busy cannot serve more, and each request waits for those \
                  before it. Where other disks are idle, the load is badly spread.",
    remedy: "Spread the data over the disks, or put a log or a cache on faster ones.",
    gain: "Where the load is uneven, that of an even load; otherwise it cannot be predicted.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let used: Vec<_> =
        case.evidence.last.disk_uses.iter().filter(|disk| disk.per_s > 0.0).collect();
    let most =
        used.iter().max_by(|a, b| a.busy.total_cmp(&b.busy)).ok_or(NoFinding::NotApplicable)?;
    let numbers = format!(
        "disk {} is busy {:.0} %, a request takes {:.1} ms",
        most.name,
        most.busy.min(1.0) * 100.0,
        most.wait_ms
    );
    fine_if(
        most.busy < case.limit(&RULE, "busy") || most.wait_ms < case.limit(&RULE, "wait_ms"),
        &numbers,
    )?;
    let mean = used.iter().map(|disk| disk.busy).sum::<f64>() / used.len() as f64;
    let skew = most.busy / mean.max(f64::MIN_POSITIVE);
    let found = Found::new(&RULE, numbers, "iostat -x 1: which disks are idle, and what it writes");
    match used.len() > 1 && skew > case.limit(&RULE, "skew") {
        true => found
            .evidence(format!("{skew:.1} times the mean of {} disks", used.len()))
            .gain(Gain::faster("disk requests", (1.0, skew), "an even load"))
            .into(),
        false => {
            found.unpredicted("what faster storage takes for these requests is not known").into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine};

    fn evidence(rows: &str) -> crate::Evidence {
        files(&[("iostat.txt", &format!("Device r/s w/s r_await w_await %util\n{rows}"))])
    }

    #[test]
    fn a_disk_that_is_always_busy_is_found() {
        let alone = found(&RULE, &evidence("sda 10 90 20 40 97\n"));
        assert!(alone.what.starts_with("disk sda is busy 97 %, a request takes 38.0 ms"));
        let skewed = found(&RULE, &evidence("sda 10 90 20 40 97\nsdb 1 1 1 1 1\nsdc 1 1 1 1 1\n"));
        assert!(skewed.evidence[0].contains("times the mean of 3 disks"), "{skewed:?}");
    }

    #[test]
    fn one_that_is_not_is_fine() {
        is_fine(&RULE, &evidence("sda 10 90 20 40 30\n"));
        is_fine(&RULE, &evidence("sda 100 900 0.5 0.4 97\n"));
    }
}
