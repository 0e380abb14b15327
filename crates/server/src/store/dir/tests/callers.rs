//! With whose rights operations run. Needs privilege: without it these tests are left out and say
//! so, and fail where `CI` is set.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::LazyLock;

use rustix::fs::Access as May;

use super::*;
use crate::types::Access;

pub(super) const OWNER: u32 = 4001;
pub(super) const FRIEND: u32 = 4002;
pub(super) const STRANGER: u32 = 4003;
pub(super) const TEAM: u32 = 5001;
const CLUB: u32 = 5002;

pub(super) fn caller(uid: u32, gid: u32, gids: &[u32]) -> Caller {
    Caller { uid, gid, gids: gids.to_vec() }
}

pub(super) fn owner() -> &'static Caller {
    static WHO: LazyLock<Caller> = LazyLock::new(|| caller(OWNER, TEAM, &[CLUB]));
    &WHO
}

fn friend() -> &'static Caller {
    static WHO: LazyLock<Caller> = LazyLock::new(|| caller(FRIEND, 1, &[7, TEAM]));
    &WHO
}

fn stranger() -> &'static Caller {
    static WHO: LazyLock<Caller> = LazyLock::new(|| caller(STRANGER, 2, &[]));
    &WHO
}

/// A store whose root is open to all; `None`, loudly, where the process may not be others.
pub(super) fn served(options: DirOptions) -> Option<Fixture> {
    let never = MetadataSync::Never;
    let options = DirOptions { identity: Identity::Best, metadata_sync: never, ..options };
    let at = Fixture::new(options);
    if !at.store.acts_as_callers() {
        assert!(std::env::var_os("CI").is_none(), "this machine must be able to act as others");
        not_tested("acting as callers: this process may not");
        return None;
    }
    fs::set_permissions(at.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    Some(at)
}

fn each(test: impl Fn(Fixture)) {
    for handles in [HandleChoice::Table, HandleChoice::Best] {
        for open_files_max in [None, Some(3)] {
            let options = DirOptions { handles, open_files_max, ..DirOptions::default() };
            if let Some(at) = served(options) {
                test(at);
            }
        }
    }
}

/// Who can guess a verifier would have another user's programs write to his file.
#[test]
fn what_another_has_put_there_is_not_taken_for_an_exclusive_create() {
    each(|at| {
        let root = at.root();
        let make = |who| {
            let how = CreateHow::Exclusive([1, 2, 3, 4, 5, 6, 7, 8]);
            block_on(at.store.create(who, &root, b"lock", how)).result
        };
        let node = make(stranger()).unwrap();
        assert_eq!(make(owner()).unwrap_err(), Status::Exists);
        assert_eq!(make(stranger()).unwrap().handle, node.handle);
    });
}

impl Fixture {
    fn make_as(&self, who: &Caller, name: &str, bits: u32) -> Node {
        let how = CreateHow::Guarded(mode(bits));
        block_on(self.store.create(who, &self.root(), name.as_bytes(), how)).result.unwrap()
    }

    fn dir_as(&self, who: &Caller, name: &str, bits: u32) -> Node {
        let root = self.root();
        let made = self.store.make_dir(who, &root, name.as_bytes(), mode(bits));
        block_on(made).result.unwrap()
    }

    fn read_as(&self, who: &Caller, file: &Node) -> Result<Vec<u8>, Status> {
        let read = block_on(self.store.read(who, &file.handle, 0, 100));
        read.result.map(|extent| extent.data.to_vec())
    }

    fn write_as(&self, who: &Caller, file: &Node) -> Result<u32, Status> {
        let data = Bytes::from_static(b"text");
        let written = self.store.write(who, &file.handle, 0, data, Stability::Unstable);
        block_on(written).result.map(|written| written.count)
    }

    fn set_as(&self, who: &Caller, file: &Node, changes: SetAttr) -> Result<(), Status> {
        block_on(self.store.set_attr(who, &file.handle, changes, None)).result
    }

    fn remove_as(&self, who: &Caller, dir: &Node, name: &str) -> Result<(), Status> {
        block_on(self.store.remove(who, &dir.handle, name.as_bytes())).result
    }

    fn access_as(&self, who: &Caller, file: &Node) -> u32 {
        block_on(self.store.access(who, &file.handle, Access(0x3f))).result.unwrap().0
    }

    fn list_as(&self, who: &Caller, dir: &Node) -> Result<usize, Status> {
        let mut count = 0;
        let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 1 << 16 };
        let mut sink = |entry: Entry<'_>| {
            count += usize::from(entry.node.is_some());
            true
        };
        block_on(self.store.list(who, &dir.handle, from, &mut sink)).result.map(|_| count)
    }
}

