//! `nfskit bench null`: calls that do nothing, at a rate.

use std::path::PathBuf;

use bytes::Bytes;
use clap::Parser;
use client::error::Error as ClientError;
use client::mount::{self, Ports};
use client::url::Target;
use harness::exit::Failure;
use harness::values::{self, count, positive, time};
use harness::verbosity::Verbosity;
use harness::{records, target};
use load::paced::{self, Pace, Paced};
use net::call::Target as Procedure;
use net::shape::Shape;
use perf::record::Run as Record;
use perf::units::Nanos;
use wire::rpc::OpaqueAuth;

use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// Calls NULL at a rate: what network, RPC and scheduling are of the time of every call.
///
/// Times count from when a call was due, however long those before it take. Nothing is mounted.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench null --target nfs://server/ --rate 5000
  nfskit bench null --target nfs://server/?proto=udp --time 60s --json null.json")]
pub struct Null {
    /// The NFS server; its export is not used.
    #[arg(long, value_name = "URL", value_parser = values::target)]
    target: Target,
    /// Calls in each second.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = positive(1e-3..=1e6))]
    rate: f64,
    /// For how long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    time: Nanos,
    /// Calls outstanding at most; the next starts late.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = count(1..=4096))]
    outstanding: u32,
    /// How long a call may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    reply_limit: Nanos,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    json: Option<PathBuf>,
}

impl Workload for Null {
    type Plan = Pace;
    type Measured = Paced<ClientError>;

    fn plan(&self) -> Result<Pace, Failure> {
        let outstanding_max = self.outstanding as usize;
        // The first one is due after that distance, too.
        let distance = Nanos::from_secs_f64(self.rate.recip());
        if distance >= self.time {
            let what = format!(
                "no call is due: at {} calls/s the first is after {distance}, and --time is {}",
                self.rate, self.time
            );
            return Err(Failure::usage(what, "a longer --time, or a higher --rate"));
        }
        Ok(Pace { per_s: self.rate, time: self.time, outstanding_max })
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.json)
    }

    async fn run(
        &self,
        pace: &Pace,
        Conditions { clock, mut interrupts, .. }: Conditions,
    ) -> Result<Outcome<Self::Measured>, Failure> {
        let options = target::options(&self.target, self.reply_limit, Shape::default());
        let (Target { protocol, version, .. }, clock) = (self.target.clone(), &clock);
        let null =
            Procedure { program: wire::nfs3::PROGRAM, version: version.number(), procedure: 0 };
        let measuring = async {
            let server = mount::find_nfs(clock, &self.target, &options).await?;
            let ports = Ports { nfs: server, mount: server, protocol, version };
            let rpc = mount::connect(clock, &ports, &options).await?;
            let call = async || {
                let called = rpc.call(null, OpaqueAuth::NONE, |_| {}, Bytes::new()).await;
                let failed = |cause| ClientError::Call { procedure: "NULL", server, cause };
                called.map(|answer| (answer.sent, answer.received)).map_err(failed)
            };
            Ok(paced::run(clock, *pace, call).await?)
        };
        let paced = interrupts.or(measuring).await?;
        let failed = paced.broken.clone().map(Failure::from);
        Ok(match paced.since_due.is_empty() {
            false => Outcome { measured: Some(paced), failed },
            true => {
                Outcome { measured: None, failed: failed.or_else(|| Some(not_started(&paced))) }
            }
        })
    }

    fn table(&self, _: &Pace, paced: &Self::Measured, _: Verbosity) -> String {
        let calls = paced.since_due.count();
        let pace = match paced.keeps_pace() {
            true => "reached".to_owned(),
            false => format!("NOT reached: {} more were due and not started", paced.not_started),
        };
        let [due, sent] = [&paced.since_due, &paced.since_sent].map(records::quantiles);
        let (server, rate) = (&self.target, self.rate);
        format!(
            "null        {server}\nrate        {rate} calls/s, {pace}; {calls} calls answered\n\
             since due   {due}\nsince sent  {sent}\n"
        )
    }

    fn record(&self, _: &Pace, paced: &Self::Measured) -> Vec<Record> {
        let mut record = records::of("null");
        record.target = records::server(&self.target);
        let given = [
            ("rate_per_s", serde_json::json!(self.rate)),
            ("time_s", self.time.as_secs_f64().into()),
            ("outstanding_max", self.outstanding.into()),
        ];
        records::parameters(&mut record, given);
        record.metric("calls", paced.since_due.count() as f64, "calls");
        record.metric("calls_not_started", paced.not_started as f64, "calls");
        records::times(&mut record, "since_due", &paced.since_due);
        records::times(&mut record, "since_sent", &paced.since_sent);
        if !paced.keeps_pace() {
            let advice = "a lower --rate, or more --outstanding";
            record.warn("rate-not-kept", "calls that were due were not started in time", advice);
        }
        vec![record]
    }
}

/// Nothing was measured although calls were due.
fn not_started(paced: &Paced<ClientError>) -> Failure {
    let what = format!("none of {} calls that were due was started in time", paced.not_started);
    Failure::environment(what, "a longer --time, or again when the machine is quiet")
}

#[cfg(test)]
mod tests {
    use perf::histogram::Histogram;

    use super::*;

    fn table_and_record(answered: u64, not_started: u64) -> (String, Record) {
        let null = Null::parse_from(["null", "--target", "nfs://h/", "--rate", "50"]);
        let mut times = Histogram::new();
        times.record_n(Nanos::from_millis(2), answered);
        let (since_due, since_sent) = (times.clone(), times);
        let paced = Paced { since_due, since_sent, not_started, broken: None };
        let pace = null.plan().unwrap();
        (null.table(&pace, &paced, Verbosity::Normal), null.record(&pace, &paced).remove(0))
    }

    #[test]
    fn a_time_in_which_no_call_is_due_is_refused() {
        let plan = |rate, time| {
            let arguments = ["null", "--target", "nfs://h/", "--rate", rate, "--time", time];
            Null::parse_from(arguments).plan()
        };
        let refused = plan("1", "100ms").unwrap_err();
        assert!(refused.what().contains("no call is due: at 1 calls/s"), "{}", refused.what());
        assert!(plan("10", "100ms").is_err());
        assert!(plan("11", "100ms").is_ok());
    }

    #[test]
    fn a_rate_that_is_reached_and_one_that_is_not_are_distinguished() {
        let (table, record) = table_and_record(500, 5);
        let line = "50 calls/s, reached; 500 calls answered\nsince due   p50 2";
        assert!(table.contains(line), "{table}");
        assert_eq!((record.warnings.len(), record.value("calls")), (0, Some(500.0)));
        let (table, record) = table_and_record(500, 6);
        assert!(table.contains("NOT reached: 6 more"), "{table}");
        assert_eq!(record.warnings[0].code, "rate-not-kept");
    }
}
