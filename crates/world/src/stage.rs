//! A world with hosts in it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use net::clock::Clock;
use net::clock::world::{self, Stuck};

use crate::client::{Client, ClientSpec};
use crate::server::{Server, ServerSpec};
use crate::trace::{Digest, Trace};

/// A world: one thread, virtual time, and everything that is left to chance decided by a seed.
#[derive(Debug)]
pub struct World {
    world: world::World,
    stage: Stage,
}

/// Where hosts are made; clones are the same world.
#[derive(Clone, Debug)]
pub struct Stage {
    clock: Clock,
    seed: u64,
    trace: Trace,
    servers: Arc<AtomicU64>,
    clients: Arc<AtomicU64>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let world = world::World::new();
        let stage = Stage {
            clock: world.clock(),
            seed,
            trace: Trace::default(),
            servers: Arc::default(),
            clients: Arc::default(),
        };
        Self { world, stage }
    }

    /// For what happens outside of the run.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Runs what `play` does on the stage, to its end.
    ///
    /// # Errors
    /// [`Stuck`]: nothing can ever happen again, and the end was not reached.
    pub fn run<F, Fut>(&self, play: F) -> Result<Fut::Output, Stuck>
    where
        F: FnOnce(Stage) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        self.world.run(play(self.stage.clone()))
    }

    /// Everything that was sent and received.
    pub fn digest(&self) -> Digest {
        self.stage.trace.digest()
    }

    /// How often tasks were polled: the simulator's work.
    pub fn polls(&self) -> u64 {
        self.world.polls()
    }
}

impl Stage {
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A seed for one of many things, the same in every run.
    pub fn seed_of(&self, what: u64) -> u64 {
        fastrand::Rng::with_seed(self.seed ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..)
    }

    /// A server that runs from now on.
    pub fn server(&self, spec: ServerSpec) -> Server {
        let number = self.servers.fetch_add(1, Ordering::Relaxed) + 1;
        Server::new(u16::try_from(number).unwrap_or(u16::MAX), spec, &self.clock)
    }

    pub fn client(&self, spec: ClientSpec) -> Client {
        let number = self.clients.fetch_add(1, Ordering::Relaxed) + 1;
        let seed = self.seed_of(number);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Client::new(number, seed, spec, &self.clock, &self.trace)
    }

    /// So many of them.
    pub fn clients(&self, count: usize, spec: &ClientSpec) -> Vec<Client> {
        (0..count).map(|_| self.client(spec.clone())).collect()
    }

    /// Everything that was sent and received so far.
    pub fn digest(&self) -> Digest {
        self.trace.digest()
    }
}
