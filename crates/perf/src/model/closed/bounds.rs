//! What a closed network of one class can reach at most and at least, without solving it.
//!
//! ```text
//! N / (D + Z + (N - 1) D_queue)  <=  X  <=  min( N / (D + Z), 1 / D_max )
//! N* = (D + Z) / D_max
//! ```
//!
//! D is the sum of all demands, D_queue of those at queues, D_max the largest at a queue; of a
//! center with m servers a m-th counts. N* is where the two upper bounds meet: with fewer callers
//! the way limits, with more a center.
//!
//! Source: Lazowska et al. 1984, section 5.2 and table 5.3.

use super::network::{Kind, Network};

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Calls a second.
    pub least_per_s: f64,
    pub most_per_s: f64,
    /// N*, callers.
    pub knee: f64,
}

impl Network {
    /// Bounds of a network with one class; `None` for several.
    pub fn bounds(&self) -> Option<Bounds> {
        let [class] = self.classes[..] else { return None };
        let (mut all_us, mut most_us, mut queue_us) = (class.think_us, 0.0_f64, 0.0);
        for center in &self.centers {
            let us = center.demands_us[0];
            all_us += us;
            if center.kind != Kind::Delay {
                most_us = most_us.max(us / center.servers());
                queue_us += us;
            }
        }
        let callers = f64::from(class.callers);
        let least_per_s = if class.callers == 0 {
            0.0
        } else {
            callers / (all_us + (callers - 1.0) * queue_us) * 1e6
        };
        let most_per_s = (callers / all_us).min(1.0 / most_us) * 1e6;
        Some(Bounds { least_per_s, most_per_s, knee: all_us / most_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::closed::network::{Center, Class};

    #[test]
    fn the_solution_lies_between_the_bounds_and_meets_them_at_both_ends() {
        for callers in [1, 2, 5, 10, 50, 500] {
            let network = Network::new(
                vec![Class { callers, think_us: 5_000.0 }],
                vec![
                    Center::new("cpu", Kind::Queue, &[300.0]),
                    Center::new("disks", Kind::Servers(4), &[2_400.0]),
                    Center::new("way", Kind::Delay, &[700.0]),
                ],
            )
            .unwrap();
            let bounds = network.bounds().unwrap();
            let exact = network.solve().unwrap().throughput_per_s[0];
            assert!(bounds.least_per_s <= exact * (1.0 + 1e-12), "{callers}");
            assert!(exact <= bounds.most_per_s * (1.0 + 1e-12), "{callers}");
            assert!((bounds.knee - 14.0).abs() < 1e-9);
            if callers == 1 || callers == 500 {
                assert!((exact / bounds.most_per_s - 1.0).abs() < 1e-9, "{callers}");
            }
        }
    }
}
