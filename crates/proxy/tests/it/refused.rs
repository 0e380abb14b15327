//! The origin refuses changes that clients were answered.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use perf::units::Nanos;
use proxy::write_back::{Event, Gone, Settled};
use server::store::Store;
use server::types::{Caller, SetAttr, Stability, Status};

use crate::conflicts::{Set, find, make, make_dir, read, test, write};
use crate::origin::Requested;
use crate::stage::{names, root};

/// Those that were set aside: what, where, and where their bytes are.
fn aside(events: &[Event]) -> Vec<(&str, &str, Option<&str>)> {
    let mut all = Vec::new();
    for event in events {
        if let Event::SetAside { change, path, copy, .. } = event {
            all.push((change.as_str(), path.as_str(), copy.as_deref()));
        }
    }
    all
}

#[test]
fn bytes_that_the_origin_refuses_for_good_are_set_aside_and_the_rest_goes_on() {
    test(async |set| {
        let proxy = &set.life.proxy;
        let theirs = find(set.origin(), &set.there, "file").await;
        set.stage.origin.refuse(move |requested| match requested {
            Requested::Write(file, _) if *file == theirs => Some(Status::Access),
            _ => None,
        });
        write(proxy, &set.file, 2, "OURS").await;
        write(proxy, &set.file, 4, "RS, more").await;
        let other = make(proxy, &set.dir, "other").await;
        write(proxy, &other, 0, "other").await;
        set.stage.origin.is_away.store(false, Ordering::Relaxed);
        set.stage.clock.sleep(Nanos::from_secs(5)).await;
        assert_eq!(set.at("other").await, "other", "it does not wait");
        // What comes meanwhile goes the same way.
        set.stage.clock.sleep(Nanos::from_secs(50)).await;
        write(proxy, &set.file, 12, "!").await;
        assert_eq!(read(proxy, &set.dir, "file").await, "beOURS, more!", "until it is given up");
        let events = set.settled().await;
        let aside = aside(&events);
        let [(change, "/dir/file", Some(copy))] = aside[..] else { panic!("{events:?}") };
        assert_eq!(change, "WRITE of 4 bytes at 2");
        let stored = set.stage.log.refused();
        assert_eq!(stored.len(), 1);
        assert_eq!(stored[copy], b"\0\0OURS, more!");
        assert!(copy.starts_with("file.nfskit-conflict-"), "{copy}");
        assert_eq!(set.at("file").await, "begun by us, ");
        assert_eq!(read(proxy, &set.dir, "file").await, "begun by us, ", "as the origin has it");
        set.stage.origin.refuse(|_| None);
        write(proxy, &set.file, 0, "again").await;
        assert_eq!(set.settled().await, events, "that is as ever");
        assert_eq!(set.at("file").await, "again by us, ");
    });
}

/// In the log, it would be there for good.
#[test]
fn what_is_longer_than_the_origin_takes_is_refused_at_once() {
    test(async |set| {
        let proxy = &set.life.proxy;
        set.settled().await;
        set.stage.origin.length_max.store(1 << 40, Ordering::Relaxed);
        let new = make(proxy, &set.dir, "new").await;
        set.settled().await;
        let length = |size| SetAttr { size: Some(size), ..SetAttr::default() };
        let one = || Bytes::from_static(b"x");
        for file in [&set.file, &new] {
            let cut = proxy.set_attr(&root(), file, length(1 << 60), None).await;
            assert_eq!(cut.result, Err(Status::TooLarge));
            let far = proxy.write(&root(), file, 1 << 60, one(), Stability::FileSync).await;
            assert_eq!(far.result.map(|_| ()), Err(Status::TooLarge));
            assert_eq!(proxy.pending(), 0);
            write(proxy, file, (1 << 40) - 1, "x").await;
            proxy.set_attr(&root(), file, length(1 << 40), None).await.result.unwrap();
            assert_eq!(proxy.pending(), 2, "no longer than the longest");
            assert_eq!(set.settled().await, []);
        }
    });
}

