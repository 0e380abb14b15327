//! Lines that the kernel's server and client have in common: a word, then numbers.

use super::LINES_MAX;
use super::fields::Line;
use super::problem::{Problem, Wrong};
use super::procedures::{Procedures, Version};

/// Numbers in one line: version 4 has fewer than 100 operations.
pub(super) const NUMBERS_MAX: usize = 1024;

/// `net`: what came from, or went to, the network.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Net {
    pub packets: u64,
    pub udp: u64,
    pub tcp: u64,
    pub tcp_connections: u64,
}

impl Net {
    pub(super) fn read(line: &mut Line<'_>) -> Result<Self, Problem> {
        let numbers = line.numbers("net", 4, NUMBERS_MAX)?;
        let [packets, udp, tcp, tcp_connections] = first(&numbers);
        Ok(Self { packets, udp, tcp, tcp_connections })
    }
}

/// The first numbers of a list that has so many; zeros for what it has not.
pub(super) fn first<const N: usize>(numbers: &[u64]) -> [u64; N] {
    std::array::from_fn(|at| numbers.get(at).copied().unwrap_or(0))
}

/// `procN COUNT n0 n1 ...`: as many numbers as it says.
pub(super) fn procedures(line: &mut Line<'_>, version: Version) -> Result<Procedures, Problem> {
    Ok(Procedures { version, calls: counted(line, "proc")? })
}

/// Numbers after their number.
pub(super) fn counted(line: &mut Line<'_>, what: &str) -> Result<Vec<u64>, Problem> {
    let count = line.word();
    let announced = count.number()?;
    let numbers = line.numbers(what, 0, NUMBERS_MAX)?;
    let found = numbers.len();
    if announced != found as u64 {
        let expected = usize::try_from(announced).unwrap_or(usize::MAX);
        return Err(count.wrong(Wrong::TooFew { what: what.to_owned(), expected, found }));
    }
    Ok(numbers)
}

/// Puts what a line says where it belongs, once.
pub(super) fn set<T>(
    place: &mut Option<T>,
    what: &str,
    line: usize,
    value: T,
) -> Result<(), Problem> {
    if place.is_some() {
        let wrong = Wrong::Twice { what: what.to_owned() };
        return Err(Problem { line, column: 1, wrong });
    }
    *place = Some(value);
    Ok(())
}

/// Within [`LINES_MAX`].
pub(super) fn bounded(line: &Line<'_>) -> Result<(), Problem> {
    if line.number <= LINES_MAX {
        return Ok(());
    }
    let wrong = Wrong::TooMany { what: "lines", max: LINES_MAX };
    Err(Problem { line: line.number, column: 1, wrong })
}
