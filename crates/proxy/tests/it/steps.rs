//! What a client does, step by step, with the same done to a model: a store in memory that nobody
//! kills. A step that a proxy was killed in is done again, as a client does; it may have been done.

use bytes::Bytes;
use server::store::Store;
use server::store::mem::MemStore;
use server::types::{CreateHow, FileKind, Handle, SetAttr, SetTime, Stability, Status, Time};

use crate::stage::{Proxy, root};

/// A file by its name at the proxy and in the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) here: Handle,
    model: Handle,
    fileid: u64,
    is_dir: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create { dir: usize, name: String, is_exclusive: bool },
    MakeDir { dir: usize, name: String },
    Symlink { dir: usize, name: String },
    Write { file: usize, offset: u64, len: usize, fill: u8 },
    Truncate { file: usize, size: u64 },
    Mode { file: usize, mode: u32 },
    Modified { file: usize, time: Time },
    Remove { dir: usize, name: String },
    RemoveDir { dir: usize, name: String },
    Rename { from: (usize, String), to: (usize, String) },
    Link { file: usize, dir: usize, name: String },
}

/// What a client knows.
pub(crate) struct Client {
    pub(crate) model: MemStore,
    /// The root first; what is gone stays.
    pub(crate) known: Vec<Known>,
}

impl Client {
    pub(crate) async fn new<S: Store>(model: MemStore, proxy: &S) -> Self {
        let (here, there) = (proxy.root(), model.root());
        let fileid = proxy.attr(&root(), &here).await.unwrap().fileid;
        let known = vec![Known { here, model: there, fileid, is_dir: true }];
        Self { model, known }
    }

    pub(crate) fn draw(&self, random: &mut fastrand::Rng) -> Step {
        let is_dir: Vec<_> = self.known.iter().map(|known| known.is_dir).collect();
        draw(&is_dir, random)
    }

    /// Does a step at the proxy.
    pub(crate) async fn act<S: Store>(
        &self,
        proxy: &S,
        step: &Step,
    ) -> Result<Option<Handle>, Status> {
        act(proxy, step, &|at| self.known[at].here).await
    }

    /// What was done at the proxy is done in the model, and reported the same there; `is_again`: a
    /// proxy was killed in it.
    pub(crate) async fn note<S: Store>(
        &mut self,
        proxy: &S,
        step: &Step,
        outcome: Result<Option<Handle>, Status>,
        is_again: bool,
        seed: u64,
    ) {
        let model = act(&self.model, step, &|at| self.known[at].model).await;
        let was_done = is_again
            && matches!(outcome, Err(Status::Exists | Status::NoEntry | Status::Stale))
            && model.is_ok();
        if !was_done {
            assert_eq!(
                outcome.as_ref().map(Option::is_some),
                model.as_ref().map(Option::is_some),
                "seed {seed}: {step:?}"
            );
        }
        if let Some((dir, name)) = made(step)
            && let Ok(Some(there)) = model
        {
            let here = match outcome {
                Ok(Some(here)) => here,
                _ => {
                    let dir = self.known[*dir].here;
                    let found = proxy.lookup(&root(), &dir, name.as_bytes()).await;
                    found
                        .result
                        .unwrap_or_else(|why| panic!("seed {seed}: {step:?} {why:?}"))
                        .handle
                }
            };
            let attr = proxy.attr(&root(), &here).await;
            let attr = attr.unwrap_or_else(|why| panic!("seed {seed}: {step:?} {why:?}"));
            let is_dir = attr.kind == FileKind::Directory;
            self.known.push(Known { here, model: there, fileid: attr.fileid, is_dir });
        }
    }

    /// A file looks as it does in the model, and has the number that it always had.
    pub(crate) async fn compare(&self, proxy: &Proxy, at: usize, seed: u64) {
        let Known { here, model, fileid, is_dir } = self.known[at];
        let seen = proxy.attr(&root(), &here).await;
        let right = self.model.attr(&root(), &model).await;
        let (seen, right) = match (seen, right) {
            (Ok(seen), Ok(right)) => (seen, right),
            (seen, right) => {
                // What is removed may be reported as long as its removal is on its way.
                let may_differ = seen.is_ok() && proxy.pending() > 0;
                let is_same = seen.is_ok() == right.is_ok();
                assert!(is_same || may_differ, "seed {seed}: {at}: {seen:?} {right:?}");
                return;
            }
        };
        assert_eq!(seen.fileid, fileid, "seed {seed}: a file has one number");
        // How many names a file has may have been counted twice by the next proxy.
        let links = |attr: &server::types::Attr| if proxy.pending() == 0 { attr.links } else { 0 };
        let same = |attr: &server::types::Attr| (attr.kind, attr.mode, links(attr));
        assert_eq!(same(&seen), same(&right), "seed {seed}: {at}");
        if !is_dir && seen.kind == FileKind::Regular {
            assert_eq!(seen.size, right.size, "seed {seed}: {at}");
            let seen = proxy.read(&root(), &here, 0, 1 << 16).await.result.unwrap();
            let right = self.model.read(&root(), &model, 0, 1 << 16).await.result.unwrap();
            assert!(seen.data == right.data, "seed {seed}: the bytes of {at}");
            assert_eq!(seen.eof, right.eof, "seed {seed}");
        } else if is_dir {
            let seen = crate::stage::names(proxy, &here).await;
            let right = crate::stage::names(&self.model, &model).await;
            assert_eq!(seen, right, "seed {seed}: the names in {at}");
        }
    }
}

