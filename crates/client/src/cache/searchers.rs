//! On whose behalf the names of a directory were requested. Whom the server has answered may search
//! the directory; whether others may, only the server knows: its lists of rights (ACLs) and its own
//! view of users (`root_squash`) show in no mode.
//!
//! So a caller that alone has requested all that is known of a directory gets that from memory, as
//! long as nobody else comes; where there are several, each needs a right of its own
//! ([`super::rights`]).

use lru::LruCache;
use wire::nfs3::FileHandle;

use super::attributes::at_least_one;
use super::rights::CallerId;

/// See the module's head.
#[derive(Debug)]
pub struct Searchers {
    dirs: LruCache<FileHandle, Who>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Who {
    Alone(CallerId),
    Several { one_is_refused: bool },
}

impl Searchers {
    pub fn new(max: usize) -> Self {
        Self { dirs: LruCache::new(at_least_one(max)) }
    }

    /// The server has answered a caller for a name of a directory.
    pub fn requested(&mut self, dir: &FileHandle, caller: CallerId) {
        let who = self.dirs.get_or_insert_mut(*dir, || Who::Alone(caller));
        if matches!(who, Who::Alone(other) if *other != caller) {
            *who = Who::Several { one_is_refused: false };
        }
    }

    /// Whether all that is known of a directory was requested by this caller. None: it is not known
    /// by whom.
    pub fn is_alone(&mut self, dir: &FileHandle, caller: CallerId) -> Option<bool> {
        self.dirs.get(dir).map(|who| *who == Who::Alone(caller))
    }

    /// A caller may not search a directory of which others have names.
    pub fn refused(&mut self, dir: &FileHandle) {
        self.dirs.put(*dir, Who::Several { one_is_refused: true });
    }

    /// Whether there is such a caller.
    pub fn refuses(&self, dir: &FileHandle) -> bool {
        self.dirs.peek(dir) == Some(&Who::Several { one_is_refused: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_requested_all_alone_needs_no_right_until_another_comes() {
        let [dir, other] = [0, 1].map(|number| FileHandle::new(&[number]).unwrap());
        let [one, two] = [1, 2].map(CallerId);
        let mut searchers = Searchers::new(10);
        let alone =
            |searchers: &mut Searchers| [one, two].map(|caller| searchers.is_alone(&dir, caller));
        assert_eq!(alone(&mut searchers), [None; 2]);
        searchers.requested(&dir, one);
        searchers.requested(&dir, one);
        assert_eq!(alone(&mut searchers), [Some(true), Some(false)]);
        searchers.requested(&dir, two);
        searchers.requested(&dir, one);
        assert_eq!(alone(&mut searchers), [Some(false); 2]);
        assert!(!searchers.refuses(&dir));
        searchers.refused(&dir);
        searchers.requested(&dir, one);
        assert!(searchers.refuses(&dir) && !searchers.refuses(&other));
    }

    #[test]
    fn of_what_is_forgotten_nobody_knows_who_has_called() {
        let mut searchers = Searchers::new(1);
        let [dir, other] = [0, 1].map(|number| FileHandle::new(&[number]).unwrap());
        searchers.requested(&dir, CallerId(1));
        searchers.requested(&other, CallerId(1));
        let alone = [dir, other].map(|dir| searchers.is_alone(&dir, CallerId(1)));
        assert_eq!(alone, [None, Some(true)]);
    }
}
