//! What fuzz targets run, as ordinary functions, so that tests can replay the same inputs.
//!
//! Each takes arbitrary bytes. Whatever they are, nothing may panic; and what decodes must survive
//! the way back: its encoding has the same length and decodes to an equal value. A function
//! panics only when that does not hold, which is a finding.

use std::cell::OnceCell;
use std::fmt::Debug;

use crate::Procedure;
use crate::catalog::{Visit, visit_args, visit_results};
use crate::dissect;
use crate::record::{Deframer, RecordError};
use crate::rpc::{AcceptStatus, AuthSys, Call, CallHeader, ReplyBody, ReplyHeader};
use crate::xdr::{Decode, DecodeError, Encode, Reader, from_bytes};

/// Longest record of a fuzzed stream, small enough for an input to exceed it.
const RECORD_LEN_MAX: usize = 1000;

/// A call: header, AUTH_SYS credential, and the arguments of the procedure it names.
pub fn decode_call(bytes: &[u8]) {
    let mut r = Reader::new(bytes);
    let Ok(Call::Version2(header)) = Call::decode(&mut r) else {
        return;
    };
    let (encoded, encoded_body) = (OnceCell::new(), OnceCell::new());
    let _ = round_trip(&mut Reader::new(bytes), &encoded, CallHeader::decode);
    let mut body = Reader::new(header.credential.body);
    let _ = round_trip(&mut body, &encoded_body, AuthSys::decode);
    let _ = round_trip_args(header.procedure(), r.rest());
}

/// A reply. The first byte chooses the procedure it answers, which a reply does not say itself.
pub fn decode_reply(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let mut r = Reader::new(bytes);
    let Ok(header) = ReplyHeader::decode(&mut r) else {
        return;
    };
    let encoded = OnceCell::new();
    let _ = round_trip(&mut Reader::new(bytes), &encoded, ReplyHeader::decode);
    let success = AcceptStatus::Success;
    if matches!(header.body, ReplyBody::Accepted { status, .. } if status == success) {
        let _ = round_trip_results(chosen_procedure(choice), r.rest());
    }
}

/// A stream: cut into chunks of any size, it has the same records and the same error as whole.
/// The first byte chooses how the sizes go.
pub fn deframe(input: &[u8]) {
    let Some((&choice, stream)) = input.split_first() else {
        return;
    };
    let whole = records(std::iter::once(stream));
    let size = 1 + usize::from(choice);
    assert_eq!(records(stream.chunks(size)), whole);
    for record in whole.0 {
        assert!(record.len() <= RECORD_LEN_MAX);
    }
}

/// Both ways to print a message, of a procedure that the first byte chooses.
pub fn dissect(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let procedure = chosen_procedure(choice);
    for line in [dissect::call(bytes), dissect::reply(bytes, procedure)] {
        assert!(line.len() <= dissect::LINE_LEN_MAX + "...".len());
        assert!(line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
    }
}

/// Decodes the arguments of a procedure and takes them back and forth.
///
/// # Errors
/// When the bytes are no such arguments.
pub fn round_trip_args(procedure: Procedure, bytes: &[u8]) -> Result<(), DecodeError> {
    let encoded = OnceCell::new();
    visit_args(procedure, &mut Reader::new(bytes), RoundTrip(&encoded))
}

/// Decodes the results of a procedure and takes them back and forth.
///
/// # Errors
/// When the bytes are no such results.
pub fn round_trip_results(procedure: Procedure, bytes: &[u8]) -> Result<(), DecodeError> {
    let encoded = OnceCell::new();
    visit_results(procedure, &mut Reader::new(bytes), RoundTrip(&encoded))
}

/// The byte that chooses this procedure in the inputs of [`decode_reply`] and [`dissect()`].
pub fn choice_of(procedure: Procedure) -> u8 {
    (0..=u8::MAX).find(|&choice| chosen_procedure(choice) == procedure).unwrap_or(u8::MAX)
}

/// The procedure that a byte chooses, in these inputs and in others.
pub fn chosen_procedure(choice: u8) -> Procedure {
    let chosen = Procedure::known().nth(usize::from(choice));
    chosen.unwrap_or_else(|| Procedure::of(0, 0, u32::from(choice)))
}

/// Where the encoding stays while the value that borrows from it is compared.
struct RoundTrip<'a>(&'a OnceCell<Vec<u8>>);

impl<'a> Visit<'a> for RoundTrip<'a> {
    fn visit<T>(
        self,
        r: &mut Reader<'a>,
        decode: fn(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<(), DecodeError>
    where
        T: Debug + Decode<'a> + Encode + PartialEq,
    {
        round_trip(r, self.0, decode)
    }
}

fn round_trip<'a, T>(
    r: &mut Reader<'a>,
    encoded: &'a OnceCell<Vec<u8>>,
    decode: fn(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<(), DecodeError>
where
    T: Debug + Decode<'a> + Encode + PartialEq,
{
    let start = r.at();
    let value = decode(r)?;
    let encoded = encoded.get_or_init(|| value.to_bytes());
    assert_eq!(encoded.len(), r.at() - start, "length of {value:?}");
    assert_eq!(from_bytes(encoded), Ok(value));
    Ok(())
}

/// The records of a stream that comes in `chunks`, and the error that ends it, if one does.
fn records<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Result<(), RecordError>) {
    let mut deframer = Deframer::new(RECORD_LEN_MAX);
    let mut records = Vec::new();
    for mut chunk in chunks {
        loop {
            match deframer.feed(&mut chunk) {
                Ok(Some(record)) => records.push(record),
                Ok(None) => break,
                Err(error) => return (records, Err(error)),
            }
        }
    }
    (records, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_procedure_has_a_byte_that_chooses_it() {
        for procedure in Procedure::known() {
            assert_eq!(chosen_procedure(choice_of(procedure)), procedure);
        }
        assert_eq!(choice_of(Procedure::Portmap(crate::portmap::Procedure::Callit)), 33);
    }
}
