//! `mount --cache`: a restart, orders to a mount that runs, and directories that are refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cache::place::Place;
use cache::survey;
use perf::units::Nanos;
use rustix::fs::{Advice, fadvise};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::Signal;
use tempfile::TempDir;

use super::{Mounted, can_mount, mount};
use crate::program::{Deadline, Program, nfskit, run};
use crate::served::Served;

const SIZE: usize = 3 << 20;

fn content(state: u8) -> Vec<u8> {
    (0..SIZE).map(|at| u8::try_from(at / 999 % 250).unwrap() ^ state).collect()
}

/// Reads a file that the kernel has not got.
fn read(path: &Path) -> Vec<u8> {
    let file = fs::File::open(path).unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    drop(file);
    fs::read(path).unwrap()
}

/// A server in memory, a directory for a cache, and a mount that has both; none where nothing can
/// be mounted.
fn scene() -> Option<(Served, TempDir, Mounted)> {
    if !can_mount() {
        return None;
    }
    let (served, cache) = (Served::memory(&[]), tempfile::tempdir().unwrap());
    let mounted = cached(&served, cache.path());
    Some((served, cache, mounted))
}

fn cached(served: &Served, cache: &Path) -> Mounted {
    Mounted::new(served, &["--cache", cache.to_str().unwrap(), "--cache-size", "1G"])
}

/// The numbers of the line of `nfskit cache status`: local files, hits, damaged.
fn status(cache: &Path) -> [u64; 3] {
    let status = run(["cache", "status", cache.to_str().unwrap()]);
    assert_eq!(status.code, Some(0), "{status:?}");
    let line = status.stdout.lines().nth(1).unwrap_or_default().to_owned();
    let words: Vec<_> = line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    [2, 5, 8].map(|at| words.get(at).and_then(|word| word.parse().ok()).expect(&line))
}

/// Waits until all of a file is stored, which happens after it was read.
fn stored(cache: &Path, file: &Path) {
    let deadline = Deadline::after(Nanos::from_secs(10));
    let why = || run(["cache", "why", cache.to_str().unwrap(), file.to_str().unwrap()]);
    while !why().stdout.contains("48 blocks") {
        assert!(deadline.left() > Duration::ZERO, "{:?}", why());
    }
}

/// Waits for as long as the attributes of a new file may be of two states.
fn settle(path: &Path) {
    fs::metadata(path).unwrap();
    let wait = Deadline::after(Nanos::from_millis(200));
    while wait.left() > Duration::ZERO {
        std::thread::yield_now();
    }
}

#[test]
fn blocks_survive_a_restart_and_a_kill_and_what_has_changed_meanwhile_is_read_anew() {
    if !can_mount() {
        return;
    }
    let (served, cache) = (Served::memory(&[]), tempfile::tempdir().unwrap());
    let dir = cache.path().join("blocks");
    let mounted = cached(&served, &dir);
    for name in ["same", "other"] {
        fs::write(mounted.path(name), content(1)).unwrap();
        settle(&mounted.path(name));
        assert_eq!(read(&mounted.path(name)), content(1));
    }
    // What is counted of the other goes with it.
    assert_eq!(read(&mounted.path("same")), content(1));
    // Another mount of the same export is refused its directory.
    let at = tempfile::tempdir().unwrap();
    let refused = mount(&served.url(), at.path()).arg("--cache").arg(&dir).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{text}");
    assert!(text.contains("is used by another process"), "{text}");
    mounted.program().signal(Signal::KILL);
    let killed = mounted.at.path().to_owned();
    drop(mounted.finish());
    rustix::mount::unmount(&killed, UnmountFlags::DETACH).ok();
    let without = Mounted::new(&served, &[]);
    fs::write(without.path("other"), content(2)).unwrap();
    settle(&without.path("other"));
    without.stop();
    let hits = status(&dir)[1];
    let mounted = cached(&served, &dir);
    assert_eq!(read(&mounted.path("same")), content(1));
    assert_eq!(read(&mounted.path("other")), content(2));
    mounted.stop();
    assert!(status(&dir)[1] > hits, "{:?} after {hits}", status(&dir));
    let whole = run(["cache", "verify", dir.to_str().unwrap()]);
    assert!(whole.stdout.starts_with("whole: "), "{whole:?}");
    served.stop();
}

