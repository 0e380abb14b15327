//! The client's versions and protocols against `nfskit serve`, also when it is killed in between.

use std::path::Path;

use bytes::Bytes;
use client::mount::{self, Options};
use client::session::{Credential, Session};
use net::clock::Clock;
use perf::units::Nanos;
use rustix::process::Signal;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{Sattr3, StableHow};

use crate::program::nfskit;
use crate::served::Served;

/// How long a server may take to come back.
const PATIENCE: Nanos = Nanos::from_secs(60);

fn serve(folder: &Path, listen: &str) -> Served {
    let mut command = nfskit(["serve"]);
    command.arg(folder).args(["--udp", "--export", "/=no_root_squash,insecure"]);
    Served::start(command, listen)
}

async fn mounted(clock: &Clock, port: u16, query: &str) -> Session {
    let url = format!("nfs://127.0.0.1/?{query}&nfsport={port}&mountport={port}");
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let credential = Credential { machine_name: "test".to_owned(), uid, gid, gids: Vec::new() };
    let options = Options::persistent(credential);
    mount::mount(clock, &url.parse().unwrap(), &options).await.unwrap().session
}

/// Writes a file of 64 pieces, all at once, and makes it stable.
async fn write(session: &Session, name: &str) {
    let how = CreateHow::Unchecked(Sattr3::of_mode(0o644));
    let made = session.create(session.root(), name.as_bytes(), how).await.unwrap();
    let file = made.obj.unwrap();
    let writes = (0..64).map(|number| {
        let data = Bytes::from(vec![u8::try_from(number).unwrap(); 8192]);
        session.write(file, number * 8192, data, StableHow::FileSync)
    });
    for written in futures_util::future::join_all(writes).await {
        assert_eq!(written.unwrap().reply.count, 8192);
    }
    session.commit(file, 0, 0).await.unwrap();
}

#[test]
fn each_version_over_each_protocol_writes_files_and_outlasts_a_killed_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = serve(folder.path(), "127.0.0.1:0");
    let address = served.address;
    for query in
        ["version=2&proto=tcp", "version=2&proto=udp", "version=3&proto=tcp", "version=3&proto=udp"]
    {
        served = net::runtime::block_on(async {
            let clock = Clock::real();
            let session = mounted(&clock, address.port(), query).await;
            write(&session, &format!("{query} before")).await;
            served.program.signal(Signal::KILL);
            served.program.finish();
            let served = serve(folder.path(), &address.to_string());
            let after = format!("{query} after");
            clock.within(PATIENCE, write(&session, &after)).await.unwrap();
            served
        })
        .unwrap();
        for time in ["before", "after"] {
            let data = std::fs::read(folder.path().join(format!("{query} {time}"))).unwrap();
            assert!(data.len() == 64 * 8192, "{query} {time}");
            assert!(data.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at / 8192));
        }
    }
    served.program.signal(Signal::TERM);
    served.program.finish();
}
