//! The last calls of each client once more, with their XIDs, as a client makes them that has seen
//! its connection break.
//!
//! A server whose replies outlive the restart answers what it has answered as it has, whatever was
//! done since: to execute a REMOVE again removes what has the name now. What was not answered is
//! done when it is answered now, whether before the restart or after it. A server may have done it
//! and not know that, as long as it has promised to nobody that it was done: such calls are
//! counted. An answered call whose names one of them was to change is not made again: it may hide
//! what was answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use client::error::Error as ClientError;
use client::session::Session;
use wire::nfs3::{Fattr3, FileHandle};

use super::look::found;
use super::loss::{Kind, Lost};
use super::operation::{Key, Number, Operation};
use super::round::Retransmitted;
use super::tree::{Answer, Ticket, Tree};
use super::worker::{Worker, perform};

/// Of each client, calls that were answered: a guess at what may be on its way back to a client.
const ANSWERED_MAX: usize = 8;

/// A call, as it was sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) ticket: Ticket,
    pub(super) handles: (FileHandle, FileHandle),
    /// None: it has not been sent yet.
    xid: Arc<OnceLock<u32>>,
    answer: Option<Answer>,
}

impl Sent {
    pub(super) fn new(ticket: Ticket, handles: (FileHandle, FileHandle)) -> Self {
        Self { ticket, handles, xid: Arc::default(), answer: None }
    }

    /// It is sent now.
    pub(super) fn has_xid(&self, xid: u32) {
        self.xid.get_or_init(|| xid);
    }
}

/// Those under way, and the last that were answered.
#[derive(Debug, Default)]
pub(super) struct Sents(VecDeque<Sent>);

impl Sents {
    /// A call is about to be sent. WRITEs are not recorded: the replies to some need not outlive a
    /// restart (docs/semantics.md), and neither does what they would be held to.
    pub(super) fn push(&mut self, sent: Sent) {
        use Operation::{Commit, Read, Write};
        if !matches!(sent.ticket.operation, Write { .. } | Commit { .. } | Read { .. }) {
            self.0.push_back(sent);
        }
    }

    pub(super) fn answered(&mut self, ticket: &Ticket, answer: Answer) {
        if let Some(sent) = self.0.iter_mut().find(|sent| sent.ticket.number == ticket.number) {
            sent.answer = Some(answer);
        }
        let is_answered = |sent: &Sent| sent.answer.is_some();
        if self.0.iter().filter(|sent| is_answered(sent)).count() > ANSWERED_MAX
            && let Some(oldest) = self.0.iter().position(is_answered)
        {
            self.0.remove(oldest);
        }
    }

    /// An error is an answer that nobody need keep.
    pub(super) fn refused(&mut self, ticket: &Ticket) {
        self.0.retain(|sent| sent.ticket.number != ticket.number);
    }
}

impl Worker {
    /// Makes the last calls once more; gives what was answered otherwise. Before anything is
    /// compared, which so sees whether one of them was executed again.
    pub(super) async fn retransmit(
        &mut self,
        session: &Session,
        again: &mut Retransmitted,
    ) -> Result<Vec<Lost>, ClientError> {
        // Who gets JUKEBOX and calls later would do so with another XID.
        let session = &session.clone().impatient();
        let sent = std::mem::take(&mut self.sent).0;
        let Some(tree) = &mut self.tree else { return Ok(Vec::new()) };
        let (answered, open): (Vec<_>, Vec<_>) =
            sent.into_iter().partition(|sent| sent.answer.is_some());
        let mut wrong = Vec::new();
        for sent in answered.iter().filter(|sent| !sent.is_hidden_by(&open)) {
            again.answered += 1;
            wrong.extend(sent.is_answered_otherwise(session).await?);
        }
        for sent in &open {
            wrong.extend(sent.finish(session, tree, again).await?);
        }
        let name = self.name();
        let lost = wrong.into_iter();
        Ok(lost.map(|what| Lost { kind: Kind::Replies, what, bytes: 0 }.of(&name)).collect())
    }
}

