//! What is to be run.

use std::sync::Arc;

use harness::exit::Failure;
use harness::unused;
use load::suite13::{Material, Sizes, Test, build_missing, cold};

use super::measured::Measured;
use super::thread::blocking;
use crate::suite13::args::{At, Caches, Place, Suite13};

/// Share of the paper's sizes that is run before what counts, to wake caches and clocks.
const WARM_UP_SCALE: f64 = 0.02;

#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) tests: Vec<Test>,
    pub(super) copies: Vec<u32>,
    pub(super) repeats: usize,
    pub(super) scale: f64,
    pub(super) seed: u64,
    pub(super) caches: Caches,
    pub(super) drop_caches: bool,
    pub(super) sync: bool,
    pub(super) mix_durability: bool,
    /// Programs for want of which test 5 is left off.
    pub(super) missing: Vec<&'static str>,
}

impl Plan {
    /// A row for each place, number of copies and test.
    pub(super) fn rows(&self, targets: usize) -> Vec<Measured> {
        let mut rows = Vec::new();
        for target in 0..targets {
            for &copies in &self.copies {
                let row = |test: &Test| Measured { target, copies, test: *test, runs: Vec::new() };
                rows.extend(self.tests.iter().map(row));
            }
        }
        rows
    }

    /// What the tests work on: as large as the paper's it takes a while to make.
    pub(super) async fn material(&self) -> Result<Arc<Material>, Failure> {
        let (seed, scale) = (self.seed, self.scale);
        blocking(move |_| Arc::new(Material::generate(seed, Sizes::scaled(scale)))).await
    }

    /// The same, but little of it.
    pub(super) async fn warm_up(&self) -> Result<Arc<Material>, Failure> {
        let (seed, scale) = (self.seed, self.scale.min(WARM_UP_SCALE));
        blocking(move |_| Arc::new(Material::generate(seed, Sizes::scaled(scale)))).await
    }
}

/// What the arguments ask for.
pub(super) fn of(args: &Suite13) -> Result<Plan, Failure> {
    check(args)?;
    let mut tests = if args.test.is_empty() { Test::ALL.to_vec() } else { args.test.clone() };
    tests.sort_unstable();
    tests.dedup();
    let mut copies = args.copies.clone();
    copies.dedup();
    let mut missing = Vec::new();
    if tests.contains(&Test::Build) {
        missing = build_missing();
        if !missing.is_empty() {
            tests.retain(|test| *test != Test::Build);
        }
        if tests.is_empty() {
            let what = format!("test 5 needs {}, not to be found here", missing.join(" and "));
            return Err(Failure::environment(what, "install a C compiler and make"));
        }
    }
    Ok(Plan {
        tests,
        copies,
        repeats: args.repeats as usize,
        scale: args.scale,
        seed: args.seed,
        caches: args.caches,
        drop_caches: args.drop_caches,
        sync: !args.no_sync,
        mix_durability: args.mix_durability,
        missing,
    })
}

/// Refuses options that contradict one another.
fn check(args: &Suite13) -> Result<(), Failure> {
    for (name, _) in &args.cached {
        let is_server = |place: &&Place| place.name == *name && matches!(place.at, At::Server(..));
        if !args.compare.iter().any(|place| is_server(&place)) {
            let what = format!("--cached {name}=...: no server of --compare has this name");
            return Err(Failure::usage(what, "--compare NAME=URL --cached NAME=DIR"));
        }
    }
    if !args.compare.iter().any(|place| matches!(place.at, At::Server(..))) {
        unused::refuse([(!args.options.is_empty(), "-o")], "servers: NAME=URL of --compare")?;
    }
    for (index, place) in args.compare.iter().enumerate() {
        if args.compare[..index].iter().any(|other| other.name == place.name) {
            let what = format!("two places are called {}", place.name);
            return Err(Failure::usage(what, "another name for one of them"));
        }
    }
    if args.drop_caches && !matches!(args.caches, Caches::Cold | Caches::Restart) {
        let what = "--drop-caches belongs to --caches cold";
        return Err(Failure::usage(what, "one of the two"));
    }
    if args.drop_caches && !cold::may_drop_caches() {
        let what = "--drop-caches: this user may not write /proc/sys/vm/drop_caches";
        return Err(Failure::environment(what, "as root, or without --drop-caches"));
    }
    Ok(())
}
