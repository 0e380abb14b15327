//! Probes and sweeps in order: the measuring half of `nfskit study`.
//!
//! Every configuration (server, bytes per call, calls outstanding) is run `repeats` times, and a
//! repetition goes through all of them before the next begins, which goes back the other way, so
//! that what drifts drifts under all. Runs are bounded in time; a run whose outstanding calls and
//! last COMMIT take longer than its [`Drain`] to come back is abandoned with its connection. What
//! it shows are the bytes that an answered COMMIT has covered; without one it shows nothing.

mod drain;
mod measured;
mod plan;
mod turns;

use std::future::Future;

use bytes::Bytes;
use client::session::Session;
use client::transfer::Limit;
use net::clock::Clock;
use perf::model::transaction::{Path, Server};
use perf::units::Nanos;
use wire::nfs3::{FileHandle, StableHow};

pub use self::drain::Drain;
pub use self::measured::{Configuration, Measured, transfer};
pub use self::plan::{CALL_BYTES, COMMIT_BYTES_MAX, COMMIT_BYTES_MIN, Plan, WINDOWS};

use self::measured::typical;
use self::turns::{Turn, forth_and_back, turns};
use crate::error::Error;
use crate::probe::{self, Effort, Files, Outstanding, concurrency};
use crate::scratch::Scratch;
use crate::seqwrite::{self, Run, Workload};

/// A server to study: how it treats its disk as far as we know, and how to reach it.
pub trait Subject {
    /// `None` when it is somebody else's.
    fn server(&self) -> Option<Server>;
    /// A session over a new connection.
    fn connect(&self) -> impl Future<Output = Result<Session, client::error::Error>> + Send;
}

/// Steps of a study, as they are shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    Probe,
    Measure,
    Apply,
}

/// Called with how far a step is, from 0 to 1.
pub type Progress<'a> = &'a mut (dyn FnMut(Step, f64) + Send);

/// The name of the file that is swept.
const SWEEP: &str = "sweep";

/// The files of a study, inside its scratch directory.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// As the last subject names them.
    files: Files,
    /// The file of the sweep, as each subject names it.
    sweep: Vec<FileHandle>,
    sweep_bytes: u64,
    single_bytes: u64,
    commit_bytes: u64,
    /// What the COMMITs of the probe cover.
    commit_probe_bytes: u64,
}

/// A study in progress: the subjects with their current sessions.
#[derive(Debug)]
pub struct Study<'a, S> {
    clock: &'a Clock,
    plan: Plan,
    subjects: &'a [S],
    sessions: Vec<Session>,
    data: Bytes,
    workspace: Workspace,
    drain: Drain,
    samples: probe::Samples,
}

impl<'a, S: Subject> Study<'a, S> {
    /// Connects to every subject and makes the files. The subjects serve the same directory.
    ///
    /// # Errors
    /// Any call's.
    pub async fn begin(
        clock: &'a Clock,
        plan: Plan,
        subjects: &'a [S],
        scratch: &Scratch,
    ) -> Result<Self, Error> {
        let mut sessions = Vec::with_capacity(subjects.len());
        for subject in subjects {
            sessions.push(subject.connect().await?);
        }
        let session = sessions.last().ok_or(Error::TooFew { what: "anything: no server" })?;
        let data = seqwrite::pattern(1 << 20);
        let mut files = Vec::new();
        for name in ["unstable", "stable", SWEEP] {
            files.push(scratch.file(session, name).await?);
        }
        let (unstable, stable, sweep) = (files[0], files[1], files[2]);
        let fill = |file, bytes, share| fill(clock, session, file, &data, bytes, plan, share);
        let single_bytes = fill(unstable, 32 << 20, 4).await?;
        let single_bytes = fill(stable, single_bytes, 1).await?.min(single_bytes);
        let sweep_bytes = fill(sweep, plan.file_bytes_max, 1).await?;
        let commit_bytes = COMMIT_BYTES_MIN;
        let mut files_of_sweep = Vec::with_capacity(sessions.len());
        for other in &sessions[..sessions.len() - 1] {
            let scratch = scratch.at(other).await?;
            files_of_sweep.push(scratch.find_file(other, SWEEP).await?);
        }
        files_of_sweep.push(sweep);
        let files = Files { unstable, stable, burst: sweep };
        let workspace = Workspace {
            files,
            sweep: files_of_sweep,
            sweep_bytes,
            single_bytes,
            commit_bytes,
            commit_probe_bytes: commit_bytes,
        };
        let samples = probe::Samples::default();
        let drain = Drain::new(&plan, commit_bytes, None);
        Ok(Self { clock, plan, subjects, sessions, data, workspace, drain, samples })
    }

