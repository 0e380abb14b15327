//! Exact mean value analysis, for several classes and centers with several servers.
//!
//! A call that comes to a center sees it as it would be without that call. So the means for a
//! population follow from those with one caller less, from nobody upwards:
//!
//! ```text
//! queue    R_c(n) = D_c (1 + Q(n - c))
//! servers  R_c(n) = D_c / m (1 + Q(n - c) + sum over j < m - 1 of (m - 1 - j) p(j | n - c))
//! delay    R_c(n) = D_c
//! X_c(n) = n_c / (Z_c + sum of R_c),   Q(n) = sum over c of X_c(n) R_c(n)
//! p(j | n) = sum over c of X_c(n) D_c / j x p(j - 1 | n - c)               0 < j < m
//! ```
//!
//! p(j | n) is the probability of j calls at a center. The usual way to p(0 | n), one less all
//! others, loses all digits as the center fills. Here
//!
//! ```text
//! p(0 | n) = p(0 | n - c) X_c(n) / X_c(n without the center)
//! ```
//!
//! in which nothing is subtracted. For it the network is solved without each center that has
//! several servers, and without each set of them, the smallest first.
//!
//! Exact for product-form networks: exponential service with one mean for all classes where a
//! center is first come, first served, any distribution where it shares its time among calls.
//!
//! Source: Reiser and Lavenberg 1980; Lazowska et al. 1984, sections 6.3, 7.3, 8.3.

use super::network::{Kind, Network, Solution};
use crate::model::error::{ModelError, within};

/// Numbers stored at most: populations up to the given one, times what each needs; 256 MB.
pub const NUMBERS_MAX: u64 = 32_000_000;

/// Centers with several servers, of which each doubles the work.
pub const MULTIPLE_MAX: usize = 8;

impl Network {
    /// Means for the given callers. Fails where the populations on the way there are more than
    /// [`NUMBERS_MAX`] allows, or too many centers have several servers: then approximate.
    pub fn solve(&self) -> Result<Solution, ModelError> {
        let populations = Populations::of(self)?;
        let multiple: Vec<usize> = (0..self.centers.len())
            .filter(|&k| matches!(self.centers[k].kind, Kind::Servers(servers) if servers > 1))
            .collect();
        within("centers with several servers", multiple.len() as u64, 0, MULTIPLE_MAX as u64)?;
        let marginals: u64 = multiple.iter().map(|&k| self.marginals(k) as u64).sum();
        let each = (1_u64 << multiple.len()) * self.classes.len() as u64
            + self.centers.len() as u64
            + marginals;
        within("numbers to be stored", populations.count as u64 * each, 0, NUMBERS_MAX)?;

        let mut solved: Vec<Pass> = Vec::with_capacity(1 << multiple.len());
        for present in 0..1_usize << multiple.len() {
            let pass = self.pass(&populations, &multiple, present, &solved);
            solved.push(pass);
        }
        Ok(self.read(&populations, solved.pop().expect("there is at least the whole network")))
    }

    /// Values of p that a center needs: 0 to m - 2, and no more than there are callers.
    fn marginals(&self, center: usize) -> usize {
        let callers: usize = self.classes.iter().map(|class| class.callers as usize).sum();
        match self.centers[center].kind {
            Kind::Servers(servers) => (servers as usize - 1).min(callers + 1),
            Kind::Queue | Kind::Delay => 0,
        }
    }

