//! Random plans in worlds, against the reference: a few of them; `cargo xtask sim` runs more.

use std::path::{Path, PathBuf};

use testkit::plan::Plan;
use testkit::sim::{self, Options, Planted, Report};

fn run(plan: &Plan, planted: Option<Planted>) -> Report {
    sim::run(plan, Options { planted, ..Options::default() })
}

fn plans(folder: &str) -> Vec<(PathBuf, Plan)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let plans = paths.filter(|path| path.extension().is_some_and(|of| of == "plan"));
    let read = |path: PathBuf| {
        let plan = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        (path, plan)
    };
    plans.map(read).collect()
}

#[test]
fn clients_see_what_the_reference_allows_and_the_same_seed_is_the_same_run() {
    for seed in 1..=20 {
        let plan = Plan::generate(seed);
        let first = run(&plan, None);
        assert_eq!(first.failure, None, "cargo xtask sim --seed {seed}");
        if seed % 5 == 0 {
            let again = run(&plan, None);
            assert_eq!((again.digest, again.ops), (first.digest, first.ops), "seed {seed}");
        }
    }
}

#[test]
fn clients_that_compete_see_what_they_are_promised_and_the_same_seed_is_the_same_run() {
    for seed in 1..=20 {
        let plan = Plan::contest(seed);
        let first = run(&plan, None);
        assert_eq!(first.failure, None, "cargo xtask sim --contest --seed {seed}");
        if seed % 5 == 0 {
            let again = run(&plan, None);
            assert_eq!((again.digest, again.ops), (first.digest, first.ops), "seed {seed}");
        }
    }
}

#[test]
fn clients_that_are_killed_while_they_fill_a_cache_read_nothing_wrong() {
    for seed in 1..=10 {
        let plan = Plan::kills_in_contest(seed);
        let first = run(&plan, None);
        assert_eq!(first.failure, None, "cargo xtask sim --kills --seed {seed}");
        if seed % 5 == 0 {
            let again = run(&plan, None);
            assert_eq!((again.digest, again.ops), (first.digest, first.ops), "seed {seed}");
        }
    }
}

#[test]
fn plans_that_failed_once_do_not_fail_any_more() {
    for (path, plan) in plans("plans") {
        assert_eq!(run(&plan, None).failure, None, "{}", path.display());
    }
}

#[test]
fn planted_mistakes_are_noticed() {
    for planted in Planted::ALL {
        let named = |(path, _): &(PathBuf, Plan)| path.file_stem().unwrap() == planted.name();
        let (_, plan) = plans("plans/planted").into_iter().find(named).unwrap();
        assert!(run(&plan, Some(planted)).failure.is_some(), "{} is not", planted.name());
        assert_eq!(run(&plan, None).failure, None, "it was something else");
    }
}
