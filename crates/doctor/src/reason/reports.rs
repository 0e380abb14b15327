//! A report of each subject: what it is, what was found of it, and what is not counted.

use counters::mountstats::Mount;
use counters::rates::{Since, Span};

use super::{Judgements, Report, contradictions, finding, finished, joined, judgements};
use crate::case::Case;
use crate::collect::OURS;
use crate::evidence::{ALL_MOUNTS, Evidence, RatesOf};
use crate::finding::{Certainty, Found, Layer, Missing};
use crate::rules::{
    About, Captured, OurMounted, OurServed, Recorded, Rule, capture, our_mount, our_server,
    run_record,
};
use crate::shares;
use crate::subject::{Mounted, Served};

pub(super) fn of_mount(case: &Case<'_>, mount: &Mounted<'_>, with: Judgements) -> Report {
    let now = mount.now;
    let version = now.option("vers").map(str::to_owned);
    let version = version.or_else(|| now.version().map(|version| version.to_string()));
    let is_all = now.device == ALL_MOUNTS;
    let unknown = if is_all { "" } else { "?" };
    let facts = [
        ("server", if is_all { String::new() } else { now.device.clone() }),
        ("version", version.unwrap_or_else(|| unknown.to_owned())),
        ("options", now.options.join(",")),
        ("connections", connections(now)),
        ("numbers", rates_of(case.evidence)),
        kernel(case),
    ];
    let judged = joined(judgements(case, About::Mount, mount.is_lifetime()), with);
    let well = well_of(mount, case.evidence.last.rates_of);
    let report = Report {
        span: mount.rates.span,
        is_lifetime: mount.is_lifetime(),
        shares: shares::of(mount),
        floor: case.floor(),
        contradictions: contradictions(case, &judged.findings),
        ..blank(About::Mount, now.point.clone(), &facts)
    };
    finished(report, judged, &well)
}

fn kernel(case: &Case<'_>) -> (&'static str, String) {
    let release = case.evidence.setting("proc/sys/kernel/osrelease");
    ("kernel", release.unwrap_or_default().to_owned())
}

/// Where not all of them are printed, as many as were requested.
fn connections(mount: &Mount) -> String {
    match mount.is_printed() {
        true => mount.option("nconnect").unwrap_or_default().to_owned(),
        false => mount.transports.len().to_string(),
    }
}

/// Rates between two reports.
pub(crate) const INTERVAL: &str = "rates of an interval of nfsiostat, as those of an hour";

/// Where nothing was counted: what the numbers of calls are.
fn rates_of(evidence: &Evidence) -> String {
    let of = match evidence.last.rates_of {
        Some(RatesOf::Interval) => INTERVAL,
        Some(RatesOf::SinceTheMount) => "rates of nfsiostat since the mount, as those of an hour",
        None => "",
    };
    of.to_owned()
}

pub(super) fn of_server(case: &Case<'_>, server: &Served, with: Judgements) -> Report {
    let setting = |path: &str| case.evidence.setting(path).unwrap_or("").to_owned();
    let facts = [
        ("server", "the kernel's (knfsd)".to_owned()),
        ("version", setting("proc/fs/nfsd/versions")),
        ("threads", server.rates.threads.map_or(String::new(), |threads| threads.to_string())),
        kernel(case),
    ];
    let judged = joined(judgements(case, About::Server, server.is_lifetime()), with);
    let well = match server.rates.calls_per_s {
        Some(rate) => format!("{rate:.1} calls/s served"),
        None => format!("{} calls served", server.all_calls()),
    };
    let report = Report {
        span: server.rates.span,
        is_lifetime: server.is_lifetime(),
        ..blank(About::Server, "server".to_owned(), &facts)
    };
    finished(report, judged, &well)
}

/// A server in user space, which the kernel counts nothing of.
pub(super) fn of_listener(case: &Case<'_>, program: &str, with: Judgements) -> Report {
    let facts = [("server", format!("{program} on port 2049")), kernel(case)];
    let report = Report {
        span: case.host.span(),
        is_lifetime: case.host.is_lifetime,
        ..blank(About::Server, program.to_owned(), &facts)
    };
    let run = match program {
        "nfskit" => "nfskit serve --metrics ADDRESS:PORT, and nfskit doctor finds it",
        "ganesha.nfsd" => "ganesha_stats; or a capture of port 2049 and nfskit trace",
        _ => "a capture of port 2049 (tcpdump -w FILE), and nfskit trace",
    };
    let what = "what the server does: the kernel counts nothing of a server in user space";
    let mut judged = with;
    judged.missing.push(Missing::new(what, run));
    finished(report, judged, "the host that it runs on")
}

pub(super) const UNCOUNTED: &str = "not known: nothing is counted of it";

/// Mounts of our own, of which the kernel counts nothing: who has their metrics takes these out.
pub(super) fn uncounted(evidence: &Evidence) -> Vec<Report> {
    let mountinfo = evidence.setting("proc/self/mountinfo").unwrap_or_default();
    let ours = mountinfo.lines().filter_map(|line| line.split_once(OURS));
    let named = ours.filter_map(|(head, tail)| {
        Some((head.split_whitespace().nth(4)?, tail.split_whitespace().next()?))
    });
    let report = |(point, source): (&str, &str)| {
        let mut report = blank(
            About::Mount,
            point.replace("\\040", " "),
            &[("server", format!("{source}, by nfskit mount"))],
        );
        let what = "what this mount does: the kernel counts nothing of a program's mount";
        let run = "nfskit mount with --metrics 127.0.0.1:9050: nfskit doctor finds it then";
        report.missing.push(Missing::new(what, run));
        UNCOUNTED.clone_into(&mut report.verdict);
        report
    };
    named.map(report).collect()
}

