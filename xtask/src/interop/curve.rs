//! `nfskit bench curve` of NFS-Ganesha and of our server in one report.
//!
//! Whether a point holds the rules is for a quiet machine to say; that there are points up to the
//! saturation of both, and that nothing failed on the way, must be so on any.

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
    let said: Result<Vec<String>, String> = records.iter().map(curve).collect();
    Ok(said?.join("; "))
}

fn curve(record: &Value) -> Result<String, String> {
    let metrics = record["metrics"].as_object().ok_or("a record has no metrics")?;
    let points = metrics.keys().filter(|name| name.ends_with("/response_us")).count();
    if points != POINTS + 1 {
        return Err(format!("{points} points with a response time, not {}", POINTS + 1));
    }
    let value = |name: &str| {
        let value = metrics.get(name).and_then(|metric| metric["value"].as_f64());
        value.ok_or_else(|| format!("a record has no {name}"))
    };
    for (name, metric) in metrics.iter().filter(|(name, _)| name.ends_with("/failed")) {
        if metric["value"].as_f64() != Some(0.0) {
            return Err(format!("{name} is {}", metric["value"]));
        }
    }
    let (base, saturation) = (value("base_us")?, value("saturation_per_s")?);
    Ok(format!("base {base:.0} us, saturation {saturation:.0}/s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(points: usize, failed: f64) -> Value {
        let mut metrics = serde_json::Map::new();
        for point in 0..points {
            metrics.insert(format!("load/{point}.000/response_us"), json!({"value": 1.0}));
            metrics.insert(format!("load/{point}.000/failed"), json!({"value": failed}));
        }
        metrics.insert("base_us".to_owned(), json!({"value": 70.0}));
        metrics.insert("saturation_per_s".to_owned(), json!({"value": 9000.0}));
        json!({ "metrics": metrics })
    }

    #[test]
    fn both_have_all_points_and_nothing_that_failed() {
        let said = curves(&json!([record(6, 0.0), record(6, 0.0)]).to_string());
        assert_eq!(said.unwrap(), "base 70 us, saturation 9000/s; base 70 us, saturation 9000/s");
        assert!(curves(&json!([record(6, 0.0)]).to_string()).is_err());
        assert!(curves(&json!([record(6, 0.0), record(5, 0.0)]).to_string()).is_err());
        assert!(curves(&json!([record(6, 0.0), record(6, 1.0)]).to_string()).is_err());
    }
}
