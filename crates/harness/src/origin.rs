//! The origin of a proxy: another server's export, by its name and options of nfs(5).

use std::path::Path;

use client::error::Error;
use client::mount::{self, Mounted};
use client::session::Credential;
use client::url::Target;
use net::clock::Clock;
use net::shape::Shape;
use server::types::Caller;

use crate::exit::Failure;
use crate::mounts::reached::{self, Role};
use crate::mounts::settings::{self, Settings};
use crate::{output, target};

/// Options of the origin's mount that mean something to a proxy.
const WORDS: &[&str] = &[
    "hard",
    "soft",
    "timeo",
    "retrans",
    "nconnect",
    "rsize",
    "wsize",
    "port",
    "mountport",
    "proto",
    "tcp",
    "udp",
    "vers",
    "nfsvers",
    "link",
];

/// Whether what is to be served is an export of another server, and no directory of this name.
pub fn is_origin(name: &str) -> bool {
    let is_url = name.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("nfs://"));
    let is_target =
        name.split_once(":/").is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'));
    is_url || (is_target && !Path::new(name).exists())
}

/// The origin by its name, with options of nfs(5).
pub fn settings(store: &str, options: &str) -> Result<Settings, Failure> {
    let wrong = |why: String| Failure::usage(format!("--origin {why}"), "nfskit serve --help");
    let mut settings = Settings::of(store).map_err(|why| no_origin(&why))?;
    for word in settings::split(options) {
        applied(&mut settings, &word).map_err(wrong)?;
    }
    Ok(settings)
}

/// What is wrong with its name, and below it the form that is right, if that is known.
fn no_origin(why: &str) -> Failure {
    let (what, form) = why.split_once('\n').unwrap_or((why, "nfskit serve --help"));
    Failure::usage(what, form.trim())
}

fn applied(settings: &mut Settings, word: &str) -> Result<(), String> {
    let key = word.split('=').next().unwrap_or_default();
    match WORDS.contains(&key) {
        true => settings.word(word),
        false => Err(format!("{word:?} is not an option of a proxy; known: {}", WORDS.join(", "))),
    }
}

/// Mounts the origin's export.
pub async fn mounted(clock: &Clock, settings: &Settings) -> Result<Mounted, Failure> {
    let target = &settings.target;
    let links = settings.link.clone().into();
    let mut options = mount::Options { links, ..own_options(target) };
    let events = reached::events(settings, Role::Origin, |_, text| output::say(text));
    let mut mounted = reached::mounted(clock, settings, &mut options, events, Role::Origin).await?;
    let words = |error: &Error| format!("the origin's reply cannot be decoded: {error}");
    let complaints = reached::complaints(words, |text| output::say(text));
    mounted.session = mounted.session.complaining(complaints);
    Ok(mounted)
}

/// Those of a mount without an emulated link.
fn own_options(target: &Target) -> mount::Options {
    target::options(target, mount::Options::REPLY_LIMIT, Shape::default())
}

/// Who everyone is at the origin, if the URL says so.
pub fn everyone(target: &Target) -> Option<Caller> {
    let Credential { uid, gid, .. } = own_options(target).credential;
    let is_named = target.uid.is_some() || target.gid.is_some();
    is_named.then(|| Caller { uid, gid, gids: Vec::new() })
}

/// Which origin it is, in handles and logs.
pub fn name(target: &Target) -> String {
    let port = target.nfs_port.map_or_else(String::new, |port| port.to_string());
    format!("{}:{port}:{}", target.host, target.path_text())
}

/// The same as commands take it. A log has room for some of it alone.
pub fn as_target(name: &str) -> String {
    let parts = name.split_once(":/").and_then(|(before, path)| {
        let (host, port) = before.rsplit_once(':')?;
        Some((host, port, path))
    });
    match parts {
        Some((host, "", path)) => format!("{host}:/{path}"),
        Some((host, port, path)) => format!("nfs://{host}:{port}/{path}"),
        None => name.to_owned(),
    }
}

pub fn no_key(why: proxy::HandlesError) -> Failure {
    Failure::environment(why, "a system with getrandom(2)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_in_a_log_is_shown_as_commands_take_it() {
        for (url, shown) in [
            ("nfs://filer/export", "filer:/export"),
            ("filer:/export", "filer:/export"),
            ("nfs://filer:2050/a:/b", "nfs://filer:2050/a:/b"),
        ] {
            let target: Target = url.parse().unwrap();
            assert_eq!(as_target(&name(&target)), shown);
        }
        assert_eq!(as_target("a-host-whose-name-is-cut"), "a-host-whose-name-is-cut");
    }
}
