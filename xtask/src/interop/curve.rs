//! `nfskit bench curve` of NFS-Ganesha and of our server in one report.
//!
//! Whether a point holds the rules is for a quiet machine to say; that there are points up to the
//! saturation of both must be so on any. At ours nothing may fail on the way; of a peer the report
//! says what did.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::study::make_export;
use crate::host::child::{finish, text};
use crate::host::nfskit::Server;
use crate::host::report::Report;

const PEER: &str = "both";
const WITHIN: Duration = Duration::from_secs(240);
/// Below the saturation; there is one more above.
const POINTS: usize = 5;

/// Beside the server at `url`, which is Ganesha.
pub(super) fn check(report: &mut Report, scratch: &Path, nfskit: &Path, url: &str) {
    report.check(PEER, "bench curve, two servers in one report", || {
        let export = scratch.join("curve-export");
        make_export(&export)?;
        let ours = Server::start(nfskit, &export)?;
        let (json, html) = (scratch.join("curve.json"), scratch.join("curve.html"));
        let mut command = Command::new(nfskit);
        command.args(["bench", "curve", "--target", &ours.address.url(""), "--target", url]);
        command.args(["--points", &POINTS.to_string(), "--time", "1s", "--warm-up", "300ms"]);
        command.args(["--file-set-max", "8M", "--json"]).arg(&json).arg("--html").arg(&html);
        // Exit code 1 is an invalid point; whatever else there is leaves no record.
        let ended = finish(&mut command, WITHIN, text);
        ours.stop()?;
        let read = |path: &Path| {
            let read = std::fs::read_to_string(path);
            read.map_err(|error| format!("{}: {error}; it ended so: {ended:?}", path.display()))
        };
        let page = read(&html)?;
        if !page.contains("<svg") || !page.contains(url.split('?').next().unwrap_or_default()) {
            return Err("the report has no picture, or not of both".to_owned());
        }
        curves(&read(&json)?)
    });
}

/// What the records of both say.
fn curves(json: &str) -> Result<String, String> {
    let records: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let records = records.as_array().filter(|records| records.len() == 2);
    let records = records.ok_or("there are not two records")?;
    let (ours, peer) = (curve(&records[0])?, curve(&records[1])?);
    match &ours.failed[..] {
        [] => Ok(format!("{}; {}", ours.summary(), peer.summary())),
        failed => Err(format!("at our server: {}", failed.join("; "))),
    }
}

/// What a record says.
#[derive(Debug)]
struct Curve {
    /// Of valid points: on a busy machine there may be none.
    base_us: Option<f64>,
    highest_per_s: Option<f64>,
    /// What failed, each point's with the first of it.
    failed: Vec<String>,
}

impl Curve {
    fn summary(&self) -> String {
        let Self { base_us, highest_per_s, failed } = self;
        let failed: String = failed.iter().map(|failed| format!(", failed {failed}")).collect();
        match base_us.zip(*highest_per_s) {
            Some((us, per_s)) => format!("base {us:.0} us, up to {per_s:.0}/s{failed}"),
            None => format!("no valid point{failed}"),
        }
    }
}

fn curve(record: &Value) -> Result<Curve, String> {
    let metrics = record["metrics"].as_object().ok_or("a record has no metrics")?;
    let points = metrics.keys().filter(|name| name.ends_with("/response_us")).count();
    if points != POINTS + 1 {
        return Err(format!("{points} points with a response time, not {}", POINTS + 1));
    }
    let value = |name: &str| metrics.get(name).and_then(|metric| metric["value"].as_f64());
    let warnings = record["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    let is_failure = |warning: &&Value| {
        ["errors", "partial", "failed"].iter().any(|code| warning["code"] == *code)
    };
    let failed = warnings.iter().filter(is_failure);
    Ok(Curve {
        base_us: value("base_us"),
        highest_per_s: value("highest_per_s"),
        failed: failed.map(|warning| warning["text"].to_string()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(points: usize, failed: &[&str]) -> Value {
        let mut metrics = serde_json::Map::new();
        for point in 0..points {
            metrics.insert(format!("load/{point}.000/response_us"), json!({"value": 1.0}));
        }
        metrics.insert("base_us".to_owned(), json!({"value": 70.0}));
        metrics.insert("highest_per_s".to_owned(), json!({"value": 9000.0}));
        let warning = |text: &&str| json!({"code": "failed", "text": text});
        let late = json!({"code": "late-starts", "text": "of no matter here"});
        let warnings: Vec<Value> = failed.iter().map(warning).chain([late]).collect();
        json!({ "metrics": metrics, "warnings": warnings })
    }

    #[test]
    fn both_have_all_points_and_at_ours_nothing_failed() {
        let curves = |ours: Value, peer: Value| curves(&json!([ours, peer]).to_string());
        let summary = curves(record(6, &[]), record(6, &[]));
        assert_eq!(summary.unwrap(), "base 70 us, up to 9000/s; base 70 us, up to 9000/s");
        assert!(curves(record(6, &[]), record(5, &[])).is_err());
        assert!(curves(record(6, &["1 of 100"]), record(6, &[])).unwrap_err().contains("1 of 100"));
        let summary = curves(record(6, &[]), record(6, &["1 of 100"]));
        assert!(summary.unwrap().ends_with("failed \"1 of 100\""));
        assert!(super::curves(&json!([record(6, &[])]).to_string()).is_err());
    }
}
