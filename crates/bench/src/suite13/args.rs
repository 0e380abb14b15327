//! The arguments of `nfskit bench suite13`.

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};
use client::url::Target;
use harness::values::{count, target, whole};
use load::suite13::Test;

/// Thirteen tests of a client's caches, on several places side by side.
///
/// The tests of a paper of 1997 on caching files on the client's disk: the five phases of the
/// Andrew benchmark, large files and directories, small reads and writes; each alone, then four
/// copies at once. Elapsed time, and the calls of each procedure where a place is NFS. A nfs://
/// URL is mounted through our own client (FUSE) for the time of the run; all else is a directory.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench suite13 --compare local=/tmp kernel=/mnt/nfs nfskit=nfs://server/export
  nfskit bench suite13 --compare a=nfs://server/export b=nfs://server/export?version=2 --copies 1
  nfskit bench suite13 --compare local=/tmp nfskit=nfs://server/export --test 8,9 --caches warm
  nfskit bench suite13 --compare ours=nfs://server/export kept=nfs://server/export \
      --cached kept=/var/cache/nfskit
  nfskit bench suite13 --compare nfskit=nfs://server/export --scale 0.1 --repeats 1   a quick look

Tests: 1 make directories, 2 copy files, 3 stat, 4 read and search, 5 build, 6 untar, 7 list, 8 read
a big file, 9 read it again, 10 copy a big file, 11 read at random, 12 small writes, 13 small reads
and writes.")]
pub struct Suite13 {
    /// Places to compare, each with a name: directories, and servers. The others are compared with
    /// the first.
    #[arg(long, value_name = "NAME=PATH|URL", required = true, num_args = 1..)]
    #[arg(value_parser = place)]
    pub(crate) compare: Vec<Place>,
    /// Only these tests; what they need of others is done before, and does not count.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = test)]
    pub(crate) test: Vec<Test>,
    /// Copies at once, or a list: all tests with the first number, then all with the next.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,4")]
    #[arg(value_parser = count(1..=64))]
    pub(crate) copies: Vec<u32>,
    /// Runs of everything; places take turns.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count(1..=1000))]
    pub(crate) repeats: u32,
    /// Share of the paper's sizes and numbers, from 0.01 to 10.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,
    /// What all files are made from.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// What caches have before each test, but for the ninth.
    #[arg(long, value_enum, default_value_t = Caches::Cold)]
    pub(crate) caches: Caches,
    /// With cold caches, drops those of the whole system (for root).
    #[arg(long)]
    pub(crate) drop_caches: bool,
    /// Does not flush what a test has written (syncfs) in the time that counts.
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Compares tests that write also where what was written does not survive the same things.
    #[arg(long)]
    pub(crate) mix_durability: bool,
    /// Options of our mounts, as of `nfskit mount -o`.
    #[arg(short = 'o', long, value_name = "OPTIONS", default_value = "")]
    pub(crate) options: String,
    /// Mounts the place of this name with a cache in this directory (`nfskit mount --cache`), which
    /// lives on when it is mounted anew.
    #[arg(long, value_name = "NAME=DIR", value_parser = cached)]
    pub(crate) cached: Vec<(String, String)>,
    /// More options of single places, by name.
    #[arg(skip)]
    pub(crate) own: Vec<(String, String)>,
    /// Writes every run of every test as CSV to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Writes the run record to FILE, or to standard output with `-`; a list of them for several
    /// places or numbers of copies.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Suite13 {
    /// The options of the mount of a place.
    pub(crate) fn options_of(&self, place: &Place) -> String {
        let is_its = |(name, _): &&(String, String)| *name == place.name;
        let own = self.own.iter().filter(is_its).map(|(_, words)| words.clone());
        let cached = self.cached.iter().filter(is_its).map(|(_, dir)| format!("cache={dir}"));
        let words = std::iter::once(self.options.clone()).chain(own).chain(cached);
        words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(",")
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Caches {
    /// Nothing, as far as that is to be had: a mount of ours is made anew, pages of files are
    /// dropped.
    Cold,
    /// What is left when 8 MB of other files were read, as in the paper.
    Paper,
    /// What tests before have left.
    Warm,
    /// As cold, before the ninth, too: what is still known then lies on a disk (--cached).
    Restart,
}

/// One of the places.
#[derive(Clone, Debug)]
pub struct Place {
    pub(crate) name: String,
    pub(crate) at: At,
}

#[derive(Clone, Debug)]
pub enum At {
    Dir(PathBuf),
    /// As it was given, and as it is understood.
    Server(String, Target),
}

fn place(text: &str) -> Result<Place, String> {
    let form = || {
        format!(
            "{text:?} is not NAME=PATH or NAME=URL, such as local=/tmp or a=nfs://server/export"
        )
    };
    let (name, at) = text.split_once('=').ok_or_else(form)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    if name.is_empty() || name.len() > 16 || !name.chars().all(is_name) || at.is_empty() {
        return Err(format!("{}; a name has up to 16 letters, digits, -, _ and .", form()));
    }
    // HOST:/EXPORT, unless a directory is named so; a path with a slash before is a directory.
    let is_plain = at.split_once(":/").is_some_and(|(host, _)| !host.contains('/'));
    let at = match at.contains("://") || is_plain && !Path::new(at).exists() {
        true => At::Server(at.to_owned(), target(at)?),
        false => At::Dir(PathBuf::from(at)),
    };
    Ok(Place { name: name.to_owned(), at })
}

fn cached(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, dir)) if !name.is_empty() && !dir.is_empty() && !dir.contains(',') => {
            Ok((name.to_owned(), dir.to_owned()))
        }
        _ => {
            Err(format!("{text:?} is not NAME=DIR, such as kept=/var/cache/nfskit, without commas"))
        }
    }
}

pub(crate) fn test(text: &str) -> Result<Test, String> {
    let number = text.trim().parse().ok();
    number.and_then(Test::of).ok_or_else(|| format!("there is no test {text:?}: they are 1 to 13"))
}

pub(crate) fn scale(text: &str) -> Result<f64, String> {
    let scale: Option<f64> = text.parse().ok();
    scale
        .filter(|scale| (0.01..=10.0).contains(scale))
        .ok_or_else(|| format!("{text:?} is no share between 0.01 and 10"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_name_and_is_a_directory_or_a_server() {
        let read = |text: &str| place(text).map(|place| (place.name, place.at));
        assert!(matches!(read("local=/tmp/x=y"), Ok((name, At::Dir(_))) if name == "local"));
        let read_server = read("a-1=nfs://server/export?version=2").unwrap();
        assert!(matches!(read_server.1, At::Server(url, _) if url.ends_with("version=2")));
        assert!(matches!(read("a=server:/export"), Ok((_, At::Server(..)))));
        assert!(matches!(read("a=[::1]:/export"), Ok((_, At::Server(..)))));
        assert!(matches!(read("a=./server:/export"), Ok((_, At::Dir(_)))));
        for wrong in ["", "/tmp", "=/tmp", "a=", "a b=/tmp", "a=http://x/y", "averyveryverylong=/"]
        {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tests_and_shares_have_their_range() {
        assert_eq!(test("13"), Ok(Test::SmallReadsAndWrites));
        for wrong in ["0", "14", "x", "-1", ""] {
            assert!(test(wrong).unwrap_err().contains("1 to 13"));
        }
        assert_eq!(scale("0.5"), Ok(0.5));
        for wrong in ["0", "0.001", "11", "nan", "x"] {
            assert!(scale(wrong).is_err());
        }
    }
}
