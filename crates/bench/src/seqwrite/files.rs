//! Through file systems: every place, every length, every repetition, in alternation.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use bytes::Bytes;
use client::files::Files;
use client::mount::{self, Mounted};
use client::url::Target;
use harness::csv;
use harness::exit::Failure;
use harness::local;
use harness::output::Bars;
use harness::scratch;
use harness::target::Reached;
use harness::verbosity::Verbosity;
use load::error::Error as LoadError;
use load::file_system::{self, FileSystem};
use load::scratch::Scratch;
use load::seqwrite_files::{self as seqwrite, CALLS_MAX, Directory, Mark, Run, Workload};
use net::clock::Clock;
use perf::record::Durability;
use perf::stats::Sample;
use perf::units::Nanos;
use tokio::sync::oneshot;

use crate::seqwrite::args::Seqwrite;
use crate::workload::{Conditions, Outcome};

const FILE_BYTES: u64 = 100 << 20;
const CALL_BYTES: u64 = 8 << 10;
/// Written before what counts, to wake caches and clocks.
const WARM_UP_BYTES_MAX: u64 = 16 << 20;
/// How long a run in progress may take to stop: a write to a server that is gone never does.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Where to write.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) at: At,
    pub(super) file_system: FileSystem,
}

#[derive(Clone, Debug)]
pub(super) enum At {
    Dir(PathBuf),
    Target(Target),
}

impl Place {
    pub(super) fn name(&self) -> String {
        match &self.at {
            At::Dir(dir) => dir.display().to_string(),
            At::Target(target) => target.to_string(),
        }
    }
}

/// All repetitions of one length in one place.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(super) place: Place,
    pub(super) workload: Workload,
    pub(super) runs: Vec<Run>,
}

impl Measured {
    /// Throughputs of all repetitions up to `mark`; there is one at least.
    pub(super) fn rates(&self, mark: Mark) -> Option<Sample> {
        let rates: Vec<f64> = self.runs.iter().map(|run| run.mib_per_s(mark)).collect();
        Sample::new(rates).ok()
    }

    /// The repetition with the median throughput of the calls.
    pub(super) fn typical(&self) -> Option<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.span(Mark::Written));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    /// Processor time for each GiB, of this process and of the whole machine, where it shows.
    pub(super) fn cpu_s_per_gib(&self) -> [Option<f64>; 2] {
        let bytes = self.workload.file_bytes * self.runs.len() as u64;
        let own = self.runs.iter().fold(Nanos::ZERO, |sum, run| sum + run.cpu);
        let machine = self
            .runs
            .iter()
            .try_fold(Nanos::ZERO, |sum, run| run.machine_cpu.map(|time| sum + time));
        [Some(own), counted(own, machine)].map(|time| per_gib(time?, bytes))
    }
}

/// What a GiB takes, in seconds; not of so little that opening and closing the file take as long.
pub(super) fn per_gib(time: Nanos, bytes: u64) -> Option<f64> {
    let gib = bytes as f64 / f64::from(1 << 30);
    (bytes >= SHOWN_BYTES_MIN).then(|| time.as_secs_f64() / gib)
}

/// Writing it takes 100 us or more.
const SHOWN_BYTES_MIN: u64 = 1 << 20;

/// The machine counts in ticks of 10 ms: less than what this process alone took is no number.
fn counted(own: Nanos, machine: Option<Nanos>) -> Option<Nanos> {
    machine.filter(|machine| *machine >= own)
}

/// What is to be written, of each length.
pub(super) fn workloads(args: &Seqwrite) -> Result<Vec<Workload>, Failure> {
    let call_bytes = u32::try_from(args.call.unwrap_or(CALL_BYTES))
        .ok()
        .filter(|bytes| *bytes <= 1 << 30)
        .ok_or_else(|| Failure::usage("--call is above 1G", "a smaller --call"))?;
    let sizes = if args.size.is_empty() { &[FILE_BYTES][..] } else { &args.size };
    let workloads: Vec<Workload> =
        sizes.iter().map(|&file_bytes| Workload { file_bytes, call_bytes }).collect();
    match workloads.iter().find(|workload| workload.calls() > CALLS_MAX) {
        Some(workload) => {
            let what = format!(
                "{} bytes in calls of {call_bytes} are {} calls, and the times of at most \
                 {CALLS_MAX} are recorded",
                workload.file_bytes,
                workload.calls()
            );
            Err(Failure::usage(what, "a larger --call or a smaller --size"))
        }
        None => Ok(workloads),
    }
}

