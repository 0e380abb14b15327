//! What became of a call, as its reply's bytes say it.
//!
//! The reply is read, and not the code that made it: so every program, every version and a replayed
//! reply are counted in the same way.

use std::borrow::Cow;

use wire::nfs3::NfsStat3;
use wire::rpc::AuthStat;
use wire::{mount, nfs3, nlm, portmap};

/// Statuses that are distinguished.
pub(super) const KINDS: usize = AUTH_AT + AUTH_LEN;

/// Below 100 a status is its own index (those of NFS versions 2 and 3 and of MOUNT are), then come
/// the 16 from 10001 on, all others, and why RPC refused.
const NFS_LOW_LEN: usize = 100;
const NFS_HIGH_FIRST: u32 = 10_001;
const NFS_HIGH_LEN: usize = 16;
const NFS_OTHER: usize = NFS_LOW_LEN + NFS_HIGH_LEN;
const ACCEPT_AT: usize = NFS_OTHER + 1;
const ACCEPT_LEN: usize = 6;
const RPC_MISMATCH: usize = ACCEPT_AT + ACCEPT_LEN;
const AUTH_AT: usize = RPC_MISMATCH + 1;
/// The seven of RFC 5531, none, and others.
const AUTH_LEN: usize = 9;

/// Index of a status other than success.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Kind(usize);

/// Who refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Layer {
    Nfs,
    Rpc,
}

impl Kind {
    /// Why a call failed; none if it did not. `head` is the reply, at least its header and status;
    /// our headers have an empty verifier.
    pub(super) fn of(head: &[u8], has_status: bool) -> Option<Self> {
        let index = match (word(head, 2), word(head, 5)) {
            (0, 0) if has_status => nfs_index(word(head, 6))?,
            (0, 0) => return None,
            (0, accept) => ACCEPT_AT + (accept as usize).min(ACCEPT_LEN - 1),
            _ if word(head, 3) == 0 => RPC_MISMATCH,
            _ => AUTH_AT + (word(head, 4) as usize).min(AUTH_LEN - 1),
        };
        Some(Self(index))
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..KINDS).map(Self)
    }

    pub(super) fn index(self) -> usize {
        self.0
    }

    pub(super) fn layer(self) -> Layer {
        if self.0 < ACCEPT_AT { Layer::Nfs } else { Layer::Rpc }
    }

    /// The RFC's name; that of an NFS status without its version's prefix.
    pub(super) fn name(self) -> Cow<'static, str> {
        const ACCEPT: [&str; ACCEPT_LEN] = [
            "SUCCESS",
            "PROG_UNAVAIL",
            "PROG_MISMATCH",
            "PROC_UNAVAIL",
            "GARBAGE_ARGS",
            "SYSTEM_ERR",
        ];
        let code = |at: usize| u32::try_from(self.0 - at).unwrap_or(u32::MAX);
        match self.0 {
            NFS_OTHER => Cow::Borrowed("OTHER"),
            0..NFS_LOW_LEN => nfs_name(code(0)),
            NFS_LOW_LEN..NFS_OTHER => nfs_name(code(NFS_LOW_LEN) + NFS_HIGH_FIRST),
            RPC_MISMATCH => Cow::Borrowed("RPC_MISMATCH"),
            ACCEPT_AT..RPC_MISMATCH => Cow::Borrowed(ACCEPT[self.0 - ACCEPT_AT]),
            _ => Cow::Borrowed(match AuthStat::from_code(code(AUTH_AT)) {
                None | Some(AuthStat::Other(_)) => "AUTH_OTHER",
                Some(status) => status.name(),
            }),
        }
    }
}

/// Whether the results of a procedure begin with a status.
pub(super) fn has_status(program: u32, version: u32, procedure: u32) -> bool {
    /// NFS version 2 has three procedures without results; the other two are never called.
    const ROOT: u32 = 3;
    const WRITECACHE: u32 = 7;
    match (program, version, procedure) {
        (portmap::PROGRAM | nlm::PROGRAM, ..) | (.., 0) => false,
        (mount::PROGRAM, _, procedure) => procedure == mount::Procedure::Mnt.code(),
        (nfs3::PROGRAM, 2, ROOT | WRITECACHE) => false,
        _ => true,
    }
}

