//! The phases of a mount one by one, and the likely causes where one fails, the likeliest first.
//!
//! Pure: who walks the phases (the crate `checks`) says which one failed, how, and what it knows
//! of the host by then.

use std::fmt;

/// A phase, in the order in which a mount comes through them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    Name,
    Route,
    Portmapper,
    Connect,
    Null,
    MountProgram,
    Exports,
    Permission,
    Fsinfo,
    Pathconf,
    Getattr,
    Read,
    Write,
}

impl Phase {
    pub const ALL: [Self; 13] = [
        Self::Name,
        Self::Route,
        Self::Portmapper,
        Self::Connect,
        Self::Null,
        Self::MountProgram,
        Self::Exports,
        Self::Permission,
        Self::Fsinfo,
        Self::Pathconf,
        Self::Getattr,
        Self::Read,
        Self::Write,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Route => "route",
            Self::Portmapper => "portmapper",
            Self::Connect => "connect",
            Self::Null => "NULL",
            Self::MountProgram => "MOUNT program",
            Self::Exports => "export list",
            Self::Permission => "permission",
            Self::Fsinfo => "FSINFO",
            Self::Pathconf => "PATHCONF",
            Self::Getattr => "GETATTR",
            Self::Read => "READ",
            Self::Write => "WRITE",
        }
    }

    /// Whether a mount can do without it.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::Portmapper | Self::Exports | Self::Pathconf | Self::Read)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a phase failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The name has no address.
    Unresolved,
    /// There is no way, says this host or a router.
    Unreachable,
    /// The host refuses the port: it is alive, and nobody listens.
    Refused,
    /// Nothing came back: no connection.
    Silent,
    /// There is a connection, and no reply to a call.
    NoReply,
    /// The peer ended the connection.
    Closed,
    /// What came is no reply of ONC RPC.
    NotRpc,
    /// The portmapper does not know the program.
    NotRegistered,
    /// The port does not serve the program, or not in that version.
    NoProgram,
    NoVersion {
        low: u32,
        high: u32,
    },
    /// RPC refused who calls.
    Authentication,
    /// The server refused the caller: ACCES, PERM.
    Denied,
    /// There is no such export, or directory.
    Absent,
    ReadOnly,
    /// No space, or no quota.
    Full,
    /// The handle is of what is no more.
    Stale,
    /// The server's own error: IO, SERVERFAULT.
    Server,
    /// The server asks to come again later: JUKEBOX.
    Later,
    /// Anything else that was said.
    Other,
}

impl Fault {
    pub const ALL: [Self; 19] = [
        Self::Unresolved,
        Self::Unreachable,
        Self::Refused,
        Self::Silent,
        Self::NoReply,
        Self::Closed,
        Self::NotRpc,
        Self::NotRegistered,
        Self::NoProgram,
        Self::NoVersion { low: 4, high: 4 },
        Self::Authentication,
        Self::Denied,
        Self::Absent,
        Self::ReadOnly,
        Self::Full,
        Self::Stale,
        Self::Server,
        Self::Later,
        Self::Other,
    ];
}

/// What is known of the host when a phase fails.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Known {
    pub host: String,
    /// Something of it has answered, on any port.
    pub is_alive: bool,
    /// The host is this one.
    pub is_local: bool,
    /// Calls come from a port that only root has.
    pub is_privileged: bool,
    /// The exports that it lists; none if it lists none, or was not asked.
    pub exports: Option<Vec<String>>,
    /// What was asked for.
    pub path: String,
    /// The part of it that is an export and was mounted.
    pub inside_of: Option<String>,
    /// The port that failed.
    pub port: Option<u16>,
    /// Versions of NFS that it serves on that port.
    pub versions: Vec<u32>,
}

/// One likely cause, and how to see whether it is the one, or what to change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cause {
    pub what: String,
    pub check: String,
}

fn cause(what: impl Into<String>, check: impl Into<String>) -> Cause {
    Cause { what: what.into(), check: check.into() }
}

