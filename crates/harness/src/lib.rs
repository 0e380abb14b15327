//! What commands and workloads have around them, once for all of them:
//!
//! - what they measure: [`target`]s, [`scratch`] directories there and [`local`] ones, servers in
//!   this process ([`served`], [`logged`], [`sockets`]), [`mounts`] of their own, [`emulated`]
//!   links;
//! - what a server of ours has around it: its [`exports`] as users write them, its [`state`] for
//!   the next one, its [`register`]ed ports, its pages of [`metrics`], the commands that mount it
//!   ([`mountable`]);
//! - what this host says of it: [`counted`];
//! - how they work: [`apart`] from what listens, on [`processors`] of their own, until a
//!   [`signals::Interrupts`] comes;
//! - what comes of it: [`output`] and [`sink`]s, a server's [`events`], [`records`], [`compared`]
//!   places, [`verdict`]s on predictions;
//! - how they end: one [`exit::Failure`] with its [`hints`].
//!
//! What an argument looks like is in [`values`].

mod advice;
pub mod apart;
pub mod busy;
pub mod compared;
pub mod counted;
pub mod csv;
pub mod descriptors;
pub mod emulated;
pub mod events;
pub mod exit;
pub mod exports;
pub mod footprint;
pub mod hints;
pub mod input;
pub mod local;
mod log_root;
mod log_state;
pub mod logged;
pub mod metrics;
pub mod mountable;
pub mod mounts;
pub mod origin;
pub mod output;
pub mod processors;
pub mod records;
pub mod recovery;
pub mod register;
pub mod relay;
mod replaceable;
mod replaced;
pub mod scratch;
pub mod served;
pub mod shell;
pub mod signals;
pub mod sink;
pub mod sockets;
pub mod state;
mod stderr;
pub mod table;
pub mod target;
pub mod unservable;
pub mod unused;
pub mod values;
pub mod verbosity;
pub mod verdict;
pub mod write_back;
