//! What takes the processor for long, beside what listens.

use std::thread;

use tokio::sync::oneshot;

use crate::exit::Failure;

/// Name of the thread, as `ps` and /proc show it.
pub const THREAD: &str = "nfskit-apart";

/// Does `work` on a thread of its own, so that an interrupt is heard meanwhile. Whoever no longer
/// waits for it leaves it behind: it ends with the process.
///
/// # Errors
/// The system gives no thread.
pub async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (done, outcome) = oneshot::channel();
    let spawned = thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
        // Nobody waits after an interrupt.
        done.send(work()).ok();
    });
    spawned.map_err(Failure::resources)?;
    outcome.await.map_err(|_| {
        Failure::environment("a computation has not come to its end", "report this as a bug")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn who_waits_can_do_something_else_before_it_is_done() {
        let (begin, begun) = mpsc::channel::<u32>();
        let heard = net::runtime::block_on(async {
            let work = apart(move || begun.recv());
            let meanwhile = async { begin.send(7).unwrap() };
            let (outcome, ()) = tokio::join!(work, meanwhile);
            outcome.unwrap()
        });
        assert_eq!(heard.unwrap(), Ok(7));
    }
}
