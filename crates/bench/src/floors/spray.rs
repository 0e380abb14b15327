//! `nfskit bench spray`: calls at a rate, and how many are lost.

use std::fmt::Write;

use harness::exit::Failure;
use harness::records::{self, cell, sample};
use harness::verbosity::Verbosity;
use load::error::Error as LoadError;
use load::floor::Outcome;
use load::floor::spray;
use load::latencies::histogram;
use net::clock::Clock;
use net::floor::DATAGRAM_BYTES_MAX;
use net::floor::error::FloorError;
use net::floor::protocol::RUN_MAX;
use net::floor::rpc::Service;
use net::floor::spray::{self as wire_spray, Spray as What, Sprayed as Run};
use perf::histogram::Histogram;
use perf::record::{Better, Run as Record, Target};
use perf::stats::Sample;
use perf::units::Nanos;
use wire::spray::{ARRAY_LEN_MAX, OVERHEAD_BYTES, PROGRAM, VERSION};

use super::{LOOPBACK, failure, null_service, on_a_thread, resolve, warn_of_loopback};
use crate::floors::args::Spray;
use crate::workload::{self, Conditions, Outputs, Workload};

/// Of [`OVERHEAD_BYTES`], what is not of the call: the headers of Ethernet, IP and UDP.
const BELOW_BYTES: u64 = 42;
/// What a classic spray sends in all, by default.
const ALL_BYTES: u64 = 100_000;

/// Response times that are recorded: 160 MB.
const TIMES_MAX: u64 = 20_000_000;

/// What was sprayed where, and what came.
#[derive(Debug)]
pub(crate) struct Sprayed {
    peer: String,
    service: Service,
    runs: Vec<Run>,
}

impl Workload for Spray {
    type Plan = What;
    type Measured = Sprayed;

    fn plan(&self) -> Result<What, Failure> {
        what(self)
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.json)
    }

    async fn run(
        &self,
        &what: &What,
        Conditions { clock, mut interrupts, verbosity }: Conditions,
    ) -> Result<workload::Outcome<Sprayed>, Failure> {
        let is_null = self.target.is_some();
        let (peer, service) = interrupts.or(find(&clock, self)).await?;
        let (repeats, rpcbind) = (self.repeats, self.rpcbind);
        let work = move |stop: &_, progress: load::floor::Progress<'_>| {
            let mut service = service;
            if rpcbind {
                match wire_spray::find(&clock, service.address.ip(), what.reply_limit) {
                    Ok(address) => service.address = address,
                    Err(error) => {
                        return Outcome { measured: Vec::new(), failed: Some(error.into()) };
                    }
                }
            }
            spray::run(&clock, service, is_null, &what, repeats, stop, progress)
        };
        let Outcome { measured: runs, failed } =
            on_a_thread("spray", verbosity, &mut interrupts, work).await?;
        let failed = failed.map(|error| {
            let is_burst = matches!(error, LoadError::Floor(FloorError::NoAnswer { .. }))
                && self.rate.is_none()
                && self.delay.is_none();
            let failure = failure(error);
            if is_burst { failure.or_try("with a --rate fewer are lost") } else { failure }
        });
        let measured = (!runs.is_empty()).then_some(Sprayed { peer, service, runs });
        Ok(workload::Outcome { measured, failed })
    }

    fn table(&self, &what: &What, sprayed: &Sprayed, _: Verbosity) -> String {
        Report::new(self, what, sprayed).text()
    }

    fn record(&self, &what: &What, sprayed: &Sprayed) -> Vec<Record> {
        vec![Report::new(self, what, sprayed).record()]
    }
}

/// The smallest packet: one of NULL is without the length of an argument.
fn least(args: &Spray) -> u64 {
    let argument = if args.target.is_some() { 0 } else { 4 };
    OVERHEAD_BYTES as u64 - 4 + argument
}

fn length(args: &Spray) -> u64 {
    args.length.unwrap_or_else(|| least(args))
}

fn what(args: &Spray) -> Result<What, Failure> {
    let (least, length) = (least(args), length(args));
    let most = match args.target {
        Some(_) => DATAGRAM_BYTES_MAX as u64 + BELOW_BYTES,
        None => (OVERHEAD_BYTES + ARRAY_LEN_MAX) as u64,
    };
    if !(least..=most).contains(&length) {
        let what = format!("--length is {length}: it has to be {least} to {most}");
        return Err(Failure::usage(what, "another --length"));
    }
    let calls = u32::try_from((ALL_BYTES / length).max(1)).unwrap_or(1);
    let calls = args.count.unwrap_or(calls);
    if args.target.is_some() && u64::from(calls) * u64::from(args.repeats) > TIMES_MAX {
        let what =
            format!("{calls} calls, {} times: the times of {TIMES_MAX} are recorded", args.repeats);
        return Err(Failure::usage(what, "fewer --repeats, or a smaller --count"));
    }
    let interval = args.delay.unwrap_or(Nanos::ZERO).as_secs_f64();
    let interval = interval.max(args.rate.map_or(0.0, |rate| f64::from(rate).recip()));
    if f64::from(calls) * interval > RUN_MAX.as_secs_f64() {
        let what = format!("{calls} calls take longer than {RUN_MAX} at that --rate or --delay");
        return Err(Failure::usage(what, "a smaller --count"));
    }
    Ok(What {
        call_bytes: usize::try_from(length - BELOW_BYTES).unwrap_or(0),
        calls,
        per_s: args.rate.map(f64::from),
        delay: args.delay.unwrap_or(Nanos::ZERO),
        reply_limit: args.reply_limit,
    })
}

