//! Processes that make one load, perhaps on many hosts, as they meet over connections.
//!
//! The first process is the middle of a star: in each step every other process sends it what it
//! brings, and it sends the same result to all. A point has a handful of steps, the slowest process
//! decides how long each takes, and nothing is measured meanwhile, so that a tree would save
//! nothing. A process that ends closes its connection, which fails the step of all others.
//!
//! Who comes shows a key that the launcher has given to all. It keeps processes of other jobs and
//! strangers out; it does not protect from those who can read the network.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::poll_fn;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use futures_util::stream::FuturesUnordered;
use net::clock::Clock;
use net::transport::Transport;
use perf::units::Nanos;
use serde::{Deserialize, Serialize};
use wire::record::Message;

use super::gather::{Gather, GatherError};
use super::share::Share;
use crate::mix::Outcome;

/// Most bytes of a message: many times the histograms of all operations.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Most processes of a measurement: each is a connection, and a step goes to all of them.
pub const PROCESSES_MAX: u32 = 4096;

/// Different versions may bring different things.
const PROTOCOL: &str = concat!("nfskit meeting ", env!("CARGO_PKG_VERSION"));
/// Connections whose key has not been seen yet; more of them wait in the system's queue.
const STRANGERS_MAX: usize = 16;
/// Who connects and does not say who he is goes after this.
const HELLO_WITHIN: Nanos = Nanos::from_secs(5);
/// Between two tries to reach the first process, and after a failed accept.
const PAUSE: Nanos = Nanos::from_millis(200);

/// What a message is for. Processes are in step, so that another kind than expected is a mistake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Hello = 1,
    Welcome,
    Refusal,
    Barrier,
    Merge,
    Sum,
    Broadcast,
}

/// The first message of a process that comes.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    protocol: String,
    rank: u32,
    ranks: u32,
    key: String,
}

/// See the module's head.
#[derive(Debug)]
pub struct Meeting<T> {
    share: Share,
    /// Of the first process the others in order, of another one the first.
    peers: Vec<T>,
}

/// What came of a connection.
enum Greeted<T> {
    Process(u32, T),
    Stranger,
    /// It has the key, and cannot be one of us.
    Misfit(String),
}

impl<T: Transport> Meeting<T> {
    /// Waits for the others, as the first of `ranks` processes.
    ///
    /// # Errors
    /// Not all have come within `limit`, or one that has the key does not fit.
    pub async fn host<E, F: Future<Output = Result<T, E>>>(
        clock: &Clock,
        ranks: u32,
        key: &str,
        limit: Nanos,
        accept: impl Fn() -> F,
    ) -> Result<Self, GatherError> {
        let mut come = BTreeMap::new();
        let mut strangers = 0_u64;
        let met = clock.within(limit, async {
            let mut greetings = FuturesUnordered::new();
            while come.len() + 1 < ranks as usize {
                tokio::select! {
                    biased;
                    Some(greeted) = greetings.next(), if !greetings.is_empty() => match greeted {
                        Ok(Greeted::Process(rank, transport)) => {
                            if come.insert(rank, transport).is_some() {
                                let why = format!("two processes are number {rank} of {ranks}");
                                return Err(GatherError(why));
                            }
                        }
                        Ok(Greeted::Misfit(why)) => return Err(GatherError(why)),
                        Ok(Greeted::Stranger) | Err(_) => strangers += 1,
                    },
                    accepted = accept(), if greetings.len() < STRANGERS_MAX => match accepted {
                        Ok(came) => {
                            greetings.push(clock.within(HELLO_WITHIN, greet(came, ranks, key)));
                        }
                        Err(_) => clock.sleep(PAUSE).await,
                    },
                }
            }
            Ok(())
        });
        match met.await {
            Ok(met) => met?,
            Err(_) => return Err(missing(ranks, &come, limit, strangers)),
        }
        let mut peers: Vec<T> = come.into_values().collect();
        let all = peers.iter_mut().zip(1..);
        let welcome = |(peer, rank)| send(peer, rank, Kind::Welcome, Bytes::new());
        try_join_all(all.map(welcome)).await?;
        Ok(Self { share: Share { rank: 0, ranks }, peers })
    }

