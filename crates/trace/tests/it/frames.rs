//! Packets and capture files by hand.

use std::io::Cursor;

use trace::capture::{Capture, Merged, Note};
use trace::{Analyzer, Filter, Transaction};
use wire::nfs3::{self, DirOp, FileHandle, StableHow};
use wire::record::Message;
use wire::rpc::{CallHeader, OpaqueAuth, ReplyHeader};
use wire::xdr::{Bulk, Encode};

/// A call of the client, or a reply of the server, by transaction number.
#[derive(Clone, Debug)]
pub(crate) enum Rpc {
    Write {
        xid: u32,
        bytes: u32,
    },
    Written {
        xid: u32,
        bytes: u32,
    },
    Lookup {
        xid: u32,
        name: String,
    },
    Found {
        xid: u32,
        handle: u32,
    },
    Null {
        xid: u32,
    },
    Nothing {
        xid: u32,
    },
    Commit {
        xid: u32,
    },
    Committed {
        xid: u32,
    },
    /// A WRITE is answered with an error.
    NotWritten {
        xid: u32,
        status: u32,
    },
}

pub(crate) fn handle(number: u32) -> FileHandle {
    FileHandle::new(&number.to_be_bytes()).unwrap()
}

fn call(xid: u32, procedure: nfs3::Procedure) -> Vec<u8> {
    let mut head = Vec::new();
    let credential = OpaqueAuth { flavor: 1, body: &[0; 20] };
    CallHeader::new(xid, wire::Procedure::Nfs3(procedure), credential).encode(&mut head);
    head
}

fn reply(xid: u32) -> Vec<u8> {
    let mut head = Vec::new();
    ReplyHeader::success(xid).encode(&mut head);
    head
}

impl Rpc {
    pub(crate) fn is_call(&self) -> bool {
        matches!(
            self,
            Self::Write { .. } | Self::Lookup { .. } | Self::Null { .. } | Self::Commit { .. }
        )
    }

    /// The message, without a mark.
    pub(crate) fn message(&self) -> Vec<u8> {
        match self {
            Self::Write { xid, bytes } => {
                // Data that look like marks and messages.
                let data = [0x80, 0, 0, 100, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
                let data: Vec<u8> = data.into_iter().cycle().take(*bytes as usize).collect();
                let mut head = call(*xid, nfs3::Procedure::Write);
                let args = nfs3::write::Args {
                    file: handle(1),
                    offset: 0,
                    count: *bytes,
                    stable: StableHow::FileSync,
                    data: &data,
                };
                args.encode_head(&mut head);
                Message { head, payload: data.into() }.to_vec()
            }
            Self::Written { xid, bytes } => {
                let mut head = reply(*xid);
                let ok = nfs3::write::ReplyOk {
                    file_wcc: nfs3::WccData::default(),
                    count: *bytes,
                    committed: StableHow::FileSync,
                    verf: [0; 8],
                };
                nfs3::write::Reply::Ok(ok).encode(&mut head);
                head
            }
            Self::Lookup { xid, name } => {
                let mut head = call(*xid, nfs3::Procedure::Lookup);
                let what = DirOp { dir: handle(0), name: name.as_bytes() };
                nfs3::lookup::Args { what }.encode(&mut head);
                head
            }
            Self::Found { xid, handle: number } => {
                let mut head = reply(*xid);
                let ok = nfs3::lookup::ReplyOk {
                    object: handle(*number),
                    obj_attributes: None,
                    dir_attributes: None,
                };
                nfs3::lookup::Reply::Ok(ok).encode(&mut head);
                head
            }
            Self::Null { xid } => call(*xid, nfs3::Procedure::Null),
            Self::Nothing { xid } => reply(*xid),
            Self::Commit { xid } => {
                let mut head = call(*xid, nfs3::Procedure::Commit);
                nfs3::commit::Args { file: handle(1), offset: 0, count: 0 }.encode(&mut head);
                head
            }
            // A status, no attributes.
            Self::NotWritten { xid, status } => {
                [reply(*xid), status.to_be_bytes().to_vec(), vec![0; 8]].concat()
            }
            // A status, no attributes, a verifier.
            Self::Committed { xid } => [reply(*xid), vec![0; 20]].concat(),
        }
    }

    /// The message with its mark.
    pub(crate) fn record(&self) -> Vec<u8> {
        record(self.message())
    }
}

/// A message with its mark.
pub(crate) fn record(message: Vec<u8>) -> Vec<u8> {
    let message = Message::new(message);
    [&message.marker()[..], &message.head].concat()
}

/// An IPv4 packet around what `protocol` carries.
pub(crate) fn ipv4(protocol: u8, from_client: bool, carried: &[u8]) -> Vec<u8> {
    fragment4(protocol, from_client, carried, 0, false)
}

/// A fragment at `offset`, with more to follow or not.
pub(crate) fn fragment4(
    protocol: u8,
    from_client: bool,
    carried: &[u8],
    offset: u16,
    more: bool,
) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0];
    let total = u16::try_from(20 + carried.len()).unwrap();
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    ip[6..8].copy_from_slice(&((offset / 8) | u16::from(more) << 13).to_be_bytes());
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let (own, peer) = if from_client { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    ip.extend(own);
    ip.extend(peer);
    ip.extend(carried);
    ip
}

