//! `nfskit model network`: a closed network of queues, solved exactly and approximately.

use std::fmt::Display;

use harness::exit::Failure;
use harness::table::{Table, left, right};
use perf::model::closed::approximate::ERROR_MAX;
use perf::model::closed::bounds::Bounds;
use perf::model::closed::network::{At, Center, Class, Kind, Network, Solution};
use perf::model::error::ModelError;
use perf::record::Run as Record;
use serde::Deserialize;
use world::simulate::values::Span;

use super::page::{Page, or_dash, percent, span, us};
use super::source;
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
        let classes = self.class.iter().map(FileClass::class);
        Network::new(classes.collect(), self.center.iter().map(FileCenter::center).collect())
    }
}

impl FileClass {
    fn class(&self) -> Class {
        Class { callers: self.callers, think_us: self.think.map_or(0.0, us) }
    }
}

impl FileCenter {
    fn center(&self) -> Center {
        let demands: Vec<f64> = self.demand.iter().copied().map(us).collect();
        Center::new(&self.name, self.kind(), &demands)
    }

    fn kind(&self) -> Kind {
        match (self.delay, self.servers) {
            (true, _) => Kind::Delay,
            (false, None | Some(1)) => Kind::Queue,
            (false, Some(servers)) => Kind::Servers(servers),
        }
    }
}

/// What the command shows.
pub(super) fn page(args: &Args) -> Result<Page, Failure> {
    let unreadable = |cause: &dyn Display| super::page::unreadable(&args.file, "network", cause);
    let text = source::text(&args.file).map_err(|cause| unreadable(&cause))?;
    let file = File::parse(&text).map_err(|cause| unreadable(&cause))?;
    let network = file.network().map_err(|cause| unreadable(&cause))?;
    let exact = network.solve();
    let approximate = network.approximate().map_err(|cause| unreadable(&cause))?;

    let mut page = Page::new("network", Some(&args.file));
    classes(&file, exact.as_ref().ok(), &approximate, &mut page);
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
    Ok(page)
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

fn classes(file: &File, exact: Option<&Solution>, approximate: &Solution, page: &mut Page) {
    let names = ["callers", "exact", "response", "approximate", "response", "differs"];
    let columns = [left("class")].into_iter().chain(names.map(right));
    let rows = file.class.iter().enumerate().map(|(at, class)| {
        let near = Solved::of(approximate, at).recorded("approximate", class, &mut page.record);
        let exact = exact.map(|exact| Solved::of(exact, at));
        let exact = exact.map(|exact| exact.recorded("exact", class, &mut page.record));
        row(class, exact, near)
    });
    let table = Table::of(columns, rows);
    page.table(&table);
}

/// Of a class.
#[derive(Clone, Copy)]
struct Solved {
    per_s: f64,
    response_us: f64,
}

impl Solved {
    fn of(solution: &Solution, at: usize) -> Self {
        let (per_s, response_us) = (solution.throughput_per_s[at], solution.response_us[at]);
        Self { per_s, response_us }
    }

    fn recorded(self, how: &str, class: &FileClass, record: &mut Record) -> Self {
        record.metric(&format!("{how}/{}/per_s", class.name), self.per_s, "1/s");
        record.metric(&format!("{how}/{}/response_us", class.name), self.response_us, "us");
        self
    }

    fn cells(self) -> [String; 2] {
        [format!("{:.2}/s", self.per_s), span(self.response_us)]
    }

    /// How far above it another is.
    fn differs(self, near: Self) -> String {
        percent(if self.per_s > 0.0 { near.per_s / self.per_s - 1.0 } else { 0.0 })
    }
}

fn row(class: &FileClass, exact: Option<Solved>, near: Solved) -> [String; 7] {
    let [per_s, us] = exact.map_or_else(|| ["-", "-"].map(str::to_owned), Solved::cells);
    let differs = or_dash(exact.map(|exact| exact.differs(near)));
    let [rough, rough_us] = near.cells();
    [class.name.clone(), class.callers.to_string(), per_s, us, rough, rough_us, differs]
}

fn centers(network: &Network, solution: &Solution, page: &mut Page) {
    let names = [left("center"), right("calls"), right("busy"), left("residence of each class")];
    let both = || network.centers().iter().zip(&solution.centers);
    let table = Table::of(names, both().map(|(center, at)| center_row(center, at)));
    for (center, at) in both() {
        let name = format!("center/{}/utilization", center.name);
        page.record.metric(&name, at.utilization, "1");
    }
    page.text.push_str(&format!("\n{}", table.text()));
    if let Some(center) = network.bottleneck(solution) {
        page.line(format_args!("bottleneck: {}", center.name));
    }
}

fn center_row(center: &Center, at: &At) -> [String; 4] {
    let busy = match center.kind {
        Kind::Delay => "-".to_owned(),
        _ => format!("{:.1} %", at.utilization * 100.0),
    };
    let times: Vec<String> = at.residence_us.iter().map(|us| span(*us)).collect();
    [center.name.clone(), format!("{:.3}", at.calls), busy, times.join(", ")]
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
