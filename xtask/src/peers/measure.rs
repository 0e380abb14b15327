//! One run of one row on one server: warm-up, the run itself, and what it cost on both sides.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use wire::nfs3::{FileHandle, StableHow};

use super::client::jobs::bulk::{Read, Span, Write};
use super::client::jobs::commit::Commit;
use super::client::jobs::listing::Listing;
use super::client::jobs::names::CreateRemove;
use super::client::jobs::small::Small;
use super::client::jobs::{is_pattern, pattern};
use super::client::pipeline::{Job, Pipeline, Run, Until};
use super::cpu::CpuTime;
use super::fixture::{self, Site};
use super::options::Options;
use super::profile::Profile;
use super::rows::{Cache, Row, Work};
use super::servers::Name;
use super::stats::percentile;

use crate::host::about;

/// Of one stable write: a page, which databases and mail servers write so.
const STABLE_BYTES: u32 = 4 << 10;
/// All files of the stable writes together.
const STABLE_TOTAL_BYTES: u64 = 16 << 20;
const WRITE_WARM_UP_BYTES: u64 = 16 << 20;
const KIB_64: u32 = 64 << 10;

/// What one run gave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// In the unit of the row.
    pub(crate) amount: u64,
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
    pub(crate) server_cpu_ns: u64,
    pub(crate) client_cpu_ns: u64,
    pub(crate) p50_ns: u32,
    pub(crate) p99_ns: u32,
    /// Of `seconds`, what the COMMIT took.
    pub(crate) commit_seconds: f64,
}

/// Measures one server; the `server` of its methods is the process whose CPU time counts.
#[derive(Debug)]
pub(crate) struct Measurer<'a> {
    pub(crate) options: &'a Options,
    pub(crate) scratch: &'a Path,
    pub(crate) export: &'a Path,
    /// Only our own server is profiled.
    pub(crate) is_ours: bool,
}

