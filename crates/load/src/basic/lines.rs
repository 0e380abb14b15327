//! The lines that the suite prints, and parsers of its logs know.
//!
//! The suite prints seconds as `%ld.%-2ld`, whole ones and hundredths without a zero before them:
//! 0.05 s come out as `0.5 ` and 1.07 s as `1.7 `. Here they are decimals, always of two places.

use std::fmt;

use perf::units::Nanos;

/// What a line is about. The suite's variants of its programs (4a, 7a, 7b) are read, not run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Work {
    Created,
    Removed,
    LookedUp,
    Attributes,
    Stats,
    Wrote,
    Read,
    Listed,
    RenamedAndLinked,
    Renamed,
    Linked,
    Symlinks,
    Statfs,
    Statvfs,
}

impl Work {
    pub const ALL: [Self; 14] = [
        Self::Created,
        Self::Removed,
        Self::LookedUp,
        Self::Attributes,
        Self::Stats,
        Self::Wrote,
        Self::Read,
        Self::Listed,
        Self::RenamedAndLinked,
        Self::Renamed,
        Self::Linked,
        Self::Symlinks,
        Self::Statfs,
        Self::Statvfs,
    ];

    /// The words, with `#` where the numbers are.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Created => "created # files # directories # levels deep",
            Self::Removed => "removed # files # directories # levels deep",
            Self::LookedUp => "# getcwd and stat calls",
            Self::Attributes => "# chmods and stats on # files",
            Self::Stats => "# stats on # files",
            Self::Wrote => "wrote # byte file # times",
            Self::Read => "read # byte file # times",
            Self::Listed => "# entries read, # files",
            Self::RenamedAndLinked => "# renames and links on # files",
            Self::Renamed => "# renames on # files",
            Self::Linked => "# links on # files",
            Self::Symlinks => "# symlinks and readlinks on # files",
            Self::Statfs => "# statfs calls",
            Self::Statvfs => "# statvfs calls",
        }
    }

    /// The program of the suite that prints it.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Created => "test1",
            Self::Removed => "test2",
            Self::LookedUp => "test3",
            Self::Attributes => "test4",
            Self::Stats => "test4a",
            Self::Wrote | Self::Read => "test5",
            Self::Listed => "test6",
            Self::RenamedAndLinked => "test7",
            Self::Renamed => "test7a",
            Self::Linked => "test7b",
            Self::Symlinks => "test8",
            Self::Statfs | Self::Statvfs => "test9",
        }
    }

    /// How many numbers there are.
    pub fn places(self) -> usize {
        self.words().matches('#').count()
    }

    /// A word for tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "create",
            Self::Removed => "remove",
            Self::LookedUp => "lookup",
            Self::Attributes => "setattr",
            Self::Stats => "getattr",
            Self::Wrote => "write",
            Self::Read => "read",
            Self::Listed => "readdir",
            Self::RenamedAndLinked => "rename_link",
            Self::Renamed => "rename",
            Self::Linked => "link",
            Self::Symlinks => "symlink",
            Self::Statfs | Self::Statvfs => "statfs",
        }
    }

    /// The operations that a line counts: of a tree its files and directories, of data the calls
    /// of 8 KiB are not counted, but the files.
    pub fn operations(self, numbers: &[u64; 3]) -> u64 {
        match self {
            Self::Created | Self::Removed => numbers[0].saturating_add(numbers[1]),
            Self::Wrote | Self::Read => numbers[1],
            _ => numbers[0],
        }
    }

    /// Whether bytes a second are reported.
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Wrote | Self::Read)
    }

    /// All bytes, of data.
    pub fn bytes(self, numbers: &[u64; 3]) -> Option<u64> {
        self.is_data().then(|| numbers[0].saturating_mul(numbers[1]))
    }
}

/// What a test has done, and how long it took.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Line {
    pub work: Work,
    /// As many as the words have places; the rest is 0.
    pub numbers: [u64; 3],
    pub elapsed: Nanos,
}

impl Line {
    /// The line without the time, as `-f` has it.
    pub fn untimed(&self) -> String {
        let mut numbers = self.numbers.iter();
        let mut line = String::new();
        for (place, words) in self.work.words().split('#').enumerate() {
            if place > 0
                && let Some(number) = numbers.next()
            {
                line.push_str(&number.to_string());
            }
            line.push_str(words);
        }
        line
    }

    /// Bytes a second, of data; `None` where no time has passed.
    pub fn bytes_per_s(&self) -> Option<f64> {
        let seconds = self.elapsed.as_secs_f64();
        let bytes = self.work.bytes(&self.numbers)? as f64;
        (seconds > 0.0).then(|| bytes / seconds)
    }
}

/// As `-t` has it.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {:.2} seconds", self.untimed(), self.elapsed.as_secs_f64())?;
        match (self.work.bytes(&self.numbers), self.bytes_per_s()) {
            (None, _) => Ok(()),
            (Some(_), Some(rate)) => write!(f, " ({rate:.0} bytes/sec)"),
            (Some(bytes), None) => write!(f, " (> {bytes} bytes/sec)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(work: Work, numbers: [u64; 3], millis: u64) -> String {
        Line { work, numbers, elapsed: Nanos::from_millis(millis) }.to_string()
    }

    #[test]
    fn lines_are_the_suites_but_for_the_zero_in_seconds() {
        assert_eq!(
            line(Work::Created, [155, 62, 5], 50),
            "created 155 files 62 directories 5 levels deep in 0.05 seconds"
        );
        assert_eq!(
            line(Work::LookedUp, [500, 0, 0], 1070),
            "500 getcwd and stat calls in 1.07 seconds"
        );
        assert_eq!(
            line(Work::Wrote, [1_048_576, 10, 0], 513),
            "wrote 1048576 byte file 10 times in 0.51 seconds (20440078 bytes/sec)"
        );
        assert_eq!(
            line(Work::Read, [1_048_576, 10, 0], 0),
            "read 1048576 byte file 10 times in 0.00 seconds (> 10485760 bytes/sec)"
        );
        assert_eq!(
            line(Work::Listed, [20_500, 200, 0], 9),
            "20500 entries read, 200 files in 0.01 seconds"
        );
    }

    #[test]
    fn all_places_are_filled_and_without_time_there_is_none() {
        for work in Work::ALL {
            let line = Line { work, numbers: [7, 8, 9], elapsed: Nanos::ZERO };
            assert!(!line.untimed().contains('#'), "{line}");
            assert!(!line.untimed().contains("seconds"), "{line}");
        }
    }
}
