//! The file system as a kernel sees it, without one: requests and answers go through a socket
//! instead of /dev/fuse, so that their order is the test's.

mod appends;
mod changes;
mod directories;
mod errors;
mod locks;
mod looked_up;
mod removals;
mod replaced;
mod rights;
mod times;
mod unheard;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use bytes::Bytes;
use cache::Cache;
use client::files::open::Mode;
use client::files::{self, Files};
use client::session::Credential;
use load::study::Subject;
use net::clock::Clock;
use net::shape::LinkPair;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
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
use crate::dispatch::{self, Incoming};
use crate::fs::FileSystem;
use crate::inflight::{Inflight, Reply};
use crate::notify::{Notice, Notifier, Waiting};

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

    /// The same by another thread.
    fn ask_by(&self, thread: u32, opcode: u32, node: u64, body: &[u8]) {
        let mut request = request(opcode, node, body);
        request[32..36].copy_from_slice(&thread.to_ne_bytes());
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
    /// What the kernel does not get, where a test holds it back.
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
    served_by(notifications, (how, cache, LinkPair::default()), bytes_max, test);
}

/// Notifications to the kernel: what it should forget or know.
fn notifications(device: &Arc<Device>) -> (Notifier, Receiver<Waiting>) {
    (Notifier::start(device).unwrap(), mpsc::channel().1)
}

type How = (files::Options, KernelCache, LinkPair);

fn served_by(
    notifier: impl FnOnce(&Arc<Device>) -> (Notifier, Receiver<Waiting>) + Send + 'static,
    how: How,
    bytes_max: u64,
    test: impl FnOnce(&Kernel, &Scene) + Send + 'static,
) {
    served_on(None, notifier, how, bytes_max, test);
}

fn served_on(
    disk: Option<Cache>,
    notifier: impl FnOnce(&Arc<Device>) -> (Notifier, Receiver<Waiting>) + Send + 'static,
    how: How,
    bytes_max: u64,
    test: impl FnOnce(&Kernel, &Scene) + Send + 'static,
) {
    served_to((own(), disk), notifier, how, bytes_max, test);
}

/// The same, where all act as this user, whom the server believes. The other client's is root.
fn served_to(
    (who, disk): (Credential, Option<Cache>),
    notifier: impl FnOnce(&Arc<Device>) -> (Notifier, Receiver<Waiting>) + Send + 'static,
    (how, cache, links): How,
    bytes_max: u64,
    test: impl FnOnce(&Kernel, &Scene) + Send + 'static,
) {
    let run = async move {
        let clock = Clock::real();
        let options = MemOptions { bytes_max, ..MemOptions::default() };
        let store = testkit::memory_store_of(options, &clock);
        let concurrent = server::CommitMode::Concurrent;
        let site = Site::new(store, &clock, links, concurrent);
        site.believe_callers();
        let client = async |options, disk| {
            let session = site.connect().await.unwrap();
            Files::on_disk(&clock, session, options, disk)
        };
        let files = client(how, disk).await;
        let other = client(files::Options::default(), None).await;
        let (kernel, ours) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        set_socket_timeout(&kernel, Timeout::Recv, Some(LONG)).unwrap();
        let device = Arc::new(Device::over(ours));
        let (notifier, held) = notifier(&device);
        let agreed = Agreed::with(&Init { flags: u64::MAX, ..Init::default() }, cache);
        let callers = Callers::new(&clock, who, true);
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
        let (tell, received) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || tell.send((asking.join(), serving.join())).ok());
        let (first, served) = received.await.unwrap();
        first.unwrap();
        served.unwrap();
    };
    net::runtime::block_on_threads(2, run).unwrap();
}

/// What takes longer never ends.
const LONG: Duration = Duration::from_secs(30);

