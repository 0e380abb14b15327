//! The mixes that a simulation can run: the benchmarks', and simple ones.

use load::mix::Mix;
use load::mix::Operation::{Getattr, Read, Write};
use load::mix::table::{MIXES, Sureness};

const SOURCE: &str = "made up, to load one part of a server";

/// Beside the benchmarks'.
const SIMPLE: [Mix; 4] = [
    simple("getattr", &[(Getattr, 1)]),
    simple("read", &[(Read, 1)]),
    simple("write", &[(Write, 1)]),
    simple("even", &[(Getattr, 1), (Read, 1), (Write, 1)]),
];

const fn simple(name: &'static str, shares: &'static [(load::mix::Operation, u32)]) -> Mix {
    Mix { name, shares, sureness: Sureness::Read, source: SOURCE }
}

/// By its name.
///
/// # Errors
/// There is none, and these are.
pub(super) fn mix(name: &str) -> Result<Mix, String> {
    let mut all = MIXES.iter().chain(&SIMPLE);
    all.find(|mix| mix.name == name).copied().ok_or_else(|| {
        let known: Vec<_> = MIXES.iter().chain(&SIMPLE).map(|mix| mix.name).collect();
        format!("unknown mix {name:?}; known are {}", known.join(", "))
    })
}
