//! Lines over a socket of the file system: how a running program takes changes and questions from
//! whoever may write to that socket.
//!
//! A request is a line. Its answer is any number of lines, of which the last is `ok`, or begins
//! with `error: `. A connection may ask as often as it likes. There are [`CONNECTIONS_MAX`] at
//! once, one more is closed at once; a line has at most [`LINE_BYTES_MAX`], and who says nothing
//! for [`IDLE_MAX`] is closed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use perf::units::Nanos;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::sync::Semaphore;

use crate::clock::Clock;

pub const LINE_BYTES_MAX: usize = 8 << 10;
pub const CONNECTIONS_MAX: usize = 16;
/// Connections that wait to be accepted; as many as there may be.
const BACKLOG: u32 = 16;
/// Until the next line is there.
pub const IDLE_MAX: Nanos = Nanos::from_secs(60);
/// Until an answer is taken.
const WRITE_MAX: Nanos = Nanos::from_secs(10);
/// Bytes of all answers that a client reads.
const ANSWERS_BYTES_MAX: u64 = 1 << 20;

/// What the last line of an answer says.
const OK: &str = "ok";
const ERROR: &str = "error: ";

/// Answers a line: with lines, or with what is wrong with it.
pub trait Answers: Clone + Send + Sync + 'static {
    fn answer(&self, line: &str) -> Result<String, String>;
}

impl<F> Answers for F
where
    F: Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static,
{
    fn answer(&self, line: &str) -> Result<String, String> {
        self(line)
    }
}

/// A socket that listens for requests. Its name goes away with it.
#[derive(Debug)]
pub struct Listener {
    inner: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl Listener {
    /// Only this user may connect. A socket that somebody has left there, and where nobody listens
    /// any more, is replaced.
    ///
    /// # Errors
    /// The system's: there is something else of that name, or the directory is not writable.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let bound = match bind_private(path) {
            Err(cause) if cause.kind() == io::ErrorKind::AddrInUse && is_left_behind(path) => {
                std::fs::remove_file(path)?;
                bind_private(path)?
            }
            bound => bound?,
        };
        let inner = bound.listen(BACKLOG)?;
        let inode = std::fs::symlink_metadata(path)?.ino();
        Ok(Self { inner, path: path.to_owned(), inode })
    }

    /// Answers requests until dropped.
    pub async fn serve(self, clock: Clock, answers: impl Answers) {
        let places = std::sync::Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok((stream, _)) = self.inner.accept().await else {
                // Out of descriptors, or the peer has gone already: the next may do better.
                clock.sleep(Nanos::from_millis(10)).await;
                continue;
            };
            if !is_ours(&stream) {
                continue;
            }
            let Ok(place) = std::sync::Arc::clone(&places).try_acquire_owned() else {
                continue;
            };
            let (own, answers) = (clock.clone(), answers.clone());
            clock.spawn(async move {
                converse(stream, &own, &answers).await.ok();
                drop(place);
            });
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody may have put another one there.
        let now = std::fs::symlink_metadata(&self.path).map(|metadata| metadata.ino());
        if now.is_ok_and(|inode| inode == self.inode) {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// A socket that has its mode when its name is there: Linux takes it from the socket that is bound.
/// Set by the name, it would be set of whatever somebody has put there.
fn bind_private(path: &Path) -> io::Result<UnixSocket> {
    let socket = UnixSocket::new_stream()?;
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(0o600))?;
    socket.bind(path)?;
    Ok(socket)
}

/// Whether root or our own user has connected: a directory's default ACL may let others.
fn is_ours(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || peer.uid() == own)
}

/// Whether it is a socket at which nobody listens.
fn is_left_behind(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|of| of.file_type().is_socket());
    let tried = std::os::unix::net::UnixStream::connect(path);
    is_socket && tried.is_err_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    clock: &Clock,
    answers: &impl Answers,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = (&mut stream).take(LINE_BYTES_MAX as u64);
        let read = std::pin::pin!(limited.read_until(b'\n', &mut line));
        let count = clock.within(IDLE_MAX, read).await.map_err(io::Error::other)??;
        if count == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n") || count < LINE_BYTES_MAX;
        let answered = match std::str::from_utf8(&line) {
            Ok(line) if is_whole => answers.answer(line.trim()),
            Ok(_) => Err(format!("a line has at most {LINE_BYTES_MAX} bytes")),
            Err(_) => Err("that is no text".to_owned()),
        };
        let text = match answered {
            Ok(text) if text.is_empty() || text.ends_with('\n') => format!("{text}{OK}\n"),
            Ok(text) => format!("{text}\n{OK}\n"),
            Err(why) => format!("{ERROR}{}\n", why.replace('\n', " ")),
        };
        let write = std::pin::pin!(stream.get_mut().write_all(text.as_bytes()));
        clock.within(WRITE_MAX, write).await.map_err(io::Error::other)??;
        if !is_whole {
            return Ok(());
        }
    }
}

