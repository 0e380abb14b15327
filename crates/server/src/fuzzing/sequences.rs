//! Random sequences of procedures that mean something: arbitrary bytes choose procedures of every
//! program and fill their arguments with handles that there are, names that may be, and numbers
//! from the edges. What raw bytes seldom hit, these hit all the time.

use wire::nfs2::FHandle;
use wire::nfs3::FileHandle;
use wire::rpc::{AcceptStatus, AuthSys, CallHeader, Gids, OpaqueAuth, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader, put_len};
use wire::{Procedure, mount, nfs2, nfs3, nlm, portmap, rpcbind};

use crate::Engine;
use crate::store::mem::MemStore;

/// Calls of one sequence.
const CALLS_MAX: usize = 200;

/// Handles that are remembered; a new one takes the place of an old one.
const HANDLES_MAX: usize = 16;

const NAMES: [&[u8]; 16] = [
    b"f",
    b"d",
    b"s",
    b"new",
    b"other",
    b"",
    b".",
    b"..",
    b"a/b",
    b"a\0b",
    b"/",
    b"n",
    b"\xff",
    b"name",
    &[b'l'; 255],
    &[b'l'; 256],
];

const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    3,
    100,
    512,
    4096,
    8192,
    8193,
    0x7fff_ffff,
    0x8000_0000,
    0xbfff_ffff,
    0xffff_fffe,
    0xffff_ffff,
    1 << 32,
    u64::MAX >> 1,
];

const TEXTS: [&[u8]; 6] = [b"tcp", b"udp6", b"", b"10.0.0.7.8.1", b"::1.0.111", b"nonsense"];

/// What a procedure's arguments consist of, one letter each; see [`Sequence::argument`].
const fn arguments2(procedure: nfs2::Procedure) -> &'static str {
    use nfs2::Procedure as P;
    match procedure {
        P::Null | P::Root | P::Writecache => "",
        P::Getattr | P::Readlink | P::Statfs => "h",
        P::Setattr => "ha",
        P::Lookup | P::Remove | P::Rmdir => "hn",
        P::Read => "huuu",
        P::Write => "huuud",
        P::Create | P::Mkdir => "hna",
        P::Rename => "hnhn",
        P::Link => "hhn",
        P::Symlink => "hnna",
        P::Readdir => "huu",
    }
}

const fn arguments3(procedure: nfs3::Procedure) -> &'static str {
    use nfs3::Procedure as P;
    match procedure {
        P::Null => "",
        P::Getattr | P::Readlink | P::Fsstat | P::Fsinfo | P::Pathconf => "H",
        P::Setattr => "HA0",
        P::Lookup | P::Remove | P::Rmdir => "Hn",
        P::Access => "Hu",
        P::Read | P::Commit => "HUu",
        P::Write => "HUW",
        P::Create => "HnCA",
        P::Mkdir => "HnA",
        P::Symlink => "HnAn",
        P::Mknod => "HnTA",
        P::Rename => "HnHn",
        P::Link => "HHn",
        P::Readdir => "HUVu",
        P::Readdirplus => "HUVuu",
    }
}

const fn arguments(procedure: Procedure) -> &'static str {
    match procedure {
        Procedure::Nfs2(procedure) => arguments2(procedure),
        Procedure::Nfs3(procedure) => arguments3(procedure),
        Procedure::Mount1(procedure) | Procedure::Mount(procedure) => match procedure {
            mount::Procedure::Mnt | mount::Procedure::Umnt => "P",
            _ => "",
        },
        Procedure::Portmap(procedure) => match procedure {
            portmap::Procedure::Null | portmap::Procedure::Dump => "",
            portmap::Procedure::Callit => "uuut",
            _ => "uuuu",
        },
        Procedure::Rpcbind3(procedure) | Procedure::Rpcbind4(procedure) => match procedure {
            rpcbind::Procedure::Uaddr2taddr => "t",
            rpcbind::Procedure::Taddr2uaddr => "ut",
            rpcbind::Procedure::Null
            | rpcbind::Procedure::Dump
            | rpcbind::Procedure::Gettime
            | rpcbind::Procedure::Getstat => "",
            _ => "puttt",
        },
        Procedure::Nlm1(procedure) | Procedure::Nlm3(procedure) | Procedure::Nlm4(procedure) => {
            match procedure {
                nlm::Procedure::Null => "",
                _ => "tt",
            }
        }
        Procedure::Unknown { .. } => "",
    }
}

/// Makes calls of arbitrary bytes.
pub(super) struct Sequence<'a> {
    bytes: &'a [u8],
    two: Vec<FHandle>,
    three: Vec<FileHandle>,
}

/// Calls the engine as the bytes say.
///
/// # Panics
/// As `serve` does, which is given each call, and returns its reply.
pub(super) fn run(
    engine: &Engine<MemStore>,
    bytes: &[u8],
    serve: impl Fn(&[u8]) -> Option<Vec<u8>>,
) {
    let three = vec![engine.root()];
    let mut sequence = Sequence { bytes, two: vec![FHandle([0; 32])], three };
    let root = Procedure::Mount1(mount::Procedure::Mnt);
    let mut next = Some((root, call(root, &b"/".as_slice().to_bytes())));
    for _ in 0..CALLS_MAX {
        let Some((procedure, record)) = next else { return };
        if let Some(reply) = serve(&record) {
            sequence.learn(procedure, &reply);
        }
        next = sequence.next_call();
    }
}

