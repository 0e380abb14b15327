//! Bytes to messages and back: XDR, ONC RPC, portmap and rpcbind, MOUNT, NFS v2 and v3. Pure. Of
//! NFS v4 the operations by name, and what a COMPOUND is for.
//!
//! ```text
//!   a TCP stream  --record-->  one record        (RFC 5531 section 11; UDP needs no record)
//!   one record    --rpc----->  header + the rest (RFC 5531)
//!   the rest      --nfs2, nfs3, mount, portmap, rpcbind-->  arguments or results
//!                                            (RFC 1094, 1813, 1833)
//! ```
//!
//! Every message is a plain struct or enum that implements [`xdr::Encode`] and [`xdr::Decode`].
//! Decoding borrows names and payloads from the received bytes and allocates only for lists
//! (directory entries, exports). Encoding appends to a `Vec`; the bulk payload of a WRITE call or
//! a READ reply may stay where it is, see [`xdr::Bulk`] and [`record::Message`].
//!
//! A WRITE, from arguments to bytes and back:
//!
//! ```
//! use bytes::Bytes;
//! use wire::nfs3::{self, FileHandle, StableHow, write};
//! use wire::record::{Deframer, Message};
//! use wire::rpc::{Call, CallHeader, OpaqueAuth};
//! use wire::xdr::{Bulk, Decode, Encode, Reader};
//!
//! let payload = Bytes::from_static(b"hello");
//! let args = write::Args {
//!     file: FileHandle::new(&[1, 2, 3, 4]).unwrap(),
//!     offset: 8192,
//!     count: 5,
//!     stable: StableHow::Unstable,
//!     data: &payload,
//! };
//! let procedure = wire::Procedure::Nfs3(nfs3::Procedure::Write);
//! let mut head = Vec::new();
//! CallHeader::new(7, procedure, OpaqueAuth::NONE).encode(&mut head);
//! args.encode_head(&mut head);
//! let message = Message { head, payload: payload.clone() }; // to be sent as a gather list
//!
//! let stream = [&message.marker()[..], &message.to_vec()].concat();
//! let record = Deframer::new(1 << 20).feed(&mut &stream[..]).unwrap().unwrap();
//! let mut r = Reader::new(&record);
//! let Ok(Call::Version2(header)) = Call::decode(&mut r) else { panic!() };
//! assert_eq!(header.procedure().name(), "WRITE");
//! assert_eq!(write::Args::decode(&mut r), Ok(args));
//! ```
//!
//! Nothing here opens a socket, looks at a clock, logs or decides. Whatever a peer sends, decoding
//! returns a value or a [`xdr::DecodeError`] that names the offset and the field.
//!
//! Start reading at [`nfs3::write`]: all procedures have the same form.

mod catalog;
pub mod dissect;
pub mod fuzzing;
pub mod mount;
pub mod nfs2;
pub mod nfs3;
pub mod nfs4;
pub mod nfsacl;
pub mod nlm;
pub mod nsm;
pub mod partial;
pub mod portmap;
pub mod procedure;
pub mod record;
pub mod rpc;
pub mod rpcbind;
pub mod show;
pub mod spray;
pub mod xdr;

#[cfg(test)]
mod testing;

pub use catalog::check_args;
pub use procedure::Procedure;
