//! An origin that answers what it should not: clients of the proxy get an error, and soon.

use bytes::Bytes;
use client::session::Session;
use perf::units::Nanos;
use proxy::{Handles, Options, Remote};
use testkit::lies::Lie;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, StableHow};

use super::{proxy_on, reading, remote_over, world};

/// Everything that a client may call, each to its end.
async fn call_all(session: &Session, file: FileHandle) -> usize {
    let root = session.root();
    let data = Bytes::from(vec![1; 300_000]);
    let how = CreateHow::Unchecked(Sattr3::default());
    let failed = [
        session.getattr(file).await.is_err(),
        session.write(file, 0, data.clone(), StableHow::Unstable).await.is_err(),
        session.read(file, 0, 300_000).await.is_err(),
        session.write(file, 0, data, StableHow::FileSync).await.is_err(),
        session.commit(file, 0, 0).await.is_err(),
        session.create(root, b"new", how).await.is_err(),
        session.lookup(root, b"file").await.is_err(),
        session.fsinfo(root).await.is_err(),
        session.pathconf(root).await.is_err(),
        session.readdir(root, 0, [0; 8], 4096).await.is_err(),
        session.readdir(root, 3, [0; 8], 4096).await.is_err(),
        session.readdirplus(root, 0, [0; 8], 4096, 4096).await.is_err(),
        session.readdirplus(root, 3, [0; 8], 4096, 4096).await.is_err(),
        session.remove(root, b"new").await.is_err(),
    ];
    failed.into_iter().filter(|failed| *failed).count()
}

#[test]
fn every_lie_ends_in_an_answer_and_most_are_reported_as_faults() {
    for lie in Lie::ALL {
        world(async move |clock, origin| {
            let honest = origin.session(origin.rpc()).await.unwrap();
            let lying = honest.over(origin.rpc_lying(lie));
            if lie == Lie::AlwaysLater {
                let handles = Handles::open("origin:/", None).unwrap();
                let opened = Remote::open(&clock, lying, handles, Options::default()).await;
                assert_eq!(opened.unwrap_err().status(), Some(NfsStat3::Jukebox));
                return;
            }
            let proxy = proxy_on(&clock, remote_over(&clock, lying, None).await);
            // What this client mounts is what the origin answers.
            let Ok(session) = proxy.session(proxy.rpc()).await else { return };
            let how = CreateHow::Unchecked(Sattr3::default());
            let file = session.create(session.root(), b"file", how).await.unwrap().obj.unwrap();
            let begun = clock.now();
            let failed = call_all(&session, file).await;
            assert!(clock.now().since(begun) < Nanos::from_secs(60), "{lie:?}");
            let is_nonsense = matches!(
                lie,
                Lie::OneCookie
                    | Lie::EmptyPages
                    | Lie::NeverStable
                    | Lie::ReadsNothing
                    | Lie::ReadsMore
                    | Lie::WritesNothing
                    | Lie::WritesMore
            );
            // A cookie that is given up is refused, and may be.
            let is_refused = lie == Lie::CookiesMove;
            assert_eq!(failed > 0, is_nonsense || is_refused, "{lie:?}: {failed}");
            let nonsense = reading(&proxy, "nfskit_proxy_nonsense_total");
            assert_eq!(nonsense > 0.0, is_nonsense, "{lie:?}");
        });
    }
}
