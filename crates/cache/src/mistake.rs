//! A mistake that is made on purpose.

/// A mistake that is made on purpose, to see whether simulated worlds notice it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mistake {
    /// Blocks are given away whatever their checksums are.
    UncheckedBlocks,
}
