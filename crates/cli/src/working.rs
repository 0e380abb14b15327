//! A server that takes processor time: o for each message, and in a world what an operation costs.

use bytes::Bytes;
use net::processor::Processor;
use net::serve::{Peer, Reply, Service};
use perf::units::{Instant, Nanos};

/// A service, and what its calls cost.
#[derive(Clone, Debug)]
pub(crate) struct Working<S> {
    pub(crate) inner: S,
    pub(crate) processor: Processor,
    /// S: in the real world none, because there it is spent anyway.
    pub(crate) service: Nanos,
    /// o: before the call is looked at, and before its reply leaves.
    pub(crate) overhead: Nanos,
}

impl<S: Service + Sync> Service for Working<S> {
    fn call(
        &self,
        peer: Peer,
        record: Bytes,
        arrived: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<S> {
        let Self { inner, processor, service, overhead } = self.clone();
        async move {
            processor.spend(overhead + service).await;
            let reply = inner.call(peer, record, arrived).await;
            processor.spend(overhead).await;
            reply
        }
    }

    fn reply_bytes_max(&self, record: &[u8]) -> usize {
        self.inner.reply_bytes_max(record)
    }

    fn is_timed(&self) -> bool {
        self.inner.is_timed()
    }

    fn sent(&self, peer: &Peer, tag: u32, since_reply: Nanos) {
        self.inner.sent(peer, tag, since_reply);
    }
}
