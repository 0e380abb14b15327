//! NFS version 2 behind the types of version 3: what [`Session`] does over an old server.
//!
//! What version 2 cannot express is sent as well as it can be:
//!
//! | version 3 | here |
//! |---|---|
//! | ACCESS | from the mode that GETATTR gives, and the caller's ids |
//! | CREATE guarded, exclusive | EXIST if LOOKUP finds something; others may come between |
//! | SETATTR with a guard | GETATTR before it; others may come between |
//! | MKNOD | CREATE with the type in the mode and the device as the size |
//! | READDIRPLUS | READDIR |
//! | WRITE unstable, COMMIT | every WRITE is stable; the verifier never changes |
//! | attributes before and after | after, where version 2 gives them; never before |
//! | FSINFO, PATHCONF | the protocol's own limits, the server is not queried |
//!
//! Sizes and offsets have 32 bits: what lies beyond is NFS3ERR_FBIG, without a call.

mod ops;
mod types;

use bytes::Bytes;
use net::call::{Answer, Target};
use net::error::CallError;
use wire::nfs2::{self, DirOp, FHandle, HANDLE_LEN, NfsStat2, Procedure};
use wire::nfs3::{FileHandle, NfsStat3};
use wire::xdr::{Decode, DecodeError, Encode, from_bytes};

use crate::error::{Detail, Error};
use crate::session::Session;

/// A session whose server speaks version 2.
pub(crate) struct V2<'a>(pub(crate) &'a Session);

impl V2<'_> {
    async fn call(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Vec<u8>),
        payload: Bytes,
    ) -> Result<Answer, Error> {
        self.0.call_at(target(procedure), procedure.name(), encode, payload, None).await
    }

    async fn send(&self, procedure: Procedure, args: &impl Encode) -> Result<Answer, Error> {
        self.call(procedure, |out| args.encode(out), Bytes::new()).await
    }

    /// Calls a procedure whose results borrow nothing.
    async fn ask<T>(&self, procedure: Procedure, args: &impl Encode) -> Result<T, Error>
    where
        T: for<'d> Decode<'d>,
    {
        let answer = self.send(procedure, args).await?;
        self.unwrap(procedure, from_bytes::<Result<T, NfsStat2>>(&answer.results()))
    }

    fn unwrap<T>(
        &self,
        procedure: Procedure,
        decoded: Result<Result<T, NfsStat2>, DecodeError>,
    ) -> Result<T, Error> {
        match decoded {
            Ok(Ok(ok)) => Ok(ok),
            Ok(Err(status)) => Err(self.refused(procedure, types::status(status))),
            Err(cause) => Err(Error::Call {
                procedure: procedure.name(),
                server: self.0.server(),
                cause: CallError::Malformed(cause),
            }),
        }
    }

    fn refused(&self, procedure: Procedure, status: NfsStat3) -> Error {
        Error::Status {
            procedure: procedure.name(),
            server: self.0.server(),
            status,
            detail: Box::new(Detail::Nothing),
        }
    }

    /// The handle as version 2 has it; none other than its 32 bytes can have come from there.
    fn handle(&self, procedure: Procedure, handle: FileHandle) -> Result<FHandle, Error> {
        let bytes: Option<[u8; HANDLE_LEN]> = handle.as_bytes().try_into().ok();
        bytes.map(FHandle).ok_or_else(|| self.refused(procedure, NfsStat3::BadHandle))
    }

    fn entry<'n>(
        &self,
        procedure: Procedure,
        dir: FileHandle,
        name: &'n [u8],
    ) -> Result<DirOp<'n>, Error> {
        Ok(DirOp { dir: self.handle(procedure, dir)?, name })
    }

    /// A number of 64 bits in the 32 there are.
    fn narrow(&self, procedure: Procedure, number: u64) -> Result<u32, Error> {
        u32::try_from(number).map_err(|_| self.refused(procedure, NfsStat3::FBig))
    }
}

fn target(procedure: Procedure) -> Target {
    let (program, version) = (nfs2::PROGRAM, nfs2::VERSION);
    Target { program, version, procedure: procedure.code() }
}
