//! Changes whose callers no longer wait for the answer (Ctrl-C while a server is away): the server
//! makes them, and the kernel does not hear of it.

use super::*;

const SYMLINK: u32 = 6;
const MKNOD: u32 = 8;
const MKDIR: u32 = 9;
const RMDIR: u32 = 11;
const RENAME: u32 = 12;

const SIZE: u64 = 1 << 3;
const MTIME: u64 = 1 << 5;

/// SETATTR: what is valid, file, size, lock, times; and their fractions.
fn setting(valid: u64, size: u64, mtime: u64) -> Vec<u8> {
    parts(&[valid, 0, size, 0, 0, mtime, 0, 0, 0, 0, 0])
}

/// The kernel of a writeback mount has size and time for itself, and writes at the end that it has.
#[test]
fn a_cut_that_the_kernel_has_not_heard_of_is_seen_by_who_opens_the_file_next() {
    let set = [setting(SIZE, 3, 0), setting(SIZE, 100, 0), setting(MTIME, 0, 1000)];
    for (set, size) in set.into_iter().zip([3, 100, 6]) {
        served(1 << 20, move |kernel, scene| {
            let (node, file) = kernel.create();
            kernel.write((node, file), CACHED, 0, b"before");
            kernel.answer();
            kernel.release((node, file));
            interrupted(scene, SETATTR, node, &set);
            kernel.ask(OPEN, node, &parts(&[2]));
            assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
            kernel.ask(LOOKUP, 1, b"file\0");
            let found = kernel.answer();
            assert_ne!(u64_at(&found, 0), node);
            assert_eq!(u64_at(&found, 40 + 8), size);
        });
    }
}

#[test]
fn a_program_that_has_the_file_open_follows_a_growth_that_the_kernel_has_not_heard_of() {
    served(1 << 20, |kernel, scene| {
        let (node, file) = kernel.create();
        interrupted(scene, SETATTR, node, &setting(SIZE, 10, 0));
        assert_eq!(kernel.notice(), (INVAL, parts(&[node, 0, 0])), "all of its data");
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(kernel.notice(), (INVAL, parts(&[node, 0, 0])));
        let (code, stored) = kernel.notice();
        assert_eq!((code, u64_at(&stored, 8)), (STORE, 9), "the last byte");
        kernel.answer();
        kernel.release((node, file));
    });
}

/// A request by its number and its content, and the names that it changes.
type Change<'a> = (u32, &'a [u8], &'a [&'a [u8]]);

/// Each of them is to be looked up when it is next used, whatever the kernel forgets of a file.
fn expired(kernel: &Kernel, names: &[&[u8]]) {
    for name in names {
        let mut notices = std::iter::repeat_with(|| kernel.notice());
        let (code, received) = notices.find(|(code, _)| *code != INVAL).unwrap();
        let (dir, length) = (u64_at(&received, 0), u64_at(&received, 8));
        assert_eq!((code, dir, length), (INVAL_ENTRY, 1, 1 << 32 | name.len() as u64));
        assert_eq!(received[16..], [name, &[0][..]].concat());
    }
}

/// The kernel denies a name that it has looked for, until it is notified or the directory is no
/// longer good.
#[test]
fn names_whose_change_the_kernel_has_not_heard_of_are_looked_up_anew() {
    served(1 << 20, |kernel, scene| {
        let words = |numbers: &[u32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
        };
        let file = kernel.create();
        kernel.release(file);
        let create = [&words(&[2, 0o100_644, 0, 0])[..], b"created\0"].concat();
        let mkdir = [&words(&[0o755, 0])[..], b"dir\0"].concat();
        let mknod = [&words(&[0o10_644, 0, 0, 0])[..], b"fifo\0"].concat();
        let link = [&parts(&[file.0])[..], b"link\0"].concat();
        let rename = [&parts(&[1])[..], b"link\0moved\0"].concat();
        let changes: [Change<'_>; 8] = [
            (CREATE, &create, &[b"created"]),
            (MKDIR, &mkdir, &[b"dir"]),
            (MKNOD, &mknod, &[b"fifo"]),
            (SYMLINK, b"symlink\0target\0", &[b"symlink"]),
            (LINK, &link, &[b"link"]),
            (RENAME, &rename, &[b"link", b"moved"]),
            (UNLINK, b"moved\0", &[b"moved"]),
            (RMDIR, b"dir\0", &[b"dir"]),
        ];
        for (opcode, body, names) in changes {
            interrupted(scene, opcode, 1, body);
            expired(kernel, names);
        }
        // What the server refuses is as it was.
        kernel.ask(RMDIR, 1, b"dir\0");
        assert_eq!(kernel.ended(7).0, Errno::NOENT.raw_os_error());
    });
}
