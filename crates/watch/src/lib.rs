//! What counters say while one looks: samples of a host or of our own programs, tables made of two
//! of them, and a view of these tables in a terminal.
//!
//! - [`place`]: where counters are read, of this host or of saved files.
//! - [`sample`]: what was read at one time, and the rates between two.
//! - [`cached`]: what a cache on a local disk has served.
//! - [`ours`]: pages of `nfskit serve --metrics` and `nfskit mount --metrics`.
//! - [`table`]: rows, numbers with units, and what lies below a row.
//! - [`tables`]: rates as tables.
//! - [`text`]: tables as text, for `nfskit stat`.
//! - [`top`]: what `nfskit top` shows, as a plain state that takes keys and draws itself.
//!
//! Nothing here waits: who calls has the clock, the sockets and the terminal. Counters are read
//! from /proc, never by asking a mount for anything: one whose server is gone would not answer.

pub mod cached;
pub mod ours;
pub mod place;
pub mod sample;
pub mod table;
pub mod tables;
pub mod text;
pub mod top;