/// A step with what is known, of which these are directories; the first is.
pub(crate) fn draw(is_dir: &[bool], random: &mut fastrand::Rng) -> Step {
    let dirs: Vec<_> = (0..is_dir.len()).filter(|at| is_dir[*at]).collect();
    let files: Vec<_> = (0..is_dir.len()).filter(|at| !is_dir[*at]).collect();
    let dir = dirs[random.usize(..dirs.len())];
    let name = format!("n{}", random.u8(..8));
    let other = (dirs[random.usize(..dirs.len())], format!("n{}", random.u8(..8)));
    let file = (!files.is_empty()).then(|| files[random.usize(..files.len())]);
    match (random.u8(..20), file) {
        (0..=4, _) | (_, None) => Step::Create { dir, name, is_exclusive: random.bool() },
        (5, _) => Step::MakeDir { dir, name },
        (6, _) => Step::Symlink { dir, name },
        (7..=11, Some(file)) => Step::Write {
            file,
            offset: random.u64(..6000),
            len: random.usize(1..5000),
            fill: random.u8(1..),
        },
        (12, Some(file)) => Step::Truncate { file, size: random.u64(..6000) },
        (13, Some(file)) => Step::Mode { file, mode: random.u32(..0o1000) },
        (14, Some(file)) => {
            Step::Modified { file, time: Time { secs: random.i64(1..1 << 31), nanos: 0 } }
        }
        (15..=16, _) => Step::Remove { dir, name },
        (17, _) => Step::RemoveDir { dir, name },
        (18, _) => Step::Rename { from: (dir, name), to: other },
        (_, Some(file)) => Step::Link { file, dir, name },
    }
}

fn made(step: &Step) -> Option<(&usize, &String)> {
    match step {
        Step::Create { dir, name, .. }
        | Step::MakeDir { dir, name }
        | Step::Symlink { dir, name } => Some((dir, name)),
        _ => None,
    }
}

pub(crate) async fn act<S: Store>(
    store: &S,
    step: &Step,
    handle: &(dyn Fn(usize) -> Handle + Sync),
) -> Result<Option<Handle>, Status> {
    let me = root();
    let mode = SetAttr { mode: Some(0o644), ..SetAttr::default() };
    let some = |made: server::store::Node| Some(made.handle);
    match step {
        Step::Create { dir, name, is_exclusive } => {
            let how = match is_exclusive {
                true => CreateHow::Exclusive([name.as_bytes()[1]; 8]),
                false => CreateHow::Guarded(mode),
            };
            store.create(&me, &handle(*dir), name.as_bytes(), how).await.result.map(some)
        }
        Step::MakeDir { dir, name } => {
            store.make_dir(&me, &handle(*dir), name.as_bytes(), mode).await.result.map(some)
        }
        Step::Symlink { dir, name } => {
            let dir = handle(*dir);
            let link = store.symlink(&me, &dir, name.as_bytes(), b"to", SetAttr::default());
            link.await.result.map(some)
        }
        Step::Write { file, offset, len, fill } => {
            let data = Bytes::from(vec![*fill; *len]);
            let stable = Stability::FileSync;
            let written = store.write(&me, &handle(*file), *offset, data, stable).await;
            written.result.map(|_| None)
        }
        Step::Truncate { file, size } => {
            let set = SetAttr { size: Some(*size), ..SetAttr::default() };
            store.set_attr(&me, &handle(*file), set, None).await.result.map(|()| None)
        }
        Step::Mode { file, mode } => {
            let set = SetAttr { mode: Some(*mode), ..SetAttr::default() };
            store.set_attr(&me, &handle(*file), set, None).await.result.map(|()| None)
        }
        Step::Modified { file, time } => {
            let set = SetAttr { modified: SetTime::To(*time), ..SetAttr::default() };
            store.set_attr(&me, &handle(*file), set, None).await.result.map(|()| None)
        }
        Step::Remove { dir, name } => {
            store.remove(&me, &handle(*dir), name.as_bytes()).await.result.map(|()| None)
        }
        Step::RemoveDir { dir, name } => {
            store.remove_dir(&me, &handle(*dir), name.as_bytes()).await.result.map(|()| None)
        }
        Step::Rename { from, to } => {
            let (from_dir, to_dir) = (handle(from.0), handle(to.0));
            let (from, to) = (from.1.as_bytes(), to.1.as_bytes());
            store.rename(&me, &from_dir, from, &to_dir, to).await.result.map(|()| None)
        }
        Step::Link { file, dir, name } => {
            let (file, dir) = (handle(*file), handle(*dir));
            store.link(&me, &file, &dir, name.as_bytes()).await.result.map(|()| None)
        }
    }
}
