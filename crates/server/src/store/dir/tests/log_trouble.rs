//! A write log that cannot be written any more, and one that is damaged.

use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use log::BLOCK_BYTES;
use log::frame::{Builder, Header};

use super::logged::{Logged, logged, lose, options};
use super::*;
use crate::store::dir::write_log::{self, GivenUp, OnFailure, UNREADABLE, WRITES_FAIL};

/// A server with a log and a file that has a record.
fn with_record(on_failure: OnFailure) -> Option<(Logged, Handle)> {
    let mut at = logged()?;
    at.at.options.write_log.as_mut().unwrap().on_failure = on_failure;
    // The first store has to let the log go before the next one takes it.
    let other = DirStore::open(at.at.outside(""), &DirOptions::default()).unwrap();
    drop(std::mem::replace(&mut at.at.store, other));
    at.open();
    let file = at.file("file", b"old");
    at.write(&file, 0, b"logged", Stability::FileSync).unwrap();
    Some((at, file))
}

fn break_log(at: &Logged) {
    let log = at.at.store.tree.log.as_ref().unwrap();
    log.logs.as_ref().unwrap().files[0].fails.store(true, Ordering::SeqCst);
}

fn without_log(at: &Fixture) -> Result<DirStore, OpenError> {
    DirStore::open(at.path(""), &DirOptions::default())
}

#[test]
fn a_server_whose_log_fails_has_calls_made_again_and_needs_it_no_more() {
    let Some((at, file)) = with_record(OnFailure::Stop) else { return };
    break_log(&at);
    assert!(without_log(&at.at).is_err());
    let refused = at.write(&file, 0, b"newest", Stability::FileSync).unwrap_err();
    assert_eq!(refused, Status::Jukebox);
    assert_eq!(block_on(at.at.store.log_given_up()), GivenUp::InPlace);
    assert!(at.at.store.sync_failures() > 0);
    without_log(&at.at).unwrap();
    block_on(at.at.store.end_log()).unwrap();
}

#[test]
fn a_server_that_does_without_its_log_syncs_files_and_answers_when_it_is_forgotten() {
    let Some((at, file)) = with_record(OnFailure::Degrade) else { return };
    break_log(&at);
    let before = at.syncs();
    let committed = at.write(&file, 0, b"newest", Stability::FileSync).unwrap();
    assert!(matches!(committed, Committed::Stable(Stability::FileSync, _)));
    assert!(at.syncs() > before + 1, "for what it held, and for what it did not take");
    without_log(&at.at).unwrap();
    at.write(&file, 6, b"!", Stability::DataSync).unwrap();
    at.commit(&file).unwrap();
    let committed = at.syncs();
    at.write(&file, 0, b"N", Stability::FileSync).unwrap();
    assert_eq!(at.syncs(), committed + 1, "as without a log");

    // The log comes back after a loss of power: what is in it is older than the file.
    let Fixture { store, place, .. } = at.at;
    drop(store);
    let again = options(place.path().join("outside/log"), 2);
    let refused = DirStore::open(place.path().join("export"), &again).map(drop).unwrap_err();
    assert!(refused.to_string().contains("went on without it"), "{refused}");
    assert_eq!(fs::read(place.path().join("export/file")).unwrap(), b"Newest!");
}

#[test]
fn a_commit_behind_a_failed_log_is_answered_when_no_replay_can_undo_it() {
    for on_failure in [OnFailure::Stop, OnFailure::Degrade] {
        let Some((at, file)) = with_record(on_failure) else { return };
        at.write(&file, 0, b"newest", Stability::Unstable).unwrap();
        break_log(&at);
        let outcome = at.commit(&file);
        match on_failure {
            OnFailure::Stop => assert_eq!(outcome, Err(Status::Jukebox)),
            OnFailure::Degrade => outcome.unwrap(),
        }
        without_log(&at.at).unwrap();
    }
}

#[test]
fn a_log_that_fails_with_files_that_cannot_be_synced_stays_for_the_next_start() {
    let Some((at, file)) = with_record(OnFailure::Degrade) else { return };
    at.fails.store(true, Ordering::SeqCst);
    break_log(&at);
    assert_eq!(at.write(&file, 0, b"newest", Stability::FileSync).unwrap_err(), Status::Io);
    assert_eq!(block_on(at.at.store.log_given_up()), GivenUp::Needed);
    assert!(without_log(&at.at).is_err());
    at.fails.store(false, Ordering::SeqCst);
    assert_eq!(at.commit(&file), Err(Status::Io), "what the kernel had of it may be gone");
    assert!(block_on(at.at.store.end_log()).is_err());
    // Also on a machine that was not switched off.
    let (at, recovered) = at.again(1, |at| lose(at, "file", b"old"));
    assert!(!recovered.was_running);
    assert_eq!((recovered.files, recovered.records), (1, 1));
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"logged");
}

