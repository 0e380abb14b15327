//! The processes that a launcher (mpirun, srun, a Job of Kubernetes) has started as one load
//! generator.
//!
//! The launcher starts them on their hosts, tells each its number in variables, and ends all when
//! one fails. They meet at `--meet`, an address of the first one's host, over TCP: no MPI library
//! has to be there, and any build of this program will do.

use std::env;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use harness::exit::Failure;
use harness::hints;
use load::curve::meeting::{MESSAGE_BYTES_MAX, Meeting, PROCESSES_MAX};
use load::curve::{Alone, Gather, GatherError, Share};
use load::mix::Outcome;
use net::clock::Clock;
use net::transport::buffer::Pool;
use net::transport::tcp::{self, Listener, Tcp};
use perf::units::Nanos;

/// How launchers tell a process its number, and how many there are: Open MPI's mpirun, MPICH's and
/// others that speak PMI, srun with PMIx, srun alone.
const VARIABLES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];
/// What all processes of a measurement know, and nobody else.
const KEY_VARIABLE: &str = "NFSKIT_MEET_KEY";
const KEY_BYTES_MIN: usize = 16;
const KEY_BYTES_MAX: usize = 256;
/// All have come, or none goes on: hosts may have to fetch an image first.
const MEET_WITHIN: Nanos = Nanos::from_secs(300);
const CONNECT_WITHIN: Nanos = Nanos::from_secs(5);
/// A host that does not acknowledge for that long times 6 is gone.
const PEER_TIMEO: Nanos = Nanos::from_secs(10);
const PEER_RETRANS: u32 = 5;

/// Where the processes meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    host: String,
    port: u16,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no HOST:PORT, like node1:7010 or [fd00::1]:7010");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match bare {
            Some(bare) if bare.parse::<Ipv6Addr>().is_err() => Err(wrong()),
            None if host.is_empty() || host.contains([':', '[', ']', '/']) => Err(wrong()),
            _ => Ok(Self { host: bare.unwrap_or(host).to_owned(), port }),
        }
    }
}

/// `--process N/M`: process N, from 0, of M.
pub(crate) fn share(text: &str) -> Result<Share, String> {
    let parts = text.split_once('/');
    let numbers = parts.and_then(|(rank, ranks)| Some((rank.parse().ok()?, ranks.parse().ok()?)));
    match numbers {
        Some((rank, ranks)) if rank < ranks && ranks <= PROCESSES_MAX => Ok(Share { rank, ranks }),
        _ => Err(format!("{text:?} is not N/M: process N, from 0, of M, at most {PROCESSES_MAX}")),
    }
}

/// This process's number among those that a launcher has started.
fn launched(variable: impl Fn(&str) -> Option<String>) -> Option<Share> {
    let number = |name| variable(name)?.parse().ok();
    VARIABLES.iter().find_map(|(rank, ranks)| {
        let share = Share { rank: number(rank)?, ranks: number(ranks)? };
        (share.ranks > 1 && share.rank < share.ranks).then_some(share)
    })
}

/// The share of this process: the one that is given, or the launcher's.
fn own(given: Option<Share>) -> Option<Share> {
    given.or_else(|| launched(|name| env::var(name).ok()))
}

/// Whether this process will speak for all, with the share that is given.
pub(crate) fn is_first(given: Option<Share>) -> bool {
    own(given).is_none_or(|share| share.rank == 0)
}

/// This process among those of its measurement.
#[derive(Debug)]
pub(crate) enum Ranks {
    Alone(Alone),
    Meeting(Meeting<Tcp>),
}

/// What those who meet show each other.
fn key() -> Result<String, Failure> {
    let key = env::var(KEY_VARIABLE).unwrap_or_default();
    if (KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&key.len()) {
        return Ok(key);
    }
    Err(Failure::usage(
        format!(
            "{KEY_VARIABLE} has {} characters: those who meet show each other a key",
            key.len()
        ),
        format!(
            "export {KEY_VARIABLE}=$(openssl rand -hex 16), for all processes the same (mpirun -x \
             {KEY_VARIABLE})"
        ),
    ))
}

impl Ranks {
    /// Meets the others, if there are any.
    ///
    /// # Errors
    /// There are, and nothing tells where they meet; or not all of them have come.
    pub(crate) async fn join(
        clock: &Clock,
        place: Option<&Place>,
        share: Option<Share>,
    ) -> Result<Self, Failure> {
        let (share, place) = match (own(share), place) {
            (None | Some(Share::WHOLE), None) => return Ok(Self::Alone(Alone)),
            (Some(share), Some(place)) => (share, place),
            (Some(share), None) => {
                return Err(Failure::usage(
                    format!(
                        "this is one of {} processes, which do not know where to meet",
                        share.ranks
                    ),
                    "--meet HOST:PORT: the first one's host, and a free port; or start it once",
                ));
            }
            (None, Some(_)) => {
                return Err(Failure::usage(
                    "no launcher has given this process its number, and how many there are",
                    "mpirun, srun, or --process N/M: process N, from 0, of M",
                ));
            }
        };
        let key = key()?;
        match share.rank {
            0 => host(clock, place, share.ranks, &key).await,
            _ => come(clock, place, share, &key).await,
        }
        .map(Self::Meeting)
    }

