//! `..`: the directory above one, if that is in the export.
//!
//! A directory that a local process moves out of the export keeps its handle, so of each `..` it
//! is shown anew that the export's root is above it. The kernel climbs many levels in one call
//! (`../../..`, some 50 ns each), so the way is searched and not walked:
//!
//! ```text
//!   at --1--> --2--> --4--> ... --1024--> above the root: from the same place half as far
//! ```
//!
//! Where a step ends says how to go on. At the root: it is inside. At one of the root's own
//! ancestors: too far. Anywhere else: not far enough. Who is above the root without having met it,
//! and can go no shorter way, is outside. Steps carry descriptors, so that a rename meanwhile
//! cannot lead them astray.
//!
//! Up to [`INLINE_LEVELS_MAX`] levels that is some thirty system calls at most, made inline. What
//! is deeper is climbed by a thread, and up to [`LEVELS_MAX`]; beyond, `..` is refused. (Below a
//! bind mount each level costs the kernel as much as there are levels above it, hence the thread.)

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use tokio::sync::oneshot;

use super::errno::status;
use super::objects::Object;
use super::stat::{Identity, Stat};
use super::tree::{Child, Tree};
use crate::store::{Looked, Node};
use crate::types::{Caller, FileKind, Handle, Status};

/// Levels climbed on the thread that serves the call: five steps up and five shorter ones.
const INLINE_LEVELS_MAX: usize = 31;

/// Levels climbed at all, some 1 ms. A path of 4,096 bytes, the longest that Linux takes in one
/// call, has at most 2,048.
const LEVELS_MAX: usize = 1 << 14;

/// The longest step: 3 KiB of path.
const STEP_MAX: usize = 1024;

/// What is above a directory.
pub(super) enum Above {
    Found(Child),
    /// The directory, which lies so deep that a thread has to find out whether it is inside.
    Deep(OwnedFd, Stat),
}

/// Where a step has led.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Met {
    Root,
    /// An ancestor of the root, or the top of everything.
    BeyondRoot,
    Neither,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    Inside,
    Outside,
    TooDeep,
}

/// How far to climb next. A decision without descriptors.
#[derive(Debug)]
struct Climb {
    /// Levels of the next step.
    step: usize,
    /// A step went too far: the root is nearer than that.
    is_bounded: bool,
    left: usize,
}

impl Climb {
    fn new(levels_max: usize) -> Self {
        Self { step: 1, is_bounded: false, left: levels_max }
    }

    /// A step of `self.step` levels has led there. The next one begins at its end if that was
    /// [`Met::Neither`], else where it began.
    fn met(&mut self, met: Met) -> Option<Verdict> {
        match met {
            Met::Root => return Some(Verdict::Inside),
            Met::BeyondRoot if self.step == 1 => return Some(Verdict::Outside),
            Met::BeyondRoot => {
                self.is_bounded = true;
                self.step /= 2;
            }
            Met::Neither => {
                self.left = self.left.saturating_sub(self.step);
                if self.left == 0 {
                    return Some(Verdict::TooDeep);
                }
                self.step = match self.is_bounded {
                    true => (self.step / 2).max(1),
                    false => (self.step * 2).min(STEP_MAX),
                };
            }
        }
        None
    }
}

impl Tree {
    /// LOOKUP of `..`.
    pub(super) async fn lookup_above(
        self: &Arc<Self>,
        caller: &Caller,
        handle: &Handle,
    ) -> Looked<Node> {
        let looked = self.look(handle, |dir, _| {
            if dir.kind != FileKind::Directory {
                return Err(Status::NotDirectory);
            }
            self.acting.act_as(caller)?;
            self.above(dir)
        });
        let found = match looked.result {
            Ok(Above::Found(child)) => Ok(child),
            Ok(Above::Deep(fd, stat)) => self.climb_aside(fd, stat).await,
            Err(status) => Err(status),
        };
        let result = found.map(|child| {
            let node = Node::from(&child);
            self.keep(child.handle, &child.stat, child.fd);
            node
        });
        Looked { attr: looked.attr, result }
    }

    /// The directory above `dir`. Of the root it is the root, and a directory that was moved out
    /// of the export has none. The first step is the caller's, the rest the server's, since the
    /// caller may not be allowed on all of the way.
    pub(super) fn above(&self, dir: &Object) -> Result<Above, Status> {
        if dir.handle == self.root.handle {
            return self.root_again().map(Above::Found);
        }
        let (fd, stat) = self.climb_by(dir.path(), 1).map_err(outside)?;
        match self.climb(fd.as_fd(), &stat, INLINE_LEVELS_MAX)? {
            Verdict::Inside => self.child_above(fd, stat).map(Above::Found),
            Verdict::Outside => Err(Status::Stale),
            Verdict::TooDeep => Ok(Above::Deep(fd, stat)),
        }
    }

    /// The rest of a long way, on a thread. So many may wait; the reply to one more is JUKEBOX.
    async fn climb_aside(self: &Arc<Self>, fd: OwnedFd, stat: Stat) -> Result<Child, Status> {
        let (done, outcome) = oneshot::channel();
        let tree = Arc::clone(self);
        self.seeker.offer(Box::new(move || {
            let found = match tree.climb(fd.as_fd(), &stat, LEVELS_MAX) {
                Ok(Verdict::Inside) => tree.child_above(fd, stat),
                Ok(Verdict::Outside) => Err(Status::Stale),
                Ok(Verdict::TooDeep) => Err(Status::NameTooLong),
                Err(status) => Err(status),
            };
            // The caller may have gone away.
            let _ = done.send(found);
        }));
        outcome.await.unwrap_or(Err(Status::Jukebox))
    }

