//! The page: sections in the order in which a reader asks. What is it? What came of it? Why? Can
//! I trust it? How do I repeat it?

use maud::{DOCTYPE, Markup, PreEscaped, html};
use perf::record::Warning;

use super::figure::Table;
use super::number::{count, interval, number, percent, tied};
use super::{Headline, Numbers, Parameter, Step, StudyReport};
use super::{cycles, latency, throughput, transfers};

/// The report as one HTML file: no script, nothing fetched.
pub fn html(report: &StudyReport) -> String {
    let facts = [
        ("Target", report.target.clone()),
        ("Durability", report.durability.map(|d| d.to_string()).unwrap_or_default()),
        ("Link", report.link.clone()),
        ("Made", report.generated_at.clone()),
    ];
    let facts = facts.map(|(name, value)| (name.to_owned(), value));
    let sections = html! {
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
        @for numbers in &report.tables { (table(numbers)) }
        (section("How this was measured", method(&report.method, "")))
        (environment(report))
    };
    page(&report.title, &facts, &sections)
}

const STYLE: &str = include_str!("style.css");

/// A page of a title, what it is about as name and value, and sections.
pub(super) fn page(title: &str, facts: &[(String, String)], sections: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                header {
                    h1 { (title) }
                    dl.facts {
                        @for (name, value) in facts {
                            @if !value.is_empty() { div { dt { (name) } dd { (tied(value)) } } }
                        }
                    }
                }
                main { (sections) }
            }
        }
    };
    page.into_string()
}

/// The page of a run that ended before its end, which it says before anything else.
pub fn partial(page: &str, why: &str) -> String {
    let text = format!("PARTIAL: the run ended before its end: {why}");
    let warning = Warning::new("partial", &text, "run again; this is of what was done before");
    let section = warnings(&[warning]).into_string();
    page.replacen("<main>", &format!("<main>{section}"), 1)
}

/// What a browser is to know before it shows a page.
fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            // The page promises to fetch nothing; the browser shall hold it to that.
            meta http-equiv="Content-Security-Policy"
                content="default-src 'none'; style-src 'unsafe-inline'";
            title { (title) }
            style { (PreEscaped(STYLE)) }
        }
    }
}

/// A section with its heading, or nothing.
pub(super) fn section(heading: &str, content: Option<Markup>) -> Markup {
    html! {
        @if let Some(content) = content {
            section { h2 { (heading) } (content) }
        }
    }
}

/// Sentences beneath each other.
pub(super) fn list(sentences: &[String]) -> Option<Markup> {
    let content = html! { ul { @for sentence in sentences { li { (tied(sentence)) } } } };
    (!sentences.is_empty()).then_some(content)
}

/// A section that is a table.
pub(super) fn table(numbers: &Numbers) -> Markup {
    let table = Table { columns: numbers.columns.clone(), rows: numbers.rows.clone() };
    let content = html! {
        (table.render())
        @if !numbers.caption.is_empty() { p { (tied(&numbers.caption)) } }
    };
    section(&numbers.title, (!numbers.rows.is_empty()).then_some(content))
}

/// How it was measured, and how that is done again.
pub(super) fn method(paragraphs: &[String], command: &str) -> Option<Markup> {
    shown(html! {
        @for paragraph in paragraphs { p { (tied(paragraph)) } }
        (again(command))
    })
}

/// The command that makes the report again, or nothing.
fn again(command: &str) -> Markup {
    html! {
        @if let Some(command) = code(command) {
            p { "The command that makes this report:" }
            (command)
        }
    }
}

pub(super) fn code(command: &str) -> Option<Markup> {
    (!command.is_empty()).then(|| html! { pre { code { (command) } } })
}

/// The figures of all `plots` that have data; `None` when none has.
pub(super) fn all<T>(plots: &[T], figure: impl Fn(&T) -> Option<Markup>) -> Option<Markup> {
    let figures: Vec<Markup> = plots.iter().filter_map(figure).collect();
    (!figures.is_empty()).then(|| html! { @for figure in figures { (figure) } })
}

fn shown(markup: Markup) -> Option<Markup> {
    (!markup.0.is_empty()).then_some(markup)
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
                        td { (interval(p.ci95)) }
                        td { (count(p.n)) }
                        td.text { (p.how) }
                    }
                }
            }
        } }
    };
    section("The model's terms", (!parameters.is_empty()).then_some(content))
}

/// `T_prop` with its index below the line.
fn symbol(name: &str) -> Markup {
    match name.split_once('_') {
        Some((letter, index)) if !letter.contains(' ') => html! { i { (letter) } sub { (index) } },
        _ => html! { (name) },
    }
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
    section("What was changed, and what it gave", (!steps.is_empty()).then(|| table.render()))
}