const ALL: Mode = Mode { read: true, write: true };

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const MKDIR: u32 = 9;
const UNLINK: u32 = 10;
const RMDIR: u32 = 11;
const RENAME: u32 = 12;
const LINK: u32 = 13;
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
const DIRECT_IO: u64 = 1;
const KEEP_CACHE: u64 = 2;
const CACHED: u64 = 1 << 32;
const DIRECT: u64 = 2 << 32;
const ATIME: u64 = 1 << 4;
const MTIME: u64 = 1 << 5;
const ATIME_NOW: u64 = 1 << 7;

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

    /// Makes a directory: its node.
    fn mkdir(&self, name: &[u8]) -> u64 {
        let head = [0o755, 0].into_iter().flat_map(u32::to_ne_bytes);
        self.ask(MKDIR, 1, &head.chain(name.iter().copied()).chain([0]).collect::<Vec<u8>>());
        u64_at(&self.answer(), 0)
    }

    fn ask_create(&self, flags: u32) {
        // O_RDWR and more, a mode, no mask; and the name.
        let head = [2 | flags, 0o100_644, 0, 0].into_iter().flat_map(u32::to_ne_bytes);
        self.ask(CREATE, 1, &head.chain(*b"file\0").collect::<Vec<u8>>());
    }

    /// What it gets beside answers.
    fn notice(&self) -> (i32, Vec<u8>) {
        let (unique, code, received) = self.hear();
        assert_eq!(unique, 0);
        (code, received)
    }

    fn write(&self, (node, file): (u64, u64), kind: u64, offset: u64, data: &[u8]) {
        let head = parts(&[file, offset, kind | data.len() as u64, 0, 0]);
        self.ask(WRITE, node, &[&head, data].concat());
    }

    fn release(&self, (node, file): (u64, u64)) {
        self.ask(RELEASE, node, &parts(&[file, 0, 0]));
        assert_eq!(self.ended(7).0, 0);
    }
}

/// SETATTR of a time of modification; of an open file if there is one.
fn set_time(kernel: &Kernel, node: u64, open: Option<u64>, secs: u64, nanos: u32) -> Vec<u8> {
    ask_time(kernel, node, open, secs, nanos);
    let (code, answer) = kernel.ended(7);
    assert_eq!(code, 0);
    answer
}

fn ask_time(kernel: &Kernel, node: u64, open: Option<u64>, secs: u64, nanos: u32) {
    const FH: u64 = 1 << 6;
    ask_times(kernel, MTIME | open.map_or(0, |_| FH), (node, open), (secs, nanos));
}

/// The same with another set of what is valid; the time of access is the beginning of 1970.
fn ask_times(
    kernel: &Kernel,
    valid: u64,
    (node, open): (u64, Option<u64>),
    (secs, nanos): (u64, u32),
) {
    // Fields of 8 bytes: what is valid, file, size, lock, times; and their fractions.
    let nanos = u64::from(nanos) << 32;
    let fields = [valid, open.unwrap_or(0), 0, 0, 0, secs, 0, nanos, 0, 0, 0];
    kernel.ask(SETATTR, node, &parts(&fields));
}

/// Does what a process has requested that no longer waits for it (Ctrl-C).
fn interrupted(scene: &Scene, opcode: u32, node: u64, body: &[u8]) {
    let bytes = request(opcode, node, body);
    let (header, operation) = parse(&bytes).unwrap();
    let reply = Reply::new(&scene.device, header.unique);
    Inflight::mark(&reply).store(true, Ordering::Release);
    let request = Incoming { header, operation, data: Bytes::new() };
    scene.runtime.block_on(scene.system.begin(request, reply).unwrap());
}

/// Calls that were made.
fn calls(scene: &Scene) -> u64 {
    scene.files.session().rpc().counters().procedures.iter().map(|one| one.ops).sum()
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
const INVAL_ENTRY: i32 = 3;
const STORE: i32 = 4;

/// Another client sets attributes.
async fn set_elsewhere(scene: &Scene, new: Sattr3) {
    let who = own();
    let found = scene.other.lookup(&who, scene.other.root(), b"file").await.unwrap();
    scene.other.setattr(&who, found.handle, new).await.unwrap();
}

/// A file that is open by a node, and again, after another client has cut it, by a second one.
fn twice(kernel: &Kernel, scene: &Scene) -> [(u64, u64); 2] {
    let first = kernel.create();
    kernel.write(first, CACHED, 0, b"our record");
    kernel.answer();
    kernel.ask(FSYNC, first.0, &parts(&[first.1, 0]));
    kernel.answer();
    scene.runtime.block_on(set_elsewhere(scene, Sattr3 { size: Some(6), ..Sattr3::default() }));
    scene.runtime.block_on(heard(scene));
    kernel.ask(LOOKUP, 1, b"file\0");
    let node = u64_at(&kernel.ended(7).1, 0);
    assert_ne!(node, first.0);
    kernel.ask(OPEN, node, &parts(&[2]));
    let (code, opened) = kernel.ended(7);
    assert_eq!((code, u64_at(&opened, 8)), (0, DIRECT_IO), "the first one can be written through");
    [first, (node, u64_at(&opened, 0))]
}

/// This client hears of what another one has done to the file.
async fn heard(scene: &Scene) {
    let who = own();
    let found = scene.files.lookup(&who, scene.files.root(), b"file").await.unwrap();
    scene.files.open(&who, found.handle, ALL).await.unwrap().close().await;
}
