//! The arguments of `cargo xtask stress`.

use std::time::Duration;

use clap::{Parser, value_parser};

/// Kills the release binary again and again under load.
#[derive(Clone, Debug, Parser)]
#[command(name = "stress", bin_name = "cargo xtask stress")]
pub(super) struct Options {
    /// How long.
    #[arg(long, value_name = "N", default_value_t = 300)]
    seconds: u64,
    /// Everything that is random comes from it; what the threads make of it differs [default: one
    /// of the run's own].
    #[arg(long, value_name = "N", default_value_t = drawn(), hide_default_value = true)]
    pub(super) seed: u64,
    /// Clients at once.
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u64).range(1..=64))]
    pub(super) clients: u64,
    /// Calls outstanding of each client.
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = value_parser!(u16).range(1..=256))]
    pub(super) outstanding: u16,
    /// The server runs as `nobody`.
    #[arg(long)]
    pub(super) unprivileged: bool,
    /// The server is root with these capabilities and no others, in the words of setpriv(1).
    #[arg(long, value_name = "LIST", conflicts_with = "unprivileged", allow_hyphen_values = true)]
    pub(super) capabilities: Option<String>,
}

fn drawn() -> u64 {
    fastrand::u64(1..1_000_000)
}

impl Options {
    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;

    #[test]
    fn numbers_follow_their_names_and_others_are_refused() {
        let options = parse(&["--seconds", "20", "--seed", "7", "--unprivileged"]);
        let options: Options = options.unwrap();
        assert_eq!((options.duration(), options.seed), (Duration::from_secs(20), 7));
        assert!(options.unprivileged);
        assert!(parse::<Options>(&["--seconds"]).is_err());
        assert!(parse::<Options>(&["--second", "1"]).is_err());
        assert!(parse::<Options>(&["--clients", "65"]).is_err());
    }
}
