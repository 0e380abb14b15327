//! `nfskit doctor`: why a mount is slow.

mod captured;
mod collected;
mod ours;
mod reach;

use std::io::IsTerminal;
use std::path::Path;

use doctor::collect::{self, Files};
use doctor::rules::About;
use doctor::{Evidence, Limits, Report, Severity, diagnose, json, page, recorded, screen};
use harness::counted::{both, look};
use harness::exit::Failure;
use harness::hints;
use harness::output::{self, Bars};
use harness::shell;
use harness::unused;
use harness::verbosity::Verbosity;
use net::clock::Clock;
use perf::units::Nanos;

use self::ours::Pages;
use crate::args::doctor::Doctor;

/// A finding of high severity stands: so that monitoring sees it.
const FOUND: u8 = 1;

/// Runs the command.
pub(crate) fn run(args: &Doctor, verbosity: Verbosity) -> Result<(), Failure> {
    let limits = limits(&args.set)?;
    output::check([&args.json, &args.html, &args.collect], &args.from)?;
    if let Some(server) = server(args) {
        unused::refuse(of_counters(args), "mounts of this host")?;
        return reach::run(args, server, verbosity);
    }
    unused::refuse(of_a_server(args), "a server: HOST, HOST:/EXPORT or nfs://HOST/EXPORT")?;
    let (mut files, ours) = match &args.from {
        Some(path) => (saved(path)?, Vec::new()),
        None => live(args, verbosity)?,
    };
    let mut others = captured::reports(&mut files);
    others.extend(recorded::reports(&mut files));
    others.extend(ours);
    if let Some(path) = &args.collect {
        return collected::write(&files, path, args.mask_addresses, verbosity);
    }
    let evidence = Evidence::of(files);
    if evidence.is_empty() && others.is_empty() {
        return Err(unusable(args, &evidence));
    }
    let mut reports = joined(diagnose(&evidence, &limits), others);
    if let Some(subject) = &args.subject {
        reports = chosen(reports, subject, args.from.as_deref())?;
    }
    write(args, &evidence, &reports, verbosity)?;
    match reports.iter().any(|report| report.severity() == Some(Severity::High)) {
        true => Err(Failure::printed(FOUND)),
        false => Ok(()),
    }
}

