//! Tasks that end together: a host that crashes.

use std::sync::Arc;

use tokio::sync::watch;

use super::world;

/// What is spawned through the clock that came with it, and by what was so spawned.
///
/// A kill drops tasks at an await point, without a chance to clean up behind one: what a crash
/// does to a process. Destructors do run, as nothing else could give memory back.
#[derive(Clone, Debug)]
pub struct Group(pub(super) GroupKind);

#[derive(Clone, Debug)]
pub(super) enum GroupKind {
    /// Says whether it was killed.
    Real(Arc<watch::Sender<bool>>),
    World(world::Handle),
}

impl Group {
    /// Drops all its tasks, and whatever is spawned in it from now on. In a world they are gone
    /// when this returns (a task that kills its own group: when it next waits); in the real world
    /// they end at their next await point.
    pub fn kill(&self) {
        match &self.0 {
            GroupKind::Real(killed) => {
                killed.send_replace(true);
            }
            GroupKind::World(world) => world.kill(),
        }
    }

    /// How often its tasks have been polled; 0 in the real world, which does not count.
    pub fn polls(&self) -> u64 {
        match &self.0 {
            GroupKind::Real(_) => 0,
            GroupKind::World(world) => world.group_polls(),
        }
    }

    /// Kills the group when its tasks have been polled `polls` times in all, at once if they
    /// have been already: with every number up to those of a whole run, a crash at every await
    /// point. In a world only; in the real world it does nothing.
    pub fn kill_at_poll(&self, polls: u64) {
        if let GroupKind::World(world) = &self.0 {
            world.kill_at_poll(polls);
        }
    }

    /// Waits until it is killed.
    pub async fn killed(&self) {
        match &self.0 {
            GroupKind::Real(killed) => {
                // An error says that the sender is gone, which we hold.
                killed.subscribe().wait_for(|&killed| killed).await.ok();
            }
            GroupKind::World(world) => std::future::poll_fn(|cx| world.poll_killed(cx)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use perf::units::Nanos;

    use crate::clock::Clock;
    use crate::clock::world::World;

    use super::*;

    /// Counts up every microsecond, in a child of a child.
    fn count(clock: &Clock, by: &Clock) -> Arc<AtomicU64> {
        let counter = Arc::new(AtomicU64::new(0));
        let (own, counting) = (by.clone(), Arc::clone(&counter));
        clock.spawn(async move {
            let inner = own.clone();
            own.spawn(async move {
                loop {
                    inner.sleep(Nanos::from_micros(1)).await;
                    counting.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        counter
    }

    #[test]
    fn a_group_ends_with_all_its_children_and_nothing_else_does() {
        let world = World::new();
        let clock = world.clock();
        let counts = world
            .run(async move {
                let (grouped, group) = clock.group();
                let (inner, _) = grouped.group();
                let counters = [
                    count(&grouped, &grouped),
                    // The child is spawned through a clock that knows nothing of the group.
                    count(&grouped, &clock),
                    count(&inner, &inner),
                    count(&clock, &clock),
                ];
                clock.sleep(Nanos::from_nanos(10_500)).await;
                group.kill();
                group.killed().await;
                let late = count(&inner, &inner);
                clock.sleep(Nanos::from_nanos(10_000)).await;
                [
                    counters.map(|c| c.load(Ordering::Relaxed)).to_vec(),
                    vec![Arc::strong_count(&late) as u64],
                ]
                .concat()
            })
            .unwrap();
        assert_eq!(counts, [10, 10, 10, 20, 1]);
    }

    #[test]
    fn a_crash_can_be_put_at_every_await_point_of_a_run() {
        let steps = |kill_at: Option<u64>| {
            let world = World::new();
            let clock = world.clock();
            let run = async move {
                let (grouped, group) = clock.group();
                kill_at.into_iter().for_each(|polls| group.kill_at_poll(polls));
                let counter = count(&grouped, &grouped);
                clock.sleep(Nanos::from_nanos(5_500)).await;
                (group.polls(), counter.load(Ordering::Relaxed))
            };
            world.run(run).unwrap()
        };
        // Two polls begin the two tasks, then one for each microsecond.
        assert_eq!(steps(None), (7, 5));
        let crashed: Vec<_> = (0..8).map(|at| steps(Some(at))).collect();
        assert_eq!(crashed, [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2), (5, 3), (6, 4), (7, 5)]);
    }

    #[test]
    fn a_task_that_kills_its_own_group_goes_no_further_than_its_next_wait() {
        let world = World::new();
        let clock = world.clock();
        let steps = Arc::new(AtomicU64::new(0));
        let stepping = Arc::clone(&steps);
        world
            .run(async move {
                let (grouped, group) = clock.group();
                let (own, killer) = (clock.clone(), group.clone());
                grouped.spawn(async move {
                    killer.kill();
                    stepping.fetch_add(1, Ordering::Relaxed);
                    own.sleep(Nanos::from_micros(1)).await;
                    stepping.fetch_add(1, Ordering::Relaxed);
                });
                group.killed().await;
                clock.sleep(Nanos::from_micros(5)).await;
            })
            .unwrap();
        assert_eq!(steps.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn in_the_real_world_tasks_of_a_group_end_too() {
        let (clock, group) = Clock::real().group();
        let held = Arc::new(());
        let own = Arc::clone(&held);
        clock.spawn(async move {
            let _own = own;
            std::future::pending::<()>().await;
        });
        crate::clock::yield_now().await;
        group.kill();
        group.killed().await;
        while Arc::strong_count(&held) > 1 {
            crate::clock::yield_now().await;
        }
    }
}
