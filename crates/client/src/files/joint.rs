//! What several request at the same time is requested once: one makes the call, the others wait for
//! what it tells.
//!
//! Programs that work in one tree at the same time (four copies of a test, the jobs of a make) look
//! for the same directories' attributes and names at the same time. Whoever waits uses what is
//! remembered afterwards, by the same rules as if it had come later; where that is not enough, it
//! asks for itself. So nothing gets older by it: attributes are good for some seconds from when
//! their call was sent, and a call under way was sent before.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use parking_lot::Mutex;
use perf::units::Nanos;
use tokio::sync::Notify;
use wire::nfs3::FileHandle;

use super::{Acting, Files, Found};
use crate::error::Error;

/// What is requested.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Question {
    Attributes,
    /// A listing, in place of a LOOKUP.
    Names,
    /// What the local disk has of a directory.
    Cached,
}

/// See the module's head. Bounded by the calls under way.
#[derive(Debug, Default)]
pub(super) struct Joint {
    /// Guards who waits for what.
    under_way: Mutex<HashMap<(Question, FileHandle), Arc<Notify>>>,
}

/// A question that this caller asks; dropped, who waits for its answer goes on.
pub(super) struct Asking<'a> {
    joint: &'a Joint,
    question: (Question, FileHandle),
}

impl Joint {
    /// Whether nobody asks this now, and so the caller does. None: somebody did, and has the answer
    /// or none.
    pub(super) async fn begin(&self, what: Question, of: FileHandle) -> Option<Asking<'_>> {
        let question = (what, of);
        let answered = {
            let mut under_way = self.under_way.lock();
            let Some(answered) = under_way.get(&question) else {
                under_way.insert(question, Arc::default());
                return Some(Asking { joint: self, question });
            };
            Arc::clone(answered)
        };
        self.wait(question, &answered).await;
        None
    }

    /// Whether somebody asks this now.
    pub(super) fn is_under_way(&self, what: Question, of: FileHandle) -> bool {
        self.under_way.lock().contains_key(&(what, of))
    }

    /// Waits while somebody asks this; gives whether anybody did.
    pub(super) async fn answered(&self, what: Question, of: FileHandle) -> bool {
        let question = (what, of);
        let found = self.under_way.lock().get(&question).cloned();
        let Some(answered) = found else { return false };
        self.wait(question, &answered).await;
        true
    }

    async fn wait(&self, question: (Question, FileHandle), answered: &Arc<Notify>) {
        let mut notified = pin!(answered.notified());
        notified.as_mut().enable();
        let is_under_way = {
            let under_way = self.under_way.lock();
            under_way.get(&question).is_some_and(|now| Arc::ptr_eq(now, answered))
        };
        if is_under_way {
            notified.await;
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let answered = self.joint.under_way.lock().remove(&self.question);
        if let Some(answered) = answered {
            answered.notify_waiters();
        }
    }
}

impl Files {
    /// The attributes of a file that are good by the time this returns, from memory or requested.
    pub(super) async fn fresh(&self, acting: &Acting, file: FileHandle) -> Result<Found, Error> {
        if let Some(found) = self.found(&file) {
            return Ok(found);
        }
        let times = &self.inner.options.times;
        if times.reg_min == Nanos::ZERO || times.dir_min == Nanos::ZERO {
            // They are good for nobody but the caller.
            return self.fetch(acting, file).await;
        }
        let asking = self.inner.joint.begin(Question::Attributes, file).await;
        match self.found(&file).filter(|_| asking.is_none()) {
            Some(found) => Ok(found),
            None => self.fetch(acting, file).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use net::clock::world::World;

    use super::*;

    fn handle(number: u8) -> FileHandle {
        FileHandle::new(&[number]).unwrap()
    }

    #[test]
    fn who_asks_the_same_waits_for_the_answer_and_nobody_waits_for_another() {
        let world = World::new();
        let clock = world.clock();
        world
            .run(async move {
                let joint = Arc::new(Joint::default());
                let asking = joint.begin(Question::Names, handle(1)).await;
                assert!(asking.is_some());
                assert!(joint.begin(Question::Names, handle(2)).await.is_some());
                assert!(joint.begin(Question::Cached, handle(1)).await.is_some());
                assert!(!joint.answered(Question::Attributes, handle(1)).await);
                let (waiting, waits, at) = (Arc::clone(&joint), clock.clone(), Arc::default());
                let waited: Arc<Mutex<Vec<_>>> = Arc::clone(&at);
                clock.spawn(async move {
                    assert!(waiting.begin(Question::Names, handle(1)).await.is_none());
                    assert!(!waiting.answered(Question::Names, handle(1)).await);
                    at.lock().push(waits.now());
                });
                clock.sleep(Nanos::from_millis(7)).await;
                assert!(waited.lock().is_empty());
                drop(asking);
                let then = clock.now();
                clock.sleep(Nanos::from_millis(1)).await;
                assert_eq!(*waited.lock(), [then]);
                assert!(
                    joint.begin(Question::Names, handle(1)).await.is_some(),
                    "it is requested again"
                );
            })
            .unwrap();
    }
}