/// The likely causes of a phase's failure, the likeliest first. There is at least one.
pub fn causes(phase: Phase, fault: Fault, known: &Known) -> Vec<Cause> {
    match fault {
        Fault::Unresolved => unresolved(known),
        Fault::Unreachable => unreachable(known),
        Fault::Refused => refused(phase, known),
        Fault::Silent => silent(phase, known),
        Fault::NoReply => no_reply(phase, known),
        Fault::Closed => closed(phase, known),
        Fault::NotRpc => vec![cause(
            format!("what listens {}is another service", on(known)),
            "the port of NFS or MOUNT: rpcinfo -p on that host, or ?nfsport=N&mountport=N",
        )],
        Fault::NotRegistered | Fault::NoProgram => no_program(phase, known),
        Fault::NoVersion { low, high } => no_version(low, high),
        Fault::Authentication => vec![
            cause(
                "the export wants another flavor (sec=krb5), and nfskit speaks AUTH_SYS",
                "exportfs -v on the server: sec= of the export",
            ),
            cause("the server does not trust this caller", "?uid=N&gid=N, or the server's log"),
        ],
        Fault::Denied => denied(phase, known),
        Fault::Absent => absent(phase, known),
        Fault::ReadOnly => vec![cause(
            "the export, or the file system below it, is read-only",
            "exportfs -v on the server (rw or ro), and findmnt for the file system's options",
        )],
        Fault::Full => vec![
            cause("the file system is full", "df and df -i on the server"),
            cause("the caller's quota is used up", "quota, or repquota on the server"),
        ],
        Fault::Stale => vec![cause(
            "the directory was removed, or the server lost its handles (another fsid, a restart)",
            "exportfs -v for fsid=; mount it again",
        )],
        Fault::Server => vec![
            cause("the server's disk or file system fails", "dmesg on the server"),
            cause("the server is short of something", "the server's log"),
        ],
        Fault::Later => vec![cause(
            "the file is not at hand: on tape, or another client's delegation is recalled",
            "again in a while",
        )],
        Fault::Other => vec![cause(
            "none that is usual",
            "the server's log; a capture of it (tcpdump, then nfskit trace)",
        )],
    }
}

fn on(known: &Known) -> String {
    known.port.map(|port| format!("on port {port} ")).unwrap_or_default()
}

fn unresolved(known: &Known) -> Vec<Cause> {
    vec![
        cause("the name is misspelt", format!("getent hosts {}", known.host)),
        cause("the name server does not answer", "resolvectl status, or /etc/resolv.conf"),
        cause("the host is in no name service", "its address instead of its name"),
    ]
}

fn unreachable(known: &Known) -> Vec<Cause> {
    vec![
        cause("this host has no route there", format!("ip route get {}", known.host)),
        cause("a firewall refuses it with an ICMP message", "nft list ruleset, on both hosts"),
        cause("the host is down, and its neighbour says so", format!("ping {}", known.host)),
    ]
}

fn refused(phase: Phase, known: &Known) -> Vec<Cause> {
    let port = on(known);
    match phase {
        Phase::Portmapper => vec![cause(
            "no portmapper runs there: servers of version 4 only, and nfskit serve, need none",
            "nothing, if the ports below were found; else systemctl start rpcbind",
        )],
        Phase::MountProgram | Phase::Exports | Phase::Permission => vec![
            cause(
                format!("mountd does not run, or not {port}any more"),
                "systemctl status nfs-mountd (nfs-server) on the server",
            ),
            cause("the server has version 4 only, which needs no MOUNT", "mount -o vers=4.2"),
        ],
        _ => vec![
            cause(
                format!("the host is up, and no NFS server listens {port}there"),
                "systemctl status nfs-server on the server, or nfskit serve",
            ),
            cause("it listens on another port", "rpcinfo -p there; ?nfsport=N"),
            cause("a firewall rejects the port", "nft list ruleset on the server"),
        ],
    }
}

