//! Probes and sweeps in order: the measuring half of `nfskit study`.
//!
//! Every configuration (server, bytes per call, calls outstanding) is run `repeats` times, and a
//! repetition goes through all of them before the next begins, which goes back the other way, so
//! that what drifts drifts under all. Runs are bounded in time; a run whose outstanding calls and
//! last COMMIT take longer than its [`Drain`] to come back is abandoned with its connection. What
//! it shows are the bytes that an answered COMMIT has covered; without one it shows nothing.

use std::future::Future;

use bytes::Bytes;
use client::session::Session;
use client::transfer::Limit;
use net::clock::Clock;
use perf::model::transaction::{Path, Server, Transfer};
use perf::stats::{Estimate, Sample};
use perf::units::Nanos;
use wire::nfs3::{FileHandle, StableHow};

use crate::error::Error;
use crate::probe::{self, Effort, Files, Outstanding, concurrency};
use crate::scratch::Scratch;
use crate::seqwrite::{self, Run, Workload};

/// Sizes of a WRITE: the thesis's of 2002, and what servers offer today.
pub const CALL_BYTES: [u32; 2] = [8 << 10, 1 << 20];

/// Numbers of calls outstanding.
pub const WINDOWS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Bytes between two COMMITs.
pub const COMMIT_BYTES_MIN: u64 = 8 << 20;
pub const COMMIT_BYTES_MAX: u64 = 64 << 20;

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Repetitions of the sweep: at least the first number, at most the second, as `sweep_time`
    /// allows.
    pub repeats: (usize, usize),
    pub sweep_time: Nanos,
    pub run_time: Nanos,
    /// For what is outstanding at the end of a run, at least; see [`Drain`].
    pub drain: Nanos,
    /// A COMMIT after as many bytes as the path takes in about this time, in powers of two between
    /// [`COMMIT_BYTES_MIN`] and [`COMMIT_BYTES_MAX`]: a client commits when its memory fills, not
    /// after a number of bytes that suits one network.
    pub commit_time: Nanos,
    pub file_bytes_max: u64,
    /// Time to spend on writing files for the first time: enough, on a link of 1 Gbit/s, for a file
    /// that is longer than what a run has outstanding and uncommitted. What is overwritten before
    /// it is on the disk costs the disk nothing.
    pub fill_time: Nanos,
    pub null_calls: usize,
    pub rounds: (usize, usize),
    pub round_time: Nanos,
    /// Bursts of each kind, likewise, as `bursts_time` allows; and the time of one.
    pub bursts: (usize, usize),
    pub bursts_time: Nanos,
    pub burst_time: Nanos,
    /// Repetitions of step 4, an even number so that each order comes as often; and the time of
    /// each run: longer, so that beginning and end of a transfer weigh as little as they do for a
    /// user.
    pub applications: usize,
    pub application_time: Nanos,
}

impl Plan {
    /// About a minute on a fast path.
    pub const FULL: Self = Self {
        repeats: (3, 5),
        sweep_time: Nanos::from_secs(75),
        run_time: Nanos::from_millis(220),
        drain: Nanos::from_millis(500),
        commit_time: Nanos::from_millis(40),
        file_bytes_max: 256 << 20,
        fill_time: Nanos::from_millis(1_000),
        null_calls: 2_000,
        rounds: (12, 150),
        round_time: Nanos::from_secs(4),
        bursts: (6, 12),
        bursts_time: Nanos::from_secs(9),
        burst_time: Nanos::from_millis(120),
        applications: 8,
        application_time: Nanos::from_millis(600),
    };

    /// Under 20 seconds on any path of up to 10 ms.
    pub const QUICK: Self = Self {
        repeats: (1, 3),
        sweep_time: Nanos::from_millis(8_500),
        run_time: Nanos::from_millis(130),
        drain: Nanos::from_millis(100),
        file_bytes_max: 128 << 20,
        fill_time: Nanos::from_millis(900),
        null_calls: 1_000,
        rounds: (2, 40),
        round_time: Nanos::from_millis(800),
        bursts: (2, 8),
        bursts_time: Nanos::from_millis(3_000),
        burst_time: Nanos::from_millis(100),
        applications: 2,
        application_time: Nanos::from_millis(250),
        ..Self::FULL
    };

