//! Where counters are read: the files of this host, or copies of them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use counters::host::clock::Clock;
use counters::problem::Wrong;
use counters::{Problem, client, mountstats, pools, server};
use thiserror::Error;

use crate::sample::Sample;

/// Bytes of one file, at most: a host with a thousand mounts has a tenth of that.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Where to look.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// This host.
    Here,
    /// A copy of /proc, or of some of its files, or one file.
    Saved(PathBuf),
}

/// A file that was passed over.
#[derive(Debug, Error)]
#[error("{}: {why}", path.display())]
pub struct Ignored {
    pub path: PathBuf,
    pub why: Why,
}

/// Why it was.
#[derive(Debug, Error)]
pub enum Why {
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    #[error("{0}")]
    Broken(#[from] Problem),
    #[error("it is no regular file")]
    NoFile,
    #[error("it has more than {FILE_BYTES_MAX} bytes")]
    TooLong,
    #[error("it is neither mountstats, /proc/net/rpc/nfs, /proc/net/rpc/nfsd nor pool_stats")]
    Unknown,
    #[error("none of its files are counters of NFS: self/mountstats, net/rpc/nfs, net/rpc/nfsd")]
    Nothing,
}

/// Names of one file, the likeliest first.
type Names = &'static [&'static str];

const MOUNTSTATS: Names = &["self/mountstats", "proc/self/mountstats", "mountstats"];
const CLIENT: Names = &["net/rpc/nfs", "proc/net/rpc/nfs", "nfs"];
const SERVER: Names = &["net/rpc/nfsd", "proc/net/rpc/nfsd", "nfsd"];
const POOLS: Names = &["fs/nfsd/pool_stats", "proc/fs/nfsd/pool_stats", "pool_stats"];
const UPTIME: Names = &["uptime", "proc/uptime"];
const STAT: Names = &["stat", "proc/stat"];

impl Place {
    /// Reads what is there, and lists what was passed over. What is not there at all is no problem
    /// here: a host may be no client, or no server.
    pub fn read(&self) -> (Sample, Vec<Ignored>) {
        let mut ignored = Vec::new();
        let sample = match self {
            Self::Here => read_folder(Path::new("/proc"), &mut ignored),
            Self::Saved(path) => match fs::metadata(path) {
                Ok(found) if found.is_dir() => {
                    let sample = read_folder(path, &mut ignored);
                    if sample.is_empty() && ignored.is_empty() {
                        ignored.push(Ignored { path: path.clone(), why: Why::Nothing });
                    }
                    sample
                }
                Ok(_) => read_file(path, &mut ignored),
                Err(why) => {
                    ignored.push(Ignored { path: path.clone(), why: why.into() });
                    Sample::default()
                }
            },
        };
        (sample, ignored)
    }
}

fn read_folder(folder: &Path, ignored: &mut Vec<Ignored>) -> Sample {
    let mut text = |names| find(folder, names, ignored, |text| Ok(text.to_vec()));
    let (uptime, stat) = (text(UPTIME), text(STAT));
    Sample {
        mounts: find(folder, MOUNTSTATS, ignored, mountstats::read),
        client: find(folder, CLIENT, ignored, client::read),
        server: find(folder, SERVER, ignored, server::read),
        pools: find(folder, POOLS, ignored, pools::read).unwrap_or_default(),
        clock: Clock::read(uptime.as_deref(), stat.as_deref()),
    }
}

/// The first of these files that is there.
fn find<T>(
    folder: &Path,
    names: Names,
    ignored: &mut Vec<Ignored>,
    parse: impl Fn(&[u8]) -> Result<T, Problem>,
) -> Option<T> {
    for name in names {
        let path = folder.join(name);
        let why = match bytes(&path) {
            Ok(bytes) => match parse(&bytes) {
                Ok(read) => return Some(read),
                Err(problem) => problem.into(),
            },
            Err(Why::Unreadable(cause)) if is_absent(&cause) => continue,
            // A folder of that name is somebody else's.
            Err(Why::NoFile) => continue,
            Err(why) => why,
        };
        ignored.push(Ignored { path, why });
        return None;
    }
    None
}