fn nfs_index(status: u32) -> Option<usize> {
    match status {
        0 => None,
        1..100 => Some(status as usize),
        _ => {
            let high = status.checked_sub(NFS_HIGH_FIRST).map(|above| above as usize);
            Some(high.filter(|&above| above < NFS_HIGH_LEN).map_or(NFS_OTHER, |a| NFS_LOW_LEN + a))
        }
    }
}

fn nfs_name(code: u32) -> Cow<'static, str> {
    const WFLUSH: u32 = 99; // of version 2 alone
    match NfsStat3::from_code(code) {
        _ if code == WFLUSH => Cow::Borrowed("WFLUSH"),
        None | Some(NfsStat3::Other(_)) => Cow::Owned(code.to_string()),
        Some(status) => Cow::Borrowed(status.name().trim_start_matches("NFS3ERR_")),
    }
}

/// The word at an index; 0 behind the end.
fn word(bytes: &[u8], index: usize) -> u32 {
    let rest = bytes.get(4 * index..).unwrap_or_default();
    rest.first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    use wire::rpc::{AcceptStatus, ReplyHeader};
    use wire::xdr::Encode;

    use super::*;

    fn name(header: ReplyHeader<'_>, results: &[u8]) -> Option<(Layer, String)> {
        let head = [&header.to_bytes(), results].concat();
        Kind::of(&head, true).map(|kind| (kind.layer(), kind.name().into_owned()))
    }

    #[test]
    fn a_reply_tells_its_status() {
        let success = ReplyHeader::success(1);
        let nfs = |name: &str| Some((Layer::Nfs, name.to_owned()));
        assert_eq!(name(success, &[0; 4]), None);
        assert_eq!(name(success, &[]), None);
        for &status in NfsStat3::LISTED {
            let full = status.to_string();
            assert_eq!(name(success, &status.to_bytes()), nfs(&full["NFS3ERR_".len()..]));
        }
        assert_eq!(name(success, &[0, 0, 0, 99]), nfs("WFLUSH"));
        assert_eq!(name(success, &[0, 0, 0, 3]), nfs("3"));
        assert_eq!(name(success, &[0, 0, 9, 99]), nfs("OTHER"));
        assert_eq!(name(success, &[255; 4]), nfs("OTHER"));
        assert_eq!(Kind::of(&success.to_bytes(), false), None);
    }

    #[test]
    fn a_refusal_tells_its_reason() {
        let rpc = |name: &str| Some((Layer::Rpc, name.to_owned()));
        let accepted = |status| name(ReplyHeader::accepted(1, status), &[]);
        assert_eq!(accepted(AcceptStatus::ProgUnavail), rpc("PROG_UNAVAIL"));
        assert_eq!(accepted(AcceptStatus::ProgMismatch { low: 2, high: 3 }), rpc("PROG_MISMATCH"));
        assert_eq!(accepted(AcceptStatus::ProcUnavail), rpc("PROC_UNAVAIL"));
        assert_eq!(accepted(AcceptStatus::GarbageArgs), rpc("GARBAGE_ARGS"));
        assert_eq!(accepted(AcceptStatus::SystemErr), rpc("SYSTEM_ERR"));
        assert_eq!(name(ReplyHeader::rpc_mismatch(1), &[]), rpc("RPC_MISMATCH"));
        let refused = ReplyHeader::auth_error(1, AuthStat::TooWeak);
        assert_eq!(name(refused, &[]), rpc("AUTH_TOOWEAK"));
    }

    #[test]
    fn every_kind_has_a_name() {
        assert!(Kind::all().all(|kind| !kind.name().is_empty()));
        assert!(Kind::of(&[], true).is_none());
    }
}