    /// About fifteen seconds: the parameters are what counts, and the sweep only tests them.
    pub const PROBE: Self = Self {
        repeats: (3, 3),
        sweep_time: Nanos::from_secs(9),
        run_time: Nanos::from_millis(100),
        rounds: (12, 80),
        round_time: Nanos::from_secs(2),
        bursts: (8, 12),
        bursts_time: Nanos::from_millis(3_500),
        burst_time: Nanos::from_millis(60),
        ..Self::QUICK
    };

    /// Under ten seconds.
    pub const PROBE_QUICK: Self = Self {
        repeats: (1, 1),
        sweep_time: Nanos::from_secs(3),
        run_time: Nanos::from_millis(60),
        rounds: (6, 20),
        round_time: Nanos::from_millis(600),
        bursts: (6, 6),
        bursts_time: Nanos::from_millis(1_000),
        burst_time: Nanos::from_millis(40),
        ..Self::QUICK
    };
}

/// How long what is outstanding at the end of a run is waited for: long enough for it and for the
/// COMMITs that it needs, at the rate that the warm-up found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drain {
    least: Nanos,
    commit_bytes: u64,
    /// Durable, of the warm-up; `None` where no COMMIT was answered.
    mib_per_s: Option<f64>,
}

impl Drain {
    /// At most, whatever the rate: a sweep has tens of runs.
    pub const MOST: Nanos = Nanos::from_secs(2);

    /// Rates differ from run to run. Guess.
    const RESERVE: f64 = 1.5;

    /// What was warmed up at this rate.
    pub fn new(plan: &Plan, commit_bytes: u64, mib_per_s: Option<f64>) -> Self {
        Self { least: plan.drain, commit_bytes, mib_per_s }
    }

    /// What becomes durable in this time; without end where that is not known.
    fn bytes_in(&self, time: Nanos) -> u64 {
        let bytes = self.mib_per_s.map(|rate| rate * f64::from(1 << 20) * time.as_secs_f64());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        bytes.map_or(u64::MAX, |bytes| bytes as u64)
    }

    /// Of a run of this configuration and time. While one COMMIT is outstanding, so many bytes more
    /// are written at most as the next one covers.
    pub fn of(&self, configuration: &Configuration, time: Nanos) -> Nanos {
        let least = self.least.max(time);
        let Some(mib_per_s) = self.mib_per_s else { return least };
        let outstanding = configuration.outstanding as f64 * f64::from(configuration.call_bytes);
        let mib = (outstanding + 2.0 * self.commit_bytes as f64) / f64::from(1 << 20);
        let needed = Nanos::from_secs_f64(Self::RESERVE * mib / mib_per_s);
        least.max(needed.min(Self::MOST))
    }
}

/// A server to study: how it treats its disk as far as we know, and how to reach it.
pub trait Subject {
    /// `None` when it is somebody else's.
    fn server(&self) -> Option<Server>;
    /// A session over a new connection.
    fn connect(&self) -> impl Future<Output = Result<Session, client::error::Error>> + Send;
}

/// What is run.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Configuration {
    /// Index of the subject.
    pub subject: usize,
    pub call_bytes: u32,
    pub outstanding: usize,
}

/// All repetitions of a configuration.
#[derive(Clone, Debug)]
pub struct Measured {
    pub configuration: Configuration,
    /// Of every repetition; 0 of one in which no COMMIT was answered: nothing is known to be stable
    /// of what it wrote, however long it was waited for.
    pub mib_per_s: Vec<f64>,
    /// The repetition with the median throughput, with its every call.
    pub typical: Run,
    /// The other repetitions, in order, with theirs.
    pub others: Vec<Run>,
}

impl Measured {
    /// `None` where the median repetition shows nothing.
    pub fn estimate(&self) -> Option<Estimate> {
        self.sample().map(|sample| sample.median_estimate()).filter(|found| found.value > 0.0)
    }

    pub fn median(&self) -> Option<f64> {
        self.sample().map(|sample| sample.median()).filter(|&median| median > 0.0)
    }

