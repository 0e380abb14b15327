//! Error numbers: what the server or the way to it reports, in the words of errno(3).

use client::error::Error;
use net::error::{CallError, Refusal};
use rustix::io::Errno;
use wire::nfs3::NfsStat3;

/// What a program sees.
pub fn of(error: &Error) -> Errno {
    match error {
        Error::Status { status, .. } => of_status(*status),
        // The RPC layer's refusals, as the kernel's client has them.
        Error::Call { cause: CallError::Refused(refusal), .. } => match refusal {
            Refusal::ProcedureUnavailable => Errno::OPNOTSUPP,
            Refusal::ProgramUnavailable => Errno::PFNOSUPPORT,
            Refusal::ProgramMismatch { .. } => Errno::PROTONOSUPPORT,
            Refusal::Authentication { .. } => Errno::ACCESS,
            _ => Errno::IO,
        },
        // A soft mount gave up, or the server is none: EIO, as the kernel's client has it.
        Error::Call { cause: CallError::TooLarge { .. }, .. } => Errno::MSGSIZE,
        _ => Errno::IO,
    }
}

/// The numbers of the RFC's names, and for those that have none what Linux's client says.
pub fn of_status(status: NfsStat3) -> Errno {
    match status {
        NfsStat3::Perm => Errno::PERM,
        NfsStat3::NoEnt => Errno::NOENT,
        NfsStat3::Io => Errno::IO,
        NfsStat3::NxIo => Errno::NXIO,
        NfsStat3::Acces => Errno::ACCESS,
        NfsStat3::Exist => Errno::EXIST,
        NfsStat3::XDev => Errno::XDEV,
        NfsStat3::NoDev => Errno::NODEV,
        NfsStat3::NotDir => Errno::NOTDIR,
        NfsStat3::IsDir => Errno::ISDIR,
        NfsStat3::Inval => Errno::INVAL,
        NfsStat3::FBig => Errno::FBIG,
        NfsStat3::NoSpc => Errno::NOSPC,
        NfsStat3::RoFs => Errno::ROFS,
        NfsStat3::MLink => Errno::MLINK,
        NfsStat3::NameTooLong => Errno::NAMETOOLONG,
        NfsStat3::NotEmpty => Errno::NOTEMPTY,
        NfsStat3::DQuot => Errno::DQUOT,
        NfsStat3::Stale | NfsStat3::BadHandle => Errno::STALE,
        NfsStat3::Remote => Errno::REMOTE,
        NfsStat3::NotSupp => Errno::OPNOTSUPP,
        NfsStat3::BadType => Errno::INVAL,
        NfsStat3::TooSmall | NfsStat3::BadCookie => Errno::INVAL,
        _ => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_procedure_that_the_server_has_not_is_not_supported() {
        let refused = |refusal| {
            let server = std::net::SocketAddr::from(([127, 0, 0, 1], 2049));
            let cause = CallError::Refused(refusal);
            of(&Error::Call { procedure: "MKNOD", server, cause })
        };
        assert_eq!(refused(Refusal::ProcedureUnavailable), Errno::OPNOTSUPP);
        assert_eq!(refused(Refusal::ProgramUnavailable), Errno::PFNOSUPPORT);
        assert_eq!(refused(Refusal::ProgramMismatch { low: 4, high: 4 }), Errno::PROTONOSUPPORT);
        let status = wire::rpc::AuthStat::TooWeak;
        assert_eq!(refused(Refusal::Authentication { status }), Errno::ACCESS);
        assert_eq!(refused(Refusal::GarbageArguments), Errno::IO);
    }

    /// Up to 10,000 the protocol's numbers are those of the systems it comes from.
    #[test]
    fn statuses_with_a_number_of_unix_keep_it() {
        let renumbered = [
            NfsStat3::NameTooLong,
            NfsStat3::NotEmpty,
            NfsStat3::DQuot,
            NfsStat3::Stale,
            NfsStat3::Remote,
        ];
        for &status in NfsStat3::LISTED {
            if status.code() < 10_000 && !renumbered.contains(&status) {
                assert_eq!(of_status(status).raw_os_error(), status.code().cast_signed());
            }
        }
        assert_eq!(of_status(NfsStat3::NotEmpty), Errno::NOTEMPTY);
    }
}
