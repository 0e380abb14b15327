//! Scratch directories on servers: made, worked in, and removed however the work ends.

use client::session::Session;
use load::scratch::Scratch;
use load::study::Subject;
use perf::units::Nanos;

use crate::exit::Failure;
use crate::local;
use crate::signals::Interrupts;
use crate::target::Reached;

/// Makes a scratch directory on a server, works in it, and removes it, however the work ends:
/// done, failed, or interrupted. `plain` is the server without an emulated link.
pub async fn in_scratch<T>(
    plain: &Reached,
    interrupts: &mut Interrupts,
    work: impl AsyncFnOnce(&Scratch) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let held = Held::make(plain, interrupts).await?;
    let outcome = interrupts.or(work(&held.scratch)).await;
    held.clear(plain, REMOVE_LIMIT, outcome).await
}

/// A scratch directory, and the connection that is reserved for its removal.
#[derive(Debug)]
pub struct Held {
    session: Session,
    pub scratch: Scratch,
}

impl Held {
    /// Makes a directory of a name that nobody else has.
    pub async fn make(plain: &Reached, interrupts: &mut Interrupts) -> Result<Self, Failure> {
        let session = tokio::select! {
            biased;
            () = interrupts.next() => return Err(Failure::interrupted()),
            session = plain.connect() => session?,
        };
        // An interrupt must not lose the directory between its making and our knowing of it.
        let tag = local::tag(plain.clock());
        let name = Scratch::name_for(&tag);
        match Scratch::create(&session, &name).await {
            Ok(scratch) => Ok(Self { session, scratch }),
            Err(error) => Err(not_made(plain, &name, error).await),
        }
    }

    /// Removes it within this time. What was to be reported is reported, and what is left behind.
    pub async fn clear<T>(
        self,
        plain: &Reached,
        limit: Nanos,
        outcome: Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Self { session, scratch } = self;
        let removed = plain.clock().within(limit, remove(&session, plain, &scratch)).await;
        match (outcome, removed) {
            (outcome, Ok(Ok(()))) => outcome,
            (Ok(_), Ok(Err(failure))) => Err(failure.and(left_behind(scratch.name()))),
            (Ok(_), Err(elapsed)) => {
                let failure = Failure::environment(elapsed, "the server's log");
                Err(failure.and(left_behind(scratch.name())))
            }
            (Err(failure), _) => Err(failure.and(left_behind(scratch.name()))),
        }
    }
}

/// The failure of a MKDIR. If the server did not say that it failed, it may have succeeded: then
/// the directory is looked for and removed over a new connection.
async fn not_made(plain: &Reached, name: &str, error: client::error::Error) -> Failure {
    let refused = error.status().is_some();
    let failure = Failure::from(error);
    if refused {
        return failure;
    }
    let look = async {
        let session = plain.connect().await?;
        match Scratch::find(&session, name).await? {
            Some(scratch) => scratch.remove(&session).await,
            None => Ok(()),
        }
    };
    match plain.clock().within(REMOVE_LIMIT, look).await {
        Ok(Ok(())) => failure,
        _ => failure.and(left_behind(name)),
    }
}

/// How long a directory of a few files may take to be removed.
pub const REMOVE_LIMIT: Nanos = Nanos::from_secs(20);

/// Over the connection that was reserved, or a new one if that broke.
async fn remove(session: &Session, subject: &Reached, scratch: &Scratch) -> Result<(), Failure> {
    if scratch.remove(session).await.is_ok() {
        return Ok(());
    }
    let session = subject.connect().await?;
    Ok(scratch.remove(&session).await?)
}

fn left_behind(name: &str) -> String {
    format!("the scratch directory {name} could not be removed")
}
