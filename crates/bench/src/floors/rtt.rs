//! `nfskit bench rtt`: response times of messages, and whole transfers.

use std::fmt::Write;

use harness::compared::letter;
use harness::exit::Failure;
use harness::output;
use harness::records;
use harness::signals::Interrupts;
use harness::verbosity::Verbosity;
use load::floor::rtt::{self, Exchange, Measured, Plan, TRIALS_MAX};
use load::floor::{Outcome, Protocol};
use net::clock::Clock;
use net::floor::near::Way;
use net::floor::protocol;
use net::floor::rpc::Service;
use perf::units::Nanos;

use super::rtt_text::Report;
use super::{block_on, failure, null_service, on_a_thread, resolve};
use crate::floors::args::{Rtt, message_sizes};

/// Most bytes of a transfer: at the rate of the slowest link we emulate, 80 s.
const TRANSFER_BYTES_MAX: u64 = 1 << 30;
/// The least that a far end can be reached with for that: its runs have a limit.
const REPLY_LIMIT_MAX: Nanos = Nanos::from_secs(60);

/// Runs the command.
pub(crate) fn run(args: &Rtt, verbosity: Verbosity) -> Result<(), Failure> {
    let mut plan = plan(args)?;
    output::check([&args.json, &args.csv])?;
    let (peers, plan, outcome) = block_on(async {
        let (clock, mut interrupts) = (Clock::real(), Interrupts::catch()?);
        let found = async {
            let far = match &args.to {
                Some(to) => Some(resolve(&clock, to).await?),
                None => None,
            };
            if let Some(address) = far {
                let (program, version) = (wire::spray::PROGRAM, wire::spray::VERSION);
                let service = Service { address, program, version, is_udp: true };
                plan.services.push(("rpc udp".to_owned(), service));
            }
            for (number, target) in args.target.iter().enumerate() {
                let service = null_service(&clock, target).await?;
                let mut name = format!("nfs {}", target.protocol.name());
                if args.target.len() > 1 {
                    name = format!("{name} {}", letter(number));
                }
                plan.services.push((name, service));
            }
            Ok(far)
        };
        let far = interrupts.or(found).await?;
        let own = plan.clone();
        let work = move |stop: &std::sync::atomic::AtomicBool,
                         progress: load::floor::Progress<'_>| {
            let way = far.map(|address| Way { clock: &clock, address, stop });
            let go_on = || !stop.load(std::sync::atomic::Ordering::Relaxed);
            rtt::run(&clock, way.as_ref(), &own, &go_on, progress)
        };
        let outcome = on_a_thread("response times", verbosity, &mut interrupts, work).await?;
        let far = far.map(|address| address.to_string());
        let urls = args.target.iter().map(ToString::to_string);
        Ok((far.into_iter().chain(urls).collect::<Vec<_>>(), plan, outcome))
    })?;
    let Outcome { mut measured, failed } = outcome;
    let failed = failed.map(failure);
    measured.series.retain(|series| !series.times.is_empty());
    measured.transfers.retain(|one| !one.spans.is_empty() || !one.incomplete.is_empty());
    if measured.series.is_empty() {
        return failed.map_or(Ok(()), Err);
    }
    let services = plan.services.iter().map(|(_, service)| service.address);
    let addresses: Vec<_> = services.collect();
    let report =
        Report { args, plan: &plan, peers: &peers, addresses: &addresses, measured: &measured };
    if let Some(path) = &args.csv {
        output::write(path, &csv(&plan, &measured))?;
    }
    let prints_text = output::prints_text(verbosity, [&args.json, &args.csv]);
    let (text, record) = (|| report.text(), || vec![report.record()]);
    records::deliver(text, record, args.json.as_deref(), prints_text, failed)
}

fn plan(args: &Rtt) -> Result<Plan, Failure> {
    let message_bytes =
        message_sizes(&args.size, true).map_err(|why| Failure::usage(why, "another --size"))?;
    let packet = message_sizes(&[args.packet], true)
        .map_err(|why| Failure::usage(why, "another --packet"))?;
    if let Some(bytes) = args.transfer.iter().find(|bytes| **bytes > TRANSFER_BYTES_MAX) {
        let what = format!("a transfer of {bytes} bytes: they have at most 1G");
        return Err(Failure::usage(what, "a smaller --transfer"));
    }
    if args.reply_limit > REPLY_LIMIT_MAX {
        let what = format!("--reply-limit is above {REPLY_LIMIT_MAX}");
        return Err(Failure::usage(what, "a shorter --reply-limit"));
    }
    let kinds = message_bytes.len() * (3 + args.target.len());
    if kinds as u64 * u64::from(args.trials) > u64::from(TRIALS_MAX) {
        let what =
            format!("{} trials in each of {kinds} rows, and {TRIALS_MAX} are kept", args.trials);
        return Err(Failure::usage(what, "fewer --trials, or fewer sizes"));
    }
    if args.row_time > protocol::RUN_MAX {
        let what = format!("--row-time is above {}", protocol::RUN_MAX);
        return Err(Failure::usage(what, "a shorter --row-time"));
    }
    Ok(Plan {
        services: Vec::new(),
        message_bytes,
        trials: args.trials,
        per_s: args.rate.map(f64::from),
        reply_limit: args.reply_limit,
        row_time_max: args.row_time,
        transfers: if args.no_transfer { Vec::new() } else { args.transfer.clone() },
        transfer_repeats: args.repeats,
        packet_bytes: packet[0],
        transfer_bytes_per_s: args.transfer_rate,
    })
}

/// What a row is called.
pub(super) fn name(plan: &Plan, exchange: &Exchange) -> String {
    match exchange {
        Exchange::Echo(Protocol::Tcp) => "tcp".to_owned(),
        Exchange::Echo(Protocol::Udp) => "udp".to_owned(),
        Exchange::Null(service) => plan.services[*service].0.clone(),
    }
}

/// Every trial, one a line.
fn csv(plan: &Plan, measured: &Measured) -> String {
    let mut csv = "exchange,message_bytes,trial,latency_ns\n".to_owned();
    for series in &measured.series {
        let name = name(plan, &series.exchange);
        for (trial, time) in series.times.iter().enumerate() {
            // Writing to a String does not fail.
            writeln!(csv, "{name},{},{trial},{}", series.message_bytes, time.as_nanos()).ok();
        }
    }
    csv
}