const DENIED: Result<u32, Status> = Err(Status::Access);

#[test]
fn what_is_made_belongs_to_who_made_it() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o640);
        let dir = at.dir_as(friend(), "dir", 0o755);
        assert_eq!((file.attr.uid, file.attr.gid, file.attr.mode), (OWNER, TEAM, 0o640));
        assert_eq!((dir.attr.uid, dir.attr.gid), (FRIEND, 1));
        let root = at.root();
        let made = at.store.symlink(stranger(), &root, b"link", b"x", SetAttr::default());
        assert_eq!(block_on(made).result.unwrap().attr.uid, STRANGER);
        let fifo = at.store.make_node(owner(), &root, b"fifo", Special::Fifo, mode(0o600));
        assert_eq!(block_on(fifo).result.unwrap().attr.uid, OWNER);
        assert_eq!(fs::metadata(at.path("file")).unwrap().uid(), OWNER);
    });
}

#[test]
fn owner_group_and_others_have_what_the_mode_says_whoever_opened_the_file_before() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o640);
        // The descriptor of the CREATE, open for reading and writing, stays open.
        assert_eq!(at.write_as(owner(), &file), Ok(4));
        assert_eq!(at.read_as(friend(), &file).unwrap(), b"text");
        assert_eq!(at.write_as(friend(), &file), DENIED);
        assert_eq!(at.read_as(stranger(), &file), Err(Status::Access));
        assert_eq!(at.write_as(stranger(), &file), DENIED);
        assert_eq!(at.read_as(&ME, &file).unwrap(), b"text");
        assert_eq!(at.write_as(&ME, &file), Ok(4));
        let commit = |who: &Caller| block_on(at.store.commit(who, &file.handle, 0, 0)).result;
        assert!(commit(owner()).is_ok());
        assert_eq!(commit(friend()).unwrap_err(), Status::Access);
        assert_eq!(at.access_as(owner(), &file), Access::READ | Access::MODIFY | Access::EXTEND);
        assert_eq!(at.access_as(friend(), &file), Access::READ);
        assert_eq!(at.access_as(stranger(), &file), 0);
        // Only the caller's own list of groups counts.
        assert_eq!(at.read_as(&caller(FRIEND, 1, &[7]), &file), Err(Status::Access));
    });
}

#[test]
fn a_change_of_mode_counts_at_once() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o644);
        for _ in 0..20 {
            assert!(at.read_as(stranger(), &file).is_ok());
            at.set_as(owner(), &file, mode(0o600)).unwrap();
            assert_eq!(at.read_as(stranger(), &file), Err(Status::Access));
            assert_eq!(at.access_as(stranger(), &file), 0);
            act_as_server();
            fs::set_permissions(at.path("file"), fs::Permissions::from_mode(0o644)).unwrap();
            assert_eq!(at.access_as(stranger(), &file), Access::READ);
        }
    });
}

#[test]
fn an_answer_that_is_remembered_is_dropped_when_the_file_changes() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o644);
        // Long ago, so that answers are cached.
        let object = at.store.tree.object(&file.handle).unwrap();
        if object.stat().unwrap().attr().changed.nanos == 0 {
            // Whole seconds: the next change may have the same time, and nothing is learnt so soon.
            assert!(at.read_as(stranger(), &file).is_ok());
            at.set_as(owner(), &file, mode(0o600)).unwrap();
            assert_eq!(at.read_as(stranger(), &file), Err(Status::Access));
            return;
        }
        let long_ago = |bits| {
            let stat = object.stat().unwrap();
            object.rights.lock().learn(stranger(), stat.attr().changed, May::READ_OK, bits);
        };
        long_ago(true);
        assert!(at.read_as(stranger(), &file).is_ok());
        at.set_as(owner(), &file, mode(0o600)).unwrap();
        assert_eq!(at.read_as(stranger(), &file), Err(Status::Access));
        long_ago(false);
        at.set_as(owner(), &file, mode(0o604)).unwrap();
        assert!(at.read_as(stranger(), &file).is_ok());
    });
}

