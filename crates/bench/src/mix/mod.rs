//! `--mix WORD`: which mix of operations a workload is made of.
//!
//! | word | mix |
//! |---|---|
//! | `laddis`, `sfs97-v3` ... | a benchmark's, by its name |
//! | `getattr`, `read` ... | this operation and no other |
//! | `nfsd` | what the kernel's server of this host has served since it started |
//! | `mountstats`, `mountstats:/mnt` | what all its NFS mounts, or this one, have called |
//! | `-` | what standard input holds, as in a file |
//! | anything else | a file, recognised by its content |
//!
//! A file is a mix (`load::mix::listing`), counters of a kernel, what nfsstat prints, or a capture.
//! Counters say on how many calls a mix rests, and what was left out of it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use client::url::Version;
use counters::nfsstat::{self, Section, Side};
use counters::{self, Procedures, mountstats, server};
use harness::exit::Failure;
use harness::hints;
use load::error::Error as LoadError;
use load::mix::table::{MIXES, Sureness};
use load::mix::{Mix, Operation, listing};

/// Where the kernel's server counts.
const NFSD: &str = "/proc/net/rpc/nfsd";
/// Where its client does, for each mount.
const MOUNTSTATS: &str = "/proc/self/mountstats";

/// A text that is longer than this is none of ours.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Fewer calls than this make no mix: one of them would be a percent and more.
const CALLS_MIN: u64 = 100;

/// What failed. Where there is no room for the files, the advice is the command's own option: what
/// makes them `fewer`.
pub(crate) fn failure(error: LoadError, fewer: &str) -> Failure {
    match error {
        LoadError::NoRoom { .. } => Failure::environment(
            error,
            format!("free space on the server, another export, or {fewer}"),
        ),
        error => error.into(),
    }
}

/// The mix that a word stands for, in this version or in whichever it is of.
///
/// # Errors
/// There is none, it cannot be read, or it holds what the version has no procedure for. The message
/// names file, line and column.
pub(crate) fn read(word: &str, version: Option<Version>) -> Result<Mix, Failure> {
    let named = MIXES.into_iter().find(|mix| mix.name.eq_ignore_ascii_case(word));
    let mix = match named.or_else(|| single(word)) {
        Some(mix) => mix,
        None => of_source(word, version)?,
    };
    match version.and_then(|version| Some((version, mix.lacking(version)?))) {
        None => Ok(mix),
        Some((version, operation)) => Err(Failure::usage(
            format!("mix {mix}: NFS version {} has no {operation}", version.number()),
            "?version=3 in the URL, or a mix of that version: laddis, sfs97-v2",
        )),
    }
}

/// Nothing but the operation of this name.
fn single(word: &str) -> Option<Mix> {
    let operation: Operation = word.parse().ok()?;
    let name = operation.name().to_owned();
    let source = "one operation, to load one part of a server".to_owned();
    Some(Mix::leaked(name, &[(operation, 100.0)], Sureness::Given, source))
}

fn of_source(word: &str, version: Option<Version>) -> Result<Mix, Failure> {
    let name = || word.to_owned();
    if word == "nfsd" {
        let text = of_system(Path::new(NFSD), "a host where nfsd runs, or a copy of its file")?;
        return of_server(name(), &text, NFSD, version);
    }
    if let Some(rest) = word.strip_prefix("mountstats")
        && (rest.is_empty() || rest.starts_with(':'))
    {
        let text = of_system(Path::new(MOUNTSTATS), "a host that mounts something with NFS")?;
        return of_mounts(name(), &text, MOUNTSTATS, rest.strip_prefix(':'), version);
    }
    let shown = if word == "-" { "standard input" } else { word };
    let opened: std::io::Result<Box<dyn Read>> = match word {
        "-" => Ok(Box::new(std::io::stdin())),
        _ => File::open(word).map(|file| Box::new(file) as Box<dyn Read>),
    };
    match opened.and_then(|mut file| Ok((head(&mut file)?, file))) {
        // It may be long, and is read piece by piece.
        Ok((head, file)) if trace::mix::is_capture(&head) => {
            of_capture(name(), shown, Box::new(std::io::Cursor::new(head).chain(file)), version)
        }
        Ok((head, file)) => match bounded(head.as_slice().chain(file)) {
            Ok(text) => of_text(name(), &text, shown, version),
            Err(cause) => Err(unreadable(shown, &cause)),
        },
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let known = MIXES.map(|mix| mix.name).join(", ");
            Err(Failure::usage(
                format!("unknown mix {word:?}: there is no file of that name either"),
                format!("{known}, the name of an operation, nfsd, mountstats, or a file"),
            ))
        }
        Err(cause) => Err(unreadable(shown, &cause)),
    }
}

fn unreadable(shown: &str, cause: &std::io::Error) -> Failure {
    Failure::environment(format!("cannot read {shown}: {cause}"), hints::reading(cause))
}

/// The first bytes, from which a capture is recognised.
fn head(file: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(4).read_to_end(&mut head)?;
    Ok(head)
}

