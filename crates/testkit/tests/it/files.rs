//! Files of the client in a world: what its caches may tell, and what its users see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use client::cache::attributes::Times;
use client::files::open::Mode;
use client::files::{Files, Options};
use client::session::Credential;
use load::study::Subject;
use net::call::Rpc;
use net::clock::Clock;
use net::clock::world::World;
use net::serve::{Host, Limits, Peer};
use net::shape::LinkPair;
use net::transport::memory;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use server::store::mem::MemStore;
use testkit::{REPLY_LIMIT, Site};
use wire::nfs3::{FileHandle, NfsStat3, Procedure, Sattr3, getattr};
use wire::record::Message;
use wire::rpc::{AcceptStatus, OpaqueAuth, ReplyBody, ReplyHeader};
use wire::xdr::Encode;

use crate::on_disk::user;

pub(crate) const READ: Mode = Mode { read: true, write: false };
pub(crate) const WRITE: Mode = Mode { read: true, write: true };

pub(crate) fn me() -> Credential {
    Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() }
}

pub(crate) async fn mounted(site: &Site<MemStore>, clock: &Clock, options: Options) -> Files {
    Files::new(clock, site.connect().await.unwrap(), options)
}

/// Runs `test` in a world with a server 100 us away.
pub(crate) fn world<F: Future<Output = ()> + Send + 'static>(
    test: impl FnOnce(Clock, Site<MemStore>) -> F + Send + 'static,
) {
    let world = World::new();
    let clock = world.clock();
    let link = Link { latency: Nanos::from_micros(100), ..Link::default() };
    let site = Site::in_memory(&clock, LinkPair::symmetric(link), CommitMode::Concurrent);
    world.run(test(clock, site)).unwrap();
}

#[test]
fn a_name_is_found_in_memory_until_somebody_else_changes_the_directory() {
    world(async |clock, site| {
        let (ours, theirs) = (
            mounted(&site, &clock, Options::default()).await,
            mounted(&site, &clock, Options::default()).await,
        );
        let (me, root) = (me(), ours.root());
        // The world begins on a whole second, within which other changes would not show.
        theirs.create(&me, root, b"other", Sattr3::default(), true).await.unwrap();
        let missing = ours.lookup(&me, root, b"f").await.unwrap_err();
        assert_eq!(missing.status(), Some(NfsStat3::NoEnt));
        let made = theirs.create(&me, root, b"f", Sattr3::default(), false).await.unwrap();
        // The directory's attributes are good for half a minute.
        let before = clock.now();
        let missing = ours.lookup(&me, root, b"f").await.unwrap_err();
        assert_eq!(missing.status(), Some(NfsStat3::NoEnt));
        assert_eq!(clock.now(), before, "there was no call");
        clock.sleep(Nanos::from_secs(31)).await;
        assert_eq!(ours.lookup(&me, root, b"f").await.unwrap().handle, made.handle);
        // Our own changes are known at once, and do not make us forget.
        ours.create(&me, root, b"g", Sattr3::default(), true).await.unwrap();
        let before = clock.now();
        ours.lookup(&me, root, b"f").await.unwrap();
        ours.lookup(&me, root, b"g").await.unwrap();
        assert_eq!(clock.now(), before, "there was no call");
    });
}

#[test]
fn a_directory_and_what_its_name_leads_to_are_confirmed_by_one_lookup() {
    world(async |clock, site| {
        let (ours, theirs) = (
            mounted(&site, &clock, Options::default()).await,
            mounted(&site, &clock, Options::default()).await,
        );
        let (me, root) = (me(), ours.root());
        theirs.create(&me, root, b"other", Sattr3::default(), true).await.unwrap();
        let file = theirs.create(&me, root, b"f", Sattr3::default(), true).await.unwrap().handle;
        assert_eq!(ours.lookup(&me, root, b"f").await.unwrap().handle, file);
        ours.lookup(&me, root, b"other").await.unwrap();
        let calls = || {
            let counters = ours.session().rpc().counters();
            counters.procedures.iter().map(|one| one.ops).sum::<u64>()
        };
        for _ in 0..2 {
            clock.sleep(Nanos::from_secs(100)).await;
            let before = calls();
            assert_eq!(ours.lookup(&me, root, b"f").await.unwrap().handle, file);
            assert_eq!(calls(), before + 1, "it has the directory's attributes, too");
            // The second name is listed, as ever.
            ours.lookup(&me, root, b"other").await.unwrap();
            assert_eq!(calls(), before + 2);
        }
        clock.sleep(Nanos::from_secs(100)).await;
        theirs.rename(&me, (root, b"other"), (root, b"f")).await.unwrap();
        assert_ne!(ours.lookup(&me, root, b"f").await.unwrap().handle, file);
        let gone = ours.lookup(&me, root, b"other").await.unwrap_err();
        assert_eq!(gone.status(), Some(NfsStat3::NoEnt));
    });
}

