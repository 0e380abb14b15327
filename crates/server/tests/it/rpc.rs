//! What RPC itself says (RFC 5531): versions, programs, procedures, credentials.

use bytes::Bytes;
use server::store::mem::MemOptions;
use server::{EngineConfig, Rule, Versions};
use wire::nfs2;
use wire::nfs3::{self, Procedure as P};
use wire::rpc::{
    AUTH_SHORT, AcceptStatus, AuthStat, CallHeader, OpaqueAuth, RPCSEC_GSS, ReplyHeader,
};
use wire::xdr::Encode;
use wire::{Procedure, mount, nlm, portmap, rpcbind};

use crate::world::{World, XID, credential, split};

const GETATTR: Procedure = Procedure::Nfs3(P::Getattr);
const NULL: Procedure = Procedure::Nfs3(P::Null);

fn answer(world: &World, header: CallHeader<'_>) -> ReplyHeader<'static> {
    let mut record = header.to_bytes();
    if header.procedure != 0 {
        let object = world.root();
        nfs3::getattr::Args { object }.encode(&mut record);
    }
    split(&world.send(Bytes::from(record)).unwrap()).0
}

fn with(procedure: Procedure, credential: OpaqueAuth<'_>) -> CallHeader<'_> {
    CallHeader::new(XID, procedure, credential)
}

fn accepted(status: AcceptStatus) -> ReplyHeader<'static> {
    ReplyHeader::accepted(XID, status)
}

fn numbered(program: u32, version: u32, procedure: u32) -> CallHeader<'static> {
    CallHeader { program, version, procedure, ..with(NULL, OpaqueAuth::NONE) }
}

#[test]
fn null_works_for_every_program_with_any_credential_that_can_be_read() {
    let world = World::new();
    let body = credential((5, 5), &[]);
    for procedure in [
        NULL,
        Procedure::Nfs2(nfs2::Procedure::Null),
        Procedure::Mount(mount::Procedure::Null),
        Procedure::Mount1(mount::Procedure::Null),
        Procedure::Portmap(portmap::Procedure::Null),
        Procedure::Rpcbind3(rpcbind::Procedure::Null),
        Procedure::Rpcbind4(rpcbind::Procedure::Null),
    ] {
        for credential in [OpaqueAuth::NONE, OpaqueAuth::sys(&body)] {
            let header = answer(&world, with(procedure, credential));
            assert_eq!(header, ReplyHeader::success(XID), "{procedure}");
        }
    }
}

#[test]
fn what_is_not_served_is_named() {
    let world = World::new();
    let outcome =
        |program, version, procedure| answer(&world, numbered(program, version, procedure));
    let from_to = |low, high| accepted(AcceptStatus::ProgMismatch { low, high });
    assert_eq!(outcome(100_024, 1, 0), accepted(AcceptStatus::ProgUnavail));
    assert_eq!(outcome(0, 0, 0), accepted(AcceptStatus::ProgUnavail));
    for version in [0, 1, 4, u32::MAX] {
        assert_eq!(outcome(nfs3::PROGRAM, version, 0), from_to(2, 3));
    }
    assert_eq!(outcome(mount::PROGRAM, 2, 0), from_to(1, 3));
    assert_eq!(outcome(portmap::PROGRAM, 5, 0), from_to(2, 4));
    assert_eq!(outcome(nlm::PROGRAM, 2, 0), from_to(1, 4));
    let unavailable = accepted(AcceptStatus::ProcUnavail);
    assert_eq!(outcome(nlm::PROGRAM, 4, 7), unavailable); // LOCK_MSG
    assert_eq!(outcome(nfs3::PROGRAM, 3, 22), unavailable);
    assert_eq!(outcome(mount::PROGRAM, 3, 6), unavailable);
    assert_eq!(outcome(nfs2::PROGRAM, 2, 18), unavailable);
    assert_eq!(outcome(mount::PROGRAM, 1, 6), unavailable);
    assert_eq!(outcome(portmap::PROGRAM, 2, 5), unavailable); // CALLIT
    for procedure in [5, 10, 11, 12, 13] {
        assert_eq!(outcome(portmap::PROGRAM, 4, procedure), unavailable);
    }
    assert_eq!(outcome(portmap::PROGRAM, 3, 9), unavailable);
    assert_eq!(outcome(portmap::PROGRAM, 2, u32::MAX), unavailable);
}

/// A client that finds no lock manager waits for one, and programs with it.
#[test]
fn a_lock_is_refused_at_once() {
    let world = World::new();
    for (procedure, stat) in [(2, 2), (4, 0)] {
        let mut record = numbered(nlm::PROGRAM, 4, procedure).to_bytes();
        // A cookie, whether the caller waits, whether the lock is exclusive, and of which file.
        record.extend_from_slice(&[0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 1, 9, 9, 9, 9]);
        let reply = world.send(Bytes::from(record)).unwrap();
        let (header, results) = split(&reply);
        assert_eq!(header, ReplyHeader::success(XID));
        assert_eq!(results, [0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, stat]);
    }
}

