//! Names, attributes and directories, as programs see them.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{
    FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink,
};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Mode, XattrFlags};
use rustix::io::Errno;

use super::on_memory;
use crate::program::names;

fn hidden(dir: &Path) -> Vec<String> {
    names(dir).into_iter().filter(|name| name.starts_with(".nfs")).collect()
}

#[test]
fn a_file_that_is_open_outlives_its_name_and_leaves_nothing_behind() {
    on_memory(&[], |mounted| {
        let path = mounted.path("file");
        fs::write(&path, b"data").unwrap();
        let mut open = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(hidden(mounted.at.path()).len(), 1);
        let mut text = String::new();
        open.read_to_string(&mut text).unwrap();
        assert_eq!(text, "data");
        open.write_all(&[b'x'; 100_000]).unwrap();
        open.sync_all().unwrap();
        assert_eq!(open.metadata().unwrap().len(), 100_004);
        drop(open);
        // The kernel tells of the last close after close(2) has returned, in order with the rest.
        fs::write(&path, b"again").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"again");
        assert_eq!(hidden(mounted.at.path()), [] as [String; 0]);
    });
}

#[test]
fn a_rename_over_an_open_file_leaves_it_readable() {
    on_memory(&[], |mounted| {
        let (old, new) = (mounted.path("old"), mounted.path("new"));
        fs::write(&old, b"old").unwrap();
        fs::write(&new, b"new").unwrap();
        let mut open = File::open(&old).unwrap();
        fs::rename(&new, &old).unwrap();
        let mut text = String::new();
        open.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), fs::read(&old).unwrap()), ("old", b"new".to_vec()));
        assert!(!new.exists());
    });
}

/// As who keeps a log open does that somebody moves on.
#[test]
fn a_file_that_its_program_renames_and_opens_again_is_one_file() {
    on_memory(&[], |mounted| {
        for round in 0..5 {
            let (old, new) =
                (mounted.path(&format!("old{round}")), mounted.path(&format!("new{round}")));
            fs::write(&old, [b'x'; 50_000]).unwrap();
            let open = OpenOptions::new().read(true).write(true).open(&old).unwrap();
            open.write_all_at(b"dirty", 40_000).unwrap();
            fs::rename(&old, &new).unwrap();
            open.write_all_at(b"dirty", 45_000).unwrap();
            let mut appends = OpenOptions::new().append(true).open(&new).unwrap();
            appends.write_all(&[b'y'; 6_000]).unwrap();
            drop(appends);
            assert_eq!(open.metadata().unwrap().len(), 56_000);
            let mut end = [0; 6_000];
            open.read_exact_at(&mut end, 50_000).unwrap();
            assert_eq!(end, [b'y'; 6_000]);
        }
    });
}

#[test]
fn links_count_and_lead_to_one_file() {
    on_memory(&[], |mounted| {
        let (first, second) = (mounted.path("first"), mounted.path("second"));
        fs::write(&first, b"one").unwrap();
        fs::hard_link(&first, &second).unwrap();
        fs::write(&second, b"two").unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"two");
        let (a, b) = (fs::metadata(&first).unwrap(), fs::metadata(&second).unwrap());
        assert_eq!((a.ino(), a.nlink()), (b.ino(), 2));
        fs::remove_file(&first).unwrap();
        assert_eq!(fs::metadata(&second).unwrap().nlink(), 1);
        // Between directories of a mount nothing is another device.
        fs::create_dir(mounted.path("dir")).unwrap();
        fs::rename(&second, mounted.path("dir/moved")).unwrap();
        fs::hard_link(mounted.path("dir/moved"), &first).unwrap();
        assert_eq!(fs::read(first).unwrap(), b"two");
    });
}

/// open(2) on locks over NFS: who makes a link of a file of its own looks whether it has two. The
/// kernel has not requested the attributes of old ones for some time.
#[test]
fn links_of_old_and_of_new_files_are_counted_at_once() {
    for times in ["actimeo=60", "actimeo=0"] {
        on_memory(&["-o", times], |mounted| {
            let (own, lock) = (mounted.path("own"), mounted.path("lock"));
            let links = || fs::metadata(&own).unwrap().nlink();
            fs::write(&own, b"pid").unwrap();
            for round in 0..3 {
                fs::hard_link(&own, &lock).unwrap();
                assert_eq!(links(), 2, "{times}, {round}");
                fs::remove_file(&lock).unwrap();
                assert_eq!(links(), 1, "{times}, {round}");
                fs::write(&lock, b"other").unwrap();
                fs::hard_link(&own, mounted.path("third")).unwrap();
                fs::rename(mounted.path("third"), &lock).unwrap();
                assert_eq!(links(), 2, "{times}, {round}, by a renaming");
                fs::remove_file(&lock).unwrap();
            }
        });
    }
}

