//! A file server as an open network: processor, cache, disks, and a fixed delay.
//!
//! ```text
//! rate ---> CPU, M/M/c ---> cache ---- hit ----------------> + D --->
//!                             |                              |
//!                             +-- miss --> disks, M/M/m -----+
//!
//! R(rate) = D + R_cpu(rate) + P_miss(rate) x R_disk(P_miss x rate)
//! ```
//!
//! D is what does not depend on the load: the network both ways, the client's own time, fixed
//! costs of the server. Saturation is where processor or disks are busy all the time.
//!
//! Source: Martin & Culler 1999, section 4.1; the parameters of their two servers are
//! [`FileServer::paper_scsi`] and [`FileServer::paper_raid`]. That the disks may have a line each
//! ([`DiskLines::Each`]) is our addition: a block lies on one disk, and waits for that disk while
//! others are idle.

use super::cache::Cache;
use super::line::Line;
use crate::model::error::{ModelError, not_negative};
use crate::stats;

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileServer {
    /// c processors of S_cpu us a call.
    pub cpu: Line,
    /// m disks of S_disk us a call that misses the cache.
    pub disks: Line,
    pub disk_lines: DiskLines,
    pub cache: Cache,
    /// D, us.
    pub delay_us: f64,
}

/// Before what calls for the disks wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DiskLines {
    /// One line for all disks, whichever is free first: the paper's M/M/m.
    Shared,
    /// Each disk its own, with an equal share of the calls: m times M/M/1.
    Each,
}

/// What is busy all the time at the saturation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bottleneck {
    /// Of a closed server: they are too few to keep anything else busy.
    Callers,
    Cpu,
    Disks,
}

impl FileServer {
    /// As the paper has it. Fails unless D is 0 or more.
    pub fn new(cpu: Line, disks: Line, cache: Cache, delay_us: f64) -> Result<Self, ModelError> {
        let delay_us = not_negative("delay", delay_us)?;
        Ok(Self { cpu, disks, disk_lines: DiskLines::Shared, cache, delay_us })
    }

    /// The paper's "SCSI" server: 900 us, 24 disks of 12 ms, 128 MB, D = 3.4 ms.
    pub fn paper_scsi() -> Self {
        Self::paper(900.0, 24, 128.0)
    }

    /// The paper's "RAID" server: 650 us, 28 disks of 12 ms, 448 MB and 64 MB of NVRAM.
    pub fn paper_raid() -> Self {
        Self::paper(650.0, 28, 512.0)
    }

    fn paper(cpu_us: f64, disks: u32, cache_mb: f64) -> Self {
        let built = || {
            let (cpu, disks) = (Line::new(1, cpu_us)?, Line::new(disks, 12_000.0)?);
            Self::new(cpu, disks, Cache::scaled(cache_mb * 1e6, 1e6)?, 3_400.0)
        };
        built().expect("all of the paper's parameters are positive")
    }

    /// Mean response time at a rate, us. `None` at and above the saturation.
    pub fn response_us(&self, per_s: f64) -> Option<f64> {
        let misses = self.cache.misses(per_s);
        let disk_us = match self.disk_lines {
            _ if misses == 0.0 => 0.0,
            DiskLines::Shared => self.disks.response_us(misses * per_s)?,
            DiskLines::Each => {
                let share = misses * per_s / f64::from(self.disks.servers());
                Line::new(1, self.disks.service_us()).ok()?.response_us(share)?
            }
        };
        Some(self.delay_us + self.cpu.response_us(per_s)? + misses * disk_us)
    }

    /// Utilization of processor and disks at a rate; 1 or more: beyond the saturation.
    pub fn utilization(&self, per_s: f64) -> (f64, f64) {
        (self.cpu.utilization(per_s), self.disks.utilization(self.cache.misses(per_s) * per_s))
    }

    /// The rate at which the first of processor and disks is busy all the time, and which.
    pub fn saturation(&self) -> (f64, Bottleneck) {
        let cpu_per_s = self.cpu.saturation_per_s();
        if self.utilization(cpu_per_s).1 < 1.0 {
            return (cpu_per_s, Bottleneck::Cpu);
        }
        // The disks' utilization grows with the rate: halve the range until it is a point.
        let (mut below, mut above) = (0.0, cpu_per_s);
        for _ in 0..200 {
            let middle = f64::midpoint(below, above);
            if middle <= below || above <= middle {
                break;
            }
            if self.utilization(middle).1 < 1.0 {
                below = middle;
            } else {
                above = middle;
            }
        }
        (above, Bottleneck::Disks)
    }

    /// The same server, made to reach a rate that was measured of it: a station that needs more
    /// than all of its time for that gets a shorter service time.
    #[must_use]
    pub fn reaching(&self, per_s: f64) -> Self {
        let (cpu, disks) = self.utilization(per_s);
        let faster = |line: Line, busy: f64| match busy > 1.0 {
            true => Line::new(line.servers(), line.service_us() / busy).unwrap_or(line),
            false => line,
        };
        Self { cpu: faster(self.cpu, cpu), disks: faster(self.disks, disks), ..*self }
    }