pub(super) async fn measure(
    args: &Seqwrite,
    workloads: &[Workload],
    Conditions { clock, mut interrupts, verbosity }: Conditions,
) -> Result<Outcome<Vec<Measured>>, Failure> {
    let places = look(args, workloads)?;
    let left = Arc::new(AtomicBool::new(false));
    let work = Work { clock: &clock, args, workloads, places: &places, verbosity, left: &left };
    let mut measured: Vec<Measured> = Vec::new();
    let ended = match &args.target {
        None => interrupts.or(work.all(None, &mut measured)).await,
        Some(target) => {
            args.client.calibrate(&clock).await?;
            let options = args.client.over_link(target);
            let reached = Reached::new(&clock, None, target, args.client.beside_link(target));
            scratch::in_scratch(&reached, &mut interrupts, async |scratch: &Scratch| {
                let Mounted { session, .. } = mount::mount(&clock, target, &options).await?;
                let files = Files::new(&clock, session, args.client.files());
                let who = &options.credential;
                let free = files.statfs(who).await?.abytes;
                is_enough(&target.to_string(), free, workloads)?;
                let dir = Directory { files: &files, who, dir: scratch.dir() };
                let ended = work.all(Some(dir), &mut measured).await;
                files.shut_down().await;
                ended
            })
            .await
        }
    };
    let ended = ended.map_err(|failure| match left.load(Ordering::Relaxed) {
        true => failure.and("a scratch file may be left in a directory that does not answer"),
        false => failure,
    });
    measured.retain(|one| !one.runs.is_empty());
    Ok(Outcome::until((!measured.is_empty()).then_some(measured), ended))
}

/// The places, if there is room for the longest file in each.
fn look(args: &Seqwrite, workloads: &[Workload]) -> Result<Vec<Place>, Failure> {
    let mut places = Vec::new();
    for dir in &args.dir {
        let file_system = local::directory(dir, "--dir")?;
        let free = file_system::free_bytes(dir).map_err(Failure::from)?;
        is_enough(&dir.display().to_string(), free, workloads)?;
        places.push(Place { at: At::Dir(dir.clone()), file_system });
    }
    if let Some(target) = &args.target {
        let file_system = FileSystem {
            kind: format!("nfs, our client, {}", args.client.policy()),
            mount_options: None,
            // What the protocol promises with the reply to COMMIT.
            flushed: Some(Durability::Stable),
        };
        places.push(Place { at: At::Target(target.clone()), file_system });
    }
    Ok(places)
}

/// Whether the longest file has room where `free` bytes are.
fn is_enough(place: &str, free: u64, workloads: &[Workload]) -> Result<(), Failure> {
    let longest = workloads.iter().map(|workload| workload.file_bytes).max().unwrap_or(0);
    local::room(place, longest, free, "free space there, or a smaller --size")
}

/// All that is to be run.
struct Work<'a> {
    clock: &'a Clock,
    args: &'a Seqwrite,
    workloads: &'a [Workload],
    places: &'a [Place],
    verbosity: Verbosity,
    /// Set when a run was given up whose file may be there still.
    left: &'a Arc<AtomicBool>,
}