#[test]
fn commands_work_while_a_mount_has_the_cache_and_when_none_has() {
    let Some((served, cache, mounted)) = scene() else { return };
    let dir = cache.path().to_str().unwrap();
    let path = mounted.path("f");
    fs::write(&path, content(1)).unwrap();
    settle(&path);
    let file = path.to_str().unwrap();
    let warmed = run(["cache", "warm", file]);
    assert_eq!(warmed.stdout, format!("1 file of {SIZE} bytes read\n"), "{warmed:?}");
    assert_eq!(read(&path), content(1));
    stored(cache.path(), &path);
    let why = run(["cache", "why", dir, file]);
    assert!(why.stdout.contains("48 blocks") && why.stdout.contains("; used"), "{why:?}");
    let pinned = run(["cache", "pin", dir, file]);
    assert_eq!(pinned.stdout, "1 file is pinned\n", "{pinned:?}");
    let cleaned = run(["cache", "clean", dir, "--to", "1"]);
    assert!(cleaned.stdout.contains("done by the mount or proxy that has it"), "{cleaned:?}");
    assert_eq!(status(cache.path())[0], 1, "it is pinned");
    assert_eq!(run(["cache", "unpin", dir, file]).code, Some(0));
    let dropped = run(["cache", "invalidate", dir, file]);
    assert!(dropped.stdout.contains("done by the mount or proxy that has it"), "{dropped:?}");
    assert_eq!(status(cache.path())[0], 0);
    assert_eq!(read(&path), content(1));
    mounted.stop();
    let cleaned = run(["cache", "clean", dir, "--to", "1"]);
    // One of blocks, and one of the directory's names if there was time to write it.
    assert!(cleaned.stdout.contains(" local files of "), "{cleaned:?}");
    assert_eq!(status(cache.path())[0], 0);
    let mounted = cached(&served, cache.path());
    let path = mounted.path("f");
    settle(&path);
    assert_eq!(read(&path), content(1));
    stored(cache.path(), &path);
    // Before an order is done, what was missed until then is written.
    let dropped = run(["cache", "invalidate", dir, path.to_str().unwrap()]);
    assert!(dropped.stdout.contains("done by the mount or proxy that has it"), "{dropped:?}");
    let why = run(["cache", "why", dir, path.to_str().unwrap()]);
    assert!(why.stdout.contains("reads that were not served: "), "{why:?}");
    assert!(why.stdout.contains(" cold"), "{why:?}");
    mounted.stop();
    let by_file = run(["cache", "status", dir, "--files", "5"]).stdout;
    assert!(by_file.contains("misses") && by_file.contains(" cold"), "{by_file}");
    run(["cache", "why", dir, "/nowhere/f"]).complains(3, &["/nowhere/f"]);
    // Numbers of files are those of one file system: elsewhere they are of other files.
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    let other = elsewhere.path().to_str().unwrap();
    for command in ["why", "pin", "unpin", "invalidate"] {
        run(["cache", command, dir, other]).complains(3, &[other, "on no NFS mount"]);
    }
    run(["cache", "status", "/nowhere"]).complains(3, &["/nowhere"]);
    served.stop();
}

