//! The file system as a kernel sees it, without one: requests and answers go through a socket
//! instead of /dev/fuse, so that their order is the test's.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use bytes::Bytes;
use client::files::open::Mode;
use client::files::{self, Files};
use client::session::Credential;
use load::study::Subject;
use net::clock::Clock;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use server::store::mem::MemOptions;
use testkit::Site;
use tokio::runtime::Handle;
use wire::nfs3::{Fattr3, Sattr3};

use crate::abi::init::{Agreed, KernelCache};
use crate::abi::request::tests::request;
use crate::abi::request::{Init, O_APPEND, parse};
use crate::caller::Callers;
use crate::device::Device;
use crate::dispatch::{self, Asked};
use crate::fs::FileSystem;
use crate::inflight::{Inflight, Reply};
use crate::notify::{Notifier, Waiting};

/// Asks as the kernel does.
struct Kernel(OwnedFd);

/// What came of it: the number of the request, or 0 and the code of a notice; and the rest.
type Heard = (u64, i32, Vec<u8>);

impl Kernel {
    fn ask(&self, opcode: u32, node: u64, body: &[u8]) {
        self.ask_as(7, opcode, node, body);
    }

    /// The same, where more than one request is under way.
    fn ask_as(&self, unique: u64, opcode: u32, node: u64, body: &[u8]) {
        let mut request = request(opcode, node, body);
        request[8..16].copy_from_slice(&unique.to_ne_bytes());
        send(&self.0, &request, SendFlags::empty()).unwrap();
    }

    /// The end of a request, whatever it was; notices before it are passed over.
    fn ended(&self, unique: u64) -> (i32, Vec<u8>) {
        loop {
            let (of, code, body) = self.hear();
            if of != 0 {
                assert_eq!(of, unique);
                return (-code, body);
            }
        }
    }

