//! A server that is killed under load, and whether it holds what it had promised.
//!
//! ```text
//!   choose.rs --> operation.rs --> worker.rs --calls--> server     kill ... restart
//!                     |               | answers                          |
//!                     '--> tree.rs, content.rs: what must be there <-- look.rs: what is
//!                          the last calls once more --> retransmit.rs: as before?
//! ```
//!
//! What an answer promises is RFC 1813's: WRITEs that are FILE_SYNC or DATA_SYNC, UNSTABLE ones
//! whose COMMIT had the same verifier, and all changes of names and attributes (section 4.8). What
//! was not answered may have been done, or not, or in part.

mod choose;
mod compare;
pub mod content;
mod look;
mod loss;
pub mod object;
pub mod operation;
mod options;
mod retransmit;
mod round;
pub mod tree;
mod worker;

use std::future::Future;
use std::pin::pin;

use client::error::Error as ClientError;
use client::session::Session;
use futures_util::future::join_all;
use net::clock::Clock;
use perf::units::Nanos;
use wire::nfs3::NfsStat3;

pub use self::loss::{Kind, Lost, add};
pub use self::options::{Calls, Options};
pub use self::round::{LOST_MAX, Retransmitted, Round};
use self::worker::Worker;
use crate::scratch::Scratch;

/// A server, and who ends and starts it.
pub trait Site {
    type Trouble: From<ClientError>;

    /// A session over a new connection that is not made again when it breaks.
    fn connect(&self) -> impl Future<Output = Result<Session, ClientError>> + Send;

    /// A session with a server behind this one, which gets everything from it a little later.
    fn behind(&self) -> impl Future<Output = Option<Result<Session, ClientError>>> + Send {
        std::future::ready(None)
    }

    /// Ends the server; it is gone when this is done.
    fn kill(&self) -> impl Future<Output = Result<(), Self::Trouble>> + Send;

    /// Begins to start it.
    fn restart(&self) -> impl Future<Output = Result<(), Self::Trouble>> + Send;

    /// It has not answered in time.
    fn gone(&self, last: Option<ClientError>) -> Self::Trouble;

    /// It has gone on as if nobody had killed it.
    fn alive(&self) -> Self::Trouble;

    /// All its connections have ended so long after the first call, before it was to be killed.
    fn ended(&self, after: Nanos, why: ClientError) -> Self::Trouble;
}

/// Kills a server again and again, in a directory of its own.
#[derive(Debug)]
pub struct Trial<S> {
    clock: Clock,
    site: S,
    options: Options,
    rng: fastrand::Rng,
    scratch: Scratch,
    workers: Vec<Worker>,
    /// The server is being killed, or was, and has not been started again.
    is_down: bool,
    /// It is back, and not all that it had promised has been compared.
    is_unseen: bool,
}

/// How often a server that does not answer is tried.
const TRY_AGAIN: Nanos = Nanos::from_millis(50);
/// How often a server that was killed is looked for, and how long each time.
const KILL_TRIES: u32 = 20;
const ALIVE_LIMIT: Nanos = Nanos::from_secs(1);
/// How often the directory is tried to be removed.
const REMOVE_TRIES: u32 = 3;
/// How often a server behind is looked at again.
const LOOK_AGAIN: Nanos = Nanos::from_millis(200);
/// How long a call may wait while it is looked whether the server is there.
const TRY_LIMIT: Nanos = Nanos::from_secs(5);

impl<S: Site> Trial<S> {
    /// Makes the directory.
    ///
    /// # Errors
    /// The server cannot be reached, or does not let us.
    pub async fn begin(
        clock: &Clock,
        site: S,
        options: Options,
        name: &str,
    ) -> Result<Self, S::Trouble> {
        let session = site.connect().await?;
        let scratch = Scratch::create(&session, name).await?;
        let mut rng = fastrand::Rng::with_seed(options.seed);
        let workers = (0..options.clients).map(|number| Worker::new(number, rng.fork())).collect();
        let clock = clock.clone();
        Ok(Self { clock, site, options, rng, scratch, workers, is_down: false, is_unseen: false })
    }

    /// The directory's name.
    pub fn name(&self) -> &str {
        self.scratch.name()
    }

    /// Whether the last round has ended before everything was compared: what is lost may be in the
    /// directory.
    pub fn is_unseen(&self) -> bool {
        self.is_unseen
    }

