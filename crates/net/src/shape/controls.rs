//! The conditions as they are now, for everything that passes under them.
//!
//! Clones share everything. Each connection, and each peer of a socket of datagrams, has a link of
//! its own in each direction, as hosts on a switch have; what they share is the conditions and the
//! counts. A replacement holds from the next message on: those under way keep their times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use perf::units::Instant;

use super::LinkPair;
use super::conditions::{Conditions, Overhead};
use super::lane::Lane;
use super::profile::Profile;
use super::tally::{Counts, Tally};

/// A direction, seen from the wrapped end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    There,
    Back,
}

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Shape(Arc<ShapeState>);

#[derive(Debug)]
struct ShapeState {
    /// Guards the profile and when it came into force; held while conditions are copied.
    now: Mutex<(Profile, Instant)>,
    /// How often the profile was replaced: looked at for each message.
    version: AtomicU64,
    /// Lanes made so far: each has random numbers of its own.
    lanes: AtomicU64,
    there: Arc<Tally>,
    back: Arc<Tally>,
}

/// One direction for one peer, which follows the conditions.
#[derive(Debug)]
pub struct Follower {
    side: Side,
    version: u64,
    pub(super) lane: Lane,
}

impl Shape {
    /// Schedules count from `now`.
    pub fn new(profile: Profile, now: Instant) -> Self {
        Self(Arc::new(ShapeState {
            now: Mutex::new((profile, now)),
            version: AtomicU64::new(0),
            lanes: AtomicU64::new(0),
            there: Arc::default(),
            back: Arc::default(),
        }))
    }

    pub fn profile(&self) -> Profile {
        self.0.now.lock().0.clone()
    }

    /// From now on it is like this. A transport that was left bare because there was no link stays
    /// bare, and an endpoint's overhead is what it was when the connection began.
    pub fn replace(&self, profile: Profile, now: Instant) {
        *self.0.now.lock() = (profile, now);
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// Whether there is anything between the two ends now.
    pub fn has_link(&self) -> bool {
        self.0.now.lock().0.has_link()
    }

    pub fn overhead(&self) -> Overhead {
        self.0.now.lock().0.overhead
    }

    pub fn tally(&self, side: Side) -> &Arc<Tally> {
        match side {
            Side::There => &self.0.there,
            Side::Back => &self.0.back,
        }
    }

    pub fn counts(&self, side: Side) -> Counts {
        self.tally(side).counts()
    }

    /// A link in one direction, for one peer.
    pub fn follower(&self, side: Side) -> Follower {
        let number = self.0.lanes.fetch_add(1, Ordering::Relaxed);
        let version = self.0.version.load(Ordering::Acquire);
        let (seed, conditions, begun) = self.conditions(side);
        // Neighbouring seeds must not give neighbouring numbers (Steele et al. 2014, SplitMix64).
        let seed = seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Follower { side, version, lane: Lane::new(conditions, seed, begun) }
    }

    fn conditions(&self, side: Side) -> (u64, Conditions, Instant) {
        let now = self.0.now.lock();
        let (profile, begun) = &*now;
        let conditions = match side {
            Side::There => &profile.there,
            Side::Back => &profile.back,
        };
        (profile.seed, conditions.clone(), *begun)
    }
}

impl Follower {
    /// The lane, under the conditions as they are now.
    pub fn lane(&mut self, shape: &Shape) -> &mut Lane {
        let version = shape.0.version.load(Ordering::Acquire);
        if version != self.version {
            self.version = version;
            let (_, conditions, begun) = shape.conditions(self.side);
            self.lane.replace(conditions, begun);
        }
        &mut self.lane
    }
}

impl Follower {
    /// Where what it decides is counted.
    pub fn tally<'s>(&self, shape: &'s Shape) -> &'s Tally {
        shape.tally(self.side)
    }
}

impl Default for Shape {
    fn default() -> Self {
        Profile::default().into()
    }
}

impl From<Profile> for Shape {
    /// Schedules count from the clock's epoch.
    fn from(profile: Profile) -> Self {
        Self::new(profile, Instant::EPOCH)
    }
}

impl From<LinkPair> for Shape {
    fn from(links: LinkPair) -> Self {
        Profile::from(links).into()
    }
}

impl From<&Self> for Shape {
    fn from(shape: &Self) -> Self {
        shape.clone()
    }
}