#[test]
fn of_two_commands_the_second_waits_for_the_first_and_leaves_nothing_where_it_is_ended() {
    let Some((served, cache, mounted)) = scene() else { return };
    let file = mounted.path("file");
    fs::write(&file, content(1)).unwrap();
    stored_anew(cache.path(), &file);
    mounted.stop();
    served.stop();
    // As a command has it that takes its time.
    let found = survey::origins(cache.path()).unwrap().remove(0);
    let place = Place::open_existing(cache.path(), &found.folder).unwrap();
    let orders = found.path.join("orders");
    let dir = cache.path().to_str().unwrap();
    let left = || fs::read_dir(&orders).map_or(0, Iterator::count);
    let begin = || {
        let second = Program::start(&mut nfskit(["cache", "invalidate", dir]));
        let deadline = Deadline::after(Nanos::from_secs(10));
        while left() < 2 {
            assert!(deadline.left() > Duration::ZERO, "it has ordered nothing");
        }
        second
    };
    let ended = begin();
    ended.signal(Signal::TERM);
    assert_eq!(ended.finish().code, Some(130));
    assert_eq!(left(), 0);
    let killed = begin();
    killed.signal(Signal::KILL);
    killed.finish();
    assert_eq!(left(), 2);
    let waits = begin();
    drop(place);
    let done = waits.finish();
    assert!(done.stdout.contains(" local files of 3.0 MiB removed"), "{done:?}");
    assert_eq!((done.code, left()), (Some(0), 0));
}

#[test]
fn why_is_of_what_a_link_leads_to_and_of_the_cache_that_the_mount_has() {
    let Some((served, cache, mounted)) = scene() else { return };
    let why = |path: PathBuf| {
        run(["cache", "why", cache.path().to_str().unwrap(), path.to_str().unwrap()])
    };
    let file = mounted.path("file");
    fs::write(&file, content(1)).unwrap();
    stored_anew(cache.path(), &file);
    symlink("file", mounted.path("link")).unwrap();
    symlink("nothing", mounted.path("astray")).unwrap();
    let seen = why(mounted.path("link")).stdout;
    let leads = format!("is a symbolic link to {}\n", file.display());
    assert!(seen.contains(&leads) && seen.contains("48 blocks"), "{seen}");
    why(mounted.path("astray")).complains(3, &["is a symbolic link: No such file"]);
    let used = why(file.clone()).stdout;
    assert!(used.contains("bytes; used; read") && !used.contains("not used"), "{used}");
    // Its ctime is another then.
    fs::hard_link(&file, mounted.path("hard")).unwrap();
    for name in ["file", "hard"] {
        let seen = why(mounted.path(name)).stdout;
        assert!(seen.contains("not used: the file's attributes or links have changed"), "{seen}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let other = cached(&served, elsewhere.path());
    let seen = why(other.path("file")).stdout;
    assert!(seen.ends_with("through this mount: it has another cache\n"), "{seen}");
    other.stop();
    mounted.stop();
    served.stop();
}

#[test]
fn why_says_what_is_damaged_and_whether_a_mount_has_the_cache() {
    let Some((served, cache, mounted)) = scene() else { return };
    let dir = cache.path().to_str().unwrap();
    fs::create_dir(mounted.path("d")).unwrap();
    let file = mounted.path("d/f");
    fs::write(&file, content(1)).unwrap();
    // What was written here may be stored before it is read. So that a read finds nothing, and
    // counts that for the file, all of it is dropped once.
    stored_anew(cache.path(), &file);
    assert_eq!(run(["cache", "invalidate", dir, file.to_str().unwrap()]).code, Some(0));
    stored_anew(cache.path(), &file);
    fs::read_dir(mounted.path("d")).unwrap().for_each(drop);
    mounted.stop();
    let without = Mounted::new(&served, &[]);
    let why = |name: &str| run(["cache", "why", dir, without.path(name).to_str().unwrap()]).stdout;
    let seen = why("d/f");
    assert!(seen.contains("48 blocks") && seen.contains("mount: it has no cache"), "{seen}");
    let seen = why("d");
    assert!(seen.contains("names: 1 that are there"), "{seen}");
    for folder in fs::read_dir(folder(cache.path())).unwrap().flatten() {
        for segment in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let mut bytes = fs::read(segment.path()).unwrap();
            bytes[170] ^= 1;
            fs::write(segment.path(), bytes).unwrap();
        }
    }
    let seen = why("d/f");
    assert!(seen.contains("not used, it is damaged: the checksum"), "{seen}");
    without.stop();
    served.stop();
}

/// The folder of the only export.
fn folder(cache: &Path) -> PathBuf {
    let mut entries = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.is_dir()).unwrap()
}

