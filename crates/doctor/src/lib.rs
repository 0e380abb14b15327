//! Why a mount or a server is slow: evidence in, findings out.
//!
//! ```text
//!  a host, a folder, an archive --collect--> Files --evidence--> Evidence (one sample or two)
//!     --subject--> mounts, servers, the host --rules--> findings --reason--> reports
//! ```
//!
//! [`collect`] is the only module that reads files, all of them below one root, so that a live
//! host and what was saved of one are the same to the rest. The rest is pure.
//!
//! [`reach`] is for servers without a mount: the phases of one, and why each may fail.
//!
//! A rule ([`rules`]) is one file with its threshold, its source, its sentences and its samples.
//! [`reason`] puts them in order: what explains another stands above it, what is predicted to
//! gain most comes first. What they come to is text for a terminal ([`screen`]), a [`page`] or
//! [`json`]; run records among the evidence are [`recorded`].

pub mod case;
pub mod collect;
pub mod evidence;
pub mod finding;
pub mod floor;
pub mod flow;
pub mod json;
pub mod model;
pub mod page;
pub mod reach;
pub mod reason;
pub mod recorded;
pub mod rule;
pub mod rules;
pub mod screen;
pub mod shares;
pub mod stable;
pub mod subject;
#[cfg(test)]
mod testing;

pub use case::Case;
pub use evidence::{Evidence, Sample};
pub use finding::{Certainty, Finding, Gain, Layer, Severity};
pub use reason::{Report, diagnose};
pub use rule::{Limits, Rule};
