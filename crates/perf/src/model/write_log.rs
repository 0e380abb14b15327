//! A stable write log as a term of the model: stable WRITEs and COMMITs without and with it.
//!
//! ```text
//! without   way --> processor --> the file's sync, for all who wait      T_sync + k KiB t
//! with      way --> processor --> a frame of the log, for all who wait   T_log + (f - 4 KiB) u + w
//! ```
//!
//! Both are the loop of [`gathered`](super::gathered): who comes during a sync shares the next. A
//! frame has `f` bytes, which are its header, `k` records and zeros to the end of the block.
//! Records are added to it as long as it is shorter than 1 MiB, and one frame or two are on
//! their way at a time, by the rule of the server ([`LogDevice::at_a_time`]). `w` is the
//! processor's: a thread that is woken for a frame, and the callers after it. Of a file's sync the
//! probe has it in T_sync.
//!
//! - A WRITE of more than 256 KiB is not logged, and takes what it takes without a log.
//! - A COMMIT of up to 64 KiB is answered from the log where that is sooner than a sync. Any other
//!   syncs the file, as without a log; if the file has records, it also waits for a frame that says
//!   that they are past.
//! - What is logged has to come to its place as well. While the log has room nobody waits for that;
//!   for ever, no more than what the disk writes: [`StableRate::lasting_per_s`].
//!
//! Not modelled: many files without a log, of which each needs a sync of its own. There the gain is
//! larger. Writers who hold each other back because the log's device is the disk itself. And what
//! the processor does for a record: where it is full, the gain is at most the one predicted
//! ([`StableRate::is_full`]).

use std::str::FromStr;

use thiserror::Error;

use super::disk::{Disk, Profile, ProfileError};
use super::gathered::{Gathered, Syncs, Turns};
use super::transaction::{Path, Server};
use super::whatif::NVME_SYNC_US;
use crate::units::{Instant, Nanos};
use crate::words;

/// What a log's device takes, us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogDevice {
    /// A block of 4 KiB until it is stable.
    pub write_us: f64,
    /// Each of two that are written at the same time.
    pub both_us: f64,
    /// Each further KiB.
    pub us_per_kib: f64,
    /// Threads that are woken for a frame.
    pub wake_us: f64,
}

/// Stable WRITEs of one file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stable {
    pub bytes: u64,
    /// N.
    pub outstanding: u32,
}

/// What is predicted of stable WRITEs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StableRate {
    /// WRITEs a second, and how many share a sync or a frame.
    pub turns: Turns,
    /// Mean response time, us.
    pub response_us: f64,
    /// WRITEs a second that can go on for ever: what is in the log has to come to its place.
    pub lasting_per_s: f64,
    /// The processor, or the link, has no time left: who needs more of it gets fewer.
    pub is_full: bool,
}

/// Everything in a log begins at a multiple of this.
const BLOCK_BYTES: f64 = 4096.0;
/// What a frame has before its records, and a record before its data: with a kernel's handle of
/// some 24 bytes. docs/formats/write-log.md.
const HEADER_BYTES: f64 = 104.0;
const RECORD_BYTES: f64 = 80.0;
/// Records are added to a frame as long as it is shorter.
const FRAME_BYTES_DUE: f64 = 1024.0 * 1024.0;
/// Longer WRITEs are made stable in their file.
pub const LOGGED_BYTES_MAX: u64 = 256 << 10;
/// Two frames are on their way at a time where each then takes less than this many times one.
const SIDE_BY_SIDE_MAX: f64 = 1.5;

/// Of the time of a processor or a link; guess.
const FULL_SHARE: f64 = 0.9;

const KIB: f64 = 1024.0;

/// Why a device is none.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum LogDeviceError {
    #[error(
        "{0:?}: nvme, sim:DISK, or TIME[,both=TIME][,rate=RATE][,wake=TIME], as serve --write-log \
         measures them"
    )]
    Form(String),
    #[error("sim: {0}")]
    Profile(#[from] ProfileError),
}

impl LogDevice {
    /// One that writes any number of bytes at once, two frames no better than one.
    pub fn of_sync(write_us: f64) -> Self {
        Self { write_us, both_us: 2.0 * write_us, us_per_kib: 0.0, wake_us: 0.0 }
    }