/// Who is sprayed.
async fn find(clock: &Clock, args: &Spray) -> Result<(String, Service), Failure> {
    if let Some(target) = &args.target {
        return Ok((target.to_string(), null_service(clock, target).await?));
    }
    let Some(to) = &args.to else {
        return Err(Failure::usage("nobody to spray", "--to HOST or --target URL"));
    };
    let address = resolve(clock, to).await?;
    let service = Service { address, program: PROGRAM, version: VERSION, is_udp: true };
    Ok((to.host.clone(), service))
}

struct Report<'a> {
    args: &'a Spray,
    what: What,
    service: Service,
    peer: &'a str,
    runs: &'a [Run],
}

fn lost(run: &Run) -> u64 {
    run.sent.saturating_sub(run.came)
}

fn loss(run: &Run) -> f64 {
    lost(run) as f64 / run.sent.max(1) as f64
}

fn sent_per_s(run: &Run) -> f64 {
    run.sent as f64 / run.span.as_secs_f64()
}

/// A queue takes calls faster than they are answered: the time is that until the last reply.
fn received_per_s(run: &Run) -> f64 {
    run.came as f64 / run.heard.as_secs_f64()
}

impl<'a> Report<'a> {
    fn new(args: &'a Spray, what: What, sprayed: &'a Sprayed) -> Self {
        let Sprayed { peer, service, runs } = sprayed;
        Self { args, what, service: *service, peer, runs }
    }

    fn of(&self, value: impl Fn(&Run) -> f64) -> Option<Sample> {
        sample(self.runs.iter().map(value).filter(|value| value.is_finite()))
    }

    /// The run with the median loss.
    fn typical(&self) -> Option<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        runs.sort_by_key(|run| lost(run));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    fn response_times(&self) -> Histogram {
        let mut all = Histogram::new();
        self.runs.iter().for_each(|run| all.merge(&histogram(&run.response_times)));
        all
    }

    /// Of a processor, of the thread that sends, while it did.
    fn own_share(&self) -> f64 {
        let cpu: f64 = self.runs.iter().map(|run| run.cpu.as_secs_f64()).sum();
        cpu / self.runs.iter().map(|run| run.span.as_secs_f64()).sum::<f64>()
    }