impl Sent {
    /// Whether what the call did may have been changed by one of these.
    fn is_hidden_by(&self, open: &[Self]) -> bool {
        let changed = |key: Key| {
            open.iter().any(|sent| sent.ticket.operation.keys().any(|other| other == key))
        };
        self.ticket.operation.keys().any(changed)
    }

    /// The same call. None: it had not been sent.
    async fn call(&self, session: &Session) -> Option<Result<Answer, ClientError>> {
        session.rpc().go_on_from_xid(*self.xid.get()?);
        Some(perform(session, &self.ticket.operation, self.handles).await)
    }

    /// What is wrong with the reply to a call that had been answered.
    async fn is_answered_otherwise(
        &self,
        session: &Session,
    ) -> Result<Option<String>, ClientError> {
        let what = || format!("a retransmitted {:?} had been answered", self.ticket.operation);
        match self.call(session).await {
            Some(Ok(answer)) if Some(answer) == self.answer => Ok(None),
            Some(Ok(answer)) => {
                Ok(Some(format!("{} {:?}, and is now {answer:?}", what(), self.answer)))
            }
            Some(Err(error)) if error.status().is_some() => {
                Ok(Some(format!("{}, and is refused: {error}", what())))
            }
            Some(Err(error)) => Err(error),
            None => Ok(None),
        }
    }

    /// Makes a call that had not been answered; what is wrong with what has come of it.
    async fn finish(
        &self,
        session: &Session,
        tree: &mut Tree,
        again: &mut Retransmitted,
    ) -> Result<Option<String>, ClientError> {
        let number = self.ticket.number;
        let seen = self.seen(session, tree).await?;
        // Of attributes it cannot be seen whether they were set by this call.
        let Some((was_undone, was_done)) = tree.shows(number, &seen) else { return Ok(None) };
        let Some(replied) = self.call(session).await else { return Ok(None) };
        let what = || format!("a retransmitted {:?}", self.ticket.operation);
        match replied {
            Ok(answer) => {
                let seen = self.seen(session, tree).await?;
                if !tree.shows(number, &seen).is_some_and(|(_, is_done)| is_done) {
                    return Ok(Some(format!("{} is answered, and not done", what())));
                }
                let count = if was_undone { &mut again.done } else { &mut again.known };
                *count += 1;
                tree.answered(&self.ticket, answer);
                Ok(None)
            }
            Err(error) if error.status().is_none() => Err(error),
            Err(error) if !was_done => {
                Ok(Some(format!("{} is refused, and was not done: {error}", what())))
            }
            Err(_) => {
                again.unknown += 1;
                Ok(None)
            }
        }
    }

    /// What the call's names lead to.
    async fn seen(
        &self,
        session: &Session,
        tree: &Tree,
    ) -> Result<BTreeMap<Number, BTreeMap<String, Fattr3>>, ClientError> {
        let mut seen: BTreeMap<Number, BTreeMap<String, Fattr3>> = BTreeMap::new();
        for key in self.ticket.operation.keys() {
            let Some(dir) = tree.object(key.dir).and_then(|dir| dir.handle) else { continue };
            match found(session, dir, &key.text()).await {
                Ok(Some(found)) => {
                    seen.entry(key.dir).or_default().insert(key.text(), found.attributes);
                }
                Ok(None) => {}
                // What is wrong with the directory is seen when all are compared.
                Err(error) if error.status().is_some() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(operation: Operation) -> Sent {
        let handle = FileHandle::new(&[1]).unwrap();
        Sent::new(Ticket { number: 1, operation }, (handle, handle))
    }

    #[test]
    fn what_a_call_that_was_cut_off_may_have_changed_is_not_held_against_the_server() {
        let key = |name| Key { dir: 0, name };
        let made = sent(Operation::Link { file: 1, name: key(1) });
        let over = sent(Operation::Rename { from: key(2), to: key(1) });
        let other = sent(Operation::Remove { name: key(2) });
        assert!(made.is_hidden_by(&[other.clone(), over.clone()]) && other.is_hidden_by(&[over]));
        assert!(!made.is_hidden_by(&[other]) && !made.is_hidden_by(&[]));
    }
}