    /// Comes to the first process, which may begin to listen later.
    ///
    /// # Errors
    /// It is not there within `limit`, or others are missing, or it does not want this process.
    pub async fn join<E: Display, F: Future<Output = Result<T, E>>>(
        clock: &Clock,
        share: Share,
        key: &str,
        limit: Nanos,
        connect: impl Fn() -> F,
    ) -> Result<Self, GatherError> {
        let mut why = String::new();
        let reached = clock.within(limit, async {
            loop {
                match connect().await {
                    Ok(transport) => return transport,
                    Err(error) => why = error.to_string(),
                }
                clock.sleep(PAUSE).await;
            }
        });
        let Ok(mut first) = reached.await else {
            return Err(GatherError(format!("the first one is not there after {limit}: {why}")));
        };
        let hello = Hello {
            protocol: PROTOCOL.to_owned(),
            rank: share.rank,
            ranks: share.ranks,
            key: key.to_owned(),
        };
        let hello = serde_json::to_vec(&hello).map_err(|error| GatherError(error.to_string()))?;
        send(&mut first, 0, Kind::Hello, hello.into()).await?;
        // The first one gives up by itself; this is for one that has died without a sign.
        let answered = clock.within(limit + HELLO_WITHIN, receive(&mut first, 0, Kind::Welcome));
        answered.await.map_err(|elapsed| GatherError(elapsed.to_string()))??;
        Ok(Self { share, peers: vec![first] })
    }

    /// One step: what all bring is combined, and the result is everyone's.
    async fn step(
        &mut self,
        kind: Kind,
        own: Bytes,
        combine: impl FnOnce(Vec<Bytes>) -> Result<Vec<u8>, GatherError>,
    ) -> Result<Bytes, GatherError> {
        if self.share.rank > 0 {
            let first = self.peers.first_mut().ok_or_else(|| ended(0, "here"))?;
            send(first, 0, kind, own).await?;
            return receive(first, 0, kind).await;
        }
        let others = self.peers.iter_mut().zip(1..);
        let brought = try_join_all(others.map(|(peer, rank)| receive(peer, rank, kind))).await?;
        let combined = Bytes::from(combine([vec![own], brought].concat())?);
        let others = self.peers.iter_mut().zip(1..);
        try_join_all(others.map(|(peer, rank)| send(peer, rank, kind, combined.clone()))).await?;
        Ok(combined)
    }
}

impl<T: Transport> Gather for Meeting<T> {
    fn share(&self) -> Share {
        self.share
    }

    async fn barrier(&mut self) -> Result<(), GatherError> {
        self.step(Kind::Barrier, Bytes::new(), |_| Ok(Vec::new())).await.map(drop)
    }

    async fn merge(&mut self, own: Outcome) -> Result<Outcome, GatherError> {
        let merged = self.step(Kind::Merge, own.to_text().into(), |brought| {
            let mut merged: Option<Outcome> = None;
            for text in brought {
                let outcome = outcome(&text)?;
                match &mut merged {
                    None => merged = Some(outcome),
                    Some(merged) => merged.merge(outcome),
                }
            }
            Ok(merged.unwrap_or_default().to_text().into_bytes())
        });
        outcome(&merged.await?)
    }

    async fn sum(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        let sums = self.step(Kind::Sum, to_bytes(&own).into(), |brought| {
            let mut sums = vec![0.0; own.len()];
            for bytes in brought {
                let numbers = numbers(&bytes);
                if numbers.len() != sums.len() {
                    let (got, wanted) = (numbers.len(), sums.len());
                    return Err(GatherError(format!("one brings {got} numbers, not {wanted}")));
                }
                sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
            }
            Ok(to_bytes(&sums))
        });
        Ok(numbers(&sums.await?))
    }

    async fn broadcast(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        let own = match self.share.rank {
            0 => to_bytes(&own),
            _ => Vec::new(),
        };
        let first =
            |brought: Vec<Bytes>| Ok(brought.first().map(|own| own.to_vec()).unwrap_or_default());
        Ok(numbers(&self.step(Kind::Broadcast, own.into(), first).await?))
    }
}

