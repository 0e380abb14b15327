//! From settings to files: mounting by the protocol.

use cache::{Cache, Limits};
use client::error::Error;
use client::files::{Files, Options};
use client::mount;
use client::session::{Complaints, Credential, Session};
use client::write_behind;
use harness::emulated;
use harness::exit::Failure;
use harness::mounts::disk;
use harness::mounts::reached::{self, Role};
use harness::mounts::settings::Settings;
use harness::target;
use net::call::{Event, Events};
use net::clock::Clock;
use net::slack::Slack;
use net::transport::buffer::Pool;
use wire::nfs3::StableHow;

use super::notices::Notices;

/// A server's file system, ready to be mounted here.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) files: Files,
    /// Of the user who mounts, or the one that the URL names.
    pub(super) credential: Credential,
    /// What is spoken with the server, in words.
    pub(super) spoken: String,
}

/// Mounts by the protocol.
pub(super) async fn reach(
    clock: &Clock,
    settings: &Settings,
    notices: &Notices,
) -> Result<Reached, Failure> {
    let target = &settings.target;
    emulated::calibrate(clock, &settings.link).await?;
    let mut options =
        target::options(target, mount::Options::REPLY_LIMIT, settings.link.clone().into());
    let events = events(settings, notices);
    let mounted = reached::mounted(clock, settings, &mut options, events, Role::Mount).await?;
    let session = mounted.session.complaining(complaints(notices));
    let disk = cached(settings, &session, notices)?;
    let files = Files::on_disk(clock, session, file_options(settings), disk);
    give_memory_back(clock, &files, options.pool.clone());
    let protocol = target.protocol.name().to_uppercase();
    let spoken = format!("NFS v{} over {protocol}", target.version.number());
    Ok(Reached { files, credential: options.credential, spoken })
}

fn file_options(settings: &Settings) -> Options {
    Options {
        times: settings.times,
        close_to_open: settings.close_to_open,
        write: write_options(settings),
        sync: settings.sync,
        put_off_max: settings.put_off_max(),
        ..Options::default()
    }
}

fn write_options(settings: &Settings) -> write_behind::Options {
    let default = write_behind::Options::default();
    write_behind::Options {
        policy: settings.policy,
        stable: if settings.sync { StableHow::FileSync } else { StableHow::Unstable },
        timing: settings.metrics.is_some(),
        dirty_bytes_max: settings.dirty_max.unwrap_or(default.dirty_bytes_max),
        ..default
    }
}

/// What replies and written data have taken goes back to the system when the load is over.
fn give_memory_back(clock: &Clock, files: &Files, pool: Pool) {
    let (files, received) = (files.clone(), pool.clone());
    let look = move || {
        let (written_peak_bytes, written_bytes) = files.write_behind().take_peak_bytes();
        let read_bytes = files.read_ahead_bytes().max(received.taken_bytes());
        (written_peak_bytes + received.take_peak_bytes(), written_bytes + read_bytes)
    };
    clock.spawn(Slack::default().watch(clock.clone(), look, move || pool.release()));
}

/// What a server has done that makes no sense.
fn complaints(notices: &Notices) -> Complaints {
    let words = |error: &Error| match error.status() {
        Some(_) => format!("{error}: the server keeps putting it off (JUKEBOX)"),
        None => error.to_string(),
    };
    let notices = notices.clone();
    reached::complaints(words, move |text| notices.warn(text))
}

/// What comes of a server that goes away, or comes back.
fn events(settings: &Settings, notices: &Notices) -> Events {
    let notices = notices.clone();
    reached::events(settings, Role::Mount, move |event, text| match event {
        Event::Reconnected => notices.say(text),
        _ => notices.warn(text),
    })
}

/// The cache on a local disk that was requested.
fn cached(
    settings: &Settings,
    session: &Session,
    notices: &Notices,
) -> Result<Option<Cache>, Failure> {
    let Some(dir) = &settings.disk else { return Ok(None) };
    let limits = Limits::default();
    let limits = Limits {
        bytes_max: settings.disk_bytes_max.unwrap_or(limits.bytes_max),
        files_max: settings.disk_files_max.unwrap_or(limits.files_max),
        ..limits
    };
    let notices = notices.clone();
    disk::open(dir, &settings.target, session, limits, move |text| notices.warn(text))
}