#[test]
fn versions_that_are_switched_off_are_not_served() {
    let versions = Versions { nfs2: false, nfs3: true };
    let config = EngineConfig { versions, ..EngineConfig::default() };
    let world = World::with(MemOptions::default(), config);
    let outcome = |program, version| answer(&world, numbered(program, version, 0));
    let only_3 = accepted(AcceptStatus::ProgMismatch { low: 3, high: 3 });
    assert_eq!(outcome(nfs3::PROGRAM, 2), only_3);
    assert_eq!(outcome(mount::PROGRAM, 1), only_3);
    assert_eq!(outcome(nfs3::PROGRAM, 3), ReplyHeader::success(XID));
}

#[test]
fn another_version_of_rpc_is_answered_although_it_cannot_be_read() {
    let world = World::new();
    let mut record = with(NULL, OpaqueAuth::NONE).to_bytes();
    record[11] = 3;
    record.truncate(12);
    let reply = world.send(Bytes::from(record)).unwrap();
    assert_eq!(split(&reply).0, ReplyHeader::rpc_mismatch(XID));
}

#[test]
fn replies_and_headers_cut_short_are_dropped() {
    let world = World::new();
    let body = credential((5, 5), &[4]);
    let header = with(NULL, OpaqueAuth::sys(&body)).to_bytes();
    for len in 0..header.len() {
        let record = Bytes::copy_from_slice(&header[..len]);
        assert_eq!(world.send(record), None, "{len} bytes");
    }
    let reply = ReplyHeader::success(XID).to_bytes();
    assert_eq!(world.send(Bytes::from(reply)), None);
    let mut neither = header;
    neither[7] = 2;
    assert_eq!(world.send(Bytes::from(neither)), None);
}

#[test]
fn credentials_are_refused_for_the_right_reason() {
    let world = World::new();
    let refused = |why| ReplyHeader::auth_error(XID, why);
    let body = credential((5, 5), &[]);
    let cut = OpaqueAuth::sys(&body[..body.len() - 4]);
    for procedure in [NULL, GETATTR] {
        let outcome = |credential| answer(&world, with(procedure, credential));
        assert_eq!(outcome(cut), refused(AuthStat::BadCred));
        let flavor = |flavor| OpaqueAuth { flavor, body: &body };
        assert_eq!(outcome(flavor(AUTH_SHORT)), refused(AuthStat::RejectedCred));
        assert_eq!(outcome(flavor(RPCSEC_GSS)), refused(AuthStat::BadCred));
        assert_eq!(outcome(flavor(390_003)), refused(AuthStat::BadCred));
    }
}

#[test]
fn oversized_credentials_and_verifiers_are_refused() {
    let world = World::new();
    let long = [0; 401];
    let oversized = OpaqueAuth { flavor: 0, body: &long };
    let header = answer(&world, with(NULL, oversized));
    assert_eq!(header, ReplyHeader::auth_error(XID, AuthStat::BadCred));
    let verifier = CallHeader { verifier: oversized, ..with(NULL, OpaqueAuth::NONE) };
    let header = answer(&world, verifier);
    assert_eq!(header, ReplyHeader::auth_error(XID, AuthStat::BadVerf));
}

#[test]
fn nobody_is_too_weak_only_where_that_is_configured() {
    let open = World::new();
    let served = answer(&open, with(GETATTR, OpaqueAuth::NONE));
    assert_eq!(served, ReplyHeader::success(XID));
    let closed = World::ruled(Rule { anonymous_allowed: false, ..Rule::default() });
    let refused = answer(&closed, with(GETATTR, OpaqueAuth::NONE));
    assert_eq!(refused, ReplyHeader::auth_error(XID, AuthStat::TooWeak));
    let null = answer(&closed, with(NULL, OpaqueAuth::NONE));
    assert_eq!(null, ReplyHeader::success(XID));
    let body = credential((5, 5), &[]);
    let stated = answer(&closed, with(GETATTR, OpaqueAuth::sys(&body)));
    assert_eq!(stated, ReplyHeader::success(XID));
}

#[test]
fn how_long_a_reply_may_become_is_known_from_the_call() {
    let world = World::new();
    let dir = world.root();
    let announced = |procedure, args: Vec<u8>| {
        let header = with(Procedure::Nfs3(procedure), OpaqueAuth::NONE).to_bytes();
        world.engine.reply_bytes_max(&[header, args].concat())
    };
    let read = |count| nfs3::read::Args { file: dir, offset: 0, count }.to_bytes();
    let (cookie, cookieverf) = (0, [0; 8]);
    let listing = nfs3::readdir::Args { dir, cookie, cookieverf, count: 4096 };
    let (dircount, maxcount) = (512, 8192);
    let plus = nfs3::readdirplus::Args { dir, cookie, cookieverf, dircount, maxcount };
    assert_eq!(announced(P::Read, read(70_000)), 70_000);
    assert_eq!(announced(P::Read, read(u32::MAX)), 1 << 20, "it gets rtmax at the most");
    assert_eq!(announced(P::Readdir, listing.to_bytes()), 4096);
    assert_eq!(announced(P::Readdirplus, plus.to_bytes()), 8192);
    for (procedure, args) in [(P::Read, vec![0xff; 9]), (P::Getattr, read(1)), (P::Null, vec![])] {
        assert_eq!(announced(procedure, args), 0, "{procedure}");
    }
    assert_eq!(world.engine.reply_bytes_max(&[0; 3]), 0);
}
