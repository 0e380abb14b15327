//! Clients that misbehave: each gets an error or loses its connection, the server's memory stays
//! flat, and another client notices nothing.

use std::io::Write;
use std::process::Command;

use perf::units::Nanos;
use wire::Procedure;
use wire::nfs3::{self, FileHandle, NfsStat3, StableHow, read, write};
use wire::record::Fragment;
use wire::rpc::{
    AUTH_SHORT, AUTH_SYS, AcceptStatus, AuthStat, AuthSys, CallHeader, Gids, OpaqueAuth,
    RPCSEC_GSS, RejectStatus,
};
use wire::xdr::{Encode, from_bytes};
use wire::{mount, portmap};

use crate::memory::Resident;
use crate::peer::Noise;
use crate::program::Deadline;
use crate::rpc::{Connection, NULL, Outcome, call, mark};
use crate::served::Served;

/// What a server may grow by for reasons of its own: threads that start, slabs that it keeps, and
/// what the allocator does not give back, which is up to two records of 4 MiB for each thread that
/// has had some (25 MiB in all on a busy machine). Twenty records that are not freed are 80 MiB.
const SLACK_KIB: u64 = 40 << 10;

/// A server, a well-behaved client of it, and the memory it held before anything happened.
struct Scene {
    served: Served,
    bystander: Connection,
    before: Resident,
}

impl Scene {
    fn new() -> Self {
        let served = Served::folder(&[]);
        let mut bystander = Connection::to(&served);
        bystander.is_served();
        let before = Resident::of(&served.program);
        Self { served, bystander, before }
    }

    /// A new client, while the other goes on.
    fn client(&mut self) -> Connection {
        self.bystander.is_served();
        Connection::to(&self.served)
    }

    /// The other client is served, memory is flat, and the server ends in good order.
    #[track_caller]
    fn ends_unharmed(mut self) {
        self.bystander.is_served();
        self.client().is_served();
        Resident::of(&self.served.program).grew_at_most(SLACK_KIB, self.before);
        self.served.stop();
    }
}

#[test]
fn random_bytes() {
    let mut scene = Scene::new();
    let mut noise = Noise(0x5eed);
    for round in 0..300 {
        let mut client = scene.client();
        let length = 1 + usize::try_from(noise.next() % 5000).unwrap();
        client.say(&noise.bytes(length));
        scene.bystander.is_served();
        client.finish_saying();
        // By chance it may be a call with an error for an answer; then comes the end.
        let mut answers = 0;
        while client.hear().is_some() {
            answers += 1;
        }
        assert!(answers <= 1, "round {round}: {answers} answers to noise");
    }
    scene.ends_unharmed();
}

#[test]
fn random_records() {
    let mut scene = Scene::new();
    let mut noise = Noise(0xca11);
    for _ in 0..300 {
        let mut client = scene.client();
        client.is_served();
        let length = usize::try_from(noise.next() % 3000).unwrap();
        client.say_record(&noise.bytes(length));
        // That was no call: the connection ends.
        client.is_closed();
    }
    scene.ends_unharmed();
}

#[test]
fn marks_that_announce_gigabytes() {
    let mut scene = Scene::new();
    let announced = [
        [0xff, 0xff, 0xff, 0xff], // 2 GiB, the last
        [0x7f, 0xff, 0xff, 0xff], // 2 GiB, more to come
        [0xc0, 0x00, 0x00, 0x00], // 1 GiB
        [0x80, 0x50, 0x00, 0x00], // 5 MiB: over our limit
    ];
    for _ in 0..100 {
        for mark in announced {
            let mut client = scene.client();
            client.say(&mark);
            client.is_closed();
        }
    }
    // Two fragments that are 4 GiB together: the second is refused when it is announced.
    let mut client = scene.client();
    client.say(&[0x00, 0x00, 0x00, 0x04, 1, 2, 3, 4, 0x7f, 0xff, 0xff, 0xff]);
    client.is_closed();
    scene.ends_unharmed();
}

#[test]
fn a_record_that_grows_fragment_by_fragment_beyond_the_limit() {
    let mut scene = Scene::new();
    for _ in 0..20 {
        let mut client = scene.client();
        let fragment = Fragment { last: false, len: 64 << 10 };
        let bytes = [&fragment.to_header()[..], &vec![0; 64 << 10]].concat();
        for _ in 0..70 {
            client.say(&bytes);
        }
        client.is_closed();
    }
    scene.ends_unharmed();
}