/// Warmed, so that all of it is stored.
fn stored_anew(cache: &Path, file: &Path) {
    settle(file);
    assert_eq!(read(file), content(1));
    stored(cache, file);
}

#[test]
fn pins_are_taken_away_whether_something_is_stored_or_not() {
    let Some((served, cache, mounted)) = scene() else { return };
    let dir = cache.path().to_str().unwrap();
    let [file, other, never] = ["file", "other", "never"].map(|name| mounted.path(name));
    for path in [&file, &other] {
        fs::write(path, content(1)).unwrap();
        stored_anew(cache.path(), path);
    }
    let command = |command: &str, paths: &[&Path]| {
        let paths = paths.iter().map(|path| path.to_str().unwrap());
        run(["cache", command, dir].into_iter().chain(paths))
    };
    // The server has it, and nothing of it is stored.
    let elsewhere = Mounted::new(&served, &[]);
    fs::write(elsewhere.path("never"), "x").unwrap();
    elsewhere.stop();
    let pinned = command("pin", &[&file, &never]);
    assert_eq!((pinned.code, &*pinned.stdout), (Some(3), "1 file is pinned\n"), "{pinned:?}");
    let what = format!("nothing is stored of {}", never.display());
    assert!(pinned.stderr.contains(&what), "{pinned:?}");
    assert_eq!(command("invalidate", &[&file]).code, Some(0));
    assert_eq!(command("unpin", &[&file]).stdout, "1 file is not pinned any more\n");
    assert_eq!(command("unpin", &[&file]).stdout, "none of them was pinned\n");
    stored_anew(cache.path(), &file);
    assert_eq!(command("clean", &[Path::new("--to"), Path::new("1")]).code, Some(0));
    assert_eq!(status(cache.path())[0], 0);
    for path in [&file, &other] {
        stored_anew(cache.path(), path);
    }
    assert_eq!(command("pin", &[&file, &other]).stdout, "2 files are pinned\n");
    fs::remove_file(&file).unwrap();
    assert_eq!(command("unpin", &[]).stdout, "2 files are not pinned any more\n");
    mounted.stop();
    served.stop();
}

