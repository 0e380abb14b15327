//! What fuzz targets run, as ordinary functions, so that tests can replay the same inputs.

mod sequences;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use wire::Procedure;
use wire::record::Message;
use wire::rpc::{AcceptStatus, CallHeader, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Reader};

use crate::store::Store;
use crate::store::mem::{MemOptions, MemStore};
use crate::types::{Caller, CreateHow, SetAttr};
use crate::{Endpoint, Engine, EngineConfig, Export, Exports, Peer, Transport};

const PEER: Peer =
    Peer::at(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1000), Transport::Stream);

/// Sends arbitrary bytes to an engine: all of them as one record, then as a sequence of records,
/// each after its length in two bytes (the last one as long as there are bytes).
///
/// The engine serves a small memory store with a directory, a file and a symbolic link in its
/// root, whose handles are the same in every run, so that inputs can name them.
///
/// # Panics
/// That is a finding: the engine panicked or waited, a reply was not one to its call, or the
/// store's books do not balance afterwards.
pub fn engine_survives(input: &[u8]) {
    let engine = engine();
    serve(&engine, input);
    let mut rest = input;
    while let Some((len, next)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)).min(next.len());
        let (record, next) = next.split_at(len);
        serve(&engine, record);
        rest = next;
    }
    assert_eq!(engine.store().audit(), Ok(()));
}

/// Calls procedures of all programs, with arguments that mean something, as arbitrary bytes say.
///
/// # Panics
/// As [`engine_survives`], and when arguments were not understood that are well formed.
pub fn procedures_survive(input: &[u8]) {
    let engine = engine();
    sequences::run(&engine, input, |record| serve(&engine, record));
    assert_eq!(engine.store().audit(), Ok(()));
}

/// An engine as [`engine_survives`] uses it.
pub fn engine() -> Engine<MemStore> {
    let seconds = AtomicI64::new(1_000_000_000);
    let time =
        move || crate::types::Time { secs: seconds.fetch_add(1, Ordering::Relaxed), nanos: 0 };
    let options = MemOptions { bytes_max: 1 << 20, files_max: 64, ..MemOptions::default() };
    let store = MemStore::new(options, Arc::new(time));
    populate(&store);
    let config = EngineConfig {
        threads: 1,
        endpoints: vec![Endpoint::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 2049))],
        ..EngineConfig::default()
    };
    Engine::new(Exports::one(Export::default(), store), config)
}

fn populate(store: &MemStore) {
    let root = store.root();
    let caller = Caller { uid: 0, gid: 0, gids: Vec::new() };
    let attrs = SetAttr { mode: Some(0o777), ..SetAttr::default() };
    let dir = store.make_dir(&caller, &root, b"d", attrs).now_or_never();
    let how = CreateHow::Guarded(attrs);
    let file = store.create(&caller, &root, b"f", how).now_or_never();
    let link = store.symlink(&caller, &root, b"s", b"f", attrs);
    let made = [dir, file, link.now_or_never()];
    assert!(made.into_iter().flatten().all(|made| made.result.is_ok()));
}

/// Answers a record, and refuses it as if it came from a stranger.
fn serve(engine: &Engine<MemStore>, record: &[u8]) -> Option<Vec<u8>> {
    if let Some(refusal) = engine.refuse(&PEER, record).reply() {
        check_reply(record, &refusal);
        assert!(refusal.wire_len() <= 3 * record.len());
    }
    let reply = engine
        .call(PEER, Bytes::copy_from_slice(record))
        .now_or_never()
        .expect("one call at a time on a memory store never waits")
        .reply();
    let reply = reply?;
    check_reply(record, &reply);
    Some(reply.to_vec())
}

/// The reply answers this call, and results are those of its procedure.
fn check_reply(record: &[u8], reply: &Message) {
    let bytes = reply.to_vec();
    assert_eq!(bytes.len() % 4, 0);
    let mut r = Reader::new(&bytes);
    let header = ReplyHeader::decode(&mut r).expect("a reply begins with its header");
    let (xid, _) = wire::rpc::peek(record).expect("only calls are answered");
    assert_eq!(header.xid, xid);
    let success = AcceptStatus::Success;
    if matches!(header.body, ReplyBody::Accepted { status, .. } if status == success) {
        let call = CallHeader::decode(&mut Reader::new(record)).expect("it succeeded");
        let procedure: Procedure = call.procedure();
        let results = wire::fuzzing::round_trip_results(procedure, r.rest());
        assert_eq!(results, Ok(()), "results of {procedure}");
    } else {
        assert_eq!(r.finish(), Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn random_bytes_do_no_harm(input in prop::collection::vec(any::<u8>(), 0..300)) {
            engine_survives(&input);
        }

        #[test]
        fn random_procedures_do_no_harm(input in prop::collection::vec(any::<u8>(), 0..1000)) {
            procedures_survive(&input);
        }
    }

    #[test]
    fn the_root_handle_is_the_same_in_every_run() {
        assert_eq!(engine().root(), engine().root());
    }
}
