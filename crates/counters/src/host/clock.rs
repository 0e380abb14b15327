//! The clock of a host's counters: how long the machine had been up (`/proc/uptime`), and when it
//! was started (`btime` of `/proc/stat`).

/// See the module's head. What was not copied is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// Seconds since the machine started.
    pub up_s: Option<f64>,
    /// The start, in seconds since 1970.
    pub booted_s: Option<f64>,
}

impl Clock {
    /// By the contents of both files, as far as they are there.
    pub fn read(uptime: Option<&[u8]>, stat: Option<&[u8]>) -> Self {
        let booted = |stat: &[u8]| {
            let text = String::from_utf8_lossy(stat);
            seconds(text.lines().find_map(|line| line.strip_prefix("btime "))?)
        };
        let up = |uptime: &[u8]| seconds(std::str::from_utf8(uptime).ok()?);
        Self { up_s: uptime.and_then(up), booted_s: stat.and_then(booted) }
    }

    /// The time of day at which it was read.
    pub fn taken_s(&self) -> Option<f64> {
        Some(self.booted_s? + self.up_s?)
    }

    /// Whether both are of one run of the machine: two runs never overlap, however the clock was
    /// set in between. None where it is not known.
    pub fn is_of_one_run(&self, other: &Self) -> Option<bool> {
        let overlap = |one: &Self, other: &Self| Some(one.booted_s? <= other.taken_s()?);
        Some(overlap(self, other)? && overlap(other, self)?)
    }

    /// Whether the machine was started after `before` and before this: by both starts, and where
    /// these are not known by an uptime that fell.
    pub fn is_after_a_start(&self, before: &Self) -> bool {
        match self.is_of_one_run(before) {
            Some(is_one) => !is_one && self.booted_s > before.booted_s,
            None => self.up_s.zip(before.up_s).is_some_and(|(now, before)| now < before),
        }
    }
}

/// The first number.
fn seconds(text: &str) -> Option<f64> {
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(up_s: f64, booted_s: Option<f64>) -> Clock {
        Clock { up_s: Some(up_s), booted_s }
    }

    #[test]
    fn uptime_and_start_are_read() {
        let stat = b"cpu 1 2 3 4\nintr 5 6\nctxt 7\nbtime 1700000000\nprocesses 8\n";
        let read = Clock::read(Some(b"100.5 7\n"), Some(stat));
        assert_eq!(read, clock(100.5, Some(1.7e9)));
        assert_eq!(read.taken_s(), Some(1_700_000_100.5));
        for broken in [&b"x"[..], b"", b"inf 1", b"-1 0"] {
            assert_eq!(Clock::read(Some(broken), Some(broken)), Clock::default());
        }
    }

    #[test]
    fn a_start_in_between_is_seen_and_a_clock_that_was_set_is_none() {
        let first = clock(1_000.0, Some(10_000.0));
        for (later, is_after) in [
            (clock(500.0, Some(20_000.0)), true),
            (clock(5_000.0, Some(20_000.0)), true),
            (clock(1_010.0, Some(10_000.0)), false),
            (clock(1_010.0, Some(10_500.0)), false),
            (clock(1_010.0, Some(9_500.0)), false),
            (clock(1_010.0, None), false),
            (clock(500.0, None), true),
            (clock(500.0, Some(1_000.0)), false),
        ] {
            assert_eq!(later.is_after_a_start(&first), is_after, "{later:?}");
        }
        assert!(!Clock::default().is_after_a_start(&first));
    }
}