#[test]
fn a_change_that_is_refused_does_not_make_a_state_of_the_directory_that_was_found_ours() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        ours.lookup(&me, root, b"x").await.unwrap_err();
        let made = theirs.create(&me, root, b"x", Sattr3::default(), true).await.unwrap();
        site.become_read_only();
        let refused = ours.create(&me, root, b"y", Sattr3::default(), true).await.unwrap_err();
        assert_eq!(refused.status(), Some(NfsStat3::RoFs));
        assert_eq!(ours.lookup(&me, root, b"x").await.unwrap().handle, made.handle);
        let version = ours.version(&made.handle);
        let mode = Sattr3::of_mode(0o600);
        ours.setattr(&me, made.handle, mode).await.unwrap_err();
        assert_eq!(ours.version(&made.handle), version, "nobody has changed it");
    });
}

#[test]
fn opening_a_file_shows_what_was_written_and_closed_elsewhere() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let made = ours.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
        let version = ours.version(&made.handle).unwrap();
        let found = theirs.lookup(&me, root, b"f").await.unwrap();
        let open = theirs.open(&me, found.handle, WRITE).await.unwrap();
        open.write(0, b"theirs").await.unwrap();
        open.flush().await.unwrap();
        open.close().await;
        assert_eq!(ours.getattr(&me, made.handle).await.unwrap().size, 0, "still good");
        let open = ours.open(&me, made.handle, READ).await.unwrap();
        assert_eq!(ours.getattr(&me, made.handle).await.unwrap().size, 6);
        assert_ne!(ours.version(&made.handle), Some(version));
        assert_eq!(open.read(0, 100).await.unwrap(), b"theirs"[..]);
        open.close().await;
    });
}

#[test]
fn our_own_writes_leave_the_version_as_it_is() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let made = ours.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
        for round in 0..3 {
            let open = ours.open(&me, made.handle, WRITE).await.unwrap();
            let writes = (0..8).map(|n| open.write(n * 4096, b"ours"));
            futures_util::future::try_join_all(writes).await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
            clock.sleep(Nanos::from_secs(100 * round)).await;
        }
        ours.open(&me, made.handle, READ).await.unwrap().close().await;
        assert_eq!(ours.version(&made.handle), Some(made.version));
    });
}

#[test]
fn a_hole_before_bytes_that_have_not_arrived_reads_as_zeros() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let made = ours.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
        let open = ours.open(&me, made.handle, WRITE).await.unwrap();
        open.write(5, b"x").await.unwrap();
        assert_eq!(open.read(1, 2).await.unwrap(), [0; 2][..]);
        assert_eq!(open.read(0, 100).await.unwrap(), b"\0\0\0\0\0x"[..]);
        open.write(100_000, b"y").await.unwrap();
        assert_eq!(open.read(4, 3).await.unwrap(), b"\0x\0"[..]);
        assert_eq!(open.read(100_001, 3).await.unwrap(), b""[..]);
        open.close().await;
    });
}

#[test]
fn two_names_of_one_file_are_both_found_after_a_rename_of_one_to_the_other() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let made = ours.create(&me, root, b"a", Sattr3::default(), true).await.unwrap();
        ours.link(&me, made.handle, root, b"b").await.unwrap();
        ours.rename(&me, (root, b"a"), (root, b"b")).await.unwrap();
        let taken = ours.create(&me, root, b"b", Sattr3::default(), true).await.unwrap_err();
        assert_eq!(taken.status(), Some(NfsStat3::Exist));
        ours.rename(&me, (root, b"b"), (root, b"a")).await.unwrap();
        for name in [b"a", b"b"] {
            assert_eq!(ours.lookup(&me, root, name).await.unwrap().handle, made.handle);
        }
        // What had no owner before is known not to be there.
        ours.lookup(&me, root, b"c").await.unwrap_err();
        ours.rename(&me, (root, b"a"), (root, b"c")).await.unwrap();
        let before = clock.now();
        ours.lookup(&me, root, b"a").await.unwrap_err();
        assert_eq!(clock.now(), before, "there was no call");
    });
}

