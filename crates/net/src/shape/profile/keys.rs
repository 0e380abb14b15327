//! `KEY=VALUE`: one way to say everything, for the command line and for files.

use std::collections::BTreeMap;

use super::error::{Cause, ProfileError};
use super::names::KEYS;
use super::{Profile, words};
use crate::shape::conditions::{Conditions, Impossible, Outage, OutageKind};

/// Those that are not of a direction.
const OF_THE_ENDPOINT: [&str; 4] = ["o", "o.send", "o.receive", "seed"];

/// A profile that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    profile: Profile,
    /// Keys that were given, each with its line if it has one.
    given: BTreeMap<String, Option<usize>>,
    /// Of the key that is being set.
    pub(super) line: Option<usize>,
}

/// Which directions a key is for.
#[derive(Clone, Copy)]
enum Which {
    Both,
    There,
    Back,
}

impl Reading {
    pub(super) fn new(profile: Profile) -> Self {
        Self { profile, given: BTreeMap::new(), line: None }
    }

    /// Takes `KEY=VALUE`.
    pub(super) fn word(&mut self, word: &str) -> Result<(), ProfileError> {
        let Some((key, value)) = word.split_once('=') else {
            return Err(ProfileError::of(Cause::NoValue { got: word.to_owned() }));
        };
        self.line = None;
        self.set(key.trim(), value.trim())
    }

    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), ProfileError> {
        let (which, bare) = match key.split_once('.') {
            Some(("there", bare)) => (Which::There, bare),
            Some(("back", bare)) => (Which::Back, bare),
            _ => (Which::Both, key),
        };
        if !KEYS.contains(&bare) {
            return Err(ProfileError::of(Cause::UnknownKey { key: key.to_owned() }));
        }
        if OF_THE_ENDPOINT.contains(&bare) && !matches!(which, Which::Both) {
            return Err(ProfileError::of(Cause::OfTheEndpoint { key: bare.to_owned() }));
        }
        let again = self.given.insert(key.to_owned(), self.line);
        if again.is_some() && bare != "partition" && bare != "stall" {
            return Err(ProfileError::of(Cause::Twice { key: key.to_owned() }));
        }
        let set = match which {
            Which::Both => self.set_both(bare, value),
            Which::There => direction(&mut self.profile.there, bare, value),
            Which::Back => direction(&mut self.profile.back, bare, value),
        };
        set.map_err(|why| {
            let (key, got) = (key.to_owned(), value.to_owned());
            ProfileError::of(Cause::Value { key, got, why })
        })
    }

    /// Sets what is of the endpoint, or both directions.
    pub(super) fn set_both(&mut self, key: &str, value: &str) -> Result<(), String> {
        let profile = &mut self.profile;
        match key {
            "o" => {
                profile.overhead.send = words::time(value)?;
                profile.overhead.receive = profile.overhead.send;
            }
            "o.send" => profile.overhead.send = words::time(value)?,
            "o.receive" => profile.overhead.receive = words::time(value)?,
            "seed" => profile.seed = words::number(value, 0, u64::MAX)?,
            _ => {
                direction(&mut profile.there, key, value)?;
                direction(&mut profile.back, key, value)?;
            }
        }
        Ok(())
    }

    /// The profile, if everything in it can be.
    pub(super) fn checked(self) -> Result<Profile, ProfileError> {
        self.check()?;
        Ok(self.profile)
    }

    /// Whether everything in it can be.
    pub(super) fn check(&self) -> Result<(), ProfileError> {
        let profile = &self.profile;
        let there = profile.there.impossible().map(|what| ("there.", what));
        let back = || profile.back.impossible().map(|what| ("back.", what));
        let overhead = || profile.overhead.impossible().map(|what| ("", what));
        match there.or_else(back).or_else(overhead) {
            None => Ok(()),
            Some((place, what)) => Err(self.impossible(place, what)),
        }
    }

    /// Says where it was requested: in the word that was given, which may be for both directions.
    fn impossible(&self, place: &'static str, what: Impossible) -> ProfileError {
        let own = self.given.get(&format!("{place}{}", what.key));
        let both = || self.given.get(what.key);
        let of_both = || self.given.get(what.key.split('.').next().unwrap_or_default());
        let place = if own.is_some() { place } else { "" };
        let line = own.or_else(both).or_else(of_both).copied().flatten();
        let error = ProfileError::of(Cause::Impossible { place, what });
        match line {
            Some(line) => error.at(line),
            None => error,
        }
    }
}

fn direction(conditions: &mut Conditions, key: &str, value: &str) -> Result<(), String> {
    match key {
        "L" => conditions.link.latency = words::time(value)?,
        "g" => conditions.link.gap = words::time(value)?,
        "G" => conditions.link.gap_per_byte_ps = words::gap_per_byte(value)?,
        "loss" => conditions.lost = words::share(value)?,
        "duplicate" => conditions.duplicated = words::share(value)?,
        "reorder" => conditions.reordered = words::reordering(value)?,
        "corrupt" => conditions.corrupted = words::share(value)?,
        "jitter" => conditions.jitter = words::jitter(value)?,
        "queue" => conditions.queue_bytes_max = words::or_none(value, words::size)?,
        "mtu" => {
            let mtu = |value: &str| words::number(value, 0, u64::from(u16::MAX));
            let mtu = words::or_none(value, mtu)?;
            conditions.mtu = mtu.and_then(|mtu| u16::try_from(mtu).ok());
        }
        "partition" => outage(&mut conditions.schedule, OutageKind::Partition, value)?,
        "stall" => outage(&mut conditions.schedule, OutageKind::Stall, value)?,
        _ => return Err("is not of a direction".to_owned()),
    }
    Ok(())
}

/// One more; `none` takes those of its kind away.
fn outage(schedule: &mut Vec<Outage>, kind: OutageKind, value: &str) -> Result<(), String> {
    if value == "none" {
        schedule.retain(|outage| outage.kind != kind);
        return Ok(());
    }
    schedule.push(words::outage(kind, value)?);
    Ok(())
}