    /// Rate and response time (us) at each of the rates below the saturation.
    pub fn curve(&self, rates_per_s: &[f64]) -> Vec<(f64, f64)> {
        let point = |&per_s: &f64| Some((per_s, self.response_us(per_s)?));
        rates_per_s.iter().filter_map(point).collect()
    }

    /// The least-squares line through the curve at these rates: slope in us per call a second,
    /// intercept in us. `None` with fewer than two rates below the saturation.
    pub fn slope(&self, rates_per_s: &[f64]) -> Option<stats::Fit> {
        let (x, y): (Vec<f64>, Vec<f64>) = self.curve(rates_per_s).into_iter().unzip();
        stats::fit_least_squares(&x, &y).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_reaches_what_was_measured_of_it() {
        for server in [FileServer::paper_scsi(), FileServer::paper_raid()] {
            let per_s = server.saturation().0;
            assert_eq!(server.reaching(0.9 * per_s), server);
            let faster = server.reaching(1.5 * per_s).saturation().0;
            assert!((faster / per_s - 1.5).abs() < 1e-6, "{faster} {per_s}");
        }
    }

    fn hundreds(from: u32, to: u32) -> Vec<f64> {
        (from..=to).map(|hundred| f64::from(hundred) * 100.0).collect()
    }

    /// In ms with two digits, as the reader has them before his eyes.
    fn curve_ms(server: &FileServer, rates_per_s: &[f64]) -> Vec<f64> {
        let curve = server.curve(rates_per_s);
        curve.into_iter().map(|(_, us)| (us / 10.0).round() / 100.0).collect()
    }

    #[test]
    fn the_papers_base_times_and_saturations() {
        let (scsi, raid) = (FileServer::paper_scsi(), FileServer::paper_raid());
        assert_eq!(curve_ms(&scsi, &[200.0]), [8.82]); // printed 8.6
        assert_eq!(curve_ms(&raid, &[500.0]), [4.36]); // printed 4.3
        let (scsi_per_s, scsi_by) = scsi.saturation();
        let (raid_per_s, raid_by) = raid.saturation();
        assert_eq!((scsi_per_s.round(), raid_per_s.round()), (1111.0, 1538.0));
        assert_eq!((scsi_by, raid_by), (Bottleneck::Cpu, Bottleneck::Cpu));
        // The NVRAM has to be counted: without it the RAID's base is far from the print.
        let without = FileServer { cache: raid.cache.with_bytes(448e6).unwrap(), ..raid };
        assert_eq!(curve_ms(&without, &[500.0]), [5.61]);
    }

    #[test]
    fn the_papers_curves_as_its_parameters_give_them() {
        assert_eq!(
            curve_ms(&FileServer::paper_scsi(), &hundreds(2, 10)),
            [8.82, 11.51, 12.97, 13.96, 14.80, 15.64, 16.69, 18.43, 22.86]
        );
        assert_eq!(
            curve_ms(&FileServer::paper_raid(), &hundreds(5, 14)),
            [4.36, 6.23, 7.82, 9.07, 10.14, 11.11, 12.10, 13.23, 14.87, 18.23]
        );
    }

    /// Table 1 prints slopes of 8.5 and 10.4 us for the model. They do not follow from the printed
    /// parameters over the printed ranges, with or without the last points: this is what does.
    #[test]
    fn the_slopes_are_those_of_the_parameters_and_not_of_the_print() {
        let slope = |server: FileServer, rates: &[f64]| server.slope(rates).unwrap().slope.value;
        let scsi = slope(FileServer::paper_scsi(), &hundreds(2, 9));
        let raid = slope(FileServer::paper_raid(), &hundreds(5, 13));
        assert!((12.1..12.2).contains(&scsi), "{scsi}");
        assert!((12.2..12.3).contains(&raid), "{raid}");
    }

    #[test]
    fn disks_with_a_line_each_make_calls_wait_where_one_line_does_not() {
        let shared = FileServer::paper_raid();
        let each = FileServer { disk_lines: DiskLines::Each, ..shared };
        assert_eq!(curve_ms(&each, &[500.0, 1000.0, 1300.0]), [4.36, 12.66, 18.58]);
        assert_eq!(each.saturation(), shared.saturation());
    }

    #[test]
    fn few_disks_become_the_bottleneck() {
        let few = FileServer { disks: Line::new(6, 12_000.0).unwrap(), ..FileServer::paper_scsi() };
        let (per_s, by) = few.saturation();
        // 500 misses a second, and 128 calls a second that hit.
        assert_eq!((per_s.round(), by), (628.0, Bottleneck::Disks));
        assert!(few.response_us(per_s * 0.999).is_some());
        assert_eq!(few.response_us(per_s * 1.001), None);
    }
}
