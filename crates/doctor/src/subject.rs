//! What findings are about: mounts, the server, the host; and what each has done in the time
//! between two samples, or since it began.

use counters::host::device::Device;
use counters::host::disk::Disk;
use counters::host::named::Named;
use counters::host::processor::Processors;
use counters::host::protocols::Protocols;
use counters::host::softnet::Softnet;
use counters::mountstats::Mount;
use counters::nfsstat::Section;
use counters::rates::mounts::{self, MountRates, OperationRates};
use counters::rates::server::{self, ServerRates};
use counters::rates::{Since, Span};
use counters::socket::Connection;
use counters::sum;

use super::evidence::{Evidence, Sample};

/// A mount, and what it has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Mounted<'a> {
    pub now: &'a Mount,
    pub rates: MountRates,
    /// Its connections, where ss was run; and those of them that there were at the first sample.
    pub connections: Vec<&'a Connection>,
    pub connections_before: Vec<&'a Connection>,
    /// Otherwise its calls were counted, and nothing else.
    pub has_times: bool,
}

impl<'a> Mounted<'a> {
    /// Every NFS mount of the evidence.
    pub fn all(evidence: &'a Evidence) -> Vec<Self> {
        let last = &evidence.last;
        let before = evidence.first.as_ref().zip(evidence.between_s());
        let before = before.map(|(first, seconds)| (&first.mounts[..], seconds));
        let rates = mounts::rates(&last.mounts, before).mounts;
        let both = last.mounts.iter().zip(rates);
        both.map(|(now, rates)| {
            let address = evidence.option_in_mountinfo(&now.point, "addr");
            let connections = connections(now, address, &last.connections);
            let connections_before = earlier(&connections, evidence.first.as_ref());
            let has_times = !last.counts_only;
            Self { now, rates, connections, connections_before, has_times }
        })
        .collect()
    }

    /// Some operations together, by their names; all where none is named.
    pub fn group(&self, names: &[&str]) -> Group {
        let is_named = |one: &&OperationRates| {
            names.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(&one.name))
        };
        let mut group = Group::default();
        self.rates.operations.iter().filter(is_named).for_each(|one| group.add(one));
        if !self.has_times {
            group.timed = 0;
        }
        group
    }

    pub fn total(&self) -> Group {
        self.group(&[])
    }

    pub fn is_lifetime(&self) -> bool {
        self.rates.span.since == Since::Beginning
    }

    /// Of the time between two samples, the most in which a call was under way; more than 1 where
    /// several were at a time.
    pub fn busy(&self) -> Option<f64> {
        self.rates.total.in_system_mean.filter(|_| !self.is_lifetime())
    }

    /// TCP's smoothed round trip at the first sample and at the last, ms: of several connections
    /// the least, since acknowledgements that wait for replies only make it longer.
    pub fn smoothed_ms(&self) -> (Option<f64>, Option<f64>) {
        let least = |all: &[&Connection]| all.iter().filter_map(|one| one.rtt_ms).reduce(f64::min);
        (least(&self.connections_before), least(&self.connections))
    }

    pub fn is_tcp(&self) -> bool {
        self.is_over("tcp")
    }

    pub fn is_udp(&self) -> bool {
        self.is_over("udp")
    }

    fn is_over(&self, protocol: &str) -> bool {
        match self.now.transports.first() {
            Some(transport) => transport.kind == protocol,
            None => self.now.option("proto").is_some_and(|proto| proto.starts_with(protocol)),
        }
    }

    /// `: 7 % of the time of all calls`, where times are known.
    pub fn of_time(&self, share: f64) -> String {
        match self.has_times {
            true => format!(": {:.0} % of the time of all calls", share * 100.0),
            false => String::new(),
        }
    }

    /// An option that is a number.
    pub fn number(&self, option: &str) -> Option<f64> {
        self.now.option(option)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The host of the server, as it is mounted.
    pub fn host(&self) -> &str {
        host(self.now)
    }
}

fn host(mount: &Mount) -> &str {
    mount.device.rsplit_once(":/").map_or(mount.device.as_str(), |(host, _)| host)
}

/// Those that lead to the server's port, found by its address.
fn connections<'a>(
    mount: &Mount,
    address: Option<&str>,
    all: &'a [Connection],
) -> Vec<&'a Connection> {
    let address = address.or_else(|| mount.option("addr")).unwrap_or_else(|| host(mount));
    let port = mount.option("port").and_then(|port| port.parse().ok()).unwrap_or(2049_u16);
    let port = if port == 0 { 2049 } else { port };
    let is_one = |one: &&Connection| {
        one.peer_address() == address.trim_matches(['[', ']']) && one.peer_port() == Some(port)
    };
    all.iter().filter(is_one).collect()
}