#[test]
fn a_start_that_cannot_write_its_log_leaves_the_directory_without_one() {
    let Some((at, _)) = with_record(OnFailure::Stop) else { return };
    block_on(at.at.store.end_log()).unwrap();
    let Fixture { store, place, options } = at.at;
    drop(store);
    let dir = place.path().join("export");
    WRITES_FAIL.set(true);
    let refused = DirStore::open(&dir, &options).map(drop).unwrap_err().to_string();
    WRITES_FAIL.set(false);
    assert!(refused.contains("it cannot be written"), "{refused}");
    DirStore::open(&dir, &DirOptions::default()).unwrap();
}

/// The place of the frame that is so many before the newest.
fn frame_before_newest(log: &[u8], before: usize) -> usize {
    let blocks = log.chunks(4096).enumerate();
    let frames = blocks.filter(|(_, block)| block.starts_with(b"nfsframe"));
    let number = |block: &[u8]| u64::from_le_bytes(block[48..56].try_into().unwrap());
    let mut frames: Vec<_> = frames.map(|(at, block)| (number(block), at * 4096)).collect();
    frames.sort_unstable();
    frames[frames.len() - 1 - before].1
}

#[test]
fn of_a_damaged_log_what_is_whole_is_salvaged_and_the_rest_is_reported() {
    let Some((at, file)) = with_record(OnFailure::Stop) else { return };
    at.write(&file, 10, b"lost", Stability::FileSync).unwrap();
    at.write(&file, 20, b"whole", Stability::FileSync).unwrap();
    let Fixture { store, place, .. } = at.at;
    drop(store);
    let (log, dir) = (place.path().join("outside/log"), place.path().join("export"));
    let mut bytes = fs::read(&log).unwrap();
    let middle = frame_before_newest(&bytes, 1);
    bytes[middle + 200] ^= 1;
    // And its first block.
    bytes[100] ^= 1;
    fs::write(&log, &bytes).unwrap();
    fs::write(dir.join("file"), b"old").unwrap();
    let mut options = options(log.clone(), 2);
    let refused = DirStore::open(&dir, &options).map(drop).unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
    assert!(fs::read(&log).unwrap() == bytes, "nothing was overwritten");

    options.write_log.as_mut().unwrap().salvages = true;
    let store = DirStore::open(&dir, &options).unwrap();
    let recovered = store.recovered().unwrap();
    assert_eq!((recovered.files, recovered.records), (1, 2));
    let lost = recovered.lost.unwrap();
    assert_eq!(lost.frames, 1);
    let mut wanted = b"logged".to_vec();
    wanted.resize(20, 0);
    wanted.extend(b"whole");
    assert_eq!(fs::read(dir.join("file")).unwrap(), wanted);
    drop(store);
    // From then on it is a log like any other.
    options.write_log.as_mut().unwrap().salvages = false;
    options.write_log.as_mut().unwrap().boot = Some([3; 16]);
    let store = DirStore::open(&dir, &options).unwrap();
    assert_eq!(store.recovered().unwrap().lost, None);
    assert_eq!(store.recovered().unwrap().records, 0);
}

/// Fills a log up to its oldest frame with others that say nothing new, as the syncs of a doubtful
/// file once did.
fn fill_to_the_end(path: &Path) -> Vec<u8> {
    let mut log = fs::read(path).unwrap();
    let id: [u8; 16] = log[24..40].try_into().unwrap();
    let newest = frame_before_newest(&log, 0);
    let mut header = Header::decode(&log[newest..], &id, 0, newest as u64).unwrap();
    let before = usize::try_from(header.sequence - header.tail).unwrap();
    let oldest = frame_before_newest(&log, before) as u64;
    let (mut frame, bytes) = (Vec::new(), BLOCK_BYTES);
    loop {
        let end = header.at + header.bytes;
        let at = if end == log.len() as u64 { bytes } else { end };
        if at == oldest {
            break;
        }
        let (sequence, stable) = (header.sequence + 1, header.sequence);
        let next = Header { at, sequence, stable, flags: 0, ..header };
        header = Builder::new(&mut frame).seal(&next);
        let at = usize::try_from(at).unwrap();
        log[at..at + frame.len()].copy_from_slice(&frame);
    }
    fs::write(path, &log).unwrap();
    log
}

#[test]
fn a_log_that_is_full_to_its_end_is_begun_anew_when_all_is_in_its_place() {
    let Some((at, _)) = with_record(OnFailure::Stop) else { return };
    let log = at.at.outside("log");
    let mut full = Vec::new();
    let (at, recovered) = at.again(2, |at| {
        full = fill_to_the_end(&log);
        lose(at, "file", b"old");
    });
    assert_eq!((recovered.files, recovered.records), (1, 1));
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"logged");

    // The power had gone in the midst of its first frame, which lies over one that was needed.
    let (at, recovered) = at.again(3, |at| {
        full[4096 + 512..][..512].fill(1);
        fs::write(&log, &full).unwrap();
        let anew = c"user.nfskit.write_log.anew";
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(at.path(""), anew, &full[24..40], flags).unwrap();
        fs::write(at.path("file"), b"newer").unwrap();
    });
    assert_eq!((recovered.files, recovered.lost), (0, None));
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"newer");
    let (_, recovered) = at.again(4, |_| {});
    assert_eq!((recovered.files, recovered.lost), (0, None));
}

