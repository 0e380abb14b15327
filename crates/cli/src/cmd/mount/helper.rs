//! `mount.nfskit SOURCE DIR [-sfnvrw] [-N NAMESPACE] [-t TYPE] [-o WORDS]`: how mount(8) calls the
//! helper of a type that it does not know. What is mounted it knows as `fuse.nfskit`, and so calls
//! `mount.fuse.nfskit` to remount it; without one of that name it calls fuse3's helper, which looks
//! for a program `nfskit` in the PATH of whoever calls, and does not find there what it looks for.

use std::ffi::OsString;

use clap::Parser;
use harness::exit::Failure;
use harness::mounts::settings::{Settings, split};
use harness::verbosity::Verbosity;

use super::Args;
use crate::args::Command;

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

/// The defaults (`defaults` of mount(8)): it passes on `nosuid` and `nodev`, also for `user`, and
/// never their opposites.
const DEFAULTS: [&str; 2] = ["suid", "dev"];

/// Runs as the helper, if that is the name we were called by.
pub(crate) fn run_if_called() -> Option<Result<(), Failure>> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    let name = std::path::Path::new(&name).file_name()?.to_str()?.to_owned();
    NAMES.contains(&name.as_str()).then(|| run(arguments))
}

fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    let words: Option<Vec<String>> = arguments.map(|word| word.into_string().ok()).collect();
    let words = words.ok_or_else(|| usage("an argument is not UTF-8".to_owned()))?;
    let request = Request::read(&words).map_err(usage)?;
    let (options, places) = request.command_line().map_err(usage)?;
    let args = parsed(&[options.clone(), places.clone()].concat())?;
    if request.is_fake {
        return super::look(&args);
    }
    // The option that makes it the one that stays comes before the places.
    super::run_with(&args, Verbosity::Normal, || {
        let line = options.into_iter().chain(["--detached".to_owned()]).chain(places);
        line.map(OsString::from).collect()
    })
}

fn usage(what: String) -> Failure {
    let form = "mount.nfskit URL DIR [-o WORDS]; `nfskit mount --help` has the words";
    Failure::environment(what, form)
}

/// The arguments of `nfskit mount` in a command line of it.
fn parsed(line: &[String]) -> Result<Args, Failure> {
    let whole = std::iter::once("nfskit").chain(line.iter().map(String::as_str));
    let wrong =
        |error: clap::Error| usage(error.to_string().lines().next().unwrap_or_default().to_owned());
    match crate::args::Args::try_parse_from(whole).map_err(wrong)?.command {
        Command::Mount(args) => Ok(args),
        _ => Err(usage("it is no mount".to_owned())),
    }
}

impl Request {
    fn read(words: &[String]) -> Result<Self, String> {
        let mut request = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                Some(letters) => request.letters(letters, &mut rest)?,
                None => request.places.push(word.clone()),
            }
        }
        Ok(request)
    }

    /// Letters of options behind one hyphen; a value stands behind its letter or in the next word.
    fn letters<'a>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), String> {
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            match letter {
                's' => self.is_sloppy = true,
                'f' => self.is_fake = true,
                'v' => self.is_verbose = true,
                'n' => {}
                'r' => self.words.push("ro".to_owned()),
                'w' => self.words.push("rw".to_owned()),
                'o' | 't' | 'N' => {
                    let here = Some(letters.as_str().to_owned()).filter(|here| !here.is_empty());
                    let value = here.or_else(|| rest.next().cloned());
                    let value = value.ok_or_else(|| format!("-{letter} wants a value"))?;
                    return self.value(letter, &value);
                }
                _ => return Err(format!("unknown option -{letter}; known are -sfnvrw, -o, -t")),
            }
        }
        Ok(())
    }

    fn value(&mut self, letter: char, value: &str) -> Result<(), String> {
        match letter {
            'o' => self.words.extend(split(value)),
            'N' => return Err("-N: name spaces are entered with nsenter(1)".to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// The options and the places of `nfskit mount`.
    fn command_line(&self) -> Result<(Vec<String>, Vec<String>), String> {
        let [source, dir] = &self.places[..] else {
            return Err("a URL and a directory are wanted".to_owned());
        };
        let mut settings = Settings::of(source)?;
        let mut is_known = |word: &&String| !self.is_sloppy || settings.word(word).is_ok();
        let words = self.words.iter().filter(|word| is_known(word)).map(String::as_str);
        let words: Vec<&str> = DEFAULTS.into_iter().chain(words).collect();
        let mut options = vec!["mount".to_owned(), "--background".to_owned()];
        options.extend(self.is_verbose.then(|| "--verbose".to_owned()));
        options.extend(["-o".to_owned(), words.join(",")]);
        Ok((options, vec!["--".to_owned(), source.clone(), dir.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request, String> {
        Request::read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
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
