//! What programs write and read.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::process::Command;

use rustix::io::Errno;

use super::{Mounted, can_mount, on_memory};
use crate::served::Served;

/// Every way in which the kernel may cache.
const CACHES: [&[&str]; 3] = [
    &["--kernel-cache", "writeback"],
    &["--kernel-cache", "writethrough"],
    &["--kernel-cache", "none"],
];

/// Bytes of which each says where it is.
fn pattern(from: u64, count: usize) -> Vec<u8> {
    (from..from + count as u64).map(|at| (at * 31 + at / 256 * 7).to_le_bytes()[0]).collect()
}

#[test]
fn what_is_written_is_read_back_however_the_kernel_caches() {
    for cache in CACHES {
        on_memory(cache, |mounted| {
            let path = mounted.path("file");
            let data = pattern(0, (3 << 20) + 17);
            fs::write(&path, &data).unwrap();
            assert!(fs::read(&path).unwrap() == data);
            let mut file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            file.write_all_at(b"in the middle", 1_000_001).unwrap();
            file.seek(SeekFrom::Start(999_999)).unwrap();
            let mut around = [0; 17];
            file.read_exact(&mut around).unwrap();
            assert_eq!(&around[2..15], b"in the middle");
            file.set_len(1_000_005).unwrap();
            assert_eq!(file.metadata().unwrap().len(), 1_000_005);
            file.set_len(1_000_010).unwrap();
            let mut end = [1; 10];
            file.read_exact_at(&mut end, 1_000_000).unwrap();
            assert_eq!(&end[1..], b"in t\0\0\0\0\0");
            file.sync_all().unwrap();
        });
    }
}

#[test]
fn two_descriptors_append_in_turn() {
    for cache in CACHES {
        on_memory(cache, |mounted| {
            let path = mounted.path("log");
            let open = || OpenOptions::new().create(true).append(true).open(&path).unwrap();
            let (mut first, mut second) = (open(), open());
            for _ in 0..50 {
                first.write_all(b"one ").unwrap();
                second.write_all(b"two ").unwrap();
            }
            drop((first, second));
            assert_eq!(fs::read_to_string(&path).unwrap(), "one two ".repeat(50));
        });
    }
}

#[test]
fn a_sparse_file_of_5_gib_has_holes_of_zeros() {
    on_memory(&[], |mounted| {
        let path = mounted.path("sparse");
        let file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.write_all_at(b"end", 5 << 30).unwrap();
        drop(file);
        let file = File::open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().len(), (5 << 30) + 3);
        let mut bytes = [1; 100];
        file.read_exact_at(&mut bytes, 1 << 30).unwrap();
        assert_eq!(bytes, [0; 100]);
        assert_eq!(file.read_at(&mut bytes, 5 << 30).unwrap(), 3);
        assert_eq!(&bytes[..3], b"end");
    });
}

/// mmap(2) is unsafe in Rust; Python's is not.
#[test]
fn a_shared_mapping_is_written_back() {
    const SCRIPT: &str = "
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 10000)
m = mmap.mmap(fd, 10000)
m[4090:4100] = b'0123456789'
m.flush()
assert os.pread(fd, 10, 4090) == b'0123456789'
m[0:5] = b'after'
m.close()
os.close(fd)
";
    for cache in CACHES {
        on_memory(cache, |mounted| {
            let path = mounted.path("mapped");
            let run = Command::new("python3").args(["-c", SCRIPT]).arg(&path).output();
            let Ok(run) = run else {
                assert!(std::env::var_os("CI").is_none(), "python3 is needed");
                eprintln!("SKIPPED: a test of mappings needs python3");
                return;
            };
            assert!(run.status.success(), "{run:?}");
            let data = fs::read(&path).unwrap();
            assert_eq!((&data[..5], &data[4090..4100]), (&b"after"[..], &b"0123456789"[..]));
        });
    }
}