/// A file of the system's.
fn of_system(path: &Path, advice: &str) -> Result<Vec<u8>, Failure> {
    File::open(path).and_then(bounded).map_err(|cause| {
        Failure::environment(format!("cannot read {}: {cause}", path.display()), advice)
    })
}

fn bounded(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(TEXT_BYTES_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > TEXT_BYTES_MAX {
        false => Ok(text),
        true => Err(std::io::Error::new(
            ErrorKind::FileTooLarge,
            format!("longer than {} MiB, and no capture", TEXT_BYTES_MAX >> 20),
        )),
    }
}

/// Recognises what it is.
fn of_text(
    name: String,
    text: &[u8],
    file: &str,
    version: Option<Version>,
) -> Result<Mix, Failure> {
    let lossy = String::from_utf8_lossy(text);
    let begins = |tags: &[&str]| {
        lossy.lines().take(1_000).any(|line| {
            let mut words = line.split_whitespace();
            let is_tag = words.next().is_some_and(|word| tags.contains(&word));
            is_tag && words.next().is_some_and(|word| word.parse::<u64>().is_ok())
        })
    };
    if lossy.lines().any(|line| line.contains(" mounted on ") && line.contains(" with fstype ")) {
        of_mounts(name, text, file, None, version)
    } else if begins(&["rc", "fh", "th", "io", "proc4ops"]) {
        of_server(name, text, file, version)
    } else if begins(&["proc2", "proc3", "proc4"]) {
        of_client(name, text, file, version)
    } else if nfsstat::is_likely(&lossy) {
        of_nfsstat(name, text, file, version)
    } else {
        of_listing(name, text, file, version)
    }
}

/// Calls that were seen on the wire.
fn of_capture(
    name: String,
    file: &str,
    reader: Box<dyn Read>,
    version: Option<Version>,
) -> Result<Mix, Failure> {
    let (counts, notes) = trace::mix::mix(file, reader).map_err(Failure::from)?;
    let counted = counts.and_then(|counts| {
        let version = counters::Version::of(counts.version.into())?;
        let calls = |number: u32| {
            let own = counts.procedures.iter().filter(move |(code, ..)| *code == number);
            own.map(|(.., calls)| calls).sum()
        };
        let calls = (0..).zip(version.names()).map(|(number, _)| calls(number)).collect();
        Some(Procedures { version, calls })
    });
    let counted = counted.into_iter().collect();
    let notes = notes.iter().map(ToString::to_string).collect();
    Counted { name, file, who: "a capture", counted, v4: 0, notes }.mix(version)
}

fn of_listing(
    name: String,
    text: &[u8],
    file: &str,
    version: Option<Version>,
) -> Result<Mix, Failure> {
    let shares = listing::read(text, version).map_err(|error| {
        Failure::usage(
            format!("{file}: {error}"),
            "a line for each operation, such as `getattr 26`, which sum to 100",
        )
    })?;
    Ok(Mix::leaked(name, &shares, Sureness::Given, format!("given in {file}")))
}

/// What is wrong with counters.
fn broken(file: &str) -> impl Fn(counters::Problem) -> Failure {
    move |problem| {
        let advice = "the whole of what the kernel or nfsstat prints, unchanged";
        Failure::usage(format!("{file}: {problem}"), advice)
    }
}

fn of_server(
    name: String,
    text: &[u8],
    file: &str,
    version: Option<Version>,
) -> Result<Mix, Failure> {
    let server = server::read(text).map_err(broken(file))?;
    let v4 = server.v4.map_or(0, |v4| v4.total());
    let counted = [server.v2, server.v3].into_iter().flatten().collect();
    Counted { name, file, who: "the kernel's server", counted, v4, notes: Vec::new() }.mix(version)
}

fn of_client(
    name: String,
    text: &[u8],
    file: &str,
    version: Option<Version>,
) -> Result<Mix, Failure> {
    let client = counters::client::read(text).map_err(broken(file))?;
    let v4 = client.v4.map_or(0, |v4| v4.total());
    let counted = [client.v2, client.v3].into_iter().flatten().collect();
    Counted { name, file, who: "the kernel's client", counted, v4, notes: Vec::new() }.mix(version)
}

fn of_nfsstat(
    name: String,
    text: &[u8],
    file: &str,
    version: Option<Version>,
) -> Result<Mix, Failure> {
    let sections = nfsstat::read(text).map_err(broken(file))?;
    // A host may be both; the side with more calls is what it is for.
    let of_side = |side: Option<Side>| -> (Vec<Procedures>, u64) {
        let sections = || sections.iter().filter(move |section| section.side == side);
        let counted = sections().filter_map(Section::procedures).collect();
        let v4 = sections().filter(|section| {
            section.version == Some(counters::Version::V4) && !section.is_inside_compound
        });
        let calls = v4.flat_map(|section| &section.values);
        let calls = calls.filter(|value| value.name != "total").map(|value| value.count);
        (counted, calls.fold(0, u64::saturating_add))
    };
    let sides = [
        (Some(Side::Server), "the server's side of nfsstat"),
        (Some(Side::Client), "the client's side of nfsstat"),
        (None, "nfsstat"),
    ];
    let total = |counted: &[Procedures]| counted.iter().map(Procedures::total).sum::<u64>();
    let sides = sides.map(|(side, who)| (of_side(side), who));
    let most = sides.into_iter().max_by_key(|((counted, _), _)| total(counted));
    let ((counted, v4), who) = most.unwrap_or_default();
    Counted { name, file, who, counted, v4, notes: Vec::new() }.mix(version)
}

fn of_mounts(
    name: String,
    text: &[u8],
    file: &str,
    point: Option<&str>,
    version: Option<Version>,
) -> Result<Mix, Failure> {
    let mounts = mountstats::read(text).map_err(broken(file))?;
    let chosen: Vec<&mountstats::Mount> = match point {
        None => mounts.iter().collect(),
        Some(point) => {
            let Some(mount) = mountstats::at(&mounts, point) else {
                let points: Vec<&str> = mounts.iter().map(|mount| mount.point.as_str()).collect();
                let advice = match points.is_empty() {
                    true => "a host that mounts something with NFS".to_owned(),
                    false => format!("one of {}", points.join(", ")),
                };
                return Err(Failure::usage(format!("{point} is no NFS mount of {file}"), advice));
            };
            vec![mount]
        }
    };
    let of = |version: counters::Version| {
        let of_version =
            || chosen.iter().filter(|mount| mount.version() == Some(version.number().into()));
        let calls = |name: &&str| {
            let calls = of_version().filter_map(|mount| mount.operation(name));
            calls.map(|operation| operation.calls).fold(0, u64::saturating_add)
        };
        Procedures { version, calls: version.names().iter().map(calls).collect() }
    };
    let v4 = chosen.iter().filter(|mount| mount.version() == Some(4));
    let v4 = v4.flat_map(|mount| &mount.operations).map(|operation| operation.calls);
    let v4 = v4.fold(0, u64::saturating_add);
    let counted = vec![of(counters::Version::V2), of(counters::Version::V3)];
    Counted { name, file, who: "the kernel's client", counted, v4, notes: Vec::new() }.mix(version)
}

/// Calls that somebody has counted.
#[derive(Debug, Default)]
pub(crate) struct Counted<'a> {
    pub(crate) name: String,
    pub(crate) file: &'a str,
    pub(crate) who: &'a str,
    /// Of versions 2 and 3.
    pub(crate) counted: Vec<Procedures>,
    /// Of version 4, which are no part of a mix.
    pub(crate) v4: u64,
    /// Further remarks.
    pub(crate) notes: Vec<String>,
}

