//! The generators of this process: one on the calling thread, or each on a thread of its own.

use std::thread::JoinHandle;

use client::error::Error as ClientError;
use client::mount::{self, Mounted};
use client::session::Session;
use client::url::Target;
use load::curve::subject::{merged, together};
use load::curve::{Built, Shard, Share, Subject};
use load::error::Error;
use load::fileset::Layout;
use load::mix::{Plan, Ran};
use net::clock::Clock;
use tokio::sync::{mpsc, oneshot};
use wire::nfs3::FileHandle;

/// How a generator reaches its server.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) clock: Clock,
    pub(super) target: Target,
    pub(super) options: mount::Options,
    /// Where generators make their files.
    pub(super) dir: FileHandle,
    /// Connections of all generators of this process.
    pub(super) connections: usize,
}

/// See the module's head.
#[derive(Debug)]
pub(super) enum Generators {
    Here(Box<Shard>),
    Threads(Vec<Worker>),
}

/// A generator on a thread of its own, which ends with this value.
#[derive(Debug)]
pub(super) struct Worker {
    commands: Option<mpsc::UnboundedSender<Command>>,
    thread: Option<JoinHandle<()>>,
}

enum Command {
    Check(Layout, oneshot::Sender<Result<(), Error>>),
    Build(Layout, oneshot::Sender<Result<Built, Error>>),
    Run(Box<Plan>, f64, oneshot::Sender<Result<Ran, Error>>),
}

impl Way {
    /// Connections for this part of the generators; `part` is of this process.
    async fn sessions(&self, part: Share) -> Result<Vec<Session>, ClientError> {
        let Mounted { session, ports, .. } =
            mount::mount(&self.clock, &self.target, &self.options).await?;
        let mut sessions = vec![session];
        while sessions.len() < part.of_count(self.connections) {
            let rpc = mount::connect(&self.clock, &ports, &self.options).await?;
            sessions.push(sessions[0].over(rpc));
        }
        Ok(sessions)
    }

    /// The generator `part` of this process, which makes `whole` of the load.
    async fn shard(&self, whole: Share, part: Share) -> Result<Shard, ClientError> {
        let sessions = self.sessions(part).await?;
        Ok(Shard::new(&self.clock, sessions, self.dir, whole.part(part)))
    }
}

impl Generators {
    /// So many threads, which together make `whole` of the load.
    pub(super) async fn start(way: &Way, whole: Share, threads: u32) -> Result<Self, Error> {
        if threads == 1 {
            return Ok(Self::Here(Box::new(way.shard(whole, Share::WHOLE).await?)));
        }
        let mut workers = Vec::new();
        for rank in 0..threads {
            workers.push(Worker::start(way.clone(), whole, Share { rank, ranks: threads }).await?);
        }
        Ok(Self::Threads(workers))
    }
}

impl Subject for Generators {
    async fn check(&mut self, layout: &Layout) -> Result<(), Error> {
        match self {
            Self::Here(shard) => shard.check(layout).await,
            Self::Threads(workers) => match workers.first() {
                Some(first) => first.ask(|answer| Command::Check(*layout, answer)).await,
                None => Ok(()),
            },
        }
    }

    async fn build(&mut self, layout: &Layout) -> Result<Built, Error> {
        match self {
            Self::Here(shard) => shard.build(layout).await,
            Self::Threads(workers) => {
                let answers = workers
                    .iter()
                    .map(|worker| worker.ask(|answer| Command::Build(*layout, answer)));
                together(futures_util::future::join_all(answers).await)
            }
        }
    }

    async fn run(&mut self, plan: &Plan, accessed: f64) -> Result<Ran, Error> {
        match self {
            Self::Here(shard) => shard.run(plan, accessed).await,
            Self::Threads(workers) => {
                let run = |answer| Command::Run(Box::new(*plan), accessed, answer);
                let answers = workers.iter().map(|worker| worker.ask(run));
                merged(futures_util::future::join_all(answers).await)
            }
        }
    }
}

impl Worker {
    async fn start(way: Way, whole: Share, part: Share) -> Result<Self, Error> {
        let (commands, taken) = mpsc::unbounded_channel();
        let (ready, is_ready) = oneshot::channel();
        let work = move || {
            let working = async move {
                match way.shard(whole, part).await {
                    Ok(shard) => {
                        ready.send(Ok(())).ok();
                        obey(shard, taken).await;
                    }
                    Err(error) => {
                        ready.send(Err(Error::from(error))).ok();
                    }
                }
            };
            // Without an event queue nobody is ready, which is seen.
            net::runtime::block_on(working).ok();
        };
        let named = std::thread::Builder::new().name("nfskit-load".to_owned());
        let thread = named.spawn(work).map_err(Error::Timer)?;
        let worker = Self { commands: Some(commands), thread: Some(thread) };
        is_ready.await.map_err(|_| Error::Ended)??;
        Ok(worker)
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        if let Some(commands) = &self.commands {
            commands.send(command(answer)).map_err(|_| Error::Ended)?;
        }
        answered.await.map_err(|_| Error::Ended)?
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Does what is requested, until nobody asks any more: then also what is in progress ends.
async fn obey(mut shard: Shard, mut commands: mpsc::UnboundedReceiver<Command>) {
    while let Some(command) = commands.recv().await {
        let work = async {
            match command {
                Command::Check(layout, answer) => drop(answer.send(shard.check(&layout).await)),
                Command::Build(layout, answer) => drop(answer.send(shard.build(&layout).await)),
                Command::Run(plan, accessed, answer) => {
                    drop(answer.send(shard.run(&plan, accessed).await));
                }
            }
        };
        tokio::select! {
            biased;
            () = work => {}
            // One thing is requested at a time.
            _ = commands.recv() => return,
        }
    }
}
