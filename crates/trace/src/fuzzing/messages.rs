//! Calls and their replies, of any bytes, and of any arguments and results behind good heads.

use wire::record::Fragment;

use super::frames::{NO_AUTH, WHOLE, call, ip, tcp, udp};
use super::{ended, take};
use crate::{Analyzer, Filter, HEAD_LEN};

/// Any bytes as messages over UDP: a call, and what answers it.
pub fn messages(input: &[u8]) {
    let Some((&len, rest)) = input.split_first() else { return };
    let (call, reply) = rest.split_at(usize::from(len).min(rest.len()));
    let mut analyzer = Analyzer::new(Filter::default());
    for (at_ns, from_client, message) in [(1, true, call), (2, false, reply)] {
        let data = ip(17, from_client, WHOLE, &udp(from_client, message));
        take(&mut analyzer, at_ns, &data, usize::MAX);
    }
    ended(analyzer);
}

/// Programs with versions: NFS, NFSACL, MOUNT, NLM, NSM, portmap and rpcbind, callbacks, none.
const PROGRAMS: [(u32, u32); 13] = [
    (100_003, 2),
    (100_003, 3),
    (100_003, 4),
    (100_227, 3),
    (100_227, 2),
    (100_005, 3),
    (100_005, 1),
    (100_021, 4),
    (100_024, 1),
    (100_000, 2),
    (100_000, 4),
    (0x4000_0000, 1),
    (100_099, 1),
];

/// What the first bytes choose; behind them are arguments, then results.
struct Chosen {
    program: (u32, u32),
    procedure: u32,
    auth: Vec<u8>,
    /// Between the transaction number and the results.
    verdict: &'static [u8],
    /// Bytes of each packet that were captured, if not all.
    snap_len: usize,
    args: Vec<u8>,
    results: Vec<u8>,
}

/// Any arguments and any results of each operation, with each sort of credential. What comes over
/// TCP, in segments, is understood as what comes over UDP.
pub fn operations(input: &[u8]) {
    let Some(chosen) = choose(input) else { return };
    let head = call(7, chosen.program, chosen.procedure, &chosen.auth);
    let call = [&head[..], &chosen.args].concat();
    let reply = [&7_u32.to_be_bytes()[..], &1_u32.to_be_bytes(), chosen.verdict, &chosen.results];
    let reply = reply.concat();
    let mut found = [true, false].map(|is_tcp| {
        let mut analyzer = Analyzer::new(Filter::default());
        for (at_ns, from_client, message) in [(1, true, &call), (2, false, &reply)] {
            match is_tcp {
                true => record(&mut analyzer, at_ns, from_client, message, chosen.snap_len),
                false => {
                    let data = ip(17, from_client, WHOLE, &udp(from_client, message));
                    take(&mut analyzer, at_ns, &data, chosen.snap_len);
                }
            }
        }
        analyzer
    });
    // Of a record in segments no more is stored.
    let is_whole = call.len().max(reply.len()) <= HEAD_LEN;
    if chosen.snap_len == usize::MAX && is_whole {
        let counts = found.each_mut().map(|analyzer| {
            let totals = analyzer.totals();
            let rows = totals.operations().map(|(operation, total)| {
                (operation, total.calls, total.replies, total.errors, total.bytes)
            });
            (rows.collect::<Vec<_>>(), totals.v4_operations)
        });
        assert_eq!(counts[0], counts[1]);
    }
    found.into_iter().for_each(ended);
}

/// A message over TCP, in segments of a few lengths.
fn record(analyzer: &mut Analyzer, at_ns: u64, from_client: bool, message: &[u8], snap_len: usize) {
    take(analyzer, at_ns, &tcp(from_client, true, 99, &[]), usize::MAX);
    let len = u32::try_from(message.len()).unwrap_or(0);
    let stream = [&Fragment { last: true, len }.to_header()[..], message].concat();
    let mut at = 0;
    for len in [100, 60, 300, 7].into_iter().cycle() {
        let to = (at + len).min(stream.len());
        let seq = 100 + u32::try_from(at).unwrap_or(0);
        take(analyzer, at_ns, &tcp(from_client, false, seq, &stream[at..to]), snap_len);
        at = to;
        if at == stream.len() {
            break;
        }
    }
}

fn choose(input: &[u8]) -> Option<Chosen> {
    let (&[program, procedure, credential, verdict, snap, len], rest) =
        input.split_first_chunk()?;
    let (args, results) = rest.split_at(usize::from(len).min(rest.len()));
    let program = PROGRAMS[usize::from(program) % PROGRAMS.len()];
    let is_compound = program.1 == 4 && program.0 == 100_003 && procedure & 0x81 == 0x81;
    let (args, results) = match is_compound {
        true => (compound(args, false), compound(results, true)),
        false => (args.to_vec(), results.to_vec()),
    };
    Some(Chosen {
        program,
        procedure: if is_compound { 1 } else { u32::from(procedure % 32) },
        auth: auth(credential),
        verdict: VERDICTS[usize::from(verdict) % VERDICTS.len()],
        snap_len: if snap % 4 == 0 { 20 + usize::from(snap) } else { usize::MAX },
        args,
        results,
    })
}

/// Accepted with a short verifier and success, twice as likely; refused; denied.
const VERDICTS: [&[u8]; 5] = [
    &[0; 16],
    &[0; 16],
    &[0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 0],
    &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
    &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 13],
];

/// A credential and a verifier: none, of a user, or of RPCSEC_GSS with one of its services.
fn auth(choice: u8) -> Vec<u8> {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_be_bytes()).collect() };
    let verifier = [0, 0];
    match choice % 6 {
        0 => NO_AUTH.to_vec(),
        1 => [words(&[1, 20, 0, 0, 0, 0, 0]), words(&verifier)].concat(),
        service => {
            // version, procedure (0 is data), sequence number, service, handle
            let procedure = u32::from(choice / 6 % 4);
            let body = [1, procedure, 5, u32::from(service) - 1, 4, 0xabcd];
            [words(&[6, 24]), words(&body), words(&[6, 4, 0x1234])].concat()
        }
    }
}

/// A COMPOUND, or what answers it: the bytes say which operations, and how many words each has.
fn compound(bytes: &[u8], is_reply: bool) -> Vec<u8> {
    let (mut operations, mut count, mut rest) = (Vec::new(), 0_u32, bytes);
    while let [operation, words, behind @ ..] = rest {
        let (body, behind) = behind.split_at((usize::from(words % 16) * 4).min(behind.len()));
        rest = behind;
        count += 1;
        operations.extend(u32::from(operation % 80).to_be_bytes());
        if is_reply {
            operations.extend(u32::from(*words == 255).to_be_bytes());
        }
        operations.extend_from_slice(body);
    }
    // A status or nothing, no tag, and of a call the minor version.
    let head = [0, 0, count];
    let head: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
    [&head[..], &operations].concat()
}
