//! A server that crashes at any await point keeps what its clients were promised, and they go on.

use bytes::Bytes;
use client::error::Error;
use net::call::Options;
use perf::units::Nanos;
use wire::nfs3::{NfsStat3, Sattr3, StableHow, create::CreateHow};
use world::{ClientSpec, ServerSpec, Stage, World};

/// What is left after a crash at this poll of the server's tasks: how many polls there were in
/// all, and whether it crashed.
async fn play(stage: Stage, crash_at: u64) -> (u64, bool) {
    let server = stage.server(ServerSpec::default());
    let group = server.group().unwrap();
    group.kill_at_poll(crash_at);
    let (host, seed) = (server.clone(), stage.seed());
    let dying = group.clone();
    stage.clock().spawn(async move {
        dying.killed().await;
        host.restart(seed, Nanos::from_millis(50)).await;
    });
    let client = stage.client(ClientSpec::behind("lan-1g".parse().unwrap()));
    let options = Options { insist: true, ..Options::stream() };
    let rpc = client.persistent(&server, options).await.unwrap();
    let session = client.session(rpc, &server).await.unwrap();
    let root = session.root();
    let (data, later) = (Bytes::from(vec![1; 20_000]), Bytes::from(vec![2; 4_096]));
    let how = CreateHow::Unchecked(Sattr3::default());
    let file = session.create(root, b"file", how).await.unwrap().obj.unwrap();
    session.write(file, 0, data.clone(), StableHow::FileSync).await.unwrap();
    let written = session.write(file, 20_000, later.clone(), StableHow::Unstable).await.unwrap();
    let committed = session.commit(file, 0, 0).await.unwrap();
    if committed.reply.verf != written.reply.verf {
        // It was lost, or may have been: again.
        session.write(file, 20_000, later.clone(), StableHow::FileSync).await.unwrap();
    }
    match session.mkdir(root, b"dir", Sattr3::default()).await {
        Ok(_) => {}
        // It was done, and the reply to it went down with the server's memory.
        Err(Error::Status { status, .. }) => assert_eq!(status, NfsStat3::Exist),
        Err(other) => panic!("{crash_at}: {other}"),
    }
    let polls = group.polls();
    let was_up = server.lives() == 1;
    // And once more, without mercy.
    server.restart(seed, Nanos::from_millis(1)).await;
    let found = session.lookup(root, b"file").await.unwrap();
    assert_eq!(found.object, file, "the handle is still good");
    session.lookup(root, b"dir").await.unwrap();
    let read = session.read(file, 0, 30_000).await.unwrap();
    assert!(read.data[..20_000] == data[..] && read.data[20_000..] == later[..], "{crash_at}");
    assert_eq!(server.stats().divergences, 0);
    (polls, !was_up)
}

#[test]
fn what_was_promised_survives_a_crash_at_any_poll() {
    let run = |crash_at| World::new(7).run(|stage| play(stage, crash_at)).unwrap();
    let (polls, _) = run(u64::MAX);
    assert!(polls > 8, "{polls}");
    let crashed = (1..=polls).filter(|&at| run(at).1).count();
    assert!(crashed as u64 >= polls - 1, "{crashed} of {polls}");
}
