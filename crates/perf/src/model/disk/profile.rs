//! Disks by name, or by their numbers.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::units::{Instant, Nanos};
use crate::words;

/// What a disk takes for what. MB are 10^6 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Profile {
    /// `custom` for one that was given by its numbers.
    pub name: &'static str,
    /// To the next track, and on average over all pairs of places; both 0 without heads that move.
    pub seek_near: Nanos,
    pub seek_average: Nanos,
    /// One turn of the platter; 0 without one.
    pub revolution: Nanos,
    /// What each request takes besides.
    pub read_access: Nanos,
    pub write_access: Nanos,
    pub read_ps_per_byte: u64,
    pub write_ps_per_byte: u64,
    /// What a sync (the command that empties a write cache, with the barrier around it) takes.
    pub sync: Nanos,
    /// Requests that are worked on at once.
    pub parallel: usize,
    pub capacity_bytes: u64,
}

/// Bytes on one track: where on its turn an address lies. About what 200 MB/s make in a turn of
/// 8.3 ms.
const TRACK_BYTES: u64 = 1_666_667;

/// Mean of the square root of the distance between two random places of a line of length 1.
const ROOT_OF_DISTANCE: f64 = 8.0 / 15.0;

const TB: u64 = 1_000_000_000_000;

/// One that costs nothing.
const NOTHING: Profile = Profile {
    name: "none",
    seek_near: Nanos::ZERO,
    seek_average: Nanos::ZERO,
    revolution: Nanos::ZERO,
    read_access: Nanos::ZERO,
    write_access: Nanos::ZERO,
    read_ps_per_byte: 0,
    write_ps_per_byte: 0,
    sync: Nanos::ZERO,
    parallel: 1,
    capacity_bytes: TB,
};

/// The disks that have a name.
pub const PROFILES: [Profile; 5] = [
    // Seeks, track to track and average, and the turn: data sheet of the Ultrastar DC HC310
    // (7200 rpm). The rate, between that of outer and inner tracks: guess. A sync waits a turn for
    // the track with the journal to come round: guess.
    Profile {
        name: "hdd",
        seek_near: Nanos::from_micros(230),
        seek_average: Nanos::from_micros(7_400),
        revolution: Nanos::from_nanos(8_333_333),
        read_ps_per_byte: 5_000,
        write_ps_per_byte: 5_000,
        sync: Nanos::from_nanos(8_333_333),
        capacity_bytes: 4 * TB,
        ..NOTHING
    },
    // Access times and rates: data sheet of the Intel DC S4600 (random 110/52 us, 500/490 MB/s),
    // which protects its cache against loss of power; so its sync is short: guess. NCQ has 32.
    Profile {
        name: "ssd-sata",
        read_access: Nanos::from_micros(110),
        write_access: Nanos::from_micros(52),
        read_ps_per_byte: 2_000,
        write_ps_per_byte: 2_041,
        sync: Nanos::from_micros(100),
        parallel: 32,
        ..NOTHING
    },
    // Access times and rates: data sheet of the Intel DC P4500, 2 TB (random 85/20 us, 3200/1050
    // MB/s), protected too. Sync and parallelism: guess.
    Profile {
        name: "nvme",
        read_access: Nanos::from_micros(85),
        write_access: Nanos::from_micros(20),
        read_ps_per_byte: 312,
        write_ps_per_byte: 952,
        sync: Nanos::from_micros(15),
        parallel: 64,
        capacity_bytes: 2 * TB,
        ..NOTHING
    },
    // Battery-backed memory on a PCI card of 64 bits and 66 MHz (528 MB/s), as filers had it in
    // 2002: 400 MB/s of it used, 5 us for a transfer to be set up: guesses.
    Profile {
        name: "nvram",
        read_access: Nanos::from_micros(5),
        write_access: Nanos::from_micros(5),
        read_ps_per_byte: 2_500,
        write_ps_per_byte: 2_500,
        ..NOTHING
    },
    NOTHING,
];

/// The name of a disk that was given by its numbers.
const UNNAMED: &str = "custom";

/// The longest of all times that can be requested.
const SPAN_MAX: Nanos = Nanos::from_secs(10);

/// A byte a second.
const PS_PER_BYTE_MAX: u64 = 1_000_000_000_000;

const PARALLEL_MAX: u64 = 1024;

/// What cannot be had, and what can.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ProfileError {
    #[error("unknown disk {0:?}; known are {names}, or KEY=VALUE,... of {KEYS}", names = names())]
    Name(String),
    #[error("disk: unknown key {0:?}; known are {KEYS}")]
    Key(String),
    #[error("disk: {key}={value:?}: {what}")]
    Value { key: String, value: String, what: &'static str },
}