#[test]
fn a_name_that_others_have_given_to_another_file_is_not_remembered_as_it_was_when_we_rename_it() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let first = ours.create(&me, root, b"a", Sattr3::default(), true).await.unwrap().handle;
        theirs.rename(&me, (root, b"a"), (root, b"x")).await.unwrap();
        let second = theirs.create(&me, root, b"a", Sattr3::default(), true).await.unwrap().handle;
        ours.rename(&me, (root, b"a"), (root, b"b")).await.unwrap();
        assert_eq!(ours.lookup(&me, root, b"b").await.unwrap().handle, second);
        assert_eq!(ours.lookup(&me, root, b"x").await.unwrap().handle, first);
        // Two names of one file stay as they are, and they are that since others have linked it.
        ours.create(&me, root, b"c", Sattr3::default(), true).await.unwrap();
        theirs.remove(&me, root, b"c").await.unwrap();
        theirs.link(&me, second, root, b"c").await.unwrap();
        ours.rename(&me, (root, b"b"), (root, b"c")).await.unwrap();
        for name in [b"b", b"c"] {
            assert_eq!(ours.lookup(&me, root, name).await.unwrap().handle, second);
        }
    });
}

/// Which file we have renamed is not sure then; whoever has it open has it all the same.
#[test]
fn a_file_that_is_open_is_what_it_was_when_we_rename_it_where_others_have_made_another() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let log = ours.create(&me, root, b"log", Sattr3::default(), true).await.unwrap().handle;
        clock.sleep(Nanos::from_secs(3)).await;
        ours.lookup(&me, root, b"log").await.unwrap();
        let open = ours.open(&me, log, WRITE).await.unwrap();
        let version = ours.version(&log);
        theirs.create(&me, root, b"other", Sattr3::default(), true).await.unwrap();
        ours.rename(&me, (root, b"log"), (root, b"old")).await.unwrap();
        let again = ours.open(&me, log, WRITE).await.unwrap();
        assert_eq!(ours.version(&log), version);
        again.close().await;
        open.close().await;
    });
}

/// Two programs of one client change one name at the same time, and the replies come in the other
/// order.
#[test]
fn of_two_changes_of_ours_at_the_same_time_neither_is_remembered() {
    world(async |clock, site| {
        let late = |procedure| match procedure {
            Procedure::Remove => Nanos::from_secs(1),
            _ => Nanos::ZERO,
        };
        let session = site.connect().await.unwrap().over(site.rpc_late(late));
        let ours = Files::new(&clock, session, Options::default());
        let (me, root) = (me(), ours.root());
        ours.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
        let made = async {
            clock.sleep(Nanos::from_millis(500)).await;
            ours.create(&me, root, b"f", Sattr3::default(), true).await.unwrap()
        };
        let (removed, made) = futures_util::future::join(ours.remove(&me, root, b"f"), made).await;
        removed.unwrap();
        assert_eq!(ours.lookup(&me, root, b"f").await.unwrap().handle, made.handle);
    });
}

#[test]
fn a_file_that_is_open_outlives_its_name() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        for name in [b"removed", b"replace"] {
            ours.create(&me, root, name, Sattr3::default(), true).await.unwrap();
        }
        let other = ours.create(&me, root, b"other", Sattr3::default(), true).await.unwrap();
        let removed = ours.lookup(&me, root, b"removed").await.unwrap();
        let replaced = ours.lookup(&me, root, b"replace").await.unwrap();
        let opens = [
            ours.open(&me, removed.handle, WRITE).await.unwrap(),
            ours.open(&me, replaced.handle, WRITE).await.unwrap(),
        ];
        ours.remove(&me, root, b"removed").await.unwrap();
        ours.rename(&me, (root, b"other"), (root, b"replace")).await.unwrap();
        assert_eq!(ours.lookup(&me, root, b"replace").await.unwrap().handle, other.handle);
        let gone = ours.lookup(&me, root, b"removed").await.unwrap_err();
        assert_eq!(gone.status(), Some(NfsStat3::NoEnt));
        for open in &opens {
            open.write(0, b"still here").await.unwrap();
            assert_eq!(open.read(0, 20).await.unwrap(), b"still here"[..]);
        }
        assert_eq!(shown_and_hidden(&ours, &me).await, (1, 2));
        for open in opens {
            open.close().await;
        }
        assert_eq!(shown_and_hidden(&ours, &me).await, (1, 0));
    });
}

