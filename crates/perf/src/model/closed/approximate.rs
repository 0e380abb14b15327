//! Approximate mean value analysis (Schweitzer, Bard): for populations that are too large to be
//! solved exactly, in time and memory that do not grow with them.
//!
//! With one caller of class c less, it supposes, the calls of c at each center are fewer in
//! proportion, and those of other classes as many:
//!
//! ```text
//! Q(n - c) = Q(n) - Q_c(n) / n_c
//! ```
//!
//! which closes the equations of [`super::exact`]; they are iterated until nothing moves. A center
//! with m servers is taken for a queue of D / m and a delay of D (m - 1) / m (Seidmann, Schweitzer,
//! Shalev-Oren 1987).
//!
//! Error, found by comparison with the exact solution of 4,000 random networks of up to 30 callers
//! (see the test): [`ERROR_MAX`] at worst, 0.2 % in the median with one class and 2 % with two. The
//! worst are classes of one or two callers beside others. Exact for one caller and, in the limit,
//! for many.
//!
//! Source: Schweitzer 1979; Bard 1979; Lazowska et al. 1984, section 6.4.2.

use super::super::error::ModelError;
use super::network::{Center, Kind, Network, Solution};

/// Share of a class's throughput that the approximation was ever seen to be off by.
pub const ERROR_MAX: ErrorMax =
    ErrorMax { one_class: 0.07, one_class_servers: 0.24, classes: 0.25, classes_servers: 0.30 };

/// With one class or several, without centers of several servers and with them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorMax {
    pub one_class: f64,
    pub one_class_servers: f64,
    pub classes: f64,
    pub classes_servers: f64,
}

/// Rounds at most. Some tens are the rule; a network that needs more is as good as it gets.
const ROUNDS_MAX: usize = 100_000;

/// Times, relative: as far as floating point carries over many rounds.
const SETTLED: f64 = 1e-13;

impl Network {
    /// Means for the given callers, however many they are. Always succeeds on a network that was
    /// built; the result is a `Result` as that of [`Network::solve`] is.
    pub fn approximate(&self) -> Result<Solution, ModelError> {
        let (classes, centers) = (self.classes.len(), self.centers.len());
        let callers: Vec<f64> = self.classes.iter().map(|class| class.callers.into()).collect();
        let mut calls = vec![vec![0.0; centers]; classes];
        for c in 0..classes {
            calls[c].fill(callers[c] / centers as f64);
        }
        let mut lined_us = vec![vec![0.0; centers]; classes];
        let mut throughput_per_s = vec![0.0; classes];
        for _ in 0..ROUNDS_MAX {
            let there: Vec<f64> =
                (0..centers).map(|k| calls.iter().map(|class| class[k]).sum()).collect();
            let mut moved: f64 = 0.0;
            for c in (0..classes).filter(|&c| callers[c] > 0.0) {
                for (k, center) in self.centers.iter().enumerate() {
                    let seen = there[k] - calls[c][k] / callers[c];
                    let (line_us, delay_us) = split(center, c);
                    let fresh_us = line_us * (1.0 + seen);
                    moved = moved.max(
                        (fresh_us - lined_us[c][k]).abs()
                            / (fresh_us + delay_us).max(f64::MIN_POSITIVE),
                    );
                    lined_us[c][k] = fresh_us;
                }
                let delays = self.centers.iter().map(|center| split(center, c).1);
                let all_us = self.classes[c].think_us
                    + delays.sum::<f64>()
                    + lined_us[c].iter().sum::<f64>();
                throughput_per_s[c] = callers[c] / all_us * 1e6;
            }
            for c in 0..classes {
                for k in 0..centers {
                    calls[c][k] = throughput_per_s[c] * lined_us[c][k] / 1e6;
                }
            }
            if moved < SETTLED {
                break;
            }
        }
        let residence_us = |c: usize, k: usize| match callers[c] {
            0.0 => 0.0,
            _ => lined_us[c][k] + split(&self.centers[k], c).1,
        };
        let response = |c: usize| (0..centers).map(|k| residence_us(c, k)).sum();
        let at = |k: usize| {
            let times = (0..classes).map(|c| residence_us(c, k)).collect();
            self.centers[k].at(times, &throughput_per_s)
        };
        Ok(Solution {
            response_us: (0..classes).map(response).collect(),
            centers: (0..centers).map(at).collect(),
            throughput_per_s,
        })
    }
}

