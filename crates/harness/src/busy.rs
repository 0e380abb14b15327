//! Says on the screen that others used the machine while something was measured.

use load::cpu::Neighbours;
use net::clock::Clock;
use perf::units::Nanos;

use crate::output;
use crate::records::NEIGHBOURS_SHARE_MAX;
use crate::verbosity::Verbosity;

/// In less the system's ticks of 10 ms tell nothing, and nothing has been measured.
const MEASURED_MIN: Nanos = Nanos::from_millis(200);

/// Measures, and says afterwards whether others used the machine meanwhile: also where that has
/// failed, which may be why.
pub fn watched<T>(verbosity: Verbosity, run: impl FnOnce() -> T) -> T {
    if verbosity == Verbosity::Quiet {
        return run();
    }
    let clock = Clock::real();
    let began = clock.now();
    let neighbours = Neighbours::watch(began);
    let share = || {
        let now = clock.now();
        neighbours.share(now).filter(|_| now.since(began) >= MEASURED_MIN)
    };
    around(share, output::say, run)
}

fn around<T>(
    share: impl FnOnce() -> Option<f64>,
    say: impl FnOnce(String),
    run: impl FnOnce() -> T,
) -> T {
    let outcome = run();
    if let Some(text) = share().and_then(sentence) {
        say(text);
    }
    outcome
}

fn sentence(share: f64) -> Option<String> {
    let percent = 100.0 * share;
    let text = format!(
        "busy machine: others used {percent:.0} % of the processors meanwhile, kernel threads and \
         a server on this host among them; measure again when it is quiet"
    );
    (share > NEIGHBOURS_SHARE_MAX).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_reported_and_a_quiet_one_is_not() {
        assert_eq!(sentence(NEIGHBOURS_SHARE_MAX), None);
        assert_eq!(sentence(f64::NAN), None);
        let text = sentence(0.43).unwrap();
        assert!(text.contains("busy machine: others used 43 %"), "{text}");
    }

    #[test]
    fn a_command_that_failed_tells_of_a_busy_machine_too() {
        for outcome in [Ok(5), Err("late")] {
            let mut text = String::new();
            assert_eq!(around(|| Some(0.9), |sentence| text = sentence, || outcome), outcome);
            assert!(text.contains("90 %"), "{text}");
        }
    }
}
