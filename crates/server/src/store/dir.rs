//! A directory of this machine as a store.
