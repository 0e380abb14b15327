//! `nfskit study --quick` against Ganesha and against our own server.
//!
//! What we ask: it ends with 0, its record has every number of the study, and the export is as
//! it was before.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{basic, curve};
use crate::host::about;
use crate::host::child::{finish, text};
use crate::host::ganesha::{self, Ganesha};
use crate::host::nfskit::{Address, Server};
use crate::host::report::Report;

const GANESHA: &str = "NFS-Ganesha";
const OWN_SERVER: &str = "nfskit serve";
const STUDY_WITHIN: Duration = Duration::from_secs(300);

/// The numbers that every study of a server has.
const METRICS: [&str; 9] = [
    "t_prop_us",
    "t_ser_us_per_kib",
    "t_op_us",
    "t_b_us",
    "best_window",
    "model_error_pct_median",
    "model_error_pct_worst",
    "limit_mib_per_s",
    "efficiency_of_limit",
];
/// Measured and predicted at the same numbers of outstanding calls, these among them.
const WINDOWS: [&str; 2] = ["n1", "n64"];
const THROUGHPUT: &str = "throughput_mib_per_s_";
const PREDICTED: &str = "predicted_mib_per_s_";

/// Measures Ganesha, or says why that cannot be here.
pub(super) fn check_ganesha(report: &mut Report, scratch: &Path, nfskit: &Path) {
    if let Err(why) = ganesha::obstacle() {
        return report.skip(GANESHA, "study", why);
    }
    let export = scratch.join("ganesha-export");
    let server = report.make(GANESHA, "starts", || {
        make_export(&export)?;
        let started = Ganesha::start(scratch, &export)?;
        let url = started.address.url("");
        Ok((started, url))
    });
    let Some(server) = server else { return };
    check_study(report, GANESHA, nfskit, server.address, &export);
    let urls = [("version 3, TCP", server.address.url(""))];
    basic::check(report, GANESHA, nfskit, &urls, &export);
    curve::check(report, scratch, nfskit, &server.address.url(""));
    report.done(GANESHA, "stops", || server.stop());
}

/// Measures `nfskit serve` in the same way.
pub(super) fn check_own_server(report: &mut Report, scratch: &Path, nfskit: &Path) {
    let export = scratch.join("own-export");
    let server = report.make(OWN_SERVER, "starts", || {
        make_export(&export)?;
        let started = Server::start_with(nfskit, &export, &["--udp".to_owned()])?;
        let url = started.address.url("");
        Ok((started, url))
    });
    let Some(server) = server else { return };
    check_study(report, OWN_SERVER, nfskit, server.address, &export);
    let ways = ["version 3, TCP", "version 3, UDP", "version 2, TCP", "version 2, UDP"];
    let arguments = ["", "&proto=udp", "&version=2", "&version=2&proto=udp"];
    let url = server.address.url("");
    let urls: Vec<(&str, String)> =
        ways.into_iter().zip(arguments.map(|more| format!("{url}{more}"))).collect();
    basic::check(report, OWN_SERVER, nfskit, &urls, &export);
    report.done(OWN_SERVER, "stops", || server.stop());
}

/// A folder with one file of somebody else's, which must survive.
pub(super) fn make_export(export: &Path) -> Result<(), String> {
    std::fs::create_dir_all(export)
        .and_then(|()| std::fs::write(export.join("not-ours"), "keep me\n"))
        .map_err(about(export))
}

fn check_study(
    report: &mut Report,
    peer: &'static str,
    nfskit: &Path,
    address: Address,
    export: &Path,
) {
    let out = export.with_extension("study");
    let studied = report.check(peer, "nfskit study --quick", || {
        let mut command = Command::new(nfskit);
        command.args(["study", "--target", &address.url(""), "--quick", "--out"]).arg(&out);
        let study = finish(&mut command, STUDY_WITHIN, text)?;
        Ok(format!("{:.1} s", study.seconds))
    });
    if studied {
        report.check(peer, "the record has every number", || {
            let path = out.join("run.json");
            let text = std::fs::read_to_string(&path).map_err(about(&path))?;
            check_record(&text)
        });
    }
    report.done(peer, "the export is as it was", || {
        let names = names(export)?;
        match names.iter().map(String::as_str).eq(["not-ours"]) {
            true => Ok(()),
            false => Err(format!("it has {names:?}")),
        }
    });
}

fn names(folder: &Path) -> Result<BTreeSet<String>, String> {
    let failed = about(folder);
    std::fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| Ok(entry.map_err(failed)?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Checks the names and values of a record's metrics; returns the ones that tell most.
fn check_record(text: &str) -> Result<String, String> {
    let record: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let metrics =
        record.get("metrics").and_then(Value::as_object).ok_or("the record has no metrics")?;
    let value = |name: &str| {
        let value = metrics.get(name).and_then(|metric| metric.get("value")?.as_f64());
        value.ok_or_else(|| format!("no value of {name}"))
    };
    for name in METRICS {
        value(name)?;
    }
    let windows = |prefix: &str| -> BTreeSet<&str> {
        metrics.keys().filter_map(|name| name.strip_prefix(prefix)).collect()
    };
    let (measured, predicted) = (windows(THROUGHPUT), windows(PREDICTED));
    if measured != predicted {
        return Err(format!("measured at {measured:?}, predicted at {predicted:?}"));
    }
    if let Some(missing) = WINDOWS.iter().find(|window| !measured.contains(**window)) {
        return Err(format!("no value of {THROUGHPUT}{missing}"));
    }
    for prefix in [THROUGHPUT, PREDICTED] {
        for window in &measured {
            let name = format!("{prefix}{window}");
            match value(&name)? {
                rate if rate > 0.0 => {}
                rate => return Err(format!("{name} is {rate}")),
            }
        }
    }
    let best = value("best_window")?;
    let limit = value("limit_mib_per_s")?;
    let error = value("model_error_pct_median")?;
    Ok(format!("window {best}, limit {limit:.0} MiB/s, model off by {error:.1} %"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> Value {
        let mut metrics = serde_json::Map::new();
        let windows = ["n1", "n2", "n64"];
        let rates = [THROUGHPUT, PREDICTED].map(|prefix| windows.map(|n| format!("{prefix}{n}")));
        let names = METRICS.map(str::to_owned).into_iter().chain(rates.concat());
        metrics.extend(names.map(|name| (name, json!({"value": 2.5, "unit": "x"}))));
        json!({"schema": "nfskit.run/1", "metrics": metrics})
    }

    #[test]
    fn a_record_with_every_number_passes() {
        let checked = check_record(&record().to_string()).unwrap();
        assert!(checked.contains("window 2.5"), "{checked}");
    }

    #[test]
    fn a_record_that_lacks_a_number_is_refused_by_its_name() {
        let all: Vec<String> = METRICS.map(str::to_owned).into();
        let rates = ["throughput_mib_per_s_n64", "predicted_mib_per_s_n2"].map(str::to_owned);
        for name in all.into_iter().chain(rates) {
            let mut record = record();
            record["metrics"].as_object_mut().unwrap().remove(&name);
            assert!(check_record(&record.to_string()).is_err(), "{name}");
        }
    }

    #[test]
    fn a_rate_of_zero_is_no_rate() {
        let mut record = record();
        record["metrics"]["throughput_mib_per_s_n2"]["value"] = json!(0.0);
        let refused = check_record(&record.to_string()).unwrap_err();
        assert_eq!(refused, "throughput_mib_per_s_n2 is 0");
    }
}
