//! From the command line's options, or those of the run that made a record, to what models take.

use perf::model::error::ModelError;
use perf::model::infer::{Given, UNKNOWN};
use perf::model::queue::cache::Cache;
use perf::model::queue::file_server::{Bottleneck, DiskLines, FileServer};
use perf::model::queue::line::Line;
use perf::units::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::args::estimate::Known;

/// What was given of a server, as its record has it.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accessed_bytes_per_op_s: Option<u64>,
    line_each: bool,
}

/// The name under `model`.
const NAME: &str = "given";

/// SFS: 1 MB for each call a second; a tenth of the 10 MiB that it makes, in the units in which
/// `--cache 128M` is read.
const ACCESSED_BYTES: u64 = 1 << 20;

impl Facts {
    /// What a record has. What cannot be read was not given.
    pub(super) fn of_record(model: &Map<String, Value>) -> Self {
        let value = model.get(NAME).cloned();
        value.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
    }

    pub(super) fn write(&self, model: &mut Map<String, Value>) {
        // A struct of numbers is always a value.
        if let Ok(value) = serde_json::to_value(self) {
            model.insert(NAME.to_owned(), value);
        }
    }

    /// What an inference is given.
    pub(super) fn given(&self) -> Given {
        let accessed = self.accessed_bytes_per_op_s.unwrap_or(ACCESSED_BYTES);
        Given {
            cpus: self.cpus.unwrap_or(1),
            disks: self.disks,
            disk_us: self.disk_us,
            cache_bytes: self.cache_bytes.map(|bytes| bytes as f64),
            accessed_bytes_per_op_s: accessed as f64,
            disk_lines: lines(self.line_each),
            ..UNKNOWN
        }
    }
}

fn lines(each: bool) -> DiskLines {
    if each { DiskLines::Each } else { DiskLines::Shared }
}

impl Known {
    /// This, and what it leaves open as it was given before.
    pub(super) fn or_before(&self, before: &Facts) -> Facts {
        Facts {
            cpus: self.cpus.or(before.cpus),
            disks: self.disks.or(before.disks),
            disk_us: self.disk.map(Nanos::as_micros_f64).or(before.disk_us),
            cache_bytes: self.cache.or(before.cache_bytes),
            accessed_bytes_per_op_s: self.accessed.or(before.accessed_bytes_per_op_s),
            line_each: self.line_each || before.line_each,
        }
    }

    /// Each option, and whether it is given.
    pub(super) fn given(&self) -> [(bool, &'static str); 6] {
        let [cache, disks, accessed, line_each] = self.of_a_disk();
        let [cpus, disk] = [(self.cpus.is_some(), "--cpus"), (self.disk.is_some(), "--disk")];
        [cpus, disk, cache, disks, accessed, line_each]
    }

    /// Those of a server with a disk.
    pub(super) fn of_a_disk(&self) -> [(bool, &'static str); 4] {
        [
            (self.cache.is_some(), "--cache"),
            (self.disks.is_some(), "--disks"),
            (self.accessed.is_some(), "--accessed"),
            (self.line_each, "--line-each"),
        ]
    }

    /// A server of these parameters. Without a disk all is in the cache.
    pub(super) fn server(&self, cpu: Nanos, delay: Nanos) -> Result<FileServer, ModelError> {
        let accessed = self.accessed.unwrap_or(ACCESSED_BYTES) as f64;
        let (disk, cache) = match self.disk {
            // No call comes to it.
            None => (Nanos::from_millis(10), Cache::fixed(1.0, 0.0)?),
            Some(disk) => (disk, Cache::scaled(self.cache.unwrap_or_default() as f64, accessed)?),
        };
        let cpu = Line::new(self.cpus.unwrap_or(1), cpu.as_micros_f64())?;
        let disks = Line::new(self.disks.unwrap_or(1), disk.as_micros_f64())?;
        let server = FileServer::new(cpu, disks, cache, delay.as_micros_f64())?;
        Ok(FileServer { disk_lines: lines(self.line_each), ..server })
    }
}

pub(super) fn name(bottleneck: Bottleneck) -> &'static str {
    match bottleneck {
        Bottleneck::Callers => "the callers",
        Bottleneck::Cpu => "the processor",
        Bottleneck::Disks => "the disks",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        known: Known,
    }

    #[test]
    fn a_cache_and_what_is_accessed_are_in_one_unit_given_or_not() {
        let given = |words: &[&str]| {
            let words = std::iter::once(&"model").chain(words);
            Arguments::parse_from(words).known.or_before(&Facts::default()).given()
        };
        let value = given(&["--cache", "1M", "--accessed", "1M"]);
        assert_eq!(value.cache_bytes, Some(value.accessed_bytes_per_op_s));
        assert_eq!(given(&[]).accessed_bytes_per_op_s, value.accessed_bytes_per_op_s);
    }
}