    /// Load, a kill, a restart, and a look at everything.
    ///
    /// # Errors
    /// The server was not killed, also where the command says so, or did not come back.
    pub async fn round(&mut self) -> Result<Round, S::Trouble> {
        let mut round = Round::default();
        let dir = self.scratch.dir();
        let mut sessions = Vec::new();
        for worker in &mut self.workers {
            let session = self.site.connect().await?;
            worker.enter(&session, dir).await?;
            sessions.push(session);
        }
        self.kill_under_load(&sessions, &mut round).await?;
        let killed = self.clock.now();
        if self.answers(&sessions).await {
            return Err(self.site.alive());
        }
        self.is_down = false;
        self.site.restart().await?;
        let (session, is_there) = self.back().await?;
        round.outage = self.clock.now().since(killed);
        round.went_on = self.answer(&sessions).await;
        drop(sessions);
        self.is_unseen = true;
        if is_there {
            if self.options.retransmits {
                self.retransmit(&mut round).await?;
            }
            self.look(&session, &mut round).await?;
            self.look_behind(&mut round).await?;
        } else {
            self.begin_anew(&session, &mut round).await?;
        }
        self.is_unseen = false;
        Ok(round)
    }

    /// Works on the server until it is killed.
    async fn kill_under_load(
        &mut self,
        sessions: &[Session],
        round: &mut Round,
    ) -> Result<(), S::Trouble> {
        let (least, most) = self.options.load;
        let span = self.rng.u64(least.as_nanos()..=most.max(least).as_nanos());
        let span = Nanos::from_nanos(span);
        let begun = self.clock.now();
        let options = self.options;
        let working = self.workers.iter_mut().zip(sessions).map(|(worker, session)| {
            let options = &options;
            async move { worker.work(session, options).await }
        });
        let mut broken = pin!(all_broken(working));
        tokio::select! {
            biased;
            why = &mut broken => return Err(self.site.ended(self.clock.now().since(begun), why)),
            () = self.clock.sleep(span) => {}
        }
        round.load = self.clock.now().since(begun);
        self.is_down = true;
        let working = async {
            broken.await;
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = working => {}
            killed = self.site.kill() => killed?,
        }
        Ok(())
    }

    /// Starts the server if a round has ended between its kill and its restart, and waits until it
    /// answers. One that was not killed after all is left alone.
    ///
    /// # Errors
    /// It cannot be started, or does not come back.
    pub async fn revive(&mut self) -> Result<(), S::Trouble> {
        if !std::mem::take(&mut self.is_down) {
            return Ok(());
        }
        if let Ok(Ok(_)) = self.clock.within(ALIVE_LIMIT, self.site.connect()).await {
            return Ok(());
        }
        self.site.restart().await?;
        self.back().await.map(drop)
    }

    /// Whether a connection from before the kill still has answers, which it has of a server that
    /// lives, and of no other; also after a while, since a command may be ahead of what it does.
    /// What is requested is what a proxy has to request of its origin, which may be what was
    /// killed.
    async fn answers(&self, sessions: &[Session]) -> bool {
        for _ in 0..KILL_TRIES {
            if !self.answer(sessions).await {
                return false;
            }
            self.clock.sleep(TRY_AGAIN).await;
        }
        true
    }

    /// Whether any of these connections has an answer now.
    async fn answer(&self, sessions: &[Session]) -> bool {
        let (clock, dir) = (&self.clock, self.scratch.dir());
        let calls = sessions.iter().map(|session| async move {
            let answered = clock.within(ALIVE_LIMIT, session.fsstat(dir)).await;
            answered.is_ok_and(|answered| answered.is_ok())
        });
        join_all(calls).await.contains(&true)
    }

    /// The directory is gone, and with it everything.
    async fn begin_anew(&mut self, session: &Session, round: &mut Round) -> Result<(), S::Trouble> {
        let name = self.scratch.name().to_owned();
        let what = format!("{name} is gone, with all that was in it");
        round.lose(Lost { kind: Kind::Names, what, bytes: 0 });
        for worker in &mut self.workers {
            let (part, lost) = worker.look_without_names(session).await?;
            round.add(part);
            lost.into_iter().for_each(|lost| round.lose(lost));
        }
        self.scratch = Scratch::create(session, &name).await?;
        Ok(())
    }

