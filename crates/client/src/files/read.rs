//! Reading an open file: from what was fetched ahead, or from the server.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cache::{Cache, Cause, Token};
use futures_util::future::{BoxFuture, FutureExt, Shared, try_join_all};
use perf::units::{Instant, Nanos};

use super::first::First;
use super::open::Open;
use super::{Acting, Files};
use crate::cache::attributes::Version;
use crate::cache::state::{key, token};
use crate::error::Error;
use crate::read_ahead::budget::Permit;
use crate::read_ahead::streams::{Plan, StreamId, Streams};

/// What an open file has fetched ahead.
#[derive(Debug)]
pub(super) struct Reading {
    streams: Streams<Part>,
    /// What it is of: the data that others have left, and the number of our own changes.
    of: (Option<Version>, u64),
    /// All of the file, if its open has read it.
    pub(super) first: Option<First>,
}

/// The content of a chunk, sooner or later.
#[derive(Clone, Debug)]
struct Part {
    content: Shared<BoxFuture<'static, Result<Bytes, Error>>>,
    /// Room for it, as long as it is held.
    _permit: Arc<Permit>,
}

impl Reading {
    pub(super) fn new(chunk_bytes: u32) -> Self {
        Self { streams: Streams::new(chunk_bytes), of: (None, 0), first: None }
    }

    /// Holds nothing any more; who reads where is remembered.
    pub(super) fn clear(&mut self) {
        self.streams.clear();
        self.first = None;
    }

    fn plan(
        &mut self,
        of: (Option<Version>, u64),
        (offset, count): (u64, u32),
        size: u64,
        oldest: Instant,
    ) -> Plan {
        if self.of != of {
            self.streams.clear();
            self.of = of;
        }
        self.streams.read(offset, count, size, oldest)
    }
}

impl Files {
    /// Room for so many bytes that are held for a reader, if there is.
    pub(super) fn room(&self, bytes: u64) -> Option<Permit> {
        loop {
            if let Some(permit) = self.inner.read_budget.take(bytes) {
                return Some(permit);
            }
            let idle = self.inner.holders.lock().gives_way(self.now())?;
            if let Some(reader) = idle.upgrade() {
                reader.gives_way();
            }
        }
    }
}

impl Open {
    /// Bytes from `offset`; fewer than `count` only at the end of the file.
    ///
    /// # Errors
    /// As the server says.
    pub async fn read(&self, offset: u64, count: u32) -> Result<Bytes, Error> {
        self.is_used();
        let (own, own_end) = self.own(offset, count).await;
        let data = self.read_arrived(offset, count).await?;
        Ok(with_own(data, offset, &own, own_end))
    }

    /// As [`Open::read`], from the server whatever is known or fetched ahead here (O_DIRECT).
    ///
    /// # Errors
    /// As [`Open::read`].
    pub async fn read_past_caches(&self, offset: u64, count: u32) -> Result<Bytes, Error> {
        self.is_used();
        let (own, own_end) = self.own(offset, count).await;
        let (data, _) = self.read_server(&self.acting(), offset, count, None).await?;
        Ok(with_own(data, offset, &own, own_end))
    }

    /// What of these bytes is ours and not stable, once all of it has arrived; and how far the file
    /// reaches by what we have written, as far as these bytes go.
    ///
    /// What has arrived and is not stable may be lost with the server's memory, and what lies
    /// behind these bytes and has not arrived makes the file longer than the server knows.
    async fn own(&self, offset: u64, count: u32) -> (Vec<(u64, Bytes)>, u64) {
        let (files, file) = (self.files(), self.file());
        files.arrive(&file, offset, u64::from(count)).await;
        let write_behind = &files.inner.write_behind;
        let range = offset..offset.saturating_add(u64::from(count));
        let own_end = write_behind.own_end(file).unwrap_or(0).min(range.end);
        (write_behind.unstable(file, &range), own_end)
    }

    /// Bytes from `offset`, as the server has them.
    async fn read_arrived(&self, offset: u64, count: u32) -> Result<Bytes, Error> {
        let (files, file) = (self.files(), self.file());
        let good_for = files.inner.options.times.reg_min;
        let (size, is_good) = {
            let now = files.now();
            let mut state = files.inner.state.lock();
            let is_good = state.attributes.good(&file, now).is_some();
            (state.attributes.last(&file).map_or(0, |last| last.size), is_good)
        };
        if offset < size && good_for > Nanos::ZERO {
            let of = (files.version(&file), self.changes());
            let oldest = files.now() - good_for;
            if let Some(data) = self.read_first(of, oldest, (offset, count))
                && (is_good || data.len() == count as usize)
            {
                return Ok(data);
            }
            let plan = self.reading().lock().plan(of, (offset, count), size, oldest);
            if let Some(stream) = plan.stream
                && let Some(data) = self.read_stream(stream, &plan, offset, count, size).await
                && (is_good || data.len() == count as usize)
            {
                return Ok(data);
            }
        }
        self.read_direct(offset, count).await
    }

