//! The file server of the open model with the callers that a benchmark really has.
//!
//! N callers each have at most one call under way and think in between, just so long that together
//! they call at the rate that is requested. What differs from the open model:
//!
//! - response time does not grow without limit near the saturation: N calls at most are inside, so
//!   R <= N / X;
//! - a rate that N callers cannot reach with the response time that there is, is not reached:
//!   with L the saturation falls as soon as N / (R + 2 L) is less than what the server could do.
//!
//! What does not differ is d(R)/dL at one rate: thinking and the way are both delays, and a network
//! of queues cannot tell which of them a call spends its time in.
//!
//! Source: Martin & Culler 1999, sections 4.1 (the server), 4.2 (the muted inflection), 5.1.1 (the
//! saturation at 4 ms), 5.2.1 ("a closed system").

use super::network::{CALLERS_MAX, Center, Class, Kind, Network, Solution};
use crate::model::error::{ModelError, within};
use crate::model::queue::file_server::{Bottleneck, DiskLines, FileServer};

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedServer {
    server: FileServer,
    callers: u32,
}

/// Halvings of a range of think times or rates: to a share of 10^-13 of it.
const HALVINGS: usize = 44;

impl ClosedServer {
    /// Fails without callers, with too many, or with more disks with a line each than a network
    /// may have centers.
    pub fn new(server: FileServer, callers: u32) -> Result<Self, ModelError> {
        within("callers", callers.into(), 1, CALLERS_MAX.into())?;
        let closed = Self { server, callers };
        closed.network(1.0, 0.0)?;
        Ok(closed)
    }

    pub fn server(&self) -> &FileServer {
        &self.server
    }

    pub fn callers(&self) -> u32 {
        self.callers
    }

    /// Mean response time when the callers think so long that they call at this rate, us. `None`
    /// above the saturation.
    pub fn response_us(&self, per_s: f64) -> Option<f64> {
        if !(per_s.is_finite() && per_s > 0.0) || self.reaches(per_s, 0.0)? < per_s {
            return None;
        }
        let all_us = f64::from(self.callers) / per_s * 1e6;
        let (mut short_us, mut long_us) = (0.0, all_us);
        for _ in 0..HALVINGS {
            let think_us = f64::midpoint(short_us, long_us);
            if self.reaches(per_s, think_us)? > per_s {
                short_us = think_us;
            } else {
                long_us = think_us;
            }
        }
        Some(all_us - long_us)
    }

    /// The rate that the callers reach without thinking, and what limits it.
    pub fn saturation(&self) -> Option<(f64, Bottleneck)> {
        let (mut below, mut above) = (0.0, self.server.saturation().0);
        for _ in 0..HALVINGS {
            let rate = f64::midpoint(below, above);
            if self.reaches(rate, 0.0)? >= rate {
                below = rate;
            } else {
                above = rate;
            }
        }
        let (cpu, disks) = self.server.utilization(below);
        let busier = if cpu >= disks { Bottleneck::Cpu } else { Bottleneck::Disks };
        Some((below, if self.are_few(below) { Bottleneck::Callers } else { busier }))
    }

    /// Whether the callers, without any wait, make fewer calls than the server could serve: the
    /// lower of the two bounds is what limits.
    fn are_few(&self, per_s: f64) -> bool {
        let FileServer { cpu, disks, cache, delay_us, .. } = self.server;
        let call_us = cpu.service_us() + delay_us + cache.misses(per_s) * disks.service_us();
        f64::from(self.callers) / call_us * 1e6 < self.server.saturation().0
    }

    /// The callers' rate for a think time, if so many calls miss the cache as at `per_s`.
    fn reaches(&self, per_s: f64, think_us: f64) -> Option<f64> {
        let network = self.network(per_s, think_us).ok()?;
        Some(solve(&network)?.throughput_per_s[0])
    }

    fn network(&self, per_s: f64, think_us: f64) -> Result<Network, ModelError> {
        let FileServer { cpu, disks, disk_lines, cache, delay_us } = self.server;
        let disk_us = cache.misses(per_s) * disks.service_us();
        let mut centers = vec![
            Center::new("cpu", Kind::Servers(cpu.servers()), &[cpu.service_us()]),
            Center::new("delay", Kind::Delay, &[delay_us]),
        ];
        match disk_lines {
            _ if disk_us == 0.0 => {}
            DiskLines::Shared => {
                centers.push(Center::new("disks", Kind::Servers(disks.servers()), &[disk_us]));
            }
            DiskLines::Each => {
                let share_us = disk_us / f64::from(disks.servers());
                let disk = Center::new("disk", Kind::Queue, &[share_us]);
                let most = super::network::CENTERS_MAX as u64 - 2;
                within("disks with a line each", disks.servers().into(), 1, most)?;
                centers.extend(vec![disk; disks.servers() as usize]);
            }
        }
        Network::new(vec![Class { callers: self.callers, think_us }], centers)
    }
}