    fn hear(&self) -> Heard {
        let mut bytes = vec![0; 1 << 16];
        let (_, length) = recv(&self.0, &mut bytes[..], RecvFlags::empty()).unwrap();
        bytes.truncate(length);
        let code = i32::from_ne_bytes(bytes[4..8].try_into().unwrap());
        (u64_at(&bytes, 8), code, bytes[16..].to_vec())
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn parts(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn own() -> Credential {
    let machine_name = "kernel".to_owned();
    Credential { machine_name, uid: 0, gid: 0, gids: Vec::new() }
}

/// What a test has besides the kernel.
struct Scene {
    runtime: Handle,
    device: Arc<Device>,
    system: Arc<FileSystem>,
    files: Files,
    /// Another client.
    other: Files,
    /// What the kernel is not told, where a test holds it back.
    held: Receiver<Waiting>,
}

/// Serves a memory server of so many bytes to a kernel of the test's, which writes back.
fn served(bytes_max: u64, test: impl FnOnce(&Kernel, &Scene) + Send + 'static) {
    served_with(KernelCache::Writeback, bytes_max, test);
}

fn served_with(
    cache: KernelCache,
    bytes_max: u64,
    test: impl FnOnce(&Kernel, &Scene) + Send + 'static,
) {
    served_as(files::Options::default(), cache, bytes_max, test);
}

fn served_as(
    how: files::Options,
    cache: KernelCache,
    bytes_max: u64,
    test: impl FnOnce(&Kernel, &Scene) + Send + 'static,
) {
    let tells = |device: &Arc<Device>| (Notifier::start(device).unwrap(), mpsc::channel().1);
    served_by(tells, (how, cache), bytes_max, test);
}

fn served_by(
    notifier: impl FnOnce(&Arc<Device>) -> (Notifier, Receiver<Waiting>) + Send + 'static,
    (how, cache): (files::Options, KernelCache),
    bytes_max: u64,
    test: impl FnOnce(&Kernel, &Scene) + Send + 'static,
) {
    let run = async move {
        let clock = Clock::real();
        let options = MemOptions { bytes_max, ..MemOptions::default() };
        let store = testkit::memory_store_of(options, &clock);
        let concurrent = server::CommitMode::Concurrent;
        let site = Site::new(store, &clock, Default::default(), concurrent);
        let client = async |options| {
            let session = site.connect().await.unwrap();
            Files::new(&clock, session, options)
        };
        let (files, other) = (client(how).await, client(files::Options::default()).await);
        let (kernel, ours) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let device = Arc::new(Device::over(ours));
        let (notifier, held) = notifier(&device);
        let agreed = Agreed::with(&Init { flags: u64::MAX, ..Init::default() }, cache);
        let callers = Callers::new(&clock, own(), true);
        let system = FileSystem::new(files.clone(), &clock, callers, notifier, cache, agreed);
        let (runtime, system) = (Handle::current(), Arc::new(system));
        let scene = Scene {
            runtime: runtime.clone(),
            device: Arc::clone(&device),
            system: Arc::clone(&system),
            files,
            other,
            held,
        };
        let inflight = Inflight::new(&clock, &device);
        let serving =
            std::thread::spawn(move || dispatch::run(&device, &system, &inflight, &runtime));
        let asking = std::thread::spawn(move || test(&Kernel(kernel), &scene));
        let (tell, told) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || tell.send((asking.join(), serving.join())).ok());
        let (asked, served) = told.await.unwrap();
        asked.unwrap();
        served.unwrap();
    };
    net::runtime::block_on_threads(2, run).unwrap();
}

const ALL: Mode = Mode { read: true, write: true, truncate: false };

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const OPEN: u32 = 14;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const FLUSH: u32 = 25;
const OPENDIR: u32 = 27;
const GETLK: u32 = 31;
const SETLK: u32 = 32;
const SETLKW: u32 = 33;
const INTERRUPT: u32 = 36;
const CREATE: u32 = 35;
const READDIRPLUS: u32 = 44;
const READ: u32 = 15;
const WRITE: u32 = 16;
const KEEP_CACHE: u64 = 2;
const CACHED: u64 = 1 << 32;
const DIRECT: u64 = 2 << 32;

impl Kernel {
    /// Its answer, which is no error.
    fn answer(&self) -> Vec<u8> {
        let (unique, code, answer) = self.hear();
        assert_eq!((unique, code), (7, 0));
        answer
    }

    /// Makes a file and opens it: its node, and the number of the open file.
    fn create(&self) -> (u64, u64) {
        self.ask_create(0);
        let created = self.answer();
        (u64_at(&created, 0), u64_at(&created, 128))
    }

    fn ask_create(&self, flags: u32) {
        // O_RDWR and more, a mode, no mask; and the name.
        let head = [2 | flags, 0o100_644, 0, 0].into_iter().flat_map(u32::to_ne_bytes);
        self.ask(CREATE, 1, &head.chain(*b"file\0").collect::<Vec<u8>>());
    }

    /// What it is told beside answers.
    fn notice(&self) -> (i32, Vec<u8>) {
        let (unique, code, told) = self.hear();
        assert_eq!(unique, 0);
        (code, told)
    }

    fn write(&self, (node, file): (u64, u64), kind: u64, offset: u64, data: &[u8]) {
        let head = parts(&[file, offset, kind | data.len() as u64, 0, 0]);
        self.ask(WRITE, node, &[&head, data].concat());
    }

    fn release(&self, (node, file): (u64, u64)) {
        self.ask(RELEASE, node, &parts(&[file, 0, 0]));
        self.answer();
    }
}

#[test]
fn an_error_that_comes_after_the_last_close_is_told_at_the_end() {
    served(64 << 10, |kernel, scene| {
        let file = kernel.create();
        // Through a mapping: nobody closes the file after it.
        kernel.write(file, CACHED, 0, &[1; 100_000]);
        kernel.answer();
        kernel.release(file);
        let lost = scene.runtime.block_on(scene.files.shut_down());
        assert_eq!(lost.len(), 1, "{lost:?}");
    });
}

/// Does what a process has asked for that no longer waits for it (Ctrl-C).
fn interrupted(scene: &Scene, opcode: u32, node: u64, body: &[u8]) {
    let bytes = request(opcode, node, body);
    let (header, operation) = parse(&bytes).unwrap();
    let reply = Reply::new(&scene.device, header.unique);
    Inflight::mark(&reply).store(true, Ordering::Release);
    let asked = Asked { header, operation, data: Bytes::new() };
    scene.runtime.block_on(scene.system.begin(asked, reply).unwrap());
}

#[test]
fn an_error_that_an_interrupted_close_was_to_tell_is_told_at_the_end() {
    served(64 << 10, |kernel, scene| {
        let (node, file) = kernel.create();
        kernel.write((node, file), CACHED, 0, &[1; 100_000]);
        kernel.answer();
        interrupted(scene, FLUSH, node, &parts(&[file, 0, 0]));
        kernel.ask(RELEASE, node, &parts(&[file, 0, 0]));
        assert_eq!(kernel.ended(7).0, 0);
        let lost = scene.runtime.block_on(scene.files.shut_down());
        assert_eq!(lost.len(), 1, "{lost:?}");
    });
}

/// The work of a request that was interrupted goes on, and may end after the file was closed.
#[test]
fn an_error_that_a_program_has_not_heard_when_its_file_is_closed_is_told_at_the_end() {
    served(64 << 10, |_, scene| {
        let lost = scene.runtime.block_on(async {
            let who = own();
            let root = scene.files.root();
            let made = scene.files.create(&who, root, b"file", Sattr3::default(), true).await;
            let open = scene.files.open_made(&who, made.unwrap().handle);
            open.write(0, &[1; 100_000]).await.unwrap();
            let error = open.flush_at_close().await.unwrap_err();
            open.close().await;
            open.not_heard(error);
            scene.files.shut_down().await
        });
        assert_eq!(lost.len(), 1, "{lost:?}");
    });
}

#[test]
fn an_error_is_told_once_to_each_descriptor_that_was_open_when_it_came() {
    served(64 << 10, |kernel, _| {
        let (node, first) = kernel.create();
        let open = || {
            kernel.ask(OPEN, node, &parts(&[2]));
            u64_at(&kernel.answer(), 0)
        };
        let fsync = |file| {
            kernel.ask(FSYNC, node, &parts(&[file, 0]));
            kernel.ended(7).0
        };
        let close = |file| {
            kernel.ask(FLUSH, node, &parts(&[file, 0, 0]));
            kernel.ended(7).0
        };
        let (second, third) = (open(), open());
        kernel.write((node, first), CACHED, 0, &[1; 100_000]);
        kernel.answer();
        let full = Errno::NOSPC.raw_os_error();
        assert_eq!([fsync(second), fsync(second), close(second)], [full, 0, 0]);
        assert_eq!([close(third), close(third)], [full, full], "it may be another's, too (dup(2))");
        // What it has of the file is not what the file has: it looks the name up, and comes again.
        kernel.ask(OPEN, node, &parts(&[2]));
        assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
        kernel.ask(OPEN, node, &parts(&[2]));
        let later = u64_at(&kernel.ended(7).1, 0);
        assert_eq!([fsync(later), close(later)], [0, 0], "it was told");
        assert_eq!([close(first), fsync(first), fsync(first)], [full, full, 0]);
        kernel.write((node, first), CACHED, 0, &[1; 100_000]);
        kernel.answer();
        let all = [first, second, third, later];
        assert_eq!(all.map(fsync), [full; 4], "another one");
        all.into_iter().for_each(|file| kernel.release((node, file)));
    });
}

/// The page that the next append is in would go to the server with them, over another's record.
#[test]
fn a_kernel_forgets_what_could_not_be_written() {
    for cache in [KernelCache::Writeback, KernelCache::Writethrough] {
        served_with(cache, 64 << 10, |kernel, _| {
            let (node, file) = kernel.create();
            kernel.write((node, file), CACHED, 0, &[1; 100_000]);
            kernel.answer();
            kernel.ask(FSYNC, node, &parts(&[file, 0]));
            assert_eq!(kernel.notice(), (INVAL, parts(&[node, 0, 0])), "all of its data");
            assert_eq!(kernel.ended(7).0, Errno::NOSPC.raw_os_error());
            kernel.ask(FSYNC, node, &parts(&[file, 0]));
            kernel.answer();
        });
    }
}

/// A kernel that writes back flushes the time before it asks, at a close, for errors of writes; if
/// that failed it would not ask.
#[test]
fn an_error_of_a_file_that_is_gone_is_told_at_the_close_and_not_at_the_end() {
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        kernel.write(file, CACHED, 0, b"lost");
        kernel.answer();
        scene.runtime.block_on(async {
            let (who, other) = (own(), &scene.other);
            let found = other.lookup(&who, other.root(), b"file").await.unwrap();
            other.remove(&who, other.root(), b"file").await.unwrap();
            scene.files.write_behind().settle(found.handle).await;
        });
        set_time(kernel, file.0, Some(file.1), 1000, 0);
        kernel.ask(FLUSH, file.0, &parts(&[file.1, 0, 0]));
        assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
        kernel.release(file);
        assert!(scene.runtime.block_on(scene.files.shut_down()).is_empty());
    });
}