    /// Solves the network in which, of the centers with several servers, those of `present` are.
    fn pass(
        &self,
        populations: &Populations,
        multiple: &[usize],
        present: usize,
        solved: &[Pass],
    ) -> Pass {
        let (classes, centers) = (self.classes.len(), self.centers.len());
        let is_absent =
            |k: usize| multiple.iter().position(|&m| m == k).is_some_and(|i| present >> i & 1 == 0);
        let mut throughputs = vec![0.0; populations.count * classes];
        let mut calls = vec![0.0; populations.count * centers];
        let mut empty: Vec<Marginal> = multiple
            .iter()
            .map(|&k| Marginal::new(if is_absent(k) { 0 } else { self.marginals(k) }, populations))
            .collect();
        let mut residence_us = vec![0.0; classes * centers];

        for index in 1..populations.count {
            for c in (0..classes).filter(|&c| populations.callers(index, c) > 0) {
                let without = index - populations.strides[c];
                let mut all_us = self.classes[c].think_us;
                for k in (0..centers).filter(|&k| !is_absent(k)) {
                    let center = &self.centers[k];
                    let seen = calls[without * centers + k];
                    let us = center.demands_us[c]
                        * match center.kind {
                            Kind::Delay => 1.0,
                            Kind::Queue | Kind::Servers(1) => 1.0 + seen,
                            Kind::Servers(servers) => {
                                let i = multiple.iter().position(|&m| m == k).unwrap_or(0);
                                let servers = f64::from(servers);
                                (1.0 + seen + empty[i].idle(without, servers)) / servers
                            }
                        };
                    residence_us[c * centers + k] = us;
                    all_us += us;
                }
                throughputs[index * classes + c] =
                    f64::from(populations.callers(index, c)) / all_us.max(f64::MIN_POSITIVE);
            }
            for c in (0..classes).filter(|&c| populations.callers(index, c) > 0) {
                for k in (0..centers).filter(|&k| !is_absent(k)) {
                    calls[index * centers + k] +=
                        throughputs[index * classes + c] * residence_us[c * centers + k];
                }
            }
            for (i, &k) in multiple.iter().enumerate().filter(|&(_, &k)| !is_absent(k)) {
                let without_center = &solved[present & !(1 << i)];
                let demands_us = &self.centers[k].demands_us;
                let at = index * classes..(index + 1) * classes;
                let rates = (&throughputs[at.clone()], &without_center.throughputs[at]);
                empty[i].extend(populations, index, demands_us, rates);
            }
        }
        Pass { throughputs, residence_us }
    }

    fn read(&self, populations: &Populations, pass: Pass) -> Solution {
        let (classes, centers) = (self.classes.len(), self.centers.len());
        let last = populations.count - 1;
        let per_s = |c: usize| pass.throughputs[last * classes + c] * 1e6;
        let throughput_per_s: Vec<f64> = (0..classes).map(per_s).collect();
        let residence_us = |c: usize, k: usize| pass.residence_us[c * centers + k];
        Solution {
            response_us: (0..classes)
                .map(|c| (0..centers).map(|k| residence_us(c, k)).sum())
                .collect(),
            centers: (0..centers)
                .map(|k| {
                    let of_classes = (0..classes).map(|c| residence_us(c, k)).collect();
                    self.centers[k].at(of_classes, &throughput_per_s)
                })
                .collect(),
            throughput_per_s,
        }
    }
}

/// One solved network.
struct Pass {
    /// X of each class (per us), for each population.
    throughputs: Vec<f64>,
    /// R of each class and center for the last population.
    residence_us: Vec<f64>,
}

/// All populations from nobody to all callers, numbered so that one with a caller less comes first.
struct Populations {
    count: usize,
    strides: Vec<usize>,
    most: Vec<u32>,
}

impl Populations {
    fn of(network: &Network) -> Result<Self, ModelError> {
        let mut count = 1_u64;
        let mut strides = Vec::new();
        for class in &network.classes {
            strides.push(usize::try_from(count).unwrap_or(usize::MAX));
            count = count.saturating_mul(u64::from(class.callers) + 1);
            within("populations on the way", count, 1, NUMBERS_MAX)?;
        }
        let most = network.classes.iter().map(|class| class.callers).collect();
        Ok(Self { count: usize::try_from(count).unwrap_or(usize::MAX), strides, most })
    }

    fn callers(&self, index: usize, class: usize) -> u32 {
        let digit = index / self.strides[class] % (self.most[class] as usize + 1);
        u32::try_from(digit).unwrap_or(u32::MAX)
    }
}

/// p(j | n) of one center, for j from 0 to m - 2 and all populations.
struct Marginal {
    each: usize,
    p: Vec<f64>,
}

