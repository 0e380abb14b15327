//! Which types are the arguments and results of which procedure: the one table of all messages.

use std::fmt::Debug;

use crate::show::{Line, Show};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Void};
use crate::{Procedure, mount, nfs2, nfs3, portmap, rpcbind};

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
        Procedure::Unknown { .. } => visitor.visit(r, Rest::decode),
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
        Procedure::Unknown { .. } => visitor.visit(r, Rest::decode),
    }
}

fn visit_nfs2_args<'a>(
    procedure: nfs2::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    macro_rules! visit {
        ($($name:ident $module:ident,)*) => {
            match procedure {
                $(nfs2::Procedure::$name => visitor.visit(r, nfs2::$module::Args::decode),)*
            }
        };
    }
    nfs2::for_each_procedure!(visit)
}

fn visit_nfs2_results<'a>(
    procedure: nfs2::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    macro_rules! visit {
        ($($name:ident $module:ident,)*) => {
            match procedure {
                $(nfs2::Procedure::$name => visitor.visit(r, nfs2::$module::Reply::decode),)*
            }
        };
    }
    nfs2::for_each_procedure!(visit)
}

fn visit_nfs3_args<'a>(
    procedure: nfs3::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    macro_rules! visit {
        ($($name:ident $module:ident,)*) => {
            match procedure {
                $(nfs3::Procedure::$name => visitor.visit(r, nfs3::$module::Args::decode),)*
            }
        };
    }
    nfs3::for_each_procedure!(visit)
}

fn visit_nfs3_results<'a>(
    procedure: nfs3::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    macro_rules! visit {
        ($($name:ident $module:ident,)*) => {
            match procedure {
                $(nfs3::Procedure::$name => visitor.visit(r, nfs3::$module::Reply::decode),)*
            }
        };
    }
    nfs3::for_each_procedure!(visit)
}

fn visit_mount_args<'a>(
    procedure: mount::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    use mount::Procedure as P;
    match procedure {
        P::Null | P::Dump | P::Umntall | P::Export => visitor.visit(r, Void::decode),
        P::Mnt | P::Umnt => visitor.visit(r, mount::DirPath::decode),
    }
}

fn visit_mount_results<'a>(
    procedure: mount::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    use mount::Procedure as P;
    match procedure {
        P::Null | P::Umnt | P::Umntall => visitor.visit(r, Void::decode),
        P::Mnt => visitor.visit(r, mount::MntReply::decode),
        P::Dump => visitor.visit(r, mount::DumpReply::decode),
        P::Export => visitor.visit(r, mount::ExportReply::decode),
    }
}

fn visit_portmap_args<'a>(
    procedure: portmap::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    use portmap::Procedure as P;
    match procedure {
        P::Null | P::Dump => visitor.visit(r, Void::decode),
        P::Set | P::Unset | P::Getport => visitor.visit(r, portmap::Mapping::decode),
        P::Callit => visitor.visit(r, portmap::CallitArgs::decode),
    }
}

fn visit_portmap_results<'a>(
    procedure: portmap::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    use portmap::Procedure as P;
    match procedure {
        P::Null => visitor.visit(r, Void::decode),
        P::Set | P::Unset => visitor.visit(r, portmap::Done::decode),
        P::Getport => visitor.visit(r, portmap::Port::decode),
        P::Dump => visitor.visit(r, portmap::DumpReply::decode),
        P::Callit => visitor.visit(r, portmap::CallitReply::decode),
    }
}

fn visit_rpcbind_args<'a>(
    procedure: rpcbind::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    use rpcbind::Procedure as P;
    match procedure {
        P::Null | P::Dump | P::Gettime | P::Getstat => visitor.visit(r, Void::decode),
        P::Set | P::Unset | P::Getaddr | P::Getversaddr | P::Getaddrlist => {
            visitor.visit(r, rpcbind::Rpcb::decode)
        }
        P::Uaddr2taddr => visitor.visit(r, rpcbind::Uaddr::decode),
        P::Taddr2uaddr => visitor.visit(r, rpcbind::Netbuf::decode),
        P::Bcast | P::Indirect => visitor.visit(r, portmap::CallitArgs::decode),
    }
}

fn visit_rpcbind_results<'a>(
    procedure: rpcbind::Procedure,
    r: &mut Reader<'a>,
    visitor: impl Visit<'a>,
) -> Result<(), DecodeError> {
    use rpcbind::Procedure as P;
    match procedure {
        P::Null => visitor.visit(r, Void::decode),
        P::Set | P::Unset => visitor.visit(r, portmap::Done::decode),
        P::Getaddr | P::Getversaddr | P::Taddr2uaddr => visitor.visit(r, rpcbind::Uaddr::decode),
        P::Dump => visitor.visit(r, rpcbind::DumpReply::decode),
        P::Gettime => visitor.visit(r, rpcbind::Seconds::decode),
        P::Uaddr2taddr => visitor.visit(r, rpcbind::Netbuf::decode),
        P::Bcast | P::Indirect | P::Getaddrlist | P::Getstat => visitor.visit(r, Rest::decode),
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
