//! The portmapper's version 2 for the programs that are served here (RFC 1833 section 3). It is
//! answered on the server's own port; SET and UNSET are refused.

use wire::portmap::{Done, DumpReply, Mapping, PROTOCOL_TCP, Port, Procedure};
use wire::record::Message;
use wire::rpc::AcceptStatus;
use wire::xdr::{Encode, Reader, Void};
use wire::{mount, nfs3, portmap};

use crate::engine::garbage;
use crate::proc3::arguments;

pub(crate) fn call(
    port: u16,
    procedure: u32,
    reader: Reader<'_>,
    mut head: Vec<u8>,
) -> Result<Message, AcceptStatus> {
    let mapping = |program, version| Mapping {
        program,
        version,
        protocol: PROTOCOL_TCP,
        port: u32::from(port),
    };
    let served = [
        mapping(portmap::PROGRAM, portmap::VERSION),
        mapping(mount::PROGRAM, mount::VERSION),
        mapping(nfs3::PROGRAM, nfs3::VERSION),
    ];
    match Procedure::from_code(procedure).ok_or(AcceptStatus::ProcUnavail)? {
        Procedure::Null => {}
        Procedure::Set | Procedure::Unset => {
            arguments::<Mapping>(reader).map_err(garbage)?;
            Done { done: false }.encode(&mut head);
        }
        Procedure::Getport => {
            let asked: Mapping = arguments(reader).map_err(garbage)?;
            let found = served.iter().find(|served| Mapping { port: served.port, ..asked } == **served);
            Port { port: found.map_or(0, |found| found.port) }.encode(&mut head);
        }
        Procedure::Dump => {
            arguments::<Void>(reader).map_err(garbage)?;
            DumpReply { mappings: served.into_iter().collect() }.encode(&mut head);
        }
        // It is UDP only, and a well-known amplifier of attacks.
        Procedure::Callit => return Err(AcceptStatus::ProcUnavail),
    }
    Ok(Message::new(head))
}