impl Measurer<'_> {
    /// A row on a server.
    pub(crate) fn run(
        &self,
        row: &Row,
        site: &mut Site,
        peer: (Name, u32),
    ) -> Result<Sample, String> {
        let (name, server) = peer;
        match row.work {
            Work::Write { block_bytes } => self.write(row, site, name, server, block_bytes),
            Work::FileSync { files } => {
                self.overwrite(row, site, server, (files, StableHow::FileSync))
            }
            Work::Unstable { files } => {
                self.overwrite(row, site, server, (files, StableHow::Unstable))
            }
            Work::CreateRemove => {
                let mut job = CreateRemove::new(site.work);
                let sample = self.timed(row, &mut site.pipeline, &mut job, server)?;
                job.end();
                site.pipeline.run(&mut job, row.window, Until::Done)?;
                // No fsync pays for names that another left to the journal.
                settle(self.export).map_err(|error| format!("syncfs: {error}"))?;
                Ok(sample)
            }
            Work::List(Cache::Cold) => {
                drop_caches();
                let dir = site.many.ok_or("no directory to list")?;
                let mut job = Listing::new(dir, fixture::ENTRIES, false);
                self.meter(row, server, || site.pipeline.run(&mut job, 1, Until::Done))
            }
            Work::Small(_) | Work::Read { .. } | Work::List(Cache::Warm) => {
                let mut job = endless(row, site)?;
                self.timed(row, &mut site.pipeline, &mut *job, server)
            }
        }
    }

    /// A row on several connections at once, each with a thread on a core of its own.
    pub(crate) fn run_at_once(
        &self,
        row: &Row,
        sites: &mut [Site],
        cores: &[usize],
        server: u32,
    ) -> Result<Sample, String> {
        let window = row.window;
        let mut jobs = Vec::new();
        for site in sites.iter_mut() {
            jobs.push((endless(row, site)?, &mut site.pipeline));
        }
        let mut all = |until| {
            let start = Instant::now();
            let runs = std::thread::scope(|scope| {
                let threads: Vec<_> = jobs
                    .iter_mut()
                    .zip(cores)
                    .map(|((job, pipeline), &core)| {
                        scope.spawn(move || {
                            super::cpu::pin(&[core])?;
                            pipeline.run(&mut **job, window, until)
                        })
                    })
                    .collect();
                let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|_| Err("a client ended early".to_owned()))
                };
                threads.into_iter().map(join).collect::<Result<Vec<Run>, String>>()
            })?;
            let seconds = start.elapsed().as_secs_f64();
            let amount = runs.iter().map(|run| run.amount).sum();
            let latencies_ns = runs.into_iter().flat_map(|run| run.latencies_ns).collect();
            Ok(Run { amount, seconds, latencies_ns })
        };
        all(Until::Elapsed(self.options.warm_up_for()))?;
        self.meter(row, server, || all(Until::Elapsed(self.options.run_for())))
    }

    /// System calls of our own: a new file, so many bytes, fsync.
    pub(crate) fn local(&self, row: &Row) -> Result<Sample, String> {
        let Work::Write { block_bytes } = row.work else {
            return Err("only writing is measured without a server".to_owned());
        };
        let failed = |error: std::io::Error| format!("local write: {error}");
        let path = fixture::work_dir(self.export, Name::Local).join("written");
        let block = pattern(0, block_bytes as usize);
        let bytes = self.options.write_bytes();
        touch_memory(self.export, bytes).map_err(failed)?;
        let mut file = fs::File::create(&path).map_err(failed)?;
        let sample = self.meter(row, std::process::id(), || {
            let start = Instant::now();
            for _ in 0..bytes / u64::from(block_bytes) {
                file.write_all(&block).map_err(failed)?;
            }
            file.sync_all().map_err(failed)?;
            let seconds = start.elapsed().as_secs_f64();
            Ok(Run { amount: bytes, seconds, latencies_ns: Vec::new() })
        });
        fs::remove_file(&path).and_then(|()| settle(self.export)).map_err(failed)?;
        sample
    }

    /// Warm-up, then the run.
    fn timed(
        &self,
        row: &Row,
        pipeline: &mut Pipeline,
        job: &mut dyn Job,
        server: u32,
    ) -> Result<Sample, String> {
        let window = row.window;
        pipeline.run(job, window, Until::Elapsed(self.options.warm_up_for()))?;
        self.meter(row, server, || {
            pipeline.run(job, window, Until::Elapsed(self.options.run_for()))
        })
    }

    /// A new file from its start to its end, and a COMMIT; the file is looked at and removed.
    fn write(
        &self,
        row: &Row,
        site: &mut Site,
        name: Name,
        server: u32,
        block_bytes: u32,
    ) -> Result<Sample, String> {
        let unstable = |file_bytes| Span {
            block_bytes,
            file_bytes,
            stable: StableHow::Unstable,
            again: false,
        };
        let warm = site.session.create(site.work, "warm-up")?;
        write_whole(&mut site.pipeline, warm, unstable(WRITE_WARM_UP_BYTES), row.window)?;
        site.session.remove(site.work, "warm-up")?;

        let file = site.session.create(site.work, "written")?;
        let bytes = self.options.write_bytes();
        if name == Name::OursMemory {
            // The engine's own cost is requested, not what the kernel takes for fresh memory.
            write_whole(&mut site.pipeline, file, unstable(bytes), row.window)?;
        } else {
            touch_memory(self.export, bytes).map_err(|error| format!("local write: {error}"))?;
        }
        let mut commit_seconds = 0.0;
        let sample = self.meter(row, server, || {
            let (run, commit) = write_whole(&mut site.pipeline, file, unstable(bytes), row.window)?;
            commit_seconds = commit;
            Ok(run)
        })?;
        if name != Name::OursMemory {
            let path = fixture::work_dir(self.export, name).join("written");
            let is_there = is_written(&path, bytes, block_bytes);
            if !is_there.map_err(about(&path))? {
                return Err("the file is not what was written".to_owned());
            }
        }
        site.session.remove(site.work, "written")?;
        settle(self.export).map_err(|error| format!("syncfs: {error}"))?;
        Ok(Sample { commit_seconds, ..sample })
    }

    /// Writes over files that have all their blocks, so that only data has to be synced.
    fn overwrite(
        &self,
        row: &Row,
        site: &mut Site,
        server: u32,
        (count, stable): (usize, StableHow),
    ) -> Result<Sample, String> {
        let names: Vec<String> = (0..count).map(|number| format!("stable-{number:02}")).collect();
        let file_bytes = STABLE_TOTAL_BYTES / count as u64;
        let mut files = Vec::new();
        for name in &names {
            let file = site.session.create(site.work, name)?;
            let unstable = StableHow::Unstable;
            let span = Span { block_bytes: KIB_64, file_bytes, stable: unstable, again: false };
            write_whole(&mut site.pipeline, file, span, row.window)?;
            files.push(file);
        }
        let span = Span { block_bytes: STABLE_BYTES, file_bytes, stable, again: true };
        let mut job = Write::new(&files, span);
        let sample = self.timed(row, &mut site.pipeline, &mut job, server)?;
        for name in &names {
            site.session.remove(site.work, name)?;
        }
        settle(self.export).map_err(|error| format!("syncfs: {error}"))?;
        Ok(Sample { amount: sample.calls, ..sample })
    }

    /// Runs, and takes the CPU time of the server and of ourselves before and after.
    fn meter(
        &self,
        row: &Row,
        server: u32,
        run: impl FnOnce() -> Result<Run, String>,
    ) -> Result<Sample, String> {
        let ourselves = std::process::id();
        let profile = match self.options.perf && self.is_ours && server != ourselves {
            true => Some(Profile::start(server, self.scratch)?),
            false => None,
        };
        let before = (CpuTime::of(server)?, CpuTime::of(ourselves)?);
        let outcome = run();
        let after = (CpuTime::of(server)?, CpuTime::of(ourselves)?);
        if let Some(profile) = profile {
            println!("peers: {}, where the server's time goes:", row.name);
            profile.stop()?.iter().for_each(|line| println!("  {line}"));
        }
        let Run { amount, seconds, mut latencies_ns } = outcome?;
        Ok(Sample {
            amount,
            calls: latencies_ns.len() as u64,
            seconds,
            server_cpu_ns: after.0.since_ns(&before.0),
            client_cpu_ns: after.1.since_ns(&before.1),
            p50_ns: percentile(&mut latencies_ns, 50),
            p99_ns: percentile(&mut latencies_ns, 99),
            commit_seconds: 0.0,
        })
    }
}

