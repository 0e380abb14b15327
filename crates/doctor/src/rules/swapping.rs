//! The host moves memory to a disk and back.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "swapping",
    about: About::Host,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["/proc/vmstat, twice"],
    thresholds: &[Threshold {
        name: "pages_per_s",
        default: 100.0,
        of: "pages that come back from swap, or go there, a second",
    }],
    source: "proc(5), vmstat (`pswpin`, `pswpout`); the threshold is a guess",
    explanation: "A program whose memory is swapped out waits for the disk, whatever the mount \
                  does; and cached data of a server are evicted first.",
    remedy: "Find what uses the memory (`ps --sort -rss`); more memory.",
    gain: "Cannot be predicted: who waits for which page is not counted.",
    explained_by: &["low-memory"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let host = case.host;
    let both = host.pages.as_ref().zip(host.seconds.filter(|seconds| *seconds > 0.0));
    let (pages, seconds) = both.filter(|_| !host.is_lifetime).ok_or(NoFinding::NotApplicable)?;
    let of = |name| pages.of(name).unwrap_or(0);
    let (back, out) = (of("pswpin"), of("pswpout"));
    let rate = back.saturating_add(out) as f64 / seconds;
    let numbers = format!("{rate:.0} pages/s swapped ({back} in, {out} out)");
    match rate > case.limit(&RULE, "pages_per_s") {
        true => Found::new(&RULE, numbers, "ps -eo rss,comm --sort -rss | head")
            .unpredicted("who waits for which page is not counted")
            .into(),
        false => Err(NoFinding::Fine("no swapping".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, host_twice, is_fine, is_quiet};

    fn evidence(back: u64) -> crate::Evidence {
        let text = |back: u64| format!("nr_dirty 7\npswpin {back}\npswpout 100\n");
        host_twice("proc/vmstat", &text(50), &text(50 + back), &[])
    }

    #[test]
    fn pages_that_come_and_go_are_found() {
        assert!(found(&RULE, &evidence(5_000)).what.starts_with("500 pages/s swapped (5000 in"));
    }

    #[test]
    fn none_are_fine_and_since_the_boot_says_nothing() {
        is_fine(&RULE, &evidence(0));
        is_quiet(&RULE, &files(&[("proc/vmstat", "nr_dirty 7\npswpin 99999999\n")]));
    }
}
