//! Two mounts of one server: who opens a file sees what was closed before, on either.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::Command;

use super::{Mounted, can_mount};
use crate::served::Served;

fn two(options: &[&str], test: impl FnOnce(&Mounted, &Mounted)) {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let (here, there) = (Mounted::new(&served, options), Mounted::new(&served, options));
    test(&here, &there);
    here.stop();
    there.stop();
    served.stop();
}

#[test]
fn close_to_open_holds_between_two_mounts() {
    for cache in ["writeback", "writethrough", "none"] {
        two(&["--kernel-cache", cache], |here, there| {
            let seed = fastrand::u64(..);
            eprintln!("seed {seed}");
            let mut random = fastrand::Rng::with_seed(seed);
            fs::write(here.path("file"), b"begin").unwrap();
            for round in 0..150 {
                let (writer, reader) = if random.bool() { (here, there) } else { (there, here) };
                let length = [1, 10, 4095, 4096, 4097, 100_000][random.usize(..6)];
                let data: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
                match random.u8(..4) {
                    0 => fs::write(writer.path("file"), &data).unwrap(),
                    1 => {
                        let mut file =
                            OpenOptions::new().append(true).open(writer.path("file")).unwrap();
                        file.write_all(&data).unwrap();
                    }
                    2 => {
                        fs::write(writer.path("new"), &data).unwrap();
                        fs::rename(writer.path("new"), writer.path("file")).unwrap();
                    }
                    _ => {
                        let file =
                            OpenOptions::new().write(true).open(writer.path("file")).unwrap();
                        file.write_all_at(&data, 0).unwrap();
                    }
                }
                let (wrote, read) = (
                    fs::read(writer.path("file")).unwrap(),
                    fs::read(reader.path("file")).unwrap(),
                );
                assert!(wrote == read, "round {round}, {cache}, seed {seed}");
                let length = fs::metadata(reader.path("file")).unwrap().len();
                assert_eq!(length, read.len() as u64, "round {round}, {cache}, seed {seed}");
            }
        });
    }
}

#[test]
fn who_opens_a_name_gets_the_file_that_another_mount_has_given_it_though_the_old_one_is_open() {
    for cache in ["writeback", "writethrough", "none"] {
        two(&["--kernel-cache", cache], |here, there| {
            fs::write(here.path("file"), b"old").unwrap();
            for round in 0..3 {
                let data = format!("new {round}").into_bytes();
                let had = fs::read(there.path("file")).unwrap();
                let held = File::open(here.path("file")).unwrap();
                fs::write(here.path("new"), &data).unwrap();
                fs::rename(here.path("new"), here.path("file")).unwrap();
                let read = fs::read(there.path("file")).unwrap();
                assert!(read == data, "{cache}, {round}: {had:?}, then {read:?}");
                drop(held);
            }
        });
    }
}

#[test]
fn a_directory_that_another_mount_has_removed_and_made_again_is_listed() {
    let list = |dir| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    for cache in ["writeback", "writethrough"] {
        two(&["--kernel-cache", cache], |here, there| {
            fs::create_dir(here.path("out")).unwrap();
            let mut had = OsString::from("0");
            fs::write(here.path("out").join(&had), b"data").unwrap();
            for round in 1..5 {
                assert!(list(there.path("out")).eq([had.clone()]), "{cache}, {round}");
                let name = OsString::from(round.to_string());
                if round % 2 == 0 {
                    fs::create_dir(here.path("next")).unwrap();
                    fs::write(here.path("next").join(&name), b"data").unwrap();
                }
                fs::remove_file(here.path("out").join(&had)).unwrap();
                if round % 2 == 0 {
                    fs::rename(here.path("next"), here.path("out")).unwrap();
                } else {
                    fs::remove_dir(here.path("out")).unwrap();
                    fs::create_dir(here.path("out")).unwrap();
                    fs::write(here.path("out").join(&name), b"data").unwrap();
                }
                had = name;
            }
            // Without a word of what it is for.
            fs::remove_dir_all(here.path("out")).unwrap();
            fs::create_dir(here.path("out")).unwrap();
            File::open(there.path("out")).unwrap();
            fs::remove_dir(here.path("out")).unwrap();
            let why = fs::read_dir(there.path("out")).unwrap_err();
            assert_eq!(why.kind(), io::ErrorKind::NotFound, "{cache}: {why}");
        });
    }
}