/// A job that goes on until the time is over.
fn endless(row: &Row, site: &Site) -> Result<Box<dyn Job + Send>, String> {
    match row.work {
        Work::Small(kind) => Ok(Box::new(Small::new(kind, site.files_dir, &site.files))),
        Work::Read { block_bytes } => {
            Ok(Box::new(Read::new(site.big, fixture::BIG_BYTES, block_bytes)))
        }
        Work::List(_) => {
            let dir = site.many.ok_or("no directory to list")?;
            Ok(Box::new(Listing::new(dir, fixture::ENTRIES, true)))
        }
        _ => Err("this row has an end".to_owned()),
    }
}

/// All blocks of a file, then a COMMIT; and what the COMMIT took.
pub(crate) fn write_whole(
    pipeline: &mut Pipeline,
    file: FileHandle,
    span: Span,
    window: usize,
) -> Result<(Run, f64), String> {
    let mut writes = Write::new(&[file], span);
    let run = pipeline.run(&mut writes, window, Until::Done)?;
    let mut commit = Commit::new(file, writes.verifier());
    let commit = pipeline.run(&mut commit, 1, Until::Done)?.seconds;
    Ok((Run { seconds: run.seconds + commit, ..run }, commit))
}

/// Whether the file has its size, and at sixteen places the block that was written everywhere.
fn is_written(path: &Path, bytes: u64, block_bytes: u32) -> std::io::Result<bool> {
    let file = fs::File::open(path)?;
    let mut block = vec![0; block_bytes as usize];
    let blocks = bytes / u64::from(block_bytes);
    for block_index in (0..blocks).step_by((blocks / 16).max(1) as usize) {
        let at = block_index * u64::from(block_bytes);
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut block, at)?;
        if !is_pattern(0, &block) {
            return Ok(false);
        }
    }
    Ok(file.metadata()?.len() == bytes)
}

/// Makes the page cache of a file that is about to be written out of memory in use a moment ago.
///
/// A virtual machine gives memory that it does not use back to its host, and pays for it when it
/// takes it again. Who is measured first would pay for those that come after.
fn touch_memory(export: &Path, bytes: u64) -> std::io::Result<()> {
    let path = fixture::work_dir(export, Name::Local).join("touched");
    let mut file = fs::File::create(&path)?;
    let block = vec![0; 1 << 20];
    for _ in 0..bytes / block.len() as u64 {
        file.write_all(&block)?;
    }
    fs::remove_file(&path)
}

/// What was removed leaves the disk now, not during the next run.
fn settle(export: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(fs::File::open(export)?)?)
}

/// Names and attributes go from the kernel's caches; false where that is not allowed.
pub(crate) fn drop_caches() -> bool {
    fs::write("/proc/sys/vm/drop_caches", "2").is_ok()
}