#[test]
fn what_was_cut_off_a_log_is_reported_as_lost() {
    let Some((at, file)) = with_record(OnFailure::Stop) else { return };
    at.write(&file, 10, b"more", Stability::FileSync).unwrap();
    let Fixture { store, place, .. } = at.at;
    drop(store);
    let (log, dir) = (place.path().join("outside/log"), place.path().join("export"));
    let bytes = fs::read(&log).unwrap();
    let newest = frame_before_newest(&bytes, 0);
    // All frames; the newest; and nothing, but the log is as long as it was.
    for (left, len, records) in [(4096, 4096, 0), (newest, newest, 1), (4096, bytes.len(), 0)] {
        let mut some = bytes[..left].to_vec();
        some.resize(len, 0);
        fs::write(&log, &some).unwrap();
        forget_starts(&dir);
        let mut options = options(log.clone(), 2);
        DirStore::open(&dir, &options).map(drop).unwrap_err();
        options.write_log.as_mut().unwrap().salvages = true;
        let store = DirStore::open(&dir, &options).unwrap();
        let recovered = store.recovered().unwrap();
        assert_eq!(recovered.records, records);
        assert_eq!(recovered.cut_bytes, (bytes.len() - len) as u64);
        assert_eq!(recovered.is_end_lost, left == 4096, "no frame is there");
    }
}

/// So that an older copy of the log is not refused.
fn forget_starts(dir: &Path) {
    for name in [c"user.nfskit.write_log.start", c"trusted.nfskit.write_log.start"] {
        rustix::fs::removexattr(dir, name).ok();
    }
}

#[test]
fn a_log_with_a_bad_sector_is_refused_only_where_something_needs_it() {
    let Some((at, file)) = with_record(OnFailure::Stop) else { return };
    at.write(&file, 10, b"more", Stability::FileSync).unwrap();
    let Fixture { store, place, .. } = at.at;
    drop(store);
    let (log, dir) = (place.path().join("outside/log"), place.path().join("export"));
    let bytes = fs::read(&log).unwrap();
    let start = |bad: usize, salvages| {
        fs::write(&log, &bytes).unwrap();
        fs::write(dir.join("file"), b"old").unwrap();
        forget_starts(&dir);
        UNREADABLE.set(Some(bad as u64));
        let mut options = options(log.clone(), 2);
        options.write_log.as_mut().unwrap().salvages = salvages;
        let opened = DirStore::open(&dir, &options);
        UNREADABLE.set(None);
        opened.map(|store| store.recovered().unwrap().clone()).map_err(|error| error.to_string())
    };
    let far = start(bytes.len() / 2, false).unwrap();
    let unreadable = far.unreadable.unwrap();
    assert_eq!((far.records, unreadable.blocks, unreadable.may_be_newest), (2, 1, false));
    assert_eq!(fs::read(dir.join("file")).unwrap(), b"logged\0\0\0\0more");
    // The newest may have been answered.
    let newest = frame_before_newest(&bytes, 0);
    let refused = start(newest, false).unwrap_err();
    assert!(refused.contains("what was answered last may be lost: 1 block"), "{refused}");
    let newest = start(newest, true).unwrap();
    assert_eq!((newest.records, newest.unreadable.unwrap().may_be_newest), (1, true));

    let needed = frame_before_newest(&bytes, 1);
    let refused = start(needed, false).unwrap_err();
    let place = format!("1 block of it cannot be read, at byte {needed}");
    assert!(refused.contains("damaged in the middle") && refused.contains(&place), "{refused}");
    let salvaged = start(needed, true).unwrap();
    assert_eq!((salvaged.records, salvaged.lost.unwrap().frames), (1, 1));
}

#[test]
fn every_flipped_bit_of_a_first_block_is_reported_and_nothing_is_overwritten() {
    let Some((at, _)) = with_record(OnFailure::Stop) else { return };
    let Fixture { store, place, .. } = at.at;
    drop(store);
    let log = place.path().join("outside/log");
    let whole = fs::read(&log).unwrap();
    let file = fs::File::options().read(true).write(true).open(&log).unwrap();
    for bit in 0..4096 * 8 {
        let byte = whole[bit / 8] ^ 1 << (bit % 8);
        file.write_all_at(&[byte], bit as u64 / 8).unwrap();
        let look = || {
            let refused = write_log::inspect(std::slice::from_ref(&log)).map(drop).unwrap_err();
            refused.to_string()
        };
        // A program that another test is about to start has it for a moment longer.
        let sentence =
            (0..1_000_000).map(|_| look()).find(|sentence| !sentence.contains("another server"));
        let sentence = sentence.unwrap();
        assert!(sentence.contains("its first block is damaged"), "bit {bit}: {sentence}");
        let mut found = [0];
        file.read_exact_at(&mut found, bit as u64 / 8).unwrap();
        assert_eq!(found, [byte], "bit {bit} is as it was");
        file.write_all_at(&whole[bit / 8..=bit / 8], bit as u64 / 8).unwrap();
    }
    assert!(fs::read(&log).unwrap() == whole, "nothing was overwritten");
}
