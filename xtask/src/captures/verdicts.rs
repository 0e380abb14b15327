//! Twelve conversations, each with one thing that slows it down, captured as they happen: the
//! verdict of `nfskit trace` must be that thing. The same is staged in virtual time in
//! `crates/world/tests/it/verdicts.rs`, with neighbours that say the opposite.
//!
//! ```text
//!   client ── c0 ═ c1 ── here, a router ── s1 ═ s0 ── server
//! ```
//!
//! What a network does, it does here: it is slow (tbf), it drops (iptables). Latency is that of
//! `nfskit link`, which runs here, too, and of which both sides are captured. Losses over TCP cost
//! nothing where a round trip takes microseconds: they are those of `scripts/far.py`, a way of 2 ms
//! from one host to the other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::compare::by_us;
use super::scenes::{SOON, tcpdump};
use crate::host::child::{Service, finish, text};
use crate::host::nfskit::{START_WITHIN, STOP_WITHIN, TRUSTING};
use crate::host::report::Report;

const PEER: &str = "nfskit trace";
/// For what a client does.
const WITHIN: Duration = Duration::from_secs(60);

/// Makes the two hosts and the way between them. Segments are those of an Ethernet, not the long
/// ones that a card would cut.
const NETWORK: &str = "
set -e
sysctl -qw net.ipv4.ip_forward=1
for end in c s; do
  ip netns add $end
  ip link add ${end}0 type veth peer name ${end}1
  ip link set ${end}0 gso_max_segs 1
  ip link set ${end}1 gso_max_segs 1
  ip link set ${end}0 netns $end
  ip -n $end link set lo up
done
ip addr add 10.1.0.1/24 dev c1
ip addr add 10.2.0.1/24 dev s1
ip -n c addr add 10.1.0.2/24 dev c0
ip -n s addr add 10.2.0.2/24 dev s0
for end in c s; do
  ip link set ${end}1 up
  ip -n $end link set ${end}0 up
done
ip -n c route add default via 10.1.0.1
ip -n s route add default via 10.2.0.1
";

const SERVER: &str = "10.2.0.2";
const FAR_SERVER: &str = "10.3.0.3";
const RELAY: &str = "10.1.0.1";
const MEMORY: &str = "mem:";
const SLOW_DISK: &str = "sim:rate=20MB/s,seek=0";

/// Where packets are captured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    Client,
    Server,
    Both,
    /// On all interfaces of the router: each packet twice, or both sides of a relay.
    Between,
}

/// One conversation.
struct Scene {
    name: &'static str,
    /// The verdict, as JSON has it.
    verdict: &'static str,
    at: At,
    /// What is served, and how.
    serve: &'static [&'static str],
    /// What the router does, as a shell command, and how that is undone.
    router: [&'static str; 2],
    /// What `nfskit` does at the client, before and behind the server's URL.
    client: (&'static [&'static str], &'static [&'static str]),
    besides: Besides,
}

/// What else happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Besides {
    Nothing,
    /// The client reaches the server through a relay with this link.
    Relay(&'static str),
    /// A second client requests what needs no disk.
    SecondClient,
    /// Client and server have `scripts/far.py` between them, with these arguments.
    Far([&'static str; 2]),
    /// The server stops for some time, again and again.
    Stops,
}

const WRITES: &[&str] = &["bench", "seqwrite", "--wire", "--repeats", "1", "--target"];
const QUIET: [&str; 2] = ["true", "true"];
const DROPS: [&str; 2] = [
    "iptables -A FORWARD -i c1 -m statistic --mode nth --every 100 --packet 50 -j DROP",
    "iptables -F FORWARD",
];
const LIMITS: [&str; 2] = [
    "tc qdisc add dev s1 root tbf rate 100mbit burst 16k latency 40ms",
    "tc qdisc del dev s1 root",
];

const SMALL_BUFFERS: [&str; 2] = [
    "ip netns exec s sysctl -qw 'net.ipv4.tcp_rmem=4096 131072 262144'",
    "ip netns exec s sysctl -qw 'net.ipv4.tcp_rmem=4096 131072 6291456'",
];
/// To the interfaces of `scripts/far.py`.
const FAR_AWAY: &str = "
set -e
ip link set f0 netns c
ip link set f1 netns s
ip -n c addr add 10.3.0.2 peer 10.3.0.3 dev f0
ip -n s addr add 10.3.0.3 peer 10.3.0.2 dev f1
ip -n c link set f0 up
ip -n s link set f1 up
";

const fn writes(
    (name, verdict): (&'static str, &'static str),
    serve: &'static [&'static str],
    how: &'static [&'static str],
) -> Scene {
    let (at, besides) = (At::Client, Besides::Nothing);
    Scene { name, verdict, at, serve, router: QUIET, client: (WRITES, how), besides }
}

