//! The store beside the kernel: random operations by random callers, each done through the store
//! and, by a thread that has really become the caller, in a twin of the directory. Both must come
//! to the same result, and both trees must stay the same.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode};
use rustix::process::{Gid, Uid};

use super::callers::{TEAM, caller, owner, served};
use super::*;
use crate::store::dir::errno::status;

#[derive(Clone, Debug)]
enum Op {
    Create(Spot, u32),
    MakeDir(Spot, u32),
    Symlink(Spot),
    Remove(Spot),
    RemoveDir(Spot),
    Rename(Spot, Spot),
    Link(Spot, Spot),
    SetMode(Spot, u32),
    SetOwner(Spot, Option<u32>, Option<u32>),
    SetSize(Spot, u64),
    Touch(Spot),
    Read(Spot),
    Write(Spot),
    List(&'static str),
}

/// Directory and name.
type Spot = (&'static str, &'static str);

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % end
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        let index = usize::try_from(self.below(of.len() as u64)).unwrap();
        of[index].clone()
    }
}

const DIRS: [&str; 4] = ["open", "sticky", "shared", "closed"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const MODES: [u32; 8] = [0, 0o600, 0o640, 0o644, 0o666, 0o711, 0o755, 0o777];
const UIDS: [u32; 3] = [4001, 4002, 4003];
const GIDS: [u32; 4] = [TEAM, 5002, 1, 2];

fn people() -> Vec<Caller> {
    vec![
        owner().clone(),
        caller(4001, 2, &[]),
        caller(4002, 1, &[7, TEAM]),
        caller(4003, 2, &[]),
        caller(0, 0, &[]),
    ]
}

fn op(random: &mut Random) -> Op {
    let mut spot = || (random.one(&DIRS), random.one(&NAMES));
    let (at, to) = (spot(), spot());
    let bits = random.one(&MODES);
    let uid = (random.below(2) == 0).then(|| random.one(&UIDS));
    let gid = (random.below(2) == 0).then(|| random.one(&GIDS));
    match random.below(20) {
        0..4 => Op::Create(at, bits),
        4 => Op::MakeDir(at, bits),
        5 => Op::Symlink(at),
        6 | 7 => Op::Remove(at),
        8 => Op::RemoveDir(at),
        9 | 10 => Op::Rename(at, to),
        11 => Op::Link(at, to),
        12 => Op::SetMode(at, bits),
        13 => Op::SetOwner(at, uid, gid),
        14 => Op::SetSize(at, u64::from(bits)),
        15 => Op::Touch(at),
        16 => Op::Read(at),
        17 | 18 => Op::Write(at),
        _ => Op::List(at.0),
    }
}

fn by_store(at: &Fixture, who: &Caller, op: &Op) -> Result<(), Status> {
    let dir = |name: &str| {
        let found = block_on(at.store.lookup(&ME, &at.root(), name.as_bytes()));
        found.result.unwrap().handle
    };
    let file = |(of, name): Spot| {
        let found = block_on(at.store.lookup(who, &dir(of), name.as_bytes()));
        found.result.map(|node| node.handle)
    };
    let set = |spot, changes| block_on(at.store.set_attr(who, &file(spot)?, changes, None)).result;
    let bytes = str::as_bytes;
    match *op {
        Op::Create((of, name), bits) => {
            let how = CreateHow::Guarded(mode(bits));
            block_on(at.store.create(who, &dir(of), bytes(name), how)).result.map(drop)
        }
        Op::MakeDir((of, name), bits) => {
            block_on(at.store.make_dir(who, &dir(of), bytes(name), mode(bits))).result.map(drop)
        }
        Op::Symlink((of, name)) => {
            let none = SetAttr::default();
            block_on(at.store.symlink(who, &dir(of), bytes(name), b"x", none)).result.map(drop)
        }
        Op::Remove((of, name)) => block_on(at.store.remove(who, &dir(of), bytes(name))).result,
        Op::RemoveDir((of, name)) => {
            block_on(at.store.remove_dir(who, &dir(of), bytes(name))).result
        }
        Op::Rename(from, to) => {
            let (from_dir, to_dir) = (dir(from.0), dir(to.0));
            let (from, to) = (bytes(from.1), bytes(to.1));
            block_on(at.store.rename(who, &from_dir, from, &to_dir, to)).result
        }
        Op::Link(from, to) => {
            block_on(at.store.link(who, &file(from)?, &dir(to.0), bytes(to.1))).result
        }
        Op::SetMode(spot, bits) => set(spot, mode(bits)),
        Op::SetOwner(spot, uid, gid) => set(spot, SetAttr { uid, gid, ..SetAttr::default() }),
        Op::SetSize(spot, size) => set(spot, SetAttr { size: Some(size), ..SetAttr::default() }),
        Op::Touch(spot) => {
            let now = SetTime::ToServer;
            set(spot, SetAttr { accessed: now, modified: now, ..SetAttr::default() })
        }
        Op::Read(spot) => block_on(at.store.read(who, &file(spot)?, 0, 10)).result.map(drop),
        Op::Write(spot) => {
            let data = Bytes::from_static(b"data");
            let file = file(spot)?;
            let write = at.store.write(who, &file, 0, data, Stability::Unstable);
            block_on(write).result.map(drop)
        }
        Op::List(of) => {
            let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 1 << 16 };
            block_on(at.store.list(who, &dir(of), from, &mut |_| true)).result.map(drop)
        }
    }
}

