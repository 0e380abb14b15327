//! Portmapper version 2 for the programs served here, so that a client needs no rpcbind
//! (RFC 1833 section 3).
//!
//! What is served is known from the start: SET and UNSET change nothing and say so. CALLIT is not
//! served (PROC_UNAVAIL): it would let strangers send calls in our name.

use wire::portmap::{Done, DumpReply, Mapping, PROTOCOL_TCP, PROTOCOL_UDP, Port, Procedure};
use wire::xdr::{self, DecodeError, Encode, Void};

/// Program and version of everything the engine serves.
pub(crate) const PROGRAMS: [(u32, u32); 3] = [
    (wire::portmap::PROGRAM, wire::portmap::VERSION),
    (wire::nfs3::PROGRAM, wire::nfs3::VERSION),
    (wire::mount::PROGRAM, wire::mount::VERSION),
];

/// Where the engine's owner listens, for all programs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Endpoint {
    Tcp(u16),
    Udp(u16),
}

impl Endpoint {
    fn mapping(self, (program, version): (u32, u32)) -> Mapping {
        let (protocol, port) = match self {
            Self::Tcp(port) => (PROTOCOL_TCP, port),
            Self::Udp(port) => (PROTOCOL_UDP, port),
        };
        Mapping { program, version, protocol, port: u32::from(port) }
    }
}

/// Appends the results of a procedure other than NULL; `false` when it is not served.
pub(crate) fn serve(
    endpoints: &[Endpoint],
    procedure: Procedure,
    args: &[u8],
    head: &mut Vec<u8>,
) -> Result<bool, DecodeError> {
    match procedure {
        Procedure::Null => xdr::from_bytes::<Void>(args)?.encode(head),
        Procedure::Set | Procedure::Unset => {
            xdr::from_bytes::<Mapping>(args)?;
            Done { done: false }.encode(head);
        }
        Procedure::Getport => {
            let asked: Mapping = xdr::from_bytes(args)?;
            let port = port(endpoints, &asked);
            Port { port }.encode(head);
        }
        Procedure::Dump => {
            xdr::from_bytes::<Void>(args)?;
            let mappings = mappings(endpoints).collect();
            DumpReply { mappings }.encode(head);
        }
        Procedure::Callit => return Ok(false),
    }
    Ok(true)
}

fn mappings(endpoints: &[Endpoint]) -> impl Iterator<Item = Mapping> {
    PROGRAMS.iter().flat_map(|&program| endpoints.iter().map(move |at| at.mapping(program)))
}

/// The port of a program; of another version when that is all there is, so that the client hears
/// from the program itself which versions there are. 0 when it is not served over the protocol.
fn port(endpoints: &[Endpoint], asked: &Mapping) -> u32 {
    mappings(endpoints)
        .filter(|found| found.program == asked.program && found.protocol == asked.protocol)
        .map(|found| found.port)
        .next()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINTS: [Endpoint; 2] = [Endpoint::Tcp(2049), Endpoint::Udp(2050)];

    fn getport(program: u32, version: u32, protocol: u32) -> u32 {
        let asked = Mapping { program, version, protocol, port: 0 };
        let mut head = Vec::new();
        let args = asked.to_bytes();
        assert_eq!(serve(&ENDPOINTS, Procedure::Getport, &args, &mut head), Ok(true));
        xdr::from_bytes::<Port>(&head).unwrap().port
    }

    #[test]
    fn ports_are_those_of_the_protocol() {
        assert_eq!(getport(100_003, 3, PROTOCOL_TCP), 2049);
        assert_eq!(getport(100_005, 3, PROTOCOL_UDP), 2050);
        assert_eq!(getport(100_003, 4, PROTOCOL_TCP), 2049);
        assert_eq!(getport(100_021, 4, PROTOCOL_TCP), 0);
        assert_eq!(getport(100_003, 3, 99), 0);
    }

    #[test]
    fn all_programs_are_listed_for_all_endpoints() {
        let mut head = Vec::new();
        serve(&ENDPOINTS, Procedure::Dump, &[], &mut head).unwrap();
        let DumpReply { mappings } = xdr::from_bytes(&head).unwrap();
        assert_eq!(mappings.len(), 6);
        assert_eq!(mappings[3], ENDPOINTS[1].mapping((100_003, 3)));
    }

    #[test]
    fn registrations_are_refused_and_calls_not_forwarded() {
        let mapping = ENDPOINTS[0].mapping((1, 1)).to_bytes();
        let mut head = Vec::new();
        serve(&ENDPOINTS, Procedure::Set, &mapping, &mut head).unwrap();
        assert_eq!(xdr::from_bytes(&head), Ok(Done { done: false }));
        let callit = serve(&ENDPOINTS, Procedure::Callit, &[], &mut Vec::new());
        assert_eq!(callit, Ok(false));
        assert!(serve(&ENDPOINTS, Procedure::Set, &[0; 15], &mut head).is_err());
    }
}