const LOSSY: Scene = Scene {
    besides: Besides::Far(["2", "100"]),
    ..writes(
        ("1 % lost, captured at the client", "loss"),
        &[MEMORY],
        &["--call", "32K", "--size", "16M", "--outstanding", "8"],
    )
};

const SCENES: [Scene; 14] = [
    writes(
        ("a slow disk, COMMIT", "slow_commit"),
        &[SLOW_DISK],
        &["--call", "32K", "--size", "16M", "--outstanding", "8", "--commit-every", "1M"],
    ),
    writes(
        ("a slow disk, FILE_SYNC", "slow_stable_write"),
        &["sim:rate=20MB/s,seek=4ms"],
        &["--call", "64K", "--size", "16M", "--outstanding", "2", "--stable", "file_sync"],
    ),
    Scene {
        at: At::Between,
        besides: Besides::Relay("10ms/1g"),
        ..writes(
            ("a long way", "latency"),
            &[MEMORY],
            &["--call", "32K", "--size", "8M", "--outstanding", "8"],
        )
    },
    Scene {
        router: LIMITS,
        ..writes(
            ("a slow link", "rate"),
            &[MEMORY],
            &["--call", "32K", "--size", "32M", "--outstanding", "8"],
        )
    },
    LOSSY,
    Scene { name: "1 % lost, captured at the server", at: At::Server, ..LOSSY },
    Scene { name: "1 % lost, captured at both ends", at: At::Both, ..LOSSY },
    writes(
        ("one call outstanding", "one_outstanding"),
        &[MEMORY],
        &["--call", "8K", "--size", "8M", "--outstanding", "1"],
    ),
    writes(
        ("an fsync for each 4 KiB", "small_syncs"),
        &["sim:rate=100MB/s,seek=0,sync=2ms"],
        &["--call", "4K", "--size", "2M", "--outstanding", "1", "--commit-every", "4K"],
    ),
    Scene {
        at: At::Server,
        besides: Besides::SecondClient,
        ..writes(
            ("a server that stalls for two clients", "server_stalls"),
            &[SLOW_DISK, "--commit-mode", "stall"],
            &["--call", "32K", "--size", "32M", "--outstanding", "8", "--commit-every", "2M"],
        )
    },
    Scene {
        client: (
            &["bench", "curve", "--mix", "getattr", "--closed", "1", "--time", "2s", "--target"],
            &["--warm-up", "100ms", "--file-set-max", "1M"],
        ),
        ..writes(("calls for attributes", "attribute_storm"), &[MEMORY], &[])
    },
    Scene {
        router: DROPS,
        client: (WRITES, &["--call", "8K", "--size", "2M", "--outstanding", "4"]),
        ..writes(("a client that retransmits over UDP", "retransmission"), &[MEMORY, "--udp"], &[])
    },
    Scene {
        router: SMALL_BUFFERS,
        besides: Besides::Stops,
        ..writes(
            ("a window of zero", "zero_window"),
            &[MEMORY],
            &["--call", "1M", "--size", "256M", "--outstanding", "8"],
        )
    },
    Scene {
        client: (
            &["bench", "spray", "--count", "100", "--rate", "50", "--repeats", "1", "--target"],
            &[],
        ),
        ..writes(("an idle client", "idle_client"), &[MEMORY], &[])
    },
];

/// Plays all of them.
pub(super) fn play(report: &mut Report, scratch: &Path, nfskit: &Path) {
    if let Err(why) = shell(NETWORK) {
        report.check(PEER, "two hosts and a router", || Err(why));
        return;
    }
    for scene in &SCENES {
        report.check(PEER, scene.name, || {
            shell(scene.router[0])?;
            let outcome = scene.played(scratch, nfskit);
            shell(scene.router[1])?;
            outcome
        });
    }
}

