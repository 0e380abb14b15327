//! Many calls outstanding on one connection, and how long each took.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::connection::write_with_payload;
use super::replies::{Replies, xid};

/// A slot is the low bits of a transaction id; so many calls may be outstanding.
pub(crate) const SLOTS_MAX: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 6;
/// Payloads up to here are copied behind their call, so that several calls go with one write.
const COPIED_BYTES_MAX: usize = 8 << 10;

/// What is requested, and what the answers must be.
pub(crate) trait Job {
    /// Appends the next call of a slot under this transaction id; false when there is none.
    fn next(&mut self, slot: usize, xid: u32, out: &mut Vec<u8>) -> bool;

    /// What follows each call; whole words.
    fn payload(&self) -> &[u8] {
        &[]
    }

    /// Checks the reply to a slot's call.
    fn reply(&mut self, slot: usize, reply: &[u8]) -> Result<(), String>;

    /// What was done so far, in the unit of the row: calls, bytes or entries.
    fn amount(&self) -> u64;
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Elapsed(Duration),
    /// The job has no more calls.
    Done,
}

/// What a run of a job was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// In the unit of the row.
    pub(crate) amount: u64,
    pub(crate) seconds: f64,
    /// From before the call was written to after its reply was read; one for each call.
    pub(crate) latencies_ns: Vec<u32>,
}

/// A connection with the transaction ids used on it.
#[derive(Debug)]
pub(crate) struct Pipeline {
    stream: TcpStream,
    replies: Replies,
    /// High part of the last transaction id; never repeats, so no reply cache mistakes a call.
    sequence: u32,
    out: Vec<u8>,
}

impl Pipeline {
    /// `sequence` distinguishes connections for servers that remember calls by transaction id.
    pub(crate) fn new(stream: TcpStream, sequence: u32) -> Self {
        Self { stream, replies: Replies::new(), sequence, out: Vec::new() }
    }

    /// Keeps `window` calls outstanding until it is time to stop, and waits for the last reply.
    pub(crate) fn run(
        &mut self,
        job: &mut dyn Job,
        window: usize,
        until: Until,
    ) -> Result<Run, String> {
        let amount_before = job.amount();
        let start = Instant::now();
        let deadline = match until {
            Until::Elapsed(duration) => Some(start + duration),
            Until::Done => None,
        };
        let mut free: Vec<usize> = (0..window.min(SLOTS_MAX)).rev().collect();
        let mut outstanding: [Option<(u32, Instant)>; SLOTS_MAX] = [None; SLOTS_MAX];
        let mut calls = 0_usize;
        let mut latencies_ns = Vec::with_capacity(1 << 16);
        let mut now = start;
        loop {
            if deadline.is_none_or(|deadline| now < deadline) {
                self.send(job, &mut free, &mut outstanding, now)?;
            }
            if free.len() == window {
                break;
            }
            self.replies.fill(&self.stream)?;
            now = Instant::now();
            while let Some(range) = self.replies.take()? {
                let reply = self.replies.at(range);
                let slot = xid(reply) as usize % SLOTS_MAX;
                let (_, sent) = outstanding[slot]
                    .take_if(|(expected, _)| *expected == xid(reply))
                    .ok_or_else(|| format!("a reply to no call: xid {:#x}", xid(reply)))?;
                let took = now.duration_since(sent).as_nanos();
                latencies_ns.push(u32::try_from(took).unwrap_or(u32::MAX));
                job.reply(slot, reply).map_err(|why| format!("call {calls}: {why}"))?;
                calls += 1;
                free.push(slot);
            }
        }
        let amount = job.amount() - amount_before;
        Ok(Run { amount, seconds: start.elapsed().as_secs_f64(), latencies_ns })
    }

    /// Sends a call for every free slot for which there is one.
    fn send(
        &mut self,
        job: &mut dyn Job,
        free: &mut Vec<usize>,
        outstanding: &mut [Option<(u32, Instant)>],
        now: Instant,
    ) -> Result<(), String> {
        let failed = |error| format!("cannot send: {error}");
        let mut sent = now;
        self.out.clear();
        while let Some(slot) = free.pop() {
            self.sequence = self.sequence.wrapping_add(1);
            let low = u32::try_from(slot).map_err(|_| "a slot beyond 32 bits".to_owned())?;
            let xid = self.sequence << SLOT_BITS | low;
            if !job.next(slot, xid, &mut self.out) {
                free.push(slot);
                break;
            }
            outstanding[slot] = Some((xid, sent));
            let payload = job.payload();
            if payload.len() <= COPIED_BYTES_MAX {
                self.out.extend_from_slice(payload);
            } else {
                write_with_payload(&self.stream, &self.out, payload).map_err(failed)?;
                self.out.clear();
                sent = Instant::now();
            }
        }
        match self.out.is_empty() {
            true => Ok(()),
            false => (&self.stream).write_all(&self.out).map_err(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;
    use crate::peers::client::{call, put_call};
    use wire::rpc::ReplyHeader;
    use wire::xdr::Encode;
    use wire::{Procedure, nfs3};

    /// NULL, so often.
    struct Some(u64, u64);

    impl Job for Some {
        fn next(&mut self, _slot: usize, xid: u32, out: &mut Vec<u8>) -> bool {
            if self.0 == 0 {
                return false;
            }
            self.0 -= 1;
            put_call(out, &call(Procedure::Nfs3(nfs3::Procedure::Null), |_| (), 0), xid);
            true
        }

        fn reply(&mut self, _slot: usize, _reply: &[u8]) -> Result<(), String> {
            self.1 += 1;
            Ok(())
        }

        fn amount(&self) -> u64 {
            self.1
        }
    }

    /// Answers pairs of calls in the wrong order; the last word of a xid is changed by `flip`.
    fn run_against_a_server_that_swaps(flip: u8) -> Result<Run, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        let len = call(Procedure::Nfs3(nfs3::Procedure::Null), |_| (), 0).len();
        let server = std::thread::spawn(move || {
            let mut pair = vec![0; 2 * len];
            while there.read_exact(&mut pair).is_ok() {
                let xids = [0, len].map(|at| pair[at + 4..at + 8].try_into().unwrap());
                for xid in xids.into_iter().rev().map(u32::from_be_bytes) {
                    let reply = ReplyHeader::success(xid ^ u32::from(flip)).to_bytes();
                    let mark = wire::record::Message::new(reply.clone()).marker();
                    if there.write_all(&[&mark[..], &reply].concat()).is_err() {
                        return;
                    }
                }
            }
        });
        let run = Pipeline::new(stream, 5).run(&mut Some(10, 0), 4, Until::Done);
        server.join().unwrap();
        run
    }

    #[test]
    fn replies_may_come_in_any_order() {
        let run = run_against_a_server_that_swaps(0).unwrap();
        assert_eq!((run.amount, run.latencies_ns.len()), (10, 10));
    }

    #[test]
    fn a_reply_that_nobody_requested_is_an_error() {
        let error = run_against_a_server_that_swaps(0x40).unwrap_err();
        assert!(error.contains("a reply to no call"), "{error}");
    }
}