/// A file's change time does not tell whether its file system is read-only.
#[test]
fn a_file_system_that_was_read_only_for_a_while_leaves_nobody_locked_out() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("export");
    fs::create_dir(&root).unwrap();
    let Some(_mount) = Mount::tmpfs(root.clone(), "size=1m") else { return };
    let options = DirOptions { identity: Identity::Callers, ..DirOptions::default() };
    let Ok(store) = DirStore::open(&root, &options) else { return };
    let at = Fixture { store, options, place };
    act_as_server();
    fs::write(at.path("file"), "").unwrap();
    fs::set_permissions(at.path("file"), fs::Permissions::from_mode(0o664)).unwrap();
    std::os::unix::fs::chown(at.path("file"), Some(OWNER), Some(TEAM)).unwrap();
    let remount = |how: &str| {
        act_as_server();
        let mut mount = std::process::Command::new("mount");
        assert!(mount.args(["-o", how]).arg(&root).status().unwrap().success());
    };
    let file = at.lookup(&at.root(), "file").unwrap();
    let changed = file.attr.changed;
    while !rights::is_settled(changed) {
        thread::yield_now();
    }
    remount("remount,ro");
    assert_eq!(at.access_as(friend(), &file), Access::READ);
    assert_eq!(at.write_as(friend(), &file), Err(Status::ReadOnly));
    remount("remount,rw");
    assert_eq!(at.write_as(friend(), &file), Ok(4));
    assert_eq!(at.access_as(friend(), &file), Access::READ | Access::MODIFY | Access::EXTEND);
}

#[test]
fn its_owner_may_write_and_read_a_file_whatever_its_mode() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o444);
        at.make_as(owner(), "another", 0o600);
        assert_eq!(at.write_as(owner(), &file), Ok(4));
        let cut = SetAttr { size: Some(2), ..SetAttr::default() };
        assert_eq!(at.set_as(owner(), &file, cut), Ok(()));
        assert_eq!(at.write_as(friend(), &file), DENIED);
        assert_eq!(at.set_as(friend(), &file, cut), Err(Status::Access));
        at.set_as(owner(), &file, mode(0)).unwrap();
        assert_eq!(at.read_as(owner(), &file).unwrap(), b"te");
        assert_eq!(at.access_as(owner(), &file), 0, "ACCESS says what the bits say");
    });
}

#[test]
fn who_may_run_a_program_may_read_it() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o711);
        assert!(at.read_as(stranger(), &file).is_ok());
        assert_eq!(at.write_as(stranger(), &file), DENIED);
    });
}

#[test]
fn directories_are_searched_listed_and_changed_by_those_who_may() {
    each(|at| {
        let dir = at.dir_as(owner(), "dir", 0o751);
        let how = CreateHow::Guarded(mode(0o644));
        let make = |who: &Caller, name: &str| {
            let made = at.store.create(who, &dir.handle, name.as_bytes(), how);
            block_on(made).result.map(drop)
        };
        make(owner(), "file").unwrap();
        let lookup = |who: &Caller, name: &str| {
            block_on(at.store.lookup(who, &dir.handle, name.as_bytes())).result.map(drop)
        };
        assert_eq!(lookup(stranger(), "file"), Ok(()));
        assert_eq!(at.list_as(stranger(), &dir), Err(Status::Access));
        assert_eq!(at.list_as(friend(), &dir), Ok(3));
        for who in [friend(), stranger()] {
            assert_eq!(make(who, "mine"), Err(Status::Access));
            assert_eq!(at.remove_as(who, &dir, "file"), Err(Status::Access));
        }
        at.set_as(owner(), &dir, mode(0o744)).unwrap();
        for name in ["file", ".", ".."] {
            assert_eq!(lookup(stranger(), name), Err(Status::Access), "{name}");
        }
        assert_eq!(at.list_as(stranger(), &dir), Ok(1), "itself, of the rest the names");
        at.set_as(owner(), &dir, mode(0o700)).unwrap();
        assert_eq!(lookup(friend(), "file"), Err(Status::Access));
    });
}

