//! Files that several clients use: each has one that it fills and all read, and a part of one
//! that all write to.

use client::error::Error;
use client::session::Session;
use perf::units::Nanos;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, StableHow};

use super::client::{Actor, UNSURE, at_entry, no_reply, status};
use super::data::take;
use super::failure::Failure;
use crate::plan::{PART_BYTES, Style};
use crate::reference::content::Content;
use crate::reference::tree::How;

/// That a name is missing may be remembered as long as a directory's attributes are good.
const MISSING_MAX: Nanos = Nanos::from_secs(61);

/// Where the shared files are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    shared: FileHandle,
    parts: FileHandle,
}

impl Places {
    /// Finds or makes them, and the client's own directory.
    pub(super) async fn make(
        session: &Session,
        clients: usize,
        number: usize,
    ) -> Result<(Self, FileHandle), Failure> {
        let shared = dir(session, "shared").await?;
        let how = CreateHow::Unchecked(Sattr3::default());
        let parts = session.create(shared, b"parts", how).await.map_err(at_entry)?.obj;
        let parts = parts.ok_or_else(|| Failure::new("entry", "no handle"))?;
        let whole = u64::from(PART_BYTES) * clients as u64;
        let size = Sattr3 { size: Some(whole), ..Sattr3::default() };
        session.setattr(parts, size, None).await.map_err(at_entry)?;
        let home = dir(session, &format!("c{number}")).await?;
        Ok((Self { shared, parts }, home))
    }
}

/// Finds or makes a directory below the root.
pub(super) async fn dir(session: &Session, name: &str) -> Result<FileHandle, Failure> {
    let (root, name) = (session.root(), name.as_bytes());
    let made = session.mkdir(root, name, Sattr3::default()).await;
    match made {
        Ok(_) => {}
        Err(error) if error.status() == Some(NfsStat3::Exist) => {}
        Err(error) => return Err(at_entry(error)),
    }
    Ok(session.lookup(root, name).await.map_err(at_entry)?.object)
}

