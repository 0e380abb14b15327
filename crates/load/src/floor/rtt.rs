//! Round trips of messages, one at a time: the response time that no call over the same network
//! can pass. And whole transfers with a sentinel.
//!
//! Stresses what a message costs beside its bytes: system calls, interrupts, wake-ups of the far
//! end. Defined by the 2002 thesis, section 7.1: UDP and RPC round trips by packet size, and
//! transfers of 1 MB and 32 MB in datagrams of 1,500 bytes, at whose end the receiver sends a
//! sentinel back.
//!
//! It differs in this: sizes are those of messages, where the thesis changed the MTU; TCP is
//! measured beside UDP; percentiles beside the mean; what is lost is counted, where a transfer of
//! the thesis that lost a packet had no end. NULL calls go through a plain socket, as the
//! datagrams do, so that what they take longer is the server's part and the headers'.
//!
//! Trials go in blocks, every size and protocol in each, and the spread is that of the blocks'
//! medians. Where a rate is requested, a trial's time counts from when it was due, and what a block
//! is behind at its end, the row's next block begins with.

use net::clock::Clock;
use net::error::{CallError, Refusal};
use net::floor::echo::{TcpEcho, UdpEcho};
use net::floor::error::FloorError;
use net::floor::near::{LATE, Way};
use net::floor::pace::{self, Pace};
use net::floor::protocol::{RUN_MAX, Report};
use net::floor::rpc::{NullCalls, Service};
use perf::stats::Sample;
use perf::units::{Instant, Nanos};

use super::{Outcome, Progress, Protocol};
use crate::cpu::Usage;
use crate::error::Error;

/// Most trials of one size: a time of each is recorded.
pub const TRIALS_MAX: u32 = 10_000_000;
/// Blocks that trials are divided into.
const BLOCKS: u32 = 10;
/// Trials of each block that do not count.
const WARM_UP_TRIALS: u64 = 20;
/// Trials in a row without an answer that end a run.
const LOST_IN_A_ROW_MAX: u32 = 20;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Programs whose NULL is called, each with its name.
    pub services: Vec<(String, Service)>,
    pub message_bytes: Vec<usize>,
    pub trials: u32,
    /// Trials in a second; `None` each after the one before.
    pub per_s: Option<f64>,
    pub reply_limit: Nanos,
    /// Ends the trials of one size, should it come before their number.
    pub row_time_max: Nanos,
    /// Lengths of transfers, how often each, and bytes of their datagrams.
    pub transfers: Vec<u64>,
    pub transfer_repeats: u32,
    pub packet_bytes: usize,
    /// Bytes in a second of transfers as datagrams; `None` as fast as they go.
    pub transfer_bytes_per_s: Option<u64>,
}

/// What is measured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Exchange {
    Echo(Protocol),
    /// NULL of the program of that number in [`Plan::services`].
    Null(usize),
}

/// All trials of one exchange with messages of one size.
#[derive(Clone, Debug)]
pub struct Series {
    pub exchange: Exchange,
    pub message_bytes: usize,
    pub times: Vec<Nanos>,
    /// Median of each block, in microseconds.
    pub block_medians_us: Vec<f64>,
    pub lost: u64,
    /// Trials that began late; only where there is a rate.
    pub late: u64,
    /// What the server says of NULL calls with bytes behind them.
    pub refused: Option<Refusal>,
    /// Processor time of the thread that measured, and how long it did.
    pub cpu: Nanos,
    pub span: Nanos,
    schedule: Schedule,
}

/// When the trials of a row are due, over all its blocks. Blocks of other rows come between and are
/// not in it; what was due while a peer did not answer is due in the next block, and late there.
#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    behind: Nanos,
}

impl Schedule {
    /// Of a block that begins now.
    fn begun(self, now: Instant, per_s: Option<f64>) -> Pace {
        Pace::new(now - self.behind, per_s)
    }

    /// So many trials of the block are done: is the next one due already?
    fn ended(&mut self, now: Instant, pace: &Pace, trials: u64) {
        self.behind = pace.due(trials).map_or(Nanos::ZERO, |due| now.since(due));
    }
}

/// All transfers of one length.
#[derive(Clone, Debug)]
pub struct Transfers {
    pub protocol: Protocol,
    pub bytes: u64,
    /// Of those that were complete.
    pub spans: Vec<Nanos>,
    /// What the far end saw of those that were not.
    pub incomplete: Vec<Report>,
}

/// See [`run`].
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub series: Vec<Series>,
    pub transfers: Vec<Transfers>,
}