/// SETATTR of a time of modification; of an open file if there is one.
fn set_time(kernel: &Kernel, node: u64, open: Option<u64>, secs: u64, nanos: u32) -> Vec<u8> {
    const MTIME: u64 = 1 << 5;
    const FH: u64 = 1 << 6;
    let valid = MTIME | open.map_or(0, |_| FH);
    // Fields of 8 bytes: what is valid, file, size, lock, times; and their fractions.
    let nanos = u64::from(nanos) << 32;
    let fields = [valid, open.unwrap_or(0), 0, 0, 0, secs, 0, nanos, 0, 0, 0];
    kernel.ask(SETATTR, node, &parts(&fields));
    kernel.answer()
}

/// What the server has, as another client sees it.
fn on_the_server(scene: &Scene) -> Fattr3 {
    let who = own();
    let ask = async {
        let found = scene.other.lookup(&who, scene.other.root(), b"file").await.unwrap();
        scene.other.ask_attributes(&who, found.handle).await.unwrap()
    };
    scene.runtime.block_on(ask)
}

#[test]
fn a_time_that_a_program_sets_is_set_whether_the_file_is_open_or_not() {
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        let told = set_time(kernel, file.0, None, 2000, 0);
        assert_eq!(u64_at(&told, 16 + 32), 2000);
        assert_eq!(on_the_server(scene).mtime.seconds, 2000, "while it is open");
        kernel.release(file);
        set_time(kernel, file.0, None, 1000, 0);
        assert_eq!(on_the_server(scene).mtime.seconds, 1000, "on the server, too");
    });
}

