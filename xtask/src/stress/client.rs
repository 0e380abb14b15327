//! One client: keeps calls outstanding, makes its connection again when it breaks, retransmits
//! what was not answered, byte for byte, and compares.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wire::Procedure;
use wire::mount::{self, DirPath, MntReply};
use wire::nfs3::{FileHandle, mkdir};
use wire::rpc::{AcceptStatus, AuthSys, Gids, OpaqueAuth, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader};

use super::answer::{Complaint, Outcome, World};
use super::choose::{Chooser, FOLDERS};
use super::connection::Connection;
use super::model::Model;
use super::operation::{Id, Operation};
use super::tally::{Tally, Violation};
use super::verifiers::Verifiers;
use crate::rpc;

/// One call in so many is followed by the end of its connection: the server may have done it, and
/// its answer is lost.
const CUT_ONE_IN: u32 = 400;
/// Looks at what is there after each restart.
const LOOKS_AFTER_RESTART: u32 = 20;
/// How long a call may be without an answer, however often it was sent: longer than a wait for a
/// single reply and a restart.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Answers remembered about each object.
const HISTORY_LINES: usize = 8;
/// Before the second attempt to connect in a row, as other clients wait too.
const RECONNECT_AFTER: Duration = Duration::from_millis(10);

/// What all clients share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) address: SocketAddr,
    /// The process that serves now.
    pub(super) generation: AtomicU64,
    pub(super) stop: AtomicBool,
    pub(super) verifiers: Verifiers,
}

#[derive(Debug)]
pub(super) struct Client<'a> {
    pub(super) shared: &'a Shared,
    connection: Connection<'a>,
    /// Names of its folders under the root, and their handles.
    pub(super) folders: Vec<String>,
    pub(super) handles: Vec<FileHandle>,
    credential: Vec<u8>,
    pub(super) model: Model,
    chooser: Chooser,
    pub(super) tally: Tally,
    pending: BTreeMap<u32, Pending>,
    xid: u32,
    seen_generation: u64,
    /// Connections lost since something was answered.
    lost_since_answer: u32,
    /// The last answers about each object, for complaints.
    history: BTreeMap<Id, VecDeque<String>>,
}

#[derive(Debug)]
struct Pending {
    call: Vec<u8>,
    operation: Operation,
    sends: u32,
    first_sent: Instant,
}

impl<'a> Client<'a> {
    /// Mounts, and makes the client's folders.
    pub(super) fn start(shared: &'a Shared, number: u64, seed: u64) -> Result<Self, String> {
        let mut chooser = Chooser::new(seed, format!("c{number}-"));
        let gids = Gids::default();
        let machine = format!("client{number}");
        let machine_name = machine.as_bytes();
        let (stamp, uid, gid) = (chooser.rng.u32(..), 0, 0);
        let credential = AuthSys { stamp, machine_name, uid, gid, gids }.to_bytes();
        let xid = chooser.rng.u32(..);
        let mut client = Self {
            shared,
            connection: Connection::new(shared.address, &shared.generation),
            folders: (0..FOLDERS).map(|folder| format!("client{number}-{folder}")).collect(),
            handles: Vec::new(),
            credential,
            model: Model::default(),
            chooser,
            tally: Tally::default(),
            pending: BTreeMap::new(),
            xid,
            seen_generation: 1,
            lost_since_answer: 0,
            history: BTreeMap::new(),
        };
        let root = client.mount()?;
        for folder in client.folders.clone() {
            let name = folder.as_bytes();
            let where_ = wire::nfs3::DirOp { dir: root, name };
            let attributes = wire::nfs3::Sattr3 { mode: Some(0o777), ..Default::default() };
            let args = mkdir::Args { where_, attributes }.to_bytes();
            let mkdir = Procedure::Nfs3(wire::nfs3::Procedure::Mkdir);
            let made = client.ask(mkdir, &args, |r| r.field::<mkdir::Reply>("results"))?;
            let made = made.map_err(|failure| format!("MKDIR {folder}: {}", failure.status))?;
            client.handles.push(made.obj.ok_or("MKDIR gave no handle")?);
        }
        Ok(client)
    }