/// Says lines to the program that listens at `path`, and gives the answer to each, up to the first
/// that is an error.
///
/// # Errors
/// Nobody listens there, or nobody answers within `limit`.
pub async fn ask(
    clock: &Clock,
    path: &Path,
    lines: &[String],
    limit: Nanos,
) -> io::Result<Vec<Result<String, String>>> {
    let talk = async {
        let mut stream = UnixStream::connect(path).await?;
        let mut answers = Vec::new();
        let (read, mut write) = stream.split();
        let mut read = BufReader::new(read.take(ANSWERS_BYTES_MAX));
        for line in lines {
            write.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes()).await?;
            let answer = answer(&mut read).await?;
            let is_refused = answer.is_err();
            answers.push(answer);
            if is_refused {
                break;
            }
        }
        Ok(answers)
    };
    let timed_out = |_| io::Error::from(io::ErrorKind::TimedOut);
    clock.within(limit, std::pin::pin!(talk)).await.map_err(timed_out)?
}

/// One answer, without its last line.
async fn answer(read: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Result<String, String>> {
    let mut text = String::new();
    loop {
        let before = text.len();
        if read.read_line(&mut text).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = text[before..].trim_end();
        if line == OK {
            text.truncate(before);
            return Ok(Ok(text));
        }
        if let Some(why) = line.strip_prefix(ERROR) {
            return Ok(Err(why.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::world::World;

    fn echo(line: &str) -> Result<String, String> {
        match line.strip_prefix("say ") {
            Some(words) => Ok(words.replace(' ', "\n")),
            None => Err(format!("{line:?} is\nnothing")),
        }
    }

    /// What is answered to bytes, when nothing else comes.
    fn answered(bytes: Vec<u8>) -> String {
        let world = World::new();
        let clock = world.clock();
        let ran = world.run(async move {
            let (mut ours, theirs) = tokio::io::duplex(1 << 16);
            let own = clock.clone();
            clock.spawn(async move {
                converse(theirs, &own, &echo).await.ok();
            });
            ours.write_all(&bytes).await.unwrap();
            let mut text = String::new();
            ours.read_to_string(&mut text).await.unwrap();
            assert!(clock.now() <= perf::units::Instant::EPOCH + IDLE_MAX);
            text
        });
        ran.unwrap()
    }

    #[test]
    fn each_line_has_an_answer_that_ends() {
        let text = answered(b"say a b\nfrobnicate\nsay \nsay c\n".to_vec());
        assert_eq!(
            text,
            "a\nb\nok\nerror: \"frobnicate\" is nothing\nerror: \"say\" is nothing\nc\nok\n"
        );
        assert_eq!(answered(b"\xff\n".to_vec()), "error: that is no text\n");
        assert_eq!(answered(Vec::new()), "");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let text = answered(vec![b'x'; 5 * LINE_BYTES_MAX]);
        assert_eq!(text, format!("error: a line has at most {LINE_BYTES_MAX} bytes\n"));
    }

    #[test]
    fn a_socket_has_its_mode_from_when_it_has_its_name() {
        let folder = std::env::temp_dir().join(format!("nfskit-bound-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let own = path.clone();
        let bound = crate::runtime::block_on(async move { bind_private(&own).map(drop) });
        bound.unwrap().unwrap();
        let mode = std::fs::metadata(path).unwrap().mode();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_socket_answers_and_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("nfskit-control-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        // Somebody was killed.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let own = path;
        let answers = crate::runtime::block_on(async move {
            let clock = Clock::real();
            let listener = Listener::bind(&own).unwrap();
            assert!(Listener::bind(&own).is_err(), "somebody listens there");
            let mode = std::fs::metadata(&own).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600);
            let serving = clock.clone();
            let task = clock.spawn(async move { listener.serve(serving, echo).await });
            let lines = ["say 1 2", "no", "say 3"].map(str::to_owned);
            let answers = ask(&clock, &own, &lines, IDLE_MAX).await.unwrap();
            task.abort();
            while own.exists() {
                crate::clock::yield_now().await;
            }
            assert!(ask(&clock, &own, &lines, IDLE_MAX).await.is_err());
            answers
        });
        let expected = [Ok("1\n2\n".to_owned()), Err("\"no\" is nothing".to_owned())];
        assert_eq!(answers.unwrap(), expected);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