/// A kernel that writes back tells the time that it has whenever a name of the file is changed.
#[test]
fn a_time_that_the_kernel_has_kept_does_not_replace_what_another_client_has_left() {
    served(1 << 20, |kernel, scene| {
        kernel.ask_create(0);
        let created = kernel.answer();
        let file = (u64_at(&created, 0), u64_at(&created, 128));
        // Behind the entry's head: number, size, blocks, times; and their fractions.
        let secs = u64_at(&created, 40 + 32);
        let nanos = u32::from_ne_bytes(created[40 + 52..40 + 56].try_into().unwrap());
        kernel.release(file);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        let theirs = on_the_server(scene).mtime;
        assert_ne!((u64::from(theirs.seconds), theirs.nseconds), (secs, nanos));
        set_time(kernel, file.0, None, secs, nanos);
        assert_eq!(on_the_server(scene).mtime, theirs);
    });
}

#[test]
fn a_descriptor_is_opened_anew_though_another_client_has_changed_the_file() {
    served(1 << 20, |kernel, scene| {
        let first = kernel.create();
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        // By a name the kernel would look it up again; /proc/self/fd always leads to this node.
        let open = || {
            kernel.ask(OPEN, first.0, &parts(&[2]));
            kernel.ended(7)
        };
        assert_eq!(open().0, Errno::STALE.raw_os_error());
        let (code, opened) = open();
        assert_eq!((code, u64_at(&opened, 8)), (0, 1), "past the kernel's cache");
        kernel.ask(READ, first.0, &parts(&[u64_at(&opened, 0), 0, 100, 0, 0]));
        assert_eq!(kernel.answer(), b"theirs");
    });
}

/// A kernel that revalidates a name forgets the node that it is told, and asks once more; then it
/// opens the file for the last time.
#[test]
fn an_open_is_refused_once_though_the_file_changes_again_and_nodes_are_forgotten() {
    served(1 << 20, |kernel, scene| {
        let first = kernel.create();
        kernel.release(first);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        let open = |node| {
            kernel.ask(OPEN, node, &parts(&[2]));
            kernel.ended(7)
        };
        let look = || {
            kernel.ask(LOOKUP, 1, b"file\0");
            u64_at(&kernel.answer(), 0)
        };
        assert_eq!(open(first.0).0, Errno::STALE.raw_os_error());
        kernel.ask(FORGET, look(), &parts(&[1]));
        kernel.ask(FORGET, first.0, &parts(&[1]));
        let again = look();
        scene.runtime.block_on(appended_elsewhere(scene, b" again"));
        let (code, opened) = open(again);
        assert_eq!((code, u64_at(&opened, 8)), (0, 1), "past the kernel's cache");
    });
}

#[test]
fn set_id_bits_that_a_write_takes_are_gone_when_it_is_answered() {
    const KILL: u64 = 4 << 32;
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        let setuid = async {
            let who = own();
            let found = scene.files.lookup(&who, scene.files.root(), b"file").await.unwrap();
            scene.files.setattr(&who, found.handle, Sattr3::of_mode(0o4755)).await.unwrap();
        };
        scene.runtime.block_on(setuid);
        kernel.write(file, 0, 0, b"kept");
        kernel.answer();
        assert_eq!(on_the_server(scene).size, 0, "there is no hurry");
        kernel.write(file, KILL, 4, b"sent");
        kernel.answer();
        assert_eq!(on_the_server(scene).size, 8, "the server has it, and its reply tells the mode");
    });
}

#[test]
fn an_error_after_one_that_was_told_at_a_close_is_told_too() {
    served(64 << 10, |kernel, scene| {
        let file = kernel.create();
        kernel.write(file, CACHED, 0, &[1; 100_000]);
        kernel.answer();
        kernel.ask(FLUSH, file.0, &parts(&[file.1, 0, 0]));
        assert_eq!(kernel.ended(7).0, Errno::NOSPC.raw_os_error());
        // Through a mapping that is still there, and has failed before it goes.
        kernel.write(file, CACHED, 100_000, &[1; 100_000]);
        kernel.answer();
        let dirty = || !scene.files.write_behind().dirty_files().is_empty();
        scene.runtime.block_on(async {
            while dirty() {
                tokio::task::yield_now().await;
            }
        });
        kernel.release(file);
        let lost = scene.runtime.block_on(scene.files.shut_down());
        assert_eq!(lost.len(), 1, "{lost:?}");
    });
}

