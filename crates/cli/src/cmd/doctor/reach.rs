//! The phases of a mount on a terminal: of a server that is asked, without mounting it.

use checks::{Checked, Failed, Options, Outcome, Step};
use client::url::Target;
use doctor::reach::{Answering, Phase};
use harness::exit::Failure;
use harness::output;
use harness::signals::Interrupts;
use harness::target;
use harness::values;
use harness::verbosity::Verbosity;
use net::clock::Clock;
use net::shape::Shape;

use super::FOUND;
use crate::args::doctor::Doctor;

/// Runs the command for a URL.
pub(super) fn run(args: &Doctor, url: &str, verbosity: Verbosity) -> Result<(), Failure> {
    let (target, has_path) = target_of(url)?;
    if args.write && !has_path {
        return Err(Failure::usage("--write without an export", "nfs://HOST/EXPORT"));
    }
    if args.html.is_some() {
        return Err(Failure::usage("a URL has no report in HTML", "--json, or the text"));
    }
    let ran = net::runtime::block_on(asked(args, &target, has_path));
    let checked = ran.map_err(|cause| {
        Failure::environment(cause, "raise the limit of open files (ulimit -n)")
    })??;
    if output::prints_text(verbosity, [&args.json]) {
        output::print(&text(&checked))?;
    }
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&checked).expect("numbers and texts are JSON");
        output::write(path, &format!("{json}\n"))?;
    }
    if checked.failed().is_some() { Err(Failure::told(FOUND)) } else { Ok(()) }
}

/// A host alone is asked for its exports only.
fn target_of(url: &str) -> Result<(Target, bool), Failure> {
    // The line after it has the form of all URLs.
    let bad = |cause: String| {
        let first = cause.lines().next().unwrap_or_default();
        Failure::usage(first, "nfs://HOST for its exports, or nfs://HOST/EXPORT")
    };
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let has_path = rest.contains('/');
    let whole = match has_path {
        true => url.to_owned(),
        false => match url.split_once('?') {
            Some((host, arguments)) => format!("{host}/?{arguments}"),
            None => format!("{url}/"),
        },
    };
    Ok((values::target(&whole).map_err(bad)?, has_path))
}

async fn asked(args: &Doctor, target: &Target, has_path: bool) -> Result<Checked, Failure> {
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
        None => "\nEvery phase that a mount needs is well.\n".to_owned(),
    });
    text
}

/// It was not come to.
fn is_left(step: &Step) -> bool {
    matches!(&step.outcome, Outcome::Skipped(why) if why == checks::AFTER_A_FAILURE)
}

fn line(step: &Step) -> String {
    let ms = step.ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let (how, what) = match &step.outcome {
        Outcome::Done(what) => ("ok", what),
        Outcome::Failed(failed) if failed.is_optional => ("no", &failed.what),
        Outcome::Failed(failed) => ("FAILED", &failed.what),
        Outcome::Skipped(why) => ("-", why),
    };
    format!("  {:<14}{how:<8}{ms:>10}  {what}\n", step.phase)
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
        assert!(of("http://h/").is_err() && of("://").is_err());
    }
}
