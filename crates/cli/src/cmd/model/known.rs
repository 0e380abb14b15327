//! From what is told on the command line to what models take.

use perf::model::error::ModelError;
use perf::model::infer::{Given, UNKNOWN};
use perf::model::queue::cache::Cache;
use perf::model::queue::line::Line;
use perf::model::queue::server::{Bottleneck, DiskLines, FileServer};
use perf::units::Nanos;

use crate::args::estimate::Known;

impl Known {
    /// What an inference is given.
    pub(super) fn given(&self) -> Given {
        Given {
            cpus: self.cpus,
            disks: self.disks,
            disk_us: self.disk.map(Nanos::as_micros_f64),
            cache_bytes: self.cache.map(|bytes| bytes as f64),
            accessed_bytes_per_op_s: self.accessed as f64,
            disk_lines: self.lines(),
            ..UNKNOWN
        }
    }

    fn lines(&self) -> DiskLines {
        if self.line_each { DiskLines::Each } else { DiskLines::Shared }
    }

    /// A server of these parameters. What is not told of disks and cache is taken as not there: a
    /// cache without end.
    pub(super) fn server(&self, cpu: Nanos, delay: Nanos) -> Result<FileServer, ModelError> {
        let disk = self.disk.unwrap_or(Nanos::from_millis(10));
        let cache = match (self.cache, self.disk) {
            (None, None) => Cache::fixed(1.0, 0.0)?,
            (cache, _) => Cache::scaled(cache.unwrap_or_default() as f64, self.accessed as f64)?,
        };
        let cpu = Line::new(self.cpus, cpu.as_micros_f64())?;
        let disks = Line::new(self.disks.unwrap_or(1), disk.as_micros_f64())?;
        let server = FileServer::new(cpu, disks, cache, delay.as_micros_f64())?;
        Ok(FileServer { disk_lines: self.lines(), ..server })
    }
}

pub(super) fn name(bottleneck: Bottleneck) -> &'static str {
    match bottleneck {
        Bottleneck::Cpu => "the processor",
        Bottleneck::Disks => "the disks",
    }
}