impl Marginal {
    fn new(each: usize, populations: &Populations) -> Self {
        let mut p = vec![0.0; each * populations.count];
        if let Some(nobody) = p.first_mut() {
            *nobody = 1.0;
        }
        Self { each, p }
    }

    /// Idle servers that a call finds behind the first: sum of (m - 1 - j) p(j).
    fn idle(&self, index: usize, servers: f64) -> f64 {
        let p = &self.p[index * self.each..(index + 1) * self.each];
        p.iter().enumerate().map(|(j, p)| (servers - 1.0 - j as f64) * p).sum()
    }

    /// The probabilities for a population, from those with one caller less. `rates` are X of the
    /// classes in this network and in the one without the center.
    fn extend(
        &mut self,
        populations: &Populations,
        index: usize,
        demands_us: &[f64],
        rates: (&[f64], &[f64]),
    ) {
        let present = |&c: &usize| populations.callers(index, c) > 0;
        let Some(some) = (0..demands_us.len()).find(present) else { return };
        let before = |c: usize| (index - populations.strides[c]) * self.each;
        if self.each == 0 {
            return;
        }
        let nobody = self.p[before(some)] * rates.0[some] / rates.1[some];
        let mut fresh = vec![nobody; self.each];
        for (j, p) in fresh.iter_mut().enumerate().skip(1) {
            let of = |c: usize| rates.0[c] * demands_us[c] * self.p[before(c) + j - 1];
            *p = (0..demands_us.len()).filter(present).map(of).sum::<f64>() / j as f64;
        }
        self.p[index * self.each..(index + 1) * self.each].copy_from_slice(&fresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::closed::chain;
    use crate::model::closed::network::{Center, Class};

    #[track_caller]
    fn assert_near(got: f64, want: f64) {
        assert!((got - want).abs() <= 1e-9 * want.abs().max(1e-3), "{got} is not {want}");
    }

    fn single(callers: u32, think_us: f64, centers: &[(Kind, f64)]) -> Network {
        let center = |&(kind, us): &(Kind, f64)| Center::new("center", kind, &[us]);
        let classes = vec![Class { callers, think_us }];
        Network::new(classes, centers.iter().map(center).collect()).unwrap()
    }

    /// A processor of 0.605 s, two disks of 2.1 and 1.35 s, 3 callers who think for 15 s. With the
    /// recursion by hand, to the digits of a textbook's table (Lazowska et al., section 6.3): X =
    /// 0.152, R = 4.75 s.
    #[test]
    fn three_callers_by_hand() {
        let demands = [605e3, 2.1e6, 1.35e6];
        let centers = demands.map(|us| (Kind::Queue, us));
        let (mut calls, mut rate) = ([0.0; 3], 0.0);
        for n in 1..=3_u32 {
            let times: [f64; 3] = std::array::from_fn(|k| demands[k] * (1.0 + calls[k]));
            rate = f64::from(n) / (15e6 + times.iter().sum::<f64>());
            calls = times.map(|us| rate * us);
        }
        let solution = single(3, 15e6, &centers).solve().unwrap();
        assert_near(solution.throughput_per_s[0], rate * 1e6);
        assert_near(solution.response_us[0], 3.0 / rate - 15e6);
        assert_eq!((solution.throughput_per_s[0] * 1e3).round(), 152.0);
        assert_near(solution.centers[1].utilization, rate * 2.1e6);
    }

    #[test]
    fn balanced_centers_follow_the_closed_form() {
        // N callers at K equal queues without thinking: X = N / (D (N + K - 1)).
        for (callers, centers) in [(1, 1), (5, 3), (40, 7), (1000, 2)] {
            let network = single(callers, 0.0, &vec![(Kind::Queue, 100.0); centers]);
            let (n, k) = (f64::from(callers), centers as f64);
            let want = n / (100.0 * (n + k - 1.0)) * 1e6;
            assert_near(network.solve().unwrap().throughput_per_s[0], want);
        }
    }

    #[test]
    fn the_machine_repairman_is_the_loss_formula_of_erlang_turned_around() {
        // One queue of S, N callers that think Z: from the birth-death process of callers there.
        let (callers, think_us, service_us) = (12_u32, 5_000.0, 700.0);
        let (mut weight, mut all, mut busy) = (1.0_f64, 1.0, 0.0);
        for there in 1..=callers {
            weight *= f64::from(callers - there + 1) / think_us * service_us;
            all += weight;
            busy += weight;
        }
        let solution = single(callers, think_us, &[(Kind::Queue, service_us)]).solve().unwrap();
        assert_near(solution.throughput_per_s[0], busy / all / service_us * 1e6);
    }

    #[test]
    fn one_class_agrees_with_the_equations_of_its_states() {
        use Kind::{Delay, Queue, Servers};
        for network in [
            single(4, 0.0, &[(Queue, 3.0), (Queue, 5.0), (Delay, 7.0)]),
            single(5, 20.0, &[(Servers(2), 6.0), (Queue, 2.0)]),
            single(6, 0.0, &[(Servers(3), 9.0), (Servers(2), 5.0)]),
            single(6, 1.0, &[(Servers(4), 9.0), (Servers(2), 9.0), (Queue, 1.0)]),
            single(3, 0.0, &[(Servers(5), 9.0), (Queue, 1.0)]),
        ] {
            assert_agrees(&network);
        }
    }

    #[test]
    fn two_classes_agree_with_the_equations_of_their_states() {
        let classes =
            vec![Class { callers: 2, think_us: 4.0 }, Class { callers: 3, think_us: 0.0 }];
        let centers = vec![
            Center::new("cpu", Kind::Queue, &[1.0, 2.5]),
            Center::new("disks", Kind::Servers(2), &[6.0, 3.0]),
            Center::new("way", Kind::Delay, &[2.0, 1.0]),
        ];
        assert_agrees(&Network::new(classes, centers).unwrap());
        let classes =
            vec![Class { callers: 3, think_us: 1.0 }, Class { callers: 2, think_us: 9.0 }];
        let centers = vec![
            Center::new("cpus", Kind::Servers(3), &[4.0, 2.0]),
            Center::new("disks", Kind::Servers(2), &[0.0, 7.0]),
        ];
        assert_agrees(&Network::new(classes, centers).unwrap());
    }

    #[track_caller]
    fn assert_agrees(network: &Network) {
        let (got, want) = (network.solve().unwrap(), chain::solve(network));
        for (got, want) in got.throughput_per_s.iter().zip(&want.throughput_per_s) {
            assert_near(*got, *want);
        }
        for (got, want) in got.centers.iter().zip(&want.centers) {
            assert_near(got.calls, want.calls);
            assert_near(got.utilization, want.utilization);
        }
    }

    /// Where one-less-the-others would have lost all digits: hundreds of callers on many servers.
    #[test]
    fn full_centers_with_many_servers_stay_exact() {
        let disks = (Kind::Servers(28), 12_000.0);
        let network = single(2_000, 0.0, &[disks, (Kind::Queue, 200.0)]);
        let solution = network.solve().unwrap();
        // The disks take 28 calls at a time and the processor is half idle: within 1e-9 of full.
        assert_near(solution.throughput_per_s[0], 28.0 / 12e-3);
        assert_near(solution.response_us[0] * solution.throughput_per_s[0] / 1e6, 2_000.0);
        let calls: f64 = solution.centers.iter().map(|center| center.calls).sum();
        assert_near(calls, 2_000.0);
    }

    #[test]
    fn nobody_calls_and_too_many_are_distinguished() {
        let solution = single(0, 1.0, &[(Kind::Queue, 1.0)]).solve().unwrap();
        assert_eq!(solution.throughput_per_s, [0.0]);
        assert_eq!(solution.response_us, [0.0]);
        let class = Class { callers: 1_000_000, think_us: 0.0 };
        let queue = Center::new("cpu", Kind::Queue, &[1.0, 1.0]);
        let two = Network::new(vec![class, class], vec![queue]).unwrap();
        assert!(matches!(two.solve(), Err(ModelError::OutOfRange { .. })));
        let many = single(1_000_000, 0.0, &[(Kind::Servers(64), 1.0)]);
        assert!(matches!(many.solve(), Err(ModelError::OutOfRange { .. })));
    }
}
