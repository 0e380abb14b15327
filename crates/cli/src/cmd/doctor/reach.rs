//! The phases of a mount on a terminal: of a server that is asked, without mounting it.

use checks::{Checked, Failed, Options, Outcome, Step};
use client::url::Target;
use doctor::reach::{Answering, Phase};
use harness::exit::Failure;
use harness::output;
use harness::shell;
use harness::signals::Interrupts;
use harness::target;
use harness::values;
use harness::verbosity::Verbosity;
use net::clock::Clock;
use net::shape::Shape;
use report::Numbers;
use report::doctor::{DoctorReport, Subject};
use study::probe;

use super::FOUND;
use crate::args::doctor::Doctor;

/// Runs the command for a URL.
pub(super) fn run(args: &Doctor, url: &str, verbosity: Verbosity) -> Result<(), Failure> {
    let (target, has_path) = target_of(url)?;
    if args.write && !has_path {
        return Err(Failure::usage("--write without an export", "nfs://HOST/EXPORT"));
    }
    if args.probe && !has_path {
        return Err(Failure::usage("--probe without an export", "nfs://HOST/EXPORT"));
    }
    let ran = net::runtime::block_on(checked(args, &target, has_path));
    let checked = ran.map_err(Failure::resources)??;
    let prints_text = output::prints_text(verbosity, [&args.json, &args.html]);
    if prints_text {
        output::print(&text(&checked))?;
    }
    // The parameters of a path on which nothing can be done are none.
    let probed = match args.probe && checked.failed().is_none() {
        true => Some(probe::quick(&target, verbosity)?),
        false => None,
    };
    if let Some(probed) = probed.as_ref().filter(|_| prints_text) {
        output::print(&format!("\n{}", probed.text))?;
    }
    if let Some(path) = &args.json {
        let mut json = serde_json::to_value(&checked).expect("numbers and texts are JSON");
        if let Some(probed) = &probed {
            json["probe"] = serde_json::from_str(&probed.record).expect("our own record is JSON");
        }
        output::write(path, &format!("{json:#}\n"))?;
    }
    if let Some(path) = &args.html {
        output::write(path, &page(&checked, probed.as_ref()))?;
    }
    if checked.failed().is_some() { Err(Failure::printed(FOUND)) } else { Ok(()) }
}

/// Of a host alone only the exports are requested. Forms are those of mount(8), and a URL's.
fn target_of(server: &str) -> Result<(Target, bool), Failure> {
    let plain;
    let url = match server.contains("://") || server.contains(":/") {
        true => server,
        false => {
            let (host, arguments) = server.split_once('?').unwrap_or((server, ""));
            let host = host.trim_matches(['[', ']']);
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            plain = format!("nfs://{host}?{arguments}");
            &plain
        }
    };
    // The line after it has the form of all URLs.
    let bad = |cause: String| {
        let first = cause.lines().next().unwrap_or_default();
        Failure::usage(first, "HOST for its exports, HOST:/EXPORT or nfs://HOST/EXPORT")
    };
    let has_path = url.split_once("://").is_none_or(|(_, rest)| rest.contains('/'));
    let whole = match has_path {
        true => url.to_owned(),
        false => match url.split_once('?') {
            Some((host, arguments)) => format!("{host}/?{arguments}"),
            None => format!("{url}/"),
        },
    };
    Ok((values::target(&whole).map_err(bad)?, has_path))
}

async fn checked(args: &Doctor, target: &Target, has_path: bool) -> Result<Checked, Failure> {
    let clock = Clock::real();
    let mut interrupts = Interrupts::catch()?;
    let mut mount = target::options(target, args.limit, Shape::default());
    mount.connect_limit = args.limit;
    let options = Options {
        mount,
        limit: args.limit,
        writes: args.write,
        is_privileged: rustix::process::geteuid().is_root(),
        has_path,
    };
    // What was begun on the server is ended there: an interrupt is seen between phases.
    let is_stopped = std::cell::Cell::new(false);
    let mut walk = std::pin::pin!(checks::walk(&clock, target, &options, || is_stopped.get()));
    let checked = loop {
        tokio::select! {
            biased;
            () = interrupts.next(), if !is_stopped.get() => is_stopped.set(true),
            checked = &mut walk => break checked,
        }
    };
    if is_stopped.get() { Err(Failure::interrupted()) } else { Ok(checked) }
}

/// As a page: the phases as a table, and what they come to.
fn page(checked: &Checked, probed: Option<&probe::Found>) -> String {
    let columns = ["phase", "", "ms", "what"].map(str::to_owned).into();
    let rows = checked.steps.iter().map(|step| {
        let ms = step.ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
        let (how, what) = outcome(step);
        vec![step.phase.name().to_owned(), how.to_owned(), ms, what.to_owned()]
    });
    let findings = Numbers {
        title: "Phases of a mount".to_owned(),
        caption: "`no` is a phase that a mount can do without.".to_owned(),
        columns,
        rows: rows.collect(),
    };
    let said = [times(checked), clocks(checked), others(checked)].into_iter().flatten();
    let mut facts: Vec<_> = said.map(|said| ("besides".to_owned(), said)).collect();
    let verdict = match checked.failed() {
        Some((phase, failed)) => {
            let each = failed.causes.iter().zip(1..);
            let cause = |(cause, number): (&doctor::reach::Cause, usize)| {
                (format!("likely cause {number}"), format!("{}; try: {}", cause.what, cause.check))
            };
            facts.extend(each.map(cause));
            format!("It fails at {phase}: {}.", failed.what)
        }
        None => WELL.to_owned(),
    };
    let title = checked.target.clone();
    let mut subjects = vec![Subject { title, verdict, facts, findings, ..Subject::default() }];
    subjects.extend(probed.map(|probed| Subject {
        title: "Probe".to_owned(),
        verdict: probed.sentence.clone(),
        facts: probed.parameters.clone(),
        ..Subject::default()
    }));
    report::doctor::html(&DoctorReport {
        title: "nfskit doctor".to_owned(),
        facts: vec![("Server".to_owned(), checked.target.clone())],
        subjects,
        command: shell::own(),
        ..DoctorReport::default()
    })
}

