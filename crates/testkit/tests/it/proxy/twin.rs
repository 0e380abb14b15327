//! The same calls to a server and to a proxy of another like it: every answer is the same, with its
//! attributes, states before and after, cookies and verifiers, in both versions and in failures.

use client::error::Error;
use client::ops::DirEntry;
use client::session::Session;
use client::url::Version;
use net::clock::Clock;
use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::MknodData;
use wire::nfs3::{FileHandle, NfsTime, Sattr3, SetTime, StableHow};

use super::{Origin, proxied, session, world};

const SEEDS: u64 = 150;
const STEPS: usize = 60;

/// One side: its files, by the order in which they were met.
struct Side {
    session: Session,
    files: Vec<FileHandle>,
}

/// A call, with files by number.
#[derive(Clone, Debug)]
enum Step {
    Getattr(usize),
    Setattr(usize, Sattr3, Option<NfsTime>),
    Lookup(usize, &'static str),
    Access(usize, u32),
    Readlink(usize),
    Read(usize, u64, u32),
    Write(usize, u64, usize, StableHow),
    Create(usize, &'static str, CreateHow),
    Mkdir(usize, &'static str),
    Symlink(usize, &'static str),
    Mknod(usize, &'static str),
    Remove(usize, &'static str),
    Rmdir(usize, &'static str),
    Rename(usize, &'static str, usize, &'static str),
    Link(usize, usize, &'static str),
    List(usize, bool, u32),
    Fsstat(usize),
    Fsinfo(usize),
    Pathconf(usize),
    Commit(usize),
}

const NAMES: [&str; 8] = ["a", "b", "c", "dir", ".", "..", "", "a name of some length"];

fn step(random: &mut fastrand::Rng, files: usize) -> Step {
    let at = |random: &mut fastrand::Rng| random.usize(..files);
    let file = at(random);
    let name = |random: &mut fastrand::Rng| NAMES[random.usize(..NAMES.len())];
    let set = |random: &mut fastrand::Rng| Sattr3 {
        mode: random.bool().then(|| random.u32(..0o1000)),
        size: (random.u8(..3) == 0).then(|| random.u64(..100_000)),
        mtime: match random.u8(..3) {
            0 => SetTime::DontChange,
            1 => SetTime::ServerTime,
            _ => SetTime::ClientTime(NfsTime { seconds: random.u32(..), nseconds: 5_000 }),
        },
        ..Sattr3::default()
    };
    match random.u8(..24) {
        0 => Step::Getattr(file),
        1 => Step::Setattr(file, set(random), None),
        2 => Step::Setattr(file, set(random), Some(NfsTime { seconds: 1, nseconds: 2 })),
        3 | 4 => Step::Lookup(file, name(random)),
        5 => Step::Access(file, random.u32(..0x80)),
        6 => Step::Readlink(file),
        7 | 8 => Step::Read(file, random.u64(..70_000), random.u32(..300_000)),
        9 | 10 => {
            let stable = [StableHow::Unstable, StableHow::DataSync, StableHow::FileSync];
            Step::Write(file, random.u64(..60_000), random.usize(..20_000), stable[at(random) % 3])
        }
        11 | 12 => {
            let how = match random.u8(..3) {
                0 => CreateHow::Unchecked(set(random)),
                1 => CreateHow::Guarded(set(random)),
                _ => CreateHow::Exclusive([random.u8(..3); 8]),
            };
            Step::Create(file, name(random), how)
        }
        13 => Step::Mkdir(file, name(random)),
        14 => Step::Symlink(file, name(random)),
        15 => Step::Mknod(file, name(random)),
        16 => Step::Remove(file, name(random)),
        17 => Step::Rmdir(file, name(random)),
        18 => Step::Rename(file, name(random), at(random), name(random)),
        19 => Step::Link(file, at(random), name(random)),
        20 => Step::List(file, random.bool(), random.u32(200..3_000)),
        21 => Step::Fsstat(file),
        22 => [Step::Fsinfo(file), Step::Pathconf(file)][at(random) % 2].clone(),
        _ => Step::Commit(file),
    }
}

impl Side {
    /// What the call gave, in words that do not depend on handles.
    async fn take(&mut self, step: &Step) -> String {
        let Self { session, files } = self;
        let mut met = None;
        let outcome = match step.clone() {
            Step::Getattr(at) => outcome_of(session.getattr(files[at]).await),
            Step::Setattr(at, set, guard) => {
                outcome_of(session.setattr(files[at], set, guard).await)
            }
            Step::Lookup(at, name) => {
                let found = session.lookup(files[at], name.as_bytes()).await;
                met = found.as_ref().ok().map(|found| found.object);
                outcome_of(found.map(|found| (found.obj_attributes, found.dir_attributes)))
            }
            Step::Access(at, rights) => outcome_of(session.access(files[at], rights).await),
            Step::Readlink(at) => outcome_of(session.readlink(files[at]).await),
            Step::Read(at, offset, count) => {
                let read = session.read(files[at], offset, count).await;
                outcome_of(read.map(|read| (read.file_attributes, read.eof, read.data)))
            }
            Step::Write(at, offset, len, stable) => {
                let data = vec![u8::try_from(len % 251).unwrap(); len].into();
                let written = session.write(files[at], offset, data, stable).await;
                outcome_of(written.map(|written| written.reply))
            }
            Step::Create(at, name, how) => {
                let made = session.create(files[at], name.as_bytes(), how).await;
                outcome_of_new(made, &mut met)
            }
            Step::Mkdir(at, name) => {
                let set = Sattr3::of_mode(0o755);
                outcome_of_new(session.mkdir(files[at], name.as_bytes(), set).await, &mut met)
            }
            Step::Symlink(at, name) => {
                let set = Sattr3::default();
                let made = session.symlink(files[at], name.as_bytes(), set, b"to/where").await;
                outcome_of_new(made, &mut met)
            }
            Step::Mknod(at, name) => {
                let what = MknodData::Fifo(Sattr3::of_mode(0o600));
                outcome_of_new(session.mknod(files[at], name.as_bytes(), what).await, &mut met)
            }
            Step::Remove(at, name) => outcome_of(session.remove(files[at], name.as_bytes()).await),
            Step::Rmdir(at, name) => outcome_of(session.rmdir(files[at], name.as_bytes()).await),
            Step::Rename(from, name, to, new) => {
                let (from, to) = ((files[from], name.as_bytes()), (files[to], new.as_bytes()));
                outcome_of(session.rename(from, to).await)
            }
            Step::Link(at, dir, name) => {
                outcome_of(session.link(files[at], files[dir], name.as_bytes()).await)
            }
            Step::List(at, plus, bytes) => list(session, files[at], plus, bytes).await,
            Step::Fsstat(at) => outcome_of(session.fsstat(files[at]).await),
            Step::Fsinfo(at) => outcome_of(session.fsinfo(files[at]).await),
            Step::Pathconf(at) => outcome_of(session.pathconf(files[at]).await),
            Step::Commit(at) => {
                outcome_of(session.commit(files[at], 0, 0).await.map(|committed| committed.reply))
            }
        };
        self.files.extend(met);
        outcome
    }
}

fn outcome_of<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?} {:?}", error.status().ok_or(&error), error.detail()),
    }
}

fn outcome_of_new(
    made: Result<wire::nfs3::NewObject, Error>,
    met: &mut Option<FileHandle>,
) -> String {
    *met = made.as_ref().ok().and_then(|made| made.obj);
    outcome_of(made.map(|made| (made.obj_attributes, made.dir_wcc)))
}

/// A whole listing: pages may end elsewhere, since handles have other lengths.
async fn list(session: &Session, dir: FileHandle, plus: bool, bytes: u32) -> String {
    let (mut cookie, mut verifier, mut all) = (0, [0; 8], String::new());
    loop {
        let page = match plus {
            true => session.readdirplus(dir, cookie, verifier, bytes, bytes).await,
            false => session.readdir(dir, cookie, verifier, bytes).await,
        };
        let page = match page {
            Ok(page) => page,
            Err(error) => return outcome_of::<()>(Err(error)),
        };
        for DirEntry { fileid, name, cookie: at, attributes, handle } in &page.entries {
            // What is above is answered to LOOKUP alone.
            let known = (name != b"..").then_some((attributes, handle.is_some()));
            all += &format!("{fileid} {} {at} {known:?}\n", name.escape_ascii());
            cookie = *at;
        }
        verifier = page.cookieverf;
        if page.eof {
            return format!("{all}{:?} {verifier:?}", page.dir_attributes);
        }
    }
}

async fn compare(clock: Clock, origin: Origin, seed: u64, towards: Version, behind: Version) {
    let mut random = fastrand::Rng::with_seed(seed);
    let alone =
        testkit::Site::in_memory(&clock, Default::default(), server::CommitMode::Concurrent);
    let proxy = match behind {
        Version::Three => proxied(&clock, &origin).await,
        Version::Two => {
            let session = session(&origin, origin.rpc(), behind).await;
            super::proxy_on(&clock, super::remote_over(&clock, session, None).await)
        }
    };
    let side = |session: Session| Side { files: vec![session.root()], session };
    let mut sides = [
        side(session(&alone, alone.rpc(), towards).await),
        side(session(&proxy, proxy.rpc(), towards).await),
    ];
    for _ in 0..STEPS {
        let step = step(&mut random, sides[0].files.len());
        let [alone, proxied] = &mut sides;
        // Version 3 says INVAL of a directory where version 2 has a word of its own.
        let plain = |outcome: String| match towards == behind {
            true => outcome,
            false => outcome.replace("Ok(IsDir)", "Ok(Inval)"),
        };
        let (expected, seen) = (alone.take(&step).await, proxied.take(&step).await);
        let (expected, seen) = (plain(expected), plain(seen));
        assert_eq!(seen, expected, "seed {seed}, {step:?}");
        assert_eq!(alone.files.len(), proxied.files.len());
    }
}

#[test]
fn a_client_of_version_3_is_answered_as_by_the_origin() {
    for seed in 0..SEEDS {
        world(move |clock, origin| compare(clock, origin, seed, Version::Three, Version::Three));
    }
}

#[test]
fn a_client_of_version_2_is_answered_as_by_the_origin() {
    for seed in 0..SEEDS {
        world(move |clock, origin| compare(clock, origin, seed, Version::Two, Version::Three));
    }
}

#[test]
fn behind_version_2_a_client_of_version_2_is_answered_as_by_the_origin() {
    for seed in 0..SEEDS / 3 {
        world(move |clock, origin| compare(clock, origin, seed, Version::Two, Version::Two));
    }
}
