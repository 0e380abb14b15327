//! Which files reads were not served of, and why: for who asks why a program waits for the server.
//!
//! Of the files of which something lies there, their headers count hits. A miss is mostly of a file
//! of which nothing does, so misses are counted here, by file and [`Cause`]: of the [`FILES_MAX`]
//! files that were missed last; of more, the one whose last miss is the oldest is forgotten. It
//! takes some 200 bytes of memory a file, and a line of text, which is written each second if it
//! is another and read when the cache is opened next. What is lost of it are counts.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;

use lru::LruCache;

use crate::counts::Cause;
use crate::key::FileHash;
use crate::texts::{read_text, replace_text};

/// Files that are followed.
pub const FILES_MAX: usize = 1024;

/// A hash, a number, and a word and a number for each cause.
const LINE_BYTES_MAX: usize = 33 + 21 + Cause::ALL.len() * 34;
const TEXT_BYTES_MAX: usize = FILES_MAX * LINE_BYTES_MAX;

const MISSED: &str = "missed";

/// What was missed of a file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Misses {
    pub fileid: u64,
    /// Reads that were not served, by [`Cause::ALL`].
    pub by_cause: [u64; Cause::ALL.len()],
}

impl Misses {
    pub fn all(&self) -> u64 {
        self.by_cause.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// `3 cold, 1 changed`, the most frequent first.
    pub fn words(&self) -> String {
        let mut counted: Vec<(Cause, u64)> =
            Cause::ALL.into_iter().zip(self.by_cause).filter(|(_, count)| *count > 0).collect();
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let each: Vec<String> =
            counted.iter().map(|(cause, count)| format!("{count} {}", cause.name())).collect();
        each.join(", ")
    }
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Missed {
    files: LruCache<FileHash, Misses>,
    has_news: bool,
}

impl Missed {
    /// With what the last process has left.
    pub(crate) fn of(text: Option<&str>) -> Self {
        let most = NonZeroUsize::new(FILES_MAX).unwrap_or(NonZeroUsize::MIN);
        let mut files = LruCache::new(most);
        for (file, misses) in parse(text.unwrap_or_default()) {
            files.put(file, misses);
        }
        Self { files, has_news: false }
    }

    pub(crate) fn count(&mut self, file: FileHash, fileid: u64, cause: Cause) {
        let misses = self.files.get_or_insert_mut(file, Misses::default);
        misses.fileid = fileid;
        let count = &mut misses.by_cause[cause as usize];
        *count = count.saturating_add(1);
        self.has_news = true;
    }

    /// What is to be written, if it is another than was written last: the oldest first.
    pub(crate) fn news(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.has_news) {
            return None;
        }
        let mut text = String::new();
        for (file, misses) in self.files.iter().rev() {
            // Writing to a String does not fail.
            write!(text, "{file} {}", misses.fileid).ok();
            for (cause, count) in Cause::ALL.into_iter().zip(misses.by_cause) {
                if count > 0 {
                    write!(text, " {}={count}", cause.name()).ok();
                }
            }
            text.push('\n');
        }
        Some(text)
    }
}

/// The files of a text. A line that is none of ours is left out.
pub fn parse(text: &str) -> Vec<(FileHash, Misses)> {
    text.lines().take(FILES_MAX).filter_map(line).collect()
}

fn line(line: &str) -> Option<(FileHash, Misses)> {
    let mut words = line.split(' ');
    let file = FileHash::parse(words.next()?)?;
    let mut misses = Misses { fileid: words.next()?.parse().ok()?, ..Misses::default() };
    for word in words {
        let (name, count) = word.split_once('=')?;
        let cause = Cause::ALL.into_iter().find(|cause| cause.name() == name)?;
        misses.by_cause[cause as usize] = count.parse().ok()?;
    }
    Some((file, misses))
}

/// What a folder has of it; nothing if it cannot be read.
pub(crate) fn read(dir: BorrowedFd<'_>) -> Option<String> {
    read_text(dir, MISSED, TEXT_BYTES_MAX).ok().flatten()
}

pub(crate) fn write(dir: BorrowedFd<'_>, text: &str) {
    // Without it the next process begins to count anew.
    replace_text(dir, MISSED, text).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u32) -> FileHash {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        FileHash::from_bytes(bytes)
    }

    #[test]
    fn what_was_counted_is_there_for_the_next_process() {
        let mut missed = Missed::of(None);
        assert_eq!(missed.news(), None);
        missed.count(file(1), 11, Cause::Cold);
        missed.count(file(2), 12, Cause::Evicted);
        missed.count(file(1), 11, Cause::Changed);
        missed.count(file(1), 11, Cause::Changed);
        let text = missed.news().unwrap();
        assert_eq!(missed.news(), None, "it is as it was written");
        let mut next = Missed::of(Some(&text));
        next.count(file(2), 12, Cause::Evicted);
        let heard = parse(&next.news().unwrap());
        assert_eq!(heard.iter().map(|(file, _)| *file).collect::<Vec<_>>(), [file(1), file(2)]);
        assert_eq!((heard[0].1.words(), heard[0].1.all()), ("2 changed, 1 cold".to_owned(), 3));
        assert_eq!(heard[1].1.words(), "2 evicted");
    }

    #[test]
    fn of_too_many_files_the_ones_missed_longest_ago_are_forgotten() {
        let mut missed = Missed::of(None);
        let most = u32::try_from(FILES_MAX).unwrap();
        (0..=most).for_each(|number| missed.count(file(number), u64::MAX, Cause::Cold));
        missed.count(file(1), 1, Cause::Failed);
        missed.count(file(most + 1), 1, Cause::Cold);
        let text = missed.news().unwrap();
        let heard: Vec<FileHash> = parse(&text).into_iter().map(|(file, _)| file).collect();
        assert_eq!(heard.len(), FILES_MAX);
        assert!(heard.contains(&file(1)) && !heard.contains(&file(0)) && !heard.contains(&file(2)));
        for cause in Cause::ALL {
            missed.files.get_mut(&file(1)).unwrap().by_cause[cause as usize] = u64::MAX;
        }
        missed.count(file(1), u64::MAX, Cause::Cold);
        let text = missed.news().unwrap();
        assert!(
            text.lines().all(|line| line.len() < LINE_BYTES_MAX) && text.len() < TEXT_BYTES_MAX
        );
        assert_eq!(parse(&text).last().unwrap().1.all(), u64::MAX);
    }

    #[test]
    fn lines_that_are_none_of_ours_are_left_out() {
        let good = format!("{} 7 cold=3", file(9));
        for bad in ["", "x", "zz 1 cold=1", &format!("{good} warm=1"), &format!("{good} cold=-1")] {
            let text = format!("{bad}\n{good}\n");
            assert_eq!(parse(&text).len(), 1, "{bad}");
        }
    }
}
