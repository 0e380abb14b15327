//! `nfskit model predict`: a curve from parameters, open and closed side by side.

use std::fmt::Write;

use harness::exit::Failure;
use harness::table::{Table, right};
use harness::verbosity::Verbosity;
use perf::model::closed::server::ClosedServer;
use perf::model::error::ModelError;

use super::known::name;
use super::span;
use crate::model::args::estimate::Predict;

/// Load points, in percent of the open model's saturation.
const PERCENTS: [u32; 14] = [5, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 98, 99];

/// Runs the command.
pub(super) fn run(args: &Predict, verbosity: Verbosity) -> Result<(), Failure> {
    let wrong =
        |error: ModelError| Failure::usage(error, "nfskit model predict --help shows an example");
    let server = args.known.server(args.cpu, args.delay).map_err(wrong)?;
    let closed = args.callers.map(|callers| ClosedServer::new(server, callers));
    let closed = closed.transpose().map_err(wrong)?;
    let (saturation, bottleneck) = server.saturation();

    let mut record = super::record("predict", None);
    let mut text = String::new();
    writeln!(text, "saturation {saturation:.1} calls/s, by {}", name(bottleneck)).ok();
    record.metric("open/saturation_per_s", saturation, "1/s");
    if let Some((per_s, by)) = closed.and_then(|closed| closed.saturation()) {
        let callers = closed.map_or(0, |closed| closed.callers());
        writeln!(text, "with {callers} callers {per_s:.1} calls/s, busiest is {}", name(by)).ok();
        record.metric("closed/saturation_per_s", per_s, "1/s");
    }
    let mut table = Table::new(["calls/s", "open", "closed", "cpu", "disks"].map(right));
    for percent in PERCENTS {
        let per_s = saturation * f64::from(percent) / 100.0;
        let open = server.response_us(per_s);
        let closed = closed.and_then(|closed| closed.response_us(per_s));
        let (cpu, disks) = server.utilization(per_s);
        let said = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), span);
        let busy = |share: f64| format!("{:.0} %", share * 100.0);
        table.row([format!("{per_s:.1}"), said(open), said(closed), busy(cpu), busy(disks)]);
        for (method, us) in [("open", open), ("closed", closed)] {
            if let Some(us) = us {
                record.metric(&format!("{method}/response_us/{percent}pct"), us, "us");
            }
        }
    }
    write!(text, "\n{}", table.text()).ok();
    super::show(&text, &record, args.json.as_deref(), verbosity)
}
