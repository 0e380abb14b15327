//! The Connectathon suite's basic tests: they pass on our server, and a server that does one thing
//! wrong fails the test that is about it, with what was expected and what was seen.

mod broken;

use std::sync::atomic::AtomicBool;

use load::basic::wire::Wire;
use load::basic::{Ended, Mode, Outcome, Plan, Test, place::Place, run};
use load::scratch::Scratch;
use net::clock::world::World;
use server::CommitMode;
use testkit::{Site, memory_store};

use self::broken::{Broken, Fault};

/// Runs the tests against a server on such a store; gives what is left there, too.
fn outcome(fault: Fault, plan: Plan) -> (Outcome, usize) {
    let world = World::new();
    let clock = world.clock();
    let run = async move {
        let store = Broken::new(memory_store(&clock), fault);
        let site = Site::new(store, &clock, Default::default(), CommitMode::Concurrent);
        let session = site.session(site.rpc()).await.unwrap();
        let scratch = Scratch::create(&session, "scratch").await.unwrap();
        let wire = Wire::new(session.with_root(scratch.dir()), "world".to_owned(), plan.sync);
        let stop = AtomicBool::new(false);
        let outcome = run(&clock, &wire, &wire.root(), &plan, &stop, &mut |_| {}).await;
        let left = wire.list(&wire.root(), load::basic::place::Listing::Names, 100).await.unwrap();
        (outcome, left.len() - 2)
    };
    world.run(run).unwrap()
}

/// The plan of `-f` with a size that a world is done with soon.
fn functional() -> Plan {
    Plan { mode: Mode::Functional, ..Plan::default() }
}

/// The suite's own, with fewer repetitions.
fn timed() -> Plan {
    Plan { mode: Mode::Timed, count: Some(3), levels: Some(3), ..Plan::default() }
}

/// What the one test that failed says.
#[track_caller]
fn failure(fault: Fault, plan: Plan) -> (Test, String) {
    let (outcome, _) = outcome(fault, plan);
    let last = outcome.measured.last().unwrap();
    let passed = outcome.measured.iter().filter(|one| one.ended.is_none()).count();
    assert_eq!(passed, outcome.measured.len() - 1, "{fault:?}: {outcome:?}");
    match &last.ended {
        Some(Ended::Failed(failed)) => (last.test, failed.to_string()),
        other => panic!("{fault:?}: {other:?}"),
    }
}

/// The fault fails this test, with a message that has both parts, functional and timed.
#[track_caller]
fn fails(fault: Fault, test: Test, expected: &str, seen: &str) {
    for plan in [functional(), timed()] {
        let (which, message) = failure(fault, plan);
        assert_eq!(which, test, "{message}");
        assert!(message.starts_with(&format!("test{}: ", test.number())), "{message}");
        assert!(message.contains(&format!("expected {expected}")), "{message}");
        assert!(message.contains(&format!("seen {seen}")), "{message}");
    }
}

#[test]
fn all_tests_pass_on_our_server_and_leave_nothing() {
    let more = Plan { sync: true, in_place: true, ..functional() };
    for plan in [functional(), timed(), more] {
        let (outcome, left) = outcome(Fault::Nothing, plan);
        assert_eq!((outcome.measured.len(), outcome.left.len(), left), (9, 0, 0));
        for one in &outcome.measured {
            assert!(one.ended.is_none(), "{one:?}");
        }
    }
}

#[test]
fn attributes_in_replies_must_be_those_of_after() {
    fails(Fault::CreateTellsAByte, Test::Create, "size 0", "size 1");
    fails(Fault::SetAttrTellsTheModeOfBefore, Test::Attributes, "mode 0000", "mode 0666");
    fails(Fault::WriteTellsTheSizeOfBefore, Test::Data, "size 8192", "size 0");
    fails(Fault::ReadTellsAByteMore, Test::Data, "size 1048576", "size 1048577");
    fails(Fault::DirIsRepliedAsBefore, Test::Create, "size", "size");
    fails(Fault::RenameTellsDirAsBefore, Test::Rename, "size", "size");
    fails(Fault::LinkTellsOneName, Test::Rename, "links 2", "links 1");
}

#[test]
fn what_is_removed_must_be_gone() {
    let still = "NFS3ERR_NOTEMPTY: file.0, file.1";
    fails(Fault::RemoveRemovesNothing, Test::Remove, "success", still);
    let flat = Plan { levels: Some(1), dirs: Some(0), ..functional() };
    let (test, message) = failure(Fault::RemoveRemovesNothing, flat);
    assert_eq!(test, Test::Remove);
    assert!(message.contains("stat file.0: expected ENOENT, seen success"), "{message}");
    fails(Fault::RenameLeavesTheOldName, Test::Rename, "ENOENT", "success");
}

