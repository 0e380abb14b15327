//! Small files that are opened by reading them: which calls that takes, what it shows of other
//! clients' changes, and to whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use cache::medium::Memory;
use client::files::open::Mode;
use client::files::{Files, Options};
use client::session::Credential;
use net::clock::Clock;
use perf::units::Nanos;
use server::store::mem::MemStore;
use testkit::Site;
use wire::nfs3::{FileHandle, NfsStat3, Procedure, Sattr3, SetTime, read};
use wire::rpc::{CallHeader, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader, from_bytes};

use crate::files::world;
use crate::on_disk::{mounted, user, write};

const READ: Mode = Mode { read: true, write: false };

/// A small file's data.
fn content(state: u8) -> Bytes {
    vec![state; 5000].into()
}

async fn contents(files: &Files, who: &Credential, file: FileHandle) -> Result<Bytes, NfsStat3> {
    let open = files.open(who, file, READ).await.map_err(|error| error.status().unwrap())?;
    let data = open.read(0, 128 << 10).await.map_err(|error| error.status().unwrap());
    open.close().await;
    data
}

/// ACCESSes, READs, and all calls.
fn calls(files: &Files) -> (u64, u64, u64) {
    let counters = files.session().rpc().counters();
    let of = |number: usize| counters.procedures.get(number).map_or(0, |one| one.ops);
    (of(4), of(6), (0..22).map(of).sum())
}

/// A file of another client's, its mode, and a client that knows its name.
async fn scene(site: &Site<MemStore>, clock: &Clock, mode: u32) -> (Files, Files, FileHandle) {
    let theirs = mounted(site, clock, None).await;
    let file = write(&theirs, b"f", &content(1)).await;
    theirs.setattr(&user(0), file, Sattr3::of_mode(mode)).await.unwrap();
    clock.sleep(Nanos::from_millis(3_500)).await;
    let ours = mounted(site, clock, None).await;
    ours.lookup(&user(0), ours.root(), b"f").await.unwrap();
    (theirs, ours, file)
}

#[test]
fn a_small_file_is_opened_and_read_by_one_call() {
    world(async |clock, site| {
        let (_, ours, file) = scene(&site, &clock, 0o644).await;
        let (accesses, reads, all) = calls(&ours);
        for opens in 1..4 {
            assert_eq!(contents(&ours, &user(0), file).await, Ok(content(1)));
            assert_eq!(calls(&ours), (accesses, reads + opens, all + opens));
            clock.sleep(Nanos::from_secs(40)).await;
        }
        // A piece at a time, and again what was read already.
        let open = ours.open(&user(0), file, READ).await.unwrap();
        for (at, left) in [(0, 1000), (1000, 1000), (4000, 1000), (4999, 1)] {
            assert_eq!(open.read(at, 1000).await.unwrap().len(), left);
        }
        assert_eq!(open.read(5000, 10).await.unwrap(), Bytes::new());
        open.close().await;
        drop(open);
        assert_eq!(calls(&ours).1, reads + 5, "what lies behind the end only the server knows");
        assert_eq!(ours.read_ahead_bytes(), 0);
    });
}

#[test]
fn what_was_closed_elsewhere_before_the_open_is_read_and_what_was_read_before_is_not() {
    world(async |clock, site| {
        let (theirs, ours, file) = scene(&site, &clock, 0o644).await;
        for state in 2..6 {
            // Of the same size.
            write(&theirs, b"f", &content(state)).await;
            assert_eq!(contents(&ours, &user(0), file).await, Ok(content(state)));
            clock.sleep(Nanos::from_millis(700)).await;
        }
        // Open meanwhile: what the open has read is good for as long as attributes are.
        let open = ours.open(&user(0), file, READ).await.unwrap();
        write(&theirs, b"f", &content(6)).await;
        ours.ask_attributes(&user(0), file).await.unwrap();
        assert_eq!(open.read(0, 5000).await.unwrap(), content(6), "it is known to have changed");
        open.close().await;
        let open = ours.open(&user(0), file, READ).await.unwrap();
        let writes = ours.open(&user(0), file, Mode { write: true, ..READ }).await.unwrap();
        writes.write(10, b"ours").await.unwrap();
        let data = open.read(0, 5000).await.unwrap();
        assert_eq!((data.len(), &data[8..16]), (5000, &b"\x06\x06ours\x06\x06"[..]));
        writes.flush().await.unwrap();
        assert_eq!(open.read(8, 8).await.unwrap(), b"\x06\x06ours\x06\x06"[..]);
        writes.close().await;
        open.close().await;
    });
}

