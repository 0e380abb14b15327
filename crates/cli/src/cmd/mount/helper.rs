//! `mount.nfskit SOURCE DIR [-sfnvrw] [-N NAMESPACE] [-t TYPE] [-o WORDS]`: how mount(8) calls the
//! helper of a type that it does not know. What is mounted it knows as `fuse.nfskit`, and so calls
//! `mount.fuse.nfskit` to remount it; without one of that name it calls fuse3's helper, which looks
//! for a program `nfskit` in the PATH of whoever calls, and does not find there what it looks for.

use std::ffi::OsString;

use clap::Parser;
use harness::exit::Failure;
use harness::mounts::settings::{Settings, split};
use harness::verbosity::Verbosity;

/// What mount(8) asks for.
#[derive(Debug, Default, Eq, PartialEq)]
struct Request {
    places: Vec<String>,
    words: Vec<String>,
    /// Unknown words are to be passed over.
    is_sloppy: bool,
    /// Only looks whether it could be done.
    is_fake: bool,
    is_verbose: bool,
}

/// The names under which mount(8) looks for it.
const NAMES: [&str; 2] = ["mount.nfskit", "mount.fuse.nfskit"];

/// What holds if nothing else is said (`defaults` of mount(8)): it passes on `nosuid` and `nodev`,
/// also for `user`, and never their opposites.
const DEFAULTS: [&str; 2] = ["suid", "dev"];

/// Runs as the helper, if that is the name we were called by.
pub(crate) fn run_if_called() -> Option<Result<(), Failure>> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    let name = std::path::Path::new(&name).file_name()?.to_str()?.to_owned();
    NAMES.contains(&name.as_str()).then(|| run(arguments))
}

fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    let usage = |what: String| {
        Failure::environment(
            what,
            "mount.nfskit URL DIR [-o WORDS]; `nfskit mount --help` has the words",
        )
    };
    let words: Option<Vec<String>> = arguments.map(|word| word.into_string().ok()).collect();
    let words = words.ok_or_else(|| usage("an argument is not UTF-8".to_owned()))?;
    let mut request = read(&words).map_err(usage)?;
    let [source, dir] = &request.places[..] else {
        return Err(usage("a URL and a directory are wanted".to_owned()));
    };
    let mut settings = Settings::of(source).map_err(usage)?;
    if request.is_sloppy {
        request.words.retain(|word| settings.word(word).is_ok());
    }
    let mut line = vec!["mount".to_owned(), "--background".to_owned()];
    if request.is_verbose {
        line.push("--verbose".to_owned());
    }
    let defaults = DEFAULTS.iter().map(|word| (*word).to_owned());
    let words: Vec<String> = defaults.chain(request.words).collect();
    line.extend(["-o".to_owned(), words.join(",")]);
    line.extend(["--".to_owned(), source.clone(), dir.clone()]);
    let whole = std::iter::once("nfskit").chain(line.iter().map(String::as_str));
    let parsed = crate::args::Args::try_parse_from(whole)
        .map_err(|error| usage(error.to_string().lines().next().unwrap_or_default().to_owned()))?;
    let crate::args::Command::Mount(args) = parsed.command else {
        return Err(usage("it is no mount".to_owned()));
    };
    if request.is_fake {
        return super::look(&args);
    }
    // The option that makes it the one that stays comes before the places.
    let before = line.len() - 3;
    let (options, places) = line.split_at(before);
    super::run_with(&args, Verbosity::Normal, || {
        let options = options.iter().map(OsString::from);
        let places = places.iter().map(OsString::from);
        options.chain([OsString::from("--detached")]).chain(places).collect()
    })
}

fn read(words: &[String]) -> Result<Request, String> {
    let mut request = Request::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            request.places.push(word.clone());
            continue;
        };
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            match letter {
                's' => request.is_sloppy = true,
                'f' => request.is_fake = true,
                'v' => request.is_verbose = true,
                'n' => {}
                'r' => request.words.push("ro".to_owned()),
                'w' => request.words.push("rw".to_owned()),
                'o' | 't' | 'N' => {
                    let here = letters.as_str().to_owned();
                    letters = "".chars();
                    let value = if here.is_empty() { rest.next().cloned() } else { Some(here) };
                    let value = value.ok_or_else(|| format!("-{letter} wants a value"))?;
                    match letter {
                        'o' => request.words.extend(split(&value)),
                        'N' => return Err("-N: name spaces are entered with nsenter(1)".to_owned()),
                        _ => {}
                    }
                }
                _ => return Err(format!("unknown option -{letter}; known are -sfnvrw, -o, -t")),
            }
        }
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request, String> {
        read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn it_is_called_as_mount_calls() {
        let read = request("nfs://h/x /mnt -sv -o rw,noatime,_netdev").unwrap();
        assert_eq!(read.places, ["nfs://h/x", "/mnt"]);
        assert_eq!(read.words, ["rw", "noatime", "_netdev"]);
        assert!(read.is_sloppy && read.is_verbose && !read.is_fake);
        let read = request("-r -oactimeo=5 -t nfskit h:/x /mnt -f -n").unwrap();
        assert_eq!(read.words, ["ro", "actimeo=5"]);
        assert_eq!(read.places, ["h:/x", "/mnt"]);
        assert!(read.is_fake);
    }

    #[test]
    fn the_package_has_a_link_of_every_name() {
        let script = include_str!("../../../../../packaging/build.sh");
        for name in NAMES {
            let link = format!("ln -s ../bin/nfskit \"$root/usr/sbin/{name}\"\n");
            assert!(script.contains(&link), "{name}");
        }
    }

    #[test]
    fn what_it_does_not_know_is_named() {
        assert!(request("h:/x /mnt -q").unwrap_err().contains("-q"));
        assert!(request("h:/x /mnt -o").unwrap_err().contains("wants a value"));
        assert!(request("h:/x /mnt -N 5").unwrap_err().contains("nsenter"));
    }
}
