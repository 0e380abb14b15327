//! Which types are the arguments and results of which procedure: the one table of all messages.

use std::fmt::Debug;

use crate::show::{Line, Show};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Void};
use crate::{Procedure, mount, nfs2, nfs3, nlm, portmap, rpcbind};

/// Something to do with a message, whatever its type.
pub(crate) trait Visit<'a> {
    /// Decodes one message from `r` with `decode` and does something with it.
    fn visit<T>(
        self,
        r: &mut Reader<'a>,
        decode: fn(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<(), DecodeError>
    where
        T: Debug + Decode<'a> + Encode + PartialEq + Show;
}

/// Visits the arguments of `procedure`.
pub(crate) fn visit_args<'a>(
    procedure: Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    match procedure {
        Procedure::Nfs2(procedure) => visit_nfs2_args(procedure, r, visitor),
        Procedure::Nfs3(procedure) => visit_nfs3_args(procedure, r, visitor),
        Procedure::Mount1(procedure) | Procedure::Mount(procedure) => {
            visit_mount_args(procedure, r, visitor)
        }
        Procedure::Portmap(procedure) => visit_portmap_args(procedure, r, visitor),
        Procedure::Rpcbind3(procedure) | Procedure::Rpcbind4(procedure) => {
            visit_rpcbind_args(procedure, r, visitor)
        }
        Procedure::Nlm1(procedure) | Procedure::Nlm3(procedure) | Procedure::Nlm4(procedure) => {
            visit_nlm_args(procedure, r, visitor)
        }
        Procedure::Unknown { .. } => visitor.visit(r, Rest::decode),
    }
}

/// Whether `bytes` are the arguments of `procedure`, no more and no less.
///
/// # Errors
/// As [`from_bytes`](crate::xdr::from_bytes) of them.
pub fn check_args(procedure: Procedure, bytes: &[u8]) -> Result<(), DecodeError> {
    let mut r = Reader::new(bytes);
    visit_args(procedure, &mut r, Decoded).map_err(|error| error.in_field("value"))?;
    r.finish()
}

/// It is to be decoded, and no more.
struct Decoded;

impl<'a> Visit<'a> for Decoded {
    fn visit<T>(
        self,
        r: &mut Reader<'a>,
        decode: fn(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<(), DecodeError> {
        decode(r).map(drop)
    }
}

/// Visits the results of `procedure`.
pub(crate) fn visit_results<'a>(
    procedure: Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    match procedure {
        Procedure::Nfs2(procedure) => visit_nfs2_results(procedure, r, visitor),
        Procedure::Nfs3(procedure) => visit_nfs3_results(procedure, r, visitor),
        Procedure::Mount1(mount::Procedure::Mnt) => visitor.visit(r, mount::MntReply1::decode),
        Procedure::Mount1(procedure) | Procedure::Mount(procedure) => {
            visit_mount_results(procedure, r, visitor)
        }
        Procedure::Portmap(procedure) => visit_portmap_results(procedure, r, visitor),
        Procedure::Rpcbind3(procedure) | Procedure::Rpcbind4(procedure) => {
            visit_rpcbind_results(procedure, r, visitor)
        }
        Procedure::Nlm1(procedure) | Procedure::Nlm3(procedure) | Procedure::Nlm4(procedure) => {
            visit_nlm_results(procedure, r, visitor)
        }
        Procedure::Unknown { .. } => visitor.visit(r, Rest::decode),
    }
}

/// A function that visits the message each procedure of a program has.
macro_rules! visits {
    ($name:ident($procedure:ty) { $($($case:ident)|+ => $($message:ident)::+,)* }) => {
        fn $name<'a>(
            procedure: $procedure,
            r: &mut Reader<'a>,
            visitor: impl Visit<'a>,
        ) -> Result<(), DecodeError> {
            type P = $procedure;
            match procedure {
                $($(P::$case)|+ => visitor.visit(r, $($message)::+::decode),)*
            }
        }
    };
}

