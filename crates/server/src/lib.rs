//! NFS server engine and its stores; no sockets, no clock.
//!
//! ```text
//!   record --engine--> permit, commit gate --> proc3/<procedure> --> store --> reply
//!                  |--> proc2/<procedure> --'
//!                  '--> mountd, portmap, rpcbind
//! ```
//!
//! [`Engine::call`] takes one RPC call and gives one reply. It decodes in place, runs the
//! procedure against a [`store::Store`] and encodes what came of it. Whoever owns the sockets
//! decides how many calls run at once on a connection; the engine decides how many are in service
//! ([`EngineConfig::threads`]) and whether they may pass a commit ([`CommitMode`]).

mod auth;
pub mod durable;
mod engine;
mod export;
mod exports;
pub mod fuzzing;
mod handle;
mod handle2;
pub mod locked;
pub mod metrics;
mod mountd;
mod mountinfo;
mod nlm;
mod peer;
mod permits;
mod portmap;
mod proc2;
mod proc3;
mod programs;
mod replies;
mod rpcbind;
mod service;
mod service_cost;
mod siphash;
pub mod small_file;
mod status;
pub mod store;
pub mod types;

pub use engine::{Engine, EngineConfig};
pub use export::{Clients, Export, NOBODY, Network, NetworkError, Rule, Squash};
pub use exports::{Exported, Exports, ExportsError};
pub use mountd::Mount;
pub use peer::{Peer, Transport};
pub use portmap::Endpoint;
pub use programs::Versions;
pub use replies::{Recorded, Replies, TimeOfDay, Times};
pub use service::CommitMode;
pub use service_cost::{ServiceCost, Work};
