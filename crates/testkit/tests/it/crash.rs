//! The test that kills servers, of servers that keep what they promise and of some that do not.

use std::sync::atomic::{AtomicU64, Ordering};

use client::error::Error;
use client::session::Session;
use load::crash::{Calls, Kind, Options, Round, Site, Trial};
use perf::units::Nanos;
use server::store::sim::{SimOptions, Switches, WriteBack};
use world::{Client, ClientSpec, Server, ServerSpec, World};

/// A server of a world, killed as by a loss of power.
struct Machine {
    client: Client,
    server: Server,
    seed: AtomicU64,
}

impl Site for Machine {
    type Trouble = Error;

    async fn connect(&self) -> Result<Session, Error> {
        self.client.mount(&self.server).await
    }

    async fn kill(&self) -> Result<(), Error> {
        self.server.crash(self.seed.fetch_add(1, Ordering::Relaxed));
        Ok(())
    }

    async fn restart(&self) -> Result<(), Error> {
        self.server.start();
        Ok(())
    }

    fn gone(&self, last: Option<Error>) -> Error {
        last.unwrap()
    }

    fn alive(&self) -> Error {
        unreachable!("a machine without power")
    }

    fn ended(&self, _: Nanos, why: Error) -> Error {
        why
    }
}

const ROUNDS: usize = 3;

/// What the rounds of a seed show of a server that has these faults after the first.
fn rounds(seed: u64, faults: impl FnOnce(&mut Switches) + Send + 'static) -> Vec<Round> {
    rounds_with(seed, false, faults)
}

/// The same; `retransmits` as in [`Options`].
fn rounds_with(
    seed: u64,
    retransmits: bool,
    faults: impl FnOnce(&mut Switches) + Send + 'static,
) -> Vec<Round> {
    World::new(seed)
        .run(|stage| async move {
            let store = SimOptions {
                write_back: WriteBack::Early { bytes: 64 << 10 },
                disk: "hdd".parse().unwrap(),
                ..SimOptions::default()
            };
            let server = stage.server(ServerSpec { store, ..ServerSpec::default() });
            let switches = server.faults().clone();
            let client = stage.client(ClientSpec::behind("100us/1g".parse().unwrap()));
            let options = Options {
                seed,
                clients: 4,
                outstanding: 4,
                file_bytes_max: 64 << 10,
                load: (Nanos::from_millis(100), Nanos::from_millis(600)),
                calls: Calls::default(),
                retransmits,
                answer_limit: Nanos::from_secs(60),
                behind_limit: Nanos::ZERO,
            };
            let machine = Machine { client, server, seed: AtomicU64::new(seed << 8) };
            let mut trial = Trial::begin(stage.clock(), machine, options, "trial").await.unwrap();
            // Its directory is made while all is well.
            let mut rounds = vec![trial.round().await.unwrap()];
            switches.set(faults);
            for _ in 1..ROUNDS {
                rounds.push(trial.round().await.unwrap());
            }
            trial.end().await.unwrap();
            rounds
        })
        .unwrap()
}

fn kinds(rounds: &[Round]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> =
        rounds.iter().flat_map(|round| &round.lost).map(|lost| lost.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[test]
fn a_server_that_keeps_its_promises_has_lost_nothing() {
    for seed in 0..3 {
        let rounds = rounds(seed, |_| {});
        for round in &rounds {
            assert_eq!(round.lost, [], "seed {seed}");
            assert_eq!((round.refused, &round.refusal), (0, &None), "seed {seed}");
            assert!(round.open > 0, "seed {seed}: {round:?}");
        }
        let last = rounds.last().unwrap();
        assert!(last.files > 10 && last.bytes > 100_000, "{last:?}");
        let answered = |procedure| {
            rounds.iter().filter_map(|round| round.answered.get(procedure)).sum::<u64>()
        };
        for procedure in ["WRITE stable", "WRITE unstable", "COMMIT", "CREATE", "RENAME", "LINK"] {
            assert!(answered(procedure) > 3, "seed {seed}: {procedure}");
        }
    }
}

#[test]
fn a_server_that_answers_before_its_disk_has_it_is_found() {
    let found: Vec<Vec<Kind>> = (0..5)
        .map(|seed| kinds(&rounds(seed, |switches| switches.committing_early = true)))
        .collect();
    // One that dies in a quiet moment has lost nothing.
    assert!(found.iter().filter(|kinds| !kinds.is_empty()).count() >= 4, "{found:?}");
    for kind in [Kind::DataSync, Kind::DataCommit] {
        assert!(found.iter().any(|kinds| kinds.contains(&kind)), "{found:?}");
    }
}

#[test]
fn a_drive_that_lies_loses_names_and_attributes() {
    let found = kinds(&rounds(1, |switches| switches.lying = true));
    for kind in [Kind::Names, Kind::Attributes] {
        assert!(found.contains(&kind), "{found:?}");
    }
}

#[test]
fn promised_bytes_that_a_server_cannot_read_are_lost() {
    let rounds = rounds(1, |switches| switches.failing_reads = u32::MAX);
    let lost: Vec<_> = rounds.iter().flat_map(|round| &round.lost).collect();
    assert!(!lost.is_empty());
    for lost in lost {
        assert!([Kind::DataSync, Kind::DataCommit].contains(&lost.kind), "{lost:?}");
        assert!(lost.bytes > 0 && lost.what.ends_with("NFS3ERR_IO"), "{lost:?}");
    }
    // What was compared beside is counted.
    assert!(rounds.iter().all(|round| round.files > 0), "{rounds:?}");
}

#[test]
fn a_write_verifier_that_stays_the_same_is_found() {
    let found: Vec<Vec<Kind>> = (0..4)
        .map(|seed| kinds(&rounds(seed, |switches| switches.keeping_verifier = true)))
        .collect();
    assert!(found.iter().any(|kinds| kinds.contains(&Kind::Verifier)), "{found:?}");
}

#[test]
fn a_server_that_forgets_what_it_has_answered_is_found() {
    let rounds: Vec<Vec<Round>> = (0..3).map(|seed| rounds_with(seed, true, |_| {})).collect();
    for (seed, rounds) in rounds.iter().enumerate() {
        assert!(kinds(rounds).contains(&Kind::Replies), "seed {seed}: {rounds:?}");
        assert!(rounds[0].again.answered > 10, "seed {seed}: {:?}", rounds[0].again);
    }
    let done: u64 = rounds.iter().flatten().map(|round| round.again.done).sum();
    assert!(done > 0, "what was not answered is done when it comes again");
}