impl Actor {
    /// Fills the client's own public file with the number of a new session, and closes it.
    pub(super) async fn publish(
        &mut self,
        step: u32,
        bytes: u32,
        style: Style,
    ) -> Result<(), Failure> {
        let (client, since) = (self.number, self.stage.clock.now());
        let number = self.stage.public.lock()[client].opened(since, bytes as usize);
        match self.publish_session(step, bytes, style, number).await {
            Ok(is_done) => {
                let now = self.stage.clock.now();
                if is_done {
                    self.stage.public.lock()[client].closed(now);
                }
                self.note(|| format!("  session {number}"));
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// Gives whether it was closed without an error; one that the disk has made leaves it open.
    async fn publish_session(
        &mut self,
        step: u32,
        bytes: u32,
        style: Style,
        number: u8,
    ) -> Result<bool, Failure> {
        let (name, new) = (format!("s{}", self.number), format!("n{}", self.number));
        let begin = match style {
            Style::Replaced => &new,
            Style::InPlace | Style::Cut => &name,
        };
        let size = (style != Style::InPlace).then_some(0);
        let shared = self.places.shared;
        let since = self.stage.clock.now();
        let made = self.access.create(shared, begin.as_bytes(), How::Unchecked, size, step).await;
        let Some(file) = self.or_excused("create", made, since)? else { return Ok(false) };
        let Some(file) = file else { return Err(Failure::new("create", "no handle")) };
        // From the second half to the first, so that there is a hole meanwhile.
        let mut content = Content::part(bytes as usize);
        for mut range in [bytes / 2..bytes, 0..bytes / 2] {
            while !range.is_empty() {
                let (since, losses) = (self.stage.clock.now(), self.losses());
                let place = u64::from(range.start)..u64::from(range.end);
                let written = self.access.write(file, place, number, StableHow::Unstable).await;
                let Some(taken) = self.or_excused("write", written, since)? else {
                    return Ok(false);
                };
                let whole = range.start as usize..range.end as usize;
                range.start += taken.bytes_of(range.end - range.start);
                take(&mut content, whole, number, StableHow::Unstable, losses, taken)?;
            }
        }
        if style == Style::InPlace {
            let since = self.stage.clock.now();
            let cut = self.access.resize(file, u64::from(bytes)).await;
            if self.or_excused("resize", cut, since)?.is_none() {
                return Ok(false);
            }
        }
        self.commit_all(file, &mut content, 0).await.map_err(|stopped| stopped.failure)?;
        let is_stable = content.is_settled();
        if style == Style::Replaced {
            let since = self.stage.clock.now();
            let (from, to) = ((shared, new.as_bytes()), (shared, name.as_bytes()));
            match self.access.rename(from, to).await {
                // It was done, and the reply lost with the server's memory.
                Err(error)
                    if error.status() == Some(NfsStat3::NoEnt) && self.doubt(since).forgot => {}
                renamed => {
                    if self.or_excused("rename", renamed, since)?.is_none() {
                        return Ok(false);
                    }
                }
            }
        }
        let since = self.stage.clock.now();
        let closed = self.access.close(file).await;
        Ok(self.or_excused("close", closed, since)?.is_some() && is_stable)
    }

    /// None for an error that the disk has made.
    fn or_excused<T>(
        &self,
        verb: &str,
        result: Result<T, Error>,
        since: perf::units::Instant,
    ) -> Result<Option<T>, Failure> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(error) => self.excuse(verb, &error, since).map(|()| None),
        }
    }

    /// Reads the public file of a client, from open to close.
    pub(super) async fn peek(&mut self, of: usize) -> Result<(), Failure> {
        let name = format!("s{of}");
        let began = self.stage.clock.now();
        let mut seen = Err(NfsStat3::Stale);
        // What was replaced is stale, and its name leads elsewhere now.
        for _ in 0..3 {
            seen = match self.peek_once(&name).await {
                Ok(seen) => Ok(seen),
                Err(error) => Err(status(&error)?),
            };
            if !matches!(seen, Err(NfsStat3::Stale)) {
                break;
            }
        }
        let ended = self.stage.clock.now();
        let public = self.stage.public.lock();
        let sessions = &public[of];
        let checked = match &seen {
            Ok(seen) => sessions.check(began, ended, seen),
            Err(status) => {
                let patience = if self.access.is_files() { MISSING_MAX } else { Nanos::ZERO };
                sessions.check_missing(*status, began, ended, patience)
            }
        };
        drop(public);
        let (number, bytes) = (seen.as_ref().ok().and_then(|seen| seen.first()), seen.iter().len());
        self.note(|| format!("  {number:?} {bytes}"));
        checked.map_err(|what| Failure::new("close-to-open", format!("s{of}: {what}")))
    }

    async fn peek_once(&self, name: &str) -> Result<Vec<u8>, Error> {
        let file = self.access.lookup(self.places.shared, name).await?;
        self.access.read_anew(file, 1 << 20).await
    }

    pub(super) async fn write_part(
        &mut self,
        at: u32,
        bytes: u32,
        value: u8,
        stable: StableHow,
    ) -> Result<(), Failure> {
        let (since, losses) = (self.stage.clock.now(), self.losses());
        let from = self.part_at() + u64::from(at);
        let place = from..from + u64::from(bytes);
        let written = self.access.write(self.places.parts, place, value, stable).await;
        let range = at as usize..(at + bytes) as usize;
        match self.or_excused("write", written, since)? {
            Some(taken) => take(&mut self.expected.part, range, value, stable, losses, taken),
            None => {
                if self.access.is_files() {
                    self.expected.part.doubt_all();
                }
                self.expected.part.doubted(range, value);
                Ok(())
            }
        }
    }

    pub(super) async fn commit_part(&mut self) -> Result<(), Failure> {
        let mut part = self.expected.part.clone();
        let committed = self.commit_all(self.places.parts, &mut part, self.part_at()).await;
        self.expected.part = part;
        committed.map_err(|stopped| stopped.failure)
    }

    pub(super) async fn read_part(&mut self) -> Result<(), Failure> {
        let before = self.losses();
        let got = self.access.read(self.places.parts, self.part_at(), PART_BYTES).await;
        let got = got.map_err(no_reply("read"))?;
        let losses = if self.losses() == before { before } else { UNSURE };
        let checked = self.expected.part.check(0, PART_BYTES as usize, &got, losses);
        checked.map_err(|what| Failure::new("read of a part", what))
    }

    fn part_at(&self) -> u64 {
        u64::from(PART_BYTES) * self.number as u64
    }

    /// Closes what is shared.
    pub(super) async fn leave_places(&mut self) -> Result<(), Failure> {
        for file in self.access.opens() {
            let since = self.stage.clock.now();
            let closed = self.access.close(file).await;
            self.or_excused("close", closed, since)?;
        }
        Ok(())
    }
}
