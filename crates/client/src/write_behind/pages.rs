//! The index of the paper's policies: requests of one page, on one list for each file.
//!
//! The list is sorted by page offset and holds all requests that are not stable: pending, under
//! way, and acknowledged but not committed (nfs_find_request and its callers, sections 3.3 and
//! 3.4). Each write of a page looks for its request twice, as 2.4.4 did: once for one that is in
//! its way (nfs_find_request), once for one that it can grow (nfs_update_request). With
//! [`Find::Scan`] both walk the list from its front; with [`Find::Hash`] a hash table supplements
//! the list. A new request is put into the list from its end. Requests of adjacent pages become
//! one WRITE just before it is sent, which is when their bytes are copied together.
//!
//! The list is a real one: nodes that point to each other, in an arena instead of the heap because
//! unsafe code is not ours to write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use bytes::Bytes;

use super::index::{Ages, Busy, Chunk, Data, Index, Promise, Sums};

/// What 2.4.4 keeps in one request.
pub(super) const PAGE_BYTES: u64 = 4096;

const PAGE: usize = 4096;

/// No node.
const NONE: usize = usize::MAX;

/// How a request is found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Find {
    Scan,
    Hash,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Pages {
    wsize: u64,
    age: u64,
    nodes: Vec<Request>,
    free: Vec<usize>,
    head: usize,
    tail: usize,
    hash: Option<HashMap<u64, usize>>,
    /// Requests to send by page (the inode's dirty list).
    dirty: BTreeMap<u64, usize>,
    /// Requests of each WRITE, by the offset where it begins.
    under_way: HashMap<u64, Vec<usize>>,
    unanswered: Ages,
    unstable: Ages,
    /// Bytes of requests that are unstable.
    unstable_bytes: u64,
    requests: usize,
    epoch: u64,
}

#[derive(Debug)]
struct Request {
    page: u64,
    previous: usize,
    next: usize,
    state: State,
    /// The bytes of the page that were written.
    from: usize,
    to: usize,
    /// Up to here they are acknowledged as unstable.
    done: usize,
    /// From here on they are not wanted any more.
    cut: usize,
    age: u64,
    caller: u32,
    verifier: [u8; 8],
    epoch: u64,
    data: Box<[u8; PAGE]>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Dirty,
    /// Under way (PG_BUSY).
    Locked,
    Unstable,
}

impl Request {
    fn start(&self) -> u64 {
        self.page * PAGE_BYTES
    }

    fn range(&self) -> Range<u64> {
        self.start() + self.from as u64..self.start() + self.to as u64
    }

    fn len(&self) -> u64 {
        (self.to - self.from) as u64
    }
}

impl Pages {
    pub(super) fn new(wsize: u32, find: Find) -> Self {
        Self {
            wsize: u64::from(wsize).max(PAGE_BYTES),
            age: 0,
            nodes: Vec::new(),
            free: Vec::new(),
            head: NONE,
            tail: NONE,
            hash: (find == Find::Hash).then(HashMap::new),
            dirty: BTreeMap::new(),
            under_way: HashMap::new(),
            unanswered: Ages::default(),
            unstable: Ages::default(),
            unstable_bytes: 0,
            requests: 0,
            epoch: 1,
        }
    }

    /// The request of a page (_nfs_find_request).
    fn find(&self, page: u64) -> Option<usize> {
        if let Some(hash) = &self.hash {
            return hash.get(&page).copied();
        }
        let mut at = self.head;
        while at != NONE {
            let request = &self.nodes[at];
            if request.page >= page {
                return (request.page == page).then_some(at);
            }
            at = request.next;
        }
        None
    }

