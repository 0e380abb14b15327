//! Connections from an address that no export names, made again as soon as they are closed.

use std::any::Any;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::attack::{Attack, Scene};
use super::calls::{hostile, reads};

/// Between two connections: what is measured is the server, not the machine.
const PAUSE: Duration = Duration::from_millis(1);

pub(super) const ATTACK: Attack = Attack {
    name: "strangers",
    about: "an address that no export names connects 1,000 times a second and asks for data",
    tree: None,
    options: &["--export", "/=client=127.0.0.1,insecure"],
    begin,
};

/// Ends its thread when it is dropped.
pub(super) struct Repeated {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Repeated {
    /// Does `work` again and again.
    pub(super) fn start(mut work: impl FnMut() + Send + 'static, pause: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                work();
                thread::sleep(pause);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

fn begin(scene: &Scene) -> io::Result<Box<dyn Any + Send>> {
    let (server, calls) = (scene.address, reads(scene.file, 1 << 20, 10));
    let work = move || {
        let Ok(mut stream) = hostile(server) else { return };
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok();
        stream.write_all(&calls).ok();
        // Until it is closed, or there is a byte of an answer.
        stream.read_exact(&mut [0]).ok();
    };
    Ok(Box::new(Repeated::start(work, PAUSE)))
}
