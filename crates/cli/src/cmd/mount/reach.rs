//! From settings to files: mounting by the protocol, and what runs beside it.

use std::net::SocketAddr;

use client::files::{Files, Options};
use client::mount;
use client::session::Credential;
use net::clock::Clock;
use net::http::{Found, Listener};
use perf::units::Nanos;

use super::settings::Settings;
use super::voice::Voice;
use crate::cmd::study;
use crate::exit::Failure;

/// How long a call may take, where nothing else is said: timeo of nfs(5) over TCP.
const REPLY_LIMIT: Nanos = Nanos::from_secs(60);

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
    _voice: &Voice,
) -> Result<Reached, Failure> {
    let limit = settings.timeo.unwrap_or(REPLY_LIMIT);
    let options = study::options(&settings.target, limit, settings.link);
    let mounted = mount::mount(clock, &settings.target, &options).await?;
    let files = Files::new(
        clock,
        mounted.session,
        Options {
            times: settings.times,
            close_to_open: settings.close_to_open,
            ..Options::default()
        },
    );
    let spoken = format!("NFS v3 over {}", settings.target.protocol.name().to_uppercase());
    Ok(Reached { files, credential: options.credential, spoken })
}

/// Answers /metrics and /healthz.
pub(super) fn metrics(
    clock: &Clock,
    listen: SocketAddr,
    _reached: &Reached,
) -> Result<(), Failure> {
    let listener = Listener::bind(listen).map_err(|cause| {
        Failure::environment(format!("{listen}: {cause}"), "another address or port for metrics")
    })?;
    let pages = |path: &str| (path == "/healthz").then(|| Found::text("ok\n"));
    let own = clock.clone();
    clock.spawn(async move { listener.serve(own, pages).await });
    Ok(())
}
