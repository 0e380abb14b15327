//! `nfskit bench null`: calls that do nothing, at a rate.

use std::path::PathBuf;

use clap::Parser;
use client::error::Error as ClientError;
use client::mount::null::Null as Service;
use client::url::Target;
use harness::exit::Failure;
use harness::values::{self, count, positive, time};
use harness::verbosity::Verbosity;
use harness::{records, target};
use load::paced::{self, Half, Pace, Paced, Unanswered};
use net::shape::Shape;
use perf::record::Run as Record;
use perf::units::Nanos;

use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// Calls NULL at a rate: the part of every call's time that is network, RPC and scheduling.
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

/// What ends it before its time.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// A call had no answer.
    Broken(ClientError),
    Interrupted,
}

impl Workload for Null {
    type Plan = Pace;
    type Measured = Paced<Ended>;

    fn plan(&self) -> Result<Pace, Failure> {
        let &Self { rate, time, outstanding, .. } = self;
        // The first one is due after that distance, too.
        if Nanos::from_secs_f64(rate.recip()) >= time {
            let what = format!("no call is due in {time}: at {rate} calls/s the first is later");
            return Err(Failure::usage(what, "a longer --time, or a higher --rate"));
        }
        Ok(Pace { per_s: rate, time, outstanding_max: outstanding as usize })
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
        let connecting = async { Ok(Service::connect(&clock, &self.target, &options).await?) };
        let service = interrupts.or(connecting).await?;
        let call = async || service.call().await.map(|answer| (answer.sent, answer.received));
        let call = || async { call().await.map_err(Ended::Broken) };
        let stopped = async {
            interrupts.next().await;
            Ended::Interrupted
        };
        let paced = paced::run(&clock, *pace, call, stopped).await?;
        let failed = paced.broken.clone().map(|ended| match ended {
            Ended::Broken(error) => Failure::from(error),
            Ended::Interrupted => Failure::interrupted(),
        });
        Ok(Outcome { measured: (!paced.since_due.is_empty()).then_some(paced), failed })
    }

    fn table(&self, pace: &Pace, paced: &Self::Measured, _: Verbosity) -> String {
        let [due, sent] = [&paced.since_due, &paced.since_sent].map(records::quantiles);
        let (server, rate, of) = (&self.target, rate(pace, paced), unanswered(paced));
        format!(
            "null        {server}\nrate        {rate}\nsince due   {due}\nsince sent  {sent}\n{of}"
        )
    }

    fn record(&self, pace: &Pace, paced: &Self::Measured) -> Vec<Record> {
        let mut record = records::of("null");
        record.target = records::server(&self.target);
        let given = [
            ("rate_per_s", serde_json::json!(self.rate)),
            ("time_s", self.time.as_secs_f64().into()),
            ("outstanding_max", self.outstanding.into()),
        ];
        records::parameters(&mut record, given);
        record.metric("calls", paced.since_due.count() as f64, "calls");
        record.metric("calls_in_time", paced.within().answered as f64, "calls");
        record.metric("calls_not_started", paced.not_started as f64, "calls");
        let Unanswered { count, longest } = paced.unanswered;
        if count > 0 {
            record.metric("calls_unanswered", count as f64, "calls");
            record.metric("unanswered_us_max", longest.as_micros_f64(), "us");
        }
        records::times(&mut record, "since_due", &paced.since_due);
        records::times(&mut record, "since_sent", &paced.since_sent);
        if paced.broken.is_none() && !paced.keeps_pace() {
            record.warn("rate-not-kept", &rate(pace, paced), "a lower --rate");
        }
        vec![record]
    }
}

/// Which calls the times are of, where the run ended with some outstanding.
fn unanswered(paced: &Paced<Ended>) -> String {
    let (answered, Unanswered { count, longest }) = (paced.since_due.count(), paced.unanswered);
    match count {
        0 => String::new(),
        _ => format!(
            "unanswered  {count}, due up to {longest} before the end: the times are those of the \
             {answered} that were answered\n"
        ),
    }
}

/// Whether the rate was reached, and what shows it. A part of the time shows it for none.
fn rate(Pace { per_s, .. }: &Pace, paced: &Paced<Ended>) -> String {
    let verdict = match paced.broken {
        Some(_) => "until it ended",
        None if paced.keeps_pace() => "reached",
        None => "NOT reached",
    };
    let (Half { due, answered }, not_started) = (paced.within(), paced.not_started);
    let calls = format!("{due} calls were due in {}, {answered} answered", paced.lasted);
    format!("{per_s} calls/s, {verdict}: {calls}, {not_started} not started")
}

#[cfg(test)]
mod tests {
    use perf::histogram::Histogram;

    use super::*;

    #[test]
    fn a_time_in_which_no_call_is_due_is_refused() {
        let plan = |rate, time| {
            let arguments = ["null", "--target", "nfs://h/", "--rate", rate, "--time", time];
            Null::parse_from(arguments).plan()
        };
        let refused = plan("1", "100ms").unwrap_err();
        assert!(refused.what().contains("due in 100 ms: at 1 calls/s"), "{}", refused.what());
        assert!(plan("10", "100ms").is_err() && plan("11", "100ms").is_ok());
    }

    #[test]
    fn a_rate_that_is_reached_and_one_that_is_not_are_distinguished() {
        let null = Null::parse_from(["null", "--target", "nfs://h/", "--rate", "50"]);
        let pace = null.plan().unwrap();
        let reached = "50 calls/s, reached: 500 calls were due in 10.0 s, 498 answered";
        let not = "50 calls/s, NOT reached: 500 calls were due in 10.0 s, 497 answered";
        for (answered, line, is_warned) in [(248, reached, false), (247, not, true)] {
            let since_due = Histogram::from_iter([Nanos::from_millis(2)]);
            let halves = [250, answered].map(|answered| Half { due: 250, answered });
            let since_sent = since_due.clone();
            let lasted = pace.time;
            let unanswered = Unanswered::default();
            let (not_started, broken) = (3, None);
            let paced =
                Paced { since_due, since_sent, not_started, halves, broken, lasted, unanswered };
            let table = null.table(&pace, &paced, Verbosity::Normal);
            assert!(table.contains(line) && table.contains("3 not started\nsince due"), "{table}");
            assert_eq!(!null.record(&pace, &paced)[0].warnings.is_empty(), is_warned);
            let (broken, lasted) = (Some(Ended::Interrupted), Nanos::from_secs(7));
            assert!(!table.contains("unanswered"), "{table}");
            let unanswered = Unanswered { count: 100, longest: Nanos::from_secs(3) };
            let ended = Paced { broken, lasted, unanswered, ..paced };
            let table = null.table(&pace, &ended, Verbosity::Normal);
            let line = "50 calls/s, until it ended: 500 calls were due in 7.00 s";
            assert!(table.contains(line), "{table}");
            let line = "unanswered  100, due up to 3.00 s before the end: the times are those of \
                        the 1 that were answered";
            assert!(table.contains(line), "{table}");
            let record = &null.record(&pace, &ended)[0];
            assert!(record.warnings.is_empty());
            assert_eq!(record.value("unanswered_us_max"), Some(3e6));
        }
    }
}