/// Of a demand (us), what is spent in a queue before one server, and what in a delay.
fn split(center: &Center, class: usize) -> (f64, f64) {
    let us = center.demands_us[class];
    match center.kind {
        Kind::Queue => (us, 0.0),
        Kind::Servers(servers) => (us / f64::from(servers), us * (1.0 - 1.0 / f64::from(servers))),
        Kind::Delay => (0.0, us),
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::Class;
    use super::*;

    /// Networks of 1 to 5 centers, 1 to 30 callers, demands over three decades.
    fn random(draw: &mut fastrand::Rng, classes: usize, servers_max: u32) -> Network {
        let callers_max = if classes == 1 { 30 } else { 15 };
        let class = |draw: &mut fastrand::Rng| Class {
            callers: draw.u32(1..=callers_max),
            think_us: if draw.bool() { draw.f64() * 20_000.0 } else { 0.0 },
        };
        let of_classes = (0..classes).map(|_| class(draw)).collect();
        let centers = (0..draw.usize(1..=5))
            .map(|_| {
                let kind = match draw.u32(0..10) {
                    0 | 1 => Kind::Delay,
                    2..6 if servers_max > 1 => Kind::Servers(draw.u32(2..=servers_max)),
                    _ => Kind::Queue,
                };
                let demands: Vec<f64> =
                    (0..classes).map(|_| 10_f64.powf(1.0 + 3.0 * draw.f64())).collect();
                Center::new("center", kind, &demands)
            })
            .collect();
        Network::new(of_classes, centers).unwrap()
    }

    /// Worst relative error of a throughput over 1,000 networks, and the median of each one's
    /// worst.
    fn errors(classes: usize, servers_max: u32) -> (f64, f64) {
        let mut draw = fastrand::Rng::with_seed(7);
        let mut errors: Vec<f64> = (0..1_000)
            .map(|_| {
                let network = random(&mut draw, classes, servers_max);
                let (exact, near) = (network.solve().unwrap(), network.approximate().unwrap());
                let both = exact.throughput_per_s.iter().zip(&near.throughput_per_s);
                both.map(|(exact, near)| (near / exact - 1.0).abs()).fold(0.0, f64::max)
            })
            .collect();
        errors.sort_unstable_by(f64::total_cmp);
        (errors[500], errors[999])
    }

    #[test]
    fn the_error_stays_within_what_is_stated() {
        for (classes, servers_max, stated) in [
            (1, 1, ERROR_MAX.one_class),
            (1, 16, ERROR_MAX.one_class_servers),
            (2, 1, ERROR_MAX.classes),
            (2, 16, ERROR_MAX.classes_servers),
        ] {
            let (median, worst) = errors(classes, servers_max);
            assert!(worst <= stated, "{classes} classes, {servers_max} servers: {worst}");
            assert!(worst > 0.7 * stated, "the statement is idle: {worst}");
            assert!(median <= 0.025, "{classes} classes, {servers_max} servers: {median}");
        }
    }

    #[test]
    fn one_caller_is_exact_and_a_million_cost_no_more() {
        let centers =
            vec![Center::new("cpu", Kind::Queue, &[50.0]), Center::new("way", Kind::Delay, &[9.0])];
        let network = Network::new(vec![Class { callers: 1, think_us: 1.0 }], centers).unwrap();
        let one = network.approximate().unwrap();
        assert!((one.throughput_per_s[0] - 1e6 / 60.0).abs() < 1e-6);
        let many = network.with_callers(&[1_000_000]).unwrap().approximate().unwrap();
        assert!((many.throughput_per_s[0] - 20_000.0).abs() < 1e-3);
    }
}