#[test]
fn damaged_pins_and_identities_are_reported_and_never_replaced_without_a_word() {
    let Some((served, cache, mounted)) = scene() else { return };
    let dir = cache.path().to_str().unwrap();
    let path = mounted.path("f");
    fs::write(&path, content(1)).unwrap();
    stored_anew(cache.path(), &path);
    let file = path.to_str().unwrap();
    assert_eq!(run(["cache", "pin", dir, file]).code, Some(0));
    let flip = |name: &str| {
        let path = folder(cache.path()).join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[30] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    flip("pins");
    assert!(run(["cache", "status", dir]).stdout.contains("damaged  "));
    run(["cache", "verify", dir]).complains(1, &["list of pinned files is damaged", "unpin"]);
    for command in ["pin", "unpin"] {
        let refused = run(["cache", command, dir, file]);
        refused.complains(3, &["the list of pinned files is damaged", "cache unpin"]);
    }
    mounted.program().signal(Signal::TERM);
    let finished = mounted.finish();
    assert!(finished.stderr.contains("the list of pinned files is damaged"), "{finished:?}");
    assert_eq!(run(["cache", "unpin", dir]).code, Some(0));
    assert_eq!(run(["cache", "verify", dir]).code, Some(0));
    flip("identity");
    assert!(run(["cache", "status", dir]).stdout.contains("(identity damaged)"));
    run(["cache", "verify", dir]).complains(1, &["its identity is damaged"]);
    run(["cache", "clean", dir, "--to", "1"]).complains(3, &["its identity is damaged"]);
    let mounted = cached(&served, cache.path());
    mounted.program().signal(Signal::TERM);
    let finished = mounted.finish();
    assert!(finished.stderr.contains("identity was damaged"), "{finished:?}");
    assert_eq!(run(["cache", "verify", dir]).code, Some(0));
    served.stop();
}

#[test]
fn a_cache_on_a_disk_that_is_read_only_is_looked_at() {
    let Some((served, cache, mounted)) = scene() else { return };
    fs::write(mounted.path("f"), content(1)).unwrap();
    stored_anew(cache.path(), &mounted.path("f"));
    mounted.stop();
    let at = tempfile::tempdir().unwrap();
    let flags = MountFlags::BIND | MountFlags::RDONLY;
    if rustix::mount::mount_bind(cache.path(), at.path()).is_err() {
        return eprintln!("SKIPPED: nothing may be bound");
    }
    rustix::mount::mount_remount(at.path(), flags, "").unwrap();
    let dir = at.path().to_str().unwrap();
    let [seen, verified, pinned] =
        [["cache", "status", dir], ["cache", "verify", dir], ["cache", "unpin", dir]].map(run);
    let cleaned = run(["cache", "clean", dir, "--to", "1"]);
    rustix::mount::unmount(at.path(), UnmountFlags::DETACH).unwrap();
    assert_eq!((seen.code, verified.code), (Some(0), Some(0)), "{seen:?} {verified:?}");
    assert_eq!(pinned.stdout, "none of them was pinned\n", "{pinned:?}");
    cleaned.complains(3, &["read only"]);
    served.stop();
}

#[test]
fn flipped_bits_are_reported_and_never_read() {
    let Some((served, cache, mounted)) = scene() else { return };
    fs::write(mounted.path("f"), content(1)).unwrap();
    settle(&mounted.path("f"));
    assert_eq!(read(&mounted.path("f")), content(1));
    mounted.stop();
    let mut damaged = 0;
    for origin in fs::read_dir(cache.path()).unwrap().flatten() {
        let Ok(folders) = fs::read_dir(origin.path()) else { continue };
        for folder in folders.flatten().filter(|folder| folder.file_name().len() == 2) {
            for segment in fs::read_dir(folder.path()).unwrap().flatten() {
                let mut bytes = fs::read(segment.path()).unwrap();
                // One bit of each block of 64 KiB.
                for at in (4096 + 77..bytes.len()).step_by(64 << 10) {
                    bytes[at] ^= 4;
                    damaged += 1;
                }
                fs::write(segment.path(), bytes).unwrap();
            }
        }
    }
    assert!(damaged >= SIZE / (64 << 10), "{damaged}");
    let dir = cache.path().to_str().unwrap();
    run(["cache", "verify", dir]).complains(1, &["1 of 1 local files are damaged"]);
    let mounted = cached(&served, cache.path());
    assert_eq!(read(&mounted.path("f")), content(1));
    mounted.program().signal(Signal::TERM);
    let finished = mounted.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("is damaged"), "{finished:?}");
    served.stop();
}

#[test]
fn directories_that_cannot_be_used_are_refused_with_a_sentence() {
    if !can_mount() {
        return;
    }
    let (served, base) = (Served::memory(&[]), tempfile::tempdir().unwrap());
    let refused = |cache: &Path, part: &str| {
        let at = tempfile::tempdir().unwrap();
        let refused = mount(&served.url(), at.path()).arg("--cache").arg(cache).output().unwrap();
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(3) && text.contains(part), "{part}: {text}");
    };
    let full = base.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("precious"), "x").unwrap();
    refused(&full, "other files in it, and no cache");
    let newer = base.path().join("newer");
    fs::create_dir(&newer).unwrap();
    fs::write(newer.join("nfskit-cache"), "nfskit cache 7\n").unwrap();
    refused(&newer, "version 7, and this program has version 1");
    refused(&full.join("precious"), "precious");
    symlink(&newer, base.path().join("link")).unwrap();
    refused(&base.path().join("link"), "link");
    served.stop();
}

