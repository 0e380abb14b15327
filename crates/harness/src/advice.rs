//! What to try when a client, a measurement or a capture failed, by its cause.

use client::error::{Error as ClientError, Service};
use client::url;
use load::error::Error as LoadError;
use net::error::{CallError, ConnectError, Refusal};
use net::floor::error::FloorError;
use trace::capture::CaptureError;
use wire::mount::MountStat3;
use wire::nfs3::NfsStat3;
use wire::portmap;

use crate::exit::Failure;
use crate::hints;

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let advice = advice(&error);
        Self::environment(error, advice)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Client(error) => error.into(),
            LoadError::Floor(error) => {
                let advice = floor_advice(&error);
                Self::environment(error, advice)
            }
            LoadError::Length { .. } => Self::environment(
                error,
                "see who else writes there; `nfskit bench basic` finds what is wrong with a server",
            ),
            LoadError::Local { ref cause, .. } => {
                let advice = hints::writing(cause);
                Self::environment(error, advice)
            }
            LoadError::NoRoom { .. } => {
                Self::environment(error, "free space on the server, or another export")
            }
            LoadError::Ended | LoadError::Timer(_) => Self::resources(error),
            LoadError::TooFew { .. } => Self::environment(
                error,
                "to measure longer, without --quick where it was given; or a server and a link \
                 that answer sooner",
            ),
            LoadError::WroteNothing { .. } => Self::environment(
                error,
                "another server; a capture of the traffic (nfskit trace) shows its maker the call",
            ),
        }
    }
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Self {
        let advice = match &error {
            CaptureError::Link { .. } => "a capture on another interface, or without monitor mode",
            CaptureError::Empty { .. } | CaptureError::NotACapture { .. } => {
                "a pcap or pcapng file, as tcpdump -w FILE or dumpcap make it"
            }
            CaptureError::Io { cause, .. } => hints::reading(cause),
        };
        Self::environment(error, advice)
    }
}

/// What to look at when a host does not answer at all.
const NO_WAY: &str = "check the address, the route and firewalls on the way (ping, then the port)";

fn advice(error: &ClientError) -> String {
    match error {
        ClientError::Connect { service, cause } => connect_advice(*service, cause),
        ClientError::NotRegistered { .. } => {
            "start the service there, or give its ports: ?nfsport=2049&mountport=20048".to_owned()
        }
        ClientError::NotFound { tried, .. } => not_found_advice(tried),
        ClientError::Mount { status, server, path } => mount_advice(*status, server, path),
        ClientError::Call { cause, server, .. } => call_advice(cause, server),
        ClientError::Status { status, .. } => status_advice(*status).to_owned(),
        ClientError::Nonsense { .. } => {
            "another version of NFS (vers=2, vers=3) or another server; a capture of the traffic \
             (nfskit trace) shows the server's maker what it replied"
                .to_owned()
        }
    }
}

/// Silence everywhere is the network's; a port that refuses has no server behind it.
fn not_found_advice(tried: &[ClientError]) -> String {
    let is_silent = |error: &ClientError| match error {
        ClientError::Connect { cause, .. }
        | ClientError::Call { cause: CallError::Connect(cause), .. } => {
            matches!(cause, ConnectError::TimedOut { .. } | ConnectError::Unreachable { .. })
        }
        ClientError::Call { cause, .. } => matches!(cause, CallError::TimedOut { .. }),
        _ => false,
    };
    match tried.iter().all(is_silent) {
        true => NO_WAY.to_owned(),
        false => "start the server (nfskit serve DIR, on that host), or give the ports that it \
                  has: nfs://HOST/EXPORT?nfsport=2049&mountport=20048"
            .to_owned(),
    }
}

