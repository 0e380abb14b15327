//! All clients compete: for the same few names, files and logs, with several programs on each.
//!
//! ```text
//!   plan --> program.rs --> host.rs: calls, or files and a kernel --links--> the server
//!               |                or a folder of this machine's (live.rs, folder.rs)
//!               |  every outcome, with its beginning and end
//!               v
//!            truth.rs: registers of names and of bytes, records of logs
//! ```
//!
//! What is promised is in docs/client.md: whoever opens a file sees what was closed before; a name
//! may be remembered for as long as its directory's attributes are good; records appended in turn
//! are all there; and what a close has not complained about is there, also when the server has
//! lost power in the end.

mod folder;
mod host;
mod kills;
pub mod live;
mod locker;
mod program;
mod refused;
mod scene;
mod truth;

use std::sync::Arc;

use futures_util::future::{join, try_join_all};
use parking_lot::Mutex;
use perf::units::Nanos;

use self::host::{Disk, Host};
pub use self::locker::{RECORD_LOCKS, serve as serve_locks};
use self::program::{Program, refused};
use self::refused::Refused;
use self::scene::{Scene, lock_name, own_names};
use self::truth::{Bound, Truth};
use super::client::mounted;
use super::failure::Failure;
use super::fate;
use super::public::dir;
use super::stage::{QUIET, Stage};
use super::walk::newcomer;
use crate::plan::{Act, LOCKS, LOGS, Level, PLACE_BYTES, PROGRAMS_MAX, Plan};

/// From the beginning of one place of a file to that of the next.
const STRIDE: u32 = 2 * PLACE_BYTES;

/// Most bytes of a WRITE: more than there are in a place.
const WSIZE: u32 = 1 << 20;

/// What whoever has seen nothing is called.
const STRANGER: usize = usize::MAX - 1;

pub(super) async fn play(stage: Stage, plan: Plan) -> Result<(), Failure> {
    let scene = Scene {
        clock: stage.clock.clone(),
        trace: Arc::clone(&stage.trace),
        history: Arc::clone(&stage.history),
        stride: STRIDE,
        truth: Mutex::new(Truth::new(STRIDE)),
    };
    let (mut hosts, mut wires) = (Vec::new(), Vec::new());
    for (number, client) in plan.clients.iter().enumerate() {
        let (clock, session, wire) = mounted(&stage, &plan, number).await?;
        let dir = dir(&session, "contest").await?;
        // Half of the clients make what they write to a place stable by one WRITE, the others by
        // WRITEs and a COMMIT.
        let wsize = if number % 2 == 0 { WSIZE } else { 2 * PLACE_BYTES / 3 };
        // Half of each keep blocks on a disk, and in half of the contests they are started anew.
        let seed = plan.seed.wrapping_mul(8) + number as u64;
        let disk = match (number / 2).is_multiple_of(2) {
            _ if plan.kills(number) => Disk::Killed(seed),
            true if plan.seed.is_multiple_of(2) => Disk::Restarted,
            true => Disk::Steady,
            false => Disk::Nothing,
        };
        let how = (client.level, wsize, disk);
        hosts.push(Host::new(&clock, session, dir, how, stage.planted));
        wires.push(wire);
    }
    scene.prepare(&hosts[0]).await.map_err(refused("entry"))?;
    let begun = scene.clock.now();
    let programs = hosts.iter().enumerate().flat_map(|(client, host)| {
        let scene = &scene;
        (0..PROGRAMS_MAX).map(move |number| Program::new(scene, host, client, number))
    });
    // Of an iterator without a bound it would tell a failure only when those before it have ended,
    // who may wait for a lock of the program that failed.
    let running: Vec<_> = programs.map(|program| program.run(&plan, begun)).collect();
    let running = try_join_all(running);
    let faults =
        join(fate::run(&stage, &plan, &wires, begun), kills::run(&scene, &hosts, &plan, begun));
    let (ran, _) = join(running, faults).await;
    ran?;
    let hits = hosts.iter().map(Host::hits_after_kills).sum();
    stage.history.count_many("read-from-disk-after", hits);
    for host in &hosts {
        let (lost, unheard) = host.leave().await;
        if let Some(error) = lost.filter(|_| !stage.history.was_troubled()) {
            return Err(Failure::new("loss at the end", error.to_string()));
        }
        scene.truth.lock().are_there(unheard);
    }
    stage.machine.calm_down();
    stage.clock.sleep(QUIET).await;
    walk(&stage, &scene, "the end").await?;
    stage.machine.lose_power().await;
    walk(&stage, &scene, "the loss of power").await?;
    stage.machine.audit()
}

/// Somebody who has seen nothing before looks at everything.
async fn walk(stage: &Stage, scene: &Scene, when: &str) -> Result<(), Failure> {
    let session = newcomer(stage, 0xff).await?;
    let dir = dir(&session, "contest").await?;
    scene
        .walk(
            &Host::new(&stage.clock, session, dir, (Level::Calls, WSIZE, Disk::Nothing), None),
            when,
        )
        .await
}

impl Scene {
    /// Makes the files that are there from the beginning.
    async fn prepare(&self, host: &Host) -> Result<(), Refused> {
        for name in own_names() {
            let ticket = self.truth.lock().bind(&name, Bound::Some, 0, self.clock.now());
            let file = host.make(&name).await?;
            self.truth.lock().bound(&name, ticket, Bound::File(file), self.clock.now());
        }
        Ok(())
    }

    /// Somebody who has seen nothing before looks at everything.
    async fn walk(&self, host: &Host, when: &str) -> Result<(), Failure> {
        let mut stranger = Program::new(self, host, STRANGER, 0);
        let names = self.truth.lock().names();
        let is_own = |name: &String| own_names().any(|own| own == *name);
        let files = names.into_iter().filter(|name| !is_own(name)).map(Act::Read);
        let logs = (0..LOGS).map(|log| Act::ReadLog { log });
        let list = Act::List { wait: Nanos::ZERO };
        let at = |what| {
            move |failure: Failure| Failure {
                what: format!("at {when}, {what}: {}", failure.what),
                ..failure
            }
        };
        for act in files.chain(logs).chain([list]) {
            stranger.act(0, &act).await.map_err(at(format!("`{act}`")))?;
        }
        for lock in 0..LOCKS {
            stranger.read_locks(lock).await.map_err(at(lock_name(lock)))?;
        }
        Ok(())
    }
}
