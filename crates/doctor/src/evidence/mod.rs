//! What is known of a host: its counters at one time or two, and its settings.
//!
//! - `sample`: counters at one time.
//! - `order`: which of several came first.
//! - `all_mounts`: what is known of them together only, as a mount.
//! - `pasted`: what is known of outputs that somebody has saved, by what is in them.

mod all_mounts;
mod order;
mod pasted;
mod sample;

use std::collections::{BTreeMap, BTreeSet};

use counters::Problem;

use super::collect::{COUNTERS, Files, Note, is_setting};

pub use all_mounts::ALL_MOUNTS;
pub use sample::{Pressures, RatesOf, Sample};

/// See the module's head.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Some time before the last; none where there is one sample only.
    pub first: Option<Sample>,
    pub last: Sample,
    /// Texts of small files, by their paths below the root: `proc/sys/vm/dirty_ratio`.
    pub settings: BTreeMap<String, String>,
    /// What was passed over, and why.
    pub notes: Vec<Note>,
    /// Files that were of use.
    pub used: Vec<String>,
}

impl Evidence {
    /// Reads what there is. Two folders that look like roots are two samples; a file that nobody
    /// knows is looked at for what it has in it.
    pub fn of(mut files: Files) -> Self {
        let mut evidence = Self { notes: std::mem::take(&mut files.notes), ..Self::default() };
        let mut samples = evidence.samples(&files);
        if let Some(last) = samples.pop() {
            evidence.set(&files, &last.1);
            let is_one_run = |one: &order::Read| order::is_one_run(one, &last);
            let (one_run, earlier): (Vec<_>, Vec<_>) = samples.into_iter().partition(is_one_run);
            earlier.iter().for_each(|one| evidence.note(&one.1, order::why_alone(one, &last)));
            samples = one_run;
            for (_, root) in samples.drain(1.min(samples.len())..) {
                evidence.note(&root, "is a sample between two others");
            }
            evidence.first = samples.pop().map(|(sample, _)| sample);
            evidence.last = last.0;
        }
        evidence.pasted(&files);
        evidence.first.iter_mut().for_each(Sample::count_together);
        evidence.last.count_together();
        evidence
    }

    /// One of each root, in the order of time.
    fn samples(&mut self, files: &Files) -> Vec<order::Read> {
        let sample =
            |root: String| (sample::Reader { files, root: &root, evidence: self }.sample(), root);
        let mut samples: Vec<order::Read> = roots(files).into_iter().map(sample).collect();
        order::sort(&mut samples);
        samples
    }

    /// Seconds between the samples.
    pub fn between_s(&self) -> Option<f64> {
        let first = self.first.as_ref()?;
        let by_uptime = || Some(self.last.clock.up_s? - first.clock.up_s?);
        let age = |sample: &Sample| sample.mounts.iter().filter_map(|mount| mount.age_s).max();
        let by_age = || Some(age(&self.last)?.checked_sub(age(first)?)? as f64);
        by_uptime().or_else(by_age).filter(|seconds| *seconds > 0.0)
    }

    /// Whether anything could be read.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// A setting's text, without blanks around it.
    pub fn setting(&self, path: &str) -> Option<&str> {
        self.settings.get(path).map(|text| text.trim())
    }

    /// A setting that is a number.
    pub fn number(&self, path: &str) -> Option<f64> {
        let number: f64 = self.setting(path)?.split_whitespace().next()?.parse().ok()?;
        Some(number).filter(|number| number.is_finite())
    }

    /// The line of a mount point in mountinfo; of several on each other the last.
    pub fn mountinfo(&self, point: &str) -> Option<&str> {
        let mountinfo = self.setting("proc/self/mountinfo")?;
        let point = point.replace(' ', "\\040");
        mountinfo.lines().rfind(|line| line.split_whitespace().nth(4) == Some(point.as_str()))
    }

    /// An option there: it has some that mountstats has not (`addr=`).
    pub fn option_in_mountinfo(&self, point: &str, name: &str) -> Option<&str> {
        let options = self.mountinfo(point)?.split_whitespace().last()?;
        let mut pairs = options.split(',').filter_map(|option| option.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The settings of one root.
    fn set(&mut self, files: &Files, root: &str) {
        let below = files.all().filter_map(|(path, text)| Some((path.strip_prefix(root)?, text)));
        for (path, text) in below.filter(|(path, _)| is_setting(path)) {
            self.used.push(format!("{root}{path}"));
            self.settings.insert(path.to_owned(), String::from_utf8_lossy(text).into_owned());
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
        files.put("report/host/proc/sys/vm/dirty_ratio", "20\n");
        let evidence = Evidence::of(files.clone());
        assert_eq!((evidence.last.mounts.len(), evidence.first.is_none()), (1, true));
        assert_eq!(evidence.number("proc/sys/vm/dirty_ratio"), Some(20.0));
        files.put("again/proc/self/mountstats", text);
        files.put("again/proc/uptime", "90.5 7\n");
        let evidence = Evidence::of(files);
        assert_eq!(evidence.between_s(), Some(10.0));
        assert_eq!(evidence.last.clock.up_s, Some(100.5));
    }

    #[test]
    fn a_mount_of_ours_is_reported_though_nothing_is_counted() {
        let mut files = Files::default();
        let line = "36 25 0:32 / /my\\040mount rw - fuse.nfskit nfs://s/x rw,user_id=0\n";
        files.put("proc/self/mountinfo", line);
        files.put("proc/self/mountstats", "device proc mounted on /proc with fstype proc\n");
        let reports = crate::diagnose(&Evidence::of(files), &crate::Limits::default());
        let [report] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!((report.name.as_str(), report.is_uncounted()), ("/my mount", true));
        assert!(report.missing[0].run.contains("--metrics"), "{report:?}");
    }

    #[test]
    fn any_beginning_of_a_text_gives_what_is_in_it() {
        let text =
            testing::mount("rw", &["GETATTR: 100 100 0 0 0 10 20 30", "READ: 1 1 0 1 1 1 1 1"]);
        for end in 0..=text.len() {
            let mut files = Files::default();
            files.put("proc/self/mountstats", &text.as_bytes()[..end]);
            let evidence = Evidence::of(files);
            let is_reported = evidence.is_empty() || !evidence.notes.is_empty();
            let is_whole = !text[..end].contains('\n') || text[..end].ends_with('\n');
            assert!(is_reported || is_whole || end == text.len(), "{end}");
        }
    }
}
