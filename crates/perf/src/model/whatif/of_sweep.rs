//! Changes to a sweep of outstanding calls that was explained: throughput by the corner's formula,
//! by mean value analysis, and with the interval that the fit gives it.
//!
//! | change | in the model |
//! |---|---|
//! | L | T grows by 2 L |
//! | o | T and S grow by 2 o: a call and its reply at the stage that is full first |
//! | outstanding, clients | N |
//!
//! Where the sweep ends before its stage shows, the interval of a prediction beyond it reaches
//! from the throughput that was measured to that without a stage. No interval supposes a parameter
//! outside of its own, nor a stage that would not have let through what was reached.
//!
//! The parameters are calls a second: what depends on bytes (G, wsize) or on a disk is not in it.

use super::{Change, How, What, WhatIfError};
use crate::model::least_squares::Found;
use crate::model::sweep::{Explained, Form, OUTSTANDING_MAX};
use crate::stats::{Estimate, Interval};

/// What is predicted with so many calls outstanding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepPrediction {
    pub outstanding: u32,
    /// Calls a second, by the form that explains the sweep.
    pub per_s: Estimate,
    /// None where the stage does not show.
    pub saturation_per_s: Option<f64>,
    /// Whether the stage is full (or the window too small to fill it).
    pub is_full: bool,
}

/// Before and after changes. Fails where a change is not part of the model or cannot be.
pub fn answer(
    explained: &Explained,
    outstanding: u32,
    changes: &[Change],
) -> Result<[SweepPrediction; 2], WhatIfError> {
    Ok([predicted(explained, outstanding, &[])?, predicted(explained, outstanding, changes)?])
}

fn predicted(
    explained: &Explained,
    outstanding: u32,
    changes: &[Change],
) -> Result<SweepPrediction, WhatIfError> {
    let fitted = &explained.fitted;
    let of = |values: &[f64]| -> Result<(f64, f64, u32), WhatIfError> {
        let (values, calls) = changed(&possible(explained, values), outstanding, changes)?;
        Ok((explained.form.per_s(&values, calls)?, values[1], calls))
    };
    let (_, stage_us, calls) = of(&fitted.values())?;
    let mut per_s = fitted.answer(|values| Ok::<f64, WhatIfError>(of(values)?.0))?;
    if !explained.shows_stage && calls > explained.most {
        let (values, _) = changed(&fitted.values(), outstanding, changes)?;
        let reached = explained.form.per_s(&values, explained.most)?;
        per_s.ci95 = per_s.ci95.map(|ci95| Interval { lo: reached, hi: ci95.hi.max(reached) });
    }
    let saturation_per_s = explained.shows_stage.then_some(1e6 / stage_us);
    Ok(SweepPrediction {
        outstanding: calls,
        per_s,
        saturation_per_s,
        is_full: saturation_per_s.is_some_and(|saturation| per_s.value > 0.98 * saturation),
    })
}

/// The values, each within its parameter's interval; of a stage that does not show, at most what
/// lets through the calls that were reached.
fn possible(explained: &Explained, values: &[f64]) -> Vec<f64> {
    let least_us = 1e6 / explained.least_per_s();
    let parameters = explained.fitted.parameters.iter();
    let within = |(found, value): (&Found, &f64)| match found.estimate.ci95 {
        _ if found.name == "stage" && !explained.shows_stage => value.min(least_us),
        Some(ci95) => value.max(ci95.lo).min(ci95.hi),
        None => *value,
    };
    parameters.zip(values).map(within).collect()
}

/// The parameters and the number of outstanding calls after changes. Fails where one is not part of
/// the model or cannot be.
pub fn changed(
    values: &[f64],
    outstanding: u32,
    changes: &[Change],
) -> Result<(Vec<f64>, u32), WhatIfError> {
    let (mut values, mut calls) = (values.to_vec(), outstanding);
    for change in changes {
        let foreign = |why| Err(WhatIfError::Foreign { what: change.what, why });
        match change.what {
            What::Latency if change.how == How::Add => values[0] += 2.0 * change.value,
            What::Latency => return foreign("T contains it: say how much is added, as in L+1ms"),
            What::Overhead if change.how == How::Add => {
                values[0] += 2.0 * change.value;
                values[1] += 2.0 * change.value;
            }
            What::Overhead => return foreign("T contains it: say how much is added, as in o+50us"),
            What::Outstanding | What::Clients => {
                calls = change.of_count_up_to(calls, OUTSTANDING_MAX)?;
            }
            What::CallSize | What::Gap => {
                return foreign("a sweep counts calls and not bytes: give a probe's record");
            }
            What::Threads | What::Cpus | What::Cpu => {
                return foreign("S is of all servers together: give a trace, or a curve");
            }
            What::Disk | What::Disks | What::WriteLog => {
                return foreign("S has processor and disk in one: give a probe's record");
            }
            What::Cache => return foreign("a sweep has no data that miss a cache: give a curve"),
        }
    }
    Ok((values, calls))
}

