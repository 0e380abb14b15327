//! The lock manager, served to refuse: a client that finds none waits for one, and the program that
//! has called for a lock with it (Linux from 6.4 on for ever).
//!
//! | procedure | reply |
//! |---|---|
//! | NULL, FREE_ALL | nothing |
//! | TEST, LOCK, NM_LOCK, SHARE | LCK_DENIED_NOLOCKS: programs get ENOLCK |
//! | CANCEL, UNLOCK, UNSHARE | LCK_GRANTED: what nobody has is given back |
//! | GRANTED, and all whose results are a call (TEST_MSG to GRANTED_RES) | PROC_UNAVAIL |
//!
//! No lock is ever given, so that none is broken. A call to a client is never made: it would be one
//! to a port that somebody else names.

use wire::nlm::{Procedure, Reply, ShareReply, Stat, VERSION_1, cookie};
use wire::xdr::{self, DecodeError, Encode, Void};

/// Appends the results of a procedure; `false` when it is not served.
pub(crate) fn serve(
    version: u32,
    procedure: u32,
    args: &[u8],
    head: &mut Vec<u8>,
) -> Result<bool, DecodeError> {
    use Procedure as P;
    let Some(procedure) = Procedure::from_code(procedure) else { return Ok(false) };
    let is_of_shares = matches!(procedure, P::Share | P::Unshare | P::NmLock | P::FreeAll);
    if is_of_shares && version == VERSION_1 {
        return Ok(false);
    }
    let stat = match procedure {
        P::Null => {
            xdr::from_bytes::<Void>(args)?;
            return Ok(true);
        }
        P::FreeAll => return Ok(true),
        P::Test | P::Lock | P::NmLock | P::Share => Stat::DeniedNolocks,
        P::Cancel | P::Unlock | P::Unshare => Stat::Granted,
        _ => return Ok(false),
    };
    let cookie = cookie(args)?;
    match procedure {
        P::Share | P::Unshare => ShareReply { cookie, stat, sequence: 0 }.encode(head),
        _ => Reply { cookie, stat }.encode(head),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_refused_and_never_faked() {
        use Procedure as P;
        for version in [1, 3, 4] {
            for &procedure in P::ALL {
                let args: &[u8] = if procedure == P::Null { b"" } else { b"\0\0\0\x01c\0\0\0..." };
                let mut head = Vec::new();
                serve(version, procedure.code(), args, &mut head).unwrap();
                let stat = head.get(8..12).map(|stat| stat[3]);
                let expected = match procedure {
                    P::Test | P::Lock => Some(2),
                    P::NmLock | P::Share if version != 1 => Some(2),
                    P::Cancel | P::Unlock => Some(0),
                    P::Unshare if version != 1 => Some(0),
                    _ => None,
                };
                assert_eq!(stat, expected, "{procedure} of version {version}");
            }
        }
        assert!(serve(4, Procedure::Lock.code(), b"\0\0\0\x05c", &mut Vec::new()).is_err());
        assert_eq!(serve(4, 16, b"", &mut Vec::new()), Ok(false));
    }
}
