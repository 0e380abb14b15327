//! `nfskit bench stream`: throughput between this process and a far end.

use std::fmt::Write;
use std::net::SocketAddr;

use harness::exit::Failure;
use harness::records::{self, bytes, cell, sample};
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use load::floor::stream::{self, Measured, Plan, Run};
use load::floor::{Outcome, Protocol, mib_per_s};
use net::floor::near::Way;
use net::floor::protocol::RUN_MAX;
use perf::record::{Better, Run as Record, Target};
use perf::stats::Sample;

use super::{LOOPBACK, failure, far, on_a_thread, resolve, warn_of_loopback};
use crate::floors::args::{Proto, Stream, message_sizes};
use crate::workload::{self, Conditions, Outputs, Workload};

const TCP_SIZES: [u64; 3] = [8 << 10, 64 << 10, 1 << 20];
/// A packet of Ethernet, and what NFS over UDP has requested.
const UDP_SIZES: [u64; 3] = [1_472, 8 << 10, 32 << 10];

/// What one of the two ends does.
#[derive(Debug)]
pub(crate) enum End {
    Far,
    /// One plan for each protocol.
    Near(Vec<Plan>),
}

/// What was sent where, and how fast.
#[derive(Debug)]
pub(crate) struct Streamed {
    address: SocketAddr,
    measured: Vec<Measured>,
}

impl Workload for Stream {
    type Plan = End;
    type Measured = Streamed;

    fn plan(&self) -> Result<End, Failure> {
        match self.to {
            Some(_) => plans(self).map(End::Near),
            None => Ok(End::Far),
        }
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.json)
    }

    /// A far end's connections have their results at the other one.
    fn is_reported_elsewhere(&self) -> bool {
        self.to.is_none()
    }

    async fn run(
        &self,
        end: &End,
        conditions: Conditions,
    ) -> Result<workload::Outcome<Streamed>, Failure> {
        let (Some(to), End::Near(plans)) = (&self.to, end) else {
            far::run(self.listen, conditions).await?;
            return Ok(workload::Outcome { measured: None, failed: None });
        };
        let Conditions { clock, mut interrupts, verbosity } = conditions;
        let address = interrupts.or(resolve(&clock, to)).await?;
        let plans = plans.clone();
        let work = move |stop: &_, progress: load::floor::Progress<'_>| {
            let way = Way { clock: &clock, address, stop };
            let parts = plans.len() as f64;
            let mut all = Outcome { measured: Vec::new(), failed: None };
            for (part, plan) in plans.iter().enumerate() {
                if all.failed.is_some() {
                    break;
                }
                let mut of_all = |share| progress((part as f64 + share) / parts);
                let outcome = stream::run(&way, plan, &mut of_all);
                all.measured.extend(outcome.measured);
                all.failed = outcome.failed;
            }
            all
        };
        let Outcome { mut measured, failed } =
            on_a_thread("stream", verbosity, &mut interrupts, work).await?;
        measured.retain(|one| !one.runs.is_empty());
        let measured = (!measured.is_empty()).then_some(Streamed { address, measured });
        Ok(workload::Outcome { measured, failed: failed.map(failure) })
    }

    fn table(&self, _: &End, streamed: &Streamed, _: Verbosity) -> String {
        Report::of(self, streamed).text()
    }

    fn record(&self, _: &End, streamed: &Streamed) -> Vec<Record> {
        Report::of(self, streamed).records()
    }
}

/// One plan for each protocol.
fn plans(args: &Stream) -> Result<Vec<Plan>, Failure> {
    if args.time > RUN_MAX {
        return Err(Failure::usage(format!("--time is above {RUN_MAX}"), "a shorter --time"));
    }
    let mut protos = args.proto.clone();
    protos.dedup();
    let plan = |proto: &Proto| {
        let is_udp = *proto == Proto::Udp;
        let (protocol, sizes) = match is_udp {
            true => (Protocol::Udp, &UDP_SIZES),
            false => (Protocol::Tcp, &TCP_SIZES),
        };
        let sizes = if args.size.is_empty() { &sizes[..] } else { &args.size };
        let message_bytes = message_sizes(sizes, is_udp)
            .map_err(|why| Failure::usage(why, "another --size, or --proto tcp alone"))?;
        let most = message_bytes.iter().copied().max().unwrap_or(0) as u64;
        if args.bytes < most || args.bytes > net::floor::protocol::RUN_BYTES_MAX {
            let what = format!("--bytes has to be between a message of {most} bytes and 16T");
            return Err(Failure::usage(what, "another --bytes"));
        }
        Ok(Plan {
            protocols: vec![protocol],
            message_bytes,
            time: args.time,
            bytes_max: args.bytes,
            repeats: args.repeats,
            bytes_per_s: args.rate,
        })
    };
    protos.iter().map(plan).collect()
}

