//! A server that is probed as any other is, from its client's side alone.

use client::error::Error;
use client::session::Session;
use load::probe::Findings;
use load::probe::concurrency::Concurrency;
use load::scratch::Scratch;
use load::study::{Plan, Study, Subject};
use net::shape::profile::Profile;
use perf::model::transaction::{Server as Kind, Transfer};
use perf::model::whatif::of_path::PathCase;
use world::{Client, ClientSpec, Server, ServerSpec, World};

pub(crate) struct Far {
    pub(crate) client: Client,
    pub(crate) server: Server,
}

impl Subject for Far {
    fn server(&self) -> Option<Kind> {
        None
    }

    async fn connect(&self) -> Result<Session, Error> {
        self.client.mount(&self.server).await
    }
}

/// Whether a probe gets to know how long the client's processors were busy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Busy {
    Known,
    Unknown,
}

/// What a quick probe finds, with so many rounds for the concurrency.
pub(crate) fn probed(
    seed: u64,
    spec: ServerSpec,
    link: Profile,
    rounds: usize,
    busy: Busy,
) -> (Findings, Concurrency) {
    let world = World::new(seed);
    let run = world.run(move |stage| async move {
        let server = stage.server(spec);
        let client = stage.client(ClientSpec::behind(link));
        let session = client.mount(&server).await.unwrap();
        let scratch = Scratch::create(&session, "probe").await.unwrap();
        let subjects = [Far { client: client.clone(), server }];
        let plan = Plan { file_bytes_max: 16 << 20, ..Plan::PROBE_QUICK };
        let mut study = Study::begin(stage.clock(), plan, &subjects, &scratch).await.unwrap();
        study.warm_up().await.unwrap();
        study.probe(&mut |_, _| {}).await.unwrap();
        let busy = || (busy == Busy::Known).then(|| client.load().busy);
        let samples = study.concurrency(rounds, &busy).await.unwrap();
        let findings = study.findings().unwrap();
        let concurrency = samples.findings(&findings.op_us, &findings.block_us).unwrap();
        (findings, concurrency)
    });
    run.unwrap()
}

/// The same as a case of a model: of a server that does not stop for its disk.
pub(crate) fn case(spec: ServerSpec, link: Profile, transfer: Transfer) -> PathCase {
    let known = link.there.link;
    let (findings, concurrency) = probed(3, spec, link, 2, Busy::Unknown);
    let case = PathCase {
        path: findings.path,
        server: Kind::Concurrent,
        transfer,
        latency_us: 0.0,
        link_us_per_kib: 0.0,
        ends: None,
        threads: None,
        processor_us: None,
    };
    let us_per_kib = known.gap_per_byte_ps as f64 * 1024.0 / 1e6;
    case.behind(known.latency.as_micros_f64(), us_per_kib, (0.5, concurrency.small_us.value))
}
