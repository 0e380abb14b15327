//! Whether it is the network that is slow, or who answers.

/// What NULL's response time says beside that of a TCP connection, which the kernel of the server
/// answers alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answering {
    /// About as fast: what there is, is the network.
    AsFastAsTcp,
    /// The server takes its time for a call that does nothing.
    SlowServer,
    /// Not enough was measured.
    Unknown,
}

/// By how much NULL must be slower to be the server's: both times are small where hosts are near,
/// and vary by a scheduler's turn. Guesses.
const SLOWER_RATIO: f64 = 3.0;
const SLOWER_MS: f64 = 1.0;

/// Judges medians in milliseconds.
pub fn answering(connect_ms: Option<f64>, null_ms: Option<f64>) -> Answering {
    match connect_ms.zip(null_ms) {
        None => Answering::Unknown,
        Some((connect, null)) if null > connect * SLOWER_RATIO && null - connect > SLOWER_MS => {
            Answering::SlowServer
        }
        Some(_) => Answering::AsFastAsTcp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_slow_where_it_is_far_slower_than_the_network() {
        assert_eq!(answering(Some(0.1), Some(0.25)), Answering::AsFastAsTcp);
        assert_eq!(answering(Some(0.1), Some(0.9)), Answering::AsFastAsTcp, "by too little");
        assert_eq!(answering(Some(20.0), Some(22.0)), Answering::AsFastAsTcp);
        assert_eq!(answering(Some(0.1), Some(5.0)), Answering::SlowServer);
        assert_eq!(answering(None, Some(5.0)), Answering::Unknown);
    }
}