    /// Puts a request into the list, from its end.
    fn link(&mut self, request: Request) -> usize {
        let page = request.page;
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at] = request;
                at
            }
            None => {
                self.nodes.push(request);
                self.nodes.len() - 1
            }
        };
        let mut before = self.tail;
        while before != NONE && self.nodes[before].page > page {
            before = self.nodes[before].previous;
        }
        let after = if before == NONE { self.head } else { self.nodes[before].next };
        self.nodes[at].previous = before;
        self.nodes[at].next = after;
        match before {
            NONE => self.head = at,
            before => self.nodes[before].next = at,
        }
        match after {
            NONE => self.tail = at,
            after => self.nodes[after].previous = at,
        }
        if let Some(hash) = &mut self.hash {
            hash.insert(page, at);
        }
        self.requests += 1;
        at
    }

    fn unlink(&mut self, at: usize) {
        let Request { previous, next, page, .. } = self.nodes[at];
        match previous {
            NONE => self.head = next,
            previous => self.nodes[previous].next = next,
        }
        match next {
            NONE => self.tail = previous,
            next => self.nodes[next].previous = previous,
        }
        if let Some(hash) = &mut self.hash {
            hash.remove(&page);
        }
        self.free.push(at);
        self.requests -= 1;
        if self.requests == 0 {
            // A file that was large once does not keep its nodes.
            self.nodes = Vec::new();
            self.free = Vec::new();
        }
    }

    /// Takes a request out of the sums of its state.
    fn leave(&mut self, at: usize) {
        let request = &self.nodes[at];
        match request.state {
            State::Dirty => {
                self.dirty.remove(&request.page);
                self.unanswered.remove(request.age);
            }
            State::Locked => self.unanswered.remove(request.age),
            State::Unstable => {
                self.unstable_bytes -= request.len();
                self.unstable.remove(request.age);
            }
        }
    }

    fn enter(&mut self, at: usize, state: State) {
        let request = &mut self.nodes[at];
        request.state = state;
        match state {
            State::Dirty => {
                self.dirty.insert(request.page, at);
                self.unanswered.add(request.age);
            }
            State::Locked => self.unanswered.add(request.age),
            State::Unstable => {
                self.unstable_bytes += request.len();
                self.unstable.add(request.age);
            }
        }
    }

    /// All requests in the order of the list.
    fn all(&self) -> Vec<usize> {
        let mut all = Vec::with_capacity(self.requests);
        let mut at = self.head;
        while at != NONE {
            all.push(at);
            at = self.nodes[at].next;
        }
        all
    }

    /// A request leaves the wire: what of it has been acknowledged, and by what promise.
    fn answer(&mut self, at: usize, until: usize, promise: Promise) {
        self.leave(at);
        let epoch = self.epoch;
        let request = &mut self.nodes[at];
        match promise {
            Promise::Stable if request.done == request.from => request.from = until,
            // A part before it is still unstable: the rest shares its fate.
            Promise::Stable => request.epoch = epoch,
            Promise::Unstable { verifier } => {
                if request.done > request.from && request.verifier != verifier {
                    // The server has lost the part before it.
                    request.done = request.from;
                    request.verifier = verifier;
                    self.settle(at);
                    return;
                }
                (request.verifier, request.epoch) = (verifier, epoch);
            }
        }
        request.done = until;
        self.settle(at);
    }

    /// A request that is in no state goes to the one it belongs to.
    fn settle(&mut self, at: usize) {
        let request = &mut self.nodes[at];
        request.to = request.to.min(request.cut);
        request.done = request.done.clamp(request.from, request.to.max(request.from));
        request.cut = PAGE;
        if request.from >= request.to {
            self.unlink(at);
        } else if request.done < request.to {
            self.enter(at, State::Dirty);
        } else {
            self.enter(at, State::Unstable);
        }
    }
}

impl Index for Pages {
    fn age(&self) -> u64 {
        self.age
    }

    fn charge(&self, offset: u64, len: usize) -> u64 {
        let within = offset % PAGE_BYTES;
        (within + len as u64).div_ceil(PAGE_BYTES) * PAGE_BYTES
    }

    fn insert(&mut self, offset: u64, data: &Data<'_>, caller: u32) -> Result<(), Busy> {
        let mut at = 0;
        while at < data.len() {
            let start = offset + at as u64;
            let from = usize::try_from(start % PAGE_BYTES).unwrap_or(0);
            let len = (PAGE - from).min(data.len() - at);
            self.insert_in_page(start / PAGE_BYTES, from, &data.as_slice()[at..at + len], caller)?;
            at += len;
        }
        Ok(())
    }

