//! `nfskit model predict`: a curve from parameters, open and closed side by side.

use harness::exit::Failure;
use harness::table::{Table, right};
use harness::unused;
use perf::model::closed::closed_server::ClosedServer;
use perf::model::error::ModelError;
use perf::model::queue::file_server::FileServer;

use super::known::name;
use super::page::{Page, or_dash, span};
use crate::model::args::estimate::Predict;

/// Load points, in percent of the open model's saturation.
const PERCENTS: [u32; 14] = [5, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 98, 99];

/// What the command shows.
pub(super) fn page(args: &Predict) -> Result<Page, Failure> {
    let wrong =
        |error: ModelError| Failure::usage(error, "nfskit model predict --help shows an example");
    if args.known.disk.is_none() {
        unused::refuse(args.known.of_a_disk(), "a server with a disk: --disk TIME as well")?;
    }
    let server = args.known.server(args.cpu, args.delay).map_err(wrong)?;
    let closed = args.callers.map(|callers| ClosedServer::new(server, callers));
    let closed = closed.transpose().map_err(wrong)?;

    let mut page = Page::new("predict", None);
    let (saturation, bottleneck) = server.saturation();
    page.line(format_args!("saturation {saturation:.1} calls/s, by {}", name(bottleneck)));
    page.record.metric("open/saturation_per_s", saturation, "1/s");
    if let Some((per_s, by)) = closed.and_then(|closed| closed.saturation()) {
        let (callers, by) = (closed.map_or(0, |closed| closed.callers()), name(by));
        page.line(format_args!("with {callers} callers {per_s:.1} calls/s, busiest is {by}"));
        page.record.metric("closed/saturation_per_s", per_s, "1/s");
    }
    page.line("");
    curve(&server, closed.as_ref(), &mut page);
    Ok(page)
}

fn curve(server: &FileServer, closed: Option<&ClosedServer>, page: &mut Page) {
    let (saturation, _) = server.saturation();
    let rows = PERCENTS.map(|percent| {
        let per_s = saturation * f64::from(percent) / 100.0;
        let closed = closed.and_then(|closed| closed.response_us(per_s));
        let times = [server.response_us(per_s), closed];
        for (method, us) in ["open", "closed"].into_iter().zip(times) {
            let name = format!("{method}/response_us/{percent}pct");
            page.record.metric_if_known(&name, us, "us");
        }
        row(server, per_s, times)
    });
    page.table(&Table::of(["calls/s", "open", "closed", "cpu", "disks"].map(right), rows));
}

/// A load point, with its response time by the open model and the closed one.
fn row(server: &FileServer, per_s: f64, times: [Option<f64>; 2]) -> [String; 5] {
    let [open, closed] = times.map(|us| or_dash(us.map(span)));
    let (cpu, disks) = server.utilization(per_s);
    let [cpu, disks] = [cpu, disks].map(|share| format!("{:.0} %", share * 100.0));
    [format!("{per_s:.1}"), open, closed, cpu, disks]
}