/// A log may have one that was taken up before it was known how long a file may be.
#[test]
fn a_change_that_makes_a_file_longer_than_any_here_is_set_aside_like_others() {
    test(async |set| {
        let proxy = &set.life.proxy;
        set.settled().await;
        write(proxy, &set.file, 1 << 50, "far").await;
        set.stage.origin.length_max.store(1 << 40, Ordering::Relaxed);
        let events = set.settled().await;
        let aside = aside(&events);
        let [(_, "/dir/file", Some(copy))] = aside[..] else { panic!("{events:?}") };
        let stored = String::from_utf8_lossy(&set.stage.log.refused()[copy]).into_owned();
        assert!(stored.ends_with("3 bytes at 1125899906842624\nfar"), "{stored}");
        write(proxy, &set.file, 0, "again").await;
        set.settled().await;
        assert_eq!(set.at("file").await, "again by us, ");
    });
}

#[test]
fn a_file_that_the_origin_does_not_let_be_made_is_stored_with_its_bytes() {
    test(async |set| {
        let proxy = &set.life.proxy;
        set.stage.origin.refuse(|requested| match requested {
            Requested::Make(b"new" | b"own") => Some(Status::NotOwner),
            _ => None,
        });
        let ours = make(proxy, &set.dir, "new").await;
        write(proxy, &ours, 0, "ours").await;
        let size = SetAttr { size: Some(6), mode: Some(0o600), ..SetAttr::default() };
        proxy.set_attr(&root(), &ours, size, None).await.result.unwrap();
        let own = make_dir(proxy, &set.dir, "own").await;
        let within = make(proxy, &own, "within").await;
        write(proxy, &within, 0, "within").await;
        let events = set.settled().await;
        let aside = aside(&events);
        assert_eq!(aside.len(), 2, "{events:?}");
        assert!(aside.iter().any(|(change, path, copy)| {
            (*change, *path) == ("MKDIR of own", "/dir/own") && copy.is_none()
        }));
        let stored = set.stage.log.refused();
        let copy = aside.iter().find_map(|(_, _, copy)| *copy).unwrap();
        assert_eq!((stored.len(), &stored[copy][..]), (1, &b"ours\0\0"[..]));
        assert_eq!(names(set.origin(), &set.there).await, ["file"]);
        // What was in the directory has a place all the same.
        let root_names = names(set.origin(), &set.origin().root()).await;
        let beside: Vec<_> =
            root_names.iter().filter(|name| name.starts_with("within.nfskit-conflict-")).collect();
        let [beside] = beside[..] else { panic!("{root_names:?} {events:?}") };
        assert_eq!(read(set.origin(), &set.origin().root(), beside).await, "within");
        set.stage.clock.sleep(Nanos::from_secs(4)).await;
        assert_eq!(names(proxy, &set.dir).await, ["file"], "clients see what is there");
        assert_eq!(proxy.attr(&root(), &ours).await, Err(Status::Stale));
    });
}

#[test]
fn what_is_not_to_be_removed_or_moved_is_seen_again_where_it_is() {
    test(async |set| {
        let (proxy, dir) = (&set.life.proxy, &set.dir);
        set.stage.origin.refuse(|requested| match requested {
            Requested::Remove(_) | Requested::Rename(_) | Requested::Set(_) => Some(Status::Access),
            _ => None,
        });
        let other = make(proxy, dir, "other").await;
        let mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        proxy.set_attr(&root(), &other, mode, None).await.result.unwrap();
        proxy.rename(&root(), dir, b"other", dir, b"moved").await.result.unwrap();
        proxy.remove(&root(), dir, b"file").await.result.unwrap();
        assert_eq!(names(proxy, dir).await, ["moved"]);
        let events = set.settled().await;
        let mut changes: Vec<_> = aside(&events).iter().map(|(change, ..)| *change).collect();
        changes.sort_unstable();
        let all = ["REMOVE of file", "RENAME of other to moved", "SETATTR mode 600"];
        assert_eq!(changes, all);
        set.stage.clock.sleep(Nanos::from_secs(4)).await;
        assert_eq!(names(proxy, dir).await, ["file", "other"]);
        assert_eq!(read(proxy, dir, "file").await, "begun by us, ");
        assert_eq!(proxy.attr(&root(), &other).await.unwrap().mode, 0o644);
    });
}

