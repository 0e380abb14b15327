//! What a curve is measured on: a server, as this process reaches it.

use client::session::Session;
use futures_util::future::join_all;
use net::clock::Clock;
use wire::nfs3::FileHandle;

use super::share::Share;
use crate::error::Error;
use crate::fileset::{self, FileSet, Layout};
use crate::mix::{self, Outcome, Plan, Ran};
use crate::scratch::directory;
use crate::space;

/// Files that were made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Built {
    pub files: usize,
    /// Of them those that may be touched.
    pub accessed: usize,
    pub bytes: u64,
}

/// A server. Layouts and plans are those of the whole measurement: a subject makes this process's
/// part of them.
pub trait Subject {
    /// Is there room for all of these files?
    ///
    /// # Errors
    /// [`Error::NoRoom`] with what is needed, or the call failed.
    fn check(&mut self, layout: &Layout) -> impl Future<Output = Result<(), Error>>;

    /// Makes files, and takes these from here on.
    ///
    /// # Errors
    /// A call failed.
    fn build(&mut self, layout: &Layout) -> impl Future<Output = Result<Built, Error>>;

    /// A run on this share of the files that may be touched.
    ///
    /// # Errors
    /// It did not begin.
    fn run(&mut self, plan: &Plan, accessed: f64) -> impl Future<Output = Result<Ran, Error>>;
}

/// One generator: connections of its own to a server, and files of its own.
#[derive(Debug)]
pub struct Shard {
    clock: Clock,
    sessions: Vec<Session>,
    /// Where all generators make their files.
    dir: FileHandle,
    share: Share,
    sets: u32,
    files: Option<FileSet>,
}

impl Shard {
    /// Of these sessions, at least one.
    pub fn new(clock: &Clock, sessions: Vec<Session>, dir: FileHandle, share: Share) -> Self {
        Self { clock: clock.clone(), sessions, dir, share, sets: 0, files: None }
    }

    fn session(&self) -> Result<&Session, Error> {
        self.sessions.first().ok_or(Error::TooFew { what: "a curve: there are no sessions" })
    }
}

impl Subject for Shard {
    async fn check(&mut self, layout: &Layout) -> Result<(), Error> {
        space::check(self.session()?, self.dir, layout.need()).await
    }

    async fn build(&mut self, layout: &Layout) -> Result<Built, Error> {
        let session = self.session()?.clone();
        let layout = self.share.layout(layout);
        let name = format!("set-{}-{}", self.share.rank, self.sets);
        self.sets += 1;
        let root = directory(&session, self.dir, name).await?;
        let files = fileset::build(&session, root, &layout).await?;
        let (count, accessed) = files.files();
        let built = Built { files: count, accessed, bytes: files.bytes() };
        self.files = Some(files);
        Ok(built)
    }

    async fn run(&mut self, plan: &Plan, accessed: f64) -> Result<Ran, Error> {
        let Some(own) = self.share.plan(plan) else {
            self.clock.sleep(plan.warm_up + plan.time).await;
            return Ok(Ran {
                outcome: Outcome { span: plan.time, ..Outcome::default() },
                broken: None,
            });
        };
        let files = self.files.take();
        let mut files = files.ok_or(Error::TooFew { what: "a curve: there are no files" })?;
        let (clock, sessions) = (self.clock.clone(), self.sessions.clone());
        let run = async move {
            if let Some(session) = sessions.first()
                && let Err(error) = fileset::cut_back(session, &mut files).await
            {
                return (files, Err(error));
            }
            files.narrow_to(accessed);
            let ran = mix::run_partly(&clock, &sessions, &mut files, &own).await;
            (files, ran)
        };
        let (files, ran) = self.clock.apart(run).await.ok_or(Error::Ended)?;
        self.files = Some(files);
        ran
    }
}

/// Generators that share the calling thread.
#[derive(Debug)]
pub struct Shards(pub Vec<Shard>);

impl Subject for Shards {
    async fn check(&mut self, layout: &Layout) -> Result<(), Error> {
        match self.0.first_mut() {
            Some(first) => first.check(layout).await,
            None => Ok(()),
        }
    }

    async fn build(&mut self, layout: &Layout) -> Result<Built, Error> {
        let built = join_all(self.0.iter_mut().map(|shard| shard.build(layout))).await;
        together(built)
    }

    async fn run(&mut self, plan: &Plan, accessed: f64) -> Result<Ran, Error> {
        let ran = join_all(self.0.iter_mut().map(|shard| shard.run(plan, accessed))).await;
        merged(ran)
    }
}

/// What several generators have made.
///
/// # Errors
/// The first of theirs.
pub fn together(all: Vec<Result<Built, Error>>) -> Result<Built, Error> {
    all.into_iter().try_fold(Built::default(), |sum, built| {
        let Built { files, accessed, bytes } = built?;
        Ok(Built {
            files: sum.files + files,
            accessed: sum.accessed + accessed,
            bytes: sum.bytes + bytes,
        })
    })
}

/// What several generators have run, as one.
///
/// # Errors
/// The first of theirs.
pub fn merged(all: Vec<Result<Ran, Error>>) -> Result<Ran, Error> {
    let mut sum = Ran { outcome: Outcome::default(), broken: None };
    for ran in all {
        let ran = ran?;
        sum.outcome.merge(ran.outcome);
        sum.broken = sum.broken.or(ran.broken);
    }
    Ok(sum)
}