    fn mount(&mut self) -> Result<FileHandle, String> {
        let path = DirPath { dirpath: b"/" }.to_bytes();
        let mnt = Procedure::Mount(mount::Procedure::Mnt);
        let root = self.ask(mnt, &path, |r| r.field::<MntReply>("results"))?;
        root.map(|ok| ok.fhandle).map_err(|status| format!("MNT /: {status}"))
    }

    /// Keeps calls outstanding until it is stopped, then waits for the last answers.
    pub(super) fn run(&mut self, outstanding: usize) -> Result<(), String> {
        loop {
            while self.pending.len() < outstanding && !self.shared.stop.load(Ordering::Relaxed) {
                let Some(operation) = self.chooser.next(&mut self.model) else { break };
                self.submit(operation)?;
            }
            if self.pending.is_empty() && self.shared.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.pending.is_empty() {
                continue;
            }
            if !self.shared.stop.load(Ordering::Relaxed) && self.chooser.rng.u32(..CUT_ONE_IN) == 0
            {
                self.tally.cut += 1;
                self.connection.close();
            }
            self.receive()?;
        }
    }

    /// Does one operation and waits for everything outstanding.
    pub(super) fn finish(&mut self, operation: Operation) -> Result<(), String> {
        self.submit(operation)?;
        while !self.pending.is_empty() {
            self.receive()?;
        }
        Ok(())
    }

    fn submit(&mut self, operation: Operation) -> Result<(), String> {
        let handle = object(&operation).and_then(|id| self.model.objects[id].handle);
        let handle = handle.unwrap_or(self.handles[0]);
        let mut args = Vec::new();
        operation.encode(handle, &self.handles, &mut args);
        let procedure = Procedure::Nfs3(operation.procedure());
        let (xid, call) = self.call(procedure, &args);
        self.pending.insert(xid, Pending { call, operation, sends: 0, first_sent: Instant::now() });
        match self.connection.is_open() {
            true => self.transmit(xid),
            false => self.reconnect()?,
        }
        Ok(())
    }

    fn call(&mut self, procedure: Procedure, args: &[u8]) -> (u32, Vec<u8>) {
        self.xid = self.xid.wrapping_add(1);
        (self.xid, rpc::call(self.xid, procedure, OpaqueAuth::sys(&self.credential), args))
    }

    /// Sends a pending call; whether it arrives is seen when its answer is waited for.
    fn transmit(&mut self, xid: u32) {
        let Some(pending) = self.pending.get_mut(&xid) else { return };
        pending.sends += 1;
        if pending.sends > 1 {
            self.tally.retransmissions += 1;
            self.tally.retransmitted_once_only += u64::from(pending.operation.is_once_only());
        }
        let _ = self.connection.send(&pending.call);
    }

    /// Connects again and sends everything outstanding again, in the order of the first time.
    fn reconnect(&mut self) -> Result<(), String> {
        if self.lost_since_answer > 1 {
            // The first execution goes on, or the server drains: it will not be over at once.
            thread::sleep(RECONNECT_AFTER);
        }
        self.connection.open()?;
        if self.connection.generation() != self.seen_generation {
            self.seen_generation = self.connection.generation();
            self.chooser.looks = LOOKS_AFTER_RESTART;
        }
        let mut xids: Vec<u32> = self.pending.keys().copied().collect();
        xids.sort_by_key(|xid| xid.wrapping_sub(self.xid).wrapping_sub(1));
        xids.into_iter().for_each(|xid| self.transmit(xid));
        Ok(())
    }

    /// Waits for one answer and takes it in.
    fn receive(&mut self) -> Result<(), String> {
        if !self.connection.is_open() {
            return self.reconnect();
        }
        let Ok(reply) = self.connection.receive() else {
            self.tally.broken += 1;
            self.lost_since_answer += 1;
            let late = |pending: &&Pending| pending.first_sent.elapsed() > ANSWER_WITHIN;
            return match self.pending.values().find(late) {
                None => Ok(()),
                Some(Pending { operation, sends, .. }) => {
                    let what = format!("{}, sent {sends} times", brief(operation));
                    self.tally.violation(Violation::NoAnswer, what.clone());
                    Err(format!("no answer to {what}"))
                }
            };
        };
        match self.take(&reply) {
            Ok(Some(next)) => self.submit(next),
            Ok(None) => Ok(()),
            Err((violation, what)) => {
                self.tally.violation(violation, what);
                Ok(())
            }
        }
    }

