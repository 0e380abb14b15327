//! The arguments of `cargo xtask stress`.

use std::time::Duration;

const USAGE: &str = "\
stress [--seconds N] [--seed N] [--clients N] [--outstanding N] \
     [--unprivileged | --capabilities LIST]";

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Options {
    pub(super) duration: Duration,
    /// Everything that is random comes from it; what the threads make of it differs.
    pub(super) seed: u64,
    pub(super) clients: u64,
    /// Calls in progress of each client.
    pub(super) outstanding: usize,
    /// The server runs as `nobody`.
    pub(super) unprivileged: bool,
    /// The server is root with these capabilities and no others, in the words of setpriv(1).
    pub(super) capabilities: Option<String>,
}

impl Options {
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            duration: Duration::from_secs(300),
            seed: fastrand::u64(1..1_000_000),
            clients: 4,
            outstanding: 8,
            unprivileged: false,
            capabilities: None,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "--unprivileged" {
                options.unprivileged = true;
                continue;
            }
            if word == "--capabilities" {
                options.capabilities = words.next().map(|list| (*list).to_owned());
                continue;
            }
            let number = words.next().and_then(|value| value.parse::<u64>().ok());
            let number = number.ok_or_else(|| format!("usage: cargo xtask {USAGE}"))?;
            match word {
                "--seconds" => options.duration = Duration::from_secs(number),
                "--seed" => options.seed = number,
                "--clients" => options.clients = number.clamp(1, 64),
                "--outstanding" => options.outstanding = number.clamp(1, 256) as usize,
                _ => return Err(format!("usage: cargo xtask {USAGE}")),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_their_names_and_others_are_refused() {
        let options = Options::parse(&["--seconds", "20", "--seed", "7", "--unprivileged"]);
        let options = options.unwrap();
        assert_eq!((options.duration, options.seed), (Duration::from_secs(20), 7));
        assert!(options.unprivileged);
        assert!(Options::parse(&["--seconds"]).is_err());
        assert!(Options::parse(&["--second", "1"]).is_err());
    }
}