/// Measures everything: echoes and transfers with the far end at `way`, if there is one, and NULL
/// calls.
pub fn run(
    clock: &Clock,
    way: Option<&Way<'_>>,
    plan: &Plan,
    go_on: &dyn Fn() -> bool,
    progress: Progress<'_>,
) -> Outcome<Measured> {
    let mut measured = Measured::default();
    let mut exchanges = Vec::new();
    if way.is_some() {
        exchanges.extend([Protocol::Udp, Protocol::Tcp].map(Exchange::Echo));
    }
    exchanges.extend((0..plan.services.len()).map(Exchange::Null));
    for exchange in exchanges {
        let sizes = plan.message_bytes.iter();
        measured.series.extend(sizes.map(|&message_bytes| Series::new(&exchange, message_bytes)));
    }
    for protocol in [Protocol::Udp, Protocol::Tcp].into_iter().filter(|_| way.is_some()) {
        measured.transfers.extend(plan.transfers.iter().map(|&bytes| Transfers {
            protocol,
            bytes,
            spans: Vec::new(),
            incomplete: Vec::new(),
        }));
    }
    let work = Work { clock, way, plan, go_on };
    let failed = work.all(&mut measured, progress).err();
    Outcome { measured, failed }
}

impl Series {
    fn new(exchange: &Exchange, message_bytes: usize) -> Self {
        Self {
            exchange: exchange.clone(),
            message_bytes,
            times: Vec::new(),
            block_medians_us: Vec::new(),
            lost: 0,
            late: 0,
            refused: None,
            cpu: Nanos::ZERO,
            span: Nanos::ZERO,
            schedule: Schedule::default(),
        }
    }
}

struct Work<'a> {
    clock: &'a Clock,
    way: Option<&'a Way<'a>>,
    plan: &'a Plan,
    go_on: &'a dyn Fn() -> bool,
}