#[test]
fn records_cut_off() {
    let mut scene = Scene::new();
    let whole = {
        let record = call(7, NULL, &[]);
        [&mark(record.len())[..], &record].concat()
    };
    for length in 1..whole.len() {
        let mut client = scene.client();
        client.say(&whole[..length]);
        scene.bystander.is_served();
        client.finish_saying();
        client.is_closed();
    }
    for _ in 0..50 {
        let mut client = scene.client();
        client.say(&mark(1 << 20));
        client.say(&[0; 100_000]);
        drop(client);
    }
    scene.ends_unharmed();
}

#[test]
fn many_small_fragments() {
    let mut scene = Scene::new();
    let in_fragments_of = |size: usize, record: &[u8]| -> Vec<u8> {
        let count = record.len().div_ceil(size);
        let pieces = record.chunks(size).enumerate().map(|(at, piece)| {
            let len = u32::try_from(piece.len()).unwrap();
            [&Fragment { last: at + 1 == count, len }.to_header()[..], piece].concat()
        });
        pieces.flatten().collect()
    };
    // A call byte by byte is unusual, and legal.
    let mut client = scene.client();
    client.say(&in_fragments_of(1, &call(9, NULL, &[])));
    assert_eq!(client.hear().map(|reply| reply[..4].to_vec()), Some(vec![0, 0, 0, 9]));
    client.is_served();
    // Thousands of fragments are an attack.
    for size in [1, 2] {
        let mut client = scene.client();
        client.say(&in_fragments_of(size, &[0; 20_000]));
        client.is_closed();
    }
    // So are fragments of nothing, without end.
    let mut client = scene.client();
    client.say(&[0; 400_000]);
    client.is_closed();
    scene.ends_unharmed();
}

/// What is answered to a call whose header is `header` and which has no arguments.
fn answer(client: &mut Connection, header: &CallHeader<'_>) -> Outcome {
    let reply = client.ask(header.xid, &header.to_bytes());
    assert!(reply.results.is_empty(), "an error has no results: {reply:?}");
    reply.body
}

#[test]
fn what_is_not_served() {
    let mut scene = Scene::new();
    let mut client = scene.client();
    let null = CallHeader::new(5, NULL, OpaqueAuth::NONE);
    let with = |program, version, procedure| CallHeader { program, version, procedure, ..null };
    let mut expect = |header: CallHeader<'_>, status| {
        assert_eq!(answer(&mut client, &header), Ok(status), "{header:?}");
        scene.bystander.is_served();
    };
    for program in [0, 100_024, 100_227, u32::MAX] {
        expect(with(program, 3, 0), AcceptStatus::ProgUnavail);
    }
    let mismatch = |low, high| AcceptStatus::ProgMismatch { low, high };
    for version in [0, 5, u32::MAX] {
        expect(with(nfs3::PROGRAM, version, 0), mismatch(2, 3));
        expect(with(mount::PROGRAM, version, 0), mismatch(1, 3));
        expect(with(portmap::PROGRAM, version, 0), mismatch(2, 4));
    }
    expect(with(mount::PROGRAM, 2, 0), mismatch(1, 3));
    for procedure in [22, 23, u32::MAX] {
        expect(with(nfs3::PROGRAM, 3, procedure), AcceptStatus::ProcUnavail);
        expect(with(mount::PROGRAM, 3, procedure), AcceptStatus::ProcUnavail);
        expect(with(portmap::PROGRAM, 2, procedure), AcceptStatus::ProcUnavail);
    }
    expect(null, AcceptStatus::Success);
    scene.ends_unharmed();
}

#[test]
fn another_version_of_rpc() {
    let mut scene = Scene::new();
    let mut client = scene.client();
    for version in [0, 1, 3, u32::MAX] {
        let mut record = call(11, NULL, &[]);
        record[8..12].copy_from_slice(&u32::to_be_bytes(version));
        let denied = RejectStatus::RpcMismatch { low: 2, high: 2 };
        assert_eq!(client.ask(11, &record).body, Err(denied));
    }
    client.is_served();
    scene.ends_unharmed();
}

