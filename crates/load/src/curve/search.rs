//! What a server can do at most, found with a closed loop: twice as many operations outstanding
//! each time, until that gains nothing.

/// A step that reaches less than this more than the best before it has gained nothing.
const GAIN: f64 = 1.03;

/// Steps without a gain after which there is none to be expected.
const STEPS_WITHOUT: usize = 2;

/// See the module's head.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    outstanding_max: usize,
    /// Operations outstanding, and a second.
    steps: Vec<(usize, f64)>,
    without: usize,
}

impl Search {
    /// Beginning with so many outstanding.
    pub fn new(outstanding_max: usize) -> Self {
        Self { outstanding_max: outstanding_max.max(1), ..Self::default() }
    }

    /// How many to keep outstanding next; `None` when it is found.
    pub fn next(&self) -> Option<usize> {
        let Some(&(last, _)) = self.steps.last() else { return Some(1) };
        let is_open = self.without < STEPS_WITHOUT && last < self.outstanding_max;
        is_open.then(|| (last * 2).min(self.outstanding_max))
    }

    /// What a step reached.
    pub fn reached(&mut self, outstanding: usize, per_s: f64) {
        match per_s > GAIN * self.best_per_s() {
            true => self.without = 0,
            false => self.without += 1,
        }
        self.steps.push((outstanding, per_s));
    }

    pub fn steps(&self) -> &[(usize, f64)] {
        &self.steps
    }

    /// The most that was reached.
    pub fn best_per_s(&self) -> f64 {
        self.steps.iter().map(|(_, per_s)| *per_s).fold(0.0, f64::max)
    }

    /// How many outstanding are enough for that.
    pub fn enough(&self) -> usize {
        let enough = self.best_per_s() / GAIN;
        let found = self.steps.iter().find(|(_, per_s)| *per_s >= enough);
        found.map_or(1, |(outstanding, _)| *outstanding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(most: usize, serve: impl Fn(usize) -> f64) -> Search {
        let mut search = Search::new(most);
        while let Some(outstanding) = search.next() {
            search.reached(outstanding, serve(outstanding));
        }
        search
    }

    #[test]
    fn it_goes_on_while_more_calls_bring_more() {
        // A way of 100 us and a server of 4 workers with 100 us each.
        let search = found(1024, |n| (n as f64 / 200e-6).min(4.0 / 100e-6));
        assert_eq!(search.best_per_s(), 40_000.0);
        assert_eq!(search.enough(), 8);
        assert_eq!(search.steps().len(), 6);
    }

    #[test]
    fn it_ends_at_its_bound_and_with_a_server_that_does_nothing() {
        assert_eq!(found(20, |n| n as f64).steps().last(), Some(&(20, 20.0)));
        assert!(found(1 << 20, |_| 0.0).steps().len() <= 3);
        assert_eq!(found(1, |_| 5.0).steps(), [(1, 5.0)]);
    }
}