/// Of a change that is lost, its record may be all that is left.
#[test]
fn what_is_lost_waits_until_that_can_be_recorded() {
    test(async |set| {
        let theirs = find(set.origin(), &set.there, "file").await;
        set.life.proxy.remove(&root(), &set.dir, b"file").await.result.unwrap();
        write(set.origin(), &theirs, 0, "THEIRS").await;
        let events = unrecorded(&set, 1).await;
        let [Event::NotStored { .. }, Event::NotMade { why: Gone::Changed, .. }] = events[..]
        else {
            panic!("{events:?}");
        };
        let Settled { lost, conflicts, .. } = set.life.proxy.settled();
        assert_eq!((lost, conflicts), (1, 1), "it is not among those that were brought");
    });
    test(async |set| {
        let theirs = find(set.origin(), &set.there, "file").await;
        set.stage.origin.refuse(move |requested| match requested {
            Requested::Write(file, _) if *file == theirs => Some(Status::Access),
            Requested::Remove(_) => Some(Status::Access),
            _ => None,
        });
        write(&set.life.proxy, &set.file, 0, "OURS").await;
        make(&set.life.proxy, &set.dir, "other").await;
        set.life.proxy.remove(&root(), &set.dir, b"other").await.result.unwrap();
        let events = unrecorded(&set, 2).await;
        let mut aside = aside(&events);
        aside.sort_unstable();
        let [("REMOVE of other", "/dir/other", None), (_, "/dir/file", Some(copy))] = aside[..]
        else {
            panic!("{events:?}");
        };
        assert!(set.stage.log.refused()[copy].starts_with(b"OURS"));
    });
}

/// So many changes wait as long as nothing is recorded; what is reported till they are settled.
async fn unrecorded(set: &Set, changes: usize) -> Vec<Event> {
    let [nothing, is_away] = [&set.stage.records_nothing, &set.stage.origin.is_away];
    nothing.store(true, Ordering::Relaxed);
    is_away.store(false, Ordering::Relaxed);
    set.stage.clock.sleep(Nanos::from_secs(600)).await;
    assert_eq!(set.life.proxy.pending(), changes);
    nothing.store(false, Ordering::Relaxed);
    set.settled().await
}

#[test]
fn an_origin_that_is_full_is_waited_for() {
    test(async |set| {
        set.stage.origin.refuse(|requested| match requested {
            Requested::Write(..) => Some(Status::NoSpace),
            _ => None,
        });
        write(&set.life.proxy, &set.file, 0, "later").await;
        // It is one outage, however many changes wait for its end.
        write(&set.life.proxy, &set.file, 1 << 20, "far behind").await;
        set.stage.origin.is_away.store(false, Ordering::Relaxed);
        set.stage.clock.sleep(Nanos::from_secs(3600)).await;
        assert_eq!(set.life.proxy.pending(), 2);
        set.stage.origin.refuse(|_| None);
        let events = set.settled().await;
        let [Event::Refused { path, status: Status::NoSpace, .. }] = &events[..] else {
            panic!("{events:?}");
        };
        assert!(path.ends_with("/file"), "{path}");
        assert!(set.at("file").await.starts_with("later by us, \0"));
    });
}

#[test]
fn a_proxy_that_is_killed_while_bytes_go_aside_has_them_all() {
    test(async |mut set| {
        set.stage.origin.refuse(|requested| match requested {
            Requested::Make(b"new") => Some(Status::Access),
            _ => None,
        });
        let ours = make(&set.life.proxy, &set.dir, "new").await;
        write(&set.life.proxy, &ours, 0, "first, ").await;
        set.stage.origin.is_away.store(false, Ordering::Relaxed);
        set.stage.clock.sleep(Nanos::from_secs(30)).await;
        write(&set.life.proxy, &ours, 7, "second").await;
        set.life.kill();
        set.life = set.stage.begin().await;
        let events = set.settled().await;
        assert_eq!(aside(&events).len(), 1, "{events:?}");
        let stored = set.stage.log.refused();
        let stored: Vec<_> = stored.values().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        assert_eq!(stored, ["first, second"]);
    });
}