#[test]
fn credentials_that_are_none() {
    let mut scene = Scene::new();
    let mut client = scene.client();
    let good = AuthSys {
        stamp: 0,
        machine_name: b"client",
        uid: 1000,
        gid: 1000,
        gids: Gids::new(&[1, 2, 3]).unwrap(),
    }
    .to_bytes();
    let mut expect = |flavor, body: &[u8], outcome: Outcome| {
        let credential = OpaqueAuth { flavor, body };
        let header = CallHeader::new(21, NULL, credential);
        assert_eq!(answer(&mut client, &header), outcome, "{credential:?}");
        scene.bystander.is_served();
    };
    let refused = |why| Err(RejectStatus::AuthError(why));
    expect(AUTH_SYS, &good, Ok(AcceptStatus::Success));
    expect(AUTH_SYS, &[], refused(AuthStat::BadCred));
    for length in [1, 4, 8, good.len() - 4, good.len() - 1] {
        expect(AUTH_SYS, &good[..length], refused(AuthStat::BadCred));
    }
    expect(AUTH_SYS, &[&good[..], &[0; 4]].concat(), refused(AuthStat::BadCred));
    // A name of 2^32 - 1 bytes, and one of 300.
    expect(AUTH_SYS, &[[0; 4], [0xff; 4]].concat(), refused(AuthStat::BadCred));
    let mut long_name = [[0; 4], [0, 0, 1, 44]].concat();
    long_name.extend([b'x'; 312]);
    expect(AUTH_SYS, &long_name, refused(AuthStat::BadCred));
    // Seventeen groups.
    let mut groups = [0; 20].to_vec();
    groups[19] = 17;
    groups.extend([0; 17 * 4]);
    expect(AUTH_SYS, &groups, refused(AuthStat::BadCred));
    expect(RPCSEC_GSS, &good, refused(AuthStat::BadCred));
    expect(RPCSEC_GSS, &[], refused(AuthStat::BadCred));
    expect(AUTH_SHORT, &[1, 2, 3, 4], refused(AuthStat::RejectedCred));
    expect(77, &[], refused(AuthStat::BadCred));
    scene.ends_unharmed();
}

#[test]
fn a_credential_longer_than_any_may_be() {
    let mut scene = Scene::new();
    let mut client = scene.client();
    for length in [401_u32, 10_000, u32::MAX] {
        let mut record = call(31, NULL, &[]);
        record[28..32].copy_from_slice(&length.to_be_bytes());
        record.extend([0; 500]);
        let refused = RejectStatus::AuthError(AuthStat::BadCred);
        assert_eq!(client.ask(31, &record).body, Err(refused));
    }
    client.is_served();
    scene.ends_unharmed();
}

/// Every procedure of every program that is served.
fn procedures() -> impl Iterator<Item = Procedure> {
    let nfs3 = nfs3::Procedure::ALL.iter().copied().map(Procedure::Nfs3);
    let mount = mount::Procedure::ALL.iter().copied().map(Procedure::Mount);
    nfs3.chain(mount).chain(portmap::Procedure::ALL.iter().copied().map(Procedure::Portmap))
}

#[test]
fn garbage_for_arguments() {
    let mut scene = Scene::new();
    let mut client = scene.client();
    let mut noise = Noise(0x6a5);
    for procedure in procedures() {
        let expected = match procedure {
            Procedure::Portmap(portmap::Procedure::Callit) => AcceptStatus::ProcUnavail,
            _ => AcceptStatus::GarbageArgs,
        };
        // No length or number in it is a possible one.
        for length in [1, 3, 4, 64, 1000, 1 << 20] {
            let reply = client.call(procedure, &vec![0xff; length]);
            let void = reply.body == Ok(AcceptStatus::Success);
            assert!(!void && reply.body == Ok(expected), "{procedure}, {length}: {reply:?}");
        }
        for _ in 0..20 {
            let length = usize::try_from(noise.next() % 400).unwrap();
            let reply = client.call(procedure, &noise.bytes(length));
            let answers = [AcceptStatus::Success, expected];
            assert!(reply.body.is_ok_and(|status| answers.contains(&status)), "{procedure}");
        }
        scene.bystander.is_served();
    }
    client.is_served();
    scene.ends_unharmed();
}