/// The same connections at an earlier sample.
fn earlier<'a>(now: &[&Connection], first: Option<&'a Sample>) -> Vec<&'a Connection> {
    let is_same = |one: &&Connection| now.iter().any(|now| now.local == one.local);
    first.map_or(Vec::new(), |first| first.connections.iter().filter(is_same).collect())
}

/// Calls of some operations together; sums of their times in ms, as far as those are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    pub calls: u64,
    pub retransmissions: u64,
    pub major_timeouts: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub queue_ms: f64,
    pub rtt_ms: f64,
    pub execute_ms: f64,
    /// Of which the times are known.
    timed: u64,
}

/// Means of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    pub queue_ms: f64,
    pub rtt_ms: f64,
    pub execute_ms: f64,
}

impl Means {
    /// A year: no call has waited so long. A larger mean is a clock that was turned back.
    const MAX_MS: f64 = 31_536_000_000.0;

    fn of(one: &OperationRates) -> Option<Self> {
        let (queue_ms, rtt_ms) = one.queue_ms_mean.zip(one.rtt_ms_mean)?;
        let execute_ms = one.execute_ms_mean?;
        let is_known = [queue_ms, rtt_ms, execute_ms].iter().all(|mean| *mean < Self::MAX_MS);
        is_known.then_some(Self { queue_ms, rtt_ms, execute_ms })
    }
}

impl Group {
    fn add(&mut self, one: &OperationRates) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.calls, one.calls);
        add(&mut self.retransmissions, one.retransmissions);
        add(&mut self.major_timeouts, one.major_timeouts);
        add(&mut self.sent_bytes, one.sent_bytes);
        add(&mut self.received_bytes, one.received_bytes);
        let Some(Means { queue_ms, rtt_ms, execute_ms }) = Means::of(one) else { return };
        let calls = one.calls as f64;
        add(&mut self.timed, one.calls);
        self.queue_ms += queue_ms * calls;
        self.rtt_ms += rtt_ms * calls;
        self.execute_ms += execute_ms.max(rtt_ms) * calls;
    }

    /// None of no calls.
    pub fn means(&self) -> Option<Means> {
        let calls = Some(self.timed as f64).filter(|calls| *calls > 0.0)?;
        let [queue_ms, rtt_ms, execute_ms] =
            [self.queue_ms, self.rtt_ms, self.execute_ms].map(|all_ms| all_ms / calls);
        Some(Means { queue_ms, rtt_ms, execute_ms })
    }

    /// Its share of the calls of another.
    pub fn share_of(&self, all: &Self) -> f64 {
        self.calls as f64 / (all.calls as f64).max(1.0)
    }

    /// Its share of the time of another.
    pub fn time_share_of(&self, all: &Self) -> f64 {
        if all.execute_ms > 0.0 { self.execute_ms / all.execute_ms } else { 0.0 }
    }
}

/// The kernel's server of this host, and what it has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    pub rates: ServerRates,
    /// GETATTRs of files of which another client has a write delegation; since Linux 6.6.
    pub delegation_getattrs: Option<u64>,
}

/// The operations of version 4 that rules ask for (RFC 7530, section 16).
const V4: [(&str, usize); 11] = [
    ("ACCESS", 3),
    ("COMMIT", 5),
    ("DELEGRETURN", 8),
    ("GETATTR", 9),
    ("LOOKUP", 15),
    ("OPEN", 18),
    ("READ", 25),
    ("READDIR", 26),
    ("READLINK", 27),
    ("SETATTR", 34),
    ("WRITE", 38),
];

/// What nfsstat has of version 4's operations, by their numbers; the rest where no operation is.
pub(crate) fn v4_operations(section: &Section) -> Vec<u64> {
    let mut calls = vec![0_u64; V4.iter().map(|(_, at)| at + 1).max().unwrap_or(0)];
    for value in section.values.iter().filter(|value| !value.name.eq_ignore_ascii_case("total")) {
        let known = V4.iter().find(|(name, _)| value.name.eq_ignore_ascii_case(name));
        let at = known.map_or(0, |(_, at)| *at);
        calls[at] = calls[at].saturating_add(value.count);
    }
    calls
}

