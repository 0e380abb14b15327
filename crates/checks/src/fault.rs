//! What an error of the client means for a phase.

use client::error::Error;
use doctor::reach::Fault;
use net::error::{CallError, ConnectError, Refusal, TransportError};
use wire::mount::MountStat3;
use wire::nfs3::NfsStat3;

/// See the module's head.
pub(crate) fn of(error: &Error) -> Fault {
    match error {
        Error::Connect { cause, .. } => of_connect(cause),
        Error::Call { cause, .. } => of_call(cause),
        Error::Status { status, .. } => of_status(*status),
        Error::Mount { status, .. } => of_mount(*status),
        Error::NotRegistered { .. } => Fault::NotRegistered,
        Error::NotFound { tried, .. } => tried.last().map_or(Fault::Other, of),
        Error::Nonsense { .. } => Fault::Other,
    }
}

pub(crate) fn of_connect(error: &ConnectError) -> Fault {
    match error {
        ConnectError::Resolve { .. } => Fault::Unresolved,
        ConnectError::Refused { .. } => Fault::Refused,
        ConnectError::TimedOut { .. } => Fault::Silent,
        ConnectError::Unreachable { .. } => Fault::Unreachable,
    }
}

fn of_call(error: &CallError) -> Fault {
    match error {
        CallError::TimedOut { .. } => Fault::NoReply,
        CallError::Closed | CallError::Transport(TransportError::Io(_)) => Fault::Closed,
        CallError::Connect(cause) => of_connect(cause),
        CallError::NobodyListens => Fault::Refused,
        CallError::Transport(_)
        | CallError::Malformed(_)
        | CallError::Echo
        | CallError::Unsolicited { .. } => Fault::NotRpc,
        CallError::Refused(Refusal::ProgramUnavailable | Refusal::ProcedureUnavailable) => {
            Fault::NoProgram
        }
        CallError::Refused(Refusal::ProgramMismatch { low, high }) => {
            Fault::NoVersion { low: *low, high: *high }
        }
        CallError::Refused(Refusal::Authentication { .. }) => Fault::Authentication,
        CallError::Refused(Refusal::System) => Fault::Server,
        CallError::Refused(Refusal::GarbageArguments | Refusal::RpcMismatch { .. })
        | CallError::TooLarge { .. } => Fault::Other,
    }
}

fn of_status(status: NfsStat3) -> Fault {
    match status {
        NfsStat3::Acces | NfsStat3::Perm => Fault::Denied,
        NfsStat3::NoEnt | NfsStat3::NotDir => Fault::Absent,
        NfsStat3::RoFs => Fault::ReadOnly,
        NfsStat3::NoSpc | NfsStat3::DQuot => Fault::Full,
        NfsStat3::Stale | NfsStat3::BadHandle => Fault::Stale,
        NfsStat3::Io | NfsStat3::ServerFault => Fault::Server,
        NfsStat3::Jukebox => Fault::Later,
        _ => Fault::Other,
    }
}

fn of_mount(status: MountStat3) -> Fault {
    match status {
        MountStat3::Acces | MountStat3::Perm => Fault::Denied,
        MountStat3::NoEnt | MountStat3::NotDir => Fault::Absent,
        MountStat3::Io | MountStat3::ServerFault => Fault::Server,
        _ => Fault::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_mean_what_they_say() {
        let server = ([127, 0, 0, 1], 2049).into();
        let call = |cause| of(&Error::Call { procedure: "NULL", server, cause });
        assert_eq!(call(CallError::Closed), Fault::Closed);
        assert_eq!(call(CallError::Echo), Fault::NotRpc);
        let mismatch = Refusal::ProgramMismatch { low: 4, high: 4 };
        assert_eq!(call(CallError::Refused(mismatch)), Fault::NoVersion { low: 4, high: 4 });
        let refused = ConnectError::Refused { address: server };
        assert_eq!(call(CallError::Connect(refused)), Fault::Refused);
        let mount = |status| of(&Error::Mount { path: "/x".to_owned(), server, status });
        assert_eq!(mount(MountStat3::Acces), Fault::Denied);
        assert_eq!(mount(MountStat3::NoEnt), Fault::Absent);
        assert_eq!(of_status(NfsStat3::RoFs), Fault::ReadOnly);
    }
}
