use super::form::variable;
use super::*;

const LOWER: [u32; 5] = [1, 2, 3, 4, 5];
const STABLE: Form = Form::Gathered { after: 0.5 };
const ALL: [Form; 3] = [Form::Corner, Form::Variable, STABLE];

fn noisy(form: Form, values: &[f64], seed: u64) -> Vec<Seen> {
    let mut draw = fastrand::Rng::with_seed(seed);
    let mut noise = || 1.0 + 0.05 * ((0..12).map(|_| draw.f64()).sum::<f64>() - 6.0);
    let windows = (0..5).flat_map(|_| LOWER);
    windows
        .map(|outstanding| {
            let Expected { per_s, busy_us } = form.expected(values, outstanding);
            Seen { outstanding, per_s: per_s * noise(), busy_us: busy_us * noise() }
        })
        .collect()
}

#[test]
fn the_lower_half_and_the_busy_time_predict_the_upper_half() {
    let truths: [(Form, &[f64], u64, f64); 4] = [
        (Form::Corner, &[700.0, 240.0, 5.0, 20.0], 100, 0.08),
        (Form::Corner, &[2_000.0, 200.0, 20.0, 20.0], 100, 0.08),
        (Form::Variable, &[700.0, 240.0, 0.3, 30.0], 100, 0.08),
        // Run, and not computed: fewer of them. What a call adds to a sync hardly shows in syncs of
        // one, two and three.
        (STABLE, &[300.0, 200.0, 1_500.0, 20.0, 30.0], 40, 0.16),
    ];
    for (form, values, seeds, tolerated) in truths {
        let (mut errors, mut covered) = (Vec::new(), 0_usize);
        for seed in 0..seeds {
            let informed = Informed::from(&noisy(form, values, seed), form).unwrap();
            for outstanding in [6, 8, 10, 16, 64] {
                let predicted = informed.per_s(outstanding).unwrap();
                let truth = form.expected(values, outstanding).per_s;
                errors.push((predicted.value / truth - 1.0).abs());
                covered += usize::from(predicted.ci95.unwrap().contains(truth));
            }
        }
        errors.sort_unstable_by(f64::total_cmp);
        let (all, bound) = (errors.len(), errors[errors.len() * 95 / 100 - 1]);
        assert!(bound < tolerated, "{form:?}: 95 of 100 within {bound}");
        assert!(covered * 100 >= all * 90, "{form:?}: {covered} of {all}");
    }
}

#[test]
fn service_that_does_not_vary_has_nearly_a_corner_and_random_service_is_the_exact_curve() {
    let rate = |variation, n| variable(500.0, 40.0, variation, n);
    // 64 callers, a delay of 460, a line of 40: Erlang's recursion turned around.
    let mut waiting = 0.0;
    for calls in 1..=16_u32 {
        let response = 40.0 * (1.0 + waiting);
        let per_us = f64::from(calls) / (460.0 + response);
        waiting = per_us * response;
        assert!((rate(1.0, calls) / 1e6 / per_us - 1.0).abs() < 1e-9, "{calls}");
    }
    assert!(rate(0.0, 12) > rate(1.0, 12) && rate(0.0, 12) <= 12e6 / 500.0);
    assert!((rate(0.0, 1000) - 25_000.0).abs() < 1.0);
}

#[test]
fn what_cannot_be_is_refused() {
    let run = |outstanding, per_s, busy_us| Seen { outstanding, per_s, busy_us };
    let few = [run(1, 100.0, 50.0), run(2, 200.0, 50.0)];
    assert!(matches!(Informed::best(&few, &ALL), Err(FitError::TooFew { .. })));
    assert!(Informed::best(&[], &ALL).is_err());
    let nothing = [run(1, 100.0, f64::NAN), run(2, 100.0, 1.0)];
    let text = Informed::best(&nothing, &ALL).unwrap_err().to_string();
    assert!(text.contains("row 1: the stage's busy time is NaN"), "{text}");
    let zigzag: Vec<Seen> =
        (1..9).map(|n| run(n, if n % 2 == 0 { 1.0 } else { 900.0 }, 500.0)).collect();
    assert!(matches!(Informed::best(&zigzag, &ALL), Err(FitError::Bad { .. })));
}
