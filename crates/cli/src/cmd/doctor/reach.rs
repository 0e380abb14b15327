//! `nfskit doctor HOST`: the phases of a mount of a server, without mounting it.

use checks::{Checked, Options};
use client::url::Target;
use harness::exit::Failure;
use harness::output;
use harness::shell;
use harness::signals::Interrupts;
use harness::target;
use harness::unused;
use harness::values;
use harness::verbosity::Verbosity;
use net::clock::Clock;
use net::shape::Shape;
use perf::units::Nanos;
use report::doctor::Subject;
use study::probe;

use super::FOUND;
use crate::args::doctor::Doctor;

/// Of each step, unless given.
const LIMIT: Nanos = Nanos::from_secs(3);

/// Runs the command for a URL.
pub(super) fn run(args: &Doctor, url: &str, verbosity: Verbosity) -> Result<(), Failure> {
    let (target, has_path) = target_of(url)?;
    if !has_path {
        let needy = [(args.write, "--write"), (args.probe, "--probe")];
        unused::refuse(needy, "an export: HOST:/EXPORT or nfs://HOST/EXPORT")?;
    }
    let ran = net::runtime::block_on(checked(args, &target, has_path));
    let checked = ran.map_err(Failure::resources)??;
    let prints_text = output::prints_text(verbosity, [&args.json, &args.html]);
    if prints_text {
        output::print(&checks::text(&checked))?;
    }
    // The parameters of a path on which nothing can be done are none.
    let probed = match args.probe && checked.failed().is_none() {
        true => Some(probe::quick(&target, verbosity)?),
        false => None,
    };
    if let Some(probed) = probed.as_ref().filter(|_| prints_text) {
        output::print(&format!("\n{}", probed.text))?;
    }
    write(args, &checked, probed.as_ref())?;
    if checked.failed().is_some() { Err(Failure::printed(FOUND)) } else { Ok(()) }
}

/// The record and the page that are wanted.
fn write(args: &Doctor, checked: &Checked, probed: Option<&probe::Found>) -> Result<(), Failure> {
    output::write_to(&args.json, || json(checked, probed))?;
    output::write_to(&args.html, || checks::page(checked, probed.map(subject), shell::own()))
}

fn json(checked: &Checked, probed: Option<&probe::Found>) -> String {
    let mut json = serde_json::to_value(checked).expect("numbers and texts are JSON");
    if let Some(probed) = probed {
        json["probe"] = serde_json::from_str(&probed.record).expect("our own record is JSON");
    }
    format!("{json:#}\n")
}

fn subject(probed: &probe::Found) -> Subject {
    Subject {
        title: "Probe".to_owned(),
        verdict: probed.sentence.clone(),
        facts: probed.parameters.clone(),
        ..Subject::default()
    }
}

/// The target, and whether it has a path: of a host alone only the exports are requested. Forms are
/// those of mount(8), and a URL's.
fn target_of(server: &str) -> Result<(Target, bool), Failure> {
    let is_whole = server.contains("://") || server.contains(":/");
    let url = if is_whole { server.to_owned() } else { url_of_host(server) };
    let has_path = url.split_once("://").is_none_or(|(_, rest)| rest.contains('/'));
    let url = match (has_path, url.split_once('?')) {
        (true, _) => url,
        (false, Some((host, arguments))) => format!("{host}/?{arguments}"),
        (false, None) => format!("{url}/"),
    };
    // The line after the first has the form of all URLs.
    let bad = |cause: String| {
        let first = cause.lines().next().unwrap_or_default();
        Failure::usage(first, "HOST for its exports, HOST:/EXPORT or nfs://HOST/EXPORT")
    };
    Ok((values::target(&url).map_err(bad)?, has_path))
}

fn url_of_host(server: &str) -> String {
    let (host, arguments) = server.split_once('?').unwrap_or((server, ""));
    let host = host.trim_matches(['[', ']']);
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    format!("nfs://{host}?{arguments}")
}

async fn checked(args: &Doctor, target: &Target, has_path: bool) -> Result<Checked, Failure> {
    let clock = Clock::real();
    let mut interrupts = Interrupts::catch()?;
    let limit = args.limit.unwrap_or(LIMIT);
    let mut mount = target::options(target, limit, Shape::default());
    mount.connect_limit = limit;
    let options = Options {
        mount,
        limit,
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
