//! Listings of file systems whose own cookies do not last: overlayfs, FUSE and others count
//! entries, so that after a removal a listing that goes on leaves some out.
//!
//! There an entry's cookie is a hash of its name, and entries come in the order of their cookies.
//! What is removed or made meanwhile changes nothing for the others. The price is that the
//! directory is read as a whole for each reply; what is held of it is bounded by [`ENTRIES_MAX`].
//! Two names of one hash in one directory are not to be met: it has 63 bits.

use std::collections::BinaryHeap;

use crate::siphash::siphash;

/// Entries of one reply; a client that has room for more asks again.
const ENTRIES_MAX: usize = 4096;

/// The same in all processes: a listing may go on after a restart.
const KEY: [u8; 16] = [0; 16];

/// An entry, ordered by its cookie.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Named {
    pub(super) cookie: u64,
    pub(super) name: Box<[u8]>,
    pub(super) inode: u64,
}

/// The first entries behind a cookie.
#[derive(Debug)]
pub(super) struct Sorted {
    behind: u64,
    first: BinaryHeap<Named>,
    is_cut: bool,
    max: usize,
}

impl Sorted {
    pub(super) fn behind(cookie: u64) -> Self {
        Self::at_most(ENTRIES_MAX, cookie)
    }

    /// With so many entries, and not those of a reply.
    pub(super) fn at_most(max: usize, cookie: u64) -> Self {
        Self { behind: cookie, first: BinaryHeap::new(), is_cut: false, max }
    }

    pub(super) fn push(&mut self, name: &[u8], inode: u64) {
        // 0 is before all, and the kernel's are of 63 bits as well.
        let cookie = (siphash(&KEY, name) >> 1).max(1);
        let last = self.first.peek().map_or(0, |last| last.cookie);
        let is_full = self.first.len() == self.max;
        if cookie <= self.behind {
            return;
        }
        if is_full {
            self.is_cut = true;
            if cookie >= last {
                return;
            }
            self.first.pop();
        }
        self.first.push(Named { cookie, name: name.into(), inode });
    }

    /// The entries in their order, and whether there are none behind them.
    pub(super) fn finish(self) -> (Vec<Named>, bool) {
        (self.first.into_sorted_vec(), !self.is_cut)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The next reply, with room for `count` entries.
    fn piece(names: &BTreeSet<String>, cookie: u64, count: usize) -> (Vec<Named>, bool) {
        let mut sorted = Sorted::at_most(count, cookie);
        names.iter().for_each(|name| sorted.push(name.as_bytes(), 1));
        sorted.finish()
    }

    #[test]
    fn what_exists_throughout_comes_exactly_once() {
        let mut names: BTreeSet<String> = (0..500).map(|index| format!("keep-{index}")).collect();
        names.extend((0..500).map(|index| format!("gone-{index}")));
        let (mut seen, mut cookie, mut round) = (BTreeSet::new(), 0, 0);
        loop {
            let (entries, is_end) = piece(&names, cookie, 7);
            for entry in entries {
                assert!(entry.cookie > cookie);
                cookie = entry.cookie;
                let name = String::from_utf8(entry.name.to_vec()).unwrap();
                assert!(seen.insert(name.clone()), "twice: {name}");
                // As `rm -r` does.
                if name.starts_with("gone-") {
                    names.remove(&name);
                }
            }
            if is_end {
                break;
            }
            names.insert(format!("new-{round}"));
            round += 1;
        }
        let of = |prefix: &str| seen.iter().filter(|name| name.starts_with(prefix)).count();
        assert_eq!((of("keep-"), of("gone-")), (500, 500));
        assert!(round > 100);
    }

    #[test]
    fn a_reply_takes_no_more_than_its_share_and_tells_whether_it_is_the_last() {
        let names: BTreeSet<String> = (0..10).map(|index| index.to_string()).collect();
        let (all, is_end) = piece(&names, 0, 10);
        assert_eq!((all.len(), is_end), (10, true));
        let (first, is_end) = piece(&names, 0, 9);
        assert_eq!((&first[..], is_end), (&all[..9], false));
        let (rest, is_end) = piece(&names, first[8].cookie, 9);
        assert_eq!((&rest[..], is_end), (&all[9..], true));
    }
}
