//! Several logs are one: their frames have one sequence.

use bytes::Bytes;
use log::journal::Begin;
use log::replay::Plan;
use log::scan::{ScanError, scan};
use log::{Journal, Key, Limits, Op, Set, Stamp};

const BYTES: usize = 1 << 20;

fn set() -> Set {
    Set { id: [5; 16], bytes: vec![BYTES as u64; 3] }
}

fn journal() -> Journal<()> {
    let limits = Limits { data_bytes_max: 8192, frame_bytes_due: 8192, ..Limits::default() };
    Journal::new(&set(), [0; 16], None, limits)
}

fn submit(journal: &mut Journal<()>, number: u64) {
    let key = Key::new(b"file").unwrap();
    let stamps = (Stamp::default(), Stamp::default());
    journal.submit(key, 0, stamps, Bytes::from(number.to_le_bytes().to_vec()), ());
}

struct Written {
    frame: u64,
    log: usize,
    at: usize,
}

/// The frame that is due, in the log for which it is.
fn write(journal: &mut Journal<()>, logs: &mut [Vec<u8>]) -> Written {
    let (log, mut buffer) = (journal.emptiest().unwrap(), Vec::new());
    let Begin::Write { at, frame } = journal.begin(log, &mut buffer) else {
        panic!("it is for log {log}")
    };
    let at = usize::try_from(at).unwrap();
    logs[log][at..at + buffer.len()].copy_from_slice(&buffer);
    Written { frame, log, at }
}

/// Numbers 1 to `last`, one in a frame, all to the same place of the same file.
fn written(last: u64) -> (Vec<Vec<u8>>, Vec<Written>) {
    let mut logs = vec![vec![0; BYTES]; 3];
    let mut journal = journal();
    let mut all = vec![write(&mut journal, &mut logs)];
    journal.finish(all[0].frame, true);
    for number in 1..=last {
        submit(&mut journal, number);
        let one = write(&mut journal, &mut logs);
        journal.finish(one.frame, true);
        all.push(one);
    }
    (logs, all)
}

/// What a replay gives the file, one after the other.
fn replayed(logs: &[Vec<u8>]) -> Result<Vec<u64>, ScanError> {
    let found = scan(logs, &set())?;
    let plan = Plan::of(logs, &set(), &found)?;
    let mut numbers = Vec::new();
    plan.run(logs, &set(), &found, |record| {
        let Op::Data { data, .. } = record.op else { return Ok(()) };
        numbers.push(u64::from_le_bytes(data.try_into().unwrap()));
        Ok::<_, ScanError>(())
    })?;
    Ok(numbers)
}

#[test]
fn records_are_spread_and_replayed_in_the_order_in_which_they_were_answered() {
    let (logs, all) = written(30);
    for log in 0..3 {
        assert!(all.iter().filter(|one| one.log == log).count() >= 8, "log {log} has its share");
    }
    assert_eq!(replayed(&logs).unwrap(), (1..=30).collect::<Vec<_>>());
}

#[test]
fn what_is_missing_in_one_of_them_is_damage_and_its_last_frame_a_torn_end() {
    let (whole, all) = written(6);
    for (index, one) in all.iter().enumerate().skip(1) {
        let mut logs = whole.clone();
        let &Written { log, at, .. } = one;
        logs[log][at + 200] ^= 1;
        match (index, replayed(&logs)) {
            (6, Ok(numbers)) => assert_eq!(numbers, [1, 2, 3, 4, 5]),
            (1..6, Err(ScanError::Damaged { missing, .. })) => {
                assert_eq!(missing, one.frame)
            }
            (_, other) => panic!("frame {index}: {other:?}"),
        }
    }
    for log in 0..3 {
        let mut logs = whole.clone();
        logs[log].fill(0);
        assert!(replayed(&logs).is_err(), "log {log} is empty");
    }
}

#[test]
fn a_frame_that_is_behind_one_on_its_way_in_another_log_is_answered_after_it() {
    let (mut logs, mut journal) = (vec![vec![0; BYTES]; 3], journal());
    let first = write(&mut journal, &mut logs);
    journal.finish(first.frame, true);
    submit(&mut journal, 1);
    let slow = write(&mut journal, &mut logs);
    submit(&mut journal, 2);
    let fast = write(&mut journal, &mut logs);
    assert_ne!(slow.log, fast.log, "it does not wait for the device");
    assert!(journal.finish(fast.frame, true).is_empty());
    assert_eq!(journal.finish(slow.frame, true).len(), 2);

    // The slow one never came: what stands behind it was answered to nobody.
    logs[slow.log][slow.at..slow.at + 512].fill(0);
    assert_eq!(replayed(&logs).unwrap(), []);
}

#[test]
fn a_copy_of_one_log_in_the_place_of_another_is_none() {
    let (mut logs, all) = written(6);
    let (from, to) = (all[5].log, all[6].log);
    logs[to] = logs[from].clone();
    assert!(replayed(&logs).is_err());
}

/// A small log beside a large one fills first; then the large one takes what comes.
#[test]
fn a_full_log_leaves_the_work_to_the_others() {
    let set = Set { id: [5; 16], bytes: vec![40 * 4096, 400 * 4096] };
    let limits = Limits { data_bytes_max: 4096, frame_bytes_due: 4096, ..Limits::default() };
    let mut journal = Journal::<()>::new(&set, [0; 16], None, limits);
    let mut buffer = Vec::new();
    let mut frames = [0; 2];
    let key = Key::new(b"file").unwrap();
    for number in 0..1000 {
        let log = journal.emptiest().unwrap();
        let Begin::Write { frame, .. } = journal.begin(log, &mut buffer) else { break };
        journal.finish(frame, true);
        frames[log] += 1;
        if !journal.admits(&key, 4000) {
            assert!(number > 100, "{frames:?}");
            break;
        }
        let stamps = (Stamp::default(), Stamp::default());
        journal.submit(key, 0, stamps, Bytes::from(vec![1; 4000]), ());
    }
    assert!(frames[0] >= 10 && frames[1] > 100, "{frames:?}");
    // What makes room finds some, and then there is room again.
    let through = journal.mark(&key).unwrap();
    journal.past(key, through, ());
    for _ in 0..4 {
        for log in 0..2 {
            if let Begin::Write { frame, .. } = journal.begin(log, &mut buffer) {
                journal.finish(frame, true);
            }
        }
    }
    assert_eq!(journal.mark(&key), None);
    assert!(journal.admits(&key, 4000));
    let (used, all) = journal.fill();
    assert!(used < all / 8, "{used} of {all}");
}
