//! `nfskit model network`: a closed network of queues, solved exactly and approximately.

use harness::exit::Failure;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::model::closed::approximate::ERROR_MAX;
use perf::model::closed::bounds::Bounds;
use perf::model::closed::network::{Center, Class, Kind, Network, Solution};
use perf::model::error::ModelError;
use perf::record::Run as Record;
use serde::Deserialize;
use world::simulate::values::Span;

use super::{Page, source, span};
use crate::model::args::cycle::Network as Args;

/// As the file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: Vec<FileClass>,
    center: Vec<FileCenter>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileClass {
    name: String,
    callers: u32,
    think: Option<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCenter {
    name: String,
    servers: Option<u32>,
    #[serde(default)]
    delay: bool,
    /// One for each class.
    demand: Vec<Span>,
}

fn us(span: Span) -> f64 {
    span.picos() as f64 / 1e6
}

impl File {
    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let what = error.message().trim().to_owned();
            let before = error.span().and_then(|span| text.get(..span.start));
            match before {
                Some(before) => format!("row {}: {what}", before.matches('\n').count() + 1),
                None => what,
            }
        })
    }

    fn network(&self) -> Result<Network, ModelError> {
        let class = |class: &FileClass| Class {
            callers: class.callers,
            think_us: class.think.map_or(0.0, us),
        };
        let center = |center: &FileCenter| {
            let kind = match (center.delay, center.servers) {
                (true, _) => Kind::Delay,
                (false, None | Some(1)) => Kind::Queue,
                (false, Some(servers)) => Kind::Servers(servers),
            };
            let demands: Vec<f64> = center.demand.iter().copied().map(us).collect();
            Center::new(&center.name, kind, &demands)
        };
        Network::new(
            self.class.iter().map(class).collect(),
            self.center.iter().map(center).collect(),
        )
    }
}

/// Runs the command.
pub(super) fn run(args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    let unreadable =
        |cause: &dyn std::fmt::Display| super::unreadable(&args.file, "network", cause);
    let text = source::text(&args.file).map_err(|cause| unreadable(&cause))?;
    let file = File::parse(&text).map_err(|cause| unreadable(&cause))?;
    let network = file.network().map_err(|cause| unreadable(&cause))?;
    let exact = network.solve();
    let approximate = network.approximate().map_err(|cause| unreadable(&cause))?;

    let mut page = Page::new("network", Some(&args.file));
    page.text = classes(&file, exact.as_ref().ok(), &approximate, &mut page.record);
    centers(&network, exact.as_ref().unwrap_or(&approximate), &mut page);
    if let Err(why) = &exact {
        let advice = "fewer callers, or fewer centers with several servers";
        page.note("not-exact", &format!("not solved exactly: {why}"), advice);
    }
    let accuracy = accuracy(&network, exact.as_ref().ok(), &approximate);
    page.line(format_args!("note: {accuracy}"));
    if let Some(Bounds { least_per_s, most_per_s, knee }) = network.bounds() {
        page.line(format_args!(
            "bounds: {least_per_s:.2} to {most_per_s:.2} a second; full from {knee:.1} callers on"
        ));
    }
    page.show(args.json.as_deref(), verbosity)
}

/// How far the approximation is off here, or at the worst that was found.
fn accuracy(network: &Network, exact: Option<&Solution>, approximate: &Solution) -> String {
    let Some(exact) = exact else {
        return format!(
            "no network was found for which the approximation is more than {:.0} % off, in a \
             search for the worst; there is no proof",
            stated(network)
        );
    };
    let both = exact.throughput_per_s.iter().zip(&approximate.throughput_per_s);
    let shares = both.filter(|(exact, _)| **exact > 0.0);
    let off = shares.map(|(exact, near)| (near / exact - 1.0).abs()).fold(0.0, f64::max);
    format!("the approximation is {:.1} % off here at most", 100.0 * off)
}

fn classes(
    file: &File,
    exact: Option<&Solution>,
    approximate: &Solution,
    record: &mut Record,
) -> String {
    let names = ["callers", "exact", "response", "approximate", "response", "differs"];
    let mut classes = Table::new([left("class")].into_iter().chain(names.map(right)));
    for (at, class) in file.class.iter().enumerate() {
        let (rough, rough_us) = (approximate.throughput_per_s[at], approximate.response_us[at]);
        record.metric(&format!("approximate/{}/per_s", class.name), rough, "1/s");
        record.metric(&format!("approximate/{}/response_us", class.name), rough_us, "us");
        let (per_s, us, differs) = match exact {
            Some(exact) => {
                let (per_s, us) = (exact.throughput_per_s[at], exact.response_us[at]);
                record.metric(&format!("exact/{}/per_s", class.name), per_s, "1/s");
                record.metric(&format!("exact/{}/response_us", class.name), us, "us");
                let percent = if per_s > 0.0 { (rough / per_s - 1.0) * 100.0 } else { 0.0 };
                (format!("{per_s:.2}/s"), span(us), format!("{percent:+.1} %"))
            }
            None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
        };
        let (name, callers) = (class.name.clone(), class.callers.to_string());
        let (rough, rough_us) = (format!("{rough:.2}/s"), span(rough_us));
        classes.row([name, callers, per_s, us, rough, rough_us, differs]);
    }
    classes.text()
}

fn centers(network: &Network, solution: &Solution, page: &mut Page) {
    let mut table = Table::new([
        left("center"),
        right("calls"),
        right("busy"),
        left("residence of each class"),
    ]);
    for (center, at) in network.centers().iter().zip(&solution.centers) {
        let busy = match center.kind {
            Kind::Delay => "-".to_owned(),
            _ => format!("{:.1} %", at.utilization * 100.0),
        };
        let times: Vec<String> = at.residence_us.iter().map(|us| span(*us)).collect();
        table.row([center.name.clone(), format!("{:.3}", at.calls), busy, times.join(", ")]);
        let name = format!("center/{}/utilization", center.name);
        page.record.metric(&name, at.utilization, "1");
    }
    page.text.push_str(&format!("\n{}", table.text()));
    if let Some(center) = network.bottleneck(solution) {
        page.line(format_args!("bottleneck: {}", center.name));
    }
}

/// Percent, from the comparison that docs/models.md has.
fn stated(network: &Network) -> f64 {
    let has_servers =
        network.centers().iter().any(|center| matches!(center.kind, Kind::Servers(_)));
    let share = match (network.classes().len(), has_servers) {
        (1, false) => ERROR_MAX.one_class,
        (1, true) => ERROR_MAX.one_class_servers,
        (_, false) => ERROR_MAX.classes,
        (_, true) => ERROR_MAX.classes_servers,
    };
    share * 100.0
}
