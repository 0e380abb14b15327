//! The store through its trait.