/// A page of a listing is older than the rest of it by the time the kernel gets that.
#[test]
fn a_page_that_is_kept_names_no_file_with_the_size_it_had() {
    served(1 << 20, |kernel, scene| {
        let (runtime, who) = (&scene.runtime, own());
        let file = kernel.create();
        kernel.release(file);
        kernel.ask(FORGET, file.0, &parts(&[1]));
        kernel.ask(OPENDIR, 1, &parts(&[0]));
        let dir = u64_at(&kernel.answer(), 0);
        let list = |offset| {
            // Room for one entry.
            kernel.ask(READDIRPLUS, 1, &parts(&[dir, offset, 200, 0, 0]));
            kernel.answer()
        };
        let mut listed = list(0);
        let written = async {
            let found = scene.other.lookup(&who, scene.other.root(), b"file").await.unwrap();
            let open = scene.other.open(&who, found.handle, ALL).await.unwrap();
            open.write(0, b"theirs").await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
            // We have heard of it meanwhile.
            scene.files.open(&who, found.handle, ALL).await.unwrap().close().await;
        };
        runtime.block_on(written);
        // An entry is 128 bytes and what READDIR has: number, where to go on, length, name.
        while !listed.is_empty() && !listed[128 + 24..].starts_with(b"file") {
            listed = list(u64_at(&listed, 128 + 8));
        }
        // Node, generation, two times of 8 bytes, their fractions; number and size.
        let (node, size) = (u64_at(&listed, 0), u64_at(&listed, 40 + 8));
        assert!(node == 0 || size == 6, "node {node} of {size} bytes");
    });
}

#[test]
fn what_is_written_past_the_kernels_cache_is_forgotten_there_before_it_is_answered() {
    served(1 << 20, |kernel, _| {
        let created = kernel.create();
        let (node, file) = created;
        let write = |kind, offset, data: &[u8]| kernel.write(created, kind, offset, data);
        let answers = |(unique, code, _): Heard| assert_eq!((unique, code), (7, 0));
        write(DIRECT, 0, &[1; 9000]);
        answers(kernel.hear());
        // From here on the kernel has pages of it.
        kernel.ask(READ, node, &parts(&[file, 0, 4096, 0, 0]));
        answers(kernel.hear());
        write(DIRECT, 4096, &[2; 4096]);
        let (unique, notice, told) = kernel.hear();
        assert_eq!((unique, notice), (0, 2), "data of an inode are to be forgotten");
        assert_eq!(told, parts(&[node, 4096, 4096]));
        answers(kernel.hear());
        // What comes from its cache is in its cache.
        write(CACHED, 0, &[3; 4096]);
        answers(kernel.hear());
    });
}

/// Another client appends, and closes.
async fn appended_elsewhere(scene: &Scene, data: &[u8]) {
    let who = own();
    let found = scene.other.lookup(&who, scene.other.root(), b"file").await.unwrap();
    let open = scene.other.open(&who, found.handle, ALL).await.unwrap();
    let end = scene.other.getattr(&who, found.handle).await.unwrap().size;
    open.write(end, data).await.unwrap();
    open.flush().await.unwrap();
    open.close().await;
}

const INVAL: i32 = 2;
const STORE: i32 = 4;

#[test]
fn a_kernel_that_writes_back_learns_where_the_file_ends_before_it_appends() {
    served(1 << 20, |kernel, scene| {
        kernel.ask_create(O_APPEND);
        assert_eq!(kernel.notice().0, INVAL);
        let created = kernel.answer();
        let (node, file) = (u64_at(&created, 0), u64_at(&created, 128));
        assert_eq!(u64_at(&created, 24), 0, "its attributes are not good for any time");
        kernel.write((node, file), CACHED, 0, b"ours");
        kernel.answer();
        kernel.ask(FSYNC, node, &parts(&[file, 0]));
        assert_eq!(kernel.notice(), (INVAL, parts(&[node, u64::MAX, 0])), "attributes, no data");
        kernel.answer();
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        // As it asks before a write: by the open file.
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(kernel.notice(), (INVAL, parts(&[node, 4, 0])));
        let (code, told) = kernel.notice();
        assert_eq!((code, u64_at(&told, 0), u64_at(&told, 8)), (STORE, node, 9), "the last byte");
        let attributes = kernel.answer();
        assert_eq!(u64_at(&attributes, 16 + 8), 10);
        assert_eq!(u64_at(&attributes, 0), 0, "another may append before we do");
        assert!(u64_at(&attributes, 8) > 0, "who appends line by line does not ask for each");
        kernel.write((node, file), CACHED, 10, b"ours");
        kernel.answer();
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        let attributes = kernel.answer();
        assert!(u64_at(&attributes, 0) > 0, "until it is stable it may append as it likes");
    });
}