    /// As an emulated disk has it, written from its head on.
    pub fn of(profile: &Profile) -> Self {
        let block = words::rounded(BLOCK_BYTES);
        let frame = |disk: &mut Disk, at: u64, bytes: u64| {
            let written = disk.write(Instant::EPOCH, at, bytes);
            match profile.sync > Nanos::ZERO {
                true => written.max(disk.sync(Instant::EPOCH)),
                false => written,
            }
        };
        let alone = |bytes: u64| frame(&mut Disk::new(*profile), 0, bytes).as_nanos() as f64 / 1e3;
        let mut disk = Disk::new(*profile);
        let first = frame(&mut disk, 0, block);
        let both = first.max(frame(&mut disk, block, block));
        let (small_us, large_us) = (alone(block), alone(257 * block));
        Self {
            write_us: small_us,
            both_us: both.as_nanos() as f64 / 1e3,
            us_per_kib: (large_us - small_us) / (256.0 * BLOCK_BYTES / KIB),
            wake_us: 0.0,
        }
    }

    /// Frames on their way at the same time, as the server decides it.
    pub fn at_a_time(&self) -> u32 {
        1 + u32::from(self.both_us < self.write_us * SIDE_BY_SIDE_MAX)
    }

    /// An emulated disk that takes as long, with what the processor adds.
    pub fn profile(&self) -> Profile {
        let transfer_us = BLOCK_BYTES / KIB * self.us_per_kib;
        let access_us = (self.write_us - transfer_us).max(0.0) + self.wake_us;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let ps_per_byte = (self.us_per_kib * 1e6 / KIB).clamp(0.0, 1e12).round() as u64;
        Profile {
            name: "log",
            write_access: Nanos::from_micros_f64(access_us),
            write_ps_per_byte: ps_per_byte,
            parallel: self.at_a_time() as usize,
            ..Profile::NONE
        }
    }

    /// A frame of so many records alone.
    fn frame_us(&self, bytes: f64, records: u32) -> f64 {
        let bytes = HEADER_BYTES + f64::from(records) * (RECORD_BYTES + bytes);
        let blocks = (bytes / BLOCK_BYTES).ceil();
        self.write_us + self.wake_us + (blocks - 1.0) * BLOCK_BYTES / KIB * self.us_per_kib
    }
}

impl FromStr for LogDevice {
    type Err = LogDeviceError;

    /// `nvme`, `sim:nvram`, `95us`, `95us,both=130us,rate=1.2GB/s,wake=30us`.
    fn from_str(text: &str) -> Result<Self, LogDeviceError> {
        let form = || LogDeviceError::Form(text.chars().take(80).collect());
        if text == "nvme" {
            return Ok(Self::of_sync(NVME_SYNC_US));
        }
        if let Some(name) = text.strip_prefix("sim:") {
            return Ok(Self::of(&name.parse()?));
        }
        let mut parts = text.split(',').map(str::trim);
        let time_us = |text: &str| {
            let time = words::time_with_unit(text).ok().map(Nanos::as_micros_f64);
            time.filter(|us| us.is_finite()).ok_or_else(form)
        };
        let mut device = Self::of_sync(time_us(parts.next().unwrap_or_default())?);
        for part in parts {
            match part.split_once('=') {
                Some(("both", time)) => device.both_us = time_us(time)?.max(device.write_us),
                Some(("wake", time)) => device.wake_us = time_us(time)?,
                Some(("rate", rate)) => {
                    let bits_per_s = words::rate(rate).map_err(|_| form())?;
                    device.us_per_kib = KIB * 8e6 / bits_per_s.max(1) as f64;
                }
                _ => return Err(form()),
            }
        }
        Ok(device)
    }
}

/// Frames of WRITEs of one size.
struct Frames {
    device: LogDevice,
    bytes: f64,
}

impl Syncs for Frames {
    fn at_a_time(&self) -> u32 {
        self.device.at_a_time()
    }

    fn together_max(&self) -> u32 {
        let records = (FRAME_BYTES_DUE - HEADER_BYTES) / (RECORD_BYTES + self.bytes);
        u32::try_from(words::rounded(records.ceil())).unwrap_or(u32::MAX).max(1)
    }

    fn sync_us(&self, calls: u32, others: u32) -> f64 {
        let beside_us = match others {
            0 => 0.0,
            _ => (self.device.both_us - self.device.write_us).max(0.0),
        };
        self.device.frame_us(self.bytes, calls) + beside_us
    }
}

