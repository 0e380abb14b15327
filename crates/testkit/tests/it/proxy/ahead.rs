//! Reading ahead: as fast as the path allows, and never what clients know to be old.

use bytes::Bytes;
use client::session::Session;
use perf::units::Nanos;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, SetTime, StableHow};

use super::{away, proxied, reading, world_behind};

const FAR: Nanos = Nanos::from_millis(10);
const BLOCK: u32 = 64 << 10;

async fn filled(session: &Session, bytes: usize, fill: u8) -> FileHandle {
    let how = CreateHow::Unchecked(Sattr3::of_mode(0o644));
    let file = session.create(session.root(), b"file", how).await.unwrap().obj.unwrap();
    write(session, file, bytes, fill).await;
    file
}

async fn write(session: &Session, file: FileHandle, bytes: usize, fill: u8) {
    for at in (0..bytes).step_by(1 << 20) {
        let data = Bytes::from(vec![fill; (bytes - at).min(1 << 20)]);
        session.write(file, at as u64, data, StableHow::FileSync).await.unwrap();
    }
}

/// Reads one block after the other, as a client with little read-ahead of its own.
async fn read_all(session: &Session, file: FileHandle, bytes: u64) -> Vec<u8> {
    let mut got = Vec::new();
    while (got.len() as u64) < bytes {
        let read = session.read(file, got.len() as u64, BLOCK).await.unwrap();
        assert!(!read.data.is_empty());
        got.extend_from_slice(&read.data);
    }
    got
}

#[test]
fn a_sequential_reader_next_to_the_proxy_is_as_fast_as_the_path_to_the_origin() {
    world_behind(away(FAR), async |clock, origin| {
        const BYTES: usize = 32 << 20;
        let proxy = proxied(&clock, &origin).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        filled(&session, BYTES + 5, 7).await;
        let file = session.lookup(session.root(), b"file").await.unwrap().object;
        let begun = clock.now();
        let got = read_all(&session, file, BYTES as u64 + 5).await;
        assert!(got.iter().all(|&byte| byte == 7));
        let took = clock.now().since(begun);
        let last = session.read(file, BYTES as u64, BLOCK).await.unwrap();
        assert_eq!((last.data.len(), last.eof), (5, true));
        // One call of 64 KiB at a time takes 513 network round trips: 10.3 s.
        assert!(took < Nanos::from_millis(500), "{took}");
        assert!(reading(&proxy, "nfskit_readahead_bytes") <= f64::from(64 << 20));
        clock.sleep(Nanos::from_secs(10)).await;
        server::store::Store::tend(&*proxy.store(), clock.now()).await;
        assert_eq!(reading(&proxy, "nfskit_readahead_bytes"), 0.0, "it is given back");
    });
}

#[test]
fn reads_here_and_there_fetch_nothing_else() {
    world_behind(away(FAR), async |clock, origin| {
        let proxy = proxied(&clock, &origin).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let file = filled(&session, 8 << 20, 7).await;
        let before = reading(&proxy, "nfskit_origin_calls_total");
        for block in [100_u64, 3, 90, 20, 120, 50, 77, 10] {
            session.read(file, block * u64::from(BLOCK), BLOCK).await.unwrap();
        }
        assert_eq!(reading(&proxy, "nfskit_origin_calls_total") - before, 8.0);
    });
}

#[test]
fn who_asks_for_attributes_reads_what_they_say_and_who_does_not_is_behind_for_3_s_at_most() {
    world_behind(away(FAR), async |clock, origin| {
        const BYTES: usize = 4 << 20;
        let proxy = proxied(&clock, &origin).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let direct = origin.session(origin.rpc()).await.unwrap();
        let theirs = filled(&direct, BYTES, 1).await;
        let file = session.lookup(session.root(), b"file").await.unwrap().object;
        for number in 2..6 {
            read_all(&session, file, (BYTES / 2) as u64).await;
            write(&direct, theirs, BYTES, number).await;
            let attributes = session.getattr(file).await.unwrap();
            assert_eq!(attributes.mtime, direct.getattr(theirs).await.unwrap().mtime);
            let got = read_all(&session, file, BYTES as u64).await;
            assert!(got.iter().all(|&byte| byte == number), "after it was changed for {number}");
        }
        read_all(&session, file, (BYTES / 2) as u64).await;
        write(&direct, theirs, BYTES, 9).await;
        clock.sleep(Nanos::from_secs(4)).await;
        let got = read_all(&session, file, BYTES as u64).await;
        assert!(got.iter().all(|&byte| byte == 9));
    });
}

