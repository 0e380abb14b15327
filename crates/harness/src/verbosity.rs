//! How much a command prints: `-q`, `-v`.

/// From nothing but errors to everything.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}