fn call(procedure: Procedure, args: &[u8]) -> Vec<u8> {
    let gids = Gids::new(&[4]).unwrap_or_default();
    let sys = AuthSys { stamp: 1, machine_name: b"fuzz", uid: 0, gid: 0, gids }.to_bytes();
    let header = CallHeader::new(7, procedure, OpaqueAuth::sys(&sys));
    [&header.to_bytes()[..], args].concat()
}

impl Sequence<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        byte
    }

    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    fn next_call(&mut self) -> Option<(Procedure, Vec<u8>)> {
        if self.bytes.is_empty() {
            return None;
        }
        let procedure = wire::fuzzing::chosen_procedure(self.byte());
        let mut args = Vec::new();
        for letter in arguments(procedure).bytes() {
            self.argument(letter, &mut args);
        }
        Some((procedure, call(procedure, &args)))
    }

    /// Appends one argument: a handle of version 2 (`h`) or 3 (`H`), a name (`n`), a path (`P`), a
    /// text (`t`), data (`d`), a number of 32 (`u`) or 64 bits (`U`), a program (`p`), attributes
    /// of version 2 (`a`) or 3 (`A`), no guard (`0`), what WRITE has behind its offset (`W`), how
    /// to create (`C`), a type (`T`), a verifier (`V`).
    fn argument(&mut self, letter: u8, args: &mut Vec<u8>) {
        match letter {
            b'h' => self.choose(&self.two.clone()).encode(args),
            b'H' => self.choose(&self.three.clone()).encode(args),
            b'n' => self.choose(&NAMES).encode(args),
            b'P' => [&b"/"[..], self.choose(&NAMES)].concat().as_slice().encode(args),
            b't' => self.choose(&TEXTS).encode(args),
            b'd' => {
                let len = usize::from(self.byte()) * 33; // up to more than 8 KiB
                put_len(args, len);
                args.resize(args.len() + len.next_multiple_of(4), 0x55);
            }
            b'u' => self.number32().encode(args),
            b'U' => self.choose(&NUMBERS).encode(args),
            b'p' => self.choose(&[100_000_u32, 100_003, 100_005, 100_021]).encode(args),
            b'a' => (0..8).for_each(|_| self.attribute().encode(args)),
            b'A' => {
                for _ in 0..3 {
                    self.choose(&[None, Some(0o644_u32), Some(0)]).encode(args);
                }
                self.choose(&[None, Some(0), Some(5), Some(u64::MAX >> 1)]).encode(args);
                for _ in 0..2 {
                    self.choose(&[0_u32, 1]).encode(args);
                }
            }
            b'0' => false.encode(args),
            b'W' => {
                let len = u32::from(self.byte()) * 33;
                len.encode(args);
                self.choose(&[0_u32, 1, 2]).encode(args);
                vec![0x55_u8; len as usize].as_slice().encode(args);
            }
            b'C' => self.choose(&[0_u32, 1]).encode(args),
            b'T' => self.choose(&[6_u32, 7]).encode(args),
            _ => self.choose(&[[0; 8], [0xff; 8]]).encode(args),
        }
    }

    /// A number from the edges, or any.
    fn number32(&mut self) -> u32 {
        match self.byte() {
            0xff => u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()]),
            byte => {
                let number = NUMBERS[usize::from(byte) % NUMBERS.len()];
                u32::try_from(number).unwrap_or(u32::MAX)
            }
        }
    }

    /// A word of the attributes of version 2: mostly unchanged.
    fn attribute(&mut self) -> u32 {
        let some = [0o100_644, 0o010_600, 0o020_600, 0o060_600, 0o140_600, 0, 5, 1_000_000];
        match self.byte() {
            byte @ 0..8 => some[usize::from(byte)],
            _ => u32::MAX,
        }
    }

    /// Remembers the handles that a reply brings.
    fn learn(&mut self, procedure: Procedure, reply: &[u8]) {
        let mut r = Reader::new(reply);
        let Ok(ReplyHeader { body: ReplyBody::Accepted { status, .. }, .. }) =
            ReplyHeader::decode(&mut r)
        else {
            return;
        };
        use nfs2::Procedure as P2;
        use nfs3::Procedure as P3;
        // Only the data of version 2's WRITE may be more than there can be.
        let may_be_garbage = procedure == Procedure::Nfs2(P2::Write);
        assert!(status != AcceptStatus::GarbageArgs || may_be_garbage, "{procedure}");
        if status != AcceptStatus::Success || r.u32() != Ok(0) {
            return;
        }
        match procedure {
            Procedure::Nfs2(P2::Lookup | P2::Create | P2::Mkdir)
            | Procedure::Mount1(mount::Procedure::Mnt) => {
                let handle = FHandle::decode(&mut r);
                handle.into_iter().for_each(|handle| keep(&mut self.two, handle));
            }
            Procedure::Nfs3(P3::Lookup) => {
                let handle = FileHandle::decode(&mut r);
                handle.into_iter().for_each(|handle| keep(&mut self.three, handle));
            }
            Procedure::Nfs3(P3::Create | P3::Mkdir) => {
                let handle = Option::<FileHandle>::decode(&mut r).ok().flatten();
                handle.into_iter().for_each(|handle| keep(&mut self.three, handle));
            }
            _ => {}
        }
    }
}

fn keep<T: Copy + PartialEq>(handles: &mut Vec<T>, handle: T) {
    if handles.contains(&handle) {
        return;
    }
    if handles.len() == HANDLES_MAX {
        handles.remove(HANDLES_MAX / 2);
    }
    handles.push(handle);
}