fn floor_advice(error: &FloorError) -> String {
    match error {
        FloorError::Connect(ConnectError::Refused { .. }) => {
            "start the far end there: nfskit bench stream --server --listen ADDRESS:PORT".to_owned()
        }
        FloorError::Connect(cause) | FloorError::NoServer(cause) => {
            connect_advice(Service::Nfs, cause)
        }
        FloorError::Silent { .. } | FloorError::NotOurs { .. } => {
            "the address and port that nfskit bench stream --server prints on that host".to_owned()
        }
        FloorError::Version { .. } => "the same version of nfskit on both hosts".to_owned(),
        FloorError::Busy { .. } => "again in a while, or a far end on another port".to_owned(),
        FloorError::Refused { .. } => "smaller messages, or shorter runs".to_owned(),
        FloorError::Gone { .. } => {
            "see whether the far end is alive, and the path to it".to_owned()
        }
        FloorError::NoAnswer { .. } => {
            "see whether it is alive, and firewalls on the way".to_owned()
        }
        FloorError::NobodyListens { address } if address.port() == portmap::PORT => {
            "start rpcbind there, or leave --rpcbind out and give the port".to_owned()
        }
        FloorError::NobodyListens { .. } => {
            "start the server, or our far end, there; not every server serves UDP: proto=tcp"
                .to_owned()
        }
        FloorError::NotRegistered { .. } => {
            "start its spray program, or a far end of ours: nfskit bench stream --server".to_owned()
        }
        FloorError::Call { address, cause } => call_advice(cause, address),
        FloorError::System(_) => "raise the limits of open files and threads (ulimit)".to_owned(),
        FloorError::Stopped => String::new(),
    }
}

fn connect_advice(service: Service, cause: &ConnectError) -> String {
    match (cause, service) {
        (ConnectError::Resolve { .. }, _) => {
            "the host's address instead of its name, or check the name".to_owned()
        }
        (ConnectError::Refused { .. }, Service::Portmapper) => {
            "if the server runs without a portmapper, give its ports: ?nfsport=2049&mountport=20048"
                .to_owned()
        }
        (ConnectError::Refused { .. }, _) => {
            "start the server, or correct the port in the URL (nfsport=, mountport=)".to_owned()
        }
        (ConnectError::TimedOut { .. } | ConnectError::Unreachable { .. }, _) => NO_WAY.to_owned(),
    }
}

fn mount_advice(status: MountStat3, server: &std::net::SocketAddr, path: &str) -> String {
    match status {
        MountStat3::NoEnt if argument(path).is_some() => format!(
            "{:?} was taken for a part of the path: arguments are {}",
            argument(path).unwrap_or_default(),
            url::ARGUMENTS.join(", ")
        ),
        MountStat3::Acces | MountStat3::Perm => format!(
            "ask the server's administrator to export it to this host, for callers without a \
             privileged port as insecure (nfskit serve DIR --export /=insecure); or be root, or on \
             the server's host the user who runs it; {}",
            listing(server)
        ),
        _ => format!("another path; {}", listing(server)),
    }
}

/// What looks like an argument of a URL, at the end of a path.
fn argument(path: &str) -> Option<&str> {
    let (_, behind) = path.rsplit_once('?')?;
    behind.contains('=').then_some(behind)
}

/// What lists the exports of a server, also of one without a portmapper.
fn listing(mount_service: &std::net::SocketAddr) -> String {
    match mount_service.port() {
        2049 | 20048 => format!("nfskit doctor {} lists the exports", mount_service.ip()),
        _ => "nfskit doctor with this URL lists the exports".to_owned(),
    }
}

fn call_advice(cause: &CallError, server: &std::net::SocketAddr) -> String {
    match cause {
        CallError::TimedOut { .. } => {
            format!("see whether the server at {server} is alive and its disk responds")
        }
        CallError::Connect(cause) => connect_advice(Service::Nfs, cause),
        CallError::NobodyListens => {
            "start the server, or correct the port in the URL (nfsport=, mountport=); not every \
              server serves UDP: proto=tcp"
                .to_owned()
        }
        CallError::TooLarge { .. } => "smaller calls, or proto=tcp in the URL".to_owned(),
        CallError::Closed | CallError::Transport(net::error::TransportError::Io(_)) => {
            "the server's log: it closed the connection, or crashed".to_owned()
        }
        CallError::Transport(_)
        | CallError::Malformed(_)
        | CallError::Echo
        | CallError::Unsolicited { .. } => {
            format!(
                "another port: what listens at {server} does not speak ONC RPC as an NFS \
                  server does"
            )
        }
        CallError::Refused(Refusal::Authentication { .. }) => {
            "?uid=N&gid=N in the URL, or an export that allows AUTH_SYS".to_owned()
        }
        CallError::Refused(Refusal::ProgramMismatch { low: ..=2, .. }) => {
            "version 2 of NFS, which it serves: ?version=2 in the URL".to_owned()
        }
        CallError::Refused(Refusal::ProgramMismatch { low: 4.., .. }) => {
            "a server that serves NFS v3 or v2, which nfskit speaks, or turn them on there"
                .to_owned()
        }
        CallError::Refused(
            Refusal::ProgramMismatch { .. }
            | Refusal::ProgramUnavailable
            | Refusal::ProcedureUnavailable,
        ) => "a server that serves that version of NFS on that port".to_owned(),
        CallError::Refused(
            Refusal::GarbageArguments | Refusal::System | Refusal::RpcMismatch { .. },
        ) => "the server's log; a capture of the traffic (nfskit trace) shows its maker the call"
            .to_owned(),
    }
}

