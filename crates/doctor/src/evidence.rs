//! What is known of a host: its counters at one time or two, and its settings.

use std::collections::BTreeSet;

use counters::client::Client;
use counters::mountstats::{self, Mount};
use counters::server::Server;
use counters::{Problem, client, partial, server};

use super::collect::{COUNTERS, Files, Note};

/// See the module's head.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Some time before the last; none where there is one sample only.
    pub first: Option<Sample>,
    pub last: Sample,
    /// What was passed over, and why.
    pub notes: Vec<Note>,
    /// Files that were of use.
    pub used: Vec<String>,
}

/// Counters at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Since the boot: the clock of samples.
    pub uptime_s: Option<f64>,
    /// Whether there was a list of mounts, be it empty.
    pub has_mounts: bool,
    pub mounts: Vec<Mount>,
    pub client: Option<Client>,
    pub server: Option<Server>,
}

impl Evidence {
    /// Reads what there is. Two folders that look like roots are two samples; a file that nobody
    /// knows is looked at for what it has in it.
    pub fn of(mut files: Files) -> Self {
        let mut evidence = Self { notes: std::mem::take(&mut files.notes), ..Self::default() };
        let mut samples: Vec<Sample> = Vec::new();
        for root in roots(&files) {
            samples.push(Reader { files: &files, root: &root, evidence: &mut evidence }.sample());
        }
        samples.sort_by(|a, b| {
            a.uptime_s.partial_cmp(&b.uptime_s).unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(last) = samples.pop() {
            evidence.last = last;
            evidence.first = (!samples.is_empty()).then(|| samples.swap_remove(0));
        }
        evidence.pasted(&files);
        evidence
    }

    /// Seconds between the samples.
    pub fn between_s(&self) -> Option<f64> {
        let first = self.first.as_ref()?;
        let by_uptime = || Some(self.last.uptime_s? - first.uptime_s?);
        let by_age = || {
            let age = |sample: &Sample| sample.mounts.iter().filter_map(|mount| mount.age_s).max();
            Some(age(&self.last)?.checked_sub(age(first)?)? as f64)
        };
        by_uptime().or_else(by_age).filter(|seconds| *seconds > 0.0)
    }

    /// Whether anything could be read.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Files in no root, by what is in them.
    fn pasted(&mut self, files: &Files) {
        for (path, text) in files.all() {
            if self.used.iter().any(|used| used == path)
                || COUNTERS.iter().any(|one| path.ends_with(one))
            {
                continue;
            }
            let head = String::from_utf8_lossy(&text[..text.len().min(65_536)]);
            if head.contains(" mounted on ")
                && head.contains(" with fstype ")
                && !self.last.has_mounts
            {
                let read = partial(text, mountstats::read);
                self.problems(path, &read.problems);
                if let Some(mounts) = read.value {
                    (self.last.mounts, self.last.has_mounts) = (mounts, true);
                    self.used.push(path.to_owned());
                }
            } else if text.is_empty() {
                self.note(path, "is empty");
            } else {
                self.note(path, "is no output that is known");
            }
        }
    }

    fn note(&mut self, path: &str, why: impl Into<String>) {
        self.notes.push(Note { path: path.to_owned(), why: why.into() });
    }

    fn problems(&mut self, path: &str, problems: &[Problem]) {
        for problem in problems {
            self.note(path, problem.to_string());
        }
    }
}

/// Folders that have files of a host in them, by their names; the empty one for the files
/// themselves.
fn roots(files: &Files) -> BTreeSet<String> {
    let root = |path: &str| {
        let known = COUNTERS.iter().find(|known| path.ends_with(**known))?;
        let root = path.strip_suffix(*known)?;
        (root.is_empty() || root.ends_with('/')).then(|| root.to_owned())
    };
    files.all().filter_map(|(path, _)| root(path)).collect()
}

/// One root.
struct Reader<'a> {
    files: &'a Files,
    root: &'a str,
    evidence: &'a mut Evidence,
}

impl Reader<'_> {
    fn sample(&mut self) -> Sample {
        let mounts = self.read("proc/self/mountstats", mountstats::read);
        Sample {
            uptime_s: self.uptime(),
            has_mounts: mounts.is_some(),
            mounts: mounts.unwrap_or_default(),
            client: self.read("proc/net/rpc/nfs", client::read),
            server: self.read("proc/net/rpc/nfsd", server::read),
        }
    }

    fn read<T>(&mut self, path: &str, read: impl Fn(&[u8]) -> Result<T, Problem>) -> Option<T> {
        let path = format!("{}{path}", self.root);
        let read = partial(self.files.text(&path)?, read);
        self.evidence.problems(&path, &read.problems);
        if read.value.is_some() {
            self.evidence.used.push(path);
        }
        read.value
    }

    fn uptime(&mut self) -> Option<f64> {
        let text = self.files.text(&format!("{}proc/uptime", self.root))?;
        let first = std::str::from_utf8(text).ok()?.split_whitespace().next()?;
        first.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_root_is_found_wherever_it_lies_and_two_are_two_samples() {
        let text = testing::mount("rw", &[]);
        let mut files = Files::default();
        files.put("report/host/proc/self/mountstats", text.clone());
        files.put("report/host/proc/uptime", "100.5 7\n");
        let evidence = Evidence::of(files.clone());
        assert_eq!((evidence.last.mounts.len(), evidence.first.is_none()), (1, true));
        files.put("again/proc/self/mountstats", text);
        files.put("again/proc/uptime", "90.5 7\n");
        let evidence = Evidence::of(files);
        assert_eq!(evidence.between_s(), Some(10.0));
        assert_eq!(evidence.last.uptime_s, Some(100.5));
    }

    #[test]
    fn what_is_pasted_is_known_by_what_is_in_it() {
        let mut files = Files::default();
        files.put("mail.txt", testing::mount("rw", &[]));
        files.put("other.bin", &b"\0\x01"[..]);
        files.put("empty", "");
        let evidence = Evidence::of(files);
        assert_eq!(evidence.last.mounts.len(), 1);
        let notes: Vec<&str> = evidence.notes.iter().map(|note| note.why.as_str()).collect();
        assert_eq!(notes, ["is empty", "is no output that is known"]);
    }

    #[test]
    fn any_beginning_of_a_text_gives_what_is_in_it() {
        let text =
            testing::mount("rw", &["GETATTR: 100 100 0 0 0 10 20 30", "READ: 1 1 0 1 1 1 1 1"]);
        for end in 0..=text.len() {
            let mut files = Files::default();
            files.put("proc/self/mountstats", &text.as_bytes()[..end]);
            let evidence = Evidence::of(files);
            let is_told = evidence.is_empty() || !evidence.notes.is_empty();
            let is_whole = !text[..end].contains('\n') || text[..end].ends_with('\n');
            assert!(is_told || is_whole || end == text.len(), "{end}");
        }
    }
}