#[test]
fn a_directory_that_the_origin_moves_counts_where_other_changes_are_on_their_way() {
    test(async |set| {
        let (proxy, dir) = (&set.life.proxy, &set.dir);
        set.settled().await;
        let (from, to) = (make_dir(proxy, dir, "from").await, make_dir(proxy, dir, "to").await);
        let moved = make_dir(proxy, &from, "moved").await;
        make(proxy, &moved, "within").await;
        set.settled().await;
        set.stage.origin.refuse(|requested| match requested {
            Requested::Make(b"held") => Some(Status::NoSpace),
            _ => None,
        });
        make(proxy, &from, "held").await;
        make(proxy, &to, "held").await;
        proxy.rename(&root(), &from, b"moved", &to, b"moved").await.result.unwrap();
        assert_eq!(proxy.pending(), 2);
        assert_eq!(proxy.attr(&root(), &from).await.unwrap().links, 2);
        assert_eq!(proxy.attr(&root(), &to).await.unwrap().links, 3);
        set.stage.origin.refuse(|_| None);
        set.settled().await;
        assert_eq!(proxy.attr(&root(), &from).await.unwrap().links, 2);
        assert_eq!(proxy.attr(&root(), &to).await.unwrap().links, 3);
    });
}

/// A full disk takes the beginning of a WRITE, and changes the time of the file.
#[test]
fn what_a_full_origin_has_taken_in_part_is_nobody_elses_after_a_crash() {
    test(async |Set { stage, life, dir, file, there }| {
        stage.origin.refuse(|requested| match requested {
            Requested::Write(..) => Some(Status::NoSpace),
            _ => None,
        });
        let longer = make(&life.proxy, &dir, "longer").await;
        write(&life.proxy, &longer, 0, "made here").await;
        write(&life.proxy, &file, 2, "OURS").await;
        stage.origin.is_away.store(false, Ordering::Relaxed);
        stage.clock.sleep(Nanos::from_secs(5)).await;
        assert_eq!(read(&*stage.origin.files, &there, "longer").await, "made");
        assert_eq!(read(&*stage.origin.files, &there, "file").await, "beOUn by us, ");
        life.kill();
        stage.origin.refuse(|_| None);
        let life = stage.begin().await;
        assert_eq!(life.proxy.drained(None).await, 0);
        assert_eq!(read(&*stage.origin.files, &there, "longer").await, "made here");
        assert_eq!(read(&*stage.origin.files, &there, "file").await, "beOURSby us, ");
        let is_refused = |event: &Event| matches!(event, Event::Refused { .. });
        assert!(stage.events.lock().iter().all(is_refused), "{:?}", stage.events.lock());
    });
}

/// Most origins have no mode of a symbolic link.
#[test]
fn the_mode_of_a_symbolic_link_is_the_origins_to_refuse() {
    test(async |set| {
        let proxy = &set.life.proxy;
        set.settled().await;
        let mode = SetAttr { mode: Some(0o755), ..SetAttr::default() };
        let made = proxy.symlink(&root(), &set.dir, b"link", b"file", SetAttr::default()).await;
        let link = made.result.unwrap().handle;
        assert!(proxy.pending() > 0);
        set.stage.origin.refuse(move |requested| match requested {
            Requested::Set(set) if set.mode.is_some() => Some(Status::NotSupported),
            _ => None,
        });
        let done = proxy.set_attr(&root(), &link, mode, None).await.result;
        assert_eq!(done, Err(Status::NotSupported));
        assert_eq!(set.settled().await, []);
    });
}

