//! Probes and workloads: makes load and measures it. Explains nothing.
//!
//! - [`basic`]: the Connectathon suite's basic tests, and a reader of its logs.
//! - [`crash`]: a server killed under load, and whether it keeps its promises.
//! - [`curve`]: response time over throughput, from next to nothing up to the saturation.
//! - [`environment`]: the machine, as a run record wants it.
//! - [`directory`]: a mounted directory as programs see it: calls alone, and several programs.
//! - [`deck`]: random choice in exact shares.
//! - [`fileset`]: the files that a mix of operations works on.
//! - [`floor`]: what network and storage do without NFS.
//! - [`fsx`]: a file system exercised at random, every byte verified.
//! - [`fuzzing`]: what fuzz targets run.
//! - [`latencies`]: what the times of single calls say.
//! - [`mix`]: a mix of operations at the wire, open loop or closed.
//! - [`nhfsstone`]: the benchmark of that name.
//! - [`recover`]: LogGP put into a path and read back.
//! - [`scratch`]: the directory on the server that a run may use, and its removal.
//! - [`paced`]: an open loop of calls of one kind.
//! - [`file_system`]: a directory as a place to measure: file system, durability, room.
//! - [`policies`]: one sequential write through a write-behind policy.
//! - [`probe`]: the parameters of a path: T_prop, T_ser, T_op, T_B, capacity.
//! - [`seqwrite`]: one sequential write with its every call, at the wire.
//! - [`seqwrite_files`]: one sequential write with its every call, through a file system.
//! - [`study`]: probes and sweeps in order, interleaved, repeated.
//! - [`suite13`]: the thirteen tests of a paper on caching, with the calls of each.
//! - [`tasks`]: parallel writers.

pub mod basic;
mod cached;
pub mod cpu;
pub mod crash;
pub mod curve;
pub mod deck;
pub mod directory;
pub mod environment;
pub mod error;
pub mod file_system;
pub mod fileset;
pub mod floor;
pub mod fsx;
pub mod fuzzing;
pub mod latencies;
pub mod mix;
pub mod nhfsstone;
pub mod paced;
pub mod policies;
pub mod probe;
pub mod recover;
pub mod scratch;
pub mod seqwrite;
pub mod seqwrite_files;
pub mod space;
pub mod stable;
pub mod study;
pub mod suite13;
pub mod tasks;
mod weighted;