/// Opens a file while `take` takes its name, each begun after so many microseconds. What is read of
/// it then; none: it was gone.
async fn opened_while(
    (site, clock): (&Site<MemStore>, &Clock),
    (opens, takes): (u64, u64),
    take: impl AsyncFn(&Files, FileHandle),
) -> Option<Bytes> {
    let files = mounted(site, clock, Options::default()).await;
    let (me, root) = (me(), files.root());
    let found = files.create(&me, root, b"f", Sattr3::default(), false).await.unwrap();
    let open = files.open(&me, found.handle, WRITE).await.unwrap();
    open.write(0, b"data").await.unwrap();
    open.flush().await.unwrap();
    open.close().await;
    let opened = async {
        clock.sleep(Nanos::from_micros(opens)).await;
        files.open(&me, found.handle, WRITE).await
    };
    let taken = async {
        clock.sleep(Nanos::from_micros(takes)).await;
        take(&files, root).await;
    };
    let (opened, ()) = tokio::join!(opened, taken);
    let read = match opened {
        Ok(open) => {
            let read = open.read(0, 10).await.unwrap();
            open.close().await;
            Some(read)
        }
        Err(error) => {
            assert_eq!(error.status(), Some(NfsStat3::Stale));
            None
        }
    };
    assert_eq!(shown_and_hidden(&files, &me).await.1, 0);
    read
}

#[test]
fn a_file_that_is_being_opened_outlives_its_name_whichever_call_takes_it() {
    world(async |clock, site| {
        let place = (&site, &clock);
        let remove = async |files: &Files, root| files.remove(&me(), root, b"f").await.unwrap();
        let replace = async |files: &Files, root| {
            files.create(&me(), root, b"g", Sattr3::default(), false).await.unwrap();
            files.rename(&me(), (root, b"g"), (root, b"f")).await.unwrap();
        };
        let data = Some(Bytes::from_static(b"data"));
        for micros in (1..900).step_by(50) {
            for times in [(0, micros), (micros, 0)] {
                let removed = opened_while(place, times, remove).await;
                let replaced = opened_while(place, times, replace).await;
                for read in [removed, replaced] {
                    assert!(read == data || read.is_none() && times.0 > 0, "{times:?}");
                }
            }
        }
    });
}

/// How many names of the root there are: with hidden ones apart.
async fn shown_and_hidden(files: &Files, me: &Credential) -> (usize, usize) {
    let page = files.listing(me, files.root()).page(0).await.unwrap();
    let (dotted, shown): (Vec<_>, Vec<_>) =
        page.entries.iter().partition(|entry| entry.name.starts_with(b"."));
    (shown.len(), dotted.iter().filter(|entry| entry.name.starts_with(b".nfs")).count())
}

#[test]
fn without_attribute_caching_everything_is_requested() {
    world(async |clock, site| {
        let options = Options { times: Times::all(Nanos::ZERO), ..Options::default() };
        let ours = mounted(&site, &clock, options).await;
        let (me, root) = (me(), ours.root());
        let made = ours.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
        for _ in 0..3 {
            let before = clock.now();
            ours.getattr(&me, made.handle).await.unwrap();
            assert!(clock.now().since(before) >= Nanos::from_micros(200));
        }
    });
}

#[test]
fn a_sequential_reader_is_read_ahead_of_and_gets_what_is_there() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let made = ours.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
        let open = ours.open(&me, made.handle, WRITE).await.unwrap();
        let megabyte: Vec<u8> = (0..1_u32 << 20).map(|n| n.to_be_bytes()[2] ^ 7).collect();
        for n in 0..16 {
            open.write(n << 20, &megabyte).await.unwrap();
        }
        let mut times = Vec::new();
        for n in 0..256_u64 {
            let before = clock.now();
            let data = open.read(n << 16, 1 << 16).await.unwrap();
            let at = usize::try_from((n << 16) % (1 << 20)).unwrap();
            assert_eq!(data, megabyte[at..at + (1 << 16)]);
            times.push(clock.now().since(before));
        }
        let waits = times.iter().filter(|time| **time > Nanos::ZERO).count();
        assert!(waits <= 5, "{waits} waits for 16 chunks: one for each doubling");
        // What we write ourselves is seen at once, also where it was fetched already.
        open.write(20, b"new").await.unwrap();
        assert_eq!(open.read(20, 3).await.unwrap(), b"new"[..]);
        assert_eq!(open.read((16 << 20) - 2, 100).await.unwrap().len(), 2);
        assert_eq!(open.read(16 << 20, 100).await.unwrap().len(), 0);
        open.close().await;
    });
}

