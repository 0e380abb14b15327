//! Programs that we start: none outlives its deadline, and each is ended by us alone.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::family;

/// How often we look; short against everything that we wait for.
const POLL: Duration = Duration::from_millis(10);
/// What [`finish`] says of a program that it had to end.
pub(crate) const NO_END: &str = "no end after";
/// What a program printed is read by then, once it has ended.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);
/// Lines of a service's output that we keep for the case that it fails.
const LOG_LINES_MAX: usize = 200;

/// What a program that came to its end left behind.
#[derive(Debug)]
pub(crate) struct Finished<T> {
    /// What the reader made of its output.
    pub(crate) value: T,
    pub(crate) seconds: f64,
}

/// Runs a program to its end, its output going to `read`; fails unless it exits with 0 in time.
pub(crate) fn finish<T: Send>(
    command: &mut Command,
    within: Duration,
    read: impl FnOnce(ChildStdout) -> T + Send,
) -> Result<Finished<T>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name} does not start: {error}"))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(format!("{name} has no output to read"));
    };
    thread::scope(|scope| {
        let value = scope.spawn(|| read(stdout));
        let complaint = scope.spawn(|| text(stderr));
        let status = ended(&mut child, start + within);
        let complaint = complaint.join().unwrap_or_default();
        let value = value.join().map_err(|_| format!("reading from {name} failed"))?;
        let seconds = start.elapsed().as_secs_f64();
        match status? {
            Some(status) if status.success() => Ok(Finished { value, seconds }),
            Some(status) => Err(format!("{name}: {status}: {}", complaint.trim_end())),
            None => Err(format!("{name}: {NO_END} {seconds:.0} s; killed")),
        }
    })
}

/// All that can be read, as text.
pub(crate) fn text(mut source: impl Read) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is worth showing; the error itself is the child's end.
    let _ = source.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How the child ended, or `None` when we had to end it at the deadline, and what it had started.
fn ended(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>, String> {
    let failed = |error| format!("waiting for a child failed: {error}");
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(Some(status));
        }
        thread::sleep(POLL);
    }
    family::kill(child).and_then(|()| child.wait()).map_err(failed)?;
    Ok(None)
}

/// A server in the background; ended when dropped, if it was not stopped before.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Service {
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        Self::start_on(command.stdin(Stdio::null()))
    }

    fn start_on(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name} does not start: {error}"))?;
        let log = Arc::default();
        if let Some(stdout) = child.stdout.take() {
            keep_lines(stdout, &log);
        }
        if let Some(stderr) = child.stderr.take() {
            keep_lines(stderr, &log);
        }
        Ok(Self { name, child, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// With an input that stays open until [`Service::end_input`].
    pub(crate) fn start_with_input(command: &mut Command) -> Result<Self, String> {
        Self::start_on(command.stdin(Stdio::piped()))
    }

    pub(crate) fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until `ready` sees in the lines printed so far what it looks for.
    pub(crate) fn wait_for<T>(
        &mut self,
        within: Duration,
        mut ready: impl FnMut(&[String]) -> Option<T>,
    ) -> Result<T, String> {
        let mut deadline = Instant::now() + within;
        let mut ended = false;
        loop {
            if let Some(found) = ready(&self.lines()) {
                return Ok(found);
            }
            if !ended && self.child.try_wait().is_ok_and(|status| status.is_some()) {
                ended = true;
                // Its last lines may still be on their way to us.
                deadline = deadline.min(Instant::now() + LAST_LINES_WITHIN);
            }
            if Instant::now() >= deadline {
                let how = if ended { "ended" } else { "is not ready in time" };
                return Err(format!("{} {how}; it printed: {:?}", self.name, self.lines()));
            }
            thread::sleep(POLL);
        }
    }

    /// Starts it, and waits until a line that it prints contains these words.
    pub(crate) fn start_until(
        command: &mut Command,
        within: Duration,
        words: &str,
    ) -> Result<Self, String> {
        let mut service = Self::start(command)?;
        let is_there = |lines: &[String]| lines.iter().any(|line| line.contains(words));
        service.wait_for(within, |lines| is_there(lines).then_some(()))?;
        Ok(service)
    }

    /// Asks it to end, and fails when it does not, or not with 0.
    pub(crate) fn stop(self, within: Duration) -> Result<(), String> {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM)
            .map_err(|error| format!("SIGTERM does not reach {}: {error}", self.name))?;
        self.wait(within)
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits for its end, of which it knows; fails when that does not come, or is not with 0.
    pub(crate) fn wait(mut self, within: Duration) -> Result<(), String> {
        match ended(&mut self.child, Instant::now() + within)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                let lines = self.lines();
                Err(format!("{} ended with {status}; it printed: {lines:?}", self.name))
            }
            None => Err(format!("{} did not end on SIGTERM; killed", self.name)),
        }
    }

    /// The newest lines that it printed.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.log.lock().map(|log| log.clone()).unwrap_or_default()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only for a child that has ended, which is what we want.
        let _ = family::kill(&mut self.child);
        let _ = self.child.wait();
    }
}

/// Keeps the newest lines, and reads on to the end so that the child never waits for us.
fn keep_lines(source: impl Read + Send + 'static, log: &Arc<Mutex<Vec<String>>>) {
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            let Ok(mut log) = log.lock() else { return };
            if log.len() == LOG_LINES_MAX {
                log.remove(0);
            }
            log.push(line);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let finished = finish(&mut shell("echo out"), LONG, text).unwrap();
        assert_eq!(finished.value, "out\n");
        let failed = finish(&mut shell("echo why >&2; exit 3"), LONG, text).unwrap_err();
        assert!(failed.contains("exit status: 3: why"), "{failed}");
    }

    #[test]
    fn a_program_without_end_is_killed_at_its_deadline() {
        let killed = finish(&mut shell("exec sleep 600"), Duration::ZERO, text).unwrap_err();
        assert!(killed.contains("killed"), "{killed}");
    }

    #[test]
    fn a_service_is_waited_for_and_stopped() {
        let script = "trap 'exit 0' TERM; echo ready; while :; do read x; done";
        let mut service = Service::start(&mut shell(script)).unwrap();
        let found = service.wait_for(LONG, |lines| lines.first().cloned()).unwrap();
        assert_eq!(found, "ready");
        service.stop(LONG).unwrap();
    }

    #[test]
    fn a_service_that_ends_early_is_quoted() {
        let mut service = Service::start(&mut shell("echo no such port; exit 1")).unwrap();
        let never = |_: &[String]| None::<()>;
        let failed = service.wait_for(LONG, never).unwrap_err();
        assert!(failed.contains("ended"), "{failed}");
    }
}