const KEYS: &str =
    "rate, read-rate, write-rate, seek, rpm, access, read-access, write-access, sync, parallel";

fn names() -> String {
    PROFILES.map(|profile| profile.name).join(", ")
}

impl Profile {
    /// A disk that takes no time.
    pub const NONE: Self = NOTHING;

    /// Seek and rotation from where the request before ended, for a request that begins then.
    pub(super) fn placing(&self, head: u64, address: u64, begins: Instant) -> Nanos {
        if head == address || (self.seek_average, self.revolution) == (Nanos::ZERO, Nanos::ZERO) {
            return Nanos::ZERO;
        }
        let seek = self.seek(head.abs_diff(address));
        let turn = self.revolution.as_nanos();
        if turn == 0 {
            return seek;
        }
        let under_head = (begins + seek).as_nanos() % turn;
        let wanted = u128::from(address % TRACK_BYTES) * u128::from(turn) / u128::from(TRACK_BYTES);
        let wanted = u64::try_from(wanted).unwrap_or(0);
        seek + Nanos::from_nanos((wanted + turn - under_head) % turn)
    }

    /// A seek over so many bytes: to the next track, and then with the root of the distance, as
    /// arms that accelerate halfway do.
    fn seek(&self, distance: u64) -> Nanos {
        if distance < TRACK_BYTES {
            return Nanos::ZERO;
        }
        let share = (distance as f64 / self.capacity_bytes.max(1) as f64).min(1.0);
        let more = self.seek_average.saturating_sub(self.seek_near).as_secs_f64();
        self.seek_near + Nanos::from_secs_f64(more * share.sqrt() / ROOT_OF_DISTANCE)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ProfileError> {
        let wrong =
            |what| ProfileError::Value { key: key.to_owned(), value: value.to_owned(), what };
        let rate = || rate_ps(value).ok_or_else(|| wrong("not a rate above 0, such as 46.55MB/s"));
        let span = || span(value).ok_or_else(|| wrong("not a time up to 10s, such as 8.5ms, or 0"));
        match key {
            "rate" => {
                self.read_ps_per_byte = rate()?;
                self.write_ps_per_byte = rate()?;
            }
            "read-rate" => self.read_ps_per_byte = rate()?,
            "write-rate" => self.write_ps_per_byte = rate()?,
            "seek" => {
                self.seek_average = span()?;
                self.seek_near = self.seek_near.min(self.seek_average);
            }
            "rpm" => {
                let rpm = value.parse::<u64>().ok().filter(|rpm| (1..=100_000).contains(rpm));
                let rpm = rpm.ok_or_else(|| wrong("not a number of 1 to 100000"))?;
                self.revolution = Nanos::from_secs(60) / rpm;
            }
            "access" => {
                self.read_access = span()?;
                self.write_access = span()?;
            }
            "read-access" => self.read_access = span()?,
            "write-access" => self.write_access = span()?,
            "sync" => self.sync = span()?,
            "parallel" => {
                let many = value.parse::<u64>().ok().filter(|n| (1..=PARALLEL_MAX).contains(n));
                let many = many.ok_or_else(|| wrong("not a number of 1 to 1024"))?;
                self.parallel = usize::try_from(many).unwrap_or(1);
            }
            _ => return Err(ProfileError::Key(key.to_owned())),
        }
        self.name = UNNAMED;
        Ok(())
    }
}

/// Picoseconds per byte of `46.55MB/s`, `1.2GB/s`, `800KB/s`.
fn rate_ps(text: &str) -> Option<u64> {
    let bits_per_sec = words::rate(text).ok()?;
    Some(words::rounded(8e12 / bits_per_sec as f64)).filter(|ps| (1..=PS_PER_BYTE_MAX).contains(ps))
}

/// `0`, or a number and its unit.
fn span(text: &str) -> Option<Nanos> {
    words::time_with_unit(text).ok().filter(|span| *span <= SPAN_MAX)
}

impl FromStr for Profile {
    type Err = ProfileError;

    /// `hdd`, `hdd,sync=0`, `rate=46.55MB/s,seek=0`.
    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let named = |name: &str| PROFILES.into_iter().find(|profile| profile.name == name);
        let (first, rest) = text.split_once(',').map_or((text, None), |(a, b)| (a, Some(b)));
        let (mut profile, settings) = match (named(first), first.contains('=')) {
            (Some(profile), _) => (profile, rest),
            (None, true) => (NOTHING, Some(text)),
            (None, false) => return Err(ProfileError::Name(first.to_owned())),
        };
        for setting in settings.into_iter().flat_map(|settings| settings.split(',')) {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(ProfileError::Key(setting.to_owned()));
            };
            profile.set(key.trim(), value.trim())?;
        }
        Ok(profile)
    }
}