    /// Bytes between two COMMITs.
    pub fn commit_bytes(&self) -> u64 {
        self.workspace.commit_bytes
    }

    /// How long runs wait for what is outstanding at their end.
    pub fn drain(&self) -> Drain {
        self.drain
    }

    /// Runs every subject for a short time: clocks, caches and allocators of a machine that has
    /// just been woken are not what is to be measured. Only what it takes to decide how often to
    /// COMMIT is looked at.
    ///
    /// # Errors
    /// Any call's.
    pub async fn warm_up(&mut self) -> Result<(), Error> {
        let started = self.clock.now();
        let mut fastest: Option<f64> = None;
        self.drain.least = Drain::MOST;
        for call_bytes in self.call_bytes().into_iter().rev() {
            for subject in (0..self.subjects.len()).rev() {
                let warm = Configuration { subject, call_bytes, outstanding: 4 };
                let ran = self.run(warm).await?;
                fastest = ran.durable_mib_per_s().into_iter().chain(fastest).reduce(f64::max);
                // A slow path leaves nothing to warm.
                if self.clock.now().since(started) > self.plan.run_time * 4 {
                    break;
                }
            }
        }
        let commit_bytes = self.plan.commit_bytes(fastest.unwrap_or(0.0));
        self.workspace.commit_bytes = commit_bytes;
        self.drain = Drain::new(&self.plan, commit_bytes, fastest);
        let probed = fastest.unwrap_or(0.0) * f64::from(1 << 20) * COMMIT_PROBE_TIME.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let probed = (probed as u64).next_multiple_of(1 << 20).max(1 << 20);
        self.workspace.commit_probe_bytes = probed.min(self.workspace.commit_bytes);
        Ok(())
    }

    /// Length of the file that is swept.
    pub fn file_bytes(&self) -> u64 {
        self.workspace.sweep_bytes
    }

    /// Most bytes of a READ and of a WRITE, as the last subject reported.
    pub fn transfer_bytes_max(&self) -> (u32, u32) {
        let sizes = self.sessions.last().map(Session::sizes);
        sizes.map_or((0, 0), |sizes| (sizes.read_bytes_max, sizes.write_bytes_max))
    }

    /// Sizes of WRITE to sweep: those that the server takes.
    pub fn call_bytes(&self) -> Vec<u32> {
        let max = self.sessions.iter().map(|session| session.sizes().write_bytes_max).min();
        let max = max.unwrap_or(CALL_BYTES[0]);
        let mut sizes: Vec<u32> = CALL_BYTES.iter().map(|&size| size.min(max)).collect();
        sizes.dedup();
        sizes
    }