#[test]
fn data_that_may_be_older_than_the_attributes_beside_them_are_not_used() {
    world(async |clock, site| {
        let (theirs, _, file) = scene(&site, &clock, 0o644).await;
        let is_torn = Arc::new(AtomicBool::new(false));
        let tears = Arc::clone(&is_torn);
        // A server that has read the data before another client's WRITE, and the attributes after.
        let rpc = site.rpc_through(move |call, reply| {
            let header = CallHeader::decode(&mut Reader::new(call)).unwrap();
            if header.procedure != Procedure::Read as u32 || !tears.swap(false, Ordering::Relaxed) {
                return (reply, Nanos::ZERO);
            }
            let head = ReplyHeader::success(header.xid).to_bytes();
            let results = from_bytes::<read::Reply<'_>>(&reply[head.len()..]).unwrap();
            let before = content(1);
            let torn = read::ReplyOk { data: &before, ..results.unwrap() };
            ([head, read::Reply::Ok(torn).to_bytes()].concat(), Nanos::ZERO)
        });
        let ours = Files::new(&clock, site.session(rpc).await.unwrap(), Options::default());
        ours.lookup(&user(0), ours.root(), b"f").await.unwrap();
        write(&theirs, b"f", &content(2)).await;
        is_torn.store(true, Ordering::Relaxed);
        assert_eq!(contents(&ours, &user(0), file).await, Ok(content(2)));
        assert!(!is_torn.load(Ordering::Relaxed));
        assert_eq!(contents(&ours, &user(0), file).await, Ok(content(2)));
    });
}

#[test]
fn nobody_gets_what_an_access_would_have_refused() {
    world(async |clock, site| {
        site.believe_callers();
        let (theirs, ours, file) = scene(&site, &clock, 0o600).await;
        theirs.setattr(&user(0), file, Sattr3 { uid: Some(1), ..Sattr3::default() }).await.unwrap();
        let refused = Err(NfsStat3::Acces);
        // Mode, and who may read: the owner, another.
        for (mode, owner, other) in [
            (0o600, true, false),
            (0o644, true, true),
            (0o755, true, true),
            // Servers answer these READs: of an owner, and of whoever may run the file.
            (0o200, false, false),
            (0o044, false, true),
            (0o711, true, false),
            (0o011, false, false),
        ] {
            theirs.setattr(&user(0), file, Sattr3::of_mode(mode)).await.unwrap();
            ours.lookup(&user(0), ours.root(), b"f").await.unwrap();
            // The first of them does not know of the mode yet, and the second does.
            for _ in 0..2 {
                for (who, may) in [(1, owner), (2, other)] {
                    let wanted = if may { Ok(content(1)) } else { refused.clone() };
                    let got = contents(&ours, &user(who), file).await;
                    assert_eq!(got, wanted, "user {who}, mode {mode:o}");
                }
            }
            clock.sleep(Nanos::from_secs(2)).await;
        }
    });
}

#[test]
fn what_a_local_disk_has_is_not_read() {
    world(async |clock, site| {
        let (theirs, _, file) = scene(&site, &clock, 0o644).await;
        let memory = Memory::default();
        let ours = mounted(&site, &clock, Some(&memory)).await;
        ours.lookup(&user(0), ours.root(), b"f").await.unwrap();
        clock.sleep(Nanos::from_secs(1)).await;
        let (accesses, reads, all) = calls(&ours);
        assert_eq!(contents(&ours, &user(0), file).await, Ok(content(1)));
        assert_eq!(calls(&ours), (accesses, reads + 1, all + 1));
        ours.disk().unwrap().settle();
        for _ in 0..3 {
            clock.sleep(Nanos::from_secs(20)).await;
            assert_eq!(contents(&ours, &user(0), file).await, Ok(content(1)));
        }
        assert_eq!(calls(&ours), (accesses + 3, reads + 1, all + 4));
        write(&theirs, b"f", &content(2)).await;
        assert_eq!(contents(&ours, &user(0), file).await, Ok(content(2)));
        let time = SetTime::ServerTime;
        let touch = Sattr3 { mtime: time, ..Sattr3::default() };
        theirs.setattr(&user(0), file, touch).await.unwrap();
        assert_eq!(contents(&ours, &user(0), file).await, Ok(content(2)));
    });
}
