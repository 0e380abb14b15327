//! XDR (RFC 4506): the two traits, and the rules for the types that everything is made of.
//!
//! | Rust | XDR |
//! |---|---|
//! | `u32`, `u64`, `bool` | unsigned int, unsigned hyper, bool |
//! | `[u8; N]` | fixed opaque |
//! | `&[u8]` | variable opaque or string, with a maximum stated where it is decoded |
//! | `Option<T>` | optional data (`bool` then `T`) |
//! | `Vec<T>` | variable array (count then elements) |
//! | [`List<T>`] | linked list (`TRUE` before each element, `FALSE` at the end) |
//! | `Result<T, F>` | union switched by a status whose 0 means `T` |
//! | [`Void`] | void |
//!
//! Two decisions: padding bytes are written as zeros, but when reading any value is let through,
//! as the kernels do (RFC 4506 section 3 asks the writer for zeros; refusing them helps nobody).
//! A boolean other than 0 and 1 is an error, because it means that the reader is out of step.

mod error;
mod list;
pub(crate) mod macros;
mod reader;

pub use error::{DecodeError, DecodeErrorKind};
pub use list::List;
pub use reader::Reader;

/// Reads itself from the front of a reader; borrows from the message for `'a`.
pub trait Decode<'a>: Sized {
    /// Consumes exactly the bytes of one value. After an error the reader's place is unspecified.
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// Appends itself to a buffer.
pub trait Encode {
    /// Appends the value's bytes; always a multiple of four.
    fn encode(&self, out: &mut Vec<u8>);

    /// The value's bytes in a new buffer.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

/// A message that ends with its bulk payload: WRITE arguments, a READ reply.
///
/// The sender encodes the head, and passes head and payload to the transport as two pieces
/// ([`crate::record::Message`]), so that the payload is never copied.
pub trait Bulk: Encode {
    /// Appends everything up to and including the length word of the payload.
    fn encode_head(&self, out: &mut Vec<u8>);

    /// The payload, without padding. Empty when the message carries none (a failure).
    fn payload(&self) -> &[u8];
}

/// Nothing: arguments or results of a procedure that has none.
pub type Void = ();

/// Decodes one value that must fill `bytes`.
///
/// # Errors
/// Whatever the value's decoder finds, and `Trailing` when bytes are left over.
pub fn from_bytes<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    let mut r = Reader::new(bytes);
    let value = r.field("value")?;
    r.finish()?;
    Ok(value)
}

/// Zero bytes that bring an opaque of `len` bytes to a multiple of four.
pub const fn padding(len: usize) -> &'static [u8] {
    match len % 4 {
        0 => &[],
        1 => &[0; 3],
        2 => &[0; 2],
        _ => &[0; 1],
    }
}

/// Bytes a variable opaque of `len` bytes takes: length word, bytes, padding.
pub const fn opaque_len(len: usize) -> usize {
    4 + len + padding(len).len()
}

/// Appends the length word of an opaque or array.
///
/// # Panics
/// When `len` does not fit 32 bits: nothing this program builds comes near.
pub fn put_len(out: &mut Vec<u8>, len: usize) {
    let Ok(len) = u32::try_from(len) else {
        panic!("an XDR length has 32 bits, got {len}");
    };
    len.encode(out);
}

/// Appends bytes and their padding, without a length word.
pub fn put_fixed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(padding(bytes.len()));
}

impl Encode for () {
    fn encode(&self, _out: &mut Vec<u8>) {}
}

impl Decode<'_> for () {
    fn decode(_r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl Encode for u32 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
}

impl Decode<'_> for u32 {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.u32()
    }
}

impl Encode for u64 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
}

impl Decode<'_> for u64 {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.u64()
    }
}

impl Encode for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }
}

impl Decode<'_> for bool {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = r.at();
        match r.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(DecodeErrorKind::BadBool { value }.at(at)),
        }
    }
}

impl<const N: usize> Encode for [u8; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        put_fixed(out, self);
    }
}

impl<const N: usize> Decode<'_> for [u8; N] {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array()
    }
}

impl Encode for &[u8] {
    fn encode(&self, out: &mut Vec<u8>) {
        put_len(out, self.len());
        put_fixed(out, self);
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match bool::decode(r)? {
            true => Ok(Some(T::decode(r)?)),
            false => Ok(None),
        }
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_len(out, self.len());
        for element in self {
            element.encode(out);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Vec<T> {
    /// Grows with the elements that are really there, never by the count a peer claims.
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = r.u32()?;
        let mut elements = Self::new();
        for _ in 0..count {
            elements.push(T::decode(r)?);
        }
        Ok(elements)
    }
}

/// The failure side begins with its own status word, which is never 0.
impl<T: Encode, F: Encode> Encode for Result<T, F> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Ok(value) => {
                0u32.encode(out);
                value.encode(out);
            }
            Err(failure) => failure.encode(out),
        }
    }
}

impl<T: Bulk, F: Encode> Bulk for Result<T, F> {
    fn encode_head(&self, out: &mut Vec<u8>) {
        match self {
            Ok(value) => {
                0u32.encode(out);
                value.encode_head(out);
            }
            Err(failure) => failure.encode(out),
        }
    }

    fn payload(&self) -> &[u8] {
        self.as_ref().map_or(&[], T::payload)
    }
}

impl<'a, T: Decode<'a>, F: Decode<'a>> Decode<'a> for Result<T, F> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match r.clone().u32().map_err(|e| e.in_field("status"))? {
            0 => {
                r.u32()?;
                Ok(Ok(T::decode(r)?))
            }
            _ => Ok(Err(F::decode(r)?)),
        }
    }
}