    /// Repetitions in which no COMMIT was answered.
    pub fn unanswered(&self) -> usize {
        self.mib_per_s.iter().filter(|&&mib_per_s| mib_per_s == 0.0).count()
    }

    /// Smallest and largest repetition.
    pub fn spread(&self) -> Option<(f64, f64)> {
        self.sample().map(|sample| (sample.min(), sample.max()))
    }

    fn sample(&self) -> Option<Sample> {
        Sample::new(self.mib_per_s.clone()).ok()
    }
}

/// Steps of a study, as they are shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    Probe,
    Measure,
    Apply,
}

/// Told how far a step is, from 0 to 1.
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
                fastest = ran.mib_per_s().into_iter().chain(fastest).reduce(f64::max);
                // A slow path leaves nothing to warm.
                if self.clock.now().since(started) > self.plan.run_time * 4 {
                    break;
                }
            }
        }
        let commit_bytes = commit_bytes(fastest.unwrap_or(0.0), &self.plan);
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

    /// Most bytes of a READ and of a WRITE, as the last subject said.
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
        let (least, most) = self.plan.rounds;
        let share =
            |(least, most): (usize, usize)| (least.div_ceil(portions), most.div_ceil(portions));
        let effort = Effort {
            null_calls: self.plan.null_calls.div_ceil(portions),
            rounds: (least.div_ceil(portions) + 1, most.div_ceil(portions) + 1),
            round_time: self.plan.round_time / portions as u64,
            bursts: share(self.plan.bursts),
            bursts_time: self.plan.bursts_time / portions as u64,
            burst_time: self.plan.burst_time,
            burst_bytes_max: self.drain.bytes_in(BURST_DRAIN),
            commit_bytes: self.workspace.commit_bytes,
            commit_probe_bytes: self.workspace.commit_probe_bytes,
            single_file_bytes: self.workspace.single_bytes,
            burst_file_bytes: self.workspace.sweep_bytes,
            outstanding: Outstanding::STUDY,
            rest: Nanos::ZERO,
        };
        let (first, last) = self.ends()?;
        let told = |done| progress(Step::Probe, done);
        let files = self.workspace.files;
        let committing = (first, self.workspace.sweep[0]);
        let (clock, data) = (self.clock, &self.data);
        let portion = probe::sample(clock, last, committing, files, data, &effort, told).await?;
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
        let effort = concurrency::Effort {
            rounds,
            burst_time: self.plan.burst_time,
            file_bytes: *sweep_bytes,
        };
        let session = self.ends()?.1;
        concurrency::sample(self.clock, session, files.burst, &self.data, &effort, busy).await
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

    /// One run of this length: MiB/s; `None` where no COMMIT was answered.
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

/// What is measured in turn in step 4.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Turn {
    Before,
    After,
    Between,
}

/// What the first leaves behind, the next finds: a cache that is warm, a device that is still busy.
/// In the reverse order every other time, each comes as often before another as behind it, and what
/// drifts evenly is the same under all.
fn turns(application: usize) -> impl Iterator<Item = Turn> {
    let turns = [Turn::Before, Turn::After, Turn::Between];
    forth_and_back(turns.len(), application).map(move |at| turns[at])
}

fn forth_and_back(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| if round.is_multiple_of(2) { at } else { count - 1 - at })
}

/// The transfer that the model is asked about.
pub fn transfer(configuration: &Configuration, commit_bytes: u64) -> Transfer {
    Transfer {
        call_bytes: u64::from(configuration.call_bytes),
        outstanding: u32::try_from(configuration.outstanding).unwrap_or(u32::MAX),
        commit_bytes,
    }
}

/// How long what a burst has written may take to become durable: there are tens of bursts.
const BURST_DRAIN: Nanos = Nanos::from_millis(500);

/// How long filling memory for one COMMIT of the probe may take.
const COMMIT_PROBE_TIME: Nanos = Nanos::from_millis(200);

fn commit_bytes(mib_per_s: f64, plan: &Plan) -> u64 {
    let bytes = mib_per_s * f64::from(1 << 20) * plan.commit_time.as_secs_f64();
    let mut power = COMMIT_BYTES_MIN;
    while power < COMMIT_BYTES_MAX && (power as f64) < bytes {
        power *= 2;
    }
    power
}

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

