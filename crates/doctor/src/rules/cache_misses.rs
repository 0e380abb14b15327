//! What is read is not in the client's memory.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "cache-misses",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Low,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "bytes_min", default: 67_108_864.0, of: "bytes that programs have read" },
        Threshold { name: "share", default: 0.5, of: "share of them that no READ had to fetch" },
    ],
    source: "nfsiostat(8) (bytes that were read, less those that READ fetched)",
    explanation: "Bytes that programs read come from the page cache or over the network. For data \
                  that are read once, it is usual that few come from the cache. For data that are \
                  read again, it means that the memory is too small, or that other clients change \
                  them.",
    remedy: "More memory, or a cache on a local disk (`fsc` with cachefilesd).",
    gain: "Cannot be predicted: whether the same bytes are read again is not counted.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let (bytes, share) =
        mount.rates.bytes.zip(mount.rates.caches.read_share).ok_or(NoFinding::NotApplicable)?;
    let read = bytes.bytes.normal_read;
    not_applicable_if((read as f64) < case.limit(&RULE, "bytes_min"))?;
    let numbers = format!("{:.0} % of the bytes that were read came from memory", share * 100.0);
    match share < case.limit(&RULE, "share") {
        true => Found::new(&RULE, numbers, "free -m: is there memory for what is read again?")
            .against("data that are read once are in no cache")
            .unpredicted("whether bytes are read again is not counted")
            .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one};

    fn reading(server: u64) -> String {
        let bytes = format!("bytes:\t100000000 200 0 0 {server} 200 1 2");
        mount("rw", &[]).replace("bytes:\t100 200 0 0 100 200 1 2", &bytes)
    }

    #[test]
    fn what_is_fetched_every_time_is_found() {
        assert!(found(&RULE, &one(&reading(90_000_000))).what.starts_with("10 %"));
    }

    #[test]
    fn what_is_in_memory_is_not() {
        is_fine(&RULE, &one(&reading(5_000_000)));
    }
}