#[test]
fn a_handle_is_enough_for_a_file_below_a_closed_directory() {
    each(|at| {
        let dir = at.dir_as(owner(), "dir", 0o755);
        let how = CreateHow::Guarded(mode(0o644));
        let made = block_on(at.store.create(owner(), &dir.handle, b"file", how));
        let file = made.result.unwrap();
        at.set_as(owner(), &dir, mode(0o700)).unwrap();
        at.make_as(owner(), "another", 0o600);
        // As with a descriptor that a local process holds open.
        assert!(at.read_as(stranger(), &file).is_ok());
        assert_eq!(at.write_as(stranger(), &file), DENIED);
    });
}

#[test]
fn who_may_write_may_cut_a_file_off_and_move_its_time_of_change_on() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o660);
        at.write_as(owner(), &file).unwrap();
        let modified = SetTime::ToServer;
        let cut = |size| SetAttr { size: Some(size), modified, ..SetAttr::default() };
        assert_eq!(at.set_as(friend(), &file, cut(0)), Ok(()));
        assert_eq!(at.set_as(friend(), &file, cut(0)), Ok(()));
        assert_eq!(at.set_as(stranger(), &file, cut(1)), Err(Status::Access));
        let alone = SetAttr { modified, ..SetAttr::default() };
        assert_eq!(at.set_as(friend(), &file, alone), Err(Status::NotOwner));
    });
}

#[test]
fn only_root_gives_files_away_and_owners_choose_among_their_groups() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o644);
        let give = |uid, gid| SetAttr { uid, gid, ..SetAttr::default() };
        let refused = Err(Status::NotOwner);
        assert_eq!(at.set_as(owner(), &file, give(Some(FRIEND), None)), refused);
        assert_eq!(at.set_as(friend(), &file, give(Some(FRIEND), None)), refused);
        assert_eq!(at.set_as(owner(), &file, give(None, Some(99))), refused);
        assert_eq!(at.set_as(owner(), &file, give(Some(OWNER), Some(CLUB))), Ok(()));
        assert_eq!(at.attr(&file.handle).unwrap().gid, CLUB);
        assert_eq!(at.set_as(friend(), &file, mode(0o666)), refused);
        assert_eq!(at.set_as(&ME, &file, give(Some(FRIEND), Some(99))), Ok(()));
        let attr = at.attr(&file.handle).unwrap();
        assert_eq!((attr.uid, attr.gid), (FRIEND, 99));
    });
}

#[test]
fn times_are_set_to_now_by_those_who_may_write_and_else_by_the_owner() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o664);
        let now = SetAttr { modified: SetTime::ToServer, ..SetAttr::default() };
        let now = SetAttr { accessed: SetTime::ToServer, ..now };
        let then = SetAttr { modified: SetTime::To(Time::default()), ..SetAttr::default() };
        assert_eq!(at.set_as(friend(), &file, now), Ok(()));
        assert_eq!(at.set_as(friend(), &file, then), Err(Status::NotOwner));
        assert_eq!(at.set_as(stranger(), &file, now), Err(Status::Access));
        assert_eq!(at.set_as(owner(), &file, then), Ok(()));
    });
}

#[test]
fn a_sticky_directory_lets_only_owners_remove() {
    each(|at| {
        let dir = at.dir_as(&ME, "dir", 0o1777);
        let how = CreateHow::Guarded(mode(0o666));
        block_on(at.store.create(owner(), &dir.handle, b"file", how)).result.unwrap();
        assert_eq!(at.remove_as(friend(), &dir, "file"), Err(Status::NotOwner));
        let taken = at.store.rename(friend(), &dir.handle, b"file", &dir.handle, b"mine");
        assert_eq!(block_on(taken).result, Err(Status::NotOwner));
        assert_eq!(at.remove_as(owner(), &dir, "file"), Ok(()));
    });
}

#[test]
fn what_is_made_in_a_set_group_id_directory_has_its_group() {
    each(|at| {
        let dir = at.dir_as(owner(), "dir", 0o777);
        let changes = SetAttr { gid: Some(CLUB), mode: Some(0o2777), ..SetAttr::default() };
        at.set_as(&ME, &dir, changes).unwrap();
        let how = CreateHow::Guarded(mode(0o644));
        let file = block_on(at.store.create(stranger(), &dir.handle, b"file", how));
        let file = file.result.unwrap().attr;
        assert_eq!((file.uid, file.gid), (STRANGER, CLUB));
        let below = block_on(at.store.make_dir(stranger(), &dir.handle, b"below", mode(0o755)));
        let below = below.result.unwrap().attr;
        assert_eq!((below.gid, below.mode), (CLUB, 0o2755));
    });
}