struct Report<'a> {
    args: &'a Stream,
    address: SocketAddr,
    measured: &'a [Measured],
}

fn sent_rate(run: &Run) -> f64 {
    mib_per_s(run.streamed.bytes, run.streamed.span)
}

fn received_rate(run: &Run) -> f64 {
    let far = &run.streamed.far;
    mib_per_s(far.bytes.saturating_sub(far.first_bytes), far.span)
}

fn of(one: &Measured, value: impl Fn(&Run) -> f64) -> Option<Sample> {
    sample(one.runs.iter().map(value).filter(|value| value.is_finite()))
}

/// Processor time for each message, in microseconds.
fn cpu_us(one: &Measured, is_far: bool) -> f64 {
    let messages: u64 = one.runs.iter().map(|run| run.streamed.messages).sum();
    let spans = one.runs.iter().map(|run| if is_far { run.streamed.far.cpu } else { run.cpu });
    spans.map(|span| span.as_micros_f64()).sum::<f64>() / messages.max(1) as f64
}

/// Share of one processor that the sending thread used.
fn own_share(one: &Measured) -> f64 {
    let cpu: f64 = one.runs.iter().map(|run| run.cpu.as_secs_f64()).sum();
    cpu / one.runs.iter().map(|run| run.took.as_secs_f64()).sum::<f64>()
}

/// A sum over all runs; `None` where a run does not know.
fn sum(one: &Measured, value: impl Fn(&Run) -> Option<u64>) -> Option<u64> {
    one.runs.iter().try_fold(0_u64, |sum, run| Some(sum.saturating_add(value(run)?)))
}

impl<'a> Report<'a> {
    fn of(args: &'a Stream, Streamed { address, measured }: &'a Streamed) -> Self {
        Self { args, address: *address, measured }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        self.write(&mut out).ok();
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let runs = self.measured.first().map_or(0, |one| one.runs.len());
        writeln!(
            out,
            "stream      to {}; medians of {runs} runs of {}, in MiB (2^20 bytes) for each second",
            self.address, self.args.time
        )?;
        let names = ["message", "sent", "received", "Mbit/s", "lost"].map(right);
        let mut table =
            Table::new([left("")].into_iter().chain(names).chain([left("CPU us/message")]));
        for one in self.measured {
            let received = of(one, received_rate);
            let megabits = received.as_ref().map(|rates| rates.median() * 8.388_608);
            let lost = of(one, |run| Measured::loss(run) * 100.0);
            let lost = lost.filter(|_| one.protocol == Protocol::Udp);
            table.row([
                one.protocol.name().to_owned(),
                bytes(one.message_bytes as u64),
                cell(of(one, sent_rate).as_ref(), 1),
                cell(received.as_ref(), 1),
                format!("{:.0}", megabits.unwrap_or(f64::NAN)),
                lost.map_or_else(|| "-".to_owned(), |lost| format!("{:.2} %", lost.median())),
                format!("{:.2} here, {:.2} there", cpu_us(one, false), cpu_us(one, true)),
            ]);
        }
        out.push_str(&table.text());
        for one in self.measured.iter().filter(|one| one.protocol == Protocol::Udp) {
            write_losses(out, one)?;
        }
        if self.address.ip().is_loopback() {
            writeln!(out, "{LOOPBACK}")?;
        }
        self.write_own(out)
    }

    fn write_own(&self, out: &mut String) -> std::fmt::Result {
        let share = self.measured.iter().map(own_share).fold(0.0, f64::max);
        write!(out, "generator   up to {:.0} % of one processor", share * 100.0)?;
        if self.args.rate.is_some() {
            let late =
                self.measured.iter().filter_map(|one| sum(one, |run| Some(run.streamed.late)));
            let sent =
                self.measured.iter().filter_map(|one| sum(one, |run| Some(run.streamed.messages)));
            let (late, sent) = (late.sum::<u64>(), sent.sum::<u64>());
            write!(out, "; {late} of {sent} messages left over 100 us late")?;
        }
        writeln!(out, "; nothing is stored or cached")
    }

