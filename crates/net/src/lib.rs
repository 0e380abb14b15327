//! Sockets, the clock, RPC calls and link shaping: the only crate that touches them.
