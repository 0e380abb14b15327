//! Directories that are opened and listed, beside another client.

use super::*;

/// opendir(3), and an open(2) for fsync(2) or openat(2).
const TO_LIST: u64 = rustix::fs::OFlags::NONBLOCK.bits() as u64;
const TO_HOLD: u64 = 0;

fn open_dir(kernel: &Kernel, dir: u64, flags: u64) -> Result<u64, Errno> {
    kernel.ask(OPENDIR, dir, &parts(&[flags]));
    let (code, opened) = kernel.ended(7);
    if code == 0 { Ok(u64_at(&opened, 0)) } else { Err(Errno::from_raw_os_error(code)) }
}

/// Whether a directory that is open has this name, as one who reads it from the beginning sees it.
fn has(kernel: &Kernel, (dir, open): (u64, u64), name: &[u8]) -> bool {
    kernel.ask(READDIRPLUS, dir, &parts(&[open, 0, 4096, 0, 0]));
    kernel.answer().windows(name.len()).any(|window| window == name)
}

/// Another client puts a directory with a file in the place of one that is empty.
fn replaced(scene: &Scene, by_rename: bool) {
    let (other, who, mode) = (&scene.other, own(), Sattr3::of_mode(0o755));
    let root = other.root();
    scene.runtime.block_on(async {
        let to_make: &[u8] = if by_rename { b"next" } else { b"dir" };
        if !by_rename {
            other.rmdir(&who, root, b"dir").await.unwrap();
        }
        let made = other.mkdir(&who, root, to_make, mode).await.unwrap();
        other.create(&who, made.handle, b"theirs", mode, true).await.unwrap();
        if by_rename {
            other.rename(&who, (root, b"next"), (root, b"dir")).await.unwrap();
        }
    });
}

#[test]
fn a_directory_that_another_client_has_replaced_is_refused_when_it_is_opened() {
    for (flags, by_rename) in [TO_LIST, TO_HOLD].into_iter().zip([false, true]) {
        served(1 << 20, move |kernel, scene| {
            let old = kernel.mkdir(b"dir");
            open_dir(kernel, old, flags).unwrap();
            replaced(scene, by_rename);
            assert_eq!(open_dir(kernel, old, flags), Err(Errno::STALE));
            // The kernel comes again.
            kernel.ask(LOOKUP, 1, b"dir\0");
            let new = u64_at(&kernel.answer(), 0);
            assert_ne!(new, old);
            let opened = open_dir(kernel, new, flags).unwrap();
            assert!(has(kernel, (new, opened), b"theirs"));
        });
    }
}

#[test]
fn a_directory_is_opened_and_listed_by_one_call() {
    served(1 << 20, |kernel, scene| {
        let dir = kernel.mkdir(b"dir");
        for (flags, calls_of_both) in [(TO_LIST, 1), (TO_HOLD, 2)] {
            let before = calls(scene);
            let opened = open_dir(kernel, dir, flags).unwrap();
            assert_eq!(calls(scene), before + 1);
            assert!(has(kernel, (dir, opened), b".."));
            assert_eq!(calls(scene), before + calls_of_both);
            has(kernel, (dir, opened), b"..");
            assert_eq!(calls(scene), before + calls_of_both + 1, "rewinddir(3)");
        }
    });
}

#[test]
fn who_has_opened_a_directory_finds_what_was_made_here_before_it_is_read() {
    served(1 << 20, |kernel, _| {
        let opened = open_dir(kernel, 1, TO_LIST).unwrap();
        kernel.create();
        assert!(has(kernel, (1, opened), b"file"));
    });
}