/// Stable WRITEs over a path to a server, without a log or with one.
pub fn stable_rate(
    path: &Path,
    server: Server,
    log: Option<&LogDevice>,
    stable: &Stable,
) -> StableRate {
    let Stable { bytes, outstanding } = *stable;
    let (size, kib) = (bytes as f64, bytes as f64 / KIB);
    let callers = outstanding.max(1);
    let stage_us = path.capacity.call_of_us(size).max(path.overhead_us);
    let cycle_us = path.round_trip_us + kib * path.ser_us_per_kib + path.op_us;
    let (sync_us, call_us) = (path.storage.sync_us, kib * path.storage.us_per_kib);
    let loop_of = Gathered {
        way_us: (cycle_us - stage_us).max(0.0),
        stage_us: stage_us.min(cycle_us),
        after: 0.0,
        sync_us,
        call_us,
        wake_us: 0.0,
    };
    let log = log.filter(|_| bytes <= LOGGED_BYTES_MAX);
    let turns = match (log, server) {
        (Some(&device), _) => loop_of.turns_of(callers, &Frames { device, bytes: size }),
        (None, Server::Concurrent) => loop_of.turns(callers),
        // It serves nobody else while it syncs.
        (None, Server::Stall) => {
            let one_us = path.op_us.max(stage_us) + sync_us + call_us;
            let alone_per_s = f64::from(callers) * 1e6 / loop_of.cycle_us();
            Turns { per_s: alone_per_s.min(1e6 / one_us), together: 1.0 }
        }
    };
    let disk_per_s = if call_us > 0.0 { 1e6 / call_us } else { f64::INFINITY };
    StableRate {
        turns,
        response_us: f64::from(callers) / turns.per_s * 1e6,
        lasting_per_s: turns.per_s.min(disk_per_s),
        is_full: turns.per_s * stage_us > FULL_SHARE * 1e6,
    }
}

/// What a COMMIT takes of a file of which so many bytes are not stable, us: without a log, and with
/// one in which the file has records.
pub fn commit_us(path: &Path, server: Server, log: Option<&LogDevice>, bytes: u64) -> f64 {
    let sync_us = path.storage.commit_us(server, bytes as f64);
    let Some(device) = log else { return path.round_trip_us + sync_us };
    let logged_us = device.frame_us(bytes as f64, 1);
    let is_logged = bytes <= COMMITTED_BYTES_MAX && device.write_us < path.storage.sync_us;
    path.round_trip_us + if is_logged { logged_us } else { sync_us + device.frame_us(0.0, 1) }
}

