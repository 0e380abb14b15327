//! Servers that mounts and proxies reach by the protocol, as their settings say.

use std::collections::HashSet;

use client::error::Error;
use client::mount::{self, Mounted, Persistence};
use client::session::Complaints;
use net::call::{Event, Events};
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Nanos;
use wire::nfs3::FType;

use crate::exit::Failure;
use crate::mounts::settings::Settings;
use crate::target::is_loopback;

/// Different complaints of a server: there are fewer procedures, and ways to answer them wrongly.
const COMPLAINTS_MAX: usize = 100;

/// How long a server of this host may take until it listens, and how often it is looked for. Guess:
/// mount(8) tries for two minutes, and of a wrong port one wants to know sooner.
const LISTENS_WITHIN: Nanos = Nanos::from_secs(2);
const TRY_AGAIN: Nanos = Nanos::from_millis(50);

/// What a server is reached for, where sentences differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    Mount,
    Origin,
}

impl Role {
    fn as_what(self) -> &'static str {
        match self {
            Self::Mount => "",
            Self::Origin => " as the origin",
        }
    }

    /// The server as a subject, and what stands before its name as an object.
    fn server(self) -> (&'static str, &'static str) {
        match self {
            Self::Mount => ("server", ""),
            Self::Origin => ("origin", "the origin "),
        }
    }

    fn directory(self) -> &'static str {
        match self {
            Self::Mount => "a directory that exists inside the export",
            Self::Origin => "a directory that exists inside the origin's export",
        }
    }
}

/// Mounts what the settings name, with options that say the rest.
///
/// # Errors
/// It cannot be mounted, or is no directory.
pub async fn mounted(
    clock: &Clock,
    settings: &Settings,
    options: &mut mount::Options,
    events: Events,
    role: Role,
) -> Result<Mounted, Failure> {
    let target = &settings.target;
    options.persistence = Some(Persistence {
        nconnect: settings.nconnect,
        soft: settings.soft,
        timeo: settings.timeo,
        retrans: settings.retrans,
        insist: false,
        events,
    });
    let (is_here, options) = (is_loopback(&target.host), &*options);
    let mount = || mount::mount(clock, target, options);
    let mut mounted = begun(clock, is_here, mount).await.map_err(|error| {
        let on_the_way = matches!(&error, Error::Status { .. });
        let failure = Failure::from(error);
        match on_the_way {
            true => failure.and(format!("mounting {}{}", target.path_text(), role.as_what())),
            false => failure,
        }
    })?;
    let most = |bytes: Option<u32>| bytes.unwrap_or(u32::MAX);
    mounted.session = mounted.session.limited(most(settings.rsize), most(settings.wsize));
    // Before anybody would wait patiently for it.
    let root = mounted.session.getattr(mounted.session.root()).await?;
    if root.ftype != FType::Dir {
        return Err(Failure::environment(
            format!("{} of {} is not a directory", target.path_text(), target.host),
            role.directory(),
        ));
    }
    Ok(mounted)
}

/// A server of this host that was started just before, as in a script, may not listen yet.
async fn begun<T, F: Future<Output = Result<T, Error>>>(
    clock: &Clock,
    is_here: bool,
    mount: impl Fn() -> F,
) -> Result<T, Error> {
    let until = clock.now() + LISTENS_WITHIN;
    loop {
        match mount().await {
            Err(error) if is_here && error.is_refused() && clock.now() < until => {
                clock.sleep(TRY_AGAIN).await;
            }
            outcome => return outcome,
        }
    }
}

/// Programs and clients learn of a server that makes no sense by an error's number; here a line
/// says in words what it has done: each thing once.
pub fn complaints(
    words: impl Fn(&Error) -> String + Send + Sync + 'static,
    say: impl Fn(&str) + Send + Sync + 'static,
) -> Complaints {
    let reported = Mutex::new(HashSet::new());
    Complaints::new(move |error| {
        let text = words(error);
        let mut reported = reported.lock();
        if reported.len() < COMPLAINTS_MAX && reported.insert(text.clone()) {
            say(&text);
        }
    })
}

/// A server that goes away or comes back, in the sentences of Linux.
pub fn events(
    settings: &Settings,
    role: Role,
    hear: impl Fn(&Event, &str) + Send + Sync + 'static,
) -> Events {
    let host = settings.target.host.clone();
    let so = if settings.soft { "calls fail" } else { "still trying" };
    let (subject, object) = role.server();
    Events::new(move |event| {
        let text = match &event {
            Event::NotResponding => format!("{subject} {host} not responding, {so}"),
            Event::Responding => format!("{subject} {host} OK"),
            Event::Disconnected { cause } => {
                format!("connection to {object}{host} lost ({cause}), connecting again")
            }
            Event::Reconnected => format!("connected to {object}{host} again"),
        };
        hear(&event, &text);
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use client::error::Service;
    use net::error::ConnectError;
    use world::World;

    use super::*;

    /// How often it is tried to mount a server that listens at the third time, and whether it was
    /// mounted.
    fn tries(is_here: bool) -> (u32, bool) {
        let run = World::new(1).run(move |stage| async move {
            let tries = AtomicU32::new(0);
            let mount = || {
                let earlier = tries.fetch_add(1, Ordering::Relaxed);
                let address = ([127, 0, 0, 1], 2049).into();
                let cause = ConnectError::Refused { address };
                let refused = Error::Connect { service: Service::Nfs, cause };
                let (host, service) = ("localhost".to_owned(), Service::Nfs);
                let nowhere = Error::NotFound { host, service, tried: vec![refused] };
                std::future::ready(if earlier < 2 { Err(nowhere) } else { Ok(()) })
            };
            let mounted = begun(stage.clock(), is_here, mount).await.is_ok();
            (tries.into_inner(), mounted)
        });
        run.unwrap()
    }

    #[test]
    fn a_server_of_this_host_that_was_just_started_is_waited_for() {
        assert_eq!(tries(true), (3, true));
        assert_eq!(tries(false), (1, false), "elsewhere nothing was just started");
    }
}