#[test]
fn symbolic_links_are_followed_here_and_loops_end() {
    on_memory(&[], |mounted| {
        symlink("target", mounted.path("link")).unwrap();
        fs::write(mounted.path("target"), b"data").unwrap();
        assert_eq!(fs::read(mounted.path("link")).unwrap(), b"data");
        assert_eq!(fs::read_link(mounted.path("link")).unwrap(), Path::new("target"));
        symlink("there", mounted.path("here")).unwrap();
        symlink("here", mounted.path("there")).unwrap();
        let error = fs::read(mounted.path("here")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert_eq!(names(mounted.at.path()).len(), 4);
    });
}

#[test]
fn names_have_255_bytes_and_not_one_more() {
    on_memory(&[], |mounted| {
        let longest = "n".repeat(255);
        fs::write(mounted.path(&longest), b"x").unwrap();
        assert_eq!(names(mounted.at.path()), [longest.as_str()]);
        let error = fs::write(mounted.path(&"n".repeat(256)), b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NAMETOOLONG.raw_os_error()));
    });
}

#[test]
fn a_directory_of_3_000_entries_is_listed_once_each() {
    on_memory(&[], |mounted| {
        let dir = mounted.path("dir");
        fs::create_dir(&dir).unwrap();
        let expected: Vec<String> = (0..3_000).map(|n| format!("file-{n:05}")).collect();
        // Links cost a fifth of what new files do.
        fs::write(dir.join(&expected[0]), b"x").unwrap();
        for name in &expected[1..] {
            fs::hard_link(dir.join(&expected[0]), dir.join(name)).unwrap();
        }
        let mut listed = names(&dir);
        listed.sort();
        assert!(listed == expected, "{} names", listed.len());
        assert!(fs::read_dir(&dir).unwrap().all(|entry| entry.unwrap().metadata().is_ok()));
        let error = fs::remove_dir(&dir).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty);
        fs::remove_dir_all(&dir).unwrap();
        assert!(!dir.exists());
    });
}

/// The kernel, which sees who asks, and that the file is another's, would refuse.
#[test]
fn where_everybody_acts_as_one_user_the_server_says_what_he_may() {
    for (options, is_let) in [(&["-o", "uid=0,gid=0"][..], true), (&[], false)] {
        on_memory(options, |mounted| {
            let (dir, path) = (mounted.path("dir"), mounted.path("dir/file"));
            fs::create_dir(&dir).unwrap();
            fs::write(&path, b"data").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
            let script = "cat file && echo more >> file && mv file other && test -w other";
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("cd {} && {script}", dir.display()));
            let output = shell.uid(65_534).gid(65_534).output().unwrap();
            assert_eq!(output.status.success(), is_let, "{output:?}");
            assert_eq!(mounted.path("dir/other").exists(), is_let);
        });
    }
}

#[test]
fn attributes_come_back_as_they_were_set() {
    on_memory(&[], |mounted| {
        let path = mounted.path("file");
        fs::write(&path, b"data").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode(), 0o104_751);
        chown(&path, Some(1000), Some(100)).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (1000, 100));
        let time = |seconds| SystemTime::UNIX_EPOCH + Duration::new(seconds, 123_456_789);
        let times = fs::FileTimes::new().set_accessed(time(5)).set_modified(time(1_000_000_000));
        File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let found = (metadata.accessed().unwrap(), metadata.modified().unwrap());
        assert_eq!(found, (time(5), time(1_000_000_000)));
        // utimes(2) without a time.
        File::open(&path).unwrap();
        let now = rustix::fs::Timestamps {
            last_access: rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
            last_modification: rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
        };
        let (cwd, flags) = (rustix::fs::CWD, rustix::fs::AtFlags::empty());
        rustix::fs::utimensat(cwd, &path, &now, flags).unwrap();
        let clock = net::clock::Clock::real();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let age = (SystemTime::UNIX_EPOCH + clock.since_1970()).duration_since(modified);
        assert!(age.unwrap_or_default() < Duration::from_secs(60));
        fs::create_dir(mounted.path("dir")).unwrap();
        fs::set_permissions(mounted.path("dir"), fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(fs::metadata(mounted.path("dir")).unwrap().mode(), 0o041_777);
    });
}