#[test]
fn handles_that_were_never_given() {
    let mut scene = Scene::new();
    let mut client = scene.client();
    let getattr = Procedure::Nfs3(nfs3::Procedure::Getattr);
    let mut noise = Noise(0xf11e);
    for length in [0, 1, 8, 31, 32, 33, 63, 64] {
        for _ in 0..10 {
            let object = FileHandle::new(&noise.bytes(length)).unwrap();
            let args = nfs3::getattr::Args { object }.to_bytes();
            let results = client.call(getattr, &args).results;
            let reply = from_bytes::<nfs3::getattr::Reply>(&results).unwrap();
            let status = reply.unwrap_err().status;
            assert!(matches!(status, NfsStat3::BadHandle | NfsStat3::Stale), "{status}");
        }
    }
    client.is_served();
    scene.ends_unharmed();
}

#[test]
fn a_write_over_wtmax_is_cut_short_and_a_record_over_the_limit_is_logged() {
    const MIB: usize = 1 << 20;
    let served = Served::memory(&[]);
    let mut client = Connection::to(&served);
    let file = client.creates(b"file");
    let write = Procedure::Nfs3(nfs3::Procedure::Write);
    let data = vec![7; 5 * MIB];
    let args = |bytes: usize| {
        let count = u32::try_from(bytes).unwrap();
        let stable = StableHow::Unstable;
        write::Args { file, offset: 0, count, stable, data: &data[..bytes] }.to_bytes()
    };
    for bytes in [MIB + 1, 2 * MIB, 4 * MIB] {
        let reply = client.call(write, &args(bytes));
        let written = from_bytes::<write::Reply>(&reply.results).unwrap().unwrap();
        assert_eq!(written.count as usize, MIB, "{bytes}");
    }
    client.is_served();
    client.say_record(&call(77, write, &args(5 * MIB)));
    client.is_closed();
    let limit = format!("limit_bytes={}", 4 * MIB + (8 << 10));
    served.program.wait_for_error(|text| {
        (text.contains("records_too_long") && text.contains(&limit)).then_some(())
    });
    Connection::to(&served).is_served();
    served.stop();
}

#[test]
fn a_write_whose_count_is_not_that_of_its_data() {
    let mut scene = Scene::new();
    let mut client = scene.client();
    let file = client.creates(b"file");
    let write = Procedure::Nfs3(nfs3::Procedure::Write);
    let data = [1; 100];
    for count in [0, 1, 99, 101, 1 << 20, u32::MAX] {
        let stable = StableHow::FileSync;
        let args = write::Args { file, offset: 0, count, stable, data: &data }.to_bytes();
        let reply = client.call(write, &args);
        let reply = from_bytes::<write::Reply>(&reply.results).unwrap();
        assert_eq!(reply.unwrap_err().status, NfsStat3::Inval, "count {count}");
        scene.bystander.is_served();
    }
    // Nor is anything written beyond where a file can end.
    let args = write::Args {
        file,
        offset: u64::MAX - 50,
        count: 100,
        stable: StableHow::Unstable,
        data: &data,
    };
    let reply = client.call(write, &args.to_bytes());
    let reply = from_bytes::<write::Reply>(&reply.results).unwrap();
    assert_eq!(reply.unwrap_err().status, NfsStat3::FBig);
    assert_eq!(std::fs::metadata(scene.served.path().join("file")).unwrap().len(), 0);
    client.is_served();
    scene.ends_unharmed();
}

#[test]
fn replies_instead_of_calls() {
    let mut scene = Scene::new();
    for xid in 0..100 {
        let mut client = scene.client();
        client.say_record(&wire::rpc::ReplyHeader::success(xid).to_bytes());
        client.is_closed();
    }
    scene.ends_unharmed();
}

#[test]
fn connections_that_stay_half_open() {
    let mut scene = Scene::new();
    let mut idle = Vec::new();
    for number in 0..200_usize {
        let mut client = scene.client();
        match number % 4 {
            0 => {}                          // says nothing at all
            1 => client.say(&mark(40)[..3]), // stops within a mark
            2 => client.say(&mark(40)),      // stops before the call
            _ => client.finish_saying(),     // hangs up, but keeps its own end
        }
        idle.push(client);
    }
    scene.bystander.is_served();
    Resident::of(&scene.served.program).grew_at_most(SLACK_KIB, scene.before);
    drop(idle);
    scene.ends_unharmed();
}