macro_rules! visits_nfs2 {
    ($($name:ident $module:ident = $code:literal $text:literal,)*) => {
        visits! { visit_nfs2_args(nfs2::Procedure) { $($name => nfs2::$module::Args,)* } }
        visits! { visit_nfs2_results(nfs2::Procedure) { $($name => nfs2::$module::Reply,)* } }
    };
}
nfs2::for_each_procedure!(visits_nfs2);

macro_rules! visits_nfs3 {
    ($($name:ident $module:ident = $code:literal $text:literal,)*) => {
        visits! { visit_nfs3_args(nfs3::Procedure) { $($name => nfs3::$module::Args,)* } }
        visits! { visit_nfs3_results(nfs3::Procedure) { $($name => nfs3::$module::Reply,)* } }
    };
}
nfs3::for_each_procedure!(visits_nfs3);

visits! {
    visit_mount_args(mount::Procedure) {
        Null | Dump | Umntall | Export => Void,
        Mnt | Umnt => mount::DirPath,
    }
}

visits! {
    visit_mount_results(mount::Procedure) {
        Null | Umnt | Umntall => Void,
        Mnt => mount::MntReply,
        Dump => mount::DumpReply,
        Export => mount::ExportReply,
    }
}

visits! {
    visit_portmap_args(portmap::Procedure) {
        Null | Dump => Void,
        Set | Unset | Getport => portmap::Mapping,
        Callit => portmap::CallitArgs,
    }
}

visits! {
    visit_portmap_results(portmap::Procedure) {
        Null => Void,
        Set | Unset => portmap::Done,
        Getport => portmap::Port,
        Dump => portmap::DumpReply,
        Callit => portmap::CallitReply,
    }
}

visits! {
    visit_rpcbind_args(rpcbind::Procedure) {
        Null | Dump | Gettime | Getstat => Void,
        Set | Unset | Getaddr | Getversaddr | Getaddrlist => rpcbind::Rpcb,
        Uaddr2taddr => rpcbind::Uaddr,
        Taddr2uaddr => rpcbind::Netbuf,
        Bcast | Indirect => portmap::CallitArgs,
    }
}

visits! {
    visit_rpcbind_results(rpcbind::Procedure) {
        Null => Void,
        Set | Unset => portmap::Done,
        Getaddr | Getversaddr | Taddr2uaddr => rpcbind::Uaddr,
        Dump => rpcbind::DumpReply,
        Gettime => rpcbind::Seconds,
        Uaddr2taddr => rpcbind::Netbuf,
        Bcast | Indirect | Getaddrlist | Getstat => Rest,
    }
}

visits! {
    visit_nlm_args(nlm::Procedure) {
        Null => Void,
        FreeAll => Rest,
        Test | Lock | Cancel | Unlock | Granted | TestMsg | LockMsg | CancelMsg | UnlockMsg
        | GrantedMsg | TestRes | LockRes | CancelRes | UnlockRes | GrantedRes | Share | Unshare
        | NmLock => nlm::Cookied,
    }
}

visits! {
    visit_nlm_results(nlm::Procedure) {
        Null | TestMsg | LockMsg | CancelMsg | UnlockMsg | GrantedMsg | TestRes | LockRes
        | CancelRes | UnlockRes | GrantedRes | FreeAll => Void,
        Test => nlm::Cookied,
        Lock | Cancel | Unlock | Granted | NmLock => nlm::Reply,
        Share | Unshare => nlm::ShareReply,
    }
}

/// Arguments or results of a procedure we do not know, or do not look into: whatever is left.
#[derive(Debug, Eq, PartialEq)]
struct Rest<'a> {
    bytes: &'a [u8],
}

impl Encode for Rest<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes);
    }
}

impl<'a> Decode<'a> for Rest<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let bytes = r.take(r.rest().len())?;
        Ok(Self { bytes })
    }
}

impl Show for Rest<'_> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        line.payload("data", self.bytes);
    }
}