/// One exchange, opened.
enum Opened<'a> {
    Tcp(TcpEcho<'a>),
    Udp(UdpEcho<'a>),
    Null(NullCalls<'a>),
}

impl Opened<'_> {
    fn trial(&mut self) -> Result<Option<Instant>, FloorError> {
        match self {
            Self::Tcp(echo) => echo.trial().map(Some),
            Self::Udp(echo) => echo.trial(),
            Self::Null(calls) => calls.trial(),
        }
    }
}

impl<'a> Work<'a> {
    fn all(&self, measured: &mut Measured, progress: Progress<'_>) -> Result<(), Error> {
        let blocks = BLOCKS.min(self.plan.trials);
        let (count, steps) = (measured.series.len(), blocks as usize * measured.series.len());
        let transfers = measured.transfers.len() * self.plan.transfer_repeats as usize;
        // A transfer takes about as long as a block.
        let all = (steps + transfers).max(1) as f64;
        for step in 0..steps {
            let (block, turn) = (step / count, step % count);
            let series = &mut measured.series[(turn + block) % count];
            let until =
                |block: usize| block as u64 * u64::from(self.plan.trials) / u64::from(blocks);
            self.block(series, until(block + 1) - until(block))?;
            progress((step + 1) as f64 / all);
        }
        let kinds = measured.transfers.len();
        for step in 0..transfers {
            self.transfer(&mut measured.transfers[(step + step / kinds) % kinds])?;
            progress((steps + step + 1) as f64 / all);
        }
        Ok(())
    }

    fn open(&self, series: &Series) -> Result<Opened<'a>, FloorError> {
        let (bytes, limit) = (series.message_bytes, self.plan.reply_limit);
        let nobody = || FloorError::Stopped;
        Ok(match series.exchange {
            Exchange::Echo(Protocol::Tcp) => {
                Opened::Tcp(self.way.ok_or_else(nobody)?.tcp_echo(bytes, RUN_MAX)?)
            }
            Exchange::Echo(Protocol::Udp) => {
                Opened::Udp(self.way.ok_or_else(nobody)?.udp_echo(bytes, RUN_MAX, limit)?)
            }
            Exchange::Null(service) => {
                let service = self.plan.services[service].1;
                Opened::Null(NullCalls::open(self.clock, service, bytes, limit)?)
            }
        })
    }

    /// A number of trials in a row.
    fn block(&self, series: &mut Series, trials: u64) -> Result<(), Error> {
        let mut opened = self.open(series)?;
        for _ in 0..trials.min(WARM_UP_TRIALS) {
            self.warm_up(&mut opened)?;
        }
        let cpu = Usage::now();
        let started = self.clock.now();
        let pace = series.schedule.begun(started, self.plan.per_s);
        let before = series.times.len();
        let outcome = self.trials(series, &mut opened, &pace, trials);
        // What ends a block ends its time, too.
        let ended = self.clock.now();
        series.cpu += Usage::now().since(cpu).thread;
        series.span += ended.since(started);
        series.schedule.ended(ended, &pace, outcome?);
        if let Opened::Null(calls) = &opened {
            series.refused = calls.is_refused();
        }
        let micros = series.times[before..].iter().map(|time| time.as_micros_f64());
        if let Ok(sample) = Sample::new(micros.collect::<Vec<_>>()) {
            series.block_medians_us.push(sample.median());
        }
        Ok(())
    }

    /// Makes the trials of a block that begins now: how many there was time for.
    fn trials(
        &self,
        series: &mut Series,
        opened: &mut Opened<'_>,
        pace: &Pace,
        trials: u64,
    ) -> Result<u64, Error> {
        let mut in_a_row = 0;
        let until = self.clock.now() + self.plan.row_time_max / u64::from(BLOCKS);
        for trial in 0..trials {
            if !(self.go_on)() {
                return Err(FloorError::Stopped.into());
            }
            let began = self.begin(series, pace, trial);
            match opened.trial() {
                Ok(Some(back)) => {
                    in_a_row = 0;
                    series.times.push(back.since(began));
                }
                Ok(None) => {
                    in_a_row += 1;
                    series.lost += 1;
                    self.is_there(series, in_a_row)?;
                }
                Err(error) => {
                    // Over TCP a message without an answer ends the run: it is lost all the same.
                    series.lost += u64::from(matches!(error, FloorError::NoAnswer { .. }));
                    return Err(error.into());
                }
            }
            if self.clock.now() >= until {
                return Ok(trial + 1);
            }
        }
        Ok(trials)
    }

    /// When the trial begins: where there is a rate, when it is due, which is waited for.
    fn begin(&self, series: &mut Series, pace: &Pace, trial: u64) -> Instant {
        let Some(due) = pace.due(trial) else { return self.clock.now() };
        if pace::until(self.clock, due) > LATE {
            series.late += 1;
        }
        due
    }

    /// One trial that does not count. A program that is not served there is reported now.
    fn warm_up(&self, opened: &mut Opened<'_>) -> Result<(), Error> {
        if !(self.go_on)() {
            return Err(FloorError::Stopped.into());
        }
        opened.trial()?;
        let Opened::Null(calls) = opened else { return Ok(()) };
        match calls.is_refused() {
            None | Some(Refusal::GarbageArguments) => Ok(()),
            Some(refusal) => {
                let address = calls.address();
                Err(FloorError::Call { address, cause: CallError::Refused(refusal) }.into())
            }
        }
    }

    /// Gives up a peer that has not answered for long.
    fn is_there(&self, series: &Series, in_a_row: u32) -> Result<(), Error> {
        if in_a_row < LOST_IN_A_ROW_MAX {
            return Ok(());
        }
        let address = match (series.exchange.clone(), self.way) {
            (Exchange::Null(service), _) => self.plan.services[service].1.address,
            (Exchange::Echo(_), Some(way)) => way.address,
            (Exchange::Echo(_), None) => return Ok(()),
        };
        let limit = self.plan.reply_limit;
        Err(FloorError::NoAnswer { address, count: in_a_row, limit }.into())
    }

    fn transfer(&self, transfers: &mut Transfers) -> Result<(), Error> {
        let Some(way) = self.way else { return Ok(()) };
        let (bytes, packet_bytes) = (transfers.bytes, self.plan.packet_bytes);
        match transfers.protocol {
            Protocol::Tcp => transfers.spans.push(way.tcp_transfer(bytes, packet_bytes)?),
            Protocol::Udp => {
                let rate = self.plan.transfer_bytes_per_s;
                let per_s = rate.map(|rate| rate as f64 / packet_bytes as f64);
                let limit = self.plan.reply_limit;
                match way.udp_transfer(bytes, packet_bytes, per_s, limit)? {
                    (Some(span), _) => transfers.spans.push(span),
                    (None, report) => transfers.incomplete.push(report),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_while_a_peer_stands_still_is_late_in_the_blocks_that_follow() {
        let (second, per_s) = (Nanos::from_secs(1), Some(500.0));
        let began = Instant::EPOCH + Nanos::from_secs(100);
        let mut schedule = Schedule::default();
        // 250 trials are half a second; the peer stands still for three.
        let pace = schedule.begun(began, per_s);
        let ended = began + second * 3;
        schedule.ended(ended, &pace, 250);
        // Other rows' blocks take ten seconds, which make nothing late.
        let again = ended + second * 10;
        let pace = schedule.begun(again, per_s);
        assert_eq!(again.since(pace.due(0).unwrap()), Nanos::from_millis(2_500));
        // It takes no time now, and has half a second less to make up.
        schedule.ended(again, &pace, 250);
        assert_eq!(schedule.behind, second * 2);
        // On time again: the next block begins when it begins.
        let pace = schedule.begun(again, per_s);
        schedule.ended(again, &pace, 2_000);
        assert_eq!(schedule.begun(again, per_s).due(0), Some(again));
    }

    #[test]
    fn without_a_rate_nothing_is_due() {
        let mut schedule = Schedule::default();
        let now = Instant::EPOCH + Nanos::from_secs(9);
        let pace = schedule.begun(now, None);
        schedule.ended(now + Nanos::from_secs(3), &pace, 1);
        assert_eq!(schedule.behind, Nanos::ZERO);
    }
}