/// Finds out who has connected, and tells those that cannot stay why.
async fn greet<T: Transport>(mut came: T, ranks: u32, key: &str) -> Greeted<T> {
    let hello = match receive(&mut came, ranks, Kind::Hello).await {
        Ok(bytes) => serde_json::from_slice::<Hello>(&bytes).ok(),
        Err(_) => None,
    };
    let Some(hello) = hello else {
        return Greeted::Stranger;
    };
    let (is_known, why) = if !is_same(&hello.key, key) {
        (false, "it has another key (NFSKIT_MEET_KEY)".to_owned())
    } else if hello.protocol != PROTOCOL {
        (true, format!("process {} is \"{}\", not \"{PROTOCOL}\"", hello.rank, hello.protocol))
    } else if hello.ranks != ranks {
        (true, format!("process {} counts {} processes, not {ranks}", hello.rank, hello.ranks))
    } else if hello.rank == 0 || hello.rank >= ranks {
        (true, format!("process {} has no place among {ranks}", hello.rank))
    } else {
        return Greeted::Process(hello.rank, came);
    };
    // It ends either way.
    send(&mut came, hello.rank, Kind::Refusal, why.clone().into()).await.ok();
    match is_known {
        true => Greeted::Misfit(why),
        false => Greeted::Stranger,
    }
}

