//! IPv4, IPv6 with its extension headers, TCP and UDP.

use etherparse::{
    IpNumber, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice,
    TcpHeaderSlice, TcpOptionElement, UdpHeaderSlice,
};

use super::fragments::{Fragment, Fragments, Key};
use super::{End, Place, Protocol, Segment, Sliced, TcpPart};

/// Extension headers that a packet may have.
const EXTENSIONS_MAX: usize = 16;

const DAMAGED: Sliced<'static> = Sliced::Other(super::link::DAMAGED);

/// When and where a packet was captured.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) ns: u64,
    pub(super) place: Place,
    pub(super) leaves: bool,
}

/// The addresses and what they carry.
#[derive(Clone, Copy)]
struct Carried<'a> {
    at: At,
    id: u16,
    hops: u8,
    from: End,
    to: End,
    protocol: IpNumber,
    /// What was captured, and how long it was.
    payload: &'a [u8],
    len: usize,
}

pub(super) fn v4<'a>(at: At, data: &'a [u8], fragments: &'a mut Fragments) -> Sliced<'a> {
    let Ok(header) = Ipv4HeaderSlice::from_slice(data) else { return DAMAGED };
    let header_len = header.slice().len();
    // Segments that the card is to cut have no length that 16 bits could hold.
    let total = match usize::from(header.total_len()) {
        0 => data.len(),
        total => total,
    };
    let Some(len) = total.checked_sub(header_len) else { return DAMAGED };
    let payload = &data[header_len..];
    let payload = &payload[..payload.len().min(len)];
    let (from, to) = (End::v4(header.source(), 0), End::v4(header.destination(), 0));
    let (id, hops, protocol) = (header.identification(), header.ttl(), header.protocol());
    let carried = Carried { at, id, hops, from, to, protocol, payload, len };
    if !header.is_fragmenting_payload() {
        return transport(carried);
    }
    let key = Key {
        from: from.address,
        to: to.address,
        id: u32::from(id),
        protocol: header.protocol().0,
    };
    let offset = u32::from(header.fragments_offset().value()) * 8;
    fragment(carried, key, offset, header.more_fragments(), fragments)
}

pub(super) fn v6<'a>(at: At, data: &'a [u8], fragments: &'a mut Fragments) -> Sliced<'a> {
    let Ok(header) = Ipv6HeaderSlice::from_slice(data) else { return DAMAGED };
    let rest = &data[header.slice().len()..];
    let mut len = match usize::from(header.payload_length()) {
        0 => rest.len(),
        len => len,
    };
    let mut payload = &rest[..rest.len().min(len)];
    let (from, to) = (End::v6(header.source(), 0), End::v6(header.destination(), 0));
    let mut protocol = header.next_header();
    let (id, hops) = (0, header.hop_limit());
    for _ in 0..EXTENSIONS_MAX {
        let header_len = match protocol {
            IpNumber::IPV6_HEADER_HOP_BY_HOP
            | IpNumber::IPV6_ROUTE_HEADER
            | IpNumber::IPV6_DESTINATION_OPTIONS => {
                let Ok(extension) = Ipv6RawExtHeaderSlice::from_slice(payload) else {
                    return DAMAGED;
                };
                protocol = extension.next_header();
                extension.slice().len()
            }
            IpNumber::IPV6_FRAGMENTATION_HEADER => {
                let Ok(extension) = Ipv6FragmentHeaderSlice::from_slice(payload) else {
                    return DAMAGED;
                };
                protocol = extension.next_header();
                let header_len = extension.slice().len();
                let Some(left) = len.checked_sub(header_len) else { return DAMAGED };
                (payload, len) = (&payload[header_len..], left);
                if !extension.is_fragmenting_payload() {
                    continue;
                }
                let key = Key {
                    from: from.address,
                    to: to.address,
                    id: extension.identification(),
                    protocol: protocol.0,
                };
                let carried = Carried { at, id, hops, from, to, protocol, payload, len };
                let offset = u32::from(extension.fragment_offset().value()) * 8;
                return fragment(carried, key, offset, extension.more_fragments(), fragments);
            }
            _ => return transport(Carried { at, id, hops, from, to, protocol, payload, len }),
        };
        let Some(left) = len.checked_sub(header_len) else { return DAMAGED };
        (payload, len) = (&payload[header_len..], left);
    }
    DAMAGED
}

fn fragment<'a>(
    carried: Carried<'a>,
    key: Key,
    offset: u32,
    more: bool,
    fragments: &'a mut Fragments,
) -> Sliced<'a> {
    let Carried { at, payload, len, .. } = carried;
    let part = Fragment { at_ns: at.ns, offset, more, payload, len };
    match fragments.add(key, part) {
        Some((payload, len)) => transport(Carried { payload, len, ..carried }),
        None => Sliced::Fragment,
    }
}

/// Bytes of the first block of a selective acknowledgement, where that is of what is acknowledged
/// already.
fn had(header: &TcpHeaderSlice<'_>) -> u32 {
    let ack = header.acknowledgment_number();
    let of = |option| match option {
        TcpOptionElement::SelectiveAcknowledgement((from, to), _)
            if ack.wrapping_sub(to) < 1 << 31 =>
        {
            Some(to.wrapping_sub(from))
        }
        _ => None,
    };
    header.options_iterator().flatten().find_map(of).unwrap_or(0)
}

fn transport(carried: Carried<'_>) -> Sliced<'_> {
    let Carried { at, id, hops, mut from, mut to, protocol, payload, len } = carried;
    let (protocol, header_len, len) = match protocol {
        IpNumber::TCP => {
            let Ok(header) = TcpHeaderSlice::from_slice(payload) else { return DAMAGED };
            (from.port, to.port) = (header.source_port(), header.destination_port());
            let part = TcpPart {
                seq: header.sequence_number(),
                ack: header.ack().then(|| header.acknowledgment_number()),
                window: header.window_size(),
                syn: header.syn(),
                fin: header.fin(),
                rst: header.rst(),
                had: had(&header),
            };
            (Protocol::Tcp(part), header.slice().len(), len)
        }
        IpNumber::UDP => {
            let Ok(header) = UdpHeaderSlice::from_slice(payload) else { return DAMAGED };
            (from.port, to.port) = (header.source_port(), header.destination_port());
            // Zero in jumbograms, and in what the card is to cut.
            let udp_len = usize::from(header.length());
            let len = if udp_len >= header.slice().len() { len.min(udp_len) } else { len };
            (Protocol::Udp, header.slice().len(), len)
        }
        IpNumber::ICMP | IpNumber::IPV6_ICMP => return Sliced::Other("ICMP"),
        _ => return Sliced::Other("other transports"),
    };
    let Some(len) = len.checked_sub(header_len) else { return DAMAGED };
    let payload = &payload[header_len..];
    let payload = &payload[..payload.len().min(len)];
    let Ok(len) = u32::try_from(len) else { return DAMAGED };
    let At { ns: at_ns, place, leaves } = at;
    Sliced::Segment(Segment { at_ns, place, leaves, id, hops, from, to, protocol, payload, len })
}