    /// Reads from a stream; none when it has not got what it should have.
    async fn read_stream(
        &self,
        stream: StreamId,
        plan: &Plan,
        offset: u64,
        count: u32,
        size: u64,
    ) -> Option<Bytes> {
        self.is_read();
        for &at in plan.needed.iter().chain(&plan.ahead) {
            if !self.fetch_chunk(stream, at) {
                break;
            }
        }
        let end = (offset + u64::from(count)).min(size);
        let mut whole: Option<BytesMut> = None;
        let mut from = offset;
        while from < end {
            let (at, part) = self.reading().lock().streams.chunk(stream, from)?;
            if part.content.peek().is_none() {
                self.reading().lock().streams.waited(stream);
            }
            let content = part.content.await.ok();
            let within = usize::try_from(from - at).ok()?;
            let want = usize::try_from(end - from).ok()?;
            let Some(rest) = content.as_ref().and_then(|content| content.get(within..)) else {
                self.reading().lock().streams.failed(stream, at);
                return None;
            };
            let chunk_bytes = self.reading().lock().streams.chunk_bytes();
            let until = usize::try_from(at + chunk_bytes - from).ok()?;
            let got = rest.len().min(want);
            if got < want.min(until) {
                // The file has become shorter, or longer after this was fetched.
                self.reading().lock().streams.failed(stream, at);
                return None;
            }
            self.reading().lock().streams.taken(stream, at, got as u64);
            let piece = content?.slice(within..within + got);
            from += got as u64;
            match &mut whole {
                None if from == end => return Some(piece),
                None => {
                    let mut begun = BytesMut::with_capacity(want);
                    begun.extend_from_slice(&piece);
                    whole = Some(begun);
                }
                Some(whole) => whole.extend_from_slice(&piece),
            }
        }
        whole.map(BytesMut::freeze)
    }

    /// Begins to fetch a chunk, if there is room for it.
    fn fetch_chunk(&self, stream: StreamId, at: u64) -> bool {
        let files = self.files();
        let chunk_bytes = self.reading().lock().streams.chunk_bytes();
        let Some(permit) = files.room(chunk_bytes) else { return false };
        let mut reading = self.reading().lock();
        let (open, now) = (self.clone(), files.now());
        let content = async move {
            let count = u32::try_from(chunk_bytes).unwrap_or(u32::MAX);
            let (own, own_end) = open.own(at, count).await;
            let data = open.read_direct(at, count).await;
            open.reading().lock().streams.arrived(stream, at, open.files().now());
            // Held longer than our own bytes are: what the server has lost must be in it, too.
            Ok(with_own(data?, at, &own, own_end))
        };
        let content = content.boxed().shared();
        files.inner.clock.spawn(content.clone().map(drop));
        let part = Part { content, _permit: Arc::new(permit) };
        reading.streams.fetching(stream, at, part, now);
        true
    }

    /// Reads as requested, from the local disk if it has the bytes.
    async fn read_direct(&self, offset: u64, count: u32) -> Result<Bytes, Error> {
        let Some(disk) = self.files().disk() else {
            let acting = self.acting();
            return Ok(self.read_server(&acting, offset, count, None).await?.0);
        };
        if let Some(data) = self.read_disk(disk, offset, count).await {
            return Ok(data);
        }
        let acting = self.acting();
        let most = acting.session.sizes_now().read_bytes_max;
        // One READ either way, and its blocks are whole.
        let (from, more) = disk.around(offset, count, most);
        let state = self.files().storable(&self.file());
        let read = self.read_server(&acting, from, more, state.as_ref()).await?;
        let (data, is_of_state) = read;
        if let Some(state) = state.filter(|_| is_of_state) {
            self.files().store(&self.file(), &state, from, &data);
        }
        let skipped = usize::try_from(offset - from).unwrap_or(usize::MAX).min(data.len());
        let end = skipped.saturating_add(count as usize).min(data.len());
        Ok(data.slice(skipped..end))
    }