fn status_advice(status: NfsStat3) -> &'static str {
    match status {
        NfsStat3::RoFs => "a writable export: a scratch directory is made in it",
        NfsStat3::NoSpc => "free space on the server, or another export",
        NfsStat3::DQuot => "raise the quota on the server, or another user (?uid=N)",
        NfsStat3::Acces | NfsStat3::Perm => {
            "a user who may write there (?uid=N&gid=N; root is nobody for a server without \
             no_root_squash), or another directory"
        }
        NfsStat3::NoEnt | NfsStat3::NotDir => "a directory that exists inside the export",
        NfsStat3::Stale | NfsStat3::BadHandle => {
            "run again: the directory was removed, or the server lost its handles"
        }
        NfsStat3::Io => "the server's log and its disk",
        NfsStat3::Jukebox => "again in a while: the server does not have it ready yet",
        _ => "the server's log",
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error as IoError, ErrorKind};
    use std::net::SocketAddr;
    use std::sync::Arc;

    use perf::units::Nanos;
    use wire::rpc::AuthStat;

    use super::*;

    fn address() -> SocketAddr {
        ([10, 0, 0, 1], 2049).into()
    }

    fn refused() -> ConnectError {
        ConnectError::Refused { address: address() }
    }

    fn silent() -> ConnectError {
        ConnectError::TimedOut { address: address(), limit: Nanos::from_secs(5) }
    }

    fn unresolved() -> ConnectError {
        ConnectError::Resolve { host: "h".to_owned(), cause: "no".to_owned() }
    }

    fn connect(service: Service, cause: ConnectError) -> ClientError {
        ClientError::Connect { service, cause }
    }

    fn call(cause: CallError) -> ClientError {
        ClientError::Call { procedure: "WRITE", server: address(), cause }
    }

    /// Each cause, with what its hint has, and none of the other causes' hints has.
    #[track_caller]
    fn are_distinct(cases: &[(ClientError, &str)]) {
        for (at, (error, part)) in cases.iter().enumerate() {
            for (other_at, (other, _)) in cases.iter().enumerate() {
                let hint = advice(other);
                assert_eq!(hint.contains(part), at == other_at, "{error} and {other}: {hint}");
            }
        }
    }

    #[test]
    fn a_connection_that_is_not_made_has_the_hint_of_its_cause() {
        are_distinct(&[
            (connect(Service::Nfs, unresolved()), "address instead of its name"),
            (connect(Service::Nfs, refused()), "correct the port"),
            (connect(Service::Nfs, silent()), "firewalls"),
            (connect(Service::Portmapper, refused()), "without a portmapper"),
        ]);
        let unreachable = ConnectError::Unreachable {
            address: address(),
            cause: Arc::new(IoError::from(ErrorKind::NetworkUnreachable)),
        };
        assert_eq!(advice(&connect(Service::Mount, unreachable)), NO_WAY);
    }

    #[test]
    fn a_server_that_is_not_found_is_started_or_the_way_to_it_is_looked_at() {
        let not_found =
            |tried| ClientError::NotFound { host: "h".to_owned(), service: Service::Nfs, tried };
        let portmapper = |cause| connect(Service::Portmapper, cause);
        let nfs = |cause| connect(Service::Nfs, cause);
        let silence = not_found(vec![portmapper(silent()), nfs(silent())]);
        assert_eq!(advice(&silence), NO_WAY);
        let lost = call(CallError::TimedOut { limit: Nanos::from_secs(1) });
        assert_eq!(advice(&not_found(vec![lost, nfs(silent())])), NO_WAY);
        for alive in [
            not_found(vec![portmapper(refused()), nfs(refused())]),
            // A firewall in front of the portmapper alone: somebody answers for the host.
            not_found(vec![portmapper(silent()), nfs(refused())]),
        ] {
            assert!(advice(&alive).contains("nfskit serve DIR"), "{alive}");
        }
    }

    #[test]
    fn a_load_that_fails_has_the_hint_of_its_cause() {
        let hint = |error: LoadError| Failure::from(error).advice().to_owned();
        let system = hint(LoadError::Timer(IoError::other("no thread")));
        assert!(system.contains("ulimit -n -u"), "{system}");
        assert!(hint(LoadError::TooFew { what: "T_B" }).contains("--quick"));
        let silent = hint(LoadError::WroteNothing { bytes: 8192 });
        assert!(!silent.contains("--quick") && silent.contains("another server"), "{silent}");
        let read = |kind: ErrorKind| {
            let cause = IoError::from(kind);
            hint_of_capture(CaptureError::Io { name: "x.pcap".to_owned(), cause })
        };
        assert_eq!(read(ErrorKind::NotFound), "the path of a file that exists");
        assert!(read(ErrorKind::PermissionDenied).contains("this user may read"));
    }

    fn hint_of_capture(error: CaptureError) -> String {
        Failure::from(error).advice().to_owned()
    }

    #[test]
    fn a_call_that_fails_has_the_hint_of_its_cause() {
        use net::error::TransportError;
        let io = TransportError::Io(Arc::new(IoError::from(ErrorKind::ConnectionReset)));
        let refused = |refusal| call(CallError::Refused(refusal));
        are_distinct(&[
            (call(CallError::TimedOut { limit: Nanos::from_secs(1) }), "is alive and its disk"),
            (call(CallError::Closed), "closed the connection, or crashed"),
            (call(CallError::NobodyListens), "not every server serves UDP"),
            (call(CallError::TooLarge { got: 9, max: 8 }), "smaller calls"),
            (call(CallError::Echo), "does not speak ONC RPC"),
            (refused(Refusal::Authentication { status: AuthStat::TooWeak }), "AUTH_SYS"),
            (refused(Refusal::ProgramMismatch { low: 2, high: 2 }), "?version=2"),
            (refused(Refusal::ProgramMismatch { low: 4, high: 4 }), "serves NFS v3 or v2"),
            (refused(Refusal::ProgramUnavailable), "on that port"),
            (refused(Refusal::System), "the server's log; a capture"),
        ]);
        assert_eq!(advice(&call(CallError::Transport(io))), advice(&call(CallError::Closed)));
        assert!(advice(&call(CallError::Connect(silent()))).contains("firewalls"));
    }

    #[test]
    fn a_status_has_its_hint() {
        use NfsStat3 as S;
        let hints = [
            (S::RoFs, "a writable export"),
            (S::NoSpc, "free space"),
            (S::DQuot, "quota"),
            (S::Acces, "who may write there"),
            (S::NoEnt, "exists inside the export"),
            (S::Stale, "run again"),
            (S::Io, "its disk"),
            (S::Jukebox, "again in a while"),
        ];
        for (status, part) in hints {
            for (other, _) in hints {
                let is_same = status == other;
                assert_eq!(status_advice(other).contains(part), is_same, "{status} and {other}");
            }
        }
        assert_eq!(status_advice(S::Perm), status_advice(S::Acces));
    }

    #[test]
    fn a_mount_that_is_refused_has_its_hint() {
        let of = |path: &str, status| ClientError::Mount {
            path: path.to_owned(),
            server: address(),
            status,
        };
        let refused = |status| of("/x", status);
        are_distinct(&[
            (refused(MountStat3::Acces), "administrator"),
            (refused(MountStat3::NoEnt), "another path"),
            (of("/x?vresion=2", MountStat3::NoEnt), "\"vresion=2\" was taken for"),
        ]);
    }

    #[test]
    fn a_local_error_has_the_hint_of_its_cause() {
        let local = |kind: ErrorKind| {
            let path = "/srv/x".into();
            Failure::from(LoadError::Local { doing: "writing", path, cause: kind.into() })
        };
        assert!(local(ErrorKind::StorageFull).advice().starts_with("free space"));
        assert!(local(ErrorKind::PermissionDenied).advice().contains("this user may write"));
        assert!(local(ErrorKind::ReadOnlyFilesystem).advice().contains("mounted for writing"));
    }
}