    fn is_ready(&self, urgent_age: u64) -> bool {
        let wsize_pages = usize::try_from(self.wsize / PAGE_BYTES).unwrap_or(usize::MAX);
        let is_urgent = || self.unanswered.oldest().is_some_and(|age| age <= urgent_age);
        !self.dirty.is_empty() && (self.dirty.len() >= wsize_pages || is_urgent())
    }

    fn take(&mut self, bytes_max: u32, urgent_age: u64) -> Option<Chunk> {
        if !self.is_ready(urgent_age) {
            return None;
        }
        let bytes_max = u64::from(bytes_max).min(self.wsize);
        let mut run: Vec<usize> = Vec::new();
        let mut bytes = 0;
        let (_, &first) = self.dirty.first_key_value()?;
        let mut at = first;
        while at != NONE {
            let request = &self.nodes[at];
            let begins = if run.is_empty() { request.done } else { request.from };
            let len = (request.to - begins) as u64;
            let joins = run.last().is_none_or(|&last| {
                let last = &self.nodes[last];
                last.to == PAGE
                    && request.page == last.page + 1
                    && request.from == 0
                    && request.done == 0
                    && request.caller == last.caller
                    && bytes + len <= bytes_max
            });
            if request.state != State::Dirty || !joins {
                break;
            }
            run.push(at);
            bytes += len;
            at = request.next;
        }
        let first = &self.nodes[*run.first()?];
        let (offset, caller) = (first.start() + first.done as u64, first.caller);
        let mut data = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        for &at in &run {
            let request = &self.nodes[at];
            data.extend_from_slice(&request.data[request.done..request.to]);
            self.leave(at);
            self.enter(at, State::Locked);
        }
        self.under_way.insert(offset, run);
        Some(Chunk { offset, data: Bytes::from(data), caller })
    }

    fn written(&mut self, offset: u64, count: u32, promise: Promise) {
        let Some(run) = self.under_way.remove(&offset) else { return };
        let end = offset + u64::from(count);
        for at in run {
            let request = &self.nodes[at];
            let until = end.clamp(request.start() + request.done as u64, request.range().end);
            let until = usize::try_from(until - request.start()).unwrap_or(PAGE);
            if until > request.done {
                self.answer(at, until, promise);
            } else {
                self.leave(at);
                self.settle(at);
            }
        }
    }

    fn failed(&mut self, offset: u64) -> u64 {
        let Some(run) = self.under_way.remove(&offset) else { return 0 };
        let mut dropped_bytes = 0;
        for at in run {
            dropped_bytes += self.nodes[at].len();
            self.leave(at);
            self.unlink(at);
        }
        dropped_bytes
    }

    fn begin_commit(&mut self) {
        self.epoch += 1;
    }

    fn committed(&mut self, verifier: [u8; 8]) -> u64 {
        let mut lost_bytes = 0;
        for at in self.all() {
            let request = &self.nodes[at];
            if request.state != State::Unstable || request.epoch >= self.epoch {
                continue;
            }
            self.leave(at);
            if self.nodes[at].verifier == verifier {
                self.unlink(at);
            } else {
                lost_bytes += self.nodes[at].len();
                self.nodes[at].done = self.nodes[at].from;
                self.settle(at);
            }
        }
        lost_bytes
    }

    fn commit_failed(&mut self) -> u64 {
        let mut dropped_bytes = 0;
        for at in self.all() {
            let request = &self.nodes[at];
            if request.state == State::Unstable && request.epoch < self.epoch {
                dropped_bytes += request.len();
                self.leave(at);
                self.unlink(at);
            }
        }
        dropped_bytes
    }

