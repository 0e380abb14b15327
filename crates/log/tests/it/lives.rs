//! Journals that go on before all that was found is in its place, as those of proxies do.

use bytes::Bytes;
use log::journal::Begin;
use log::replay::Plan;
use log::scan::{ScanError, scan, walk};
use log::{Journal, Key, Limits, Op, Set};

fn set() -> Set {
    Set { id: [5; 16], bytes: vec![1 << 20] }
}

/// Of so small a log.
fn limits() -> Limits {
    Limits { frame_bytes_due: 100_000, ..Limits::default() }
}

fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

/// Writes the frame that is due, or its first half.
fn write(journal: &mut Journal<()>, log: &mut [u8], is_whole: bool) {
    let mut buffer = Vec::new();
    let Begin::Write { at, frame } = journal.begin(0, &mut buffer) else { panic!("one is due") };
    let (at, len) = (usize::try_from(at).unwrap(), if is_whole { buffer.len() } else { 512 });
    log[at..at + len].copy_from_slice(&buffer[..len]);
    journal.finish(frame, is_whole);
}

fn change(journal: &mut Journal<()>, number: u8, len: usize) {
    let record = journal.next_record();
    journal.submit_change(key(record), Bytes::from(vec![number; len]), ());
}

/// The changes that are still to be done, each by its first byte.
fn needed(log: &[u8]) -> Result<Vec<u8>, ScanError> {
    let logs = [log.to_vec()];
    let found = scan(&logs[..], &set())?;
    let plan = Plan::of(&logs[..], &set(), &found)?;
    let mut needed = Vec::new();
    walk(&logs[..], &set(), &found, |frame| {
        for record in frame.records().flatten() {
            if let Op::Change { data } = record.op
                && plan.needs(&record)
            {
                needed.push(data[0]);
            }
        }
        Ok::<_, ScanError>(())
    })?;
    Ok(needed)
}

/// The next life: what is needed is held.
fn next(log: &[u8]) -> Journal<()> {
    let logs = [log.to_vec()];
    let found = scan(&logs[..], &set()).unwrap();
    let plan = Plan::of(&logs[..], &set(), &found).unwrap();
    let mut journal = Journal::new(&set(), [0; 16], Some(&found), limits());
    walk(&logs[..], &set(), &found, |frame| {
        for record in frame.records().flatten().filter(|record| plan.needs(record)) {
            journal.hold(key(record.sequence), record.sequence, frame.header.sequence);
        }
        Ok::<_, ScanError>(())
    })
    .unwrap();
    journal
}

/// Each life ends in the midst of a frame, which is longer in one than in the next.
#[test]
fn frames_that_were_torn_are_no_gap_for_those_who_go_on() {
    let mut log = vec![0; 1 << 20];
    let mut journal = Journal::new(&set(), [0; 16], None, limits());
    for life in 0..4 {
        write(&mut journal, &mut log, true);
        change(&mut journal, life, 100);
        write(&mut journal, &mut log, true);
        change(&mut journal, 100, 40_000 >> life);
        write(&mut journal, &mut log, false);
        let expected: Vec<_> = (0..=life).collect();
        assert_eq!(needed(&log).unwrap(), expected);
        journal = next(&log);
    }
    // And the torn first frame of a life.
    write(&mut journal, &mut log, false);
    journal = next(&log);
    write(&mut journal, &mut log, true);
    assert_eq!(needed(&log).unwrap(), [0, 1, 2, 3]);
}