/// The calls of one version, as a mix takes them.
#[derive(Default)]
struct Weighed {
    weights: Vec<(Operation, f64)>,
    calls: u64,
    /// What a mix has no operation for.
    left_out: Vec<String>,
}

impl Weighed {
    fn of(procedures: &Procedures) -> Self {
        let mut weighed = Self::default();
        for (name, count) in procedures.named().filter(|(_, count)| *count > 0) {
            match name.parse::<Operation>() {
                Ok(operation) => {
                    weighed.weights.push((operation, count as f64));
                    weighed.calls = weighed.calls.saturating_add(count);
                }
                Err(_) => weighed.left_out.push(format!("{count} of {}", name.to_uppercase())),
            }
        }
        weighed
    }
}

impl Counted<'_> {
    /// The mix of the version that is wanted, or of the one with more calls.
    pub(crate) fn mix(self, version: Option<Version>) -> Result<Mix, Failure> {
        let Self { name, file, who, counted, v4, notes } = self;
        let is_wanted = |procedures: &&Procedures| {
            version.is_none_or(|version| version.number() == procedures.version.number())
        };
        let chosen = counted.iter().filter(is_wanted).max_by_key(|procedures| procedures.total());
        let wanted = match (chosen, version) {
            (Some(chosen), _) => chosen.version.to_string(),
            (None, Some(version)) => format!("version {}", version.number()),
            (None, None) => "versions 2 and 3".to_owned(),
        };
        let Weighed { weights, calls, mut left_out } = chosen.map(Weighed::of).unwrap_or_default();
        let others = counted.iter().filter(|other| {
            other.total() > 0 && chosen.is_none_or(|chosen| chosen.version != other.version)
        });
        left_out.extend(others.map(|other| format!("{} of {}", other.total(), other.version)));
        if v4 > 0 {
            left_out.push(format!("{v4} of version 4"));
        }
        let mut left_out = match left_out.is_empty() {
            true => String::new(),
            false => format!("; left out: calls {}", left_out.join(", ")),
        };
        for note in notes {
            left_out.push_str("; ");
            left_out.push_str(&note);
        }
        if calls < CALLS_MIN {
            let what = format!(
                "{file}: {who} has counted {calls} calls of {wanted}, and a mix rests on \
                 {CALLS_MIN} at least{left_out}"
            );
            return Err(Failure::usage(what, "counters of a busier time, or ?version= in the URL"));
        }
        let source = format!("{calls} calls of {wanted} that {who} has counted{left_out}");
        Ok(Mix::leaked(name, &weights, Sureness::Counted, source))
    }
}

#[cfg(test)]
mod tests;
