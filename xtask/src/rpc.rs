//! Calls over blocking connections, and what was replied to them.

use std::io::{self, Read};

use wire::Procedure;
use wire::record::{Deframer, Message};
use wire::rpc::{AcceptStatus, CallHeader, OpaqueAuth, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader};

/// Above the largest reply: a READ of all of a file, and a listing of 1 MiB.
const RECORD_LEN_MAX: usize = 1 << 21;

/// A call without a record mark.
pub(crate) fn call(
    xid: u32,
    procedure: Procedure,
    credential: OpaqueAuth<'_>,
    args: &[u8],
) -> Vec<u8> {
    let mut call = CallHeader::new(xid, procedure, credential).to_bytes();
    call.extend_from_slice(args);
    call
}

/// A call with its record mark.
pub(crate) fn record(call: Vec<u8>) -> Vec<u8> {
    let message = Message::new(call);
    [&message.marker()[..], &message.head].concat()
}

/// Waits for one record, and reads nothing behind it.
pub(crate) fn receive(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut deframer = Deframer::new(RECORD_LEN_MAX);
    loop {
        let mut bytes = vec![0; deframer.wanted()];
        stream.read_exact(&mut bytes)?;
        if let Some(record) = deframer.feed(&mut &bytes[..]).map_err(io::Error::other)? {
            return Ok(record);
        }
    }
}

/// The results of a call that was accepted and carried out.
pub(crate) fn results(reply: &[u8]) -> Result<&[u8], String> {
    let mut r = Reader::new(reply);
    let header = ReplyHeader::decode(&mut r).map_err(|error| error.to_string())?;
    match header.body {
        ReplyBody::Accepted { status: AcceptStatus::Success, .. } => Ok(r.rest()),
        other => Err(format!("the call was refused: {other:?}")),
    }
}
