//! `nfskit bench rtt`: response times of messages, and whole transfers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use client::url::{Protocol as UrlProtocol, Target};
use harness::compared::letter;
use harness::csv;
use harness::exit::Failure;
use harness::verbosity::Verbosity;
use load::floor::rtt::{self, Exchange, Measured, Plan, TRIALS_MAX};
use load::floor::{Outcome, Protocol};
use net::clock::Clock;
use net::floor::near::Way;
use net::floor::protocol;
use net::floor::rpc::Service;
use perf::record::Run as Record;
use perf::units::Nanos;

use super::rtt_text::Report;
use super::{failure, null_service, on_a_thread, resolve};
use crate::floors::args::{Rtt, message_sizes};
use crate::workload::{self, Conditions, Outputs, Workload};

/// Most bytes of a transfer: at the rate of the slowest link we emulate, 80 s.
const TRANSFER_BYTES_MAX: u64 = 1 << 30;
/// The least that a far end can be reached with for that: its runs have a limit.
const REPLY_LIMIT_MAX: Nanos = Nanos::from_secs(60);

/// What answered, and when.
#[derive(Debug)]
pub(crate) struct Timed {
    /// With what was found of the services.
    pub(super) plan: Plan,
    pub(super) peers: Vec<String>,
    pub(super) measured: Measured,
}

impl Workload for Rtt {
    type Plan = Plan;
    type Measured = Timed;

    fn plan(&self) -> Result<Plan, Failure> {
        plan(self)
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs { csv: &self.csv, ..Outputs::json(&self.json) }
    }

    async fn run(
        &self,
        plan: &Plan,
        Conditions { clock, mut interrupts, verbosity }: Conditions,
    ) -> Result<workload::Outcome<Timed>, Failure> {
        let (far, services) = interrupts.or(find(self, &clock)).await?;
        let plan = Plan { services, ..plan.clone() };
        let own = plan.clone();
        let work = move |stop: &AtomicBool, progress: load::floor::Progress<'_>| {
            let way = far.map(|address| Way { clock: &clock, address, stop });
            let go_on = || !stop.load(Ordering::Relaxed);
            rtt::run(&clock, way.as_ref(), &own, &go_on, progress)
        };
        let Outcome { mut measured, failed } =
            on_a_thread("response times", verbosity, &mut interrupts, work).await?;
        measured.series.retain(|series| !series.times.is_empty());
        measured.transfers.retain(|one| !one.spans.is_empty() || !one.incomplete.is_empty());
        let far = far.map(|address| address.to_string());
        let peers = far.into_iter().chain(self.target.iter().map(ToString::to_string)).collect();
        let is_empty = measured.series.is_empty();
        let measured = (!is_empty).then_some(Timed { plan, peers, measured });
        Ok(workload::Outcome { measured, failed: failed.map(failure) })
    }

    fn table(&self, _: &Plan, timed: &Timed, _: Verbosity) -> String {
        Report::of(self, timed).text()
    }

    fn record(&self, _: &Plan, timed: &Timed) -> Vec<Record> {
        vec![Report::of(self, timed).record()]
    }

    fn csv(&self, _: &Plan, timed: &Timed) -> String {
        csv(&timed.plan, &timed.measured)
    }
}

/// The far end, and every service with its name.
async fn find(
    args: &Rtt,
    clock: &Clock,
) -> Result<(Option<SocketAddr>, Vec<(String, Service)>), Failure> {
    let mut services = Vec::new();
    let mut far = None;
    if let Some(to) = &args.to {
        let address = resolve(clock, to).await?;
        let (program, version) = (wire::spray::PROGRAM, wire::spray::VERSION);
        let service = Service { address, program, version, is_udp: true };
        services.push(("rpc udp".to_owned(), service));
        far = Some(address);
    }
    for (number, target) in args.target.iter().enumerate() {
        let service = null_service(clock, target).await?;
        let mut name = format!("nfs {}", target.protocol.name());
        if args.target.len() > 1 {
            name = format!("{name} {}", letter(number));
        }
        services.push((name, service));
    }
    Ok((far, services))
}

fn plan(args: &Rtt) -> Result<Plan, Failure> {
    // A far end is called over both.
    let is_udp = |target: &Target| target.protocol == UrlProtocol::Udp;
    let is_udp = args.to.is_some() || args.target.iter().any(is_udp);
    let sizes = |sizes: &[u64], advice| {
        message_sizes(sizes, is_udp).map_err(|why| Failure::usage(why, advice))
    };
    let message_bytes = sizes(&args.size, "another --size")?;
    let packet = sizes(&[args.packet], "another --packet")?;
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
        let what = format!(
            "{} trials in each of {kinds} rows, and {TRIALS_MAX} are recorded",
            args.trials
        );
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
    csv::text("exchange,message_bytes,trial,latency_ns", |rows| {
        for series in &measured.series {
            let name = name(plan, &series.exchange);
            for (trial, time) in series.times.iter().enumerate() {
                rows.add((&name, series.message_bytes, trial, time.as_nanos()));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn messages_are_as_long_as_what_they_go_over_takes() {
        let planned = |peer: &[&str]| {
            let rtt = [&["rtt", "--size", "128K"], peer].concat();
            plan(&Rtt::parse_from(rtt)).map(|plan| plan.message_bytes)
        };
        let (tcp, udp) = (["--target", "nfs://h/"], ["--target", "nfs://h/?proto=udp"]);
        assert_eq!(planned(&tcp).unwrap(), [128 << 10]);
        for datagrams in [&udp[..], &["--to", "h"], &[tcp, udp].concat()] {
            let refused = planned(datagrams).unwrap_err();
            assert!(refused.what().contains("over UDP they have"), "{}", refused.what());
        }
    }
}
