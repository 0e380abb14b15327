//! Work that blocks, on a thread of its own: a system call that hangs must not keep us from being
//! interrupted, and our own mounts answer on the threads that would wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use harness::exit::Failure;
use tokio::sync::oneshot;

/// How long work in progress may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Does `work`. Dropped, it asks the thread to stop, and waits a while for that.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let (answer, answered) = oneshot::channel();
    let (end, ended) = mpsc::channel::<()>();
    let stopped = Arc::clone(&stop);
    let work = move || {
        // Nobody waits any more when the program is interrupted.
        answer.send(work(&stopped)).ok();
        drop(end);
    };
    std::thread::Builder::new()
        .name("nfskit-bench".to_owned())
        .spawn(work)
        .map_err(Failure::resources)?;
    let running = Running { stop, ended };
    let done = answered.await.map_err(|_| Failure::interrupted());
    drop(running);
    done
}

struct Running {
    stop: Arc<AtomicBool>,
    /// Closed when the thread has ended.
    ended: mpsc::Receiver<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Nothing is ever sent: it is closed, or the time is over.
        self.ended.recv_timeout(STOP_LIMIT).ok();
    }
}