/// The ports of an end and its peer.
fn ports(from_client: bool) -> [u8; 4] {
    let (own, peer) = if from_client { (900_u16, 2049_u16) } else { (2049, 900) };
    let ([a, b], [c, d]) = (own.to_be_bytes(), peer.to_be_bytes());
    [a, b, c, d]
}

pub(crate) fn udp(from_client: bool, payload: &[u8]) -> Vec<u8> {
    let mut udp = ports(from_client).to_vec();
    udp.extend(u16::try_from(8 + payload.len()).unwrap().to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    udp
}

pub(crate) fn tcp(from_client: bool, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    tcp_with(from_client, seq, ack, 0xffff, payload)
}

pub(crate) fn tcp_with(
    from_client: bool,
    seq: u32,
    ack: u32,
    window: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut tcp = ports(from_client).to_vec();
    tcp.extend(seq.to_be_bytes());
    tcp.extend(ack.to_be_bytes());
    tcp.extend([0x50, 0x10]);
    tcp.extend(window.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(payload);
    tcp
}

/// A file of pcap with these packets, a microsecond apart; those longer than `snap` cut off.
pub(crate) fn pcap(link: u32, packets: &[Vec<u8>], snap: usize) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    file.extend(link.to_le_bytes());
    for (at, packet) in (1_u32..).zip(packets) {
        let captured = &packet[..packet.len().min(snap)];
        file.extend(1_000_u32.to_le_bytes());
        file.extend(at.to_le_bytes());
        file.extend(u32::try_from(captured.len()).unwrap().to_le_bytes());
        file.extend(u32::try_from(packet.len()).unwrap().to_le_bytes());
        file.extend(captured);
    }
    file
}

/// A file of pcap with nanoseconds, of packets that begin with their IP header, at these times.
pub(crate) fn pcap_at(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    pcap_of(RAW, packets)
}

/// The same of another link type.
pub(crate) fn pcap_of(link: u32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    file.extend(link.to_le_bytes());
    for (at_ns, packet) in packets {
        let len = packet.len() as u64;
        for word in [1_000 + at_ns / 1_000_000_000, at_ns % 1_000_000_000, len, len] {
            file.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// What was found in a capture.
pub(crate) struct Found {
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) paths: Vec<String>,
    pub(crate) notes: Vec<Note>,
    pub(crate) analyzer: Analyzer,
}

pub(crate) fn analyze(file: Vec<u8>) -> Found {
    analyze_all([file])
}

/// Several files as one.
pub(crate) fn analyze_all(files: impl IntoIterator<Item = Vec<u8>>) -> Found {
    let open = |file| Capture::open("a file", Box::new(Cursor::new(file))).unwrap();
    let mut merged = Merged::new(files.into_iter().map(open).collect()).unwrap();
    let mut analyzer = Analyzer::new(Filter::default());
    let (mut transactions, mut paths) = (Vec::new(), Vec::new());
    while let Some(packet) = merged.next_packet().unwrap() {
        analyzer.packet(&packet, &mut |transaction, files, _| {
            transactions.push(*transaction);
            paths.push(files.path(transaction.file));
        });
    }
    analyzer.end();
    Found { transactions, paths, notes: merged.notes(), analyzer }
}

/// The link type of packets that begin with their IP header.
pub(crate) const RAW: u32 = 101;
/// No packet is longer.
pub(crate) const WHOLE: usize = 1 << 18;
