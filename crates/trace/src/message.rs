//! The heads of RPC messages (RFC 5531 section 9), read where they lie, cut off or not.

use wire::record::Fragment;

/// Longest record that is believed. Servers take a few MiB; a random word, read as a mark, is
/// longer nine times in ten.
pub const RECORD_LEN_MAX: u32 = 16 << 20;

/// Shortest message: a denied reply.
const MESSAGE_LEN_MIN: u32 = 20;

/// Bytes that tell a message from anything else.
pub(super) const TELLING_LEN: usize = 24;

const CALL: u32 = 0;
const REPLY: u32 = 1;
const RPC_VERSION: u32 = 2;
/// RPCSEC_GSS (RFC 2203).
const GSS: u32 = 6;
/// The verifier's length and body with which a server takes up TLS (RFC 9289 section 4.1).
const STARTTLS: &[u8] = b"\0\0\0\x08STARTTLS";
/// Longest credential or verifier.
const AUTH_LEN_MAX: u32 = 400;
/// Programs of users begin here; above the transient ones nothing is assigned.
const PROGRAM_MAX: u32 = 0x6000_0000;

/// The head of a call, and where its arguments begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CallHead {
    pub(super) xid: u32,
    pub(super) program: u32,
    pub(super) version: u32,
    pub(super) procedure: u32,
    /// Where the arguments begin; `None` when they are encrypted or cut off.
    pub(super) args: Option<usize>,
    pub(super) guard: Guard,
}

/// What RPCSEC_GSS (RFC 2203) does with the arguments and results of a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Guard {
    /// Another flavor.
    #[default]
    None,
    /// krb5: they stand there as they would without it.
    Authentication,
    /// krb5i: a length and a number stand before them.
    Integrity,
    /// krb5p: they are encrypted.
    Privacy,
}

impl Guard {
    /// Where results begin, which without it begin at `at`.
    pub(super) const fn results(self, at: usize) -> Option<usize> {
        match self {
            Self::None | Self::Authentication => Some(at),
            Self::Integrity => Some(at + 8),
            Self::Privacy => None,
        }
    }
}

/// The head of a reply, and where its results begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ReplyHead {
    pub(super) xid: u32,
    pub(super) verdict: RpcVerdict,
    /// `None` without results, or cut off.
    pub(super) results: Option<usize>,
    /// The server takes up TLS: what follows on the connection is hidden.
    pub(super) starts_tls: bool,
}

/// The RPC layer's status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RpcVerdict {
    Success,
    /// `accept_stat` other than SUCCESS.
    Refused(u32),
    /// `reject_stat`: 0 is another RPC version, 1 bad authentication.
    Denied(u32),
    /// Too little of the reply was captured.
    Unknown,
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*word))
}

/// Whether bytes can be the start of an RPC message; as much of it as is there.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    let at = |index| word(bytes, index);
    match at(4) {
        Some(CALL) => {
            at(8).is_none_or(|version| version == RPC_VERSION)
                && at(12).is_none_or(|program| (100_000..PROGRAM_MAX).contains(&program))
                && at(16).is_none_or(|version| version < 256)
                && at(20).is_none_or(|procedure| procedure < 4096)
        }
        Some(REPLY) => match at(8) {
            None => true,
            Some(0) => {
                at(12).is_none_or(|flavor| flavor < 400_000)
                    && at(16).is_none_or(|len| len <= AUTH_LEN_MAX)
            }
            Some(1) => at(12).is_none_or(|why| why <= 1) && at(16).is_none_or(|n| n < 256),
            Some(_) => false,
        },
        _ => false,
    }
}

/// Whether bytes can be a record's mark and what follows it. Marks of records that go on in
/// another fragment are rare, and random words as often as not: `strict` wants a last one.
pub(super) fn is_marked(bytes: &[u8], strict: bool) -> bool {
    let Some((mark, message)) = bytes.split_first_chunk() else { return false };
    let fragment = Fragment::from_header(*mark);
    (MESSAGE_LEN_MIN..=RECORD_LEN_MAX).contains(&fragment.len)
        && (fragment.last || !strict)
        && (message.len() >= TELLING_LEN || !strict)
        && is_message(message)
}

/// The first place in `bytes` where a record begins.
pub(super) fn find_mark(bytes: &[u8]) -> Option<usize> {
    if is_marked(bytes, true) {
        return Some(0);
    }
    // The word after the transaction number is 0 or 1: its first three bytes are 0.
    let mut at = 1;
    while let Some(window) = bytes.get(at + 8..at + 12) {
        match window {
            [0, 0, 0, 0 | 1] if is_marked(&bytes[at..], true) => return Some(at),
            // No zero until there: no place before can do.
            [_, _, _, last] if *last > 1 => at += 4,
            _ => at += 1,
        }
    }
    None
}

/// Reads the head of a call.
pub(super) fn call(bytes: &[u8]) -> Option<CallHead> {
    let (xid, program) = (word(bytes, 0)?, word(bytes, 12)?);
    let (version, procedure) = (word(bytes, 16)?, word(bytes, 20)?);
    let mut head = CallHead { xid, program, version, procedure, args: None, guard: Guard::None };
    let Some((credential, verifier)) = opaque_end(bytes, 24) else { return Some(head) };
    let is_gss = word(bytes, 24) == Some(GSS);
    let Some((_, args)) = opaque_end(bytes, verifier) else { return Some(head) };
    head.args = Some(args);
    // version, procedure (0: data), sequence number, service (1: none, 2: integrity, 3: privacy)
    if is_gss && word(bytes, credential + 4) == Some(0) {
        head.guard = match word(bytes, credential + 12) {
            Some(2) => Guard::Integrity,
            Some(3) => Guard::Privacy,
            _ => Guard::Authentication,
        };
        // Arguments are guarded as results are.
        head.args = head.guard.results(args);
    }
    Some(head)
}

/// Reads the head of a reply.
pub(super) fn reply(bytes: &[u8]) -> Option<ReplyHead> {
    let xid = word(bytes, 0)?;
    let mut head =
        ReplyHead { xid, verdict: RpcVerdict::Unknown, results: None, starts_tls: false };
    match word(bytes, 8) {
        Some(0) => {
            head.starts_tls = bytes.get(16..28) == Some(STARTTLS);
            let Some((_, status)) = opaque_end(bytes, 12) else { return Some(head) };
            match word(bytes, status) {
                Some(0) => {
                    (head.verdict, head.results) = (RpcVerdict::Success, Some(status + 4));
                }
                Some(refused) => head.verdict = RpcVerdict::Refused(refused),
                None => {}
            }
        }
        Some(1) => head.verdict = RpcVerdict::Denied(word(bytes, 12).unwrap_or(1)),
        _ => {}
    }
    Some(head)
}

/// An `opaque_auth` at `at`: where its body begins, and where it ends.
fn opaque_end(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let len = word(bytes, at + 4).filter(|len| *len <= AUTH_LEN_MAX)?;
    Some((at + 8, at + 8 + (len as usize).next_multiple_of(4)))
}
