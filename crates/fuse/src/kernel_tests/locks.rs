//! Locks of programs.

use super::*;

/// What a lock asks for: F_WRLCK or F_UNLCK, of the whole file.
fn whole(open: u64, owner: u64, kind: u32, is_flock: bool) -> Vec<u8> {
    let rest = [kind, 4711, u32::from(is_flock), 0].into_iter().flat_map(u32::to_ne_bytes);
    parts(&[open, owner, 0, i64::MAX as u64]).into_iter().chain(rest).collect()
}

const EXCLUSIVE: u32 = 1;
const UNLOCK: u32 = 2;

#[test]
fn a_lock_is_granted_once_though_another_client_has_changed_the_file_between_two_opens() {
    for is_flock in [false, true] {
        served(1 << 20, move |kernel, scene| {
            let [first, second] = twice(kernel, scene);
            let lock = |unique, opcode, (node, open): (u64, u64), owner, kind| {
                kernel.ask_as(unique, opcode, node, &whole(open, owner, kind, is_flock));
            };
            lock(7, SETLK, first, 100, EXCLUSIVE);
            assert_eq!(kernel.ended(7).0, 0);
            lock(7, SETLK, second, 200, EXCLUSIVE);
            assert_eq!(kernel.ended(7).0, Errno::AGAIN.raw_os_error());
            if !is_flock {
                lock(7, GETLK, second, 200, EXCLUSIVE);
                let (_, held) = kernel.ended(7);
                assert_eq!(held[16..24], [1, 0, 0, 0, 0x67, 0x12, 0, 0], "and who has it");
            }
            // Who waits has it when it is given up.
            lock(8, SETLKW, second, 200, EXCLUSIVE);
            lock(7, SETLK, first, 100, UNLOCK);
            let mut ended: Vec<(u64, i32)> = Vec::new();
            while ended.len() < 2 {
                let (of, code, _) = kernel.hear();
                ended.extend((of != 0).then_some((of, code)));
            }
            ended.sort_unstable();
            assert_eq!(ended, [(7, 0), (8, 0)]);
            // And gives it up by closing the file.
            match is_flock {
                true => kernel.ask(RELEASE, second.0, &parts(&[second.1, 0, 0])),
                false => kernel.ask(FLUSH, second.0, &parts(&[second.1, 0, 200])),
            }
            assert_eq!(kernel.ended(7).0, 0);
            lock(7, SETLK, first, 100, EXCLUSIVE);
            assert_eq!(kernel.ended(7).0, 0);
        });
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_lock_and_takes_nothing() {
    served(1 << 20, |kernel, _| {
        let (node, open) = kernel.create();
        let lock = |unique, opcode, owner, kind| {
            kernel.ask_as(unique, opcode, node, &whole(open, owner, kind, false));
        };
        lock(7, SETLK, 100, EXCLUSIVE);
        assert_eq!(kernel.ended(7).0, 0);
        lock(8, SETLKW, 200, EXCLUSIVE);
        kernel.ask_as(9, INTERRUPT, 0, &parts(&[8]));
        assert_eq!(kernel.ended(8).0, Errno::INTR.raw_os_error());
        lock(7, SETLK, 100, UNLOCK);
        assert_eq!(kernel.ended(7).0, 0);
        lock(7, SETLK, 300, EXCLUSIVE);
        assert_eq!(kernel.ended(7).0, 0, "nobody has it");
    });
}

/// Two programs that count in a file by turns: each reads, adds, writes, under a lock.
#[test]
fn what_was_written_under_a_lock_is_seen_under_the_next_by_whatever_node() {
    served(1 << 20, |kernel, scene| {
        let nodes = twice(kernel, scene);
        for (turn, (node, open)) in nodes.into_iter().enumerate() {
            let lock = |kind| kernel.ask(SETLK, node, &whole(open, open, kind, false));
            // The kernel drops what it has of the node, and writes it back when it is given up.
            for kind in [EXCLUSIVE, UNLOCK] {
                lock(kind);
                let (code, notified) = kernel.notice();
                assert_eq!(
                    (code, u64_at(&notified, 0), u64_at(&notified, 8)),
                    (INVAL, node, 0),
                    "{turn}"
                );
                assert_eq!(kernel.ended(7).0, 0);
            }
        }
    });
}
