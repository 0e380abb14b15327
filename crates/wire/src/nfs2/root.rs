//! ROOT: obsolete; MOUNT gives the handle of a root (RFC 1094 section 2.2.4).

/// No arguments and no results.
pub use super::null::{Args, Reply};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::golden;

    pub(crate) const ARGS: &str = "";
    pub(crate) const OK: &str = "";
    pub(crate) const FAIL: &str = "";

    #[test]
    fn there_is_nothing_in_either_direction() {
        golden::<Args>(ARGS, ());
        golden::<Reply>(OK, ());
    }
}
