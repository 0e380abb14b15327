//! Bytes to messages and back: XDR, ONC RPC, portmap, MOUNT, NFS v3. Pure.
//!
//! ```text
//!   a TCP stream  --record-->  one record        (RFC 5531 section 11; UDP needs no record)
//!   one record    --rpc----->  header + the rest (RFC 5531)
//!   the rest      --nfs3, mount, portmap-->  arguments or results   (RFC 1813, 1833)
//! ```
//!
//! Every message is a plain struct or enum that implements [`xdr::Encode`] and [`xdr::Decode`].
//! Decoding borrows names and payloads from the received bytes and allocates only for lists
//! (directory entries, exports). Encoding appends to a `Vec`; the bulk payload of a WRITE call or
//! a READ reply may stay where it is, see [`xdr::Bulk`] and [`record::Message`].
//!
//! Nothing here opens a socket, looks at a clock, logs or decides. Whatever a peer sends, decoding
//! returns a value or a [`xdr::DecodeError`] that names the offset and the field.
//!
//! Start reading at [`nfs3::write`]: all procedures have the same form.

mod catalog;
pub mod dissect;
pub mod fuzzing;
pub mod mount;
pub mod nfs3;
pub mod portmap;
pub mod procedure;
pub mod record;
pub mod rpc;
pub mod xdr;

#[cfg(test)]
mod testing;

pub use procedure::Procedure;