/// A program here writes in place, and looks at the attributes; then another client appends.
#[test]
fn an_append_asks_where_the_file_ends_though_others_here_have_looked_at_it() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let log = ours.create(&me, root, b"log", Sattr3::default(), true).await.unwrap().handle;
        let appends = ours.open(&me, log, WRITE).await.unwrap();
        appends.write(appends.end().await.unwrap(), b"ours").await.unwrap();
        appends.flush().await.unwrap();
        let beside = ours.open(&me, log, WRITE).await.unwrap();
        beside.write(0, b"O").await.unwrap();
        ours.ask_attributes(&me, log).await.unwrap();
        let other = theirs.open(&me, log, WRITE).await.unwrap();
        other.write(other.end().await.unwrap(), b"theirs").await.unwrap();
        other.flush().await.unwrap();
        assert_eq!(appends.end().await.unwrap(), 10);
        appends.write(10, b"ours").await.unwrap();
        let before = clock.now();
        assert_eq!(appends.end().await.unwrap(), 14);
        assert_eq!(clock.now(), before, "nobody takes turns with what is not stable");
        for open in [appends, beside, other] {
            open.close().await;
        }
    });
}

#[test]
fn a_server_that_asks_for_patience_is_called_again() {
    world(async |clock, site| {
        let session = site.connect().await.unwrap();
        let root = session.getattr(session.root()).await.unwrap();
        // A server that is busy with its tapes for two calls.
        let (ours, theirs) = memory::pair(7);
        let (host, calls) = (Host::new(&clock, Limits::default()), Arc::new(AtomicU32::new(0)));
        let service = move |_: Peer, record: Bytes| {
            let number = calls.fetch_add(1, Ordering::Relaxed);
            let (xid, _) = wire::rpc::peek(&record).unwrap();
            let mut message = Vec::new();
            let status = AcceptStatus::Success;
            let body = ReplyBody::Accepted { verifier: OpaqueAuth::NONE, status };
            ReplyHeader { xid, body }.encode(&mut message);
            let reply: getattr::Reply = match number {
                0 | 1 => Err(NfsStat3::Jukebox.into()),
                _ => Ok(getattr::ReplyOk { obj_attributes: root }),
            };
            reply.encode(&mut message);
            std::future::ready(Some(Message::new(message)))
        };
        clock.spawn(async move { drop(host.connection(theirs, service).await) });
        let busy = session.over(Rpc::start(ours, &clock, REPLY_LIMIT, 1));
        let before = clock.now();
        let files = Files::new(&clock, busy, Options::default());
        assert_eq!(files.getattr(&me(), session.root()).await.unwrap(), root);
        assert!(clock.now().since(before) >= Nanos::from_secs(10), "twice five seconds");
    });
}

/// A file of 2 MiB, and a client of ours whose WRITEs are answered a second late.
async fn late_writer(site: &Site<MemStore>, clock: &Clock) -> (Files, FileHandle) {
    let late = |procedure| match procedure {
        Procedure::Write => Nanos::from_secs(1),
        _ => Nanos::ZERO,
    };
    let session = site.connect().await.unwrap().over(site.rpc_late(late));
    let ours = Files::new(clock, session, Options::default());
    let made = ours.create(&me(), ours.root(), b"f", Sattr3::default(), true).await.unwrap();
    (ours, made.handle)
}

#[test]
fn what_was_written_elsewhere_between_two_writes_of_ours_is_seen_when_the_file_is_opened() {
    world(async |clock, site| {
        let (ours, file) = late_writer(&site, &clock).await;
        let theirs = mounted(&site, &clock, Options::default()).await;
        let open = ours.open(&me(), file, WRITE).await.unwrap();
        assert_eq!(open.read(0, 10).await.unwrap().len(), 0);
        let version = ours.version(&file).unwrap();
        let tenths = |tenths: u64| clock.sleep(Nanos::from_millis(100 * tenths));
        let first = async {
            open.write(0, &[1; 4096]).await.unwrap();
            open.flush().await.unwrap();
        };
        let elsewhere = async {
            tenths(3).await;
            let open = theirs.open(&me(), file, WRITE).await.unwrap();
            open.write(8192, &[2; 4096]).await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
        };
        let second = async {
            tenths(6).await;
            let open = ours.open_made(&me(), file);
            open.write(4096, &[1; 4096]).await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
        };
        futures_util::future::join3(first, elsewhere, second).await;
        open.close().await;
        let open = ours.open(&me(), file, READ).await.unwrap();
        assert_ne!(ours.version(&file), Some(version), "somebody else has written in between");
        assert_eq!(open.read(8192, 4096).await.unwrap(), vec![2; 4096]);
        open.close().await;
        // Once is enough.
        let version = ours.version(&file);
        ours.open(&me(), file, READ).await.unwrap().close().await;
        assert_eq!(ours.version(&file), version);
    });
}