/// The same in `root`, by a thread that is `who` in every respect.
fn by_kernel(root: &Path, who: &Caller, op: &Op) -> Result<(), Status> {
    let become_caller = || {
        let gids: Vec<_> = who.gids.iter().map(|&gid| Gid::from_raw(gid)).collect();
        let (uid, gid) = (Uid::from_raw(who.uid), Gid::from_raw(who.gid));
        rustix::thread::set_thread_groups(&gids).unwrap();
        rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
    };
    let act = || {
        become_caller();
        let outcome = do_locally(root, who, op);
        outcome.map_err(|error| status(Errno::from_io_error(&error).unwrap()))
    };
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

fn do_locally(root: &Path, who: &Caller, op: &Op) -> io::Result<()> {
    let at = |(of, name): Spot| root.join(of).join(name);
    let not_regular = |spot: Spot| -> io::Result<()> {
        let file = fs::symlink_metadata(at(spot))?;
        match (file.is_file(), file.is_dir()) {
            (true, _) => Ok(()),
            (_, true) => Err(Errno::ISDIR.into()),
            _ => Err(Errno::INVAL.into()),
        }
    };
    match *op {
        Op::Create(spot, bits) => {
            let mut options = fs::OpenOptions::new();
            let file = options.write(true).create_new(true).mode(bits).open(at(spot))?;
            file.set_permissions(fs::Permissions::from_mode(bits))
        }
        Op::MakeDir(spot, bits) => {
            fs::DirBuilder::new().mode(bits).create(at(spot))?;
            let setgid = fs::metadata(at(spot))?.mode() & 0o2000;
            fs::set_permissions(at(spot), fs::Permissions::from_mode(bits | setgid))
        }
        Op::Symlink(spot) => std::os::unix::fs::symlink("x", at(spot)),
        Op::Remove(spot) => rustix::fs::unlink(at(spot)).map_err(io::Error::from),
        Op::RemoveDir(spot) => fs::remove_dir(at(spot)),
        Op::Rename(from, to) => fs::rename(at(from), at(to)),
        Op::Link(from, to) => match fs::symlink_metadata(at(from))?.is_dir() {
            true => Err(Errno::ISDIR.into()),
            false => fs::hard_link(at(from), at(to)),
        },
        Op::SetMode(spot, bits) => match fs::symlink_metadata(at(spot))?.is_symlink() {
            true => Err(Errno::OPNOTSUPP.into()),
            false => rustix::fs::chmodat(CWD, at(spot), Mode::from(bits), AtFlags::empty())
                .map_err(io::Error::from),
        },
        Op::SetOwner(spot, uid, gid) => {
            fs::symlink_metadata(at(spot))?;
            match (uid, gid) {
                (None, None) => Ok(()),
                _ => std::os::unix::fs::lchown(at(spot), uid, gid),
            }
        }
        Op::SetSize(spot, size) => {
            not_regular(spot)?;
            as_owner_may(who, &at(spot), false, |path| {
                fs::OpenOptions::new().write(true).open(path)?.set_len(size)
            })
        }
        Op::Touch(spot) => {
            let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
            let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(CWD, at(spot), &times, flags).map_err(io::Error::from)
        }
        Op::Read(spot) => {
            not_regular(spot)?;
            as_owner_may(who, &at(spot), true, |path| fs::File::open(path).map(drop))
        }
        Op::Write(spot) => {
            not_regular(spot)?;
            as_owner_may(who, &at(spot), false, |path| {
                let file = fs::OpenOptions::new().write(true).open(path)?;
                std::os::unix::fs::FileExt::write_all_at(&file, b"data", 0)
            })
        }
        Op::List(of) => fs::read_dir(root.join(of)).map(drop),
    }
}

/// A server lets more through than the mode: the owner, and for reading who may run the file.
/// The owner gets it here by giving itself the right for the moment.
fn as_owner_may(
    who: &Caller,
    path: &Path,
    reads: bool,
    action: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let outcome = action(path);
    if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        let file = fs::symlink_metadata(path)?;
        if file.uid() == who.uid {
            fs::set_permissions(path, fs::Permissions::from_mode(file.mode() | 0o600))?;
            let again = action(path);
            fs::set_permissions(path, fs::Permissions::from_mode(file.mode() & 0o7777))?;
            return again;
        }
        let runs = rustix::fs::Access::EXEC_OK;
        if reads && rustix::fs::accessat(CWD, path, runs, AtFlags::empty()).is_ok() {
            return Ok(());
        }
    }
    outcome
}