const WELL: &str = "Every phase that a mount needs is well.";

fn text(checked: &Checked) -> String {
    let mut text = format!("{}\n\n", checked.target);
    let (shown, left): (Vec<_>, Vec<_>) = checked.steps.iter().partition(|step| !is_left(step));
    shown.into_iter().for_each(|step| text.push_str(&line(step)));
    if let Some(Outcome::Skipped(why)) = left.first().map(|step| &step.outcome) {
        let names: Vec<_> = left.iter().map(|step| step.phase.name()).collect();
        text.push_str(&format!("  not tried, since {why}: {}\n", names.join(", ")));
    }
    let said = [times(checked), clocks(checked), others(checked)];
    for (at, said) in said.into_iter().flatten().enumerate() {
        text.push_str(&format!("{}  {said}\n", if at == 0 { "\n" } else { "" }));
    }
    text.push_str(&match checked.failed() {
        Some((phase, failed)) => verdict(phase, failed),
        None => format!("\n{WELL}\n"),
    });
    text
}

/// It was not come to.
fn is_left(step: &Step) -> bool {
    matches!(&step.outcome, Outcome::Skipped(why) if why == checks::AFTER_A_FAILURE)
}

fn line(step: &Step) -> String {
    let ms = step.ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let (how, what) = outcome(step);
    format!("  {:<14}{how:<8}{ms:>10}  {what}\n", step.phase)
}

fn outcome(step: &Step) -> (&'static str, &str) {
    match &step.outcome {
        Outcome::Done(what) => ("ok", what),
        Outcome::Failed(failed) if failed.is_optional => ("no", &failed.what),
        Outcome::Failed(failed) => ("FAILED", &failed.what),
        Outcome::Skipped(why) => ("-", why),
    }
}

fn times(checked: &Checked) -> Option<String> {
    let (connect, null) = checked.connect_ms.zip(checked.null_ms)?;
    let says = match checked.answering {
        Answering::AsFastAsTcp => "the server answers about as fast as the network lets it",
        Answering::SlowServer => {
            "the server takes its time for a call that does nothing: its processors or threads are \
             busy"
        }
        Answering::Unknown => return None,
    };
    Some(format!("NULL takes {null:.3} ms, a TCP connection {connect:.3} ms: {says}."))
}

fn clocks(checked: &Checked) -> Option<String> {
    let Some(clock) = checked.clock else {
        let is_reached = checked.failed().is_none();
        return is_reached
            .then(|| "How far the clocks differ is not known: --write compares them.".to_owned());
    };
    Some(match clock.is_seen() {
        true => format!(
            "The server's clock is {:.0} ms {} ours, give or take {:.0} ms: make and caches go by \
             it (chronyc tracking, on both).",
            clock.ahead_ms.abs(),
            if clock.ahead_ms > 0.0 { "ahead of" } else { "behind" },
            clock.error_ms,
        ),
        false => {
            format!("The clocks differ by no more than can be seen, {:.0} ms.", clock.error_ms)
        }
    })
}

fn others(checked: &Checked) -> Option<String> {
    let each = checked.others.iter().map(|other| match (&other.why, other.answers) {
        (Some(why), false) => format!("{} no ({why})", other.what),
        (_, answers) => format!("{} {}", other.what, if answers { "yes" } else { "no" }),
    });
    let each = each.collect::<Vec<_>>().join("; ");
    (!each.is_empty()).then(|| format!("Also tried: {each}."))
}

fn verdict(phase: Phase, failed: &Failed) -> String {
    let mut text = format!(
        "\nIt fails at {phase}: {}.\n\n  likely causes, the likeliest first\n",
        failed.what
    );
    for (number, cause) in failed.causes.iter().enumerate() {
        text.push_str(&format!("  {}. {}\n     try: {}\n", number + 1, cause.what, cause.check));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_alone_has_no_export() {
        let of = |url: &str| target_of(url).map(|(target, has_path)| (target.host, has_path));
        assert_eq!(of("nfs://h").unwrap(), ("h".to_owned(), false));
        assert_eq!(of("nfs://h?nfsport=1").unwrap(), ("h".to_owned(), false));
        assert_eq!(of("nfs://h/").unwrap(), ("h".to_owned(), true));
        assert_eq!(of("nfs://h/export").unwrap(), ("h".to_owned(), true));
        assert_eq!(of("h").unwrap(), ("h".to_owned(), false));
        assert_eq!(of("h:/export").unwrap(), ("h".to_owned(), true));
        assert_eq!(of("::1").unwrap(), ("::1".to_owned(), false));
        assert_eq!(of("[::1]:/x?nfsport=7").unwrap(), ("::1".to_owned(), true));
        assert!(of("http://h/").is_err() && of("://").is_err() && of("a b").is_err());
    }
}
