//! The file system as a kernel sees it, without one: requests and answers go through a socket
//! instead of /dev/fuse, so that their order is the test's.

use std::sync::Arc;

use client::files::open::Mode;
use client::files::{self, Files};
use client::session::Credential;
use load::study::Subject;
use net::clock::Clock;
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use server::store::mem::MemOptions;
use testkit::Site;
use tokio::runtime::Handle;

use crate::abi::init::{Agreed, KernelCache};
use crate::abi::request::tests::request;
use crate::abi::request::{Init, O_APPEND};
use crate::caller::Callers;
use crate::device::Device;
use crate::dispatch;
use crate::fs::FileSystem;
use crate::inflight::Inflight;
use crate::notify::Notifier;

/// Asks as the kernel does.
struct Kernel(OwnedFd);

/// What came of it: the number of the request, or 0 and the code of a notice; and the rest.
type Heard = (u64, i32, Vec<u8>);

impl Kernel {
    fn ask(&self, opcode: u32, node: u64, body: &[u8]) {
        send(&self.0, &request(opcode, node, body), SendFlags::empty()).unwrap();
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
    files: Files,
    /// Another client.
    other: Files,
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
    let run = async move {
        let clock = Clock::real();
        let options = MemOptions { bytes_max, ..MemOptions::default() };
        let store = testkit::memory_store_of(options, &clock);
        let concurrent = server::CommitMode::Concurrent;
        let site = Site::new(store, &clock, Default::default(), concurrent);
        let client = async || {
            let session = site.connect().await.unwrap();
            Files::new(&clock, session, files::Options::default())
        };
        let (files, other) = (client().await, client().await);
        let scene = Scene { runtime: Handle::current(), files: files.clone(), other };
        let (kernel, ours) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let device = Arc::new(Device::over(ours));
        let notifier = Notifier::start(&device).unwrap();
        let agreed = Agreed::with(&Init { flags: u64::MAX, ..Init::default() }, cache);
        let callers = Callers::new(&clock, own(), true);
        let system = Arc::new(FileSystem::new(files, &clock, callers, notifier, cache, agreed));
        let inflight = Inflight::new(&clock, &device);
        let runtime = Handle::current();
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

const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const OPENDIR: u32 = 27;
const CREATE: u32 = 35;
const READDIRPLUS: u32 = 44;
const READ: u32 = 15;
const WRITE: u32 = 16;
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

#[test]
fn a_time_that_a_program_sets_is_set_when_nobody_has_the_file_open() {
    const MTIME: u64 = 1 << 5;
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        kernel.release(file);
        // Fields of 8 bytes: what is valid, file, size, lock, times; and their fractions.
        let when = parts(&[MTIME, 0, 0, 0, 0, 1000, 0, 0, 0, 0, 0]);
        kernel.ask(SETATTR, file.0, &when);
        assert_eq!(u64_at(&kernel.answer(), 16 + 32), 1000);
        let who = own();
        let root = scene.other.root();
        let found = scene.runtime.block_on(scene.other.lookup(&who, root, b"file")).unwrap();
        assert_eq!(found.attributes.mtime.seconds, 1000, "on the server, too");
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
        assert!(u64_at(&attributes, 0) > 0, "until it is written it may append as it likes");
    });
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
