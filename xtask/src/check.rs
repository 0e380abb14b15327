//! `cargo xtask check`: every step that a change must pass, the quick ones first.
//!
//! The first failure stops, and names the command that repeats this step alone.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::{deny, tidy};

pub(crate) fn run(root: &Path, options: &[&str]) -> Result<(), String> {
    let skipped = skipped(options)?;
    let start = Instant::now();
    for step in STEPS.iter().filter(|step| !skipped.contains(&step.name)) {
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

/// The names after each `--skip`; a name that is no step is a mistake.
fn skipped<'a>(options: &[&'a str]) -> Result<Vec<&'a str>, String> {
    let names = STEPS.map(|step| step.name).join(", ");
    options
        .chunks(2)
        .map(|option| match option {
            ["--skip", name] if STEPS.iter().any(|step| step.name == *name) => Ok(*name),
            _ => Err(format!(
                "check takes `--skip STEP`, STEP being one of {names}; not `{}`",
                option.join(" ")
            )),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_skipped_by_name_and_a_wrong_name_is_refused() {
        assert_eq!(skipped(&["--skip", "test"]), Ok(vec!["test"]));
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