fn silent(phase: Phase, known: &Known) -> Vec<Cause> {
    let firewall = cause(
        match known.port {
            Some(port) => format!("a firewall drops what goes to port {port} of that host"),
            None => "a firewall drops what goes to that host".to_owned(),
        },
        match known.port {
            Some(port) => {
                format!("allow TCP {port} there: firewall-cmd --list-all, nft list ruleset")
            }
            None => "nft list ruleset on both hosts, and on what is between".to_owned(),
        },
    );
    let down =
        cause("the host is down, or the address is another's", format!("ping {}", known.host));
    let full = cause(
        "its queue of connections is full",
        "ss -ltn there: Recv-Q at Send-Q; nstat -az TcpExtListenOverflows",
    );
    match (phase, known.is_alive) {
        // Something else of the host answers: it is the port.
        (_, true) => vec![firewall, full],
        (Phase::Portmapper, false) => vec![firewall, down],
        (_, false) => vec![down, firewall],
    }
}

fn no_reply(phase: Phase, known: &Known) -> Vec<Cause> {
    let hangs = cause(
        "the server hangs: all its threads wait for a disk, or it is stopped",
        "on the server: ps -eo state,comm | grep nfsd (D waits for a disk), and dmesg",
    );
    let mtu = cause(
        "packets of full size are lost on the way, and the ICMP messages that would say so, too",
        format!("ping -M do -s 1472 {} (8972 with jumbo frames); ip link set mtu 1400", known.host),
    );
    let file = cause(
        "the file system behind the export hangs (a dead disk, or another NFS mount)",
        "ls there, on the server",
    );
    match phase {
        Phase::Read | Phase::Write => vec![mtu, file, hangs],
        Phase::Fsinfo | Phase::Pathconf | Phase::Getattr => vec![file, hangs],
        Phase::MountProgram | Phase::Exports | Phase::Permission => vec![
            cause(
                "mountd waits for a name server: it looks up the names of its clients",
                format!("getent hosts ADDRESS-OF-THIS-HOST on {}; /etc/hosts there", known.host),
            ),
            hangs,
        ],
        _ => {
            vec![hangs, cause("what listens there is no RPC server, and waits", "rpcinfo -p there")]
        }
    }
}

fn closed(phase: Phase, known: &Known) -> Vec<Cause> {
    let mut all = Vec::new();
    if !known.is_privileged {
        all.push(cause(
            "the server lets only clients with privileged ports in (secure, the default)",
            "as root, or insecure for the export",
        ));
    }
    all.push(cause(
        "no export is for this host, and so its connections are closed",
        "exportfs -v on the server; /etc/hosts.allow for mountd",
    ));
    if phase >= Phase::Null {
        all.push(cause("the server died, or was restarted", "its log"));
    }
    all
}

fn no_program(phase: Phase, known: &Known) -> Vec<Cause> {
    match phase {
        Phase::MountProgram | Phase::Exports | Phase::Permission => vec![
            cause("the server has version 4 only, which needs no MOUNT", "mount -o vers=4.2"),
            cause("MOUNT is on another port", "rpcinfo -p there; ?mountport=N"),
            cause("mountd does not run", "systemctl status nfs-mountd there"),
        ],
        _ => vec![
            cause(
                format!("the NFS server is not started, or has not registered {}", on(known)),
                "systemctl status nfs-server; rpcinfo -p on that host",
            ),
            cause("NFS is on another port", "?nfsport=N"),
        ],
    }
}

fn no_version(low: u32, high: u32) -> Vec<Cause> {
    match low {
        4.. => vec![cause(
            format!("the server has turned version 3 off (it serves {low} to {high})"),
            "mount -o vers=4.2; or vers3=y in [nfsd] of /etc/nfs.conf on the server",
        )],
        _ => vec![cause(
            format!("the server serves versions {low} to {high} only"),
            format!("?version={high} in the URL, vers={high} for mount"),
        )],
    }
}