fn of_counters(args: &Doctor) -> [(bool, &'static str); 2] {
    [(!args.set.is_empty(), "--set"), (args.span.is_some(), "--for")]
}

fn of_a_server(args: &Doctor) -> [(bool, &'static str); 3] {
    [(args.limit.is_some(), "--limit"), (args.write, "--write"), (args.probe, "--probe")]
}

/// The server that is named instead of a mount.
fn server(args: &Doctor) -> Option<&str> {
    args.subject.as_deref().filter(|subject| {
        subject.contains("://") || args.from.is_none() && !subject.starts_with(['/', '.'])
    })
}

/// Reports by counters, without those of which metrics say more.
fn joined(mut reports: Vec<Report>, others: Vec<Report>) -> Vec<Report> {
    let has_server = others.iter().any(|report| report.about == About::Server);
    let has_metrics = |report: &Report| {
        let is_it = |other: &Report| absolute(&other.name) == report.name;
        report.is_uncounted() && others.iter().any(is_it)
    };
    reports.retain(|report| !(has_server && report.name == "nfskit" || has_metrics(report)));
    reports.extend(others);
    reports
}

/// Prints and writes what is wanted.
fn write(
    args: &Doctor,
    evidence: &Evidence,
    reports: &[Report],
    verbosity: Verbosity,
) -> Result<(), Failure> {
    if verbosity > Verbosity::Quiet {
        say_ignored(evidence);
    }
    output::print_text(verbosity, [&args.json, &args.html], || {
        let has_colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        screen::text(reports, has_colour)
    })?;
    output::write_to(&args.json, || json::text(evidence, reports))?;
    output::write_to(&args.html, || page::text(evidence, reports, shell::own()))
}

/// Reports of one mount point, or of one server's mounts.
fn chosen(
    reports: Vec<Report>,
    subject: &str,
    from: Option<&Path>,
) -> Result<Vec<Report>, Failure> {
    let mounts = reports.iter().filter(|report| report.about == About::Mount);
    let known: Vec<String> = mounts.map(|report| report.name.clone()).collect();
    let has_server = reports.iter().any(|report| report.about == About::Server);
    let chosen: Vec<Report> = match subject.starts_with(['/', '.']) {
        true => covering(reports, &absolute(subject)).into_iter().collect(),
        false => reports.into_iter().filter(|report| is_of_server(report, subject)).collect(),
    };
    if chosen.is_empty() {
        let listed = match (known.is_empty(), has_server || from.is_some()) {
            (false, _) => format!("one of {}", known.join(", ")),
            (true, true) => "nfskit doctor without a subject, for all that there is".to_owned(),
            (true, false) => {
                "there is none; nfskit probe URL measures a server without a mount".to_owned()
            }
        };
        let place = match from {
            Some(from) => format!("in {}", from.display()),
            None => "on this host".to_owned(),
        };
        let what = format!("{subject} is not an NFS mount {place}");
        return Err(Failure::environment(what, listed));
    }
    Ok(chosen)
}

/// The innermost mount that a path lies in.
fn covering(reports: Vec<Report>, path: &str) -> Option<Report> {
    let covering = reports.into_iter().filter(|report| is_below(path, &report.name));
    covering.max_by_key(|report| report.name.len())
}

fn is_of_server(report: &Report, server: &str) -> bool {
    let host = server.split(":/").next().unwrap_or(server).trim_matches(['[', ']']);
    report.fact("server").is_some_and(|server| server.split(":/").next() == Some(host))
}

fn limits(set: &[String]) -> Result<Limits, Failure> {
    const TRY: &str = "RULE.NAME=NUMBER, such as client-queue.queue_ms=5; docs/doctor-rules.md \
                       lists all";
    let mut limits = Limits::default();
    for one in set {
        let wrong = |why: String| Failure::usage(format!("--set {one}: {why}"), TRY);
        let (name, value) = limit(one).ok_or_else(|| wrong("no name and number".to_owned()))?;
        limits.set(name, value).map_err(wrong)?;
    }
    Ok(limits)
}

fn limit(text: &str) -> Option<(&str, f64)> {
    let (name, value) = text.split_once('=')?;
    Some((name, value.parse().ok()?))
}

fn saved(path: &Path) -> Result<Files, Failure> {
    collect::saved(path).map_err(|cause| {
        let what = format!("cannot read {}: {cause}", path.display());
        Failure::environment(what, hints::reading(&cause))
    })
}

/// Both samples of this host, and reports of our own servers and mounts here.
fn live(args: &Doctor, verbosity: Verbosity) -> Result<(Files, Vec<Report>), Failure> {
    let root = Path::new("/");
    let first = look(root);
    let mut bars = Bars::new(verbosity);
    let waited = net::runtime::block_on(async {
        let clock = Clock::real();
        let pages = Pages::take(&clock).await;
        wait(&clock, args.span.unwrap_or(SPAN), &mut bars).await;
        match pages.is_empty() {
            true => Vec::new(),
            false => Pages::take(&clock).await.reports(&pages, &clock),
        }
    });
    bars.clear();
    let ours = waited.map_err(|cause| Failure::resources(format!("cannot wait: {cause}")))?;
    Ok((both(root, first, look(root)), ours))
}

async fn wait(clock: &Clock, span: Nanos, bars: &mut Bars) {
    let begin = clock.now();
    loop {
        let passed = clock.now().since(begin);
        if passed >= span {
            return;
        }
        bars.show("between two looks", passed.as_secs_f64() / span.as_secs_f64());
        clock.sleep(span.saturating_sub(passed).min(STEP)).await;
    }
}

/// Between the two samples, unless given.
const SPAN: Nanos = Nanos::from_secs(10);

/// Between two looks at the bar.
const STEP: Nanos = Nanos::from_millis(200);

/// What was passed over: a line each, of a folder with many only the first.
fn say_ignored(evidence: &Evidence) {
    const LINES_MAX: usize = 12;
    let (shown, left) = evidence.notes.split_at(evidence.notes.len().min(LINES_MAX));
    shown.iter().for_each(|note| output::say(format_args!("{}: {}; ignored", note.path, note.why)));
    if !left.is_empty() {
        output::say(format_args!("and {} others were ignored; --json has all", left.len()));
    }
}

fn unusable(args: &Doctor, evidence: &Evidence) -> Failure {
    say_ignored(evidence);
    let what = match &args.from {
        Some(path) => format!("there is nothing usable in {}", path.display()),
        None => "this host's kernel shows no counters of NFS".to_owned(),
    };
    Failure::environment(
        what,
        "cat /proc/self/mountstats > FILE on the host with the mount, then nfskit doctor --from \
         FILE; nfskit probe URL measures a server without a mount",
    )
}

/// Without asking any file system: a path below a dead mount must not hold us up.
fn absolute(path: &str) -> String {
    absolute_from(&std::env::var("PWD").unwrap_or_default(), path)
}

/// The same of a process whose working directory is `begin`.
fn absolute_from(begin: &str, path: &str) -> String {
    let begin = if path.starts_with('/') { "" } else { begin };
    let mut parts: Vec<&str> = Vec::new();
    for part in begin.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

fn is_below(path: &str, point: &str) -> bool {
    let point = point.trim_end_matches('/');
    path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_mount_it_is_below() {
        assert!(is_below("/mnt/a/b", "/mnt/a") && is_below("/mnt/a", "/mnt/a/"));
        assert!(!is_below("/mnt/ab", "/mnt/a") && is_below("/x", "/"));
        assert_eq!(absolute("/mnt/./a/../b//c/"), "/mnt/b/c");
    }
}