impl Served {
    /// Where there is one, or has been since the host was started.
    pub fn of(evidence: &Evidence) -> Option<Self> {
        fn sample(sample: &Sample) -> Option<server::Sample<'_>> {
            sample.server.as_ref().map(|server| server::Sample { server, pools: &sample.pools })
        }
        let last = sample(&evidence.last)?;
        let before = evidence.first.as_ref().and_then(sample).zip(evidence.between_s());
        let rates = server::rates(last, before, evidence.last.clock.up_s);
        let has_run = rates.calls.is_some_and(|calls| calls > 0)
            || rates.threads.is_some_and(|threads| threads > 0);
        let getattrs = |sample: &Sample| sample.server.as_ref()?.delegation_getattrs;
        let first = evidence.first.as_ref().filter(|_| rates.span.since != Since::Beginning);
        let delegation_getattrs = getattrs(&evidence.last)
            .map(|now| counters::difference(now, first.and_then(getattrs).unwrap_or(0)));
        has_run.then_some(Self { rates, delegation_getattrs })
    }

    pub fn is_lifetime(&self) -> bool {
        self.rates.span.since == Since::Beginning
    }

    /// Calls of a procedure of any version, or of an operation of version 4.
    pub fn calls(&self, name: &str) -> u64 {
        let procedures = self.rates.procedures.iter();
        let of_procedures =
            sum(procedures.filter(|one| one.name.eq_ignore_ascii_case(name)).map(|one| one.calls));
        let number = V4.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let of_v4 = number.and_then(|(_, at)| self.rates.v4_operations.get(*at));
        of_procedures.saturating_add(of_v4.copied().unwrap_or(0))
    }

    /// Of all versions; a COMPOUND counts as the operations in it.
    pub fn all_calls(&self) -> u64 {
        let compound = |name: &str| name.eq_ignore_ascii_case("compound");
        let procedures = self.rates.procedures.iter().filter(|one| !compound(one.name));
        sum(procedures.map(|one| one.calls).chain(self.rates.v4_operations.iter().copied()))
    }
}

/// The host, and what it has done in the span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hosted {
    /// None where the time of one sample is not known.
    pub seconds: Option<f64>,
    /// Since the boot.
    pub is_lifetime: bool,
    pub protocols: Option<Protocols>,
    pub devices: Vec<Device>,
    pub softnet: Option<Softnet>,
    pub processors: Option<Processors>,
    pub disks: Vec<Disk>,
    /// `vmstat`, and `snmp6`.
    pub pages: Option<Named>,
    pub protocols_v6: Option<Named>,
}

impl Hosted {
    /// The processors' idle share, of which waiting for disks is a part.
    pub fn idle(&self) -> Option<f64> {
        self.processors.and_then(|all| all.share(all.idle + all.io_wait))
    }

    pub fn of(evidence: &Evidence) -> Self {
        match evidence.first.as_ref().zip(evidence.between_s()) {
            Some((first, seconds)) => Self::between(first, &evidence.last, seconds),
            None => Self::since_the_boot(&evidence.last),
        }
    }

    fn since_the_boot(last: &Sample) -> Self {
        Self {
            seconds: last.clock.up_s,
            is_lifetime: true,
            protocols: last.protocols.clone(),
            devices: last.devices.clone(),
            softnet: softnet(last),
            processors: last.processors,
            disks: last.disks.clone(),
            pages: last.pages.clone(),
            protocols_v6: last.protocols_v6.clone(),
        }
    }

    fn between(first: &Sample, last: &Sample, seconds: f64) -> Self {
        Self {
            seconds: Some(seconds),
            is_lifetime: false,
            protocols: both(&last.protocols, &first.protocols, Protocols::since),
            devices: each(&last.devices, &first.devices, |one| &one.name, Device::since),
            softnet: both(&softnet(last), &softnet(first), Softnet::since),
            processors: both(&last.processors, &first.processors, Processors::since),
            disks: each(&last.disks, &first.disks, |one| &one.name, Disk::since),
            pages: both(&last.pages, &first.pages, Named::since),
            protocols_v6: both(&last.protocols_v6, &first.protocols_v6, Named::since),
        }
    }

    /// How long it was looked at.
    pub fn span(&self) -> Span {
        match (self.is_lifetime, self.seconds) {
            (false, Some(seconds)) => Span::sample(seconds),
            (_, seconds) => Span::beginning(seconds),
        }
    }
}

fn softnet(sample: &Sample) -> Option<Softnet> {
    (!sample.softnet.is_empty()).then(|| Softnet::sum(&sample.softnet))
}

/// What was counted between two samples that have it.
fn both<T>(now: &Option<T>, before: &Option<T>, since: fn(&T, &T) -> T) -> Option<T> {
    Some(since(now.as_ref()?, before.as_ref()?))
}