#[test]
fn a_client_that_reads_no_replies() {
    let mut scene = Scene::new();
    // Not in memory, where the system can do that: then all READs are begun at once.
    const CALLS: u32 = 160;
    let mut large = std::fs::File::create(scene.served.path().join("large")).unwrap();
    let data = Noise(0xda7a).bytes(1 << 20);
    (0..CALLS).for_each(|_| large.write_all(&data).unwrap());
    large.sync_data().unwrap();
    rustix::fs::fadvise(&large, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let mut client = scene.client();
    let lookup = Procedure::Nfs3(nfs3::Procedure::Lookup);
    let what = nfs3::DirOp { dir: client.root(), name: b"large" };
    let found = client.call(lookup, &nfs3::lookup::Args { what }.to_bytes()).results;
    let file = from_bytes::<nfs3::lookup::Reply>(&found).unwrap().unwrap().object;
    let read = Procedure::Nfs3(nfs3::Procedure::Read);
    for xid in 0..CALLS {
        let args = read::Args { file, offset: u64::from(xid) << 20, count: 1 << 20 };
        client.say_record(&call(xid, read, &args.to_bytes()));
    }
    for _ in 0..20 {
        scene.bystander.is_served();
    }
    // It holds 64 MiB for those in progress, 8 for what waits to be sent, and some besides.
    Resident::of(&scene.served.program).grew_at_most(96 << 10, scene.before);
    // When it reads at last, everything comes.
    for _ in 0..CALLS {
        let reply = client.hear().unwrap();
        assert!(reply.ends_with(&data), "{} bytes", reply.len());
    }
    Resident::of(&scene.served.program).grew_at_most(96 << 10, scene.before);
    client.is_served();
    scene.bystander.is_served();
    scene.served.stop();
}

#[test]
fn more_connections_than_descriptors_behind_an_emulated_link() {
    let served = Served::memory(&["--link", "lan-10g"]);
    let mut bystander = Connection::to(&served);
    bystander.is_served();
    let few = rustix::process::Rlimit { current: Some(64), maximum: Some(64) };
    let pid = rustix::process::Pid::from_raw(i32::try_from(served.program.pid()).unwrap());
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, few).unwrap();
    // Who has done nothing for some seconds would have to leave.
    let mut one_more = || {
        bystander.is_served();
        Connection::to(&served)
    };
    let many: Vec<Connection> = (0..100).map(|_| one_more()).collect();
    for _ in 0..20 {
        bystander.is_served();
    }
    drop(many);
    // Soon there is room again, and somebody who listens.
    let deadline = Deadline::after(Nanos::from_secs(60));
    while !Connection::to(&served).is_taken() {
        assert!(!deadline.left().is_zero(), "no connection is served any more");
    }
    bystander.is_served();
    // It has logged that descriptors were short.
    served.program.signal(rustix::process::Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
}

#[test]
fn where_descriptors_are_short_the_idlest_makes_room() {
    let served = Served::memory(&[]);
    Connection::to(&served).is_served();
    let few = rustix::process::Rlimit { current: Some(64), maximum: Some(64) };
    let pid = rustix::process::Pid::from_raw(i32::try_from(served.program.pid()).unwrap());
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, few).unwrap();
    // They stay, and do nothing.
    let idle: Vec<Connection> = (0..100).map(|_| Connection::to(&served)).collect();
    Connection::to(&served).is_served();
    served.program.wait_for_error(|log| log.contains("WARN connections_short").then_some(()));
    served.program.wait_for_error(|log| log.contains("WARN connections_evicted").then_some(()));
    drop(idle);
    served.program.signal(rustix::process::Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
}

#[test]
fn connections_are_no_more_than_the_limit_of_descriptors_has_room_for() {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 512 && exec \"$@\"", "sh"]);
    limited.args([env!("CARGO_BIN_EXE_nfskit"), "serve", "mem:"]);
    let served = Served::start(limited, "127.0.0.1:0");
    served.program.wait_for(|banner| {
        banner.contains("warning     336 connections at once, not 4096").then_some(())
    });
    served.stop();
}