/// Our own server, by its metrics.
pub fn of_our_server(served: &OurServed, span: Span) -> Report {
    let server = format!("nfskit serve, metrics at {}", served.address);
    let report = of_ours(About::Server, format!("nfskit serve ({})", served.address), server, span);
    let judged = only(our_server::rule(), our_server::found(served));
    let report = finished(report, judged, &our_server::well(served));
    Report { certainty: Certainty::Likely, shares: our_server::shares(served), ..report }
}

/// One of our programs, of which its metrics tell.
fn of_ours(about: About, name: String, server: String, span: Span) -> Report {
    let is_lifetime = span.since == Since::Beginning;
    Report { is_lifetime, span, ..blank(about, name, &[("server", server)]) }
}

fn only(rule: &'static Rule, found: Option<(Layer, Found)>) -> Judgements {
    let found = found.map(|(layer, found)| finding(rule, layer, found));
    Judgements { findings: found.into_iter().collect(), ..Judgements::default() }
}

/// Our own mount, by its metrics.
pub fn of_our_mount(mounted: &OurMounted, span: Span) -> Report {
    let report = of_ours(About::Mount, mounted.point.clone(), mounted.source.clone(), span);
    let judged = only(our_mount::rule(), our_mount::found(mounted));
    let report = finished(report, judged, &our_mount::well(mounted));
    let report = Report { shares: our_mount::shares(mounted), ..report };
    if mounted.calls == 0.0 && report.findings.is_empty() {
        let verdict = format!("not known: {}", our_mount::well(mounted));
        return Report { verdict, certainty: Certainty::Possible, ..report };
    }
    report
}

/// What a run record of ours has in it.
pub fn of_record(name: &str, recorded: &Recorded) -> Report {
    let facts = [("server", recorded.of.clone())];
    let mut report = Report { is_lifetime: false, ..blank(About::Record, name.to_owned(), &facts) };
    match run_record::found(recorded) {
        Some((layer, found)) => pass_on(&mut report, run_record::rule(), layer, found),
        None => {
            report.verdict = "it has no parts of a call's time in it".to_owned();
            let run = "nfskit study or nfskit probe, with --json FILE";
            report.missing.push(Missing::new("the parameters of the path", run));
        }
    }
    report
}

pub(super) fn of_the_host(case: &Case<'_>, judged: Judgements) -> Report {
    let report = Report {
        span: case.host.span(),
        is_lifetime: case.host.is_lifetime,
        ..blank(About::Host, "this host".to_owned(), &[kernel(case)])
    };
    finished(report, judged, "network, memory and processors")
}

/// A report of what a capture shows; without a verdict, of why there is none.
pub fn of_capture(name: &str, seconds: Option<f64>, seen: Result<&Captured, String>) -> Report {
    let facts = match seen {
        Ok(captured) => vec![("server", captured.of.clone())],
        Err(_) => Vec::new(),
    };
    let mut report = Report {
        span: seconds.map_or_else(|| Span::beginning(None), Span::sample),
        is_lifetime: false,
        ..blank(About::Capture, name.to_owned(), &facts)
    };
    match seen {
        Ok(captured) => {
            let layer = capture::layer(captured.suspect);
            pass_on(&mut report, capture::rule(), layer, capture::found(captured));
        }
        Err(why) => report.verdict = why,
    }
    report
}

/// What was found is the verdict.
fn pass_on(report: &mut Report, rule: &'static Rule, layer: Layer, found: Found) {
    (report.verdict, report.certainty) = (found.what.clone(), found.certainty);
    report.findings.push(finding(rule, layer, found));
}

fn blank(about: About, name: String, facts: &[(&str, String)]) -> Report {
    let known = facts.iter().filter(|(_, value)| !value.is_empty());
    Report {
        about,
        name,
        facts: known.map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        span: Span::beginning(None),
        is_lifetime: true,
        verdict: String::new(),
        certainty: Certainty::Possible,
        shares: None,
        floor: None,
        findings: Vec::new(),
        contradictions: Vec::new(),
        fine: Vec::new(),
        missing: Vec::new(),
    }
}

/// The numbers of a mount that is well.
fn well_of(mount: &Mounted<'_>, rates_of: Option<RatesOf>) -> String {
    let total = mount.total();
    let Some(means) = total.means() else {
        return match (mount.has_times, total.calls) {
            (false, 0) => "its options".to_owned(),
            (_, calls) => format!("{calls} calls"),
        };
    };
    let rate = mount.rates.total.calls_per_s.map_or(String::new(), |rate| format!(", {rate:.1}/s"));
    // Nobody has counted what is made of rates.
    let (calls, again) = match rates_of {
        Some(_) => {
            let percent = total.retransmissions as f64 / (total.calls as f64).max(1.0) * 100.0;
            (format!("calls{rate}"), format!("{percent:.2} %"))
        }
        None => (format!("{} calls{rate}", total.calls), total.retransmissions.to_string()),
    };
    format!(
        "{calls}, {:.2} ms each, {:.2} ms of that before they are sent, {again} retransmitted",
        means.execute_ms, means.queue_ms
    )
}
