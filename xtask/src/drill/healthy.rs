//! Workloads on a client, a network and a server that are well.

use super::answer;
use super::options::Options;
use super::outcome::Outcome;
use super::scene::{HEALTHY, Load, Setup, load};
use super::stage::Stage;

#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    serve: &'static [&'static str],
    load: Load,
}

const MEMORY: &[&str] = HEALTHY.serve;
const FLASH: &[&str] = &["sim:nvme"];

const fn of(name: &'static str, serve: &'static [&'static str], load: Load) -> Workload {
    Workload { name, serve, load }
}

pub(super) const ALL: &[Workload] = &[
    of("reads-a-file", MEMORY, load("read", 1, 1 << 20)),
    of("four-read-files", MEMORY, load("read", 4, 65_536)),
    of("reads-direct", MEMORY, load("read-direct", 4, 65_536)),
    of("data-base-reads", MEMORY, load("read-pieces", 2, 8192)),
    of("mapped-file", MEMORY, load("read-mapped", 1, 4096)),
    of("writes-a-file", MEMORY, load("write", 1, 1 << 20)),
    of("four-write-files", FLASH, load("write", 4, 65_536)),
    of("writes-direct", MEMORY, load("write-direct", 2, 262_144)),
    of("log", MEMORY, load("write-paced", 1, 200)),
    of("log-on-flash", FLASH, load("write-paced", 2, 200)),
    of("copy", MEMORY, load("copy", 1, 1 << 20)),
    of("copies-on-flash", FLASH, load("copy", 2, 65_536)),
    of("cached-attributes", MEMORY, load("look", 1, 100)),
    of("walk", MEMORY, load("walk", 1, 100)),
    of("four-walk", MEMORY, load("walk", 4, 100)),
    of("build", MEMORY, load("build", 1, 4096)),
    of("builds-on-flash", FLASH, load("build", 2, 4096)),
    of("small-files", MEMORY, load("create", 2, 4096)),
    of("commits-on-flash", FLASH, load("commit", 1, 8192)),
    of("hardly-anything", MEMORY, load("trickle", 1, 100)),
];

/// Plays those that are wanted.
pub(super) fn play(outcome: &mut Outcome, stage: &mut Stage<'_>, options: &Options) {
    for Workload { name, serve, load } in ALL.iter().filter(|one| options.wants(one.name)) {
        let setup = Setup { serve, load: *load, ..HEALTHY };
        match stage.play(&setup) {
            Ok(played) => outcome.healthy(name, answer::high(&played.report)),
            Err(why) => outcome.failed(name, &why),
        }
    }
}
