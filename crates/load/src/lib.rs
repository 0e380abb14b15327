//! Probes and workloads: makes load and measures it. Explains nothing.
//!
//! - [`environment`]: the machine, as a run record wants it.
//! - [`floor`]: what network and storage do without NFS.
//! - [`fsx`]: a file system exercised at random, every byte verified.
//! - [`latencies`]: what the times of single calls say.
//! - [`scratch`]: the directory on the server that a run may use, and its removal.
//! - [`place`]: a directory as a place to measure: file system, durability, room.
//! - [`policies`]: one sequential write through a write-behind policy.
//! - [`probe`]: the parameters of a path: T_prop, T_ser, T_op, T_B, capacity.
//! - [`seqwrite`]: one sequential write with its every call, at the wire.
//! - [`seqwrite_files`]: one sequential write with its every call, through a file system.
//! - [`study`]: probes and sweeps in order, interleaved, repeated.

pub mod cpu;
pub mod environment;
pub mod error;
pub mod floor;
pub mod fsx;
pub mod latencies;
pub mod place;
pub mod policies;
pub mod probe;
pub mod scratch;
pub mod seqwrite;
pub mod seqwrite_files;
pub mod study;