    fn child_above(&self, fd: OwnedFd, stat: Stat) -> Result<Child, Status> {
        if stat.identity() == self.root_identity && self.file_system.has_own_numbers() {
            return self.root_again();
        }
        let handle = self.handles.of_parent(fd.as_fd(), &stat)?;
        if handle == self.root.handle {
            return self.root_again();
        }
        Ok(Child { fd, stat, handle })
    }

    fn root_again(&self) -> Result<Child, Status> {
        let duplicate = || self.root.path().try_clone_to_owned();
        let fd = self.with_room(|| duplicate().map_err(|_| Status::Jukebox))?;
        Ok(Child { fd, stat: self.root.stat()?, handle: self.root.handle })
    }

    /// Whether the root is above `from`, or is it.
    fn climb(
        &self,
        from: BorrowedFd<'_>,
        stat: &Stat,
        levels_max: usize,
    ) -> Result<Verdict, Status> {
        if stat.identity() == self.root_identity {
            return Ok(Verdict::Inside);
        }
        self.acting.serving(|| {
            let beyond = self.beyond_root();
            if beyond.contains(&stat.identity()) {
                return Ok(Verdict::Outside);
            }
            let mut climb = Climb::new(levels_max);
            let mut at: Option<OwnedFd> = None;
            loop {
                let here = at.as_ref().map_or(from, AsFd::as_fd);
                let (met, next) = match self.climb_by(here, climb.step) {
                    Ok((_, stat)) if stat.identity() == self.root_identity => (Met::Root, None),
                    Ok((_, stat)) if beyond.contains(&stat.identity()) => (Met::BeyondRoot, None),
                    Ok((next, _)) => (Met::Neither, Some(next)),
                    // What is above the root may be closed to the server.
                    Err(Status::Access | Status::NoEntry) if climb.step > 1 => {
                        (Met::BeyondRoot, None)
                    }
                    Err(status) => return Err(outside(status)),
                };
                if let Some(verdict) = climb.met(met) {
                    return Ok(verdict);
                }
                at = next.or(at);
            }
        })
    }

    /// The directories above the root, as far as they can be seen; none of them is in the export.
    /// They are looked at each time: the root may be moved while it is served.
    fn beyond_root(&self) -> Vec<Identity> {
        let mut beyond: Vec<Identity> = Vec::new();
        let mut below = self.root_identity;
        let mut at: Option<OwnedFd> = None;
        while beyond.len() < LEVELS_MAX {
            let here = at.as_ref().map_or_else(|| self.root.path(), AsFd::as_fd);
            let Ok((next, stat)) = self.climb_by(here, 1) else { break };
            // The top of everything is its own parent.
            if stat.identity() == below {
                break;
            }
            below = stat.identity();
            beyond.push(below);
            at = Some(next);
        }
        beyond
    }

    fn climb_by(&self, from: BorrowedFd<'_>, levels: usize) -> Result<(OwnedFd, Stat), Status> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let way = "../".repeat(levels);
        let open = || rustix::fs::openat(from, &*way, flags, Mode::empty()).map_err(status);
        let fd = self.with_room(open)?;
        let stat = Stat::of(&fd).map_err(status)?;
        Ok((fd, stat))
    }
}

/// A way up that ends below a bind mount, out of which the directory was moved, is no way.
fn outside(status: Status) -> Status {
    match status {
        Status::NoEntry => Status::Stale,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Climbs from `depth` levels below the root, or from where there is none, with the top of
    /// everything `top` levels further up. Gives the verdict and how many steps it took.
    fn climb(depth: usize, is_inside: bool, top: usize, levels_max: usize) -> (Verdict, usize) {
        let mut climb = Climb::new(levels_max);
        let mut at = 0;
        for steps in 1.. {
            let met = match at + climb.step {
                level if level == depth && is_inside => Met::Root,
                level if level >= depth => Met::BeyondRoot,
                _ => Met::Neither,
            };
            assert!(at + climb.step <= depth + top + STEP_MAX);
            let from = climb.step;
            if let Some(verdict) = climb.met(met) {
                return (verdict, steps);
            }
            if met == Met::Neither {
                at += from;
            }
        }
        unreachable!("it ends")
    }

    #[test]
    fn the_root_is_found_at_every_depth_and_nowhere_else() {
        for depth in 1..5000 {
            let (verdict, steps) = climb(depth, true, 3, LEVELS_MAX);
            assert_eq!(verdict, Verdict::Inside, "{depth}");
            assert!(steps <= 22 + depth / STEP_MAX, "{depth}: {steps}");
            let (verdict, steps) = climb(depth, false, 0, LEVELS_MAX);
            assert_eq!(verdict, Verdict::Outside, "{depth}");
            assert!(steps <= 22 + depth / STEP_MAX, "{depth}: {steps}");
        }
    }

    #[test]
    fn what_is_near_is_found_in_a_few_steps_and_a_long_way_is_given_up() {
        let steps: Vec<usize> = (1..=8).map(|depth| climb(depth, true, 3, 255).1).collect();
        assert_eq!(steps, [1, 3, 2, 5, 4, 5, 3, 7]);
        let (verdict, steps) = climb(100_000, true, 3, INLINE_LEVELS_MAX);
        assert_eq!((verdict, steps), (Verdict::TooDeep, 5));
        let (verdict, steps) = climb(100_000, true, 3, LEVELS_MAX);
        assert_eq!(verdict, Verdict::TooDeep);
        assert!(steps <= 26, "{steps}");
    }
}
