//! What a WRITE costs our server: copies, allocations, memory.
//!
//! The binary writes a file sequentially, 1 MiB per call and 16 calls outstanding, to a server in
//! this process: the production listener, engine and directory store. So everything that is
//! counted here is the server's. Once to warm up, once to count:
//!
//! - bytes copied in user space between socket and file, as the receive buffers count them;
//! - heap allocations, by number and bytes. A copy needs somewhere to go: when the bytes allocated
//!   are a small part of the payload, no copy can hide in fresh memory;
//! - resident memory over time.
//!
//! In the tests 32 MiB are written. A whole GiB, with what it is worth as a benchmark:
//!
//! ```text
//! NFSKIT_WRITE_PATH_MIB=1024 cargo test --release -p nfskit --test write_path -- --nocapture
//! ```

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]
#![expect(unsafe_code, reason = "an allocator that counts has to be an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use net::clock::Clock;
use net::runtime::Background;
use net::serve::{self, Host, Limits};
use net::shape::LinkPair;
use net::transport::RECORD_BYTES_MAX;
use net::transport::buffer::Pool;
use net::transport::tcp::Listener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use server::store::dir::{DirOptions, DirStore};
use server::types::Caller;
use server::{Engine, EngineConfig, Export, Exports, Peer, Rule, Squash, Transport};

/// Counts the requests to the system's allocator.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED_BYTES: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    ALLOCATED_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

// SAFETY: every method passes its arguments to the system's allocator as they came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps `alloc`'s promises, which are the same there.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: as above; the block came from the system's allocator, for we have no other.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

const MIB: u64 = 1 << 20;
const CALL_BYTES: u64 = MIB;
const OUTSTANDING: u64 = 16;
/// A record of at least this size is a WRITE of the workload.
const WRITE_BYTES_MIN: usize = 1 << 19;
/// Between two looks at the memory.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// Five minutes: after that the test gives up.
const SAMPLES_MAX: usize = 30_000;

/// The server under test.
struct Server {
    address: SocketAddr,
    pool: Pool,
    writes: Arc<AtomicU64>,
    _background: Background,
}

impl Server {
    fn start(dir: &Path) -> Self {
        let store = DirStore::open(dir, &DirOptions::default()).unwrap();
        let writes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&writes);
        let begin = move || async move {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = Listener::bind(any, RECORD_BYTES_MAX).unwrap();
            let (address, pool) = (listener.local_addr().unwrap(), listener.pool().clone());
            let engine = Arc::new(Engine::new(exports(store), config()));
            let service = move |peer: serve::Peer, record: Bytes| {
                counted.fetch_add(u64::from(record.len() >= WRITE_BYTES_MIN), Ordering::Relaxed);
                let engine = Arc::clone(&engine);
                let peer = Peer::at(peer.address, Transport::Stream);
                async move { engine.call(peer, record).await.reply() }
            };
            let clock = Clock::real();
            let host = Host::new(&clock, Limits::default());
            clock.spawn(async move {
                host.listen(listener, LinkPair::default(), service).await.unwrap();
            });
            (address, pool)
        };
        let (background, (address, pool)) = Background::start(2, begin).unwrap();
        Self { address, pool, writes, _background: background }
    }

    fn counts(&self) -> Counts {
        let costs = self.pool.costs();
        Counts {
            writes: self.writes.load(Ordering::Relaxed),
            copied_bytes: costs.copied_bytes,
            slabs: costs.slabs_allocated,
            allocations: ALLOCATIONS.load(Ordering::Relaxed),
            allocated_bytes: ALLOCATED_BYTES.load(Ordering::Relaxed),
        }
    }
}

fn config() -> EngineConfig {
    EngineConfig { threads: 256, ..EngineConfig::default() }
}

fn exports(store: DirStore) -> Exports<DirStore> {
    let user = Caller {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        gids: Vec::new(),
    };
    let rule = Rule { squash: Squash::All, anonymous: Arc::new(user), ..Rule::default() };
    Exports::one(Export::ruled(rule), store)
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    writes: u64,
    copied_bytes: u64,
    slabs: u64,
    allocations: u64,
    allocated_bytes: u64,
}

impl Counts {
    fn since(self, earlier: Self) -> Self {
        Self {
            writes: self.writes - earlier.writes,
            copied_bytes: self.copied_bytes - earlier.copied_bytes,
            slabs: self.slabs - earlier.slabs,
            allocations: self.allocations - earlier.allocations,
            allocated_bytes: self.allocated_bytes - earlier.allocated_bytes,
        }
    }
}

/// One run of the client: what it counted up to, and this process's memory while it ran.
struct Run {
    counts: Counts,
    mib_per_s: f64,
    resident_mib: Vec<f64>,
}