/// The same of each device; one that is new has counted all since then.
fn each<T: Clone>(
    now: &[T],
    before: &[T],
    name: fn(&T) -> &String,
    since: fn(&T, &T) -> T,
) -> Vec<T> {
    let difference = |now: &T| {
        let before = before.iter().find(|one| name(one) == name(now));
        before.map_or_else(|| now.clone(), |before| since(now, before))
    };
    now.iter().map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_came_between_two_samples_is_what_counts() {
        let first = testing::mount("rw", &["GETATTR: 100 100 0 0 0 10 20 30"]);
        let last = testing::mount("rw", &["GETATTR: 150 151 0 0 0 60 70 130 2"]);
        let last = last.replace("age:\t1234", "age:\t1244");
        let evidence = testing::two(10.0, &first, &last);
        let [mounted] = &Mounted::all(&evidence)[..] else { panic!("one mount") };
        assert!(!mounted.is_lifetime());
        let total = mounted.total();
        assert_eq!((total.calls, total.retransmissions), (50, 1));
        assert!((total.means().unwrap().execute_ms - 2.0).abs() < 1e-9);
        assert_eq!(mounted.group(&["READ"]).means(), None);
        assert_eq!(mounted.group(&["getattr"]).share_of(&total), 1.0);
    }

    #[test]
    fn sums_that_cannot_be_have_no_means() {
        let text = testing::mount("rw", &["GETATTR: 3 3 0 0 0 18446744073709551600 20 30"]);
        let evidence = testing::one(&text);
        assert_eq!(Mounted::all(&evidence)[0].total().means(), None);
    }

    #[test]
    fn a_mount_has_the_connections_that_lead_to_its_server() {
        let mut evidence = testing::one(&testing::mount("rw,addr=10.0.0.1", &[]));
        let to = |peer: &str| Connection { peer: peer.to_owned(), ..Connection::default() };
        evidence.last.connections =
            vec![to("10.0.0.1:2049"), to("10.0.0.1:22"), to("10.0.0.2:2049")];
        assert_eq!(Mounted::all(&evidence)[0].connections.len(), 1);
    }

    #[test]
    fn counters_at_their_end_are_judged() {
        let max = u64::MAX;
        let all = |count: usize| format!(" {max}").repeat(count);
        let operations = ["READ", "WRITE", "GETATTR", "COMMIT"];
        let stats = operations.map(|name| format!("{name}:{}", all(9)));
        let stats = testing::mount("rw,addr=10.0.0.1", &stats.each_ref().map(String::as_str));
        let stats = stats.replace("3 400 400 0 450 17 16 30 40", &format!("3{}", all(8)));
        let stats = format!("{stats}\txprt:\ttcp 1 2 3 4 5{}\n", all(8));
        let nfsd = format!(
            "rc{}\nio{}\nth 8{}\nnet{}\nrpc{}\nproc3 22{}\nproc4 2{}\nproc4ops 40{}\n",
            all(3),
            all(2),
            all(1),
            all(4),
            all(5),
            all(22),
            all(2),
            all(40)
        );
        let texts = [
            ("proc/self/mountstats", stats),
            ("proc/net/rpc/nfsd", nfsd),
            ("proc/net/rpc/nfs", format!("net{}\nrpc{}\nproc3 22{}\n", all(4), all(3), all(22))),
            (
                "proc/fs/nfsd/pool_stats",
                format!("# pool packets-arrived\n0{}\n1{}\n", all(5), all(5)),
            ),
            (
                "proc/net/dev",
                format!("Inter-| x\n face | y\n eth0:{}\n eth1:{}\n", all(16), all(16)),
            ),
            ("proc/stat", format!("cpu{}\ncpu0{}\nbtime{}\n", all(10), all(10), all(1))),
            ("proc/diskstats", format!("8 0 sda{}\n8 1 sdb{}\n", all(17), all(17))),
            ("proc/uptime", "1000 1\n".to_owned()),
            (
                "ss.txt",
                format!("ESTAB 0 0 h:1 10.0.0.1:2049\n\t retrans:0/{max} segs_out:{max}\n")
                    .repeat(2),
            ),
        ];
        for folders in [&[""][..], &["1/", "2/"]] {
            let mut files = crate::collect::Files::default();
            for (folder, (path, text)) in
                folders.iter().flat_map(|folder| texts.iter().map(move |one| (folder, one)))
            {
                files.put(format!("{folder}{path}"), text.as_str());
            }
            let reports = crate::diagnose(&Evidence::of(files), &crate::Limits::default());
            assert!(reports.len() > 1, "{reports:?}");
            assert!(!crate::screen::text(&reports, false).is_empty());
        }
    }
}
