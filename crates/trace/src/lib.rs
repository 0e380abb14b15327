//! What a capture says: RPC transactions, their times, and the pace of the conversation.
//!
//! ```text
//!  packet --capture::Slicer--> segment --stream.rs--> records --message.rs--> calls and replies
//!     --calls.rs--> transactions --> flows.rs (counts), pace.rs (turns, gaps), series.rs (over
//!     time), files.rs (by file), and whoever else wants them
//! ```
//!
//! [`Analyzer`] takes packets one after the other, and keeps what does not grow with their number:
//! calls without a reply, connections, flows, files and counts, each with a stated maximum.

mod analyzer;
mod calls;
pub mod capture;
mod connections;
mod copies;
mod facts;
mod failures;
mod files;
mod filter;
mod flows;
pub mod fuzzing;
mod ids;
mod late;
mod message;
pub mod mix;
mod operation;
mod outstanding;
mod pace;
mod pair;
mod postponed;
mod rpc;
mod rtt;
mod series;
mod service;
mod spread;
mod stream;
mod totals;
mod transaction;
mod twins;
pub mod verdict;
mod work;

pub use analyzer::{Analyzer, Cut, SetBack};
pub use calls::{CALLS_MAX, PATIENCE_NS};
pub use connections::{BUFFERS_MAX, CONNECTIONS_MAX};
pub use copies::{PLACES_MAX, SIGHTINGS_MAX};
pub use failures::STATUSES_MAX;
pub use files::{FILES_MAX, Files, Usage};
pub use filter::{Filter, Host};
pub use flows::{Ends, FLOWS_MAX, Flow, Flows, Tallies, Tally};
pub use ids::{FileId, FlowId};
pub use late::Hung;
pub use message::{Guard, RECORD_LEN_MAX, RpcVerdict};
pub use operation::{Kind, OPERATIONS, Operation, Program};
pub use pace::{Cause, Done, GAP_FACTOR, GAP_NS_MIN, GAPS_MAX, Gap, Pace, Phase, Waited};
pub use pair::{
    Datagrams, Hosts, OneSide, Pair, Relay, Relayed, Repeats, SMALL_SYNC_BYTES, Syncs, Worked,
};
pub use rtt::{JUMP_FACTOR, JUMP_NS_MIN, JUMPS_MAX, Jump, Rtt, RttOf, WINDOW, WINDOW_NS_MIN};
pub use series::{COLUMNS_MAX, Column, POINTS_MAX, Point, ROWS, Series, row_begins_us};
pub use service::{Service, Stalls};
pub use spread::Spread;
pub use stream::{EARLY_BYTES_MAX, EARLY_MAX, HEAD_LEN, StreamCounts, TAIL_LEN};
pub use totals::{Guards, OperationTotal, Sync, Totals};
pub use transaction::Transaction;
pub use twins::TWINS_MAX;
pub use work::{WORKS, Work};