#[test]
fn a_write_by_another_takes_set_id_bits_away_and_roots_does_not() {
    each(|at| {
        let file = at.make_as(owner(), "file", 0o666);
        at.set_as(owner(), &file, mode(0o4777)).unwrap();
        at.write_as(&ME, &file).unwrap();
        assert_eq!(at.attr(&file.handle).unwrap().mode, 0o4777);
        at.write_as(friend(), &file).unwrap();
        assert_eq!(at.attr(&file.handle).unwrap().mode, 0o777);
    });
}

#[test]
fn what_is_made_has_the_set_id_bits_of_its_mode_whatever_owner_group_and_size_it_gets() {
    each(|at| {
        let make = |who: &Caller, name: &str, attrs: SetAttr| {
            let how = CreateHow::Guarded(attrs);
            let made = block_on(at.store.create(who, &at.root(), name.as_bytes(), how));
            made.result.unwrap().attr
        };
        let given = SetAttr { uid: Some(OWNER), gid: Some(TEAM), ..mode(0o6755) };
        let attr = make(&ME, "given", given);
        assert_eq!((attr.mode, attr.uid, attr.gid), (0o6755, OWNER, TEAM));
        let own = make(owner(), "own", SetAttr { gid: Some(CLUB), ..mode(0o2755) });
        assert_eq!((own.mode, own.gid), (0o2755, CLUB));
        let long = make(owner(), "long", SetAttr { size: Some(9), ..mode(0o4755) });
        assert_eq!((long.mode, long.size), (0o4755, 9));
        let root = at.root();
        let fifo = at.store.make_node(&ME, &root, b"fifo", Special::Fifo, given);
        assert_eq!(block_on(fifo).result.unwrap().attr.mode, 0o6755);
    });
}

#[test]
fn devices_are_made_by_root_alone() {
    each(|at| {
        let make = |who: &Caller| {
            let what = Special::CharDevice { major: 1, minor: 3 };
            block_on(at.store.make_node(who, &at.root(), b"null", what, mode(0o600))).result
        };
        assert_eq!(make(owner()).unwrap_err(), Status::NotOwner);
        assert_eq!(make(&ME).unwrap().attr.device, (1, 3));
    });
}

#[test]
fn an_id_that_nobody_has_is_refused() {
    each(|at| {
        let how = CreateHow::Guarded(mode(0o644));
        for who in
            [caller(u32::MAX, 1, &[]), caller(1, u32::MAX, &[]), caller(1, 1, &[u32::MAX, 2])]
        {
            let made = block_on(at.store.create(&who, &at.root(), b"file", how));
            assert_eq!(made.result.unwrap_err(), Status::Access);
        }
        at.make_as(owner(), "file", 0o644);
    });
}

#[test]
fn a_store_that_acts_as_the_process_takes_nobody_on() {
    let options = DirOptions { identity: Identity::Process, ..DirOptions::default() };
    let at = Fixture::new(options);
    assert!(!at.store.acts_as_callers());
    let file = at.make_as(owner(), "file", 0o600);
    assert_eq!(file.attr.uid, rustix::process::geteuid().as_raw());
    assert_eq!(at.write_as(stranger(), &file), Ok(4));
}

#[test]
fn the_servers_rights_come_back_when_requested() {
    each(|at| {
        fs::set_permissions(at.path(""), fs::Permissions::from_mode(0o700)).unwrap();
        at.read_as(&ME, &Node { handle: at.root(), attr: at.attr(&at.root()).unwrap() }).ok();
        let denied = block_on(at.store.lookup(stranger(), &at.root(), b"x")).result;
        assert_eq!(denied.unwrap_err(), Status::Access);
        assert!(fs::read_dir(at.path("")).is_err(), "this thread is the stranger still");
        let dir = at.path("");
        let begun_by_it = thread::spawn(move || {
            act_as_server();
            fs::read_dir(dir).is_ok()
        });
        assert!(begun_by_it.join().unwrap(), "it began as the stranger");
        act_as_server();
        assert!(fs::read_dir(at.path("")).is_ok());
    });
}
