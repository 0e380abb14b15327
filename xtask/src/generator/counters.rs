//! How many calls the server has answered, as its metrics tell.

use super::programs::Work;
use crate::host::metrics;
use crate::host::nfskit::Server;

/// Calls of one procedure, and the bytes of their replies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) calls: u64,
    pub(super) bytes: u64,
}

/// Where they are requested.
#[derive(Debug)]
pub(super) struct Counters {
    address: String,
}

impl Counters {
    pub(super) fn of(server: &Server) -> Result<Self, String> {
        let lines = server.lines();
        let address = lines.iter().find_map(|line| {
            line.trim().strip_prefix("metrics")?.trim().strip_prefix("http://")?.split('/').next()
        });
        let address = address.ok_or("the server tells no address of its metrics")?;
        Ok(Self { address: address.to_owned() })
    }

    pub(super) fn read(&self, work: Work) -> Result<Counted, String> {
        let page = metrics::page(&self.address)?;
        Ok(counted(&page, work.procedure()))
    }
}

fn counted(page: &str, procedure: &str) -> Counted {
    let label = format!("procedure=\"{procedure}\"");
    let of = |name: &str| {
        let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(&label));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    Counted { calls: of("nfskit_calls_total{"), bytes: of("nfskit_sent_bytes_total{") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_bytes_are_those_of_the_procedure() {
        let page = "nfskit_calls_total{program=\"nfs\",version=\"3\",procedure=\"READ\"} 7\n\
                    nfskit_calls_total{program=\"nfs\",version=\"3\",procedure=\"READDIR\"} 1\n\
                    nfskit_sent_bytes_total{program=\"nfs\",version=\"3\",procedure=\"READ\"} 90\n";
        let Counted { calls, bytes } = counted(page, "READ");
        assert_eq!((calls, bytes), (7, 90));
    }
}
