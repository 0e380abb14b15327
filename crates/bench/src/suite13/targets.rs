//! All places: looked at before, each with a directory of the run's own, which is removed however
//! the run ends.

use std::path::Path;
use std::sync::Arc;

use client::mount::Options;
use client::url::Target as Url;
use harness::exit::Failure;
use harness::local;
use harness::mounts::embedded::{EmbeddedMount, obstacle};
use harness::scratch::Held;
use harness::signals::Interrupts;
use harness::target::{self, Reached};
use load::error::Error as LoadError;
use load::file_system::FileSystem;
use net::clock::Clock;
use net::shape::Shape;
use parking_lot::Mutex;
use perf::record::Durability;

use super::plan::Plan;
use super::target::{Described, Kind, MountPoint, Server, Target};
use crate::suite13::args::{At, Caches, Place, Suite13};

pub(super) struct Targets {
    pub(super) all: Vec<Target>,
}

impl Targets {
    pub(super) async fn look(
        clock: &Clock,
        args: &Suite13,
        plan: &Plan,
        interrupts: &mut Interrupts,
    ) -> Result<Self, Failure> {
        // Before anything is made anywhere.
        for place in &args.compare {
            match &place.at {
                At::Dir(dir) => {
                    local::directory(dir, "--compare")?;
                }
                At::Server(..) => {
                    if let Some(obstacle) = obstacle() {
                        return Err(obstacle.and("a server is mounted for this benchmark"));
                    }
                }
            }
        }
        let mut targets = Self { all: Vec::new() };
        for (number, place) in args.compare.iter().enumerate() {
            let tag = format!("{}-{number}", local::tag(clock));
            let made = match &place.at {
                At::Dir(dir) => directory(place, dir, plan, &tag),
                At::Server(url, target) => match server(clock, (place, url, target), args, plan) {
                    Ok(reaching) => reaching.reach(interrupts).await,
                    Err(failure) => Err(failure),
                },
            };
            match made {
                Ok(target) => targets.all.push(target),
                Err(failure) => return targets.release(clock, Err(failure)).await,
            }
        }
        Ok(targets)
    }

    pub(super) async fn release<T>(
        self,
        clock: &Clock,
        outcome: Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut outcome = outcome;
        for target in self.all {
            outcome = target.release(clock, outcome).await;
        }
        outcome
    }
}

fn directory(place: &Place, dir: &Path, plan: &Plan, tag: &str) -> Result<Target, Failure> {
    // What the kernel calls it, for its counters.
    let dir = dir.canonicalize().map_err(|cause| {
        let path = dir.to_owned();
        Failure::from(LoadError::Local { doing: "looking at a directory", path, cause })
    })?;
    let file_system = FileSystem::of(&dir).map_err(Failure::from)?;
    let is_promised = file_system.is_nfs();
    let FileSystem { kind, mount_options, flushed } = file_system;
    let scratch = local::scratch(&dir, tag)?;
    let is_nfs = kind.starts_with("nfs");
    let flushes = plan.sync || is_promised;
    let durability = match flushed {
        Some(Durability::Stable) if !flushes => Some(Durability::PageCache),
        flushed => flushed,
    };
    let cached = match (plan.caches, plan.drop_caches) {
        (Caches::Cold | Caches::Restart, true) => {
            "pages, names and attributes of the whole system dropped"
        }
        (Caches::Cold | Caches::Restart, false) => {
            "pages of files dropped; names and attributes stay"
        }
        (Caches::Paper, _) => "8 MB of other files read",
        (Caches::Warm, _) => "as the test before left them",
    };
    let described = Described {
        name: place.name.clone(),
        place: dir.display().to_string(),
        is_server: false,
        file_system: kind,
        mount_options,
        durability,
        is_promised,
        counted: if is_nfs { "by the kernel" } else { "by nobody" },
        cached: cached.to_owned(),
    };
    Ok(Target { described, kind: Kind::Dir { scratch, is_nfs } })
}

/// A server that is going to be reached.
struct Reaching<'a> {
    place: &'a Place,
    target: &'a Url,
    plan: &'a Plan,
    options: String,
    embedded: EmbeddedMount,
    at: MountPoint,
    plain: Reached,
}

fn server<'a>(
    clock: &Clock,
    (place, url, target): (&'a Place, &str, &'a Url),
    args: &Suite13,
    plan: &'a Plan,
) -> Result<Reaching<'a>, Failure> {
    let at = MountPoint::make()?;
    let words = args.options_of(place);
    let embedded = EmbeddedMount::new(url, &words, at.path().to_owned())?;
    let options = target::options(embedded.target(), Options::REPLY_LIMIT, Shape::default());
    let plain = Reached::new(clock, None, embedded.target(), options);
    Ok(Reaching { place, target, plan, options: words, embedded, at, plain })
}

impl Reaching<'_> {
    /// Connects and makes the directory, unless interrupted before.
    async fn reach(self, interrupts: &mut Interrupts) -> Result<Target, Failure> {
        let Self { place, target, plan, options, embedded, at, plain } = self;
        let held = Held::make(&plain, interrupts).await?;
        let cached = match plan.caches {
            Caches::Cold | Caches::Restart => "mounted anew",
            Caches::Paper => "8 MB of other files read",
            Caches::Warm => "as the test before left them",
        };
        let described = Described {
            name: place.name.clone(),
            place: target.to_string(),
            is_server: true,
            file_system: "our mount".to_owned(),
            mount_options: Some(options).filter(|options| !options.is_empty()),
            // Every file is flushed when it is closed, with what the protocol promises of that.
            durability: Some(Durability::Stable),
            is_promised: true,
            counted: "by our client",
            cached: cached.to_owned(),
        };
        let embedded = Arc::new(Mutex::new(embedded));
        let server = Server { embedded, plain, held, at };
        Ok(Target { described, kind: Kind::Server(Box::new(server)) })
    }
}