/// Most that a COMMIT makes stable in the log.
const COMMITTED_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::transaction::{Capacity, Storage};

    const PATH: Path = Path {
        round_trip_us: 200.0,
        ser_us_per_kib: 8.192,
        op_us: 30.0,
        overhead_us: 0.0,
        capacity: Capacity { call_us: 1.0, us_per_kib: 8.192 },
        storage: Storage {
            sync_us: 8_333.0,
            us_per_kib: 5.12,
            left_us_per_kib: 0.0,
            unhidden_us_per_kib: 0.0,
        },
    };

    fn device(text: &str) -> LogDevice {
        text.parse().unwrap()
    }

    fn gain(log: &str, bytes: u64, outstanding: u32) -> f64 {
        let stable = Stable { bytes, outstanding };
        let of = |log| stable_rate(&PATH, Server::Concurrent, log, &stable).turns.per_s;
        of(Some(&device(log))) / of(None)
    }

    #[test]
    fn devices_are_read_as_they_are_printed() {
        let nvram = device("sim:nvram");
        assert!((nvram.write_us - 15.24).abs() < 1e-9, "{nvram:?}");
        assert!((nvram.us_per_kib - 2.56).abs() < 1e-9, "{nvram:?}");
        assert_eq!(nvram.at_a_time(), 1);
        let measured = device("95us, both=130us, rate=1.2GB/s");
        assert_eq!((measured.write_us, measured.both_us, measured.at_a_time()), (95.0, 130.0, 2));
        assert!((measured.us_per_kib - 1024.0 / 1200.0).abs() < 1e-9);
        assert_eq!(device("nvme"), LogDevice::of_sync(NVME_SYNC_US));
        assert_eq!(device("95us,wake=20us").wake_us, 20.0);
        assert_eq!(device("0.2ms").write_us, 200.0);
        for wrong in ["", "5", "95us,both", "95us,both=x", "95us,rate=0MB/s", "1us,speed=2", "sim:"]
        {
            assert!(wrong.parse::<LogDevice>().is_err(), "{wrong}");
        }
        let unknown = "sim:tape".parse::<LogDevice>().unwrap_err().to_string();
        assert!(unknown.contains("hdd, ssd-sata, nvme, nvram"), "{unknown}");
    }

    #[test]
    fn an_emulated_disk_of_a_device_takes_as_long() {
        let woken = LogDevice::of(&device("90us,wake=30us").profile());
        assert!((woken.write_us - 120.0).abs() < 0.01, "{woken:?}");
        for text in ["sim:nvram", "sim:hdd", "90us,both=91us,rate=500MB/s", "3ms"] {
            let (given, emulated) = (device(text), LogDevice::of(&device(text).profile()));
            assert!((given.write_us - emulated.write_us).abs() < 0.01, "{given:?} {emulated:?}");
            assert!(
                (given.us_per_kib - emulated.us_per_kib).abs() < 0.01,
                "{given:?} {emulated:?}"
            );
            assert_eq!(given.at_a_time(), emulated.at_a_time(), "{given:?} {emulated:?}");
        }
    }

    #[test]
    fn a_log_takes_the_sync_out_of_one_call_and_of_many() {
        // One call: 8333 us of sync and 335 us of everything else, then 36 us of log.
        let alone = gain("sim:nvram", 8192, 1);
        let want = (8_333.0 + 41.0 + 295.5) / (295.5 + 15.24 + 20.48);
        assert!((alone / want - 1.0).abs() < 0.01, "{alone} {want}");
        // Many fill the link, with a log alone.
        let stable = Stable { bytes: 8192, outstanding: 256 };
        let full = stable_rate(&PATH, Server::Concurrent, Some(&device("sim:nvram")), &stable);
        let link_us = PATH.capacity.call_of_us(8192.0);
        assert!((full.turns.per_s * link_us / 1e6 - 1.0).abs() < 0.02, "{full:?}");
        let slow =
            stable_rate(&PATH, Server::Concurrent, None, &Stable { outstanding: 1, ..stable });
        assert!(full.is_full && !slow.is_full, "{full:?} {slow:?}");
        // What the processor does for a frame is as if the device took it.
        assert_eq!(gain("90us,wake=30us", 8192, 1), gain("120us", 8192, 1));
        // A log as slow as the disk is no help.
        assert!((0.9..1.1).contains(&gain("8.4ms", 8192, 1)));
    }

    #[test]
    fn two_frames_at_a_time_make_groups_of_a_third() {
        let near = Path {
            round_trip_us: 0.0,
            op_us: 1.0,
            capacity: Capacity { call_us: 0.1, us_per_kib: 0.0 },
            ser_us_per_kib: 0.0,
            ..PATH
        };
        let stable = Stable { bytes: 4096, outstanding: 30 };
        let per_s = |text: &str| {
            stable_rate(&near, Server::Concurrent, Some(&device(text)), &stable).turns.per_s
        };
        let (one, two) = (per_s("1ms"), per_s("1ms,both=1ms"));
        assert!((one * 2_000.0 / 30e6 - 1.0).abs() < 0.01, "{one}");
        assert!((two * 1_500.0 / 30e6 - 1.0).abs() < 0.1, "{two}");
    }

    #[test]
    fn frames_are_no_longer_than_they_may_be_and_large_writes_are_not_logged() {
        let path = Path {
            capacity: Capacity { call_us: 0.1, us_per_kib: 0.0 },
            ser_us_per_kib: 0.0,
            ..PATH
        };
        let stable = Stable { bytes: 64 << 10, outstanding: 256 };
        let logged = stable_rate(&path, Server::Concurrent, Some(&device("sim:hdd")), &stable);
        assert!(logged.turns.together <= 16.0, "{logged:?}");
        assert_eq!(gain("sim:nvram", 1 << 20, 4), 1.0);
    }

    #[test]
    fn a_log_is_no_faster_for_ever_than_the_disk_behind_it() {
        let path = Path {
            capacity: Capacity { call_us: 1.0, us_per_kib: 0.1 },
            ser_us_per_kib: 0.1,
            ..PATH
        };
        let stable = Stable { bytes: 8192, outstanding: 64 };
        let logged = stable_rate(&path, Server::Concurrent, Some(&device("sim:nvram")), &stable);
        assert!((logged.lasting_per_s * 8.0 * 5.12 / 1e6 - 1.0).abs() < 1e-9, "{logged:?}");
        assert!(logged.turns.per_s > 1.5 * logged.lasting_per_s, "{logged:?}");
    }

    #[test]
    fn a_commit_of_a_little_is_a_frame_and_one_of_much_a_sync_and_a_frame() {
        let of = |log, bytes| commit_us(&PATH, Server::Concurrent, log, bytes);
        let (log, slow) = (device("sim:nvram"), device("9ms"));
        assert!((of(None, 64 << 10) - 8_533.0).abs() < 1e-9);
        // 65 KiB and 184 bytes in 17 blocks.
        let frame_us = 15.24 + 16.0 * 4.0 * 2.56;
        assert!((of(Some(&log), 64 << 10) - 200.0 - frame_us).abs() < 1e-9);
        assert!((of(Some(&log), 1 << 20) - of(None, 1 << 20) - 15.24).abs() < 1e-9);
        assert!(of(Some(&slow), 4096) > of(None, 4096), "a log that is slower takes no COMMITs");
    }
}
