//! Whose turn it is. A call that passes to the origin waits until nothing of its files and names is
//! on its way, and a change waits while the origin has such a call. They keep the order in which
//! they came: what is changed without pause would never be free for a call that passes. Pure.
//!
//! Who has a place waits only for those with older ones, and for what is on its way by itself, so
//! that nobody waits in a circle. So nobody who has a place may take another one.
//!
//! Behind a call that passes and waits for what is in trouble, or for another such call, no change
//! waits.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use server::types::Handle;

use super::order::{How, Thing};
use super::touches::{Place, named};

/// Callers who have a place. More wait behind all of those, in any order.
const PLACES_MAX: usize = 1024;

/// Who wants what.
#[derive(Debug)]
pub(crate) struct Claim {
    /// It is for the origin: others that use the same are before it or behind it. Changes among
    /// themselves have their order by the log.
    pub(crate) passes: bool,
    uses: Vec<(Thing, How)>,
    /// Its place, if it has to wait.
    place: Option<u64>,
}

impl Claim {
    pub(crate) fn new(passes: bool) -> Self {
        Self { passes, uses: Vec::new(), place: None }
    }

    pub(crate) fn has_place(&self) -> bool {
        self.place.is_some()
    }
}

/// What a call uses: these names and files alone, and the directories of names as they are.
fn uses(places: &[Place<'_>], files: &[Handle]) -> Vec<(Thing, How)> {
    let names = places.iter().flat_map(|(dir, name)| {
        [(named(dir, name), How::Alone), (Thing::File(**dir), How::Shared)]
    });
    names.chain(files.iter().map(|file| (Thing::File(*file), How::Alone))).collect()
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    next: u64,
    places: usize,
    /// Who waits for a thing: how it is used, and whether by a call that passes.
    lines: HashMap<Thing, BTreeMap<u64, (How, bool)>>,
    /// Places of calls that pass and may wait for long.
    held_up: BTreeSet<u64>,
}

impl Turns {
    /// A caller wants this now; its place stays.
    pub(crate) fn want(&mut self, claim: &mut Claim, places: &[Place<'_>], files: &[Handle]) {
        self.leave(claim);
        claim.uses = uses(places, files);
        self.enter(claim);
    }

    /// A caller has to wait, behind all who do.
    pub(crate) fn wait(&mut self, claim: &mut Claim) {
        if claim.place.is_none() && self.places < PLACES_MAX {
            claim.place = Some(self.next);
            (self.next, self.places) = (self.next + 1, self.places + 1);
            self.enter(claim);
        }
    }

    /// Whether nobody who waits came before, but for who may wait for long.
    pub(crate) fn is_next(&self, claim: &Claim) -> bool {
        let is_passed_by = |place| !claim.passes && self.held_up.contains(&place);
        self.before(claim).all(is_passed_by)
    }

    /// Those before a caller that are not to be overtaken.
    fn before(&self, claim: &Claim) -> impl Iterator<Item = u64> {
        let place = claim.place.unwrap_or(u64::MAX);
        claim.uses.iter().flat_map(move |(thing, how)| {
            let before =
                self.lines.get(thing).into_iter().flat_map(move |line| line.range(..place));
            let waits = move |(other, passes): &(How, bool)| {
                (claim.passes || *passes) && !how.goes_with(*other)
            };
            before.filter(move |(_, turn)| waits(turn)).map(|(place, _)| *place)
        })
    }

    /// Looks whether a call that passes waits for what is stuck; whether that is news.
    pub(crate) fn hold_up(
        &mut self,
        claim: &Claim,
        is_stuck: impl Fn(&Thing, How) -> bool,
    ) -> bool {
        let Some(place) = claim.place else { return false };
        let is_held_up = claim.uses.iter().any(|(thing, how)| is_stuck(thing, *how))
            || self.before(claim).any(|other| self.held_up.contains(&other));
        match is_held_up {
            true => self.held_up.insert(place),
            false => self.held_up.remove(&place),
        }
    }

    /// A caller waits no more.
    pub(crate) fn end(&mut self, claim: &mut Claim) {
        self.leave(claim);
        if let Some(place) = claim.place.take() {
            self.held_up.remove(&place);
            self.places -= 1;
        }
    }

    fn enter(&mut self, claim: &Claim) {
        let Some(place) = claim.place else { return };
        for (thing, how) in &claim.uses {
            let line = self.lines.entry(thing.clone()).or_default();
            // What it has alone and shares, it has alone.
            let (turn, _) = line.entry(place).or_insert((*how, claim.passes));
            if *how == How::Alone {
                *turn = How::Alone;
            }
        }
    }

    fn leave(&mut self, claim: &Claim) {
        let Some(place) = claim.place else { return };
        for (thing, _) in &claim.uses {
            let Some(line) = self.lines.get_mut(thing) else { continue };
            line.remove(&place);
            if line.is_empty() {
                self.lines.remove(thing);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u8) -> Handle {
        Handle::new(&[number]).unwrap()
    }

    /// A caller who wants these files, and has to wait.
    fn waiting(turns: &mut Turns, passes: bool, files: &[u8]) -> Claim {
        let mut claim = Claim::new(passes);
        let files: Vec<_> = files.iter().map(|number| file(*number)).collect();
        turns.want(&mut claim, &[], &files);
        turns.wait(&mut claim);
        claim
    }

    #[test]
    fn a_call_that_passes_waits_for_all_before_it_and_all_behind_it_wait_for_it() {
        let mut turns = Turns::default();
        let mut before = waiting(&mut turns, false, &[1]);
        let mut passing = waiting(&mut turns, true, &[1, 2]);
        let behind = [waiting(&mut turns, false, &[2]), waiting(&mut turns, true, &[2, 3])];
        let other = waiting(&mut turns, true, &[4]);
        assert!(turns.is_next(&before) && turns.is_next(&other));
        assert!(!turns.is_next(&passing));
        turns.end(&mut before);
        assert!(turns.is_next(&passing));
        assert!(behind.iter().all(|claim| !turns.is_next(claim)));
        // It wants another file, and has its place still.
        turns.want(&mut passing, &[], &[file(2), file(4)]);
        assert!(turns.is_next(&passing) && !turns.is_next(&other));
        turns.end(&mut passing);
        assert!(turns.is_next(&behind[0]) && !turns.is_next(&behind[1]));
    }

    #[test]
    fn what_changes_names_waits_for_who_passes_with_the_directory_and_not_for_other_names() {
        let mut turns = Turns::default();
        let mut named = |name: &[u8], passes| {
            let mut claim = Claim::new(passes);
            turns.want(&mut claim, &[(&file(1), name)], &[]);
            turns.wait(&mut claim);
            claim
        };
        let [link, other, same] =
            [(b"link", true), (b"name", false), (b"link", false)].map(|(n, p)| named(n, p));
        assert!(turns.is_next(&link) && turns.is_next(&other) && !turns.is_next(&same));
        let mut dir = Claim::new(false);
        turns.want(&mut dir, &[], &[file(1)]);
        assert!(!turns.is_next(&dir), "LINK needs it as it is");
    }

    #[test]
    fn no_change_waits_behind_who_waits_for_what_is_stuck() {
        let mut turns = Turns::default();
        let mut first = waiting(&mut turns, true, &[1, 2]);
        let second = waiting(&mut turns, true, &[2, 3]);
        let change = waiting(&mut turns, false, &[3]);
        let is_stuck = |thing: &Thing, _| *thing == Thing::File(file(1));
        assert!(!turns.is_next(&change));
        assert!(turns.hold_up(&first, is_stuck) && !turns.hold_up(&first, is_stuck));
        assert!(turns.hold_up(&second, is_stuck), "it waits for the first");
        assert!(turns.is_next(&change) && !turns.is_next(&second));
        turns.end(&mut first);
        assert!(turns.hold_up(&second, is_stuck));
        assert!(!turns.is_next(&change));
    }

    #[test]
    fn who_has_no_place_waits_behind_those_who_have_one() {
        let mut turns = Turns::default();
        let mut all: Vec<_> = (0..PLACES_MAX).map(|_| waiting(&mut turns, true, &[1])).collect();
        let late = waiting(&mut turns, false, &[1]);
        assert!(!late.has_place() && !turns.is_next(&late));
        all.iter_mut().for_each(|claim| turns.end(claim));
        assert!(turns.is_next(&late) && turns.lines.is_empty());
    }
}