fn denied(phase: Phase, known: &Known) -> Vec<Cause> {
    let user = cause(
        "the caller has no right there; root is nobody for a server with root_squash",
        "?uid=N&gid=N of the directory's owner; ls -ln on the server",
    );
    let host = cause(
        "the export is not for this host",
        "exportfs -v on the server; the address it sees: ss -tn there",
    );
    let port = cause(
        "the export wants a privileged port (secure, the default), and this caller is not root",
        "as root, or insecure for the export",
    );
    match phase {
        Phase::Permission if known.is_privileged => vec![host, user],
        Phase::Permission if known.is_local => vec![port, host],
        Phase::Permission => vec![host, port],
        _ if known.is_privileged => vec![user],
        _ => vec![user, port],
    }
}

fn absent(phase: Phase, known: &Known) -> Vec<Cause> {
    if phase > Phase::Permission || known.inside_of.is_some() {
        let export = known.inside_of.as_deref().unwrap_or("the export");
        return vec![cause(
            format!("{export} is exported, and inside of it is no such directory"),
            "ls on the server, below the export: the path is misspelt, or was removed",
        )];
    }
    let listed = match known.exports.as_deref() {
        None => "showmount -e, or exportfs -v on the server".to_owned(),
        Some([]) => "exportfs -ra on the server: it exports nothing to anybody".to_owned(),
        Some(exports) => format!("one of {}", exports.join(", ")),
    };
    let nearest = known.exports.iter().flatten().find(|one| is_near(one, &known.path));
    let mut all = Vec::new();
    if let Some(nearest) = nearest {
        let what = format!("{} is misspelt: {nearest} is exported", known.path);
        all.push(cause(what, format!("{}:{nearest}", known.host)));
    }
    all.push(cause(format!("{} is no export of it", known.path), listed));
    all.push(cause(
        "it is one for version 4, whose paths begin at a pseudo root (fsid=0)",
        "mount -o vers=4.2 with the path below the root",
    ));
    all
}

/// Whether two paths differ in so little that one is the other misspelt.
fn is_near(one: &str, other: &str) -> bool {
    let bare = |path: &str| path.trim_matches('/').to_lowercase();
    let (one, other) = (bare(one), bare(other));
    let same_case = one == other;
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let same_end = !last(&one).is_empty() && last(&one) == last(&other);
    same_case || same_end || distance(&one, &other) <= 2 && one.len() > 3
}