/// As `open(name, 'a')` of Python does: to find the end, and to append later.
#[test]
fn an_lseek_before_another_client_appends_is_not_where_our_append_goes() {
    served(1 << 20, |kernel, scene| {
        kernel.ask_create(O_APPEND);
        assert_eq!(kernel.notice().0, INVAL);
        let created = kernel.answer();
        let (node, file) = (u64_at(&created, 0), u64_at(&created, 128));
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(u64_at(&kernel.answer(), 16 + 8), 0);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(kernel.notice().0, INVAL);
        let (code, told) = kernel.notice();
        assert_eq!((code, u64_at(&told, 0), u64_at(&told, 8)), (STORE, node, 5), "the last byte");
        assert_eq!(u64_at(&kernel.answer(), 16 + 8), 6);
    });
}

/// A third program writes to the log in place, and neither syncs nor closes it.
#[test]
fn an_append_follows_another_clients_though_other_programs_have_written_in_place() {
    served(1 << 20, |kernel, scene| {
        kernel.ask_create(O_APPEND);
        assert_eq!(kernel.notice().0, INVAL);
        let created = kernel.answer();
        let (node, file) = (u64_at(&created, 0), u64_at(&created, 128));
        kernel.write((node, file), CACHED, 0, b"ours");
        kernel.answer();
        kernel.ask(FSYNC, node, &parts(&[file, 0]));
        assert_eq!(kernel.notice().0, INVAL);
        kernel.answer();
        kernel.ask(OPEN, node, &parts(&[2]));
        let third = u64_at(&kernel.answer(), 0);
        kernel.write((node, third), DIRECT, 0, b"O");
        kernel.answer();
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(kernel.notice().0, INVAL);
        let (code, told) = kernel.notice();
        assert_eq!((code, u64_at(&told, 0), u64_at(&told, 8)), (STORE, node, 9), "the last byte");
        assert_eq!(u64_at(&kernel.answer(), 16 + 8), 10);
    });
}

/// Two programs open a file that another client has changed.
#[test]
fn who_opens_a_file_before_the_kernel_has_forgotten_its_pages_waits_for_that() {
    const LONG: Duration = Duration::from_secs(30);
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        let held = |_: &Arc<Device>| Notifier::to();
        served_by(held, (files::Options::default(), cache), 1 << 20, move |kernel, scene| {
            let (node, file) = kernel.create();
            kernel.release((node, file));
            scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
            let open = |unique| kernel.ask_as(unique, OPEN, node, &parts(&[0]));
            open(8);
            let first = scene.held.recv_timeout(LONG).unwrap();
            open(9);
            let second = scene.held.recv_timeout(LONG).expect("it waits, too");
            for (_, done) in [first, second] {
                done.send(true).unwrap();
            }
            for _ in 0..2 {
                assert_ne!(u64_at(&kernel.hear().2, 8) & KEEP_CACHE, KEEP_CACHE);
            }
            // Once is enough.
            open(10);
            let (code, opened) = kernel.ended(10);
            let keeps = u64_at(&opened, 8) & KEEP_CACHE;
            assert!(code == 0 && (cache == KernelCache::None || keeps == KEEP_CACHE));
        });
    }
}

#[test]
fn what_is_written_through_goes_to_the_end_that_the_server_knows_of() {
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        served_with(cache, 1 << 20, move |kernel, scene| {
            kernel.ask_create(O_APPEND);
            let created = kernel.answer();
            let file = (u64_at(&created, 0), u64_at(&created, 128));
            let append = |offset: u64, data: &[u8]| {
                let flags = u64::from(O_APPEND);
                let head = parts(&[file.1, offset, data.len() as u64, 0, flags]);
                kernel.ask(WRITE, file.0, &[&head, data].concat());
                kernel.answer();
            };
            append(0, b"ours ");
            kernel.ask(FSYNC, file.0, &parts(&[file.1, 0]));
            kernel.answer();
            scene.runtime.block_on(appended_elsewhere(scene, b"theirs "));
            append(5, b"ours ");
            assert_eq!(kernel.notice(), (INVAL, parts(&[file.0, 5, 0])), "it is not there");
            // The kernel has not asked for the size meanwhile.
            append(10, b"again");
            assert_eq!(kernel.notice().0, INVAL);
            kernel.ask(FSYNC, file.0, &parts(&[file.1, 0]));
            kernel.answer();
            let (who, root) = (own(), scene.other.root());
            let read = async {
                let found = scene.other.lookup(&who, root, b"file").await.unwrap();
                let open = scene.other.open(&who, found.handle, ALL).await.unwrap();
                let data = open.read(0, 100).await.unwrap();
                open.close().await;
                data
            };
            assert_eq!(scene.runtime.block_on(read), &b"ours theirs ours again"[..], "{cache:?}");
        });
    }
}

