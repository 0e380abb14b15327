//! How the descriptors that a process may have are divided: between its clients' connections and
//! all else.

use rustix::process::{Resource, getrlimit, setrlimit};

/// For what is neither a store's nor a client's: 64 connections of `--metrics`, 48 of hosts that no
/// export names, and 64 for sockets that listen, files of state, logs and timers.
const OTHERS: usize = 176;

/// Connections that may be open at once.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Connections {
    pub max: usize,
    /// They are fewer than was wanted.
    pub warning: Option<String>,
}

/// As many as wanted, or as there are descriptors for: each takes `each` of them, and others have
/// `taken`. A quarter of all is for connections at least, as others seldom have all that they may.
pub fn connections(wanted: u32, each: usize, taken: usize) -> Connections {
    raise_limit();
    divided(wanted, each, taken, limit())
}

fn divided(wanted: u32, each: usize, taken: usize, limit: Option<u64>) -> Connections {
    let wanted = wanted as usize;
    let Some(limit) = limit else { return Connections { max: wanted, warning: None } };
    let all = usize::try_from(limit).unwrap_or(usize::MAX);
    let left = all.saturating_sub(taken.saturating_add(OTHERS)).max(all / 4);
    let max = wanted.min(left / each).max(1);
    let warning = (max < wanted).then(|| {
        format!(
            "{max} connections at once, not {wanted} (--connections): that is what a limit of \
             {limit} descriptors has room for (ulimit -n, LimitNOFILE=)"
        )
    });
    Connections { max, warning }
}

/// None for no limit.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Takes as many descriptors as we may have: a store keeps files open in proportion.
pub fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Not allowed is no harm: then it stays as it is.
    setrlimit(Resource::Nofile, limit).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_no_more_than_there_are_descriptors_for() {
        let max = |limit, each, taken| divided(4096, each, taken, limit).max;
        assert_eq!(max(None, 1, 20_000), 4096);
        assert_eq!(max(Some(1 << 20), 1, 16 << 10), 4096);
        assert_eq!(max(Some(1024), 1, 520), 1024 - 520 - OTHERS);
        assert_eq!(max(Some(1024), 3, 520), (1024 - 520 - OTHERS) / 3);
        assert_eq!(max(Some(1024), 1, 5000), 256, "a quarter");
        assert_eq!(max(Some(0), 2, 0), 1);
        assert_eq!(divided(200, 1, 520, Some(1024)), Connections { max: 200, warning: None });
        let warning = divided(4096, 1, 520, Some(1024)).warning.unwrap();
        assert!(warning.starts_with("328 connections at once, not 4096"), "{warning}");
    }
}