#[test]
fn a_listing_must_have_each_name_once() {
    fails(Fault::ListSkips, Test::Readdir, "200 files, file.7 among them", "199 without it");
    fails(Fault::ListRepeats, Test::Readdir, "file.7 once", "it twice");
    let (test, message) = failure(Fault::ListRemembers, functional());
    assert_eq!(test, Test::Readdir, "{message}");
}

#[test]
fn errors_must_come_and_be_the_right_ones() {
    fails(Fault::MakeDirTakesWhatIsThere, Test::Create, "EEXIST", "success");
    fails(Fault::RemoveDirTakesFullOnes, Test::Remove, "ENOTEMPTY", "success");
    fails(Fault::RenameOfNothingSucceeds, Test::Rename, "ENOENT", "success");
    fails(Fault::NowhereIsDenied, Test::Remove, "ENOENT", "NFS3ERR_ACCES");
}

#[test]
fn what_was_set_or_written_must_be_read_back() {
    fails(Fault::SetAttrSetsNothing, Test::Attributes, "mode 0000", "mode 0666");
    fails(Fault::WriteLosesTheLastByte, Test::Data, "size 1048576", "size 1048575");
    fails(Fault::VerifierChanges, Test::Data, "success", "COMMIT");
    fails(Fault::ReadTurnsABit, Test::Data, "byte 0x19 at 16484", "0x18");
    fails(Fault::ReadLinkCuts, Test::Symlink, "\"/this/is/a/symlink0\"", "\"/this/is/a/symlink\"");
    fails(Fault::SymlinkMakesAFile, Test::Symlink, "a symbolic link", "a file");
}

#[test]
fn the_way_up_and_the_space_must_make_sense() {
    fails(Fault::ParentIsItself, Test::Lookup, "fileid", "fileid");
    fails(Fault::SpaceIsFreeBeyondAll, Test::Statfs, "at most", "");
}

#[test]
fn what_the_environment_lacks_is_no_failed_test_and_nothing_is_left() {
    for in_place in [false, true] {
        let (outcome, left) = outcome(Fault::Full, Plan { in_place, ..functional() });
        let last = outcome.measured.last().unwrap();
        assert_eq!((last.test, outcome.left.len(), left), (Test::Data, 4, 0));
        match &last.ended {
            Some(Ended::Broken { error, is_alive: true }) => {
                assert!(error.to_string().contains("NOSPC"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_not_supported_is_reported_and_the_next_test_runs() {
    let (outcome, left) = outcome(Fault::NoLinks, functional());
    assert_eq!((outcome.measured.len(), left), (9, 0));
    let ended = &outcome.measured[Test::Rename as usize].ended;
    assert!(matches!(ended, Some(Ended::Unsupported(why)) if why == "NFS3ERR_NOTSUPP"));
    assert!(outcome.measured[Test::Symlink as usize].ended.is_none());
}

#[test]
fn with_keep_going_each_test_is_judged_by_itself() {
    let plan = Plan { keep_going: true, ..functional() };
    let (outcome, _) = outcome(Fault::RemoveRemovesNothing, plan);
    let failed: Vec<usize> = outcome
        .measured
        .iter()
        .filter(|one| matches!(one.ended, Some(Ended::Failed(_))))
        .map(|one| one.test.number())
        .collect();
    assert_eq!(failed, [2, 5, 6, 7, 8]);
}

/// As an interrupted run leaves it: whoever has made the directory removes what is in it.
#[test]
fn a_scratch_directory_goes_with_all_that_is_in_it() {
    let world = World::new();
    let clock = world.clock();
    let run = async move {
        let site = Site::in_memory(&clock, Default::default(), CommitMode::Concurrent);
        let session = site.session(site.rpc()).await.unwrap();
        let scratch = Scratch::create(&session, "scratch").await.unwrap();
        let wire = Wire::new(session.with_root(scratch.dir()), "world".to_owned(), false);
        let mut dir = wire.root();
        for name in ["a", "b", "c"] {
            wire.make_dir(&dir, name).await.unwrap();
            wire.make_dir(&dir, "empty").await.unwrap();
            wire.create(&dir, "file").await.unwrap();
            dir = wire.enter(&dir, name).await.unwrap().value;
        }
        scratch.remove(&session).await.unwrap();
        scratch.remove(&session).await.unwrap();
        session.readdir(session.root(), 0, [0; 8], 4096).await.unwrap().entries.len()
    };
    assert_eq!(world.run(run).unwrap(), 2);
}
