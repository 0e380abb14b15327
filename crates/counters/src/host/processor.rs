//! `/proc/stat`: where the time of all processors went, in ticks.

use super::nothing;
use crate::difference;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::{NUMBERS_MAX, bounded, first};

/// All processors together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Processors {
    pub count: u64,
    /// In programs, with those of lower priority.
    pub user: u64,
    pub system: u64,
    pub idle: u64,
    /// Idle while something waited for a disk.
    pub io_wait: u64,
    /// In interrupts, and in work put off from them: where the network's packets are handled.
    pub interrupts: u64,
    /// Given to other guests of the same machine.
    pub stolen: u64,
}

impl Processors {
    pub fn total(&self) -> u64 {
        [self.user, self.system, self.idle, self.io_wait, self.interrupts, self.stolen]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// What came since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            count: self.count,
            user: difference(self.user, before.user),
            system: difference(self.system, before.system),
            idle: difference(self.idle, before.idle),
            io_wait: difference(self.io_wait, before.io_wait),
            interrupts: difference(self.interrupts, before.interrupts),
            stolen: difference(self.stolen, before.stolen),
        }
    }

    /// What share of all time a part of it is; none where no time passed.
    pub fn share(&self, part: u64) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| part as f64 / total as f64)
    }
}

/// Reads the file's content.
///
/// # Errors
/// The line of all processors is broken, or there is none.
pub fn read(text: &[u8]) -> Result<Processors, Problem> {
    let text = String::from_utf8_lossy(text);
    let (mut all, mut count) = (None, 0);
    for mut line in Line::all(&text) {
        bounded(&line)?;
        match line.word().text {
            "cpu" => {
                let numbers = line.numbers("cpu", 4, NUMBERS_MAX)?;
                let [user, nice, system, idle, io_wait, hard, soft, stolen] = first(&numbers);
                all = Some(Processors {
                    count: 0,
                    user: user.saturating_add(nice),
                    system,
                    idle,
                    io_wait,
                    interrupts: hard.saturating_add(soft),
                    stolen,
                });
            }
            name if is_one(name) => count += 1,
            _ => {}
        }
    }
    all.map(|all| Processors { count, ..all }).ok_or_else(nothing)
}

/// Whether a line is of one processor: `cpu0`.
fn is_one(name: &str) -> bool {
    name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "cpu  100 10 50 800 20 3 7 10 0 0\ncpu0 50 5 25 400 10 1 3 5 0 0\n\
        cpu1 50 5 25 400 10 2 4 5 0 0\nintr 5 1 2\nctxt 99\n";

    #[test]
    fn shares_of_the_time_are_read() {
        let all = read(TEXT.as_bytes()).unwrap();
        assert_eq!((all.count, all.user, all.interrupts, all.total()), (2, 110, 10, 1_000));
        assert_eq!(all.share(all.io_wait), Some(0.02));
        assert_eq!(all.since(&all).share(0), None);
        assert!(read(b"cpu x").is_err() && read(b"ctxt 9").is_err());
    }
}