/// That is what makes room.
#[test]
fn a_file_that_a_full_origin_has_no_room_for_is_removed_replaced_or_cut() {
    for call in ["REMOVE", "RENAME", "SETATTR"] {
        test(async move |set| {
            let proxy = &set.life.proxy;
            set.settled().await;
            make(proxy, &set.dir, "other").await;
            set.settled().await;
            set.stage.origin.refuse(|requested| match requested {
                Requested::Write(..) => Some(Status::NoSpace),
                _ => None,
            });
            for offset in [20, 1 << 20, 2 << 20] {
                write(proxy, &set.file, offset, "no room").await;
            }
            set.stage.clock.sleep(Nanos::from_secs(300)).await;
            assert_eq!(proxy.pending(), 3, "they wait");
            // Who has changed nothing here before.
            let other = Caller { gids: vec![5], ..root() };
            let done = std::pin::pin!(async {
                match call {
                    "REMOVE" => proxy.remove(&other, &set.dir, b"file").await.result,
                    "RENAME" => {
                        let to = (&set.dir, &b"file"[..]);
                        proxy.rename(&other, &set.dir, b"other", to.0, to.1).await.result
                    }
                    _ => {
                        let size = SetAttr { size: Some(5), ..SetAttr::default() };
                        proxy.set_attr(&other, &set.file, size, None).await.result
                    }
                }
            });
            let done = set.stage.clock.within(Nanos::from_secs(5), done).await;
            assert_eq!(done, Ok(Ok(())), "{call}");
            let limit = Some(Nanos::from_secs(5));
            assert_eq!(proxy.drained(limit).await, 0, "{call}: nobody needs them");
            match call {
                "REMOVE" => assert_eq!(names(set.origin(), &set.there).await, ["other"]),
                "RENAME" => assert_eq!(set.at("file").await, ""),
                _ => assert_eq!(set.at("file").await, "begun"),
            }
            let events = set.stage.events.lock().clone();
            let is_of_room =
                |event: &Event| matches!(event, Event::Refused { status: Status::NoSpace, .. });
            assert!(events.iter().all(is_of_room), "{events:?}");
        });
    }
}

/// What makes room is in the log before it does, also where that is full: its caller has no answer
/// when the proxy is killed, and all that others were answered is there, or all is cut.
#[test]
fn a_cut_that_its_proxy_does_not_outlive_loses_nothing_or_is_done() {
    const BYTES: u64 = 1500;
    let mut seen = BTreeSet::new();
    for step in (0..6).map(|step| Nanos::from_micros(200 * step)) {
        let length = Arc::new(AtomicUsize::new(0));
        let found = Arc::clone(&length);
        test(async move |mut set| {
            set.settled().await;
            let caller = root();
            set.stage.origin.refuse(|requested| match requested {
                Requested::Write(..) => Some(Status::NoSpace),
                _ => None,
            });
            for offset in 20..BYTES {
                let proxy = &set.life.proxy;
                let data = Bytes::from_static(b"x");
                let written = proxy.write(&caller, &set.file, offset, data, Stability::FileSync);
                let limit = Nanos::from_secs(10);
                if set.stage.clock.within(limit, std::pin::pin!(written)).await.is_err() {
                    break; // The log is full.
                }
            }
            let answered = set.life.proxy.attr(&root(), &set.file).await.unwrap().size;
            assert!((900..BYTES).contains(&answered), "{answered}");
            let size = SetAttr { size: Some(5), ..SetAttr::default() };
            {
                let cut = set.life.proxy.set_attr(&caller, &set.file, size, None);
                set.stage.clock.within(step, std::pin::pin!(cut)).await.ok();
            }
            set.life.kill();
            set.stage.origin.refuse(|_| None);
            set.life = set.stage.begin().await;
            set.settled().await;
            let there = set.at("file").await;
            match there.len() as u64 {
                5 => {}
                length => {
                    let lost = there[20..].bytes().filter(|&byte| byte != b'x').count();
                    assert_eq!((length, lost), (answered, 0), "bytes and lost ones after {step}");
                }
            }
            found.store(there.len(), Ordering::Relaxed);
        });
        seen.insert(length.load(Ordering::Relaxed));
    }
    assert_eq!(seen.len(), 2, "each of the two was seen: {seen:?}");
}