/// What there is: name to kind and mode, owner, group, links, length.
fn tree(root: &Path) -> BTreeMap<String, (u32, u32, u32, u64, u64)> {
    let mut found = BTreeMap::new();
    for name in DIRS {
        for entry in fs::read_dir(root.join(name)).unwrap() {
            let path = entry.unwrap().path();
            let file = fs::symlink_metadata(&path).unwrap();
            let size = if file.is_file() { file.len() } else { 0 };
            let seen = (file.mode(), file.uid(), file.gid(), file.nlink(), size);
            found.insert(path.strip_prefix(root).unwrap().display().to_string(), seen);
        }
    }
    found
}

fn furnish(root: &Path) {
    for (name, bits, uid, gid) in [
        ("open", 0o777, 0, 0),
        ("sticky", 0o1777, 4002, 0),
        ("shared", 0o2775, 4001, TEAM),
        ("closed", 0o751, 4001, TEAM),
    ] {
        let path = root.join(name);
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
    }
}

fn compare(seed: u64, options: DirOptions) {
    let Some(at) = served(options) else {
        return;
    };
    // Only a thread of root loses its capabilities when it becomes another in all respects.
    if !is_privileged() {
        not_tested("the kernel beside the store: this process is not root");
        return;
    }
    let twin = at.outside("twin");
    fs::create_dir(&twin).unwrap();
    for path in [at.place.path(), twin.parent().unwrap(), &twin] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    furnish(&at.path(""));
    furnish(&twin);
    let mut random = Random(seed);
    for step in 0..600 {
        let (who, op) = (random.one(&people()), op(&mut random));
        let ours = by_store(&at, &who, &op);
        act_as_server();
        let theirs = by_kernel(&twin, &who, &op);
        assert_eq!(ours, theirs, "seed {seed:#x}, step {step}: {op:?} by {who:?}");
        let trees = (tree(&at.path("")), tree(&twin));
        assert_eq!(trees.0, trees.1, "seed {seed:#x}, step {step}: {op:?} by {who:?}");
    }
}

#[test]
fn the_store_decides_as_the_kernel_does() {
    for seed in [1, 0x5eed] {
        for handles in [HandleChoice::Best, HandleChoice::Table] {
            for open_files_max in [None, Some(3)] {
                compare(seed, DirOptions { handles, open_files_max, ..DirOptions::default() });
            }
        }
    }
}