#[test]
fn a_name_that_was_missing_is_not_remembered_of_a_directory_that_has_changed_since() {
    world(async |clock, site| {
        let late = |procedure| match procedure {
            Procedure::Lookup => Nanos::from_secs(1),
            _ => Nanos::ZERO,
        };
        let times = Times::all(Nanos::ZERO);
        let session = site.connect().await.unwrap().over(site.rpc_late(late));
        let ours = Files::new(&clock, session, Options { times, ..Options::default() });
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let lookup = ours.lookup(&me, root, b"f");
        let made = async {
            clock.sleep(Nanos::from_millis(500)).await;
            theirs.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
            // The reply of this one is faster.
            ours.getattr(&me, root).await.unwrap();
        };
        let (missing, ()) = futures_util::future::join(lookup, made).await;
        assert_eq!(missing.unwrap_err().status(), Some(NfsStat3::NoEnt), "when it was looked up");
        ours.lookup(&me, root, b"f").await.unwrap();
    });
}

#[test]
fn a_page_that_comes_late_is_not_remembered_of_a_directory_of_which_nothing_was_known() {
    world(async |clock, site| {
        let late = |procedure| match procedure {
            Procedure::Readdirplus => Nanos::from_secs(1),
            _ => Nanos::ZERO,
        };
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), theirs.root());
        theirs.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
        let session = site.connect().await.unwrap().over(site.rpc_late(late));
        let ours = Files::new(&clock, session, Options::default());
        let listing = ours.listing(&me, root);
        let gone = async {
            clock.sleep(Nanos::from_millis(500)).await;
            theirs.remove(&me, root, b"f").await.unwrap();
            ours.getattr(&me, root).await.unwrap();
        };
        let (page, ()) = futures_util::future::join(listing.page(0), gone).await;
        assert!(page.unwrap().entries.iter().any(|entry| entry.name == b"f"), "as it was");
        let missing = ours.lookup(&me, root, b"f").await.unwrap_err();
        assert_eq!(missing.status(), Some(NfsStat3::NoEnt));
    });
}

/// The LOOKUP is answered with the file of before.
#[test]
fn a_name_that_we_rename_over_while_it_is_looked_up_again_leads_to_a_file_that_can_be_opened() {
    world(async |clock, site| {
        let late = |procedure| match procedure {
            Procedure::Lookup => Nanos::from_secs(1),
            _ => Nanos::ZERO,
        };
        let session = site.connect().await.unwrap().over(site.rpc_late(late));
        let ours = Files::new(&clock, session, Options::default());
        let (me, root) = (me(), ours.root());
        for name in [b"f", b"g"] {
            ours.create(&me, root, name, Sattr3::default(), true).await.unwrap();
        }
        let renamed = async {
            clock.sleep(Nanos::from_millis(500)).await;
            ours.rename(&me, (root, b"g"), (root, b"f")).await.unwrap();
        };
        let looked_up = ours.lookup_again(&me, (root, b"f"), None);
        let (found, ()) = futures_util::future::join(looked_up, renamed).await;
        let (found, opening) = found.unwrap();
        ours.create(&me, root, b"h", Sattr3::default(), true).await.unwrap();
        ours.rename(&me, (root, b"h"), (root, b"f")).await.unwrap();
        let open = ours.open(&me, found.handle, READ).await.unwrap();
        opening.unwrap().end().await;
        open.close().await;
    });
}