    /// A session with the server that has come back, and whether it has the directory.
    async fn back(&mut self) -> Result<(Session, bool), S::Trouble> {
        let until = self.clock.now() + self.options.answer_limit;
        let mut last = None;
        let clock = self.clock.clone();
        while clock.now() < until {
            match clock.within(TRY_LIMIT, self.enter()).await {
                Ok(Ok(back)) => return Ok(back),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {}
            }
            clock.sleep(TRY_AGAIN).await;
        }
        Err(self.site.gone(last))
    }

    async fn enter(&mut self) -> Result<(Session, bool), ClientError> {
        let session = self.site.connect().await?;
        match self.scratch.at(&session).await {
            Ok(scratch) => {
                self.scratch = scratch;
                Ok((session, true))
            }
            Err(error) if error.status() == Some(NfsStat3::NoEnt) => Ok((session, false)),
            Err(error) => Err(error),
        }
    }

    /// Each client's last calls once more, each over a connection of its own.
    async fn retransmit(&mut self, round: &mut Round) -> Result<(), S::Trouble> {
        for worker in &mut self.workers {
            let session = self.site.connect().await?;
            let lost = worker.retransmit(&session, &mut round.again).await?;
            lost.into_iter().for_each(|lost| round.lose(lost));
        }
        Ok(())
    }

    /// Compares everything with what was promised.
    async fn look(&mut self, session: &Session, round: &mut Round) -> Result<(), S::Trouble> {
        let dir = self.scratch.dir();
        let looking = self.workers.iter_mut().map(|worker| worker.look(session, dir));
        for looked in join_all(looking).await {
            let (part, lost) = looked?;
            round.add(part);
            lost.into_iter().for_each(|lost| round.lose(lost));
        }
        Ok(())
    }

    /// Compares what the server behind this one has, until that is everything or time is up.
    async fn look_behind(&mut self, round: &mut Round) -> Result<(), S::Trouble> {
        let Some(session) = self.site.behind().await else { return Ok(()) };
        let (session, begun) = (session?, self.clock.now());
        loop {
            let all = self.missing(&session).await?;
            let took = self.clock.now().since(begun);
            if all.iter().all(Vec::is_empty) {
                round.behind = Some(took);
                return Ok(());
            }
            if took >= self.options.behind_limit {
                for (worker, lost) in self.workers.iter_mut().zip(all) {
                    if !lost.is_empty() {
                        worker.tree = None;
                    }
                    lost.into_iter().for_each(|lost| round.lose(lost.of("at the server behind")));
                }
                return Ok(());
            }
            self.clock.sleep(LOOK_AGAIN).await;
        }
    }

    /// What each worker misses at the server behind this one.
    async fn missing(&self, session: &Session) -> Result<Vec<Vec<Lost>>, ClientError> {
        let dir = match self.scratch.at(session).await {
            Ok(scratch) => Some(scratch.dir()),
            Err(error) if error.status() == Some(NfsStat3::NoEnt) => None,
            Err(error) => return Err(error),
        };
        let looking = self.workers.iter().map(|worker| worker.look_behind(session, dir));
        join_all(looking).await.into_iter().collect()
    }

    /// Removes the directory. Calls that were under way when a round was given up may still make
    /// names in it: then again.
    ///
    /// # Errors
    /// As the server says.
    pub async fn end(&self) -> Result<(), S::Trouble> {
        for _ in 1..REMOVE_TRIES {
            if self.remove().await.is_ok() {
                return Ok(());
            }
            self.clock.sleep(TRY_AGAIN).await;
        }
        Ok(self.remove().await?)
    }

    async fn remove(&self) -> Result<(), ClientError> {
        let session = self.site.connect().await?;
        self.scratch.remove(&session).await
    }
}

/// Why a connection broke, once all have. It goes on without an end if a worker stops for another
/// reason.
async fn all_broken<W: Future<Output = Option<ClientError>>>(
    working: impl Iterator<Item = W>,
) -> ClientError {
    let ends: Option<Vec<ClientError>> = join_all(working).await.into_iter().collect();
    match ends.and_then(|all| all.into_iter().next()) {
        Some(why) => why,
        None => std::future::pending().await,
    }
}
