//! Worlds: any number of production clients and servers in one thread and in virtual time, over
//! links and on disks whose times are stated.
//!
//! ```text
//!   Client -- Traced -- link and overhead -- memory -- Host -- Engine -- SimStore -- disk
//!     |                  net::shape                    |         |
//!     '- Processor                                     '- Group  '- Costs on a Processor
//!        [ production code: Session, Rpc, Host, Engine, stores; only the ends differ ]
//! ```
//!
//! - [`World`] runs a play on a [`Stage`], where hosts are made.
//! - [`Server`]: cores, [`Costs`] of calls, a store behind a disk; it crashes and starts again.
//! - [`Client`]: cores and a link; sessions over one connection, many, or datagrams.
//! - [`trace`]: all messages as one number. The same seed gives the same number.
//! - [`simulate`]: a world from a file, with a mix of operations.
//! - [`machine`]: the clock behind a `sim:` store, also of a real server.
//!
//! What takes no time here: code, memory, everything that no cost was stated for.
//!
//! ```
//! use perf::units::Nanos;
//! use world::{ClientSpec, Costs, ServerSpec, World};
//!
//! let world = World::new(1);
//! let elapsed = world.run(|stage| async move {
//!     let costs = Costs::per_call(Nanos::from_micros(60));
//!     let server = stage.server(ServerSpec { costs, ..ServerSpec::default() });
//!     let client = stage.client(ClientSpec::behind("100us/1g".parse().unwrap()));
//!     let session = client.mount(&server).await.unwrap();
//!     let begun = stage.clock().now();
//!     session.getattr(session.root()).await.unwrap();
//!     stage.clock().now().since(begun)
//! });
//! // The network round trip, the processing, and the bytes of call and reply.
//! assert!((260..265).contains(&(elapsed.unwrap().as_nanos() / 1_000)));
//! ```

pub mod client;
pub mod cost;
pub mod machine;
pub mod path;
pub mod server;
pub mod simulate;
pub mod stage;
pub mod trace;

pub use client::{Client, ClientSpec};
pub use cost::Costs;
pub use server::{Server, ServerSpec};
pub use stage::{Stage, World};
pub use trace::Digest;