fn environment(report: &StudyReport) -> Markup {
    let content = html! {
        (again(&report.command))
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

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::fixtures::{report, wild};
    use crate::{Curve, CurvePoint, Cycle, Latency, LatencyPlot, ThroughputPlot, Transfer};

    fn ordinary() -> StudyReport {
        let mut value = 10.0;
        report(|| {
            value += 1.5;
            value
        })
    }

    /// Every text of [`report`] that must be on the page.
    const TEXTS: [&str; 24] = [
        "A study",
        "nfskit study",
        "embedded server",
        "memory",
        "loopback",
        "Linux",
        "It was noisy.",
        "repeat it.",
        "The link dominates.",
        "the link",
        "<i>T</i><sub>prop</sub>",
        "By hand.",
        "cycle one",
        "T_ser",
        "8 KiB writes",
        "curve one",
        "curve two",
        "ceiling one",
        "step one",
        "transfer one",
        "COMMIT",
        "latency one",
        "We looked.",
        "run.json",
    ];

    #[test]
    fn the_page_says_everything_and_fetches_nothing() {
        let page = html(&ordinary());
        for text in TEXTS {
            assert!(page.contains(text), "{text} is missing");
        }
        for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(reference), "{reference} is on the page");
        }
        assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    }

    #[test]
    fn every_plot_has_its_parts() {
        let page = html(&ordinary());
        let figures: Vec<&str> = page.split("<figure>").skip(1).collect();
        assert_eq!(figures.len(), 5);
        for figure in figures {
            for part in [
                "<h3>",
                "class=\"legend\"",
                "role=\"img\" aria-label=",
                "<figcaption>",
                "<details><summary>The numbers</summary>",
                "<tbody><tr>",
            ] {
                assert!(figure.contains(part), "{part} is missing");
            }
        }
    }

    #[test]
    fn no_stand_in_colour_reaches_the_page() {
        let page = html(&ordinary());
        assert!(page.contains("fill=\"var(--series-0)\""));
        assert!(!page.contains("\"#0102"), "a colour without a role");
        let (style, _) = page.split_once("</style>").unwrap();
        for used in page.split("\"var(").skip(1) {
            let name = used.split_once(')').unwrap().0;
            assert!(style.contains(&format!("{name}:")), "{name} has no colour");
        }
    }

    #[test]
    fn what_looks_like_html_is_text() {
        let evil = "<script>alert(1)</script>&\"'";
        let mut report = ordinary();
        report.title = evil.into();
        report.headline.sentence = evil.into();
        report.environment[0].0 = evil.into();
        report.cycles[0].name = evil.into();
        report.cycles[0].terms[0].name = evil.into();
        report.throughput[0].title = evil.into();
        report.throughput[0].curves[0].name = evil.into();
        report.throughput[0].ceilings[0].label = evil.into();
        report.transfers[0].transfers[0].name = evil.into();
        report.transfers[0].transfers[0].stalls.as_mut().unwrap()[0].label = evil.into();
        report.latency[0].latencies[0].name = evil.into();
        let page = html(&report);
        assert!(!page.contains("<script"));
        assert!(page.matches("&lt;script&gt;").count() > 11);
    }

    #[test]
    fn the_page_of_a_partial_run_says_so_before_anything_else() {
        let page = page("A <run>", &[], &html! { p { "42 calls" } });
        let marked = partial(&page, "<interrupted>");
        let at = |what: &str| marked.find(what).unwrap();
        let mark = at("PARTIAL: the run ended before its end: &lt;interrupted&gt;");
        assert!(at("<main>") < mark && mark < at("42 calls"), "{marked}");
    }

    #[test]
    fn an_empty_report_is_a_page_without_sections() {
        let page = html(&StudyReport::default());
        assert!(!page.contains("<section") && !page.contains("<figure"));
        assert!(page.ends_with("</html>"));
    }

    #[test]
    fn plots_without_points_do_not_appear_and_single_points_do() {
        let mut report = StudyReport {
            throughput: vec![ThroughputPlot::default()],
            transfers: vec![crate::TransferPlot {
                transfers: vec![Transfer::default()],
                ..Default::default()
            }],
            latency: vec![LatencyPlot {
                latencies: vec![Latency::default()],
                ..LatencyPlot::default()
            }],
            ..StudyReport::default()
        };
        assert!(!html(&report).contains("<figure"));

        report.cycles = vec![Cycle::default()];
        report.throughput[0].curves = vec![Curve {
            name: "alone".into(),
            points: vec![CurvePoint { n: 1, measured_mib_s: Some(3.0), ..CurvePoint::default() }],
        }];
        report.transfers[0].transfers[0].points = vec![(0.0, 0.0)];
        report.latency[0].latencies[0].calls = vec![(5.0, 5.0)];
        report.latency[0].latencies[0].histogram = iter::once(perf::units::Nanos::ZERO).collect();
        assert_eq!(html(&report).matches("<figure").count(), 4);
    }

    #[test]
    fn numbers_from_another_world_are_drawn_or_left_out_but_never_stop_us() {
        let mut value = wild();
        for _ in 0..11 {
            let page = html(&report(&mut value));
            assert!(!page.contains("NaN") && !page.contains("inf "));
            value(); // shifts the whole row by one
        }
        for constant in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e99, f64::MIN_POSITIVE] {
            assert!(html(&report(|| constant)).ends_with("</html>"));
        }
    }

    #[test]
    fn a_long_run_stays_a_small_page() {
        let mut report = ordinary();
        let many = || (0..100_000).map(|i| (f64::from(i), f64::from(i % 977) + 1.0)).collect();
        report.transfers[0].transfers[0].points = many();
        report.latency[0].latencies[0].calls = many();
        let page = html(&report);
        assert!(page.len() < 500_000, "{} bytes", page.len());
    }
}
