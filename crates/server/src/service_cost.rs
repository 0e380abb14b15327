//! What serving a call costs besides what it does: processor time, where code itself takes none.
//!
//! In a world a server's work has to be declared, or it would be free. It is spent inside the
//! call's turn in service, so that a server that stalls for its disk, or has few threads, does not
//! compute for others meanwhile.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use wire::Procedure;

/// Done when the work is.
pub type Work<'l> = Pin<Box<dyn Future<Output = ()> + Send + 'l>>;

/// The costs of a server.
pub trait ServiceCost: Debug + Send + Sync + 'static {
    /// What taking a call of so many bytes costs, before it is executed.
    fn call(&self, procedure: Procedure, bytes: usize) -> Option<Work<'_>>;

    /// What making a reply of so many bytes costs.
    fn reply(&self, procedure: Procedure, bytes: usize) -> Option<Work<'_>>;
}