/// What a lock asks for: F_WRLCK or F_UNLCK, of the whole file.
fn whole(open: u64, owner: u64, kind: u32, is_flock: bool) -> Vec<u8> {
    let rest = [kind, 4711, u32::from(is_flock), 0].into_iter().flat_map(u32::to_ne_bytes);
    parts(&[open, owner, 0, i64::MAX as u64]).into_iter().chain(rest).collect()
}

const EXCLUSIVE: u32 = 1;
const UNLOCK: u32 = 2;

/// A file that is open by a node, and again, after another client has changed it, by a second one.
fn twice(kernel: &Kernel, scene: &Scene) -> [(u64, u64); 2] {
    let first = kernel.create();
    scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
    let heard = async {
        let who = own();
        let found = scene.files.lookup(&who, scene.files.root(), b"file").await.unwrap();
        scene.files.open(&who, found.handle, ALL).await.unwrap().close().await;
    };
    scene.runtime.block_on(heard);
    kernel.ask(LOOKUP, 1, b"file\0");
    let node = u64_at(&kernel.ended(7).1, 0);
    assert_ne!(node, first.0);
    kernel.ask(OPEN, node, &parts(&[2]));
    let (code, opened) = kernel.ended(7);
    assert_eq!(code, 0);
    [first, (node, u64_at(&opened, 0))]
}

#[test]
fn what_an_older_node_has_not_written_is_written_before_there_is_another() {
    served(1 << 20, |kernel, scene| {
        let [first, second] = twice(kernel, scene);
        // The newest of the two is forgotten; the older one can still be written through.
        kernel.release(second);
        kernel.ask(FORGET, second.0, &parts(&[1]));
        kernel.ask(LOOKUP, 1, b"file\0");
        assert_eq!(kernel.notice(), (INVAL, parts(&[first.0, 0, 0])));
        let (code, third) = kernel.ended(7);
        assert_eq!(code, 0);
        assert!(![first.0, second.0].contains(&u64_at(&third, 0)));
    });
}

#[test]
fn attributes_are_good_for_as_long_as_the_options_say() {
    use client::cache::attributes::Times;
    use perf::units::Nanos;

    /// Of a file that another client changes, as it is told before and after: for how many seconds
    /// it is good, and its size; and the seconds of its directory.
    fn told(kernel: &Kernel, scene: &Scene) -> ([(u64, u64); 2], u64) {
        let file = kernel.create();
        kernel.release(file);
        let attributes = |node| {
            kernel.ask(GETATTR, node, &parts(&[0, 0]));
            let told = kernel.answer();
            (u64_at(&told, 0), u64_at(&told, 16 + 8))
        };
        let before = attributes(file.0);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        ([before, attributes(file.0)], attributes(1).0)
    }

    let with = |times| files::Options { times, ..files::Options::default() };
    let never = with(Times::all(Nanos::ZERO));
    served_as(never, KernelCache::Writethrough, 1 << 20, |kernel, scene| {
        assert_eq!(told(kernel, scene), ([(0, 0), (0, 6)], 0));
    });
    let hour = Times { dir_min: Nanos::from_secs(7_200), ..Times::all(Nanos::from_secs(3_600)) };
    served_as(with(hour), KernelCache::Writethrough, 1 << 20, |kernel, scene| {
        let ([(before, none), (after, still_none)], dir) = told(kernel, scene);
        assert_eq!((none, still_none), (0, 0), "nobody has asked the server");
        assert!([before, after].iter().all(|secs| (1_800..=3_600).contains(secs)));
        assert!((3_601..=7_200).contains(&dir));
    });
}

#[test]
fn a_reader_of_what_was_fetched_ahead_sees_what_was_written_meanwhile() {
    const PART: u64 = 32 << 10;
    served(64 << 20, |kernel, scene| {
        let (node, file) = kernel.create();
        scene.runtime.block_on(appended_elsewhere(scene, &[1; 8 << 20]));
        let read = |part: u64| {
            kernel.ask(READ, node, &parts(&[file, part * PART, PART, 0, 0]));
            kernel.ended(7).1
        };
        for part in 0..16 {
            assert!(read(part) == [1; 32 << 10], "part {part}");
        }
        assert!(scene.files.read_ahead_bytes() > 0, "there is something");
        kernel.write((node, file), 0, 16 * PART + 5, b"new");
        assert_eq!(kernel.ended(7).0, 0);
        assert_eq!(read(16)[4..9], *b"\x01new\x01");
    });
}

