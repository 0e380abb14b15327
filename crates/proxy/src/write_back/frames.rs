//! The log is written, one frame after the other: changes as clients make them, and the notes
//! ([`super::state::notes`]) that they have come to the origin.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use log::journal::Begin;
use net::clock::yield_now;
use perf::units::Nanos;
use server::store::Store;

use super::Inner;
use super::events::Event;
use super::state::State;

/// When rows are synced again that could not be.
const SYNC_AGAIN: Nanos = Nanos::from_secs(1);

impl<S: Store> Inner<S> {
    /// Somebody waits for notes.
    pub(super) fn hurry(&self, state: &mut State) {
        state.notes.is_hurried = true;
        self.to_send.notify_one();
        self.to_write.notify_one();
        self.hurried.notify_one();
    }

    /// Writes the log, one frame after the other; who comes meanwhile shares the next.
    pub(super) async fn write_frames(self: Arc<Self>) {
        let mut buffer = Vec::new();
        loop {
            let (begun, wait) = {
                let mut state = self.state.lock();
                state.carry_forward(self.options.again_above);
                let now = self.now();
                let notes = state.notes_wait(self.options.note_within, now);
                let sign = state.sign_wait(now);
                let is_due = sign == Some(Nanos::ZERO);
                let begun = match notes.is_some() && state.journal.is_waiting() && !is_due {
                    true => Begin::Idle,
                    false => {
                        state.sign(now, is_due);
                        state.journal.begin(0, &mut buffer)
                    }
                };
                (begun, notes.into_iter().chain(sign).min())
            };
            let (waiters, written) = match begun {
                Begin::Idle => {
                    let woken = self.to_write.notified();
                    match wait {
                        Some(wait) => drop(self.clock.within(wait, woken).await),
                        None => woken.await,
                    }
                    // Those who are ready to run come into the same frame.
                    yield_now().await;
                    continue;
                }
                Begin::Write { at, frame } => {
                    let (back, written) = self.device.write(at, std::mem::take(&mut buffer)).await;
                    buffer = back;
                    (self.state.lock().journal.finish(frame, written.is_ok()), written)
                }
                Begin::Stuck => {
                    let why = io::Error::other("it has no room for what has to be in it");
                    (self.state.lock().journal.fail(), Err(why))
                }
            };
            if let Err(cause) = &written {
                (self.options.hear)(&Event::LogFailed { why: cause.to_string() }).ok();
            }
            self.state.lock().logged(waiters, written.is_ok());
            self.to_send.notify_one();
            self.changed.notify_waiters();
        }
    }

    /// What was made is forgotten by the log when what it is called survives power loss elsewhere:
    /// of all that was made within a while at once, since each sync holds up the log's.
    pub(super) async fn forget(self: Arc<Self>) {
        loop {
            self.to_forget.notified().await;
            let made = std::mem::take(&mut self.state.lock().notes.made);
            if made.is_empty() {
                continue;
            }
            loop {
                let is_stable = match self.aliases.unsynced() {
                    Ok(files) if files.is_empty() => true,
                    Ok(files) => self.device.sync(files).await,
                    Err(_) => false,
                };
                if is_stable {
                    break;
                }
                self.clock.sleep(SYNC_AGAIN).await;
            }
            {
                let (now, mut state) = (self.now(), self.state.lock());
                made.into_iter().for_each(|(number, outcome)| state.forget(number, outcome, now));
            }
            self.to_write.notify_one();
            // What follows may be due, if nothing is noted any more.
            self.to_send.notify_one();
            let hurried = pin!(self.hurried.notified());
            self.clock.within(self.options.note_within, hurried).await.ok();
        }
    }

    /// When the log has noted of all that is at the origin that it is there.
    pub(super) async fn noted_all(&self) {
        let noted = |state: &mut State| match state.order.is_empty() {
            true => Some(()),
            false => {
                self.hurry(state);
                None
            }
        };
        while self.until(noted).await.is_err() {}
    }
}