    fn take(&mut self, reply: &[u8]) -> Result<Option<Operation>, Complaint> {
        let unexpected = |what: String| (Violation::Unexpected, what);
        let mut r = Reader::new(reply);
        let header = ReplyHeader::decode(&mut r).map_err(|error| unexpected(error.to_string()))?;
        let pending = self
            .pending
            .remove(&header.xid)
            .ok_or_else(|| unexpected(format!("an answer to nothing, xid {:08x}", header.xid)))?;
        self.tally.calls += 1;
        self.lost_since_answer = 0;
        let ReplyBody::Accepted { status: AcceptStatus::Success, .. } = header.body else {
            return Err(unexpected(format!("{:?}: {}", pending.operation, header.body)));
        };
        let mut world = World {
            model: &mut self.model,
            chooser: &mut self.chooser,
            tally: &mut self.tally,
            verifiers: &self.shared.verifiers,
            generation: self.connection.generation(),
            retransmitted: pending.sends > 1,
        };
        let Pending { operation, sends, .. } = &pending;
        let history = object(operation).map(|id| self.history.entry(id).or_default());
        let before = history.as_deref().map_or_else(String::new, |history| {
            history.iter().fold(String::new(), |text, line| text + "\n    " + line)
        });
        if let Some(history) = history {
            history.truncate(HISTORY_LINES - 1);
            let process = self.connection.generation();
            let what = brief(operation);
            let line =
                format!("{what}, xid {:08x}, sent {sends} times, process {process}", header.xid);
            history.push_front(line);
        }
        let described = |(violation, what): Complaint| {
            let procedure = operation.procedure();
            let what = format!("{what} ({}); before it:{before}", brief(operation));
            (violation, format!("{procedure}, sent {sends} times: {what}"))
        };
        match world.answer(&pending.operation, &mut r).map_err(described)? {
            Outcome::Done => Ok(None),
            Outcome::Later => Ok(Some(pending.operation)),
            Outcome::Then(next) => Ok(Some(next)),
        }
    }

    /// A call outside the model: sent until it is answered, while nothing else is outstanding.
    pub(super) fn ask<T>(
        &mut self,
        procedure: Procedure,
        args: &[u8],
        decode: impl Fn(&mut Reader<'_>) -> Result<T, wire::xdr::DecodeError>,
    ) -> Result<T, String> {
        let (xid, call) = self.call(procedure, args);
        let first_sent = Instant::now();
        while first_sent.elapsed() < ANSWER_WITHIN {
            if !self.connection.is_open() {
                self.connection.open()?;
            }
            let answered = self.connection.send(&call).and_then(|()| self.connection.receive());
            let Ok(reply) = answered else { continue };
            let mut r = Reader::new(&reply);
            let header = ReplyHeader::decode(&mut r).map_err(|error| error.to_string())?;
            return match header.body {
                ReplyBody::Accepted { status: AcceptStatus::Success, .. } if header.xid == xid => {
                    decode(&mut r).map_err(|error| format!("{procedure}: {error}"))
                }
                other => Err(format!("{procedure}: {other}")),
            };
        }
        Err(format!("{procedure}: no answer"))
    }
}

/// The object whose handle an operation needs.
fn object(operation: &Operation) -> Option<Id> {
    match operation {
        Operation::Link { id, .. }
        | Operation::Write { id, .. }
        | Operation::Commit { id, .. }
        | Operation::Truncate { id, .. }
        | Operation::GuardTime { id }
        | Operation::Chmod { id, .. }
        | Operation::Read { id, .. }
        | Operation::Getattr { id } => Some(*id),
        _ => None,
    }
}

/// The operation without its data.
fn brief(operation: &Operation) -> String {
    match operation {
        Operation::Write { id, range, stable, .. } => format!("write {id} {range:?} {stable}"),
        other => format!("{other:?}"),
    }
}