    /// Bytes from `offset` as the server has them, if the disk has all of them.
    pub(super) async fn read_disk(&self, disk: &Cache, offset: u64, count: u32) -> Option<Bytes> {
        let (files, file) = (self.files(), self.file());
        let Some(state) = files.state(&file) else {
            let fileid = files.last(&file).map_or(0, |last| last.fileid);
            disk.missed(&key(&file)?, fileid, Cause::Unsure);
            return None;
        };
        if offset >= state.size {
            // Whether it is longer by now only the server knows.
            return None;
        }
        let data = disk.read(&key(&file)?, &state, offset, count).await.ok()?;
        if files.validity(&file) == Nanos::ZERO {
            files.fetch(&self.acting(), file).await.ok()?;
        }
        // Also what other replies have of it meanwhile.
        (files.state(&file) == Some(state)).then_some(data)
    }

    /// Reads from the server; gives whether all replies reported that the file was in this state.
    async fn read_server(
        &self,
        acting: &Acting,
        offset: u64,
        count: u32,
        state: Option<&Token>,
    ) -> Result<(Bytes, bool), Error> {
        let most = acting.session.sizes_now().read_bytes_max;
        if count <= most {
            return self.read_part(acting, (offset, count), state).await;
        }
        let parts = (0..count).step_by(most as usize).map(|at| {
            let part = most.min(count - at);
            async move { self.read_part(acting, (offset + u64::from(at), part), state).await }
        });
        let (mut whole, mut is_of_state) = (BytesMut::with_capacity(count as usize), true);
        let parts = try_join_all(parts).await?;
        for ((part, is_of), at) in parts.iter().zip((0..count).step_by(most as usize)) {
            // A part that ends early is the end of the file, or there was one for a moment.
            if whole.len() < at as usize {
                break;
            }
            whole.extend_from_slice(part);
            is_of_state &= *is_of;
        }
        Ok((whole.freeze(), is_of_state))
    }

    /// Reads no more than a READ may ask for; asks again when the server gives less.
    async fn read_part(
        &self,
        acting: &Acting,
        (offset, count): (u64, u32),
        state: Option<&Token>,
    ) -> Result<(Bytes, bool), Error> {
        let (files, file) = (self.files(), self.file());
        let (mut got, mut is_of_state) = (BytesMut::new(), state.is_some());
        loop {
            let sent = files.now();
            let done = u32::try_from(got.len()).unwrap_or(count).min(count);
            let (at, want) = (offset + u64::from(done), count - done);
            let reply = acting.session.read(file, at, want).await;
            let reply = files.heard((&file, sent), reply)?;
            is_of_state &= reply.file_attributes.as_ref().map(token).as_ref() == state;
            files.note(&file, reply.file_attributes, sent);
            let is_whole = reply.data.len() >= want as usize || reply.eof || reply.data.is_empty();
            if is_whole && got.is_empty() {
                return Ok((reply.data, is_of_state));
            }
            got.extend_from_slice(&reply.data);
            if is_whole {
                return Ok((got.freeze(), is_of_state));
            }
        }
    }
}

/// What the server has from `offset` on, with our own bytes in it, up to `own_end` at least: what
/// it has not got between is a hole.
fn with_own(data: Bytes, offset: u64, own: &[(u64, Bytes)], own_end: u64) -> Bytes {
    let place = |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
    let is_there = |(at, bytes): &(u64, Bytes)| {
        data.get(place(*at)..).is_some_and(|rest| rest.starts_with(bytes))
    };
    if own_end.saturating_sub(offset) <= data.len() as u64 && own.iter().all(is_there) {
        return data;
    }
    let mut whole = BytesMut::from(&data[..]);
    whole.resize(whole.len().max(place(own_end)), 0);
    for (at, bytes) in own {
        if let Some(room) = whole.get_mut(place(*at)..).and_then(|room| room.get_mut(..bytes.len()))
        {
            room.copy_from_slice(bytes);
        }
    }
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_bytes_are_put_over_what_the_server_has() {
        let (server, own) = (Bytes::from_static(b"abcdef"), Bytes::from_static(b"XY"));
        let with = |own: &[(u64, Bytes)], end| with_own(server.clone(), 10, own, end);
        assert_eq!(with(&[], 0), b"abcdef"[..]);
        assert_eq!(with(&[], 18), b"abcdef\0\0"[..]);
        assert_eq!(with(&[(11, own.clone())], 13), b"aXYdef"[..]);
        assert_eq!(with(&[(11, own.clone()), (17, own)], 19), b"aXYdef\0XY"[..]);
        let same = with(&[(12, Bytes::from_static(b"cd"))], 14);
        assert_eq!(same.as_ptr(), server.as_ptr(), "nothing is copied");
    }
}
