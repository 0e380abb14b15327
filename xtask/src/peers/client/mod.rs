//! A lean load generator: one thread, one connection, calls made beforehand.
//!
//! It costs 1 to 2 us for a small call, so that a server is what is measured. Calls are bytes in
//! which only the transaction id (and, for a new name, its number) is written before each use;
//! calls that may go together go with one write; replies are cut from a large buffer by their
//! record marks and matched by transaction id. Every reply's status is looked at, and what it
//! says is decoded in full at least once for each file.

pub(crate) mod connection;
pub(crate) mod jobs;
pub(crate) mod pipeline;
pub(crate) mod replies;
pub(crate) mod session;

use wire::Procedure;
use wire::record::{FRAGMENT_HEADER_LEN, Fragment};
use wire::rpc::{AuthSys, CallHeader, Gids, OpaqueAuth};
use wire::xdr::{Encode, padding};

/// Where the transaction id stands in a call with its record mark.
const XID_AT: usize = FRAGMENT_HEADER_LEN;

/// A call by root, with a record mark for `payload_len` bytes that follow, and their padding.
///
/// # Panics
/// When the call has 2^31 bytes; the largest here has 1 MiB.
pub(crate) fn call(
    procedure: Procedure,
    args: impl FnOnce(&mut Vec<u8>),
    payload_len: usize,
) -> Vec<u8> {
    let root = AuthSys { stamp: 0, machine_name: b"peers", uid: 0, gid: 0, gids: Gids::default() };
    let mut bytes = vec![0; FRAGMENT_HEADER_LEN];
    CallHeader::new(0, procedure, OpaqueAuth::sys(&root.to_bytes())).encode(&mut bytes);
    args(&mut bytes);
    let body = bytes.len() - FRAGMENT_HEADER_LEN + payload_len + padding(payload_len).len();
    let len = u32::try_from(body).expect("a call has at most 1 MiB and a header");
    bytes[..FRAGMENT_HEADER_LEN].copy_from_slice(&Fragment { last: true, len }.to_header());
    bytes
}

/// Appends a prepared call under its transaction id.
fn put_call(out: &mut Vec<u8>, call: &[u8], xid: u32) {
    let at = out.len() + XID_AT;
    out.extend_from_slice(call);
    out[at..at + 4].copy_from_slice(&xid.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::nfs3;
    use wire::record::Deframer;
    use wire::rpc::Call;
    use wire::xdr::{Decode, Reader};

    #[test]
    fn a_prepared_call_is_one_record_with_its_transaction_id() {
        let null = call(Procedure::Nfs3(nfs3::Procedure::Null), |_| (), 0);
        let mut out = Vec::new();
        put_call(&mut out, &null, 7);
        put_call(&mut out, &null, 8);
        let mut deframer = Deframer::new(1 << 20);
        let mut input = &out[..];
        for xid in [7, 8] {
            let record = deframer.feed(&mut input).unwrap().unwrap();
            let Ok(Call::Version2(header)) = Call::decode(&mut Reader::new(&record)) else {
                panic!("no call");
            };
            assert_eq!(header.xid, xid);
            assert_eq!(header.procedure().name(), "NULL");
            assert_eq!(header.credential.auth_sys().unwrap().unwrap().uid, 0);
        }
        assert!(input.is_empty());
    }

    #[test]
    fn the_record_mark_counts_payload_and_padding() {
        let bytes = call(Procedure::Nfs3(nfs3::Procedure::Write), |_| (), 5);
        let header = *bytes.first_chunk().unwrap();
        let len = Fragment::from_header(header).len as usize;
        assert_eq!(len, bytes.len() - 4 + 8);
    }
}