#[test]
fn a_mount_holds_no_more_than_its_bound_of_what_the_server_has_not() {
    const BOUND: u64 = 512 << 10;
    let write = client::write_behind::Options { dirty_bytes_max: BOUND, ..Default::default() };
    let options = files::Options { write, ..files::Options::default() };
    served_as(options, KernelCache::Writeback, 64 << 20, |kernel, scene| {
        let file = kernel.create();
        let mut most = 0;
        for at in 0..128 {
            // All that it gives at once, and none that it keeps.
            kernel.write(file, CACHED, at << 15, &[7; 1 << 15]);
            kernel.answer();
            let held = scene.files.write_behind().counters();
            most = most.max(held.dirty_bytes + held.uncommitted_bytes);
        }
        assert!((1..=BOUND).contains(&most), "{most}");
        kernel.ask(FSYNC, file.0, &parts(&[file.1, 0]));
        assert_eq!(kernel.ended(7).0, 0);
        assert_eq!(on_the_server(scene).size, 128 << 15);
    });
}

#[test]
fn a_lock_is_granted_once_though_another_client_has_changed_the_file_between_two_opens() {
    for is_flock in [false, true] {
        served(1 << 20, move |kernel, scene| {
            let [first, second] = twice(kernel, scene);
            let lock = |unique, opcode, (node, open): (u64, u64), owner, kind| {
                kernel.ask_as(unique, opcode, node, &whole(open, owner, kind, is_flock));
            };
            lock(7, SETLK, first, 100, EXCLUSIVE);
            assert_eq!(kernel.ended(7).0, 0);
            lock(7, SETLK, second, 200, EXCLUSIVE);
            assert_eq!(kernel.ended(7).0, Errno::AGAIN.raw_os_error());
            if !is_flock {
                lock(7, GETLK, second, 200, EXCLUSIVE);
                let (_, held) = kernel.ended(7);
                assert_eq!(held[16..24], [1, 0, 0, 0, 0x67, 0x12, 0, 0], "and who has it");
            }
            // Who waits has it when it is given up.
            lock(8, SETLKW, second, 200, EXCLUSIVE);
            lock(7, SETLK, first, 100, UNLOCK);
            let mut ended: Vec<(u64, i32)> = Vec::new();
            while ended.len() < 2 {
                let (of, code, _) = kernel.hear();
                ended.extend((of != 0).then_some((of, code)));
            }
            ended.sort_unstable();
            assert_eq!(ended, [(7, 0), (8, 0)]);
            // And gives it up by closing the file.
            match is_flock {
                true => kernel.ask(RELEASE, second.0, &parts(&[second.1, 0, 0])),
                false => kernel.ask(FLUSH, second.0, &parts(&[second.1, 0, 200])),
            }
            assert_eq!(kernel.ended(7).0, 0);
            lock(7, SETLK, first, 100, EXCLUSIVE);
            assert_eq!(kernel.ended(7).0, 0);
        });
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_lock_and_takes_nothing() {
    served(1 << 20, |kernel, _| {
        let (node, open) = kernel.create();
        let lock = |unique, opcode, owner, kind| {
            kernel.ask_as(unique, opcode, node, &whole(open, owner, kind, false));
        };
        lock(7, SETLK, 100, EXCLUSIVE);
        assert_eq!(kernel.ended(7).0, 0);
        lock(8, SETLKW, 200, EXCLUSIVE);
        kernel.ask_as(9, INTERRUPT, 0, &parts(&[8]));
        assert_eq!(kernel.ended(8).0, Errno::INTR.raw_os_error());
        lock(7, SETLK, 100, UNLOCK);
        assert_eq!(kernel.ended(7).0, 0);
        lock(7, SETLK, 300, EXCLUSIVE);
        assert_eq!(kernel.ended(7).0, 0, "nobody has it");
    });
}

/// Two programs that count in a file by turns: each reads, adds, writes, under a lock.
#[test]
fn what_was_written_under_a_lock_is_seen_under_the_next_by_whatever_node() {
    served(1 << 20, |kernel, scene| {
        let nodes = twice(kernel, scene);
        for (turn, (node, open)) in nodes.into_iter().enumerate() {
            let lock = |kind| kernel.ask(SETLK, node, &whole(open, open, kind, false));
            // The kernel drops what it has of the node, and writes it back when it is given up.
            for kind in [EXCLUSIVE, UNLOCK] {
                lock(kind);
                let (code, told) = kernel.notice();
                assert_eq!((code, u64_at(&told, 0), u64_at(&told, 8)), (INVAL, node, 0), "{turn}");
                assert_eq!(kernel.ended(7).0, 0);
            }
        }
    });
}