/// Letters to change, to put in or to take out (Levenshtein), of short paths.
fn distance(one: &str, other: &str) -> usize {
    const LETTERS_MAX: usize = 256;
    let one: Vec<char> = one.chars().take(LETTERS_MAX).collect();
    let other: Vec<char> = other.chars().take(LETTERS_MAX).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut left_above = row[0];
        row[0] = at + 1;
        for (below, wanted) in other.iter().enumerate() {
            let above = row[below + 1];
            let changed = left_above + usize::from(letter != wanted);
            row[below + 1] = changed.min(above + 1).min(row[below] + 1);
            left_above = above;
        }
    }
    row[other.len()]
}

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

    fn known() -> Known {
        Known { host: "h".to_owned(), path: "/export".to_owned(), ..Known::default() }
    }

    fn first(phase: Phase, fault: Fault, known: &Known) -> String {
        causes(phase, fault, known)[0].what.clone()
    }

    #[test]
    fn every_phase_and_every_fault_has_causes_with_something_to_do() {
        for phase in Phase::ALL {
            for fault in Fault::ALL {
                for is_alive in [false, true] {
                    let known = Known { is_alive, port: Some(2049), ..known() };
                    let all = causes(phase, fault, &known);
                    assert!(!all.is_empty(), "{phase} {fault:?}");
                    for one in all {
                        assert!(one.what.len() > 10 && one.check.len() > 4, "{phase} {fault:?}");
                        assert!(!one.what.contains("  "), "{}", one.what);
                    }
                }
            }
        }
    }

    #[test]
    fn silence_is_a_host_that_is_down_unless_it_has_answered_elsewhere() {
        let (down, alive) = (known(), Known { is_alive: true, port: Some(2049), ..known() });
        assert!(first(Phase::Connect, Fault::Silent, &down).contains("host is down"));
        assert!(first(Phase::Connect, Fault::Silent, &alive).contains("firewall drops"));
        assert!(causes(Phase::Connect, Fault::Silent, &alive)[0].check.contains("TCP 2049"));
        let all = causes(Phase::Connect, Fault::Silent, &alive);
        assert!(all.iter().all(|one| !one.what.contains("host is down")));
    }

    #[test]
    fn a_port_that_is_refused_is_a_service_that_is_not_there() {
        let of = |phase| first(phase, Fault::Refused, &known());
        assert!(of(Phase::Portmapper).contains("no portmapper"));
        assert!(of(Phase::Connect).contains("no NFS server listens"));
        assert!(of(Phase::MountProgram).contains("mountd does not run"));
    }

    #[test]
    fn no_reply_is_blamed_on_what_the_phase_waits_for() {
        let of = |phase| first(phase, Fault::NoReply, &known());
        assert!(of(Phase::Null).contains("server hangs"));
        assert!(of(Phase::Permission).contains("name server"));
        assert!(of(Phase::Getattr).contains("file system behind"));
        assert!(of(Phase::Read).contains("packets of full size"), "small calls were answered");
    }

    #[test]
    fn a_refused_caller_is_told_apart_by_what_he_may() {
        let of = |is_privileged, is_local| {
            let known = Known { is_privileged, is_local, ..known() };
            first(Phase::Permission, Fault::Denied, &known)
        };
        assert!(of(false, true).contains("privileged port"));
        assert!(of(true, true).contains("not for this host"));
        assert!(of(false, false).contains("not for this host"));
        assert!(first(Phase::Write, Fault::Denied, &known()).contains("no right there"));
    }

    #[test]
    fn an_export_that_is_nearly_one_is_named() {
        let of = |path: &str, exports: &[&str]| {
            let exports = Some(exports.iter().map(|one| (*one).to_owned()).collect());
            let known = Known { path: path.to_owned(), exports, ..known() };
            causes(Phase::Permission, Fault::Absent, &known)
        };
        assert!(of("/exprot", &["/srv", "/export"])[0].what.contains("/export is exported"));
        assert!(of("/home", &["/export/home"])[0].what.contains("/export/home is exported"));
        let far = of("/data", &["/export", "/srv"]);
        assert_eq!(far[0].check, "one of /export, /srv");
        assert!(of("/data", &[])[0].check.contains("exports nothing"));
        let inside = Known { inside_of: Some("/srv".to_owned()), ..known() };
        let cause = first(Phase::Permission, Fault::Absent, &inside);
        assert!(cause.contains("/srv is exported, and inside"), "{cause}");
    }

    #[test]
    fn a_version_that_is_off_is_turned_on_or_gone_without() {
        let of = |low, high| causes(Phase::Null, Fault::NoVersion { low, high }, &known());
        assert!(of(4, 4)[0].what.contains("turned version 3 off"));
        assert!(of(2, 2)[0].check.contains("version=2"));
    }

    #[test]
    fn null_is_slow_where_it_is_far_slower_than_the_network() {
        assert_eq!(answering(Some(0.1), Some(0.25)), Answering::AsFastAsTcp);
        assert_eq!(answering(Some(0.1), Some(0.9)), Answering::AsFastAsTcp, "by too little");
        assert_eq!(answering(Some(20.0), Some(22.0)), Answering::AsFastAsTcp);
        assert_eq!(answering(Some(0.1), Some(5.0)), Answering::SlowServer);
        assert_eq!(answering(None, Some(5.0)), Answering::Unknown);
    }
}