#[test]
fn files_of_a_directory_that_were_just_written_elsewhere_are_warmed_pinned_and_dropped() {
    let Some((served, cache, mounted)) = scene() else { return };
    let elsewhere = Mounted::new(&served, &[]);
    fs::create_dir(elsewhere.path("d")).unwrap();
    for name in ["d/one", "d/two"] {
        fs::write(elsewhere.path(name), content(1)).unwrap();
    }
    elsewhere.stop();
    let (dir, files) = (cache.path().to_str().unwrap(), mounted.path("d"));
    let path = files.to_str().unwrap();
    let warmed = run(["cache", "warm", path]);
    assert_eq!(warmed.stdout, format!("2 files of {} bytes read\n", 2 * SIZE), "{warmed:?}");
    for name in ["d/one", "d/two"] {
        stored(cache.path(), &mounted.path(name));
    }
    let pinned = run(["cache", "pin", dir, path]);
    assert_eq!(pinned.stdout, "2 files are pinned\n", "{pinned:?}");
    assert_eq!(run(["cache", "clean", dir, "--to", "1"]).code, Some(0));
    assert_eq!(status(cache.path())[0], 2);
    let unpinned = run(["cache", "unpin", dir, path]);
    assert_eq!(unpinned.stdout, "2 files are not pinned any more\n", "{unpinned:?}");
    assert_eq!(run(["cache", "invalidate", dir, path]).code, Some(0));
    assert_eq!(status(cache.path())[0], 0);
    let link = mounted.path("link");
    symlink("d", &link).unwrap();
    let refused = run(["cache", "warm", link.to_str().unwrap()]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("is a symbolic link"), "{refused:?}");
    mounted.stop();
    served.stop();
}

#[test]
fn what_the_cache_has_no_room_for_is_not_taken_for_warmed() {
    if !can_mount() {
        return;
    }
    let (served, cache) = (Served::memory(&[]), tempfile::tempdir().unwrap());
    let dir = cache.path().to_str().unwrap();
    let mounted = Mounted::new(&served, &["--cache", dir, "--cache-size", "4M"]);
    let elsewhere = Mounted::new(&served, &[]);
    for name in ["one", "two"] {
        fs::write(elsewhere.path(name), content(1)).unwrap();
    }
    elsewhere.stop();
    let [one, two] = ["one", "two"].map(|name| mounted.path(name).display().to_string());
    assert_eq!(run(["cache", "warm", &one]).code, Some(0));
    let warmed = run(["cache", "warm", &one, &two]);
    assert_eq!(warmed.stdout, format!("2 files of {} bytes read\n", 2 * SIZE), "{warmed:?}");
    let part = "of 2 are not in the cache as a whole";
    assert!(warmed.code == Some(3) && warmed.stderr.contains(part), "{warmed:?}");
    mounted.stop();
    served.stop();
}

#[test]
fn what_is_in_a_mount_without_a_cache_is_not_warmed() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let mounted = Mounted::new(&served, &[]);
    fs::create_dir(mounted.path("d")).unwrap();
    fs::write(mounted.path("d/f"), "x").unwrap();
    for path in [mounted.path("d"), mounted.path("d/f")] {
        let path = path.to_str().unwrap();
        let finished = run(["cache", "warm", path]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""), "{finished:?}");
        let what = format!("the mount that {path} is in has no cache");
        assert!(finished.stderr.contains(&what), "{finished:?}");
    }
    mounted.stop();
    served.stop();
}

#[test]
fn what_is_in_no_mount_is_not_warmed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "local").unwrap();
    for path in [dir.path().to_owned(), dir.path().join("f")] {
        let path = path.to_str().unwrap();
        let finished = run(["cache", "warm", path]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""), "{finished:?}");
        assert!(
            finished.stderr.contains(&format!("{path} is in no mount of nfskit")),
            "{finished:?}"
        );
        assert!(finished.stderr.contains("findmnt -t fuse.nfskit"), "{finished:?}");
    }
}
