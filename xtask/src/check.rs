//! `cargo xtask check`: every step that a change must pass, the quick ones first.
//!
//! The first failure stops, and names the command that repeats this step alone.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use clap::Parser;

use crate::{deny, options, tidy};

/// Every step that a change must pass, the quick ones first.
#[derive(Debug, Parser)]
#[command(name = "check", bin_name = "cargo xtask check")]
struct Options {
    /// All but this step; may be given again.
    #[arg(long, value_name = "STEP", value_parser = find)]
    skip: Vec<&'static str>,
}

fn find(name: &str) -> Result<&'static str, String> {
    options::find(name, STEPS.iter().map(|step| (step.name, step.name)))
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let Options { skip } = options::parse(words)?;
    let start = Instant::now();
    for step in STEPS.iter().filter(|step| !skip.contains(&step.name)) {
        println!("== {}: {}", step.name, step.command_line());
        let step_start = Instant::now();
        let outcome = match step.work {
            Work::Cargo { arguments, environment } => run_cargo(root, arguments, environment),
            Work::Deny => deny::run(root),
            Work::Tidy => tidy::run(root),
        };
        let seconds = step_start.elapsed().as_secs_f64();
        if let Err(message) = outcome {
            return Err(format!(
                "{message}\n== {} failed after {seconds:.1} s; again, alone: {}",
                step.name,
                step.command_line()
            ));
        }
        println!("== {} passed in {seconds:.1} s", step.name);
    }
    println!("== check passed in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

struct Step {
    name: &'static str,
    work: Work,
}

enum Work {
    Cargo {
        arguments: &'static str,
        /// One variable for the environment: name and value.
        environment: Option<(&'static str, &'static str)>,
    },
    Deny,
    Tidy,
}

const STEPS: [Step; 6] = [
    cargo("fmt", "fmt --all --check"),
    Step { name: "tidy", work: Work::Tidy },
    Step { name: "deny", work: Work::Deny },
    cargo("clippy", "clippy --workspace --all-targets -- -D warnings"),
    cargo("test", "test --workspace"),
    Step {
        name: "doc",
        work: Work::Cargo {
            arguments: "doc --workspace --no-deps --keep-going",
            environment: Some(("RUSTDOCFLAGS", "-D warnings")),
        },
    },
];

const fn cargo(name: &'static str, arguments: &'static str) -> Step {
    Step { name, work: Work::Cargo { arguments, environment: None } }
}

impl Step {
    /// What to type in a shell to run this step alone.
    fn command_line(&self) -> String {
        match self.work {
            Work::Cargo { arguments, environment: Some((name, value)) } => {
                format!("{name}='{value}' cargo {arguments}")
            }
            Work::Cargo { arguments, environment: None } => format!("cargo {arguments}"),
            Work::Deny => "cargo xtask deny".to_owned(),
            Work::Tidy => "cargo xtask tidy".to_owned(),
        }
    }
}

fn run_cargo(
    root: &Path,
    arguments: &str,
    environment: Option<(&str, &str)>,
) -> Result<(), String> {
    let status = Command::new(cargo_program())
        .args(arguments.split_whitespace())
        .envs(environment)
        .current_dir(root)
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {arguments}: {status}")) }
}

/// The cargo that runs us, so that a pinned toolchain stays pinned.
pub(crate) fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_skipped_by_name_and_a_wrong_name_is_refused() {
        let skipped = |words: &[&str]| options::parse(words).map(|Options { skip }| skip);
        assert_eq!(skipped(&["--skip", "test", "--skip", "doc"]), Ok(vec!["test", "doc"]));
        assert_eq!(skipped(&[]), Ok(vec![]));
        assert!(skipped(&["--skip", "tests"]).is_err());
        assert!(skipped(&["--skip"]).is_err());
    }

    #[test]
    fn the_command_to_repeat_a_step_carries_its_environment() {
        let doc = STEPS.last().map(Step::command_line);
        let expected = "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --keep-going";
        assert_eq!(doc.as_deref(), Some(expected));
    }
}
