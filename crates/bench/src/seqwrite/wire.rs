//! `nfskit bench seqwrite --wire`: WRITE calls of the protocol, a number of them outstanding.

use client::mount::{self, Mounted};
use client::transfer::Limit;
use harness::exit::Failure;
use harness::output::Bars;
use harness::records::{self, bytes};
use harness::scratch;
use harness::target::Reached;
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use net::clock::Clock;
use perf::histogram::Histogram;
use perf::record::{Better, Durability, Run, Target};
use perf::stats::Sample;
use perf::units::Nanos;
use serde_json::Value;
use wire::nfs3::StableHow;

use super::files::per_gib;
use crate::seqwrite::args::{self, Stable};
use crate::workload::{Conditions, Outcome};

const FILE_BYTES: u64 = 256 << 20;
const CALL_BYTES: u64 = 1 << 20;

/// What to write where.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    target: client::url::Target,
    size: u64,
    call: u64,
}

pub(super) fn plan(args: &args::Seqwrite) -> Result<Plan, Failure> {
    let size = match args.size[..] {
        [] => FILE_BYTES,
        [size] => size,
        _ => return Err(Failure::usage("--wire writes files of one --size", "one --size")),
    };
    let Some(target) = args.target.clone() else {
        return Err(Failure::usage("--wire makes calls to a server", "--target URL"));
    };
    Ok(Plan { target, size, call: args.call.unwrap_or(CALL_BYTES) })
}

pub(super) async fn measure(
    args: &args::Seqwrite,
    plan: &Plan,
    Conditions { clock, mut interrupts, verbosity }: Conditions,
) -> Result<Outcome<Run>, Failure> {
    let Plan { target, size, call } = plan;
    args.client.calibrate(&clock).await?;
    let options = args.client.over_link(target);
    let mut bars = Bars::new(verbosity);
    let reached = Reached::new(&clock, None, target, args.client.beside_link(target));
    let (mut runs, mut call_bytes) = (Vec::new(), u32::try_from(*call).unwrap_or(u32::MAX));
    let ended = scratch::in_scratch(&reached, &mut interrupts, async |scratch: &Scratch| {
        let Mounted { session, .. } = mount::mount(&clock, target, &options).await?;
        call_bytes = call_bytes.min(session.sizes().write_bytes_max);
        let data = seqwrite::pattern(call_bytes as usize);
        let workload = Workload {
            call_bytes,
            outstanding: args.outstanding as usize,
            file_bytes: *size,
            total_bytes: *size,
            commit_bytes: args.commit_every,
            stable: match args.stable {
                Stable::Unstable => StableHow::Unstable,
                Stable::DataSync => StableHow::DataSync,
                Stable::FileSync => StableHow::FileSync,
            },
            limit: Limit::default(),
        };
        for repeat in 0..args.repeats {
            let share = f64::from(repeat) / f64::from(args.repeats);
            bars.show("sequential write", share);
            let name = format!("run-{repeat}");
            let file = scratch.file(&session, &name).await?;
            runs.push(seqwrite::run(&clock, &session, file, &data, workload).await?);
            scratch.remove_file(&session, &name).await?;
        }
        Ok(())
    })
    .await;
    bars.clear();
    let measured = (!runs.is_empty()).then(|| record(args, plan, &clock, call_bytes, &runs));
    Ok(Outcome::until(measured, ended))
}

fn record(
    args: &args::Seqwrite,
    plan: &Plan,
    clock: &Clock,
    call_bytes: u32,
    runs: &[seqwrite::Run],
) -> Run {
    let mut run = records::begin(load::environment::rfc3339(clock));
    run.target = Target {
        kind: "server".to_owned(),
        url: Some(plan.target.to_string()),
        version: Some(3),
        proto: Some(plan.target.protocol.name().to_owned()),
        durability: Some(Durability::Stable),
        ..Target::default()
    };
    args.client.limit(&mut run, &["throughput_mib_per_s"]);
    run.workload.name = "seqwrite".to_owned();
    let parameters = [
        ("file_bytes", plan.size.into()),
        ("call_bytes", call_bytes.into()),
        ("outstanding", args.outstanding.into()),
        ("commit_bytes", args.commit_every.into()),
        ("repeats", runs.len().into()),
        ("stable", Value::from(format!("{:?}", args.stable).to_lowercase())),
        ("link", args.client.link().to_string().into()),
    ];
    records::parameters(&mut run, parameters);
    results(&mut run, runs);
    run
}

fn results(run: &mut Run, runs: &[seqwrite::Run]) {
    let mut times = Histogram::new();
    runs.iter()
        .flat_map(seqwrite::Run::response_times_us)
        .for_each(|us| times.record(Nanos::from_micros_f64(us)));
    let rates: Vec<f64> = runs.iter().filter_map(seqwrite::Run::mib_per_s).collect();
    if let Ok(sample) = Sample::new(rates) {
        records::spread(run, "throughput_mib_per_s", &sample, "MiB/s");
        run.result("throughput_mib_per_s", Better::Larger);
    }
    let cpu: Nanos = runs.iter().fold(Nanos::ZERO, |sum, run| sum + run.cpu.process);
    let written: u64 = runs.iter().map(|run| run.bytes).sum();
    run.metric_if_known("client_cpu_s_per_gib", per_gib(cpu, written), "s/GiB");
    let resent: u64 = runs.iter().map(|run| run.resent_bytes).sum();
    run.metric("resent_bytes", resent as f64, "B");
    run.histogram("write_response_time", &times);
}

pub(super) fn summary(run: &Run) -> String {
    let value = |name: &str| run.value(name).unwrap_or(f64::NAN);
    let times = run.histograms().get("write_response_time").and_then(|h| h.decode().ok());
    let times = times.unwrap_or_default();
    let parameter = |name: &str| run.workload.parameters.get(name);
    let size = |name: &str| bytes(parameter(name).and_then(Value::as_u64).unwrap_or_default());
    let words = |name: &str| parameter(name).map(|value| value.to_string().replace('"', ""));
    let cpu = run.value("client_cpu_s_per_gib");
    format!(
        "seqwrite    {length} in WRITEs of {call}, {stable}, {outstanding} outstanding, a COMMIT \
         after {commit}
target      {target}
durable     what is committed survives a loss of power, as NFS promises
throughput  {median:.1} MiB/s (median of {n}; {min:.1} to {max:.1}), COMMIT included
WRITE       {times}  ({calls} calls)
client CPU  {cpu}
",
        length = size("file_bytes"),
        call = size("call_bytes"),
        stable = words("stable").unwrap_or_default(),
        outstanding = words("outstanding").unwrap_or_default(),
        commit = size("commit_bytes"),
        target = run.target.url.clone().unwrap_or_default(),
        median = value("throughput_mib_per_s"),
        n = run.metrics().get("throughput_mib_per_s").and_then(|m| m.n).unwrap_or(0),
        min = value("throughput_mib_per_s_min"),
        max = value("throughput_mib_per_s_max"),
        calls = times.count(),
        times = records::quantiles(&times),
        cpu = cpu
            .map_or_else(|| "too little was written".to_owned(), |cpu| format!("{cpu:.3} s/GiB")),
    )
}