#[test]
fn a_full_server_is_reported_at_the_write_the_sync_or_the_close() {
    if !can_mount() {
        return;
    }
    for cache in CACHES {
        let served = Served::memory(&["--mem-size", "8M"]);
        let mounted = Mounted::new(&served, cache);
        let mut file = File::create(mounted.path("file")).unwrap();
        let written = (0..64).try_for_each(|_| file.write_all(&[7; 1 << 20]));
        let synced = written.and_then(|()| file.sync_all());
        let error = synced.expect_err(cache[1]);
        assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()), "{error}");
        drop(file);
        fs::remove_file(mounted.path("file")).unwrap();
        // There is room again, and nothing is remembered of the error.
        fs::write(mounted.path("file"), vec![1; 1 << 20]).unwrap();
        let file = File::open(mounted.path("file")).unwrap();
        file.sync_all().unwrap();
        drop(file);
        mounted.stop_saying("which programs got as errors; all else is written\n");
        served.stop();
    }
}

#[test]
fn each_policy_writes_what_it_is_given() {
    for policy in ["linux-2.4.4", "no-flush", "hashed", "unlocked", "adaptive"] {
        on_memory(&["--write-policy", policy], |mounted| {
            let data = pattern(7, 5 << 20);
            let mut file = File::create(mounted.path("file")).unwrap();
            data.chunks(8192).for_each(|chunk| file.write_all(chunk).unwrap());
            drop(file);
            assert!(fs::read(mounted.path("file")).unwrap() == data, "{policy}");
        });
    }
}

#[test]
fn transfers_can_be_small_and_connections_many() {
    on_memory(&["-o", "rsize=4096,wsize=4096,nconnect=4,actimeo=1"], |mounted| {
        let data = pattern(1, 1 << 20);
        fs::write(mounted.path("file"), &data).unwrap();
        assert!(fs::read(mounted.path("file")).unwrap() == data);
    });
}

#[test]
fn a_read_only_mount_changes_nothing() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    fs::write(served.path().join("file"), b"data").unwrap();
    let mounted = Mounted::new(&served, &["-o", "ro"]);
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"data");
    let error = fs::write(mounted.path("other"), b"x").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    mounted.stop();
    served.stop();
}

#[test]
fn version_2_and_udp_serve_too() {
    if !can_mount() {
        return;
    }
    for query in ["&version=2", "&proto=udp", "&version=2&proto=udp"] {
        let served = Served::memory(&["--udp"]);
        let at = tempfile::tempdir().unwrap();
        let url = served.url() + query;
        let program = crate::program::Program::start(&mut super::mount(&url, at.path()));
        program.wait_for(|text| text.contains("locks (flock").then_some(()));
        let mounted = Mounted { program: Some(program), at };
        let data = pattern(3, 300_000);
        fs::write(mounted.path("file"), &data).unwrap();
        assert!(fs::read(mounted.path("file")).unwrap() == data, "{query}");
        fs::rename(mounted.path("file"), mounted.path("moved")).unwrap();
        assert_eq!(crate::program::names(mounted.at.path()), ["moved"]);
        mounted.stop();
        served.stop();
    }
}

#[test]
fn what_the_kernel_holds_of_written_data_is_bounded_unless_that_is_not_wanted() {
    let cases = [
        (&[][..], "1", 128 << 20),
        (&["--dirty-max", "8M"][..], "1", 16 << 20),
        (&["--kernel-dirty-max", "none"][..], "0", u64::MAX),
    ];
    for (options, is_strict, bytes_max) in cases {
        on_memory(options, |mounted| {
            let device = fs::metadata(mounted.at.path()).unwrap().dev();
            let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
            let limits = PathBuf::from(format!("/sys/class/bdi/{major}:{minor}"));
            let limit = |file: &str| fs::read_to_string(limits.join(file));
            // Linux before 6.2 has no such file, and no choice.
            let Ok(strict) = limit("strict_limit") else { return };
            assert_eq!(strict.trim(), is_strict, "{options:?}");
            let most: u64 = limit("max_bytes").unwrap().trim().parse().unwrap();
            // The kernel keeps a share of what may be dirty, and that moves with free memory.
            assert!(most < bytes_max, "{options:?}: {most} bytes");
        });
    }
}
