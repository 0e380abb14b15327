//! The table of docs/models.md, section 26: how often intervals hold the truth, of 200 seeds.
//!
//! `--check` fails where the document has another table.

use std::process::ExitCode;

const SEEDS: u64 = 200;

fn main() -> ExitCode {
    let table = load::coverage::table(&load::coverage::rows(SEEDS), SEEDS);
    if !std::env::args().any(|argument| argument == "--check") {
        print!("{table}");
        return ExitCode::SUCCESS;
    }
    let document = include_str!("../../../docs/models.md");
    if document.contains(&table) {
        return ExitCode::SUCCESS;
    }
    eprintln!("docs/models.md, section 26, does not have this table:\n{table}");
    ExitCode::FAILURE
}
