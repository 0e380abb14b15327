use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use net::clock::Clock;
use perf::units::Nanos;

use super::run::catch_up;
use super::*;

fn material() -> Arc<Material> {
    Arc::new(Material::generate(1, Sizes::scaled(0.05)))
}

fn do_all(copies: usize, tests: &[Test]) {
    let (top, material, stop) = (tempfile::tempdir().unwrap(), material(), AtomicBool::new(false));
    let dirs: Vec<PathBuf> =
        (0..copies).map(|copy| top.path().join(format!("copy{copy}"))).collect();
    for dir in &dirs {
        prepare(&material, dir, &stop).unwrap();
    }
    for &test in tests {
        if test == Test::Build && !build_missing().is_empty() {
            println!("skipped: no C compiler here");
            continue;
        }
        for dir in &dirs {
            catch_up(test, tests, &material, dir, &stop).unwrap();
        }
        cold::drop_pages(&dirs).unwrap();
        let run = run(&Clock::real(), test, &material, &dirs, true, &stop).unwrap();
        assert_eq!(run.copies.len(), copies);
        assert_eq!(run.flushed.is_some(), test.writes());
        assert!(run.copies.iter().all(|copy| copy.span <= run.elapsed));
        assert!(run.elapsed > Nanos::ZERO);
        check(test, &material, &dirs, &run, &stop).unwrap();
    }
    let sizes: u64 = dirs.iter().map(|dir| bytes_below(dir)).sum();
    assert!(sizes < room_bytes(&material) * copies as u64);
}

fn bytes_below(dir: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => bytes_below(&entry.path()),
            false => entry.metadata().unwrap().blocks() * 512,
        })
        .sum()
}

#[test]
fn every_test_does_what_it_should_alone() {
    do_all(1, &Test::ALL);
}

#[test]
fn every_test_does_what_it_should_in_copies_at_once() {
    do_all(3, &Test::ALL);
}

#[test]
fn any_test_can_be_chosen_by_itself() {
    for test in Test::ALL {
        do_all(1, &[test]);
    }
}

#[test]
fn what_is_wrong_is_found() {
    let (top, material, stop) = (tempfile::tempdir().unwrap(), material(), AtomicBool::new(false));
    let dirs = [top.path().join("copy")];
    prepare(&material, &dirs[0], &stop).unwrap();
    let go = |test: Test| run(&Clock::real(), test, &material, &dirs, false, &stop);
    let spoil = |name: &str| {
        let path = dirs[0].join(name);
        let mut content = std::fs::read(&path).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        std::fs::write(&path, content).unwrap();
    };
    let finds = |test: Test, run: &Run, part: &str| {
        let error = check(test, &material, &dirs, run, &stop).unwrap_err();
        assert!(matches!(error, Failed::Wrong { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    go(Test::MakeDirs).unwrap();
    let copied = go(Test::CopyFiles).unwrap();
    spoil("tree/include/parts.h");
    finds(Test::CopyFiles, &copied, "parts.h: byte ");
    let unpacked = go(Test::Untar).unwrap();
    spoil("unpacked/package/d00/f000");
    finds(Test::Untar, &unpacked, "f000: byte ");
    spoil("big");
    finds(Test::ReadBig, &go(Test::ReadBig).unwrap(), "big: byte ");
    std::fs::remove_file(dirs[0].join("listed/list00/file007")).unwrap();
    finds(Test::List, &go(Test::List).unwrap(), "49 names, and not 50");
    std::fs::write(dirs[0].join("tree/more"), "").unwrap();
    finds(Test::Stat, &go(Test::Stat).unwrap(), "files: ");
    std::fs::write(dirs[0].join("appended"), "0").unwrap();
    finds(Test::SmallWrites, &go(Test::SmallWrites).unwrap(), "byte 0 is 0x30");
    std::fs::write(dirs[0].join("appended-and-read"), "0").unwrap();
    assert!(matches!(go(Test::SmallReadsAndWrites), Err(Failed::Wrong { .. })));
    // A copy that fails stops the others, and all that follows: that is the caller's to undo.
    stop.store(false, std::sync::atomic::Ordering::Relaxed);
    std::fs::write(dirs[0].join("tree/Makefile"), "all:\n\tfalse\n").unwrap();
    if build_missing().is_empty() {
        assert!(matches!(go(Test::Build), Err(Failed::Program { .. })));
    }
}

#[test]
fn the_papers_numbers_are_those_of_the_paper() {
    let material = Material::generate(7, Sizes::scaled(1.0));
    let sizes = material.sizes();
    assert_eq!(material.program.files.len(), 71);
    assert_eq!(sizes.files(), 71);
    assert_eq!(material.program.dirs.len() + 1, 21);
    let near = |got: usize, megabytes: f64| {
        let ratio = got as f64 / (megabytes * 1_048_576.0);
        assert!((0.99..1.01).contains(&ratio), "{got} is not {megabytes} MB");
    };
    near(material.archive.bytes.len(), 4.3);
    near(material.big[0].len(), 6.1);
    near(material.big[1].len(), 6.1);
    near(material.random.len(), 4.3);
    assert_eq!(material.archive.dirs.len() + material.archive.files.len(), 400);
    assert_eq!(material.listed().map(|(_, files)| files.len()).sum::<usize>(), 500);
    let reads = material.reads();
    assert_eq!(reads.len(), 1_000);
    let lengths: Vec<usize> = reads.iter().map(|(_, len)| *len).collect();
    assert!(lengths.iter().all(|len| (1..=2_663).contains(len)));
    assert_eq!((sizes.small_writes, sizes.small_rewrites), (2_000, 1_000));
    assert!(Material::integers(11).ends_with(b"91011"));
    // The same seed, the same bytes; another seed, others.
    let again = Material::generate(7, Sizes::scaled(1.0));
    assert_eq!(again.archive.bytes, material.archive.bytes);
    assert_eq!(again.program.files, material.program.files);
    assert_ne!(Material::generate(8, Sizes::scaled(0.01)).program.output, material.program.output);
}

#[test]
fn a_test_that_is_stopped_says_so() {
    let (top, material) = (tempfile::tempdir().unwrap(), material());
    let stop = AtomicBool::new(false);
    let dirs = [top.path().join("copy")];
    prepare(&material, &dirs[0], &stop).unwrap();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for test in [Test::ReadBig, Test::Untar, Test::SmallWrites, Test::List] {
        let ended = run(&Clock::real(), test, &material, &dirs, false, &stop);
        assert!(matches!(ended, Err(Failed::Stopped)));
    }
}
