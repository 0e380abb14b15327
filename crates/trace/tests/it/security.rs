//! RPCSEC_GSS (RFC 2203): what is seen of calls with authentication, integrity and privacy. TLS
//! (RFC 9289): that nothing is.

use trace::{Guards, RpcVerdict, Transaction};

use crate::frames::{Found, RAW, Rpc, WHOLE, analyze, ipv4, pcap, record, tcp, udp};

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn opaque(bytes: &[u8]) -> Vec<u8> {
    let mut out = words(&[u32::try_from(bytes.len()).unwrap()]);
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// Arguments or results as a service carries them.
fn guarded(service: u32, plain: &[u8]) -> Vec<u8> {
    let numbered = [&words(&[77])[..], plain].concat();
    match service {
        1 => plain.to_vec(),
        2 => [opaque(&numbered), opaque(&[0xcc; 28])].concat(),
        // Nothing of it can be read: not as a status, a length or a handle.
        _ => opaque(&vec![0x5a; numbered.len() + 60]),
    }
}

fn call(xid: u32, version: u32, procedure: u32, service: u32, args: &[u8]) -> Vec<u8> {
    let credential = [words(&[1, 0, 77, service]), opaque(&[9; 16])].concat();
    let head = words(&[xid, 0, 2, 100_003, version, procedure, 6]);
    let verifier = [words(&[6]), opaque(&[7; 28])].concat();
    [head, opaque(&credential), verifier, guarded(service, args)].concat()
}

fn reply(xid: u32, service: u32, results: &[u8]) -> Vec<u8> {
    let verifier = [words(&[6]), opaque(&[7; 28])].concat();
    [words(&[xid, 1, 0]), verifier, words(&[0]), guarded(service, results)].concat()
}

/// What stands behind the head of a call or reply without RPCSEC_GSS.
fn body(rpc: &Rpc) -> Vec<u8> {
    let message = rpc.message();
    match rpc.is_call() {
        // A credential of 20 bytes, an empty verifier.
        true => message[24 + 8 + 20 + 8..].to_vec(),
        false => message[24..].to_vec(),
    }
}

/// A LOOKUP and a WRITE with a service.
fn talked(service: u32) -> Found {
    let (lookup, found) =
        (Rpc::Lookup { xid: 1, name: "file".into() }, Rpc::Found { xid: 1, handle: 1 });
    let (write, written) =
        (Rpc::Write { xid: 2, bytes: 4_000 }, Rpc::Written { xid: 2, bytes: 3_000 });
    let packets = [
        (true, call(1, 3, 3, service, &body(&lookup))),
        (false, reply(1, service, &body(&found))),
        (true, call(2, 3, 7, service, &body(&write))),
        (false, reply(2, service, &body(&written))),
    ];
    let packets = packets.map(|(is_call, message)| ipv4(17, is_call, &udp(is_call, &message)));
    analyze(pcap(RAW, &packets, WHOLE))
}

fn names(found: &Found) -> Vec<&'static str> {
    found.transactions.iter().map(|transaction| transaction.operation.name()).collect()
}

fn is_good(transaction: &Transaction) -> bool {
    transaction.verdict == RpcVerdict::Success && !transaction.is_error()
}

#[test]
fn with_authentication_and_integrity_everything_is_read() {
    for service in [1, 2] {
        let found = talked(service);
        assert_eq!(names(&found), ["LOOKUP", "WRITE"], "{service}");
        assert_eq!(found.paths[1], "file");
        let write = found.transactions[1];
        assert_eq!((write.count, write.bytes, write.stable), (4_000, 3_000, 2), "{service}");
        assert_eq!(write.status, Some(0));
        assert!(found.transactions.iter().all(is_good));
        let guards = found.analyzer.totals().guards;
        let expected = match service {
            1 => Guards { authentication: 2, ..Guards::default() },
            _ => Guards { integrity: 2, ..Guards::default() },
        };
        assert_eq!(guards, expected);
    }
}

#[test]
fn with_privacy_the_procedures_and_times_are_seen_and_no_error_is_made_up() {
    let found = talked(3);
    assert_eq!(names(&found), ["LOOKUP", "WRITE"]);
    assert_eq!(found.paths, ["other files", "other files"]);
    for transaction in &found.transactions {
        assert!(is_good(transaction), "{transaction:?}");
        assert_eq!((transaction.status, transaction.count, transaction.bytes), (None, 0, 0));
        assert!(transaction.latency().unwrap().as_nanos() > 0);
    }
    assert_eq!(found.analyzer.totals().guards, Guards { privacy: 2, ..Guards::default() });
}

#[test]
fn a_compound_with_privacy_is_a_compound() {
    let packets = [(true, call(1, 4, 1, 3, &[0; 100])), (false, reply(1, 3, &[0; 100]))];
    let packets = packets.map(|(is_call, message)| ipv4(17, is_call, &udp(is_call, &message)));
    let found = analyze(pcap(RAW, &packets, WHOLE));
    assert_eq!(names(&found), ["COMPOUND"]);
    assert!(is_good(&found.transactions[0]));
}

#[test]
fn the_calls_that_make_a_context_are_null_and_have_no_status() {
    // RPCSEC_GSS_INIT (1) with a token where the arguments are.
    let credential = [words(&[1, 1, 0, 1]), opaque(&[])].concat();
    let head = words(&[5, 0, 2, 100_003, 4, 0, 6]);
    let init = [head, opaque(&credential), words(&[0, 0]), opaque(&[3; 400])].concat();
    let done = reply(5, 1, &[opaque(&[1; 16]), words(&[0, 0, 128]), opaque(&[2; 100])].concat());
    let packets = [ipv4(17, true, &udp(true, &init)), ipv4(17, false, &udp(false, &done))];
    let found = analyze(pcap(RAW, &packets, WHOLE));
    assert_eq!(names(&found), ["NULL"]);
    assert_eq!(found.transactions[0].status, None);
    assert_eq!(found.analyzer.totals().guards, Guards::default());
}

#[test]
fn a_connection_that_goes_over_to_tls_is_reported_and_nothing_is_made_up_behind() {
    // NULL with AUTH_TLS, and the verifier that takes it up.
    let asks = record(words(&[7, 0, 2, 100_003, 4, 0, 7, 0, 0, 0]));
    let answer =
        |verifier: &[u8]| record([words(&[7, 1, 0, 0]), opaque(verifier), words(&[0])].concat());
    // A record of TLS with 8,000 bytes that say nothing, zeros among them.
    let hidden: Vec<u8> =
        (0..8_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 27) as u8).collect();
    let hidden = [&[0x17, 3, 3, 0x1f, 0x40][..], &hidden].concat();
    for (verifier, connections) in [(&b"STARTTLS"[..], 1), (b"", 0)] {
        let answer = answer(verifier);
        let [sent, answered] = [&asks, &answer].map(|record| u32::try_from(record.len()).unwrap());
        let packets = [
            ipv4(6, true, &tcp(true, 1, 1, &asks)),
            ipv4(6, false, &tcp(false, 1, 1 + sent, &answer)),
            ipv4(6, true, &tcp(true, 1 + sent, 1 + answered, &hidden)),
            ipv4(6, false, &tcp(false, 1 + answered, 1 + sent + 8_005, &hidden)),
        ];
        let found = analyze(pcap(RAW, &packets, WHOLE));
        let flow = found.analyzer.flows().iter().next().unwrap().1;
        assert_eq!(flow.tls, connections);
        assert_eq!((names(&found), flow.unsolicited_replies), (vec!["NULL"], 0));
    }
}