fn typical(configuration: Configuration, mut runs: Vec<Run>) -> Option<Measured> {
    if runs.is_empty() {
        return None;
    }
    let mib_per_s: Vec<f64> = runs.iter().map(|run| run.mib_per_s().unwrap_or(0.0)).collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|&a, &b| mib_per_s[a].total_cmp(&mib_per_s[b]));
    let typical = runs.remove(order[order.len() / 2]);
    Some(Measured { configuration, mib_per_s, typical, others: runs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_as_often_before_another_as_behind_it_and_drift_is_the_same_under_all() {
        for plan in [Plan::FULL, Plan::QUICK] {
            let order: Vec<Turn> = (0..plan.applications).flat_map(turns).collect();
            let places = |turn| {
                let places = order.iter().enumerate().filter(move |(_, one)| **one == turn);
                places.map(|(at, _)| at).sum::<usize>()
            };
            assert_eq!(places(Turn::Before), places(Turn::After));
            assert_eq!(places(Turn::Before), places(Turn::Between));
            let before = |one, other| {
                let rounds = order.chunks(3).map(|round| round.iter().position(|t| *t == one));
                let others = order.chunks(3).map(|round| round.iter().position(|t| *t == other));
                rounds.zip(others).filter(|(one, other)| one < other).count()
            };
            assert_eq!(before(Turn::Before, Turn::After), before(Turn::After, Turn::Before));
        }
        assert_eq!(forth_and_back(3, 1).collect::<Vec<_>>(), [2, 1, 0]);
    }

    #[test]
    fn a_repetition_that_stalls_weighs_as_much_as_one_that_does_not() {
        let workload = Workload {
            call_bytes: 8192,
            outstanding: 4,
            file_bytes: 1 << 20,
            total_bytes: u64::MAX,
            commit_bytes: COMMIT_BYTES_MIN,
            stable: StableHow::Unstable,
            limit: Limit::default(),
        };
        let run = |mib: u64| Run {
            workload,
            started: perf::units::Instant::EPOCH,
            elapsed: Nanos::from_secs(1),
            bytes: mib << 20,
            durable_after: Nanos::from_secs(1),
            resent_bytes: 0,
            abandoned: mib == 0,
            events: Vec::new(),
            cpu: crate::cpu::Usage::default(),
        };
        let configuration = Configuration { subject: 0, call_bytes: 8192, outstanding: 4 };
        let of = |mib: &[u64]| typical(configuration, mib.iter().copied().map(run).collect());
        let one_of_three = of(&[46, 0, 0]).unwrap();
        assert_eq!((one_of_three.mib_per_s.len(), one_of_three.unanswered()), (3, 2));
        assert_eq!((one_of_three.median(), one_of_three.estimate()), (None, None));
        let two_of_three = of(&[46, 0, 40]).unwrap();
        assert_eq!((two_of_three.median(), two_of_three.spread()), (Some(40.0), Some((0.0, 46.0))));
        assert_eq!(two_of_three.typical.bytes, 40 << 20);
        assert_eq!(of(&[]).map(|none| none.unanswered()), None);
    }

    #[test]
    fn what_is_outstanding_is_waited_for_as_long_as_its_rate_lets_expect() {
        let one = Configuration { subject: 0, call_bytes: 1 << 20, outstanding: 4 };
        let drain = |mib_per_s| Drain::new(&Plan::PROBE_QUICK, 8 << 20, mib_per_s);
        let time = Nanos::from_millis(60);
        // 4 MiB and two COMMITs' worth, at 40 MiB/s, and half as much again.
        assert_eq!(drain(Some(40.0)).of(&one, time), Nanos::from_millis(750));
        assert_eq!(drain(Some(1.0)).of(&one, time), Drain::MOST);
        assert_eq!(drain(Some(1e4)).of(&one, time), Plan::PROBE_QUICK.drain);
        assert_eq!(drain(None).of(&one, time), Plan::PROBE_QUICK.drain);
        assert_eq!(drain(None).of(&one, Nanos::from_secs(3)), Nanos::from_secs(3));
    }
}