/// MB/s of so many picoseconds a byte, with as few digits as distinguish it from its neighbours:
/// 3200 MB/s are 312.5 ps.
fn mb_per_s(ps_per_byte: u64) -> f64 {
    let (ps, exact) = (ps_per_byte as f64, 1e6 / ps_per_byte as f64);
    let rounded = |digits: f64| {
        let unit = 10_f64.powf(exact.log10().floor() + 1.0 - digits);
        (exact / unit).round() * unit
    };
    [2.0, 3.0, 4.0]
        .into_iter()
        .map(rounded)
        .find(|rate| (1e6 / rate - ps).abs() <= 0.5)
        .unwrap_or(exact)
}

/// Four digits that count, and all before the point.
fn significant(value: f64) -> String {
    let behind = match value {
        v if v >= 1e3 => 0,
        v if v >= 1e2 => 1,
        v if v >= 1e1 => 2,
        _ => 3,
    };
    let text = format!("{value:.behind$}");
    match behind {
        0 => text,
        _ => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |ps: u64| match ps {
            0 => "any rate".to_owned(),
            ps => format!("{} MB/s", significant(mb_per_s(ps))),
        };
        write!(f, "{}: ", self.name)?;
        if self.seek_average > Nanos::ZERO {
            write!(f, "seek {}, ", self.seek_average)?;
        }
        if self.revolution > Nanos::ZERO {
            write!(f, "turn {}, ", self.revolution)?;
        }
        let (read, write) = (self.read_access, self.write_access);
        if read.max(write) > Nanos::ZERO {
            write!(f, "access {read} (write {write}), ")?;
        }
        write!(f, "read {}, ", rate(self.read_ps_per_byte))?;
        write!(f, "write {}, ", rate(self.write_ps_per_byte))?;
        write!(f, "sync {}, {} at once", self.sync, self.parallel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_have_names_and_their_numbers_can_be_changed() {
        let hdd: Profile = "hdd".parse().unwrap();
        assert_eq!(hdd, PROFILES[0]);
        let other: Profile = "hdd,sync=0,rpm=15000".parse().unwrap();
        assert_eq!(
            (other.name, other.sync, other.seek_average),
            (UNNAMED, Nanos::ZERO, hdd.seek_average)
        );
        assert_eq!(other.revolution, Nanos::from_millis(4));
        let own: Profile = "rate=46.55MB/s,seek=0".parse().unwrap();
        assert_eq!((own.write_ps_per_byte, own.parallel), (21_482, 1));
        let shown = "custom: read 46.55 MB/s, write 46.55 MB/s, sync 0 ns, 1 at once";
        assert_eq!(own.to_string(), shown);
        for (name, rates) in [
            ("nvme", "read 3200 MB/s, write 1050 MB/s"),
            ("ssd-sata", "read 500 MB/s, write 490 MB/s"),
            ("rate=46.55MB/s", "write 46.55 MB/s"),
            ("rate=1000GB/s", "write 1000000 MB/s"),
        ] {
            let shown = name.parse::<Profile>().unwrap().to_string();
            assert!(shown.contains(rates), "{shown}");
        }
        let digits = [333_333.333_3, 489.955_9, 125.0, 1.25, 0.8];
        let shown = digits.map(significant);
        assert_eq!(shown, ["333333", "490", "125", "1.25", "0.8"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_possible() {
        let error = |text: &str| text.parse::<Profile>().unwrap_err().to_string();
        assert!(error("hd").contains("hdd, ssd-sata, nvme, nvram, none"), "{}", error("hd"));
        assert!(error("hdd,spin=3").contains("unknown key \"spin\""));
        assert!(error("hdd,").contains("unknown key \"\""));
        for wrong in [
            "rate=0MB/s",
            "rate=-1MB/s",
            "rate=5",
            "rate=nanMB/s",
            "seek=11s",
            "seek=-1ms",
            "rpm=0",
        ] {
            assert!(error(wrong).contains(" not a "), "{wrong}");
        }
        for wrong in ["parallel=0", "parallel=1025", "sync=infs", "sync=", "access=1e99s"] {
            assert!(error(wrong).contains("not a"), "{wrong}");
        }
    }
}