impl Scene {
    fn played(&self, scratch: &Path, nfskit: &Path) -> Result<String, String> {
        let server = self.server(nfskit)?;
        let (host, between) = match self.besides {
            Besides::Relay(link) => (RELAY, Some(relay(nfskit, link)?)),
            Besides::Far(how) => (FAR_SERVER, Some(far_away(scratch, how)?)),
            _ => (SERVER, None),
        };
        let proto = if self.serve.contains(&"--udp") { "&proto=udp" } else { "" };
        let url = |host: &str| format!("nfs://{host}/?nfsport=2049&mountport=2049{proto}");
        let places: &[(Option<&str>, &str)] = match self.at {
            At::Client => &[(Some("c"), self.interfaces()[0])],
            At::Server => &[(Some("s"), self.interfaces()[1])],
            At::Both => &[(Some("c"), self.interfaces()[0]), (Some("s"), self.interfaces()[1])],
            At::Between => &[(None, "any")],
        };
        let file = |number: usize| scratch.join(format!("verdict-{number}.pcap"));
        let files: Vec<PathBuf> = (0..places.len()).map(file).collect();
        let captures: Result<Vec<Service>, String> = places
            .iter()
            .zip(&files)
            .map(|((place, interface), file)| tcpdump(inside(*place, "tcpdump"), interface, file))
            .collect();
        let captures = captures?;
        let mut client = inside(Some("c"), nfskit);
        client.args(self.client.0).arg(url(host)).args(self.client.1);
        let outcome = match self.besides {
            Besides::SecondClient => {
                let mut second = Command::new(nfskit);
                second.args(["bench", "spray", "--count", "1000000", "--rate", "1000", "-q"]);
                let second = Service::start(second.args(["--target", &url(SERVER)]))?;
                let outcome = finish(&mut client, WITHIN, text).map(|_| ());
                drop(second);
                outcome
            }
            Besides::Stops => stopping(&server, &mut client),
            _ => finish(&mut client, WITHIN, text).map(|_| ()),
        };
        captures.into_iter().try_for_each(|capture| capture.stop(SOON))?;
        drop(between);
        server.stop(STOP_WITHIN)?;
        outcome?;
        self.judged(&by_us(nfskit, &files)?.0)
    }

    /// Those of client and server.
    const fn interfaces(&self) -> [&'static str; 2] {
        match self.besides {
            Besides::Far(_) => ["f0", "f1"],
            _ => ["c0", "s0"],
        }
    }

    fn server(&self, nfskit: &Path) -> Result<Service, String> {
        let mut command = inside(Some("s"), nfskit);
        command.arg("serve").args(self.serve).args(["--listen", "0.0.0.0:2049"]).args(TRUSTING);
        started(&mut command)
    }

    fn judged(&self, found: &Value) -> Result<String, String> {
        let verdict = &found["verdict"];
        let (one, certainty) = (&verdict["verdict"], verdict["certainty"].as_str());
        let sentence = one["sentence"].as_str().unwrap_or_default();
        let copies = found["capture"]["copied_packets"].as_u64().unwrap_or(0);
        if one["suspect"] != self.verdict {
            return Err(format!("{} was to be found, but: {verdict:#}", self.verdict));
        }
        let is_relayed = matches!(self.besides, Besides::Relay(_));
        let is_twice = [At::Both, At::Between].contains(&self.at) && !is_relayed;
        if is_twice != (copies > 0) {
            return Err(format!("{copies} packets are reported as copies"));
        }
        Ok(format!("{sentence} ({})", certainty.unwrap_or_default()))
    }
}

/// A program of a host: of the client's (`c`), of the server's (`s`), or of this one.
fn inside(namespace: Option<&str>, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let Some(namespace) = namespace else { return Command::new(program) };
    let mut command = Command::new("ip");
    // Nothing of ours between: signals reach the program itself.
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

fn relay(nfskit: &Path, link: &str) -> Result<Service, String> {
    let mut command = Command::new(nfskit);
    command.args(["link", link, "--uncalibrated", "--insecure", "--listen", "10.1.0.1:2049"]);
    started(command.args(["--to", "10.2.0.2:2049"]))
}

fn far_away(scratch: &Path, how: [&str; 2]) -> Result<Service, String> {
    let script = scratch.join("far.py");
    std::fs::write(&script, include_str!("scripts/far.py")).map_err(|cause| cause.to_string())?;
    let mut far = Service::start_with_input(Command::new("python3").arg(script).args(how))?;
    far.wait_for(SOON, |lines| lines.iter().any(|line| line == "ready").then_some(()))?;
    shell(FAR_AWAY)?;
    Ok(far)
}

/// A server, when it says where it is reached.
fn started(command: &mut Command) -> Result<Service, String> {
    let mut service = Service::start(command)?;
    let is_ready = |lines: &[String]| {
        lines.iter().any(|line| line.trim_start().starts_with("url ")).then_some(())
    };
    service.wait_for(START_WITHIN, is_ready)?;
    Ok(service)
}

/// The server stands still most of the time while the client works.
fn stopping(server: &Service, client: &mut Command) -> Result<(), String> {
    const STOPPED: Duration = Duration::from_millis(900);
    const RUNS: Duration = Duration::from_millis(300);
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).ok_or("no process")?;
    let sends = |signal| kill_process(pid, signal).map_err(|error| error.to_string());
    let mut client = Service::start(client)?;
    let end = Instant::now() + WITHIN;
    while Instant::now() < end && !client.has_ended() {
        sends(Signal::STOP)?;
        thread::sleep(STOPPED);
        sends(Signal::CONT)?;
        thread::sleep(RUNS);
    }
    client.wait(SOON)
}

fn shell(script: &str) -> Result<(), String> {
    finish(Command::new("sh").args(["-c", script]), SOON, text).map(|_| ())
}
