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

use wire::nlm::{Cookied, Procedure, Reply, ShareReply, Stat};
use wire::xdr::{self, DecodeError, Encode, Void};

/// Appends the results of a procedure; `false` when it is not served.
pub(crate) fn serve(
    procedure: Procedure,
    args: &[u8],
    head: &mut Vec<u8>,
) -> Result<bool, DecodeError> {
    use Procedure as P;
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
    let Cookied { cookie, .. } = xdr::from_bytes(args)?;
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
        for &procedure in P::ALL {
            let args: &[u8] = if procedure == P::Null { b"" } else { b"\0\0\0\x01c\0\0\0..." };
            let mut head = Vec::new();
            serve(procedure, args, &mut head).unwrap();
            let stat = head.get(8..12).map(|stat| stat[3]);
            let expected = match procedure {
                P::Test | P::Lock | P::NmLock | P::Share => Some(2),
                P::Cancel | P::Unlock | P::Unshare => Some(0),
                _ => None,
            };
            assert_eq!(stat, expected, "{procedure}");
        }
        assert!(serve(P::Lock, b"\0\0\0\x05c", &mut Vec::new()).is_err());
    }
}