/// The client, killed if the test ends before it.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        // Both fail only for a program that has ended, which is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn write(server: &Server, mib: u64, record: &Path) -> Run {
    let port = server.address.port();
    let child = Command::new(env!("CARGO_BIN_EXE_nfskit"))
        .args(["bench", "seqwrite", "--wire", "-q", "--repeats", "1", "--call", "1M"])
        .args(["--outstanding", &OUTSTANDING.to_string()])
        .args(["--size", &format!("{mib}M")])
        .args(["--target", &format!("nfs://127.0.0.1/?nfsport={port}&mountport={port}")])
        .arg("--json")
        .arg(record)
        .spawn();
    let mut client = Client(child.unwrap());
    let mut resident_mib = Vec::with_capacity(SAMPLES_MAX);
    let before = server.counts();
    watch(&client, &mut resident_mib);
    let counts = server.counts().since(before);
    assert!(client.0.wait().unwrap().success());
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    let mib_per_s = record["metrics"]["throughput_mib_per_s"]["value"].as_f64().unwrap();
    Run { counts, mib_per_s, resident_mib }
}

/// Looks at our memory again and again until the client has ended. Allocates next to nothing.
fn watch(client: &Client, resident_mib: &mut Vec<f64>) {
    let ended = pidfd_open(Pid::from_child(&client.0), PidfdFlags::empty()).unwrap();
    while resident_mib.len() < SAMPLES_MAX {
        resident_mib.push(resident_kib() as f64 / 1024.0);
        match poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&INTERVAL)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            ready => {
                ready.unwrap();
                return;
            }
        }
    }
    panic!("the client does not end");
}

/// VmRSS of this process (proc(5)).
fn resident_kib() -> u64 {
    let mut status = [0; 8192];
    let mut file = std::fs::File::open("/proc/self/status").unwrap();
    let length = file.read(&mut status).unwrap();
    let status = str::from_utf8(&status[..length]).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn print(run: &Run, warm_mib: f64) {
    let Counts { writes, copied_bytes, slabs, allocations, allocated_bytes } = run.counts;
    let payload = writes * CALL_BYTES;
    let share = |bytes: u64| 100.0 * bytes as f64 / payload as f64;
    let (half, of_calls) = (run.resident_mib.len() / 2, writes as f64);
    println!(
        "payload               {writes} calls of 1 MiB, {:.0} MiB/s
copied in user space  {copied_bytes} bytes, {:.3} % of the payload
slabs allocated       {slabs}
heap allocations      {:.1} per call, {:.0} bytes per call, {:.3} % of the payload
resident memory       {warm_mib:.1} MiB warm; most {:.1} in the first half, {:.1} in the second",
        run.mib_per_s,
        share(copied_bytes),
        allocations as f64 / of_calls,
        allocated_bytes as f64 / of_calls,
        share(allocated_bytes),
        largest(&run.resident_mib[..half]),
        largest(&run.resident_mib[half..]),
    );
}

#[test]
fn a_write_is_copied_at_most_once_and_leaves_memory_as_it_was() {
    let mib = std::env::var("NFSKIT_WRITE_PATH_MIB").map_or(32, |mib| mib.parse().unwrap());
    let (store, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(store.path());
    let record = out.path().join("record.json");
    let warm = write(&server, mib, &record);
    let warm_mib = largest(&warm.resident_mib);
    let run = write(&server, mib, &record);
    print(&run, warm_mib);
    let Counts { writes, copied_bytes, slabs, allocations, allocated_bytes } = run.counts;
    assert_eq!(writes, mib, "calls are not of 1 MiB, or were sent again");
    let payload = mib * MIB;
    assert!(copied_bytes <= payload / 10, "{copied_bytes} of {payload} bytes were copied");
    // Slabs are filled by the kernel. What else was allocated has no room for the payload.
    let small_bytes = allocated_bytes.saturating_sub(slabs * RECORD_BYTES_MAX as u64);
    assert!(small_bytes <= payload / 10, "{small_bytes} bytes allocated for {payload}");
    assert!(allocations <= 30 * writes, "{allocations} allocations for {writes} calls");
    // One for each call outstanding, and for each connection what it reads next.
    let slabs_ever = server.counts().slabs;
    assert!(slabs_ever <= OUTSTANDING + 8, "{slabs_ever} slabs, {slabs} of them when warm");
    // More calls may meet in the server than in the warm-up: each then takes a slab.
    let (most_mib, slabs_mib) = (largest(&run.resident_mib), slabs as f64);
    assert!(most_mib <= warm_mib + slabs_mib + 4.0, "{warm_mib} MiB became {most_mib} MiB");
}
