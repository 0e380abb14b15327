//! `nfskit stat`: counters of this host, of saved files, or of our own programs, once or at an
//! interval.

use std::io::{ErrorKind, Write};
use std::path::Path;

use harness::exit::Failure;
use harness::output;
use harness::shell;
use harness::signals::Interrupts;
use harness::sink::Sink;
use harness::verbosity::Verbosity;
use net::clock::Clock;
use perf::words::counted;
use serde::Serialize;
use watch::ours::Ours;
use watch::sample::{Rates, Sample};
use watch::table::Table;
use watch::{place, tables, text};

use crate::args::stat::Stat;
use crate::samples::{Source, Taken};

/// A sample, as a line of JSON has it.
#[derive(Debug, Serialize)]
struct Record<'a> {
    time: String,
    #[serde(flatten)]
    rates: Option<&'a Rates>,
    /// Pages of metrics, by their addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ours: Vec<OursAt<'a>>,
}

#[derive(Debug, Serialize)]
struct OursAt<'a> {
    address: &'a str,
    #[serde(flatten)]
    ours: &'a Ours,
}

/// Runs the command: once, COUNT times, or until it is interrupted.
pub(crate) fn run(args: &Stat, verbosity: Verbosity) -> Result<(), Failure> {
    output::check([&args.json], &args.from)?;
    if args.from.len() > 1 || args.from.len() == 1 && args.interval.is_none() {
        return saved(args, verbosity);
    }
    let run = net::runtime::block_on(sampled(args, verbosity));
    run.map_err(Failure::resources)?
}

/// Where samples go, until nobody reads them any more.
struct Out<'a> {
    args: &'a Stat,
    is_text: bool,
    json: Option<Sink>,
}

impl<'a> Out<'a> {
    fn open(args: &'a Stat, verbosity: Verbosity) -> Result<Self, Failure> {
        let create =
            |path: &Path| Sink::create(path).map_err(|cause| output::cannot_write(path, &cause));
        let json = args.json.as_deref().map(create).transpose()?;
        Ok(Self { args, is_text: output::prints_text(verbosity, [&args.json]), json })
    }

    /// Writes one sample; `false` when its reader has gone away.
    fn put(&mut self, taken: &Taken) -> Result<bool, Failure> {
        let mut goes_on = true;
        if self.is_text {
            let mut out = std::io::stdout().lock();
            let written = out.write_all(shown(taken).as_bytes()).and_then(|()| out.flush());
            goes_on = is_read(written, Path::new("-"))?;
        }
        if let Some(sink) = &mut self.json {
            let path = self.args.json.as_deref().unwrap_or_else(|| Path::new("-"));
            let line = record(taken);
            let written = sink.write_all(line.as_bytes()).and_then(|()| sink.flush());
            goes_on &= is_read(written, path)?;
        }
        Ok(goes_on)
    }

    fn end(self) -> Result<(), Failure> {
        let path = self.args.json.as_deref().unwrap_or_else(|| Path::new("-"));
        self.json.map_or(Ok(()), |sink| is_read(sink.end(), path).map(drop))
    }
}

fn is_read(written: std::io::Result<()>, path: &Path) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(cause) => Err(output::cannot_write(path, &cause)),
    }
}

async fn sampled(args: &Stat, verbosity: Verbosity) -> Result<(), Failure> {
    let clock = Clock::real();
    let mut interrupts = Interrupts::catch()?;
    let mut source = Source::new(&clock, &args.metrics, args.from.first(), &args.mount);
    let mut out = Out::open(args, verbosity)?;
    let count = match args.interval {
        Some(_) => args.count.unwrap_or(u32::MAX),
        None => 1,
    };
    let mut passed_over = Vec::new();
    for number in 0..count {
        let taken = tokio::select! {
            taken = source.take() => taken?,
            () = interrupts.next() => break,
        };
        taken.complain(verbosity, &passed_over);
        passed_over.clone_from(&taken.problems);
        if number == 0 && taken.is_nothing() {
            return Err(nothing(args));
        }
        if !out.put(&taken)? {
            break;
        }
        if number + 1 < count
            && let Some(interval) = args.interval
        {
            tokio::select! {
                () = clock.sleep(source.until_next(interval)) => {}
                () = interrupts.next() => break,
            }
        }
    }
    out.end()
}

/// What two copies tell, or one.
fn saved(args: &Stat, verbosity: Verbosity) -> Result<(), Failure> {
    if args.interval.is_some() {
        let what = "two --from and an interval: they are apart as they are";
        return Err(Failure::usage(what, "one --from, which is read each time, or no interval"));
    }
    let taken = Taken::of_rates(load::environment::rfc3339(&Clock::real()), rates(args)?);
    if taken.is_nothing() {
        return Err(nothing(args));
    }
    let mut out = Out::open(args, verbosity)?;
    out.put(&taken)?;
    out.end()
}

