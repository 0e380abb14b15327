//! Packets without a link layer, from a client's port 900 to a server's 2049 and back.

/// An IPv4 packet around `carried`; `offset` of its fragment counts in units of eight bytes.
pub(super) fn ip(
    protocol: u8,
    from_client: bool,
    (offset, more): (u16, bool),
    carried: &[u8],
) -> Vec<u8> {
    let total = u16::try_from(20 + carried.len()).unwrap_or(0).to_be_bytes();
    let fragment = (offset | (u16::from(more) << 13)).to_be_bytes();
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let (own, peer) = (ends[usize::from(!from_client)], ends[usize::from(from_client)]);
    let head = [0x45, 0, total[0], total[1], 0, 7, fragment[0], fragment[1], 64, protocol, 0, 0];
    [&head[..], &own, &peer, carried].concat()
}

/// The whole of a datagram.
pub(super) const WHOLE: (u16, bool) = (0, false);

const fn ports(from_client: bool) -> [u8; 4] {
    if from_client { [3, 132, 8, 1] } else { [8, 1, 3, 132] }
}

/// A datagram with its header of UDP, but not that of IP.
pub(super) fn udp(from_client: bool, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(8 + payload.len()).unwrap_or(0).to_be_bytes();
    [&ports(from_client)[..], &len, &[0; 2], payload].concat()
}

/// A segment with its headers.
pub(super) fn tcp(from_client: bool, is_syn: bool, seq: u32, payload: &[u8]) -> Vec<u8> {
    let rest = [0, 0, 0, 0, 0x50, if is_syn { 2 } else { 0 }, 1, 1, 0, 0, 0, 0];
    let carried = [&ports(from_client)[..], &seq.to_be_bytes(), &rest, payload].concat();
    ip(6, from_client, WHOLE, &carried)
}

/// The head of a call, up to its arguments.
pub(super) fn call(
    xid: u32,
    (program, version): (u32, u32),
    procedure: u32,
    auth: &[u8],
) -> Vec<u8> {
    let words = [xid, 0, 2, program, version, procedure];
    let head: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    [&head[..], auth].concat()
}

/// AUTH_NONE, as credential and as verifier.
pub(super) const NO_AUTH: [u8; 16] = [0; 16];
