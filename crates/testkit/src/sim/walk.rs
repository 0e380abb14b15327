//! A client that has seen nothing before looks at everything there is.

use std::collections::BTreeMap;

use client::error::Error;
use client::session::Session;
use net::call;
use perf::units::Instant;
use wire::nfs3::{FType, FileHandle, NfsStat3};

use super::client::{Actor, at_entry};
use super::expected::Found;
use super::failure::Failure;
use super::stage::Stage;
use crate::outage::Outage;
use crate::plan::{PART_BYTES, Plan};

/// Walks, and compares with what each client expects; `when` says when this is.
pub(crate) async fn compare(
    stage: &Stage,
    plan: &Plan,
    actors: &mut [Actor],
    when: &str,
) -> Result<(), Failure> {
    let began = stage.clock.now();
    let tree = walk(stage, u32::try_from(plan.clients.len()).unwrap_or(0)).await?;
    stage.trace.lock().add(stage.clock.now(), || format!("{when}: {} files", tree.len()));
    let losses = stage.history.losses();
    for actor in actors {
        let number = actor.number;
        let in_words = |Failure { way, what }| Failure {
            way,
            what: format!("at {when}, of client {number}: {what}"),
        };
        let below = format!("c{number}/");
        let own = tree.iter().filter_map(|(path, found)| {
            path.strip_prefix(&below).map(|path| (path.to_owned(), found.clone()))
        });
        // What the client keeps itself is nowhere else: it is gone, and all else is stable.
        let losses = if actor.access.is_files() { u64::MAX } else { losses };
        actor.expected.crashed(stage.history.crashes());
        actor.expected.compare(&own.collect(), losses).map_err(in_words)?;

        let public = tree.get(&format!("shared/s{number}"));
        let sessions = &stage.public.lock()[number];
        let checked = match public {
            Some(found) => sessions.check(began, stage.clock.now(), &found.bytes),
            None => sessions.check_missing(NfsStat3::NoEnt, began, began, perf::units::Nanos::ZERO),
        };
        let what = |what| in_words(Failure::new("walk of public files", what));
        checked.map_err(what)?;

        let parts = tree.get("shared/parts").map_or(&[][..], |found| &found.bytes);
        let from = (PART_BYTES as usize * number).min(parts.len());
        let to = (from + PART_BYTES as usize).min(parts.len());
        let checked = actor.expected.part.check(0, PART_BYTES as usize, &parts[from..to], losses);
        checked.map_err(|what| in_words(Failure::new("walk of parts", what)))?;
    }
    Ok(())
}

/// A session of somebody who has seen nothing before, as the client of this number.
pub(super) async fn newcomer(stage: &Stage, client: u32) -> Result<Session, Failure> {
    let now = stage.clock.now().since(Instant::EPOCH).as_nanos();
    // No client has these numbers, nor has a walk before.
    let first_xid = client << 24 | u32::try_from(now >> 20 & 0xff_ffff).unwrap_or(0);
    let options = call::Options { first_xid, insist: true, ..call::Options::stream() };
    let rpc = stage.machine.over_stream(&stage.clock, &Outage::default(), options).await;
    let rpc = rpc.map_err(|error| Failure::new("connect", error.to_string()))?;
    stage.machine.session(rpc).await.map_err(at_entry)
}

/// Everything, by path.
async fn walk(stage: &Stage, clients: u32) -> Result<BTreeMap<String, Found>, Failure> {
    let session = newcomer(stage, clients + 1).await?;
    let mut tree = BTreeMap::new();
    let mut dirs = vec![(String::new(), session.root())];
    while let Some((path, dir)) = dirs.pop() {
        let entries = entries(&session, dir).await.map_err(at_walk)?;
        for (name, handle) in entries {
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let found = look(&session, handle).await.map_err(at_walk)?;
            if found.ftype == FType::Dir {
                dirs.push((path.clone(), handle));
            }
            tree.insert(path, found);
        }
    }
    Ok(tree)
}

async fn entries(session: &Session, dir: FileHandle) -> Result<Vec<(String, FileHandle)>, Error> {
    let mut entries = Vec::new();
    let (mut cookie, mut verifier) = (0, [0; 8]);
    loop {
        let page = session.readdir(dir, cookie, verifier, 4096).await?;
        for entry in &page.entries {
            cookie = entry.cookie;
            if entry.name == b"." || entry.name == b".." {
                continue;
            }
            let handle = session.lookup(dir, &entry.name).await?.object;
            entries.push((String::from_utf8_lossy(&entry.name).into_owned(), handle));
        }
        verifier = page.cookieverf;
        if page.eof || page.entries.is_empty() {
            return Ok(entries);
        }
    }
}

async fn look(session: &Session, handle: FileHandle) -> Result<Found, Error> {
    let attributes = session.getattr(handle).await?;
    let bytes = match attributes.ftype {
        FType::Reg => {
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < attributes.size {
                let part = session.read(handle, bytes.len() as u64, 1 << 20).await?;
                if part.data.is_empty() {
                    break;
                }
                bytes.extend_from_slice(&part.data);
            }
            bytes
        }
        FType::Lnk => session.readlink(handle).await?.0,
        _ => Vec::new(),
    };
    Ok(Found { handle, ftype: attributes.ftype, names: attributes.nlink, bytes })
}

fn at_walk(error: Error) -> Failure {
    Failure::new("walk failed", error.to_string())
}