    /// Step 1, on the last subject; COMMITs on the first. One portion of it: the others are taken
    /// between the repetitions of step 2, so that both see the same conditions.
    ///
    /// # Errors
    /// Any call's.
    pub async fn probe(&mut self, progress: Progress<'_>) -> Result<(), Error> {
        let portions = self.plan.repeats.0 + 1;
        let effort = Effort {
            amount: self.plan.probe.portion(portions),
            burst_bytes_max: self.drain.bytes_in(BURST_DRAIN),
            commit_bytes: self.workspace.commit_bytes,
            commit_probe_bytes: self.workspace.commit_probe_bytes,
            single_file_bytes: self.workspace.single_bytes,
            burst_file_bytes: self.workspace.sweep_bytes,
            outstanding: Outstanding::STUDY,
            rest: Nanos::ZERO,
        };
        let (first, last) = self.ends()?;
        let progress = |done| progress(Step::Probe, done);
        let files = self.workspace.files;
        let committing = (first, self.workspace.sweep[0]);
        let (clock, data) = (self.clock, &self.data);
        let portion =
            probe::sample(clock, last, committing, files, data, &effort, progress).await?;
        self.samples.absorb(portion);
        Ok(())
    }

    /// The parameters that all portions of step 1 show.
    ///
    /// # Errors
    /// [`Error::TooFew`].
    pub fn findings(&self) -> Result<probe::Findings, Error> {
        self.samples.findings(self.ends()?.1, self.workspace.commit_probe_bytes)
    }

    /// How many calls the last subject works on side by side: one portion.
    ///
    /// # Errors
    /// Any call's.
    pub async fn concurrency(
        &self,
        rounds: usize,
        busy: concurrency::Busy<'_>,
    ) -> Result<concurrency::Samples, Error> {
        let Workspace { files, sweep_bytes, .. } = &self.workspace;
        let rounds = concurrency::Rounds {
            count: rounds,
            burst_time: self.plan.probe.burst_time,
            file_bytes: *sweep_bytes,
        };
        let session = self.ends()?.1;
        concurrency::sample(self.clock, session, files.burst, &self.data, &rounds, busy).await
    }

    fn ends(&self) -> Result<(&Session, &Session), Error> {
        match self.sessions.as_slice() {
            [first, .., last] => Ok((first, last)),
            [only] => Ok((only, only)),
            [] => Err(Error::TooFew { what: "anything: no server" }),
        }
    }

    /// Step 2: every configuration, `repeats` times.
    ///
    /// # Errors
    /// Any call's.
    pub async fn sweep(&mut self, progress: Progress<'_>) -> Result<Vec<Measured>, Error> {
        let mut configurations = Vec::new();
        for call_bytes in self.call_bytes() {
            for outstanding in WINDOWS {
                for subject in 0..self.subjects.len() {
                    configurations.push(Configuration { subject, call_bytes, outstanding });
                }
            }
        }
        let (least, most) = self.plan.repeats;
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); configurations.len()];
        let mut done = 0.0;
        let started = self.clock.now();
        for repeat in 0..most {
            // As long as all so far have taken, on average, this one will take.
            let spent = self.clock.now().since(started);
            let next = spent / (repeat.max(1) as u64);
            if repeat >= least && spent + next > self.plan.sweep_time {
                break;
            }
            let total = (configurations.len() * most.min(repeat + 1).max(least)) as f64;
            for at in forth_and_back(configurations.len(), repeat) {
                runs[at].push(self.run(configurations[at]).await?);
                done += 1.0;
                progress(Step::Measure, done / total);
            }
            self.probe(&mut |_, _| {}).await?;
        }
        Ok(configurations.iter().zip(runs).filter_map(|(c, runs)| typical(*c, runs)).collect())
    }

    /// Step 4: two configurations in alternation, and whatever `between` measures in the same
    /// alternation, each time in the reverse of the order before.
    ///
    /// # Errors
    /// Any call's.
    pub async fn apply(
        &mut self,
        before: Configuration,
        after: Configuration,
        mut between: impl FnMut() -> Result<(), Error>,
        progress: Progress<'_>,
    ) -> Result<(Measured, Measured), Error> {
        let mut runs = [Vec::new(), Vec::new()];
        let applications = self.plan.applications;
        for application in 0..applications {
            for turn in turns(application) {
                let (configuration, runs) = match turn {
                    Turn::Before => (before, &mut runs[0]),
                    Turn::After => (after, &mut runs[1]),
                    Turn::Between => {
                        between()?;
                        continue;
                    }
                };
                runs.push(self.run_for(configuration, self.plan.application_time).await?);
            }
            progress(Step::Apply, (application + 1) as f64 / applications as f64);
        }
        let both: Vec<Measured> = [before, after]
            .into_iter()
            .zip(runs)
            .filter_map(|(configuration, runs)| typical(configuration, runs))
            .collect();
        match <[Measured; 2]>::try_from(both) {
            Ok([before, after]) => Ok((before, after)),
            Err(_) => Err(Error::TooFew { what: "the gain" }),
        }
    }

    /// One run of this length: MiB/s; `None` where too little became stable.
    ///
    /// # Errors
    /// Any call's.
    pub async fn run_long(
        &mut self,
        configuration: Configuration,
        time: Nanos,
    ) -> Result<Option<f64>, Error> {
        Ok(self.run_for(configuration, time).await?.mib_per_s())
    }

    async fn run(&mut self, configuration: Configuration) -> Result<Run, Error> {
        self.run_for(configuration, self.plan.run_time).await
    }

    async fn run_for(&mut self, configuration: Configuration, time: Nanos) -> Result<Run, Error> {
        let workload = Workload {
            call_bytes: configuration.call_bytes,
            outstanding: configuration.outstanding,
            file_bytes: self.workspace.sweep_bytes,
            total_bytes: u64::MAX,
            commit_bytes: self.workspace.commit_bytes,
            stable: StableHow::Unstable,
            limit: Limit { time: Some(time), drain: Some(self.drain.of(&configuration, time)) },
        };
        let session = &self.sessions[configuration.subject];
        let file = self.workspace.sweep[configuration.subject];
        let run = seqwrite::run(self.clock, session, file, &self.data, workload).await?;
        if run.abandoned {
            let subject = &self.subjects[configuration.subject];
            let session = subject.connect().await?;
            // What it left behind must not be in the next: neither its time, nor its data, which
            // the next would overwrite before the disk has them.
            session.commit(file, 0, 0).await?;
            self.sessions[configuration.subject] = session;
        }
        Ok(run)
    }
}