#[test]
fn who_keeps_a_file_open_sees_it_grow() {
    for cache in ["writeback", "writethrough"] {
        two(&["--kernel-cache", cache, "--actimeo", "0"], |here, there| {
            fs::write(here.path("log"), b"one\n").unwrap();
            let mut follower = File::open(there.path("log")).unwrap();
            let mut seen = String::new();
            follower.read_to_string(&mut seen).unwrap();
            for line in ["two\n", "three\n"] {
                let mut log = OpenOptions::new().append(true).open(here.path("log")).unwrap();
                log.write_all(line.as_bytes()).unwrap();
                drop(log);
                // As tail(1) does: look at the size, then read on.
                assert_eq!(
                    follower.metadata().unwrap().len(),
                    (seen.len() + line.len()) as u64,
                    "{cache}"
                );
                follower.read_to_string(&mut seen).unwrap();
                assert!(seen.ends_with(line), "{cache}: {seen:?}");
            }
        });
    }
}

#[test]
fn who_keeps_a_file_open_sees_what_is_written_in_place() {
    for cache in ["writeback", "writethrough", "none"] {
        two(&["--kernel-cache", cache, "--actimeo", "0"], |here, there| {
            fs::write(here.path("file"), [b'a'; 5000]).unwrap();
            let reader = File::open(there.path("file")).unwrap();
            let read = || {
                let mut data = [0; 5000];
                reader.read_exact_at(&mut data, 0).unwrap();
                data
            };
            assert_eq!(read(), [b'a'; 5000]);
            let writer = OpenOptions::new().write(true).open(here.path("file")).unwrap();
            for byte in [b'b', b'c'] {
                writer.write_all_at(&[byte; 5000], 0).unwrap();
                writer.sync_data().unwrap();
                assert!(read() == [byte; 5000], "{cache}");
            }
        });
    }
}

