//! Work in a task of its own that somebody waits for.

use std::future::Future;

use tokio::sync::oneshot;

use super::{Clock, Task};

/// Ends its task when it is dropped.
struct Ending(Option<Task>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

impl Clock {
    /// Runs `work` beside the caller and gives what it gives; ends it if the caller is dropped.
    /// `None` if it was ended before: by its group, or by a panic.
    ///
    /// What is woken for every message belongs in such a task. The one with which a thread begins
    /// (see [`crate::runtime::block_on`]) is woken through a descriptor: two system calls more.
    pub async fn apart<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let task = self.spawn(async move {
            answer.send(work.await).ok();
        });
        let mut ending = Ending(Some(task));
        let given = answered.await.ok();
        ending.0 = None;
        given
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use perf::units::Nanos;

    use super::*;
    use crate::runtime::block_on;

    #[test]
    fn what_it_gives_comes_back_and_without_a_caller_it_ends() {
        block_on(async {
            let clock = Clock::real();
            assert_eq!(clock.apart(async { 7 }).await, Some(7));
            // It is dropped when its caller has waited in vain.
            let watched = Arc::new(());
            let held = Arc::clone(&watched);
            let waits = clock.apart(async move {
                std::future::pending::<()>().await;
                drop(held);
            });
            assert!(clock.within(Nanos::from_millis(1), waits).await.is_err());
            while Arc::strong_count(&watched) > 1 {
                crate::clock::yield_now().await;
            }
        })
        .unwrap();
    }
}