/// How long what a burst has written may take to become durable: there are tens of bursts.
const BURST_DRAIN: Nanos = Nanos::from_millis(500);

/// How long filling memory for one COMMIT of the probe may take.
const COMMIT_PROBE_TIME: Nanos = Nanos::from_millis(200);

/// The smallest of [`WINDOWS`] that, by the model, keeps the slowest stage busy with as many calls
/// again in reserve (for the spread of response times), or the largest.
pub fn best_window(path: &Path, server: Server, call_bytes: u32, commit_bytes: u64) -> usize {
    let predict = |outstanding| {
        let configuration = Configuration { subject: 0, call_bytes, outstanding };
        path.predict(server, &transfer(&configuration, commit_bytes)).mib_per_s
    };
    let largest = WINDOWS[WINDOWS.len() - 1];
    let full = 0.999 * predict(largest);
    let enough = WINDOWS.iter().find(|&&n| n > 1 && predict(n / 2) >= full);
    enough.copied().unwrap_or(largest)
}

/// Writes a file for the first time, for at most a share of the fill time; gives its length.
async fn fill(
    clock: &Clock,
    session: &Session,
    file: FileHandle,
    data: &Bytes,
    bytes: u64,
    plan: Plan,
    share: u64,
) -> Result<u64, Error> {
    let call_bytes = session.sizes().write_bytes_max.min(1 << 20);
    let workload = Workload {
        call_bytes,
        outstanding: 4,
        file_bytes: bytes,
        total_bytes: bytes,
        commit_bytes: u64::MAX,
        stable: StableHow::Unstable,
        limit: Limit { time: Some(plan.fill_time / share), drain: None },
    };
    let run = seqwrite::run(clock, session, file, data, workload).await?;
    Ok(run.bytes.next_multiple_of(u64::from(call_bytes)).max(u64::from(call_bytes)))
}
