//! Directories that are removed while files of theirs are being closed: a kernel says that nobody
//! has a file open any more when the program that has closed it has gone on.

use client::files::open::Open;
use client::files::{Files, Options};
use net::clock::Clock;
use perf::units::Nanos;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3};

use crate::files::{me, mounted, world};

/// A directory, and the only file of it, which is open and has lost its name.
async fn hidden(files: &Files) -> (FileHandle, Open) {
    let dir = files.mkdir(&me(), files.root(), b"d", Sattr3::default()).await.unwrap().handle;
    let made = files.create_open(&me(), dir, b"f", Sattr3::default(), true).await;
    let (_, open) = made.unwrap();
    open.write(0, b"data").await.unwrap();
    open.flush_at_close().await.unwrap();
    files.remove(&me(), dir, b"f").await.unwrap();
    (dir, open)
}

/// How the removal of the directory ends, and how long that takes.
async fn removed(files: &Files, clock: &Clock) -> (Option<NfsStat3>, Nanos) {
    let begun = clock.now();
    let removed = files.rmdir(&me(), files.root(), b"d").await;
    (removed.err().and_then(|error| error.status()), clock.now().since(begun))
}

#[test]
fn a_directory_goes_with_the_files_that_programs_have_closed() {
    world(async |clock, site| {
        let files = mounted(&site, &clock, Options::default()).await;
        for millis in [0, 50, 900] {
            let (_, open) = hidden(&files).await;
            open.is_left();
            let close = async {
                clock.sleep(Nanos::from_millis(millis)).await;
                open.close().await;
            };
            let (removed, ()) = tokio::join!(removed(&files, &clock), close);
            assert_eq!(removed.0, None, "closed after {millis} ms");
        }
    });
}

#[test]
fn a_file_that_ends_is_waited_for_however_long_that_takes() {
    world(async |clock, site| {
        let files = mounted(&site, &clock, Options::default()).await;
        let (_, open) = hidden(&files).await;
        open.end_begins();
        let close = async {
            clock.sleep(Nanos::from_secs(20)).await;
            open.close().await;
        };
        let (removed, ()) = tokio::join!(removed(&files, &clock), close);
        assert_eq!(removed.0, None);
    });
}

#[test]
fn a_directory_stays_where_a_program_has_a_file_of_it_open() {
    world(async |clock, site| {
        let files = mounted(&site, &clock, Options::default()).await;
        let (_, open) = hidden(&files).await;
        let (status, took) = removed(&files, &clock).await;
        assert_eq!(status, Some(NfsStat3::NotEmpty));
        assert!(took < Nanos::from_millis(1), "{took}: nobody has closed it");
        open.is_left();
        open.read(0, 1).await.unwrap();
        assert!(removed(&files, &clock).await.1 < Nanos::from_millis(1), "it is used after all");
        open.is_left();
        let (status, took) = removed(&files, &clock).await;
        assert_eq!(status, Some(NfsStat3::NotEmpty));
        assert!(took < Nanos::from_millis(1_100), "{took}: another descriptor has it");
        open.close().await;
        assert_eq!(removed(&files, &clock).await.0, None);
    });
}

#[test]
fn a_directory_that_takes_the_place_of_another_waits_for_its_hidden_names() {
    world(async |clock, site| {
        let files = mounted(&site, &clock, Options::default()).await;
        let root = files.root();
        files.mkdir(&me(), root, b"other", Sattr3::default()).await.unwrap();
        let (_, open) = hidden(&files).await;
        open.is_left();
        let close = async {
            clock.sleep(Nanos::from_millis(50)).await;
            open.close().await;
        };
        let who = me();
        let renamed = files.rename(&who, (root, b"other"), (root, b"d"));
        let (renamed, ()) = tokio::join!(renamed, close);
        renamed.unwrap();
    });
}
