//! What the paper says beside what was measured.

use harness::table::{Table, left, right};
use load::suite13::Test;

use super::{CACHED, KERNEL_LIKE, LOCAL, OF_PAPER, OURS, WRITE_BACK};
use super::{PAPER_AGAIN, PAPER_BUILD, PAPER_SMALL_WRITES, calls, factor, seconds};
use crate::suite13::measured::Outcome;

/// A sentence of the paper.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) what: String,
    paper: String,
    measured: String,
    /// None: it is no aim.
    pub(super) is_met: Option<bool>,
}

fn reads_again(outcome: &Outcome, copies: u32) -> Option<Claim> {
    let calls = outcome.of(CACHED, copies, Test::ReadAgain).and_then(calls)?;
    let reads = calls.get("READ").copied().unwrap_or(0);
    Some(Claim {
        what: format!("READs when a file is read again, {}", at_once(copies)),
        paper: "0".to_owned(),
        measured: reads.to_string(),
        is_met: Some(reads == 0),
    })
}

/// What the paper says of its client, each beside the same here.
pub(super) fn claims(outcome: &Outcome, copies: &[u32]) -> Vec<Claim> {
    let mut claims = vec![never_more(outcome, copies)];
    for &copies in copies {
        claims.extend(reads_again(outcome, copies));
        for (what, paper, test) in [
            ("reading again", PAPER_AGAIN, Test::ReadAgain),
            ("small writes", PAPER_SMALL_WRITES, Test::SmallWrites),
            ("building a package", PAPER_BUILD, Test::Build),
        ] {
            let factor = |fast| factor(outcome, copies, test, OF_PAPER, fast);
            claims.extend(faster(what, copies, paper, factor(CACHED)));
            let what = format!("{what} with write-back");
            claims.extend(faster(&what, copies, paper, factor(WRITE_BACK)));
        }
        let local = factor(outcome, copies, Test::ReadAgain, LOCAL, CACHED);
        claims.extend(local.map(|factor| Claim {
            what: format!("speed of reading again to that of a local file, {}", at_once(copies)),
            paper: "-".to_owned(),
            measured: format!("{factor:.2}"),
            is_met: None,
        }));
    }
    claims
}

/// The paper's factors are those of its machines: printed beside ours, and no aim.
fn faster(what: &str, copies: u32, paper: f64, measured: Option<f64>) -> Option<Claim> {
    Some(Claim {
        what: format!("times as fast as the client of 1997: {what}, {}", at_once(copies)),
        paper: format!("up to {paper}"),
        measured: format!("{:.2}", measured?),
        is_met: None,
    })
}

/// Tests in which ours with a cache makes more calls than without.
fn never_more(outcome: &Outcome, copies: &[u32]) -> Claim {
    let mut more = Vec::new();
    for &copies in copies {
        for test in Test::ALL {
            let total = |target| {
                let all = calls(outcome.of(target, copies, test)?)?;
                Some(all.values().sum::<u64>())
            };
            if let (Some(ours), Some(cached)) = (total(OURS), total(CACHED))
                && cached > ours
            {
                more.push(format!("{} x{copies} ({cached} of {ours})", test.number()));
            }
        }
    }
    Claim {
        what: "tests with more calls with a cache than without".to_owned(),
        paper: "none".to_owned(),
        measured: if more.is_empty() { "none".to_owned() } else { more.join(", ") },
        is_met: Some(more.is_empty()),
    }
}

fn at_once(copies: u32) -> String {
    if copies == 1 { "alone".to_owned() } else { format!("{copies} at once") }
}

pub(super) fn text(outcome: &Outcome, copies: &[u32], markdown: bool) -> String {
    let columns = [left("what"), right("paper"), right("here"), left("")];
    let mut table = Table::new(columns);
    for Claim { what, paper, measured, is_met } in claims(outcome, copies) {
        let verdict = match is_met {
            Some(true) => "as in the paper",
            Some(false) => "MISSED",
            None => "",
        };
        table.row([what, paper, measured, verdict.to_owned()]);
    }
    let calls = by_test(outcome, copies, "calls", &CALLED, |target, copies, test| {
        let all = outcome.of(target, copies, test).and_then(calls)?;
        Some(all.values().sum::<u64>().to_string())
    });
    let seconds = by_test(outcome, copies, "seconds", &TIMED, |target, copies, test| {
        Some(format!("{:.4}", seconds(outcome, copies, test, target)?))
    });
    [table, calls, seconds].map(|table| table.shown(markdown) + "\n").concat()
}

/// Columns of the tables. Calls of what stands before the proxy are not those to the server.
const CALLED: [(usize, &str); 4] =
    [(OF_PAPER, "1997"), (KERNEL_LIKE, "kernel-like"), (OURS, "ours"), (CACHED, "kept")];
const TIMED: [(usize, &str); 6] = [
    (OF_PAPER, "1997"),
    (KERNEL_LIKE, "kernel-like"),
    (OURS, "ours"),
    (CACHED, "kept"),
    (WRITE_BACK, "write-back"),
    (LOCAL, "local"),
];

/// A line for each test and number of copies.
fn by_test(
    outcome: &Outcome,
    copies: &[u32],
    what: &str,
    places: &[(usize, &str)],
    cell: impl Fn(usize, u32, Test) -> Option<String>,
) -> Table {
    let names = places.iter().map(|(_, name)| right(*name));
    let mut table = Table::new(std::iter::once(left(what)).chain(names));
    for &copies in copies {
        for test in Test::ALL.into_iter().filter(|test| outcome.of(CACHED, copies, *test).is_some())
        {
            let name = format!("{} {}, {}", test.number(), test.name(), at_once(copies));
            let cells = places.iter().map(|(target, _)| cell(*target, copies, test));
            let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            table.row(std::iter::once(name).chain(cells));
        }
    }
    table
}