/// Exact where that is possible, else approximate.
fn solve(network: &Network) -> Option<Solution> {
    network.solve().or_else(|_| network.approximate()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(server: FileServer, callers: u32) -> ClosedServer {
        ClosedServer::new(server, callers).unwrap()
    }

    fn with_latency(server: FileServer, added_us: f64) -> FileServer {
        FileServer { delay_us: server.delay_us + 2.0 * added_us, ..server }
    }

    fn each(server: FileServer) -> FileServer {
        FileServer { disk_lines: DiskLines::Each, ..server }
    }

    #[test]
    fn very_many_callers_are_the_open_model() {
        let server = FileServer::paper_scsi();
        let open_us = server.response_us(600.0).unwrap();
        let closed_us = closed(server, 3_000).response_us(600.0).unwrap();
        assert!((closed_us / open_us - 1.0).abs() < 1e-3, "{closed_us} {open_us}");
    }

    #[test]
    fn a_closed_server_ends_at_its_saturation_with_a_finite_response_time() {
        let server = closed(FileServer::paper_scsi(), 24);
        let (per_s, by) = server.saturation().unwrap();
        assert_eq!(by, Bottleneck::Cpu);
        assert!((1050.0..1111.0).contains(&per_s), "{per_s}");
        let most_us = 24.0 / per_s * 1e6;
        let last_us = server.response_us(per_s * 0.999_999).unwrap();
        assert!((last_us / most_us - 1.0).abs() < 1e-3, "{last_us} {most_us}");
        assert_eq!(server.response_us(per_s * 1.001), None);
        assert_eq!(server.response_us(f64::NAN), None);
        assert_eq!(server.response_us(0.0), None);
    }

    /// Section 5.1.1: L of 4 ms lowers the saturation, less does not, and more load generators
    /// bring it back. The open model knows no such thing.
    #[test]
    fn a_long_way_lowers_the_saturation_for_want_of_callers() {
        let saturation = |added_us, callers| {
            let server = with_latency(FileServer::paper_scsi(), added_us);
            closed(server, callers).saturation().unwrap().0
        };
        let base = saturation(0.0, 24);
        assert!(saturation(150.0, 24) > 0.99 * base);
        assert!(saturation(4_000.0, 24) < 0.90 * base);
        assert!(saturation(4_000.0, 48) > 0.98 * base);
        let open = |added_us| with_latency(FileServer::paper_scsi(), added_us).saturation().0;
        assert_eq!(open(4_000.0), open(0.0));
    }

    /// What the closed model cannot explain: the paper measured 3.
    #[test]
    fn latency_counts_twice_at_one_rate_in_a_closed_network_too() {
        for lines in [FileServer::paper_raid(), each(FileServer::paper_raid())] {
            let at =
                |added_us| closed(with_latency(lines, added_us), 64).response_us(900.0).unwrap();
            assert!(((at(1_000.0) - at(0.0)) / 1_000.0 - 2.0).abs() < 1e-6);
        }
    }

    /// Measured slopes and intercepts (table 1), us per call a second and ms. The intercepts of the
    /// RAID are printed in each other's column.
    const SCSI: (f64, f64) = (14.3, 4.52);
    const RAID: (f64, f64) = (18.9, -6.8);

    /// Slope, and the largest relative distance from the measured line.
    fn against(
        (slope, intercept_ms): (f64, f64),
        rates: &[f64],
        of: &dyn Fn(f64) -> Option<f64>,
    ) -> (f64, f64) {
        let (x, y): (Vec<f64>, Vec<f64>) =
            rates.iter().filter_map(|&per_s| Some((per_s, of(per_s)?))).unzip();
        assert!(x.len() >= 8, "only {} rates reached", x.len());
        let distance = |(x, y): (&f64, &f64)| (y / (intercept_ms * 1e3 + slope * x) - 1.0).abs();
        let worst = x.iter().zip(&y).map(distance).fold(0.0, f64::max);
        (crate::stats::fit_least_squares(&x, &y).unwrap().slope.value, worst)
    }

    /// The table in docs/models.md, section 11: measured slopes of 14.3 and 18.9 us. The open model
    /// with its printed parameters has the SCSI's and too little for the RAID, whose own lines
    /// before each disk give it; for the SCSI they would be too much. A limited number of callers
    /// tempers both. Levels are off by a third in all of them.
    #[test]
    fn measured_slopes_lie_between_one_line_for_all_disks_and_a_line_each() {
        let rates = |from: u32, to: u32| -> Vec<f64> {
            (from..=to).map(|hundred| f64::from(hundred) * 100.0).collect()
        };
        let mut slopes = Vec::new();
        for (server, line, rates) in [
            (FileServer::paper_scsi(), SCSI, rates(2, 10)),
            (FileServer::paper_raid(), RAID, rates(6, 14)),
        ] {
            for server in [server, each(server)] {
                let open = against(line, &rates, &|per_s| server.response_us(per_s));
                let closed = closed(server, 48);
                let closed = against(line, &rates, &|per_s| closed.response_us(per_s));
                assert!(open.1 > 0.3 && closed.1 > 0.3 && closed.1 <= open.1);
                slopes.extend([open.0, closed.0].map(|us| (us * 10.0).round() / 10.0));
            }
        }
        assert_eq!(slopes, [14.3, 11.2, 24.1, 20.9, 13.2, 10.4, 19.0, 16.1]);
    }
}
