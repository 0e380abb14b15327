//! The room that replies find in a log which is filling.

use bytes::Bytes;
use log::journal::Begin;
use log::reply::{Call, Effect};
use log::scan::scan;
use log::{BLOCK_BYTES, EncodedReply, Journal, Key, Limits, Reply, SIZE_MIN, Set, Stamp};

/// Since when calls came whose replies are written again: all of them.
const EVER: Stamp = Stamp { seconds: i64::MIN, nanos: 0 };

fn journal() -> Journal<()> {
    let set = Set { id: [6; 16], bytes: vec![SIZE_MIN] };
    let mut journal = Journal::new(&set, [0; 16], None, Limits::default());
    write(&mut journal);
    journal
}

/// All frames that are due.
fn write(journal: &mut Journal<()>) {
    let mut buffer = Vec::new();
    loop {
        match journal.begin(0, &mut buffer) {
            Begin::Write { frame, .. } => drop(journal.finish(frame, true)),
            Begin::Idle => return,
            Begin::Stuck => panic!("the log is stuck"),
        }
    }
}

fn reply(xid: u32) -> EncodedReply {
    let call = Call { xid, ..Call::default() };
    let changed = Effect::Changed { changed: Stamp::default() };
    let reply =
        Reply { call, effect: changed, is_decided: false, is_write: false, bytes: &[7; 300] };
    EncodedReply::new(Key::new(b"dir").unwrap(), Stamp::default(), &reply).unwrap()
}

fn used(journal: &Journal<()>) -> u64 {
    journal.fill().0
}

fn fill_with_data(journal: &mut Journal<()>) {
    let (key, data) = (Key::new(b"file").unwrap(), Bytes::from(vec![1; 64 << 10]));
    while journal.admits(&key, data.len()) {
        journal.submit(key, 0, (Stamp::default(), Stamp::default()), data.clone(), ());
        write(journal);
    }
}

#[test]
fn replies_find_room_where_data_find_none_any_more() {
    let mut journal = journal();
    fill_with_data(&mut journal);
    let mut count = 0;
    while journal.admits_reply(&reply(count), 0) {
        let record = journal.submit_reply(reply(count), true, ());
        write(&mut journal);
        journal.decide(record, true);
        count += 1;
    }
    assert!(count > 200, "each in a frame of its own: {count}");
    // It is said that a sweep would help, and it does.
    assert!(journal.awaits_room(&reply(count), true));
    let key = Key::new(b"file").unwrap();
    let through = journal.mark(&key).unwrap();
    journal.past(key, through, ());
    write(&mut journal);
    journal.carry(EVER, || ());
    write(&mut journal);
    assert!(!journal.awaits_room(&reply(count), false));
    write(&mut journal);
    assert!(journal.admits_reply(&reply(count), 0));
    assert!(used(&journal) < SIZE_MIN / 8, "{}", used(&journal));
    assert_eq!(journal.counts().replies_waited, 1);
}

/// A sync that takes long holds the tail of the log; what is swept meanwhile must not fill it.
#[test]
fn replies_behind_one_that_is_open_are_not_written_again() {
    let mut journal = journal();
    let open = journal.submit_reply(reply(0), true, ());
    write(&mut journal);
    for xid in 1..1000 {
        let record = journal.submit_reply(reply(xid), true, ());
        journal.decide(record, true);
    }
    write(&mut journal);
    let before = used(&journal);
    for _ in 0..100 {
        journal.carry(EVER, || ());
        write(&mut journal);
    }
    assert_eq!(used(&journal), before);
    journal.decide(open, true);
    journal.carry(EVER, || ());
    write(&mut journal);
    journal.awaits_room(&reply(1000), true);
    write(&mut journal);
    assert!(used(&journal) < 2 * before, "the frames before are free");
    assert_eq!(journal.replies(), 1000);
}

/// Its client makes the same call again and again, and nothing behind its records becomes free.
#[test]
fn syncs_of_a_doubtful_file_that_fail_again_take_no_room() {
    let mut journal = journal();
    let (key, data) = (Key::new(b"file").unwrap(), Bytes::from_static(b"data"));
    journal.submit(key, 0, (Stamp::default(), Stamp::default()), data, ());
    write(&mut journal);
    let before = used(&journal);
    for _ in 0..100_000 {
        journal.doubt(&key);
        write(&mut journal);
    }
    assert_eq!(used(&journal), before + BLOCK_BYTES, "one frame records it");
}

/// What must always find room finds none any more before that of a start is used.
#[test]
fn a_log_that_takes_nothing_any_more_can_be_started_from() {
    let set = Set { id: [6; 16], bytes: vec![SIZE_MIN] };
    let mut log = vec![0; usize::try_from(SIZE_MIN).unwrap()];
    let mut journal = Journal::new(&set, [0; 16], None, Limits::default());
    let key = Key::new(b"file").unwrap();
    let mut buffer = Vec::new();
    // None of what it is past counts, because it was submitted before what is needed.
    for record in 0.. {
        match journal.begin(0, &mut buffer) {
            Begin::Write { at, frame } => {
                let at = usize::try_from(at).unwrap();
                log[at..at + buffer.len()].copy_from_slice(&buffer);
                journal.finish(frame, true);
            }
            Begin::Stuck => break,
            Begin::Idle => panic!("frame {record} is due"),
        }
        match record {
            0 => {
                let stamps = (Stamp::default(), Stamp::default());
                journal.submit(key, 0, stamps, Bytes::from_static(b"data"), ());
            }
            _ => journal.past(key, 0, ()),
        }
    }
    let found = scan(&log[..], &set).unwrap();
    let mut journal = Journal::new(&set, [1; 16], Some(&found), Limits::default());
    for xid in 0..1024 {
        journal.submit_reply(reply(xid), false, ());
    }
    let Begin::Write { frame, .. } = journal.begin(0, &mut buffer) else { panic!("no room") };
    journal.finish(frame, true);
    assert!(!journal.is_waiting(), "all replies are in its first frame");
    assert!(used(&journal) < SIZE_MIN / 8);
}
