//! Says on the screen that others used the machine while something was measured.

use harness::records::NEIGHBOURS_SHARE_MAX;
use harness::verbosity::Verbosity;
use load::cpu::Neighbours;
use net::clock::Clock;

use crate::args::Command;

/// A measurement that is under way.
pub(crate) struct Watch(Option<(Clock, Neighbours)>);

impl Watch {
    /// Of a command that measures; of any other, nothing is said.
    pub(crate) fn begin(command: &Command, verbosity: Verbosity) -> Self {
        let measures = matches!(
            command,
            Command::Study(_) | Command::Probe(_) | Command::Bench(_) | Command::Papers(_)
        );
        Self((measures && verbosity > Verbosity::Quiet).then(|| {
            let clock = Clock::real();
            let neighbours = Neighbours::watch(clock.now());
            (clock, neighbours)
        }))
    }

    /// After the command's own output, where it has measured something.
    pub(crate) fn end(self) {
        let Self(Some((clock, neighbours))) = self else { return };
        if let Some(said) = neighbours.share(clock.now()).and_then(sentence) {
            eprintln!("{said}");
        }
    }
}

fn sentence(share: f64) -> Option<String> {
    let percent = 100.0 * share;
    (share > NEIGHBOURS_SHARE_MAX).then(|| {
        format!(
            "nfskit: busy machine: others used {percent:.0} % of the processors meanwhile, kernel \
             threads and a server on this host among them; measure again when it is quiet"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_told_and_a_quiet_one_is_not() {
        assert_eq!(sentence(NEIGHBOURS_SHARE_MAX), None);
        assert_eq!(sentence(f64::NAN), None);
        let said = sentence(0.43).unwrap();
        assert!(said.contains("busy machine: others used 43 %"), "{said}");
    }
}
