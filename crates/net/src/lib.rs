//! Sockets, the clock, RPC calls and link shaping: the only crate that touches them.
//!
//! - [`clock`]: the one way to ask the time, to wait and to spawn, in real time or in a world.
//! - [`way`]: what the kernel knows of the way to a host.
//! - [`transport`]: whole messages over TCP or memory, behind one trait that wrappers stack on.
//! - [`shape`]: the LogGP link as such a wrapper.
//! - [`call`]: the client half of RPC: calls by XID over one transport.
//! - [`capture`]: packets that pass the interfaces of this host.
//! - [`connections`]: what the kernel knows of its TCP connections.
//! - [`control`]: lines over a socket of the file system, to tell a program that runs.
//! - [`path_mtu`]: the largest packet that passes to a host and back.
//! - [`floor`]: messages through plain sockets: what a network can do without NFS.
//! - [`http`]: pages for a monitoring system.
//! - [`processor`]: processor time as a resource: spun in the real world, queued for in a world.
//! - [`relay`]: connections and datagrams passed on over an emulated link.
//! - [`runtime`]: the executors of the real world.
//! - [`serve`]: the server half: connections, limits, back-pressure.
//! - [`slack`]: when memory goes back to the system after load.

pub mod call;
pub mod capture;
pub mod clock;
pub mod connections;
pub mod control;
pub mod error;
pub mod floor;
pub mod http;
pub mod path_mtu;
pub mod processor;
pub mod relay;
pub mod runtime;
pub mod serve;
pub mod shape;
pub mod slack;
mod slice;
mod stalls;
pub mod transport;
pub mod way;
