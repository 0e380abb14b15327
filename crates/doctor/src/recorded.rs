//! Run records of ours among the evidence: what each says.

use perf::record::{Run, SCHEMA};

use crate::collect::Files;
use crate::reason::of_record;
use crate::rules::{Part, Recorded};
use crate::{Layer, Report};

/// Bytes of a call of which records have the parts.
const KIB: f64 = 8.0;

/// A report of each record, which is taken out of the files.
pub fn reports(files: &mut Files) -> Vec<Report> {
    let is_record = |text: &[u8]| {
        let head = text.get(..HEAD_BYTES).unwrap_or(text);
        let begins = head.iter().find(|byte| !byte.is_ascii_whitespace());
        matches!(begins, Some(b'{' | b'[')) && String::from_utf8_lossy(head).contains(SCHEMA)
    };
    let mut reports = Vec::new();
    for (path, text) in files.take(is_record) {
        let text = String::from_utf8_lossy(&text);
        match runs(&text) {
            Ok(runs) => reports.extend(runs.iter().map(|run| of_record(&path, &recorded(run)))),
            Err(why) => files.note(path, why),
        }
    }
    reports
}

/// The schema stands near the beginning, or before the first large list.
const HEAD_BYTES: usize = 4096;

/// One, or a list of them.
fn runs(text: &str) -> Result<Vec<Run>, String> {
    if !text.trim_start().starts_with('[') {
        return Run::from_json(text).map(|run| vec![run]).map_err(|error| error.to_string());
    }
    let all: Vec<serde_json::Value> =
        serde_json::from_str(text).map_err(|error| format!("not a list of records: {error}"))?;
    let each = all.iter().map(|one| Run::from_json(&one.to_string()));
    each.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn recorded(run: &Run) -> Recorded {
    let target = &run.target;
    let of = target.url.as_ref().or(target.path.as_ref()).unwrap_or(&target.kind);
    let gain = |suffix: &str| {
        let of = |name: &str| run.value(&format!("{name}_gain{suffix}"));
        of("predicted").zip(of("measured"))
    };
    Recorded {
        of: format!("{} of {of}, {}", run.workload.name, run.started),
        parts: cycle(run).unwrap_or_else(|| through_a_mount(run)),
        gain: gain("").or_else(|| gain("_write_stable")),
        warnings: run.warnings.iter().map(|warning| warning.text.clone()).collect(),
    }
}

/// The transaction cycle of a study or a probe; none where it has not all of it.
fn cycle(run: &Run) -> Option<Vec<Part>> {
    let of = |name: &str| run.value(name);
    let part = |name: &str, layer, us: f64| Part { name: name.to_owned(), layer, us: us.max(0.0) };
    Some(vec![
        part("the network round trip (2 T_prop)", Layer::Network, 2.0 * of("t_prop_us")?),
        part("the bytes (T_ser)", Layer::Network, KIB * of("t_ser_us_per_kib")?),
        part("the server's work (T_op)", Layer::Server, of("t_op_us")?),
        part("making it stable (T_B)", Layer::Storage, of("t_b_us")?),
    ])
}

/// What `nfskit study --dir` has of a write.
fn through_a_mount(run: &Run) -> Vec<Part> {
    const PARTS: [(&str, &str, Layer); 8] = [
        ("page_cache", "this host's page cache", Layer::Client),
        ("client_s_queue", "the client's queue", Layer::Client),
        ("client__rest", "the rest of the client", Layer::Client),
        ("network", "the network", Layer::Network),
        ("server", "the server and its storage", Layer::Server),
        ("network_or_server", "network or server", Layer::Server),
        ("write_2", "write(2)", Layer::Client),
        ("fdatasync_2", "fdatasync(2)", Layer::Storage),
    ];
    let part = |(metric, name, layer): &(&str, &str, Layer)| {
        let us = run.value(&format!("write_stable_8k_{metric}_us"))?;
        Some(Part { name: (*name).to_owned(), layer: *layer, us })
    };
    PARTS.iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use perf::record::Tool;

    use super::*;

    fn record(metrics: &[(&str, f64)]) -> String {
        let mut run = Run::new(Tool::default(), "now");
        for (name, value) in metrics {
            run.metric(name, *value, "us");
        }
        run.to_json()
    }

    #[test]
    fn the_part_that_takes_most_is_the_verdict() {
        let metrics =
            [("t_prop_us", 50.0), ("t_ser_us_per_kib", 1.0), ("t_op_us", 30.0), ("t_b_us", 900.0)];
        let mut files = Files::default();
        files.put("probe.json", record(&metrics));
        files.put("dir.json", record(&[("write_stable_8k_network_us", 9.0)]));
        files.put("list.json", format!("[{}]", record(&[])));
        files.put("other.json", "{\"schema\": \"nfskit.run/1\", ");
        files.put("text", "nfskit.run/1");
        let reports = reports(&mut files);
        let verdicts: Vec<&str> = reports.iter().map(|report| report.verdict.as_str()).collect();
        assert!(verdicts[0].starts_with("the network takes 100 %"), "{verdicts:?}");
        assert!(verdicts[1].starts_with("it has no parts"), "{verdicts:?}");
        assert!(verdicts[2].starts_with("making it stable (T_B) takes 87 %"), "{verdicts:?}");
        assert_eq!((files.notes.len(), files.all().count()), (1, 1));
    }
}