    fn records(&self) -> Vec<Record> {
        self.measured.iter().map(|one| self.record(one)).collect()
    }

    fn record(&self, one: &Measured) -> Record {
        let mut record = records::of("stream");
        record.target = Target {
            kind: "far-end".to_owned(),
            proto: Some(one.protocol.name().to_owned()),
            ..Target::default()
        };
        record.target.other.insert("address".to_owned(), self.address.to_string().into());
        record.target.other.insert("cached".to_owned(), "nothing is stored or cached".into());
        let parameters = [
            ("message_bytes", Some(one.message_bytes as u64)),
            ("run_ns", Some(self.args.time.as_nanos())),
            ("bytes_max", Some(self.args.bytes)),
            ("repeats", Some(one.runs.len() as u64)),
            ("bytes_per_s", self.args.rate),
        ];
        records::parameters(&mut record, parameters);
        records::parameters(&mut record, [("proto", one.protocol.name())]);
        let rates = [
            ("sent_mib_per_s", of(one, sent_rate), "MiB/s"),
            ("received_mib_per_s", of(one, received_rate), "MiB/s"),
        ];
        records::spreads(&mut record, rates);
        if self.args.rate.is_none() {
            record.result("received_mib_per_s", Better::Larger);
        }
        record.metric("generator_cpu_us_per_message", cpu_us(one, false), "us");
        record.metric("far_cpu_us_per_message", cpu_us(one, true), "us");
        records::generator(&mut record, own_share(one));
        warn_of_loopback(&mut record, self.address.ip().is_loopback());
        record.metric("late_messages", sum(one, |r| Some(r.streamed.late)).unwrap_or(0) as f64, "");
        if one.protocol == Protocol::Udp {
            records::spreads(&mut record, [("loss", of(one, Measured::loss), "")]);
            for (name, count) in counters(one) {
                count.map(|count| record.metric(name, count as f64, "datagrams"));
            }
        }
        record
    }
}

/// What was counted over all runs.
fn counters(one: &Measured) -> [(&'static str, Option<u64>); 11] {
    [
        ("sent", sum(one, |run| Some(run.streamed.messages))),
        ("received", sum(one, |run| Some(run.streamed.far.messages))),
        ("duplicates", sum(one, |run| Some(run.streamed.far.duplicates))),
        ("reordered", sum(one, |run| Some(run.streamed.far.reordered))),
        ("not_taken_by_own_system", sum(one, |run| Some(run.streamed.refused))),
        ("far_socket_drops", sum(one, |run| run.streamed.far.socket_drops)),
        ("far_rcvbuf_errors", sum(one, |run| run.streamed.far.host_receive_buffer_errors)),
        ("far_in_errors", sum(one, |run| run.streamed.far.host_in_errors)),
        ("far_reassembly_failures", sum(one, |run| run.streamed.far.host_reassembly_failures)),
        ("own_sndbuf_errors", sum(one, |run| run.streamed.host.send_buffer_errors)),
        ("own_in_errors", sum(one, |run| run.streamed.host.in_errors)),
    ]
}

/// Where datagrams were lost, as the kernels say.
fn write_losses(out: &mut String, one: &Measured) -> std::fmt::Result {
    let counted = |name| counters(one).into_iter().find(|(found, _)| *found == name)?.1;
    let (sent, came) = (counted("sent").unwrap_or(0), counted("received").unwrap_or(0));
    let lost = sent.saturating_sub(came);
    if lost == 0 && counted("not_taken_by_own_system") == Some(0) {
        return Ok(());
    }
    let shown = |name| counted(name).map_or_else(|| "?".to_owned(), |count: u64| count.to_string());
    writeln!(
        out,
        "udp {}: {lost} of {sent} lost; the far kernel dropped {} at the socket (host: {} for want \
         of room, {} not reassembled); ours took {} not",
        bytes(one.message_bytes as u64),
        shown("far_socket_drops"),
        shown("far_rcvbuf_errors"),
        shown("far_reassembly_failures"),
        shown("not_taken_by_own_system"),
    )
}
