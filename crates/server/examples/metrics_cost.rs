//! What metrics cost a GETATTR: the engine on a memory store, with and without them, in turns.
//!
//! `cargo run --release -p nfskit-server --example metrics_cost`

#![expect(clippy::unwrap_used, reason = "an example that ends where it fails")]
#![expect(clippy::disallowed_methods, reason = "nothing else here has a clock")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use perf::units::Instant;
use server::metrics::Metrics;
use server::store::mem::{MemOptions, MemStore};
use server::types::Time;
use server::{Engine, EngineConfig, Export, Exports, Peer, Transport};
use wire::nfs3::{self, getattr};
use wire::rpc::{AuthSys, CallHeader, Gids, OpaqueAuth};
use wire::xdr::Encode;

const CALLS: u32 = 300_000;
const TURNS: usize = 11;

fn main() {
    let epoch = std::time::Instant::now();
    let clock = move || Instant::from_nanos(epoch.elapsed().as_nanos().try_into().unwrap());
    let plain = engine();
    let measured = engine().measured(Metrics::new(Arc::new(clock)));
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        without.push(cpu_ns_per_call(&plain, clock));
        with.push(cpu_ns_per_call(&measured, clock));
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[TURNS / 2]
    };
    let begin = cpu_ns();
    for _ in 0..CALLS {
        std::hint::black_box(clock());
    }
    let look = (cpu_ns() - begin) / f64::from(CALLS);
    let (without, with) = (median(&mut without), median(&mut with));
    println!(
        "GETATTR {without:.0} ns, with metrics {with:.0} ns; a look at the clock {look:.0} ns"
    );
}

fn engine() -> Engine<MemStore> {
    let store = MemStore::new(MemOptions::default(), Arc::new(Time::default));
    Engine::new(Exports::one(Export::default(), store), EngineConfig::default())
}

/// Processor time of a call, the end of its sending included.
fn cpu_ns_per_call(engine: &Engine<MemStore>, clock: impl Fn() -> Instant) -> f64 {
    let ids = AuthSys {
        stamp: 1,
        machine_name: b"client",
        uid: 1000,
        gid: 100,
        gids: Gids::new(&[]).unwrap(),
    };
    let (body, procedure) = (ids.to_bytes(), wire::Procedure::Nfs3(nfs3::Procedure::Getattr));
    let mut record = CallHeader::new(7, procedure, OpaqueAuth::sys(&body)).to_bytes();
    getattr::Args { object: engine.root() }.encode(&mut record);
    let record = Bytes::from(record);
    let peer = Peer::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 700)), Transport::Stream);
    let arrived = clock();
    let begin = cpu_ns();
    for _ in 0..CALLS {
        let call = engine.call_arrived(peer, record.clone(), Some(arrived));
        let (answer, tag) = call.now_or_never().unwrap();
        std::hint::black_box(answer);
        engine.sent(tag, perf::units::Nanos::from_micros(5));
    }
    (cpu_ns() - begin) / f64::from(CALLS)
}

fn cpu_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