/// Takes as long wherever the difference is.
fn is_same(shown: &str, key: &str) -> bool {
    let differences = shown.bytes().zip(key.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    shown.len() == key.len() && differences == 0
}

fn missing<T>(ranks: u32, come: &BTreeMap<u32, T>, limit: Nanos, strangers: u64) -> GatherError {
    const NAMED_MAX: usize = 8;
    let absent: Vec<u32> = (1..ranks).filter(|rank| !come.contains_key(rank)).collect();
    let named: Vec<String> = absent.iter().take(NAMED_MAX).map(u32::to_string).collect();
    let more = if absent.len() > NAMED_MAX { ", ..." } else { "" };
    let mut why = format!(
        "{} of {ranks} processes have not come within {limit}: number {}{more}",
        absent.len(),
        named.join(", ")
    );
    if strangers > 0 {
        why += &format!("; {strangers} connections came without the key");
    }
    GatherError(why)
}

/// A process that is no longer there.
fn ended(rank: u32, why: impl Display) -> GatherError {
    GatherError(format!("process {rank} has ended ({why}); its own message says more"))
}

async fn send<T: Transport>(
    peer: &mut T,
    rank: u32,
    kind: Kind,
    payload: Bytes,
) -> Result<(), GatherError> {
    let length = u32::try_from(payload.len()).ok();
    let length = length.filter(|length| (*length as usize) < MESSAGE_BYTES_MAX - 16);
    let length = length
        .ok_or_else(|| GatherError(format!("{} bytes are too many to be sent", payload.len())))?;
    let head = [(kind as u32).to_be_bytes(), length.to_be_bytes()].concat();
    let gone = |error| ended(rank, error);
    poll_fn(|cx| peer.poll_ready(cx)).await.map_err(gone)?;
    peer.send(Message { head, payload });
    poll_fn(|cx| peer.poll_flush(cx)).await.map_err(gone)
}

async fn receive<T: Transport>(peer: &mut T, rank: u32, kind: Kind) -> Result<Bytes, GatherError> {
    let came = poll_fn(|cx| peer.poll_receive(cx)).await.map_err(|error| ended(rank, error))?;
    let came = came.ok_or_else(|| ended(rank, "its connection is closed"))?;
    let nonsense = || GatherError(format!("process {rank} sends what is no message"));
    let (head, rest) = came.split_first_chunk::<8>().ok_or_else(nonsense)?;
    let [k1, k2, k3, k4, l1, l2, l3, l4] = *head;
    let is_kind = |kind: Kind| kind as u32 == u32::from_be_bytes([k1, k2, k3, k4]);
    let length = u32::from_be_bytes([l1, l2, l3, l4]) as usize;
    if rest.len() < length {
        return Err(nonsense());
    }
    let payload = came.slice(8..8 + length);
    if is_kind(Kind::Refusal) {
        return Err(GatherError(String::from_utf8_lossy(&payload).into_owned()));
    }
    match is_kind(kind) {
        true => Ok(payload),
        false => Err(GatherError(format!("process {rank} is at another step"))),
    }
}

fn outcome(text: &[u8]) -> Result<Outcome, GatherError> {
    let text = std::str::from_utf8(text).map_err(|error| GatherError(error.to_string()))?;
    Outcome::from_text(text).map_err(GatherError)
}

fn to_bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|chunk| f64::from_be_bytes(*chunk)).collect()
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, join, join_all};
    use net::clock::world::World;
    use net::transport::memory::{self, Memory};
    use tokio::sync::{Mutex, mpsc};

    use super::*;

    const KEY: &str = "0123456789abcdef";
    const OTHER_KEY: &str = "0123456789abcdeg";
    const LIMIT: Nanos = Nanos::from_secs(60);

    /// What comes to the first process.
    type Door = Mutex<mpsc::UnboundedReceiver<Memory>>;

    async fn accept(door: &Door) -> Result<Memory, ()> {
        match door.lock().await.recv().await {
            Some(came) => Ok(came),
            None => std::future::pending().await,
        }
    }

    async fn knock(street: &mpsc::UnboundedSender<Memory>) -> Result<Memory, &'static str> {
        let (near, far) = memory::pair(1);
        street.send(far).map_err(|_| "nobody listens")?;
        Ok(near)
    }

    /// The first of `ranks` processes, and those who come with these numbers, counts and keys, do
    /// this when they have met; what each says.
    fn meet(
        ranks: u32,
        others: &'static [(u32, u32, &'static str)],
        then: fn(Meeting<Memory>) -> BoxFuture<'static, Result<String, GatherError>>,
    ) -> Vec<Result<String, GatherError>> {
        let world = World::new();
        let clock = world.clock();
        let run = async move {
            let (street, door) = mpsc::unbounded_channel();
            let door = Mutex::new(door);
            // One who never speaks does not keep the others out.
            let silent = knock(&street).await.unwrap();
            let first = async {
                then(Meeting::host(&clock, ranks, KEY, LIMIT, || accept(&door)).await?).await
            };
            let other = |(rank, ranks, key): &(u32, u32, &'static str)| {
                let share = Share { rank: *rank, ranks: *ranks };
                let (clock, street, key) = (clock.clone(), street.clone(), *key);
                async move {
                    then(Meeting::join(&clock, share, key, LIMIT, || knock(&street)).await?).await
                }
            };
            let (first, rest) = join(first, join_all(others.iter().map(other))).await;
            drop(silent);
            [vec![first], rest].concat()
        };
        world.run(run).unwrap()
    }

    fn errors(results: &[Result<String, GatherError>]) -> Vec<String> {
        let text = |result: &Result<String, GatherError>| match result {
            Ok(text) => format!("ok: {text}"),
            Err(error) => error.to_string(),
        };
        results.iter().map(text).collect()
    }

    #[test]
    fn all_have_the_same_sums_and_what_the_first_one_says() {
        let results = meet(3, &[(2, 3, KEY), (1, 3, KEY)], |mut meeting| {
            Box::pin(async move {
                let rank = f64::from(meeting.share().rank);
                meeting.barrier().await?;
                let sums = meeting.sum(vec![rank, 1.0]).await?;
                let results = meeting.broadcast(vec![rank + 10.0, 0.5]).await?;
                let empty = meeting.broadcast(Vec::new()).await?;
                Ok(format!("{sums:?} {results:?} {empty:?}"))
            })
        });
        assert_eq!(errors(&results), vec!["ok: [3.0, 3.0] [10.0, 0.5] []"; 3]);
    }

    #[test]
    fn outcomes_become_one() {
        let results = meet(2, &[(1, 2, KEY)], |mut meeting| {
            Box::pin(async move {
                let rank = u64::from(meeting.share().rank);
                let own = Outcome { meant: 5 + rank, answered: 3 + rank, ..Outcome::default() };
                let merged = meeting.merge(own).await?;
                Ok(format!("{} {}", merged.meant, merged.answered))
            })
        });
        assert_eq!(errors(&results), vec!["ok: 11 7"; 2]);
    }

    #[test]
    fn one_that_ends_fails_the_others_step() {
        let results = meet(3, &[(1, 3, KEY), (2, 3, KEY)], |mut meeting| {
            Box::pin(async move {
                if meeting.share().rank == 2 {
                    return Ok("ended".to_owned());
                }
                meeting.barrier().await.map(|()| "met".to_owned())
            })
        });
        let errors = errors(&results);
        assert!(errors[0].contains("process 2 has ended"), "{errors:?}");
        assert!(errors[1].contains("process 0 has ended"), "{errors:?}");
    }

    #[test]
    fn another_step_is_noticed() {
        let results = meet(2, &[(1, 2, KEY)], |mut meeting| {
            Box::pin(async move {
                match meeting.share().rank {
                    0 => meeting.barrier().await?,
                    _ => drop(meeting.sum(vec![1.0]).await?),
                }
                Ok(String::new())
            })
        });
        assert!(errors(&results)[0].contains("process 1 is at another step"), "{results:?}");
    }

    #[test]
    fn who_has_another_key_is_refused_and_does_not_take_a_place() {
        let results = meet(2, &[(1, 2, OTHER_KEY), (1, 2, KEY)], |mut meeting| {
            Box::pin(async move { meeting.barrier().await.map(|()| "met".to_owned()) })
        });
        let errors = errors(&results);
        assert!(errors[1].contains("another key"), "{errors:?}");
        assert_eq!([&errors[0][..], &errors[2][..]], ["ok: met"; 2]);
    }

    fn met(_: Meeting<Memory>) -> BoxFuture<'static, Result<String, GatherError>> {
        Box::pin(async { Ok("met".to_owned()) })
    }

    #[test]
    fn two_of_a_number_and_other_counts_end_the_meeting() {
        let twice = errors(&meet(3, &[(1, 3, KEY), (1, 3, KEY)], met));
        assert!(twice[0].contains("two processes are number 1 of 3"), "{twice:?}");
        let counts = errors(&meet(3, &[(1, 2, KEY)], met));
        assert!(counts[0].contains("process 1 counts 2 processes, not 3"), "{counts:?}");
        assert!(counts[1].contains("process 1 counts 2 processes, not 3"), "{counts:?}");
        let beyond = errors(&meet(2, &[(2, 2, KEY)], met));
        assert!(beyond[0].contains("process 2 has no place among 2"), "{beyond:?}");
    }

    #[test]
    fn those_that_do_not_come_are_named() {
        let errors = errors(&meet(4, &[(2, 4, KEY)], met));
        assert!(errors[0].contains("2 of 4 processes have not come"), "{errors:?}");
        assert!(errors[0].contains("number 1, 3"), "{errors:?}");
        assert!(errors[0].contains("1 connections came without the key"), "{errors:?}");
        assert!(errors[1].contains("process 0 has ended"), "{errors:?}");
    }

    #[test]
    fn a_first_one_that_never_listens_is_reported_with_the_reason() {
        let world = World::new();
        let clock = world.clock();
        let share = Share { rank: 1, ranks: 2 };
        let joined = async move {
            let connect = async || Err::<Memory, _>("connection refused");
            Meeting::join(&clock, share, KEY, LIMIT, connect).await
        };
        let error = world.run(joined).unwrap().unwrap_err().to_string();
        assert!(error.contains("not there after 60"), "{error}");
        assert!(error.contains("connection refused"), "{error}");
    }

    #[test]
    fn numbers_survive_the_wire() {
        let these = [0.0, -1.5, f64::INFINITY, 1e-300];
        assert_eq!(numbers(&to_bytes(&these)), these);
    }
}
