//! A closed loop of WRITEs of 8 KiB to a server of our own that has one processor, apart from the
//! client's.

use std::path::Path;

use bytes::Bytes;
use client::mount::{self, Mounted};
use client::session::Session;
use client::transfer::{Kind, Limit};
use harness::exit::Failure;
use harness::processors::apart;
use harness::served::Embedded;
use harness::target::Reached;
use load::cpu::Neighbours;
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use net::clock::Clock;
use net::shape::profile::Profile;
use perf::units::Nanos;
use wire::nfs3::{FileHandle, StableHow};

/// The thesis's block.
pub(super) const CALL_BYTES: u32 = 8 << 10;

/// The file, which is overwritten; and what a server in memory holds, with room for a probe's.
const FILE_BYTES: u64 = 16 << 20;
const STORE_BYTES_MAX: u64 = 1 << 30;

/// A server and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Setting<'a> {
    /// In memory without.
    pub(super) dir: Option<&'a Path>,
    pub(super) stable: StableHow,
    pub(super) link: Profile,
    pub(super) overhead: Nanos,
    /// Calls in service at once.
    pub(super) threads: u32,
}

/// The server, running, with a session and a file.
#[derive(Debug)]
pub(super) struct Writes<'a> {
    clock: &'a Clock,
    server: Embedded,
    reply_limit: Nanos,
    link: Profile,
    stable: StableHow,
    session: Session,
    file: FileHandle,
    data: Bytes,
}

/// Runs in place of one in which others wanted the processors, and the share of the processors'
/// time that others may have in a run. Our own interrupts count as others'.
const TRIES: usize = 3;
const OTHERS_MAX: f64 = 0.1;

/// How often a run is made again, four times as long, that has had too few answers for a rate.
const LONGER: usize = 2;

/// How long a run is, as requested.
pub(super) fn run_time(time: Option<Nanos>, quick: bool) -> Result<Nanos, Failure> {
    match time {
        Some(time) if time < TIME_LEAST => Err(Failure::usage(
            format!("--time {time} is too short for a rate"),
            format!("--time of at least {TIME_LEAST}"),
        )),
        Some(time) => Ok(time),
        None => Ok(Nanos::from_millis(if quick { 100 } else { 300 })),
    }
}

/// Ten calls one after the other, on a way of a millisecond.
const TIME_LEAST: Nanos = Nanos::from_millis(10);

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ran {
    /// Calls a second, without the beginning and the end.
    pub(super) per_s: f64,
    /// Time of the server's processor for each.
    pub(super) server_us: f64,
}

impl<'a> Writes<'a> {
    pub(super) async fn begin(
        clock: &'a Clock,
        reply_limit: Nanos,
        setting: &Setting<'_>,
    ) -> Result<Self, Failure> {
        let Setting { dir, stable, link, overhead, threads } = setting;
        let server = apart(|| Embedded::one_processor(*dir, STORE_BYTES_MAX, *overhead, *threads))?;
        let (target, options) = server.reach(reply_limit, link.clone().into());
        let Mounted { session, .. } = mount::mount(clock, &target, &options).await?;
        let scratch = Scratch::create(&session, &Scratch::name_for("writes")).await?;
        let file = scratch.file(&session, "f").await?;
        let data = seqwrite::pattern(CALL_BYTES as usize);
        let (link, stable) = (link.clone(), *stable);
        let writes = Self { clock, server, reply_limit, link, stable, session, file, data };
        // The file's blocks are there before anything counts.
        writes.write(8, StableHow::Unstable, FILE_BYTES, None).await?;
        Ok(writes)
    }

    /// The same server, to be probed.
    pub(super) fn reached(&self) -> Reached {
        let (target, options) = self.server.reach(self.reply_limit, self.link.clone().into());
        Reached::new(self.clock, None, &target, options)
    }

    /// A run in which others left us the processors; of several in which they did not, the one in
    /// which they wanted least.
    pub(super) async fn run(&self, outstanding: u32, time: Nanos) -> Result<Ran, Failure> {
        let mut quietest: Option<(f64, Ran)> = None;
        for _ in 0..TRIES {
            let neighbours = Neighbours::watch(self.clock.now());
            let ran = self.run_once(outstanding, time).await?;
            let others = neighbours.share(self.clock.now()).unwrap_or(0.0);
            if others <= OTHERS_MAX {
                return Ok(ran);
            }
            if quietest.is_none_or(|(least, _)| others < least) {
                quietest = Some((others, ran));
            }
        }
        let none = || Failure::environment("no run was made", "report this as a bug");
        quietest.map(|(_, ran)| ran).ok_or_else(none)
    }

    async fn run_once(&self, outstanding: u32, mut time: Nanos) -> Result<Ran, Failure> {
        for _ in 0..LONGER {
            if let Ok(ran) = self.run_for(outstanding, time).await? {
                return Ok(ran);
            }
            time = time * 4;
        }
        self.run_for(outstanding, time).await?.map_err(|answers| {
            Failure::environment(
                format!("{answers} answers in {time} make no rate"),
                "a faster disk or link, or a longer --time",
            )
        })
    }

    /// How many answers there were, where they are too few for a rate.
    async fn run_for(&self, outstanding: u32, time: Nanos) -> Result<Result<Ran, usize>, Failure> {
        let outstanding = outstanding as usize;
        let run = self.write(outstanding, self.stable, u64::MAX, Some(time)).await?;
        let writes = run.events.iter().filter(|event| event.kind == Kind::Write);
        let replies: Vec<_> = writes.map(|event| event.received).collect();
        let steady = match replies.len() {
            count if count >= 4 * outstanding => &replies[outstanding..count - outstanding],
            _ => &replies[..],
        };
        let per_s = match steady {
            [first, .., last] if last > first => {
                (steady.len() - 1) as f64 / last.since(*first).as_secs_f64()
            }
            _ => return Ok(Err(replies.len())),
        };
        let server = run.cpu.process.saturating_sub(run.cpu.thread);
        Ok(Ok(Ran { per_s, server_us: server.as_micros_f64() / replies.len() as f64 }))
    }

    async fn write(
        &self,
        outstanding: usize,
        stable: StableHow,
        total_bytes: u64,
        time: Option<Nanos>,
    ) -> Result<seqwrite::Run, Failure> {
        let workload = Workload {
            call_bytes: CALL_BYTES,
            outstanding,
            file_bytes: FILE_BYTES,
            total_bytes,
            commit_bytes: u64::MAX,
            stable,
            limit: Limit { time, drain: None },
        };
        let (clock, session) = (self.clock, &self.session);
        Ok(seqwrite::run(clock, session, self.file, &self.data, workload).await?)
    }
}
