//! The page: sections in the order in which a reader asks. What is it? What came of it? Why? Can
//! I trust it? How do I repeat it?

use maud::{DOCTYPE, Markup, PreEscaped, html};
use perf::record::Warning;

use super::figure::Table;
use super::number::{UNKNOWN, number, percent, tied};
use super::{Headline, Parameter, Step, StudyReport};
use super::{cycles, latency, throughput, transfers};

/// The report as one HTML file: no script, nothing fetched.
pub fn html(report: &StudyReport) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // The page promises to fetch nothing; the browser shall hold it to that.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'";
                title { (report.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(report))
                main {
                    (headline(&report.headline))
                    (warnings(&report.warnings))
                    (section("What a call's time goes to", cycles::figure(&report.cycles)))
                    (parameters(&report.parameters))
                    (section("Throughput, measured and predicted",
                        all(&report.throughput, throughput::figure)))
                    (steps(&report.steps))
                    (section("Bytes over time", all(&report.transfers, transfers::figure)))
                    (section("Response times",
                        all(&report.latency, |plot| shown(latency::figures(plot)))))
                    (method(report))
                    (environment(report))
                }
            }
        }
    };
    page.into_string()
}

const STYLE: &str = include_str!("style.css");

/// A section with its heading, or nothing.
fn section(heading: &str, content: Option<Markup>) -> Markup {
    html! {
        @if let Some(content) = content {
            section { h2 { (heading) } (content) }
        }
    }
}

/// The figures of all `plots` that have data; `None` when none has.
fn all<T>(plots: &[T], figure: impl Fn(&T) -> Option<Markup>) -> Option<Markup> {
    let figures: Vec<Markup> = plots.iter().filter_map(figure).collect();
    (!figures.is_empty()).then(|| html! { @for figure in figures { (figure) } })
}

fn shown(markup: Markup) -> Option<Markup> {
    (!markup.0.is_empty()).then_some(markup)
}

fn header(report: &StudyReport) -> Markup {
    let durability = report.durability.map(|d| d.to_string()).unwrap_or_default();
    let facts = [
        ("Target", report.target.as_str()),
        ("Durability", &durability),
        ("Link", &report.link),
        ("Made", &report.generated_at),
    ];
    html! {
        header {
            h1 { (report.title) }
            dl.facts {
                @for (name, value) in facts {
                    @if !value.is_empty() { div { dt { (name) } dd { (value) } } }
                }
            }
        }
    }
}

fn headline(headline: &Headline) -> Markup {
    html! {
        @if !headline.sentence.is_empty() || !headline.facts.is_empty() {
            section.headline aria-label="Result" {
                @if !headline.sentence.is_empty() { p.sentence { (tied(&headline.sentence)) } }
                div.tiles {
                    @for fact in &headline.facts {
                        div.tile {
                            div.label { (fact.label) }
                            div.value { (tied(&fact.value)) }
                            @if !fact.note.is_empty() { div.note { (tied(&fact.note)) } }
                        }
                    }
                }
            }
        }
    }
}

fn warnings(warnings: &[Warning]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            section.warnings aria-label="Warnings" {
                h2 { "Before you trust a number" }
                ul {
                    @for warning in warnings {
                        li {
                            (warning.text)
                            @if !warning.try_.is_empty() { " " span.try { "Try: " (warning.try_) } }
                        }
                    }
                }
            }
        }
    }
}

fn parameters(parameters: &[Parameter]) -> Markup {
    let content = html! {
        div.table { table.wide {
            thead { tr {
                th scope="col" { "term" }
                th scope="col" { "value" }
                th.unit scope="col" { "unit" }
                th scope="col" { "95 % interval" }
                th scope="col" { "n" }
                th.text scope="col" { "how it was measured" }
            } }
            tbody {
                @for p in parameters {
                    tr {
                        th scope="row" { (symbol(&p.name)) }
                        td { (number(p.value)) }
                        td.unit { (p.unit) }
                        td { (interval(p)) }
                        td { (p.n.map_or_else(|| UNKNOWN.into(), |n| n.to_string())) }
                        td.text { (p.how) }
                    }
                }
            }
        } }
    };
    section(
        "The model's terms",
        (!parameters.is_empty()).then_some(content),
    )
}

/// `T_prop` with its index below the line.
fn symbol(name: &str) -> Markup {
    match name.split_once('_') {
        Some((letter, index)) if !letter.contains(' ') => html! { i { (letter) } sub { (index) } },
        _ => html! { (name) },
    }
}

fn interval(parameter: &Parameter) -> String {
    parameter.ci95.map_or_else(
        || UNKNOWN.into(),
        |ci| format!("{} to {}", number(ci.lo), number(ci.hi)),
    )
}

fn steps(steps: &[Step]) -> Markup {
    let mut table = Table::new([
        "change",
        "before (MiB/s)",
        "predicted (MiB/s)",
        "measured (MiB/s)",
        "predicted gain",
        "measured gain",
        "error",
    ]);
    for step in steps {
        table.row([
            step.change.clone(),
            number(step.before_mib_s),
            number(step.predicted_mib_s),
            number(step.measured_mib_s),
            percent(step.predicted_gain_pct()),
            percent(step.measured_gain_pct()),
            percent(step.error_pct()),
        ]);
    }
    section(
        "What was changed, and what it gave",
        (!steps.is_empty()).then(|| table.render()),
    )
}

fn method(report: &StudyReport) -> Markup {
    let content = html! { @for paragraph in &report.method { p { (paragraph) } } };
    section("How this was measured", shown(content))
}

fn environment(report: &StudyReport) -> Markup {
    let content = html! {
        @if !report.command.is_empty() {
            p { "The command that makes this report:" }
            pre { code { (report.command) } }
        }
        @if !report.environment.is_empty() {
            dl.facts {
                @for (name, value) in &report.environment { div { dt { (name) } dd { (value) } } }
            }
        }
        @if !report.raw_data.is_empty() {
            p { "Raw data: " code { (report.raw_data) } "." }
        }
    };
    section("To repeat it", shown(content))
}