#[test]
fn attributes_of_a_file_that_was_found_are_of_one_moment() {
    world(async |clock, site| {
        let late = |procedure| match procedure {
            Procedure::Lookup => Nanos::from_secs(1),
            _ => Nanos::ZERO,
        };
        let session = site.connect().await.unwrap().over(site.rpc_late(late));
        let ours = Files::new(&clock, session, Options::default());
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let file = theirs.create(&me, root, b"f", Sattr3::default(), true).await.unwrap().handle;
        ours.getattr(&me, file).await.unwrap();
        let changed = async {
            clock.sleep(Nanos::from_millis(500)).await;
            let open = theirs.open(&me, file, WRITE).await.unwrap();
            open.write(0, b"theirs").await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
            ours.open(&me, file, READ).await.unwrap().close().await;
        };
        let (found, ()) = futures_util::future::join(ours.lookup(&me, root, b"f"), changed).await;
        let found = found.unwrap();
        assert_eq!(found.version, ours.version(&file).unwrap());
        assert_eq!(found.attributes.size, 6, "the size that goes with this version");
    });
}

/// A mount that several users share, and a file of user 7's to which all may write.
async fn open_to_all(site: &Site<MemStore>, clock: &Clock) -> (Files, FileHandle) {
    let ours = mounted(site, clock, Options::default()).await;
    site.believe_callers();
    let made = ours.create(&me(), ours.root(), b"f", Sattr3::default(), true).await.unwrap();
    let of_owner = Sattr3 { uid: Some(7), ..Sattr3::of_mode(0o666) };
    ours.setattr(&me(), made.handle, of_owner).await.unwrap();
    (ours, made.handle)
}

#[test]
fn who_may_write_no_longer_does_not_lose_what_others_have_written() {
    world(async |clock, site| {
        let (ours, file) = open_to_all(&site, &clock).await;
        let (owner, other) = (user(7), user(8));
        let open = ours.open(&owner, file, WRITE).await.unwrap();
        let others = ours.open(&other, file, WRITE).await.unwrap();
        ours.setattr(&owner, file, Sattr3::of_mode(0o600)).await.unwrap();
        open.write(0, b"mine").await.unwrap();
        others.write(2 << 20, b"theirs").await.unwrap();
        open.write(4 << 20, b"mine").await.unwrap();
        assert_eq!(open.flush().await.unwrap_err().status(), Some(NfsStat3::Acces));
        let counters = ours.write_behind().counters();
        assert_eq!((counters.dropped_bytes, counters.uncommitted_bytes), (6, 0));
        assert_eq!(others.flush().await.unwrap_err().status(), Some(NfsStat3::Acces));
        open.flush().await.unwrap();
        assert_eq!(open.read(4 << 20, 10).await.unwrap(), b"mine"[..]);
        open.close().await;
        others.close().await;
    });
}

/// As the kernel's cache has it, which writes back by any open file of the node.
#[test]
fn what_a_shared_cache_has_is_written_by_whoever_of_its_users_may() {
    world(async |clock, site| {
        let (ours, file) = open_to_all(&site, &clock).await;
        let (owner, other) = (user(7), user(8));
        let open = ours.open(&owner, file, WRITE).await.unwrap();
        let others = ours.open(&other, file, WRITE).await.unwrap();
        ours.setattr(&owner, file, Sattr3::of_mode(0o600)).await.unwrap();
        let data = Bytes::from_static(b"the owner's");
        others.write_back(0, data.clone(), vec![user(9), owner.clone()]).await.unwrap();
        open.flush().await.unwrap();
        let counters = ours.write_behind().counters();
        assert_eq!((counters.dropped_bytes, counters.uncommitted_bytes), (0, 0));
        assert_eq!(counters.writes_sent, 2, "the owner is tried first of those who stand in");
        // Nobody may.
        others.write_back(0, data, vec![user(9)]).await.unwrap();
        assert_eq!(open.flush().await.unwrap_err().status(), Some(NfsStat3::Acces));
        open.close().await;
        others.close().await;
    });
}

#[test]
fn what_was_written_before_its_writer_was_shut_out_is_made_stable_by_another() {
    world(async |clock, site| {
        let (ours, file) = open_to_all(&site, &clock).await;
        let (owner, other) = (user(7), user(8));
        let others = ours.open(&other, file, WRITE).await.unwrap();
        let open = ours.open(&owner, file, WRITE).await.unwrap();
        let elsewhere = mounted(&site, &clock, Options::default()).await;
        others.write_past_caches(0, Bytes::from_static(b"theirs")).await.unwrap();
        open.write_past_caches(4 << 20, Bytes::from_static(b"mine")).await.unwrap();
        elsewhere.setattr(&owner, file, Sattr3::of_mode(0o600)).await.unwrap();
        assert_eq!(ours.write_behind().counters().uncommitted_bytes, 10);
        open.flush().await.unwrap();
        let counters = ours.write_behind().counters();
        assert_eq!((counters.dropped_bytes, counters.uncommitted_bytes), (0, 0));
        open.close().await;
        others.close().await;
    });
}

