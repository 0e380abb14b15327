//! `/proc/net/rpc/nfsd`: what the kernel's server has served since its module was loaded.

use super::fields::{Line, Word};
use super::problem::{Problem, Wrong};
use super::procedures::{Procedures, Version};
use super::rpc::{self, NUMBERS_MAX, Net, bounded, counted, first, set};

/// See the module's head. What an old or a new kernel does not have is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Server {
    pub reply_cache: Option<ReplyCache>,
    /// Handles of what is no more.
    pub stale_handles: Option<u64>,
    pub io: Option<Io>,
    pub threads: Option<Threads>,
    /// `ra`: size, ten depths and misses; zeros in newer kernels.
    pub read_ahead: Option<Vec<u64>>,
    pub net: Option<Net>,
    pub rpc: Option<Rpc>,
    pub v2: Option<Procedures>,
    pub v3: Option<Procedures>,
    pub v4: Option<Procedures>,
    /// Operations inside of version 4's COMPOUND, by their numbers.
    pub v4_operations: Option<Vec<u64>>,
    /// GETATTRs that had to ask a client that holds a write delegation.
    pub delegation_getattrs: Option<u64>,
}

/// `rc`: the duplicate request cache. A hit is a call that came a second time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReplyCache {
    pub hits: u64,
    pub misses: u64,
    pub uncached: u64,
}

/// `io`: bytes, which wrap at 2^32 in old kernels.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Io {
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// `th`: threads, how often all were busy, and for how many seconds a tenth, two tenths ... of them
/// were. Kernels since 2.6.3x print zeros there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Threads {
    pub threads: u64,
    pub all_busy: u64,
    pub busy_s: Vec<f64>,
}

/// `rpc`: calls, and those that were refused.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rpc {
    pub calls: u64,
    pub bad: u64,
    pub bad_format: u64,
    pub bad_authentication: u64,
    pub bad_client: u64,
}

/// Reads the file's content.
///
/// # Errors
/// The first line that is broken, or none that is known.
pub fn read(text: &[u8]) -> Result<Server, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut all = Server::default();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let tag = line.word();
        all.take(tag, &mut line)?;
    }
    if all == Server::default() {
        return Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing });
    }
    Ok(all)
}

impl Server {
    fn take(&mut self, tag: Word<'_>, line: &mut Line<'_>) -> Result<(), Problem> {
        let (number, name) = (line.number, tag.text);
        let numbers = |line: &mut Line<'_>, min| line.numbers(name, min, NUMBERS_MAX);
        match name {
            "rc" => {
                let [hits, misses, uncached] = first(&numbers(line, 3)?);
                set(&mut self.reply_cache, name, number, ReplyCache { hits, misses, uncached })
            }
            "fh" => {
                let [stale] = first(&numbers(line, 1)?);
                set(&mut self.stale_handles, name, number, stale)
            }
            "io" => {
                let [read_bytes, written_bytes] = first(&numbers(line, 2)?);
                set(&mut self.io, name, number, Io { read_bytes, written_bytes })
            }
            "th" => set(&mut self.threads, name, number, Threads::read(line)?),
            "ra" => set(&mut self.read_ahead, name, number, numbers(line, 1)?),
            "net" => set(&mut self.net, name, number, Net::read(line)?),
            "rpc" => {
                let [calls, bad, bad_format, bad_authentication, bad_client] =
                    first(&numbers(line, 5)?);
                let rpc = Rpc { calls, bad, bad_format, bad_authentication, bad_client };
                set(&mut self.rpc, name, number, rpc)
            }
            "proc2" => set(&mut self.v2, name, number, rpc::procedures(line, Version::V2)?),
            "proc3" => set(&mut self.v3, name, number, rpc::procedures(line, Version::V3)?),
            "proc4" => set(&mut self.v4, name, number, rpc::procedures(line, Version::V4)?),
            "proc4ops" => set(&mut self.v4_operations, name, number, counted(line, name)?),
            "wdeleg_getattr" => {
                let [count] = first(&numbers(line, 1)?);
                set(&mut self.delegation_getattrs, name, number, count)
            }
            _ => Ok(()),
        }
    }
}

impl Threads {
    fn read(line: &mut Line<'_>) -> Result<Self, Problem> {
        let (threads, all_busy) = (line.number()?, line.number()?);
        let mut busy_s = Vec::new();
        while let Some(word) = line.next() {
            let seconds = word.text.parse().ok().filter(|seconds: &f64| seconds.is_finite());
            let seconds = seconds.ok_or_else(|| word.unexpected("a number of seconds"))?;
            if busy_s.len() == NUMBERS_MAX {
                let wrong = Wrong::TooMany { what: "numbers in a line", max: NUMBERS_MAX };
                return Err(word.wrong(wrong));
            }
            busy_s.push(seconds);
        }
        Ok(Self { threads, all_busy, busy_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "rc 17 29 5000\nfh 3 0 0 0 0\nio 1000 2000\n\
        th 8 7 0.5 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.250\n\
        ra 32 0 0 0 0 0 0 0 0 0 0 9\nnet 18628 0 18628 6\nrpc 18600 1 2 3 4\n\
        proc2 18 2 69 0 0 4410 0 0 0 0 0 0 0 0 0 0 0 99 2\n\
        proc3 22 2 112 0 2719 111 0 0 0 0 0 0 0 0 0 0 0 27 216 0 2 1 0\nproc4 2 2 10853\n\
        proc4ops 4 0 0 0 12\nwdeleg_getattr 3\nnew 1 2 3\n";

    #[test]
    fn a_servers_counters_are_read() {
        let server = read(FILE.as_bytes()).unwrap();
        assert_eq!(server.reply_cache.unwrap().uncached, 5_000);
        assert_eq!((server.stale_handles, server.delegation_getattrs), (Some(3), Some(3)));
        assert_eq!(server.io.unwrap().written_bytes, 2_000);
        let threads = server.threads.unwrap();
        assert_eq!((threads.threads, threads.all_busy, threads.busy_s[9]), (8, 7, 0.25));
        assert_eq!(server.rpc.unwrap().bad_client, 4);
        assert_eq!(server.v3.unwrap().total(), 3_190);
        assert_eq!(server.v4.unwrap().named().last(), Some(("compound", 10_853)));
        assert_eq!(server.v4_operations.unwrap()[3], 12);
        assert_eq!(server.read_ahead.unwrap()[11], 9);
    }

    #[test]
    fn what_is_broken_has_its_place() {
        let problem =
            |from: &str, to: &str| read(FILE.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(problem("th 8 7 0.5", "th 8 7 inf").starts_with("line 4, column 8: \"inf\""));
        assert!(problem("rc 17 29 5000", "rc 17").contains("rc has 1 numbers; at least 3"));
        assert!(problem("io 1000 2000", "fh 1").contains("line 3, column 1: fh comes a second"));
        assert!(problem("proc4ops 4", "proc4ops 5").contains("proc4ops has 4 numbers"));
        assert!(read(b"").unwrap_err().to_string().contains("no NFS counters"));
    }
}