#[test]
fn special_files_are_what_they_were_made() {
    on_memory(&[], |mounted| {
        let (cwd, mode) = (rustix::fs::CWD, Mode::from_raw_mode(0o640));
        let device = rustix::fs::makedev(8, 300);
        for (name, kind, number) in
            [("fifo", FileType::Fifo, 0), ("disk", FileType::BlockDevice, device)]
        {
            rustix::fs::mknodat(cwd, mounted.path(name), kind, mode, number).unwrap();
        }
        assert!(fs::metadata(mounted.path("fifo")).unwrap().file_type().is_fifo());
        let disk = fs::metadata(mounted.path("disk")).unwrap();
        assert!(disk.file_type().is_block_device());
        assert_eq!((disk.rdev(), disk.mode() & 0o777), (device, 0o640));
        std::os::unix::net::UnixListener::bind(mounted.path("socket")).unwrap();
        assert!(fs::metadata(mounted.path("socket")).unwrap().file_type().is_socket());
    });
}

#[test]
fn an_exclusive_create_finds_what_is_there() {
    on_memory(&[], |mounted| {
        let path = mounted.path("file");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o604);
        options.open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode(), 0o100_604);
        assert_eq!(options.open(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    });
}

#[test]
fn what_nfs_3_cannot_do_is_refused_as_everywhere() {
    on_memory(&[], |mounted| {
        let path = mounted.path("file");
        fs::write(&path, b"data").unwrap();
        for _ in 0..2 {
            let set = rustix::fs::setxattr(&path, "user.x", b"1", XattrFlags::empty());
            assert_eq!(set, Err(Errno::OPNOTSUPP));
            let read = rustix::fs::getxattr(&path, "user.x", &mut [0; 10]);
            assert_eq!(read, Err(Errno::OPNOTSUPP));
        }
        let file = File::options().write(true).open(&path).unwrap();
        let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        assert_eq!(rustix::fs::fallocate(&file, punch, 0, 1), Err(Errno::OPNOTSUPP));
        let (cwd, other) = (rustix::fs::CWD, mounted.path("other"));
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        fs::write(&other, b"x").unwrap();
        assert_eq!(rustix::fs::renameat_with(cwd, &path, cwd, &other, flags), Err(Errno::INVAL));
    });
}

#[test]
fn statfs_tells_what_the_server_has() {
    on_memory(&[], |mounted| {
        let space = rustix::fs::statvfs(mounted.at.path()).unwrap();
        // 4 GiB, the default of `serve mem:`.
        assert_eq!(space.f_blocks * space.f_frsize, 4 << 30);
        assert!(space.f_bfree <= space.f_blocks && space.f_bfree > 0);
        assert_eq!(space.f_namemax, 255);
        fs::write(mounted.path("file"), vec![1; 8 << 20]).unwrap();
        let less = rustix::fs::statvfs(mounted.at.path()).unwrap();
        assert!(space.f_bfree - less.f_bfree >= (8 << 20) / space.f_frsize);
    });
}

#[test]
fn locks_hold_on_this_host() {
    on_memory(&[], |mounted| {
        let path = mounted.path("file");
        let open = || File::options().create(true).append(true).open(&path).unwrap();
        let (first, second) = (open(), open());
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&first, exclusive).unwrap();
        assert_eq!(rustix::fs::flock(&second, exclusive), Err(Errno::WOULDBLOCK));
        // Not by a close: a child of another test has it, too, from fork to exec.
        rustix::fs::flock(&first, rustix::fs::FlockOperation::Unlock).unwrap();
        rustix::fs::flock(&second, exclusive).unwrap();
        rustix::fs::fcntl_lock(&second, exclusive).unwrap();
        second.write_all_at(b"x", 0).ok();
    });
}