impl Work<'_> {
    async fn all(
        &self,
        server: Option<Directory<'_>>,
        measured: &mut Vec<Measured>,
    ) -> Result<(), Failure> {
        let mut bars = Bars::new(self.verbosity);
        for &workload in self.workloads {
            let empty =
                |place: &Place| Measured { place: place.clone(), workload, runs: Vec::new() };
            measured.extend(self.places.iter().map(empty));
        }
        for place in self.places {
            let file_bytes = WARM_UP_BYTES_MAX.min(self.workloads[0].file_bytes);
            let workload = Workload { file_bytes, ..self.workloads[0] };
            self.one(place, workload, server).await?;
        }
        let (repeats, places) = (self.args.repeats as usize, self.places.len());
        for repeat in 0..repeats {
            // Each place comes first in turn: what one leaves behind is not always the same one's.
            for turn in 0..measured.len() {
                let index = turn / places * places + (turn + repeat) % places;
                let (place, workload) = (measured[index].place.clone(), measured[index].workload);
                let run = self.one(&place, workload, server).await?;
                measured[index].runs.push(run);
                let done = repeat * measured.len() + turn + 1;
                bars.show("sequential write", done as f64 / (repeats * measured.len()) as f64);
            }
        }
        bars.clear();
        Ok(())
    }

    async fn one(
        &self,
        place: &Place,
        workload: Workload,
        server: Option<Directory<'_>>,
    ) -> Result<Run, Failure> {
        let name = local::tag(self.clock);
        let source = workload.source();
        match (&place.at, server) {
            (At::Dir(dir), _) => {
                let writer = Writer::start(self, dir.clone(), name, source, workload)?;
                writer.run().await
            }
            (At::Target(_), Some(server)) => {
                Ok(server.run(self.clock, &name, &source, workload).await?)
            }
            (At::Target(_), None) => Err(Failure::interrupted()),
        }
    }
}

/// One run on a thread of its own: a write that hangs must not keep us from being interrupted.
/// Dropped, it stops the thread, and waits a while for the thread to remove its file.
struct Writer {
    stop: Arc<AtomicBool>,
    left: Arc<AtomicBool>,
    answered: oneshot::Receiver<Result<Option<Run>, LoadError>>,
    ended: mpsc::Receiver<()>,
}

impl Writer {
    fn start(
        work: &Work<'_>,
        dir: PathBuf,
        name: String,
        source: Bytes,
        workload: Workload,
    ) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let (answer, answered) = oneshot::channel();
        let (end, ended) = mpsc::channel();
        let (clock, stopped) = (work.clock.clone(), Arc::clone(&stop));
        let write = move || {
            let run = seqwrite::run_in_directory(&clock, &dir, &name, &source, workload, &stopped);
            // Nobody waits any more when the program is interrupted.
            answer.send(run).ok();
            drop(end);
        };
        std::thread::Builder::new()
            .name("nfskit-writer".to_owned())
            .spawn(write)
            .map_err(Failure::resources)?;
        Ok(Self { stop, left: Arc::clone(work.left), answered, ended })
    }

    async fn run(mut self) -> Result<Run, Failure> {
        match (&mut self.answered).await {
            Ok(Ok(Some(run))) => Ok(run),
            Ok(Err(error)) => Err(Failure::from(error)),
            Ok(Ok(None)) | Err(_) => Err(Failure::interrupted()),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if self.ended.recv_timeout(STOP_LIMIT) == Err(RecvTimeoutError::Timeout) {
            self.left.store(true, Ordering::Relaxed);
        }
    }
}

/// Every call of every run, one a line.
pub(super) fn csv(measured: &[Measured]) -> String {
    csv::text("place,file_bytes,call_bytes,repeat,call,latency_ns", |rows| {
        for Measured { place, workload: Workload { file_bytes, call_bytes }, runs } in measured {
            let name = place.name();
            for (repeat, run) in runs.iter().enumerate() {
                for (call, latency) in run.calls.iter().enumerate() {
                    rows.add((&name, file_bytes, call_bytes, repeat, call, latency.as_nanos()));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_less_than_its_process_is_not_known() {
        let (short, tick) = (Nanos::from_micros(290), Nanos::from_millis(10));
        assert_eq!(counted(short, Some(Nanos::ZERO)), None);
        assert_eq!(counted(short, Some(tick)), Some(tick));
        assert_eq!(counted(short, None), None);
    }
}
