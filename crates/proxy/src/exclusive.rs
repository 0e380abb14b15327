//! CREATE where nothing may have the name yet (GUARDED, EXCLUSIVE), before an origin of version 2.
//! Its CREATE takes what is there, so that a LOOKUP goes before it. No other client of this proxy
//! comes between the two; one of the origin itself, or of another proxy, may.
//!
//! An exclusive CREATE that comes again, as another call, is recognized by its verifier.

use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use server::store::{Changed, Node};
use server::types::{Caller, CreateHow, Handle, Status};

use crate::remote::Remote;

/// Names are locked by their hash: those of one hash wait for one another.
const LOCKS: usize = 256;

/// Exclusive CREATEs that are recognized when they come again; the oldest goes.
const MADE_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not zero");

/// Which verifier made what under a name of a directory.
type Made = LruCache<(Handle, Box<[u8]>), ([u8; 8], Handle)>;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Exclusive {
    /// Each guards the names of one hash while one of them is looked up and made.
    locks: Box<[tokio::sync::Mutex<()>]>,
    /// Guards the last that were made; held for looks.
    made: Mutex<Made>,
}

impl Default for Exclusive {
    fn default() -> Self {
        let locks = (0..LOCKS).map(|_| tokio::sync::Mutex::new(())).collect();
        Self { locks, made: Mutex::new(LruCache::new(MADE_MAX)) }
    }
}

impl Exclusive {
    fn lock_of(&self, dir: &Handle, name: &[u8]) -> &tokio::sync::Mutex<()> {
        let hash = |hash: usize, byte: &u8| hash.wrapping_mul(31).wrapping_add(usize::from(*byte));
        &self.locks[dir.as_bytes().iter().chain(name).fold(0, hash) % LOCKS]
    }

    fn note(&self, dir: &Handle, name: &[u8], made: ([u8; 8], Handle)) {
        self.made.lock().put((*dir, name.into()), made);
    }

    /// What this verifier has made.
    fn made(&self, dir: &Handle, name: &[u8], verifier: [u8; 8]) -> Option<Handle> {
        let mut made = self.made.lock();
        let (by, file) = made.get(&(*dir, name.into()))?;
        (*by == verifier).then_some(*file)
    }
}

impl Remote {
    /// A CREATE that no other client of this proxy comes into.
    pub(crate) async fn create_alone(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        let _alone = self.exclusive.lock_of(dir, name).lock().await;
        let Changed { wcc, result } = self.create_file(caller, dir, name, how).await;
        let CreateHow::Exclusive(verifier) = how else { return Changed { wcc, result } };
        let result = match result {
            Ok(made) => {
                self.exclusive.note(dir, name, (verifier, made.handle));
                Ok(made)
            }
            Err(Status::Exists) => self.made_before(caller, dir, name, verifier).await,
            Err(status) => Err(status),
        };
        Changed { wcc, result }
    }

    /// What has the name, if that was made by this verifier.
    async fn made_before(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        verifier: [u8; 8],
    ) -> Result<Node, Status> {
        let made = self.exclusive.made(dir, name, verifier).ok_or(Status::Exists)?;
        let found = self.look_up(caller, dir, name).await.result?;
        if found.handle == made { Ok(found) } else { Err(Status::Exists) }
    }
}