#[test]
fn what_a_client_changes_itself_it_reads() {
    world_behind(away(FAR), async |clock, origin| {
        const BYTES: usize = 2 << 20;
        let proxy = proxied(&clock, &origin).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let file = filled(&session, BYTES, 1).await;
        for number in 2..5 {
            read_all(&session, file, (BYTES / 2) as u64).await;
            write(&session, file, BYTES, number).await;
            let got = read_all(&session, file, BYTES as u64).await;
            assert!(got.iter().all(|&byte| byte == number));
        }
        // Shorter, with the times that it had.
        let mtime = session.getattr(file).await.unwrap().mtime;
        let mtime = SetTime::ClientTime(mtime);
        let cut = Sattr3 { size: Some(10), mtime, ..Sattr3::default() };
        read_all(&session, file, BYTES as u64).await;
        session.setattr(file, cut, None).await.unwrap();
        let read = session.read(file, 0, BLOCK).await.unwrap();
        assert_eq!((read.data.len(), read.eof), (10, true));
        let read = session.read(file, 1 << 20, BLOCK).await.unwrap();
        assert_eq!((read.data.len(), read.eof), (0, true));
    });
}

/// They change links and times of a file that the call does not name.
#[test]
fn a_client_that_removes_or_moves_a_name_reads_what_that_has_left_of_the_file() {
    world_behind(away(FAR), async |clock, origin| {
        const BYTES: usize = 8 * BLOCK as usize;
        for is_looked_up in [true, false] {
            let proxy = proxied(&clock, &origin).await;
            let session = proxy.session(proxy.rpc()).await.unwrap();
            let root = session.root();
            let direct = origin.session(origin.rpc()).await.unwrap();
            let theirs = filled(&direct, BYTES, 1).await;
            for name in [&b"b"[..], b"c", b"e"] {
                direct.link(theirs, direct.root(), name).await.unwrap();
            }
            let how = CreateHow::Unchecked(Sattr3::of_mode(0o644));
            direct.create(direct.root(), b"other", how).await.unwrap();
            if is_looked_up {
                for name in [&b"b"[..], b"c", b"e", b"other"] {
                    session.lookup(root, name).await.unwrap();
                }
                session.lookup(root, b"d").await.unwrap_err();
            }
            let file = session.lookup(root, b"file").await.unwrap().object;
            for change in 0..3 {
                read_all(&session, file, (BYTES / 2) as u64).await;
                match change {
                    0 => drop(session.remove(root, b"b").await.unwrap()),
                    1 => drop(session.rename((root, b"c"), (root, b"d")).await.unwrap()),
                    _ => drop(session.rename((root, b"other"), (root, b"e")).await.unwrap()),
                }
                let read = session.read(file, (BYTES / 2) as u64, BLOCK).await.unwrap();
                let now = direct.getattr(theirs).await.unwrap();
                let shown = read.file_attributes.unwrap();
                assert_eq!((shown.nlink, shown.ctime), (now.nlink, now.ctime), "{change}");
            }
            direct.remove(direct.root(), b"d").await.unwrap();
            direct.remove(direct.root(), b"e").await.unwrap();
            read_all(&session, file, (BYTES / 2) as u64).await;
            session.remove(root, b"file").await.unwrap();
            let gone = session.read(file, (BYTES / 2) as u64, BLOCK).await.unwrap_err();
            assert_eq!(gone.status(), Some(NfsStat3::Stale), "its last name is gone");
        }
    });
}

#[test]
fn a_file_that_has_grown_ends_where_the_attributes_of_the_reply_say() {
    world_behind(away(FAR), async |clock, origin| {
        const BYTES: usize = 2 * BLOCK as usize + 5;
        let proxy = proxied(&clock, &origin).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let direct = origin.session(origin.rpc()).await.unwrap();
        let theirs = filled(&direct, BYTES, 1).await;
        let file = session.lookup(session.root(), b"file").await.unwrap().object;
        session.read(file, 0, BLOCK).await.unwrap();
        write(&direct, theirs, BYTES + 1000, 2).await;
        let read = session.read(file, u64::from(BLOCK), 4 * BLOCK).await.unwrap();
        assert_eq!(read.file_attributes.unwrap().size, BYTES as u64 + 1000);
        assert_eq!((read.data.len(), read.eof), (BLOCK as usize + 5 + 1000, true));
    });
}