    /// Whether this process speaks for all.
    pub(crate) fn is_first(&self) -> bool {
        self.share().rank == 0
    }
}

async fn host(
    clock: &Clock,
    place: &Place,
    ranks: u32,
    key: &str,
) -> Result<Meeting<Tcp>, Failure> {
    // A name may be one of the loopback for this host alone.
    let address = place.host.parse().unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let address = SocketAddr::new(address, place.port);
    let listener = Listener::bind(address, MESSAGE_BYTES_MAX).map_err(|cause| {
        let what = format!("the first process cannot listen on {address}: {cause}");
        let advice = format!("--meet with {}", hints::listening(&cause, false));
        Failure::environment(what, advice)
    })?;
    let accept = async || {
        let came = listener.accept().await?;
        came.watch_peer(PEER_TIMEO, PEER_RETRANS);
        Ok::<_, std::io::Error>(came)
    };
    let met = Meeting::host(clock, ranks, key, MEET_WITHIN, accept).await;
    met.map_err(|error| {
        Failure::environment(error, "the messages of the launcher, and of the others")
    })
}

async fn come(
    clock: &Clock,
    place: &Place,
    share: Share,
    key: &str,
) -> Result<Meeting<Tcp>, Failure> {
    let pool = Pool::new(MESSAGE_BYTES_MAX);
    let connect = async || {
        let found = tcp::resolve(clock, &place.host, place.port, CONNECT_WITHIN).await;
        let mut why = format!("{} has no address", place.host);
        for address in found.map_err(|error| error.to_string())? {
            match tcp::connect(clock, address, CONNECT_WITHIN, &pool, MESSAGE_BYTES_MAX).await {
                Ok(first) => {
                    first.watch_peer(PEER_TIMEO, PEER_RETRANS);
                    return Ok(first);
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    };
    let met = Meeting::join(clock, share, key, MEET_WITHIN, connect).await;
    met.map_err(|error| {
        let advice = "--meet with the first process's host, firewalls on the way, its messages";
        Failure::environment(error, advice)
    })
}

impl Gather for Ranks {
    fn share(&self) -> Share {
        match self {
            Self::Alone(alone) => alone.share(),
            Self::Meeting(meeting) => meeting.share(),
        }
    }

    async fn barrier(&mut self) -> Result<(), GatherError> {
        match self {
            Self::Alone(alone) => alone.barrier().await,
            Self::Meeting(meeting) => meeting.barrier().await,
        }
    }

    async fn merge(&mut self, own: Outcome) -> Result<Outcome, GatherError> {
        match self {
            Self::Alone(alone) => alone.merge(own).await,
            Self::Meeting(meeting) => meeting.merge(own).await,
        }
    }

    async fn sum(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        match self {
            Self::Alone(alone) => alone.sum(own).await,
            Self::Meeting(meeting) => meeting.sum(own).await,
        }
    }

    async fn broadcast(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        match self {
            Self::Alone(alone) => alone.broadcast(own).await,
            Self::Meeting(meeting) => meeting.broadcast(own).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_host_and_a_port() {
        let place = |host: &str, port| Ok(Place { host: host.to_owned(), port });
        assert_eq!("node1:7010".parse(), place("node1", 7010));
        assert_eq!("10.0.0.1:1".parse(), place("10.0.0.1", 1));
        assert_eq!("[fd00::1]:7010".parse(), place("fd00::1", 7010));
        for wrong in ["node1", ":7010", "node1:0", "node1:70100", "fd00::1:7010", "[node1]:7010"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_a_number_below_the_count() {
        assert_eq!(share("0/1"), Ok(Share::WHOLE));
        assert_eq!(share("3/4"), Ok(Share { rank: 3, ranks: 4 }));
        for wrong in ["4/4", "0/0", "1", "-1/2", "0/4097", "a/b", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn launchers_are_understood() {
        let share = |variables: &'static [(&str, &str)]| {
            launched(|name| {
                let found = variables.iter().find(|(of, _)| *of == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let second = Some(Share { rank: 1, ranks: 4 });
        assert_eq!(share(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")]), second);
        assert_eq!(share(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), second);
        assert_eq!(share(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "4")]), second);
        // A batch script has a number, and is alone.
        assert_eq!(share(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), None);
        assert_eq!(share(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")]), None);
        assert_eq!(share(&[]), None);
    }
}