/// Both forms know their throughput.
impl Form {
    fn per_s(
        self,
        values: &[f64],
        outstanding: u32,
    ) -> Result<f64, crate::model::error::ModelError> {
        crate::model::sweep::throughput(self, values, outstanding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sweep::SweepPoint;

    fn explained() -> Explained {
        let observed: Vec<SweepPoint> = [1, 2, 4, 8, 16, 32, 64]
            .into_iter()
            .map(|outstanding| {
                let per_s = (f64::from(outstanding) * 1e6 / 500.0).min(25_000.0);
                SweepPoint {
                    outstanding,
                    per_s: per_s * (1.0 + 0.002 * f64::from(outstanding % 3)),
                }
            })
            .collect();
        Explained::from(&observed, Form::Corner).unwrap()
    }

    #[test]
    fn latency_counts_below_the_knee_and_overhead_above_it() {
        let ask = |outstanding, text: &str| {
            let [before, after] =
                answer(&explained(), outstanding, &[text.parse().unwrap()]).unwrap();
            after.per_s.value / before.per_s.value
        };
        assert!((ask(1, "L+1ms") - 0.2).abs() < 0.01);
        assert!((ask(64, "o+30us") - 0.4).abs() < 0.01);
        assert!((ask(4, "outstanding x4") - 3.1).abs() < 0.2);
        let [_, after] = answer(&explained(), 4, &["outstanding=64".parse().unwrap()]).unwrap();
        assert!(after.is_full && (after.per_s.value / 25_000.0 - 1.0).abs() < 0.01, "{after:?}");
    }

    #[test]
    fn beyond_a_sweep_without_a_stage_lies_anything_from_what_it_reached() {
        let point = |outstanding: u32| SweepPoint {
            outstanding,
            per_s: 1e3 * f64::from(outstanding) * (1.0 + 0.002 * f64::from(outstanding % 3)),
        };
        let observed: Vec<SweepPoint> = [1, 2, 4, 8, 16].map(point).to_vec();
        let explained = Explained::from(&observed, Form::Curve).unwrap();
        let change = "outstanding x4".parse().unwrap();
        let [before, after] = answer(&explained, 8, &[change]).unwrap();
        assert_eq!((before.saturation_per_s, after.saturation_per_s), (None, None));
        let ci95 = after.per_s.ci95.unwrap();
        assert!((ci95.lo / 16e3 - 1.0).abs() < 0.02 && ci95.hi > 31e3, "{ci95:?}");
        let within = before.per_s.ci95.unwrap();
        assert!(within.lo > 7.8e3 && within.hi < 8.2e3, "{within:?}");
    }

    #[test]
    fn an_interval_goes_no_lower_than_what_was_measured_shows_to_be_possible() {
        let measured = [(1, 200.0), (2, 399.0), (4, 801.0), (8, 1590.0)];
        let observed = measured.map(|(outstanding, per_s)| SweepPoint { outstanding, per_s });
        for form in [Form::Corner, Form::Curve] {
            let explained = Explained::from(&observed, form).unwrap();
            assert!(!explained.shows_stage);
            let change = ["outstanding=64".parse().unwrap()];
            let [before, after] = answer(&explained, 8, &change).unwrap();
            let [own, beyond] = [before, after].map(|found| found.per_s.ci95.unwrap());
            assert!(own.lo > 1_400.0 && own.hi < 1_700.0, "{form:?} {own:?}");
            assert!((1_550.0..1_600.0).contains(&beyond.lo), "{form:?} {beyond:?}");
            let two = answer(&explained, 2, &[]).unwrap()[1].per_s.ci95.unwrap();
            assert!(two.lo > 380.0 && two.hi < 420.0, "{form:?} {two:?}");
        }
    }

    #[test]
    fn what_a_sweep_does_not_contain_is_refused() {
        for text in ["wsize=1M", "G=1Gbit/s", "L=5ms", "outstanding=0", "cache=1G", "disks=2"] {
            assert!(answer(&explained(), 4, &[text.parse().unwrap()]).is_err(), "{text}");
        }
    }
}
