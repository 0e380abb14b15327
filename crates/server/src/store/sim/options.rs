//! What an emulated disk and its server's memory are like.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use perf::model::disk::Profile;
use perf::units::Instant;

use crate::store::mem::MemOptions;

use super::write_log::LogSpec;

/// How a store begins.
#[derive(Clone, Copy, Debug)]
pub struct SimOptions {
    pub disk: Profile,
    /// Limits of the files, which are in memory: once as they are, and once as a crash would leave
    /// them if [`Self::crashes`] is set.
    pub memory: MemOptions,
    /// Size of the page cache; 0 has every READ go to the disk. What is dirty is in memory besides.
    pub cache_bytes_max: u64,
    /// More bytes than this that are not on the disk have the next WRITE wait until some are.
    pub dirty_bytes_max: u64,
    /// When to begin to write what is dirty before somebody asks.
    pub write_back: WriteBack,
    /// Whether [`super::SimStore::crash`] will be requested. Without it data are held once.
    pub crashes: bool,
    pub after_failed_sync: AfterFailedSync,
    /// A log from which stable WRITEs are answered, on a disk of its own.
    pub write_log: Option<LogSpec>,
}

/// When dirty data start for the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteBack {
    /// When a file has so many bytes of them.
    Early { bytes: u64 },
    /// When they are committed, or become too many.
    OnDemand,
    /// With each WRITE, which so is stable when it is answered, whatever was requested: as of a
    /// server with NVRAM, or of an export with `sync`.
    Through,
}

/// What becomes of data that a failed sync should have made stable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AfterFailedSync {
    /// They stay dirty, and the next sync tries again.
    KeepDirty,
    /// They are taken for clean, as Linux does: read until a crash, and gone after it.
    Lose,
}

impl Default for SimOptions {
    /// A spinning disk, 256 MiB of cache, 64 MiB of them dirty, written early in pieces of 2 MiB.
    fn default() -> Self {
        Self {
            disk: perf::model::disk::PROFILES[0],
            memory: MemOptions::default(),
            cache_bytes_max: 256 << 20,
            dirty_bytes_max: 64 << 20,
            write_back: WriteBack::Early { bytes: 2 << 20 },
            crashes: true,
            after_failed_sync: AfterFailedSync::Lose,
            write_log: None,
        }
    }
}

/// The machine that the disk is in: its time, and a way to wait. This crate has neither.
pub trait Machine: fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Instant;
    /// Waits until then.
    fn until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