    fn discard(&mut self, from: u64) {
        for at in self.all() {
            let request = &mut self.nodes[at];
            if request.start() + PAGE_BYTES <= from {
                continue;
            }
            let cut = usize::try_from(from.saturating_sub(request.start())).unwrap_or(PAGE);
            if request.state == State::Locked {
                request.cut = request.cut.min(cut);
            } else {
                self.leave(at);
                self.nodes[at].cut = cut;
                self.settle(at);
            }
        }
    }

    fn is_unanswered(&self, range: &Range<u64>, age: u64) -> bool {
        self.all().into_iter().any(|at| {
            let request = &self.nodes[at];
            let own = request.range();
            let overlaps = own.start < range.end && range.start < own.end;
            request.state != State::Unstable && request.age <= age && overlaps
        })
    }

    fn dirty_end(&self) -> Option<u64> {
        let mut at = self.tail;
        while at != NONE && self.nodes[at].state == State::Unstable {
            at = self.nodes[at].previous;
        }
        (at != NONE).then(|| self.nodes[at].range().end)
    }

    fn unstable(&self, range: &Range<u64>) -> Vec<(u64, Bytes)> {
        let parts = self.all().into_iter().filter_map(|at| {
            let request = &self.nodes[at];
            let own = request.range();
            let within = own.start.max(range.start)..own.end.min(range.end);
            if request.state != State::Unstable || within.is_empty() {
                return None;
            }
            let at = |place: u64| usize::try_from(place - request.start()).unwrap_or(PAGE);
            let data = &request.data[at(within.start)..at(within.end)];
            Some((within.start, Bytes::copy_from_slice(data)))
        });
        parts.collect()
    }

    fn unstable_callers(&self) -> BTreeSet<u32> {
        let requests = self.all().into_iter().map(|at| &self.nodes[at]);
        let unstable = requests.filter(|request| request.state == State::Unstable);
        unstable.map(|request| request.caller).collect()
    }

    fn unstable_end(&self) -> Option<u64> {
        let mut at = self.tail;
        while at != NONE && self.nodes[at].state != State::Unstable {
            at = self.nodes[at].previous;
        }
        (at != NONE).then(|| self.nodes[at].range().end)
    }

    fn oldest_unanswered(&self) -> Option<u64> {
        self.unanswered.oldest()
    }

    fn oldest_unstable(&self) -> Option<u64> {
        self.unstable.oldest()
    }

    fn sums(&self) -> Sums {
        let held_bytes = self.requests as u64 * PAGE_BYTES;
        Sums {
            // To the page.
            unanswered_bytes: held_bytes.saturating_sub(self.unstable_bytes),
            unstable_bytes: self.unstable_bytes,
            held_bytes,
            held_unstable_bytes: self.unstable_bytes,
            requests: self.requests,
        }
    }
}

impl Pages {
    fn insert_in_page(
        &mut self,
        page: u64,
        from: usize,
        data: &[u8],
        caller: u32,
    ) -> Result<(), Busy> {
        let to = from + data.len();
        // nfs_flush_incompatible: is there one that must be out of the way first?
        if let Some(at) = self.find(page) {
            let request = &self.nodes[at];
            let is_apart = from > request.to || to < request.from;
            if request.state == State::Locked || request.caller != caller || is_apart {
                return Err(Busy);
            }
        }
        self.age += 1;
        // nfs_update_request: is there one to grow?
        let Some(at) = self.find(page) else {
            let request = Request {
                page,
                previous: NONE,
                next: NONE,
                state: State::Dirty,
                from,
                to,
                done: from,
                cut: PAGE,
                age: self.age,
                caller,
                verifier: [0; 8],
                epoch: 0,
                data: Box::new([0; PAGE]),
            };
            let at = self.link(request);
            self.nodes[at].data[from..to].copy_from_slice(data);
            self.enter(at, State::Dirty);
            return Ok(());
        };
        self.leave(at);
        let request = &mut self.nodes[at];
        request.data[from..to].copy_from_slice(data);
        request.from = request.from.min(from);
        request.to = request.to.max(to);
        request.done = request.from;
        self.enter(at, State::Dirty);
        Ok(())
    }
}
