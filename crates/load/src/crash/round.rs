//! What a kill has shown.

use std::collections::BTreeMap;

use perf::units::Nanos;

use super::loss::{Kind, Lost, add};

/// What one kill has shown.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// From the first call to the kill.
    pub load: Nanos,
    /// From the end of the kill to the first answer.
    pub outage: Nanos,
    /// A connection from before the kill had an answer after the restart: the server was stopped
    /// and not killed, or it was one behind a proxy.
    pub went_on: bool,
    /// From there until the server behind it was seen to have everything, if there is one.
    pub behind: Option<Nanos>,
    /// Calls that were answered with success, by procedure.
    pub answered: BTreeMap<&'static str, u64>,
    /// Calls that were not answered.
    pub open: u64,
    /// Calls that were refused, and the first of them.
    pub refused: u64,
    pub refusal: Option<String>,
    /// What became of calls that were retransmitted.
    pub again: Retransmitted,
    /// Files and bytes that were read afterwards.
    pub files: u64,
    pub bytes: u64,
    /// Files that should have been, and of which neither a name nor the handle was good.
    pub files_gone: u64,
    pub lost: Vec<Lost>,
    /// Found beyond [`LOST_MAX`]: how many, and with how many bytes.
    pub more: BTreeMap<Kind, (u64, u64)>,
}

/// Calls that were retransmitted after a restart.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Retransmitted {
    /// Had been answered.
    pub answered: u64,
    /// Had not been, and were done now.
    pub done: u64,
    /// Had not been, and the server knew that it had done them.
    pub known: u64,
    /// Had not been, were done, and the server did not know that.
    pub unknown: u64,
}

/// Losses of a round that are listed one by one.
pub const LOST_MAX: usize = 1000;

impl Round {
    pub fn calls(&self) -> u64 {
        self.answered.values().sum()
    }

    /// How often each kind was lost, and how many bytes.
    pub fn losses(&self) -> BTreeMap<Kind, (u64, u64)> {
        let mut all = self.more.clone();
        self.lost.iter().for_each(|lost| add(&mut all, lost.kind, (1, lost.bytes)));
        all
    }

    pub(super) fn lose(&mut self, lost: Lost) {
        match self.lost.len() < LOST_MAX {
            true => self.lost.push(lost),
            false => add(&mut self.more, lost.kind, (1, lost.bytes)),
        }
    }
}

impl Round {
    /// What another worker has done.
    pub(super) fn add(&mut self, part: Self) {
        for (procedure, count) in part.answered {
            *self.answered.entry(procedure).or_default() += count;
        }
        self.open += part.open;
        self.refused += part.refused;
        self.refusal = self.refusal.take().or(part.refusal);
        self.files += part.files;
        self.bytes += part.bytes;
        self.files_gone += part.files_gone;
        part.more.into_iter().for_each(|(kind, more)| add(&mut self.more, kind, more));
        part.lost.into_iter().for_each(|lost| self.lose(lost));
    }
}