/// As on a local file system: its close is no error, and the bytes are there.
#[test]
fn what_was_written_is_stable_before_its_writer_is_shut_out() {
    world(async |clock, site| {
        for new in [Sattr3::of_mode(0o600), Sattr3 { gid: Some(9), ..Sattr3::of_mode(0o600) }] {
            let (ours, file) = open_to_all(&site, &clock).await;
            let others = ours.open(&user(8), file, WRITE).await.unwrap();
            others.write(0, b"theirs").await.unwrap();
            ours.setattr(&me(), file, new).await.unwrap();
            assert_eq!(ours.write_behind().counters().uncommitted_bytes, 0);
            others.flush_at_close().await.unwrap();
            others.close().await;
            ours.remove(&me(), ours.root(), b"f").await.unwrap();
        }
    });
}

#[test]
fn rights_that_another_client_has_given_are_taken_away_though_they_were_not_there_before() {
    world(async |clock, site| {
        let ours = mounted(&site, &clock, Options::default()).await;
        let theirs = mounted(&site, &clock, Options::default()).await;
        let (me, root) = (me(), ours.root());
        let made = ours.mkdir(&me, root, b"d", Sattr3::of_mode(0o700)).await.unwrap();
        let found = theirs.lookup(&me, root, b"d").await.unwrap();
        clock.sleep(Nanos::from_secs(2)).await;
        theirs.setattr(&me, found.handle, Sattr3::of_mode(0o755)).await.unwrap();
        ours.setattr(&me, made.handle, Sattr3::of_mode(0o700)).await.unwrap();
        let found = theirs.ask_attributes(&me, found.handle).await.unwrap();
        assert_eq!(found.mode & 0o777, 0o700);
    });
}

#[test]
fn the_name_of_a_file_that_another_user_has_open_goes_when_he_closes_it() {
    world(async |clock, site| {
        site.believe_callers();
        let ours = mounted(&site, &clock, Options::default()).await;
        let (owner, reader, root) = (user(7), user(8), ours.root());
        let dir = ours.mkdir(&me(), root, b"d", Sattr3::of_mode(0o755)).await.unwrap().handle;
        let of_owner = Sattr3 { uid: Some(7), ..Sattr3::default() };
        ours.setattr(&me(), dir, of_owner).await.unwrap();
        let mode = Sattr3::of_mode(0o644);
        for name in [&b"removed"[..], b"replaced", b"new"] {
            ours.create(&owner, dir, name, mode, false).await.unwrap();
        }
        let removed = ours.lookup(&reader, dir, b"removed").await.unwrap().handle;
        let removed = ours.open(&reader, removed, READ).await.unwrap();
        let replaced = ours.lookup(&reader, dir, b"replaced").await.unwrap().handle;
        let replaced = ours.open(&reader, replaced, READ).await.unwrap();
        ours.remove(&owner, dir, b"removed").await.unwrap();
        ours.rename(&owner, (dir, b"new"), (dir, b"replaced")).await.unwrap();
        removed.close().await;
        replaced.close().await;
        ours.remove(&owner, dir, b"replaced").await.unwrap();
        ours.rmdir(&me(), root, b"d").await.unwrap();
    });
}

#[test]
fn a_rename_that_is_refused_leaves_no_hidden_name_where_the_caller_could_not_remove_it() {
    world(async |clock, site| {
        site.believe_callers();
        let ours = mounted(&site, &clock, Options::default()).await;
        let (owner, other, root) = (user(7), user(8), ours.root());
        ours.setattr(&me(), root, Sattr3::of_mode(0o1777)).await.unwrap();
        let mode = Sattr3::of_mode(0o666);
        let theirs = ours.create(&owner, root, b"t", mode, true).await.unwrap().handle;
        ours.create(&other, root, b"n", mode, true).await.unwrap();
        let open = ours.open(&owner, theirs, READ).await.unwrap();
        let refused = ours.rename(&other, (root, b"n"), (root, b"t")).await.unwrap_err();
        assert!(matches!(refused.status(), Some(NfsStat3::Perm | NfsStat3::Acces)), "{refused}");
        open.close().await;
        assert_eq!(shown_and_hidden(&ours, &me()).await, (2, 0));
        assert_eq!(ours.ask_attributes(&me(), theirs).await.unwrap().nlink, 1);
    });
}