    fn sum(&self, value: impl Fn(&Run) -> u64) -> u64 {
        self.runs.iter().map(value).sum()
    }

    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        self.write(&mut out).ok();
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        if let Some(run) = self.typical() {
            self.write_classic(out, run)?;
        }
        let loss = self.of(|run| loss(run) * 100.0);
        let sent = self.of(sent_per_s);
        writeln!(out, "runs        {}", self.runs.len())?;
        writeln!(out, "lost        {} %", cell(loss.as_ref(), 2))?;
        writeln!(out, "sent        {} calls/s", cell(sent.as_ref(), 0))?;
        self.write_times(out)?;
        let refused = self.sum(|run| run.refused);
        if refused > 0 {
            writeln!(out, "refused     {refused} NULL calls with bytes behind them; they count")?;
        }
        let counted = |value: fn(&Run) -> Option<u64>| {
            let sum = self.runs.iter().try_fold(0, |sum, run| Some(sum + value(run)?));
            sum.map_or_else(|| "?".to_owned(), |sum: u64| sum.to_string())
        };
        writeln!(
            out,
            "this host   {} datagrams had no room at a socket, {} were not sent for want of room",
            counted(|run| run.host.receive_buffer_errors),
            counted(|run| run.host.send_buffer_errors),
        )?;
        if self.service.address.ip().is_loopback() {
            writeln!(out, "{LOOPBACK}")?;
        }
        writeln!(
            out,
            "generator   {:.0} % of one processor; {} calls left over 100 us late; nothing is \
             stored or cached",
            self.own_share() * 100.0,
            self.sum(|run| run.late)
        )
    }

    fn write_times(&self, out: &mut String) -> std::fmt::Result {
        let times = self.response_times();
        if !times.is_empty() {
            writeln!(
                out,
                "answered    {}, since each was {}",
                records::quantiles(&times),
                if self.args.rate.is_some() { "due" } else { "sent" }
            )?;
        }
        Ok(())
    }

    /// The lines that spray(8) prints, which others may read.
    fn write_classic(&self, out: &mut String, run: &Run) -> std::fmt::Result {
        let length = length(self.args);
        let kib = length as f64 / 1024.0;
        let (sent, peer, lost) = (run.sent, &self.peer, lost(run));
        let percent = loss(run) * 100.0;
        let line = |rate: f64| format!("{rate:.0} packets/sec, {:.1}K bytes/sec", rate * kib);
        writeln!(out, "sending {sent} packets of lnth {length} to {peer} ...")?;
        writeln!(out, "\tin {:.1} seconds elapsed time,", run.span.as_secs_f64())?;
        writeln!(out, "\t{lost} packets ({percent:.2}%) dropped by {peer}")?;
        writeln!(out, "Sent:\t{}", line(sent_per_s(run)))?;
        writeln!(out, "Rcvd:\t{}", line(received_per_s(run)))
    }

    fn record(&self) -> Record {
        let mut record = records::of("spray");
        let is_null = self.args.target.is_some();
        record.target = Target {
            kind: if is_null { "server" } else { "far-end" }.to_owned(),
            url: is_null.then(|| self.peer.to_owned()),
            proto: Some(if self.service.is_udp { "udp" } else { "tcp" }.to_owned()),
            ..Target::default()
        };
        record.target.other.insert("address".to_owned(), self.service.address.to_string().into());
        record.target.other.insert("cached".to_owned(), "nothing is stored or cached".into());
        let parameters = [
            ("packet_bytes", Some(length(self.args))),
            ("calls", Some(u64::from(self.what.calls))),
            ("delay_ns", self.args.delay.map(Nanos::as_nanos)),
            ("per_s", self.args.rate.map(u64::from)),
            ("reply_limit_ns", Some(self.args.reply_limit.as_nanos())),
            ("repeats", Some(self.runs.len() as u64)),
            ("program", Some(u64::from(self.service.program))),
        ];
        records::parameters(&mut record, parameters);
        let samples = [
            ("loss", self.of(loss), ""),
            ("sent_per_s", self.of(sent_per_s), "1/s"),
            ("received_per_s", self.of(received_per_s), "1/s"),
        ];
        records::spreads(&mut record, samples);
        record.result("loss", Better::Smaller);
        if self.args.rate.is_none() && self.args.delay.is_none() {
            record.result("received_per_s", Better::Larger);
        }
        record.metric("sent", self.sum(|run| run.sent) as f64, "calls");
        record.metric("received", self.sum(|run| run.came) as f64, "calls");
        record.metric("refused", self.sum(|run| run.refused) as f64, "calls");
        record.metric("late_calls", self.sum(|run| run.late) as f64, "calls");
        records::generator(&mut record, self.own_share());
        warn_of_loopback(&mut record, self.service.address.ip().is_loopback());
        let times = self.response_times();
        match self.sum(lost) {
            0 => records::times(&mut record, "response_time", &times),
            // Those of the calls that were lost are not among them: the rest are no result.
            _ => drop(record.histogram("response_time", &times)),
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn what_was_received_in_a_second_is_of_the_time_until_the_last_reply() {
        let args = Spray::parse_from(["spray", "--target", "nfs://h/"]);
        let (span, heard) = (Nanos::from_millis(300), Nanos::from_millis(1_500));
        let run = Run { sent: 300, came: 300, span, heard, ..Run::default() };
        let address = ([127, 0, 0, 1], 2049).into();
        let service = Service { address, program: 100_003, version: 3, is_udp: false };
        let sprayed = Sprayed { peer: "h".to_owned(), service, runs: vec![run] };
        let what = what(&args).unwrap();
        let text = args.table(&what, &sprayed, Verbosity::Normal);
        for line in ["\nSent:\t1000 packets/sec", "\nRcvd:\t200 packets/sec"] {
            assert!(text.contains(line), "no {line:?} in {text}");
        }
    }

    #[test]
    fn what_a_server_loses_is_a_result_and_makes_its_times_none() {
        let args = Spray::parse_from(["spray", "--target", "nfs://h/", "--rate", "500"]);
        let record = |came| {
            let response_times = (0..came).map(|_| Nanos::from_millis(1)).collect();
            let run = Run { sent: 300, came, response_times, ..Run::default() };
            let address = ([127, 0, 0, 1], 2049).into();
            let service = Service { address, program: 100_003, version: 3, is_udp: true };
            let sprayed = Sprayed { peer: "h".to_owned(), service, runs: vec![run] };
            args.record(&what(&args).unwrap(), &sprayed).remove(0)
        };
        let (whole, lossy) = (record(300), record(126));
        let better = |record: &Record| record.metrics()["loss"].better;
        assert_eq!([&whole, &lossy].map(better), [Some(Better::Smaller); 2]);
        assert!(whole.value("response_time_us_mean").is_some());
        assert_eq!(lossy.value("response_time_us_mean"), None);
        assert_eq!(lossy.histograms().len(), 1);
    }
}