/// One file, recognized by its content.
fn read_file(path: &Path, ignored: &mut Vec<Ignored>) -> Sample {
    let mut sample = Sample::default();
    if let Err(why) = bytes(path).and_then(|bytes| take(&mut sample, &bytes)) {
        ignored.push(Ignored { path: path.to_owned(), why });
    }
    sample
}

fn take(sample: &mut Sample, bytes: &[u8]) -> Result<(), Why> {
    let known = |problem: &Problem| problem.wrong != Wrong::Nothing;
    match mountstats::read(bytes) {
        Ok(mounts) => sample.mounts = Some(mounts),
        Err(problem) if known(&problem) => return Err(problem.into()),
        // What only servers have distinguishes their file from that of clients.
        Err(_) if pools::read(bytes).is_ok() => sample.pools = pools::read(bytes)?,
        Err(_) if is_servers(bytes) => sample.server = Some(server::read(bytes)?),
        Err(_) => match client::read(bytes) {
            Ok(client) => sample.client = Some(client),
            Err(problem) if known(&problem) => return Err(problem.into()),
            Err(_) => return Err(Why::Unknown),
        },
    }
    Ok(())
}

fn is_servers(bytes: &[u8]) -> bool {
    let begins = |line: &[u8]| line.starts_with(b"rc ") || line.starts_with(b"th ");
    bytes.split(|byte| *byte == b'\n').any(begins)
}

/// The whole of a file, opened only if reading it cannot wait for somebody.
fn bytes(path: &Path) -> Result<Vec<u8>, Why> {
    if !fs::metadata(path)?.is_file() {
        return Err(Why::NoFile);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    (bytes.len() as u64 <= FILE_BYTES_MAX).then_some(bytes).ok_or(Why::TooLong)
}

fn is_absent(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NFSD: &str = "rc 1 2 3\nrpc 6 0 0 0 0\n";
    const NFS: &str = "rpc 6 1 0\n";

    fn saved(path: &Path) -> (Sample, Vec<String>) {
        let (sample, ignored) = Place::Saved(path.to_owned()).read();
        (sample, ignored.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_copied_tree_is_read_wherever_its_top_is() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("proc/net/rpc")).unwrap();
        fs::write(tree.path().join("proc/net/rpc/nfsd"), NFSD).unwrap();
        fs::write(tree.path().join("proc/uptime"), "12.5 20.0\n").unwrap();
        for top in [tree.path().to_owned(), tree.path().join("proc")] {
            let (sample, ignored) = saved(&top);
            assert_eq!(sample.server.unwrap().rpc.unwrap().calls, 6);
            assert_eq!((sample.clock.up_s, sample.mounts), (Some(12.5), None));
            assert!(ignored.is_empty());
        }
    }

    #[test]
    fn a_file_tells_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join("file");
            fs::write(&path, text).unwrap();
            saved(&path)
        };
        assert!(read(NFSD).0.server.is_some() && read(NFS).0.client.is_some());
        assert!(read("# pool packets-arrived\n0 1\n").0.pools.len() == 1);
        let none = read("device proc mounted on /proc with fstype proc\n").0;
        assert_eq!(none.mounts, Some(Vec::new()));
        let (_, ignored) = read("hello\n");
        assert!(ignored[0].contains("it is neither mountstats"), "{ignored:?}");
        let (_, ignored) = read("rc 1\n");
        assert!(ignored[0].contains("line 1, column 5: rc has 1 numbers"), "{ignored:?}");
    }

    #[test]
    fn what_cannot_be_read_is_reported_and_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let (sample, ignored) = saved(folder.path());
        assert!(sample.is_empty() && ignored[0].contains("none of its files"), "{ignored:?}");
        let (_, ignored) = saved(&folder.path().join("none"));
        assert!(ignored[0].contains("No such file"), "{ignored:?}");
        let (_, ignored) = saved(Path::new("/dev/zero"));
        assert!(ignored[0].contains("no regular file"), "{ignored:?}");
        fs::write(folder.path().join("mountstats"), "device a mounted on").unwrap();
        fs::write(folder.path().join("nfs"), NFS).unwrap();
        let (sample, ignored) = saved(folder.path());
        assert!(sample.client.is_some() && ignored.len() == 1, "{ignored:?}");
    }
}
