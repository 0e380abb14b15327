//! What is made of fitted parameters, and how sure it is.

use super::least_squares::Fitted;
use super::symmetric::eigen;
use crate::stats::{Estimate, Interval, student_t_975};

/// Student's t with a single degree of freedom: no fit has less.
const T_OF_ONE: f64 = 12.7;

impl Fitted {
    /// What the parameters are.
    pub fn values(&self) -> Vec<f64> {
        self.parameters.iter().map(|found| found.estimate.value).collect()
    }

    /// What `of` makes of the parameters' values, with its 95 % interval: as far as it goes when
    /// the values go to the end of theirs, along each axis of their covariance. So it holds for an
    /// answer that has a bend, such as where a server becomes full. Fails where `of` does.
    pub fn answer<E>(&self, of: impl Fn(&[f64]) -> Result<f64, E>) -> Result<Estimate, E> {
        let values = self.values();
        let value = of(&values)?;
        let free = self.residuals.len().saturating_sub(values.len());
        let t = student_t_975(free).unwrap_or(T_OF_ONE);
        let (mut down, mut up) = (0.0_f64, 0.0_f64);
        let (variances, axes) = eigen(self.covariance.clone());
        for (variance, axis) in variances.iter().zip(&axes) {
            let reach = t * variance.max(0.0).sqrt();
            let moved = |by: f64| {
                let far = |(value, along): (&f64, &f64)| value * (by * along).exp();
                let values: Vec<f64> = values.iter().zip(axis).map(far).collect();
                Ok((of(&values)? / value).ln())
            };
            let (one, other) = (moved(-reach)?, moved(reach)?);
            down += one.min(other).min(0.0).powi(2);
            up += one.max(other).max(0.0).powi(2);
        }
        let interval = Interval { lo: value / down.sqrt().exp(), hi: value * up.sqrt().exp() };
        let is_finite = interval.lo > 0.0 && interval.hi.is_finite();
        Ok(Estimate { value, ci95: is_finite.then_some(interval) })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::model::least_squares::Found;

    /// Two parameters whose logarithms have this covariance.
    fn fitted(covariance: [[f64; 2]; 2]) -> Fitted {
        let found = |name, value| Found {
            name,
            unit: "us",
            estimate: Estimate { value, ci95: None },
            at_bound: false,
        };
        Fitted {
            systematic: None,
            parameters: vec![found("way", 1_000.0), found("demand", 100.0)],
            unidentified: Vec::new(),
            residuals: vec![0.0; 22],
            deviation: 0.01,
            covariance: covariance.map(Vec::from).into(),
        }
    }

    /// Standard deviation of an answer of which the slopes by each parameter are known.
    fn spread<'a>(
        covariance: impl IntoIterator<Item = impl IntoIterator<Item = &'a f64>>,
        slopes: &[f64],
    ) -> f64 {
        let mut variance = 0.0;
        for (row, a) in covariance.into_iter().zip(slopes) {
            for (c, b) in row.into_iter().zip(slopes) {
                variance += a * c * b;
            }
        }
        variance.max(0.0).sqrt()
    }

    fn answer(fitted: &Fitted, of: impl Fn(&[f64]) -> f64) -> (f64, Interval) {
        let Ok(answer) = fitted.answer(|values| Ok::<f64, Infallible>(of(values)));
        (answer.value, answer.ci95.unwrap())
    }

    #[test]
    fn a_product_is_as_sure_as_the_covariance_of_its_factors_says() {
        let covariance = [[4e-4, -1e-4], [-1e-4, 9e-4]];
        let (value, found) = answer(&fitted(covariance), |values| values[0] / values[1].powi(2));
        assert_eq!(value, 0.1);
        let half = student_t_975(20).unwrap() * spread(&covariance, &[1.0, -2.0]);
        assert!((found.hi / value - half.exp()).abs() < 1e-9, "{found:?} {half}");
        assert!((value / found.lo - half.exp()).abs() < 1e-9, "{found:?} {half}");
    }

    #[test]
    fn where_an_answer_bends_its_interval_goes_around_the_bend() {
        // Calls a second with 10 outstanding, at most as many as one server does: just full.
        let rate = |values: &[f64]| (10.0 / values[0]).min(1.0 / values[1]);
        let (value, found) = answer(&fitted([[1e-2, 0.0], [0.0, 1e-2]]), rate);
        let far = (student_t_975(20).unwrap() * 0.1).exp();
        // Either can make it less, and only both together more.
        assert!((value / found.lo).ln() > 1.2 * far.ln(), "{found:?}");
        assert_eq!(found.hi, value);
        // Far from the bend there is none.
        let (value, found) = answer(&fitted([[1e-2, 0.0], [0.0, 1e-6]]), |values| {
            (1.0 / values[0]).min(1.0 / values[1])
        });
        assert!((found.hi / value - far).abs() < 1e-9 && (value / found.lo - far).abs() < 1e-9);
    }

    #[test]
    fn what_could_be_anything_has_no_interval_and_an_error_is_passed_on() {
        let fitted = fitted([[1e6, 0.0], [0.0, 0.0]]);
        let Ok(unknown) = fitted.answer(|values| Ok::<f64, Infallible>(values[0]));
        assert_eq!((unknown.value, unknown.ci95), (1_000.0, None));
        assert_eq!(fitted.answer(|_| Err::<f64, &str>("no")), Err("no"));
    }
}
