//! Many callers at once, on few names, with a cache too small for them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Each file holds a mark of its own. Files come, go, and take each other's names; a handle reads
/// its own file's mark or is stale, and nothing else goes wrong.
#[test]
fn a_handle_never_reads_another_file() {
    each_kind(|at| {
        thread::scope(|scope| {
            for seed in 1..=4 {
                let at = &at;
                scope.spawn(move || churn(at, seed));
            }
        });
    });
}

fn churn(at: &Fixture, seed: u64) {
    let root = at.root();
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    let mut marked: Vec<(Handle, [u8; 8])> = Vec::new();
    for step in 0..1000_u64 {
        let name = format!("name-{}", below(6));
        let outcome = match below(6) {
            0 | 1 => {
                let mark = (seed << 32 | step).to_le_bytes();
                let how = CreateHow::Guarded(SetAttr::default());
                let created = block_on(at.store.create(&ME, &root, name.as_bytes(), how));
                created.result.and_then(|node| {
                    let data = Bytes::copy_from_slice(&mark);
                    let written = at.store.write(&ME, &node.handle, 0, data, Stability::Unstable);
                    block_on(written).result?;
                    marked.push((node.handle, mark));
                    Ok(())
                })
            }
            2 => at.remove(&root, &name),
            3 => at.rename(&root, &name, &root, &format!("name-{}", below(6))),
            4 => at.lookup(&root, &name).map(drop),
            _ if marked.is_empty() => Ok(()),
            _ => {
                let index = usize::try_from(below(marked.len() as u64)).unwrap();
                let (handle, mark) = marked[index];
                at.read(&handle, 0, 8)
                    .map(|(data, _)| assert_eq!(data, mark, "seed {seed}, step {step}"))
            }
        };
        let expected = [Status::NoEntry, Status::Exists, Status::Stale];
        if let Err(status) = outcome {
            assert!(expected.contains(&status), "seed {seed}, step {step}: {status:?}");
        }
    }
}

/// Between the two an open of the handle would take the file for one that somebody has moved, and
/// have it searched for. (Of the kernel's own handles the kernel knows.)
#[test]
fn no_handle_is_opened_from_a_removal_until_the_table_knows_of_it() {
    let handles = HandleChoice::Table;
    let at = Fixture::new(DirOptions { handles, ..DirOptions::default() });
    let root = at.root();
    at.create(&root, "file");
    let (begun, opening) = (AtomicBool::new(false), at.store.tree.handles.moving());
    thread::scope(|scope| {
        let removing = scope.spawn(|| {
            begun.store(true, Ordering::Release);
            at.remove(&root, "file")
        });
        while !begun.load(Ordering::Acquire) {
            thread::yield_now();
        }
        for _ in 0..10_000 {
            assert!(at.path("file").exists(), "a removal waits, too");
        }
        drop(opening);
        assert_eq!(removing.join().unwrap(), Ok(()));
    });
    assert!(!at.path("file").exists());
}

/// Its directory goes back and forth all the time; the file is never gone.
#[test]
fn a_file_on_the_move_is_not_stale() {
    each_kind(|at| {
        let (a, b) = (at.make_dir(&at.root(), "a"), at.make_dir(&at.root(), "b"));
        let dir = at.make_dir(&a.handle, "dir");
        let file = at.create(&dir.handle, "file");
        let other = at.create(&at.root(), "other");
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..500 {
                    at.rename(&a.handle, "dir", &b.handle, "moved").unwrap();
                    at.rename(&b.handle, "moved", &a.handle, "dir").unwrap();
                }
                over.store(true, Ordering::Release);
            });
            while !over.load(Ordering::Acquire) {
                // The other one drives it out of a cache of one.
                assert!(at.attr(&other.handle).is_ok());
                assert_eq!(at.attr(&file.handle).map(|attr| attr.size), Ok(0));
            }
        });
    });
}

#[test]
fn what_was_made_is_what_is_listed() {
    each_kind(|at| {
        let root = at.root();
        thread::scope(|scope| {
            for caller in 0..4 {
                let (at, root) = (&at, &root);
                scope.spawn(move || {
                    let dir = at.make_dir(root, &format!("dir-{caller}")).handle;
                    for index in 0..50 {
                        at.create(&dir, &format!("file-{index}"));
                    }
                    for index in 0..25 {
                        at.remove(&dir, &format!("file-{}", index * 2)).unwrap();
                    }
                });
            }
        });
        for caller in 0..4 {
            let left = fs::read_dir(at.path(&format!("dir-{caller}"))).unwrap();
            assert_eq!(left.count(), 25);
        }
    });
}
