//! Servers that mounts and proxies reach by the protocol, as their settings say.

use std::collections::HashSet;

use client::error::Error;
use client::mount::{self, Mounted, Persistence};
use client::session::Complaints;
use net::call::{Event, Events};
use net::clock::Clock;
use parking_lot::Mutex;
use wire::nfs3::FType;

use crate::exit::Failure;
use crate::mounts::settings::Settings;

/// Different complaints of a server: there are fewer procedures, and ways to answer them wrongly.
const COMPLAINTS_MAX: usize = 100;

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
    let mut mounted = mount::mount(clock, target, options).await.map_err(|error| {
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
