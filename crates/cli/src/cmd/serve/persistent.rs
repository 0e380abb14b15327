//! What outlives the process: the state directory, and replies in it.

use std::io;

use harness::exit::Failure;
use harness::exports::Spec;
use harness::sockets::Sockets;
use harness::state::{self, State};
use net::clock::Clock;
use server::Replies;
use server::store::dir::leads_to;
use world::machine::times;

use super::banner::Banner;
use crate::args::Serve;

/// Replies that are remembered for retransmissions, some 400 bytes each.
pub(super) const REPLIES_MAX: usize = 65_536;

/// Of these, those that outlive the process: several times the calls that are served at once.
const SLOTS_MIN: usize = 8192;

/// The place for what outlives the process; none when nobody will come back to this port.
fn open_state(args: &Serve, sockets: &Sockets) -> Result<Option<State>, String> {
    let Some(base) = args.state.clone().or_else(state::default_base) else {
        return Err("there is no home directory; --state DIR names another".to_owned());
    };
    if args.listen.port() == 0 && args.state.is_none() {
        return Ok(None);
    }
    let port = sockets.address.port();
    let opened = State::open(&base, port);
    opened.map(Some).map_err(|cause| {
        format!("{}: {cause}; --state DIR names another", base.join(port.to_string()).display())
    })
}

/// The state directory of what cannot be served without one; none where nobody says which.
///
/// # Errors
/// It cannot be used.
pub(super) fn needed_state(args: &Serve, sockets: &Sockets) -> Result<Option<State>, Failure> {
    open_state(args, sockets).map_err(|why| {
        Failure::environment(
            format!("--write-back needs its state directory: {why}"),
            "its server ended first; another --state DIR only if nothing is in the log",
        )
    })
}

/// The state directory; without one, the banner says why.
pub(super) fn state_or_warning(
    args: &Serve,
    sockets: &Sockets,
    banner: &mut Banner<'_>,
) -> Option<State> {
    open_state(args, sockets).unwrap_or_else(|why| {
        banner.warns(format!("{WITHOUT_STATE}: {why}"));
        None
    })
}

const WITHOUT_STATE: &str = "nothing is stored for the time after a restart";

/// A state directory that no client reaches through an export.
pub(super) fn outside(
    state: Option<State>,
    specs: &[Spec],
    banner: &mut Banner<'_>,
) -> Option<State> {
    let state = state?;
    let Some(why) = specs.iter().find_map(|spec| state_in_export(&state, spec)) else {
        return Some(state);
    };
    banner.warns(format!("{WITHOUT_STATE}: {why}; --state DIR names another"));
    None
}

/// Why a directory cannot be exported, if the state directory can be reached through it.
pub(super) fn state_in_export(state: &State, Spec { path, name, .. }: &Spec) -> Option<String> {
    let state = state.path();
    let lies = leads_to(path, state).then(|| state.display());
    lies.map(|state| format!("{state} lies in the export {name}, where clients could change it"))
}

pub(super) fn replies(
    args: &Serve,
    clock: &Clock,
    state: Option<&State>,
    banner: &mut Banner<'_>,
) -> Replies {
    let times = times(clock);
    let Some(state) = state else {
        return Replies::in_memory(REPLIES_MAX, times);
    };
    let slots = SLOTS_MIN.max(4 * args.threads as usize);
    let path = state.path().join("replies");
    let persistent = Replies::persistent_in(&path, slots, REPLIES_MAX, times.clone());
    let mut warns = |cause: &io::Error| {
        banner.warns(format!("replies are forgotten at a restart: {}: {cause}", path.display()));
    };
    match persistent {
        Ok(replies) => {
            replies.no_room().into_iter().for_each(warns);
            replies
        }
        Err(cause) => {
            warns(&cause);
            Replies::in_memory(REPLIES_MAX, times)
        }
    }
}