/// mmap(2) is unsafe in Rust; Python's is not. A descriptor that is opened anew, after another
/// client has changed the file, is past the kernel's cache, as is a file that changes again while
/// it is opened.
#[test]
fn what_is_opened_past_the_kernels_cache_can_be_mapped() {
    const MAPS: &str = "
import mmap, os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
assert os.read(f, 3) == b'old'
g = os.open(sys.argv[2], os.O_WRONLY)
os.write(g, b'new')
os.close(g)
again = os.open(f'/proc/self/fd/{f}', os.O_RDONLY)
assert mmap.mmap(again, 3, access=mmap.ACCESS_READ)[:] == b'new'
";
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) < (Some(6), Some(6)) {
        eprintln!("SKIPPED: Linux {release} maps nothing that is past its cache");
        return;
    }
    two(&[], |here, there| {
        fs::write(here.path("file"), b"old").unwrap();
        let mut python = Command::new("python3");
        python.args(["-c", MAPS]).args([there.path("file"), here.path("file")]);
        let Ok(output) = python.output() else {
            assert!(std::env::var_os("CI").is_none(), "python3 is needed");
            eprintln!("SKIPPED: a test of mappings needs python3");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

#[test]
fn a_file_keeps_its_number_when_somebody_else_writes_it() {
    use std::os::unix::fs::MetadataExt;
    two(&["--actimeo", "0"], |here, there| {
        fs::write(here.path("file"), b"1").unwrap();
        let number = || fs::metadata(there.path("file")).unwrap().ino();
        let before = number();
        for length in [10, 100, 1000] {
            fs::write(here.path("file"), vec![b'x'; length]).unwrap();
            assert_eq!(fs::read(there.path("file")).unwrap().len(), length);
            assert_eq!(number(), before);
        }
    });
}

#[test]
fn names_that_somebody_else_makes_and_removes_come_and_go() {
    two(&["--actimeo", "0"], |here, there| {
        for _ in 0..20 {
            assert!(!there.path("name").exists());
            fs::create_dir(here.path("name")).unwrap();
            assert!(there.path("name").is_dir());
            assert_eq!(crate::program::names(there.at.path()), ["name"]);
            fs::remove_dir(here.path("name")).unwrap();
        }
    });
}

#[test]
fn records_that_two_mounts_append_in_turn_are_all_there() {
    for cache in ["writeback", "writethrough", "none"] {
        two(&["--kernel-cache", cache], |here, there| {
            let open = |mounted: &Mounted| {
                OpenOptions::new().create(true).append(true).open(mounted.path("log")).unwrap()
            };
            let mut logs = [open(here), open(there)];
            let mut expected = String::new();
            for round in 0..200 {
                for (log, name) in logs.iter_mut().zip(["here", "there"]) {
                    let record = format!("{name} {round} {}\n", "x".repeat(round * 7 % 90));
                    log.write_all(record.as_bytes()).unwrap();
                    log.sync_data().unwrap();
                    expected += &record;
                }
            }
            drop(logs);
            let (seen, also) = (here.path("log"), there.path("log"));
            assert!(fs::read_to_string(seen).unwrap() == expected, "{cache}");
            assert!(fs::read_to_string(also).unwrap() == expected, "{cache}");
        });
    }
}

/// Two programs of one host, each of which syncs its lines, and an administrator on another.
#[test]
fn what_two_programs_append_in_turn_is_there_whatever_another_client_does_between_their_opens() {
    use std::os::unix::fs::PermissionsExt;
    type Change<'a> = (&'a str, &'a dyn Fn(&Mounted));
    let mode_set = |there: &Mounted| {
        fs::set_permissions(there.path("log"), fs::Permissions::from_mode(0o640)).unwrap();
    };
    let linked = |there: &Mounted| fs::hard_link(there.path("log"), there.path("saved")).unwrap();
    let renamed = |there: &Mounted| {
        fs::rename(there.path("log"), there.path("moved")).unwrap();
        fs::rename(there.path("moved"), there.path("log")).unwrap();
    };
    let touched = |there: &Mounted| {
        let log = OpenOptions::new().write(true).open(there.path("log")).unwrap();
        log.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000))
            .unwrap();
    };
    let appended = |there: &Mounted| {
        let mut log = OpenOptions::new().append(true).open(there.path("log")).unwrap();
        log.write_all(b"theirs\n").unwrap();
    };
    let changes: [Change<'_>; 5] = [
        ("chmod", &mode_set),
        ("link", &linked),
        ("rename", &renamed),
        ("touch", &touched),
        ("append", &appended),
    ];
    for (what, change) in changes {
        two(&[], |here, there| {
            let open =
                || OpenOptions::new().create(true).append(true).open(here.path("log")).unwrap();
            let mut first = open();
            first.write_all(b"first\n").unwrap();
            first.sync_data().unwrap();
            change(there);
            let mut second = open();
            let mut expected = fs::read_to_string(there.path("log")).unwrap();
            for round in 0..5 {
                for log in [&mut second, &mut first] {
                    let line = format!("{round}\n");
                    log.write_all(line.as_bytes()).unwrap();
                    expected += &line;
                }
            }
            for log in [first, second] {
                log.sync_data().unwrap();
            }
            assert_eq!(fs::read_to_string(there.path("log")).unwrap(), expected, "{what}");
        });
    }
}

/// In one page, of which the kernel writes all.
#[test]
fn what_two_programs_write_in_place_is_there_though_another_client_has_changed_the_mode() {
    use std::os::unix::fs::PermissionsExt;
    two(&[], |here, there| {
        fs::write(here.path("file"), [b'.'; 65_536]).unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(here.path("file")).unwrap();
        let first = open();
        first.read_exact_at(&mut [0; 4096], 0).unwrap();
        fs::set_permissions(there.path("file"), fs::Permissions::from_mode(0o640)).unwrap();
        let second = open();
        second.read_exact_at(&mut [0; 4096], 0).unwrap();
        second.write_all_at(b"second", 100).unwrap();
        first.write_all_at(b"first", 200).unwrap();
        second.sync_data().unwrap();
        first.sync_data().unwrap();
        let read = fs::read(there.path("file")).unwrap();
        assert_eq!((&read[100..106], &read[200..205]), (&b"second"[..], &b"first"[..]));
    });
}

/// The kernel learns the end of a file by a byte of it.
#[test]
fn who_may_not_read_a_file_that_another_client_has_appended_to_sees_how_long_it_is() {
    use std::os::unix::process::CommandExt;
    two(&["--actimeo", "0"], |here, there| {
        let open = |mounted: &Mounted| {
            OpenOptions::new().create(true).append(true).open(mounted.path("log")).unwrap()
        };
        let mut first = open(here);
        first.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        first.write_all(b"first\n").unwrap();
        first.sync_data().unwrap();
        open(there).write_all(b"theirs\n").unwrap();
        let mut stat = Command::new("stat");
        let seen = stat.args(["-c", "%s"]).arg(here.path("log")).uid(65_534).output().unwrap();
        assert_eq!(seen.stdout, b"13\n", "{seen:?}");
        open(here).write_all(b"second\n").unwrap();
        drop(first);
        assert_eq!(fs::read(there.path("log")).unwrap(), b"first\ntheirs\nsecond\n");
        assert_eq!(fs::read(here.path("log")).unwrap(), b"first\ntheirs\nsecond\n");
    });
}
