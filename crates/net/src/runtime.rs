//! The real world's executors, tuned for links that are emulated in microseconds.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use crate::clock::world;
use crate::slice;
use crate::stalls::{self, Stalls};

/// Tasks polled between two looks at the sockets. tokio's 61 would let an alarm that watches the
/// clock keep arrivals waiting for tens of microseconds.
const EVENT_INTERVAL: u32 = 7;

/// For what is computed or looked up beside tasks: as many as tokio has.
const BLOCKING_THREADS_MAX: usize = 512;

/// Wakes the task when those that sockets have something for have been woken. Woken at once, tasks
/// that move data would have all of the time between two looks at the sockets. A world has no
/// sockets: there it is woken behind all who can run.
pub(crate) fn wake_after_events(cx: &mut Context<'_>) {
    if world::is_running() {
        // The runtime whose task runs the world would wake it when the world has ended.
        cx.waker().wake_by_ref();
        return;
    }
    stalls::put_off(cx);
}

/// Lets those go first that sockets have something for.
pub(crate) async fn events() {
    let mut has_waited = false;
    poll_fn(|cx| match std::mem::replace(&mut has_waited, true) {
        true => Poll::Ready(()),
        false => {
            wake_after_events(cx);
            Poll::Pending
        }
    })
    .await;
}

/// Runs `work` on this thread.
///
/// # Errors
/// The system gives no event queue.
pub fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build()?;
    let done = runtime.block_on(work);
    // Dropped, it would wait for a resolver that does not answer.
    runtime.shutdown_background();
    Ok(done)
}

/// Runs `work` and what it spawns on `threads` threads.
///
/// # Errors
/// The system gives no event queue or threads.
pub fn block_on_threads<T>(threads: usize, work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = threaded(threads)?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// The same for a server, `calls_max` of whose calls may be in system calls that do not return: the
/// others are served all the same.
///
/// # Errors
/// The system gives no event queue or threads.
pub fn serve_on_threads<T>(
    threads: usize,
    calls_max: usize,
    work: impl Future<Output = T>,
) -> io::Result<T> {
    let stalls = Stalls::new();
    let of_threads = stalls.clone();
    let begin = move || {
        slice::shorten();
        of_threads.enter();
    };
    let runtime = builder(threads.max(1) + Stalls::RESERVED)
        .max_blocking_threads(calls_max + BLOCKING_THREADS_MAX)
        .on_thread_start(begin)
        .build()?;
    stalls.enter();
    let watching = stalls.watch(runtime.handle().clone())?;
    let done = runtime.block_on(work);
    drop(watching);
    runtime.shutdown_background();
    Ok(done)
}

fn threaded(threads: usize) -> io::Result<tokio::runtime::Runtime> {
    builder(threads.max(1)).on_thread_start(slice::shorten).build()
}

fn builder(threads: usize) -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(threads)
        .thread_name("nfskit-server")
        .enable_all()
        .event_interval(EVENT_INTERVAL);
    builder
}

/// Work that runs on threads of its own, beside the caller's; ends with this value.
#[derive(Debug)]
pub struct Background {
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts `begin` on `threads` new threads and gives what it answers with; what it has spawned
    /// by then runs on.
    ///
    /// # Errors
    /// The system gives no event queue or threads.
    pub fn start<T: Send + 'static, F: Future<Output = T>>(
        threads: usize,
        begin: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<(Self, T)> {
        let runtime = threaded(threads)?;
        let (answer, answered) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread =
            std::thread::Builder::new().name("nfskit-background".to_owned()).spawn(move || {
                runtime.block_on(async move {
                    answer.send(begin().await).ok();
                    stopped.await.ok();
                });
                runtime.shutdown_background();
            })?;
        let background = Self { stop: Some(stop), thread: Some(thread) };
        let begun = answered.recv().map_err(io::Error::other)?;
        Ok((background, begun))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