/// Of one copy, or of what came between two.
fn rates(args: &Stat) -> Result<Rates, Failure> {
    match &args.from[..] {
        [only] => Ok(read(only, args)?.rates(None)),
        [before, after] => {
            let (before, now) = (read(before, args)?, read(after, args)?);
            Ok(now.rates(Some((&before, apart(&before, &now, after)?))))
        }
        _ => Err(Failure::usage("more than two --from", "one, or the older and the newer")),
    }
}

/// A copy of the counters.
fn read(path: &Path, args: &Stat) -> Result<Sample, Failure> {
    let (mut sample, ignored) = place::Place::Saved(path.to_owned()).read();
    crate::samples::keep(&mut sample, &args.mount);
    if sample.is_empty() {
        let why = ignored.first().map_or_else(String::new, ToString::to_string);
        return Err(Failure::environment(why, COPIES));
    }
    ignored.iter().for_each(|one| output::say(format_args!("passed over {one}")));
    Ok(sample)
}

const COPIES: &str = "a copy of /proc/self/mountstats, of /proc/net/rpc/nfs or /proc/net/rpc/nfsd, \
    or a directory with such files";

/// A sample as text.
fn shown(taken: &Taken) -> String {
    let of_kernel = taken.rates.iter().flat_map(kernel_tables);
    let ours = taken.ours.iter();
    let ours = ours.flat_map(|(address, ours)| crate::samples::tables_of(ours, address));
    let tables = of_kernel.chain(ours).map(|table| text::table(&table) + "\n");
    format!("== {}\n{}", taken.time, tables.collect::<String>())
}

/// Mounts without a call are named in a line.
fn kernel_tables(rates: &Rates) -> Vec<Table> {
    let mounts = rates.mounts.iter().flat_map(|mounts| &mounts.mounts);
    let (busy, idle): (Vec<_>, Vec<_>) = mounts.partition(|mount| mount.total.calls > 0);
    let mut rest = tables::of_kernel(rates, tables::Depth::Mounts);
    if let Some(first) = rest.iter_mut().find(|table| table.title == "mounts") {
        // Their rows are in the tables above.
        first.rows.clear();
        first.title = counted(busy.len() + idle.len(), "mount");
        let idle: Vec<_> = idle.iter().map(|mount| watch::table::plain(&mount.point)).collect();
        first.notes.extend((!idle.is_empty()).then(|| format!("no calls on {}", idle.join(", "))));
    }
    rest.retain(|table| !table.rows.is_empty() || !table.notes.is_empty());
    busy.into_iter().map(tables::mount).chain(rest).collect()
}

fn apart(before: &Sample, now: &Sample, path: &Path) -> Result<f64, Failure> {
    now.seconds_after(before).ok_or_else(|| {
        let (why, advice) = match now.clock.is_after_a_start(&before.clock) {
            true if now.clock.is_of_one_run(&before.clock).is_some() => {
                ("the machine was started after the other was copied", ALONE)
            }
            true => ("the machine was started after the other was copied, or it is older", ALONE),
            false => (
                "nothing in it tells how long after the other it was copied, or it is older",
                "the older first; copy /proc/uptime, too, or mountstats",
            ),
        };
        Failure::environment(format!("{}: {why}", path.display()), advice)
    })
}

/// Of the mounts that there are, these are listed.
const MOUNTS_NAMED: usize = 8;

const ALONE: &str = "--from for the newer alone: what came since the start; or the older first";

fn nothing(args: &Stat) -> Failure {
    let place =
        args.from.last().map_or(place::Place::Here, |path| place::Place::Saved(path.clone()));
    let mounts = place.read().0.mounts.unwrap_or_default();
    let ours = "nfskit stat --metrics ADDRESS:PORT for our own programs";
    if args.mount.is_empty() || mounts.is_empty() {
        let what = "there are no NFS mounts and no server of the kernel's";
        let what = if args.mount.is_empty() { what } else { "the kernel has no NFS mounts there" };
        return Failure::environment(what, format!("{ours}, or --from for saved counters"));
    }
    let mut points: Vec<_> = mounts.iter().map(|mount| shell::quoted(&mount.point)).collect();
    points.sort_unstable();
    let more = points.len().saturating_sub(MOUNTS_NAMED);
    points.truncate(MOUNTS_NAMED);
    let more = if more > 0 { format!(", or one of {more} more") } else { String::new() };
    let advice = format!("--mount {}{more}; {ours}", points.join(", "));
    Failure::environment("none of the NFS mounts is one of --mount", advice)
}

fn record(taken: &Taken) -> String {
    let each = taken.ours.iter();
    let ours = each.map(|(address, ours)| OursAt { address, ours }).collect();
    let record = Record { time: taken.time.clone(), rates: taken.rates.as_ref(), ours };
    let mut line = serde_json::to_string(&record).expect("numbers and texts are JSON");
    line.push('\n');
    line
}
