//! What `spray` prints: how many of its packets the other host dropped.

use super::nothing;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::bounded;

/// One run of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Spray {
    pub host: String,
    pub packets: u64,
    pub packet_bytes: u64,
    pub dropped: u64,
}

impl Spray {
    /// Of those that were sent.
    pub fn share(&self) -> f64 {
        self.dropped as f64 / (self.packets as f64).max(1.0)
    }
}

/// Whether a text looks like it.
pub fn is_likely(text: &str) -> bool {
    text.contains("sending ") && text.contains(" packets of l")
}

/// Reads the text, in which the lines of a run may be joined. A run without an end is none.
///
/// # Errors
/// The first number that is none, or that no run is whole.
pub fn read(text: &[u8]) -> Result<Vec<Spray>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut runs = Vec::new();
    let mut begun: Option<Spray> = None;
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let mut before = line.word();
        while !before.text.is_empty() {
            let word = line.word();
            match (before.text, word.text) {
                // `sending 100 packets of lnth 2048 to thud ...`
                ("sending", _) => {
                    begun = Some(Spray { packets: word.number()?, ..Spray::default() });
                }
                ("lnth" | "length", _) => {
                    let bytes = word.number()?;
                    begun.iter_mut().for_each(|run| run.packet_bytes = bytes);
                }
                ("to", host) => begun.iter_mut().for_each(|run| host.clone_into(&mut run.host)),
                // `6 packets (6.00%) dropped by thud`, or `no packets dropped by thud`
                ("no", "packets") => runs.extend(begun.take()),
                (count, "packets") => {
                    let mut rest = line;
                    let share = rest.word();
                    if share.text.starts_with('(') && rest.word().text == "dropped" {
                        let dropped = before.number()?;
                        runs.extend(begun.take().map(|run| Spray { dropped, ..run }));
                    }
                    debug_assert!(!count.is_empty());
                }
                _ => {}
            }
            before = word;
        }
    }
    if runs.is_empty() { Err(nothing()) } else { Ok(runs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the guide of 1990.
    const TEXT: &str = "sending 100 packets of lnth 2048 to thud ...
\tin 1.0 seconds elapsed time,
\t6 packets (6.00%) dropped by thud
Sent:\t100 packets/sec, 200.0K bytes/sec
Rcvd:\t94 packets/sec, 188.0K bytes/sec
";

    #[test]
    fn what_was_dropped_is_read_joined_or_not() {
        let [run] = &read(TEXT.as_bytes()).unwrap()[..] else { panic!("one run") };
        assert_eq!((run.packets, run.packet_bytes, run.dropped), (100, 2_048, 6));
        assert_eq!(run.host, "thud");
        assert_eq!(read(TEXT.replace('\n', " ").as_bytes()).unwrap()[0].dropped, 6);
        let none = TEXT.replace("6 packets (6.00%)", "no packets");
        assert_eq!(read(none.as_bytes()).unwrap()[0].share(), 0.0);
        assert!(is_likely(TEXT));
    }

    #[test]
    fn a_run_without_its_end_is_none_and_a_broken_number_is_named() {
        assert!(read(&TEXT.as_bytes()[..90]).is_err());
        let problem = read(TEXT.replace("2048", "much").as_bytes()).unwrap_err().to_string();
        assert!(problem.contains("line 1, column 29: \"much\""), "{problem}");
    }
}
