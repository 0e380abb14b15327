//! Names that nothing may have yet, before an origin of version 2.

use client::session::Session;
use client::url::Version;
use futures_util::future::join;
use perf::units::Nanos;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3};

use super::{away, proxy_on, remote_over, session, world_behind};

async fn create(session: &Session, name: &[u8], how: CreateHow) -> Result<FileHandle, NfsStat3> {
    let made = session.create(session.root(), name, how).await;
    made.map(|made| made.obj.unwrap()).map_err(|error| error.status().unwrap())
}

#[test]
fn of_two_clients_that_make_a_name_before_an_origin_of_version_2_one_has_it() {
    world_behind(away(Nanos::from_millis(10)), async |clock, origin| {
        let old = session(&origin, origin.rpc(), Version::Two).await;
        let proxy = proxy_on(&clock, remote_over(&clock, old, None).await);
        let one = proxy.session(proxy.rpc()).await.unwrap();
        let other = proxy.session(proxy.rpc()).await.unwrap();
        let guarded = CreateHow::Guarded(Sattr3 { size: Some(0), ..Sattr3::of_mode(0o644) });
        let exclusive = [1, 2].map(|who| CreateHow::Exclusive([who; 8]));
        for (name, hows) in [(&b"guarded"[..], [guarded; 2]), (b"exclusive", exclusive)] {
            let both = join(create(&one, name, hows[0]), create(&other, name, hows[1])).await;
            let mut both = [both.0.map(drop), both.1.map(drop)];
            both.sort_unstable_by_key(Result::is_ok);
            assert_eq!(both, [Err(NfsStat3::Exist), Ok(())]);
        }
        let how = CreateHow::Exclusive([3; 8]);
        let made = create(&one, b"again", how).await.unwrap();
        assert_eq!(create(&one, b"again", how).await, Ok(made), "the reply was lost");
        let others = CreateHow::Exclusive([4; 8]);
        assert_eq!(create(&other, b"again", others).await, Err(NfsStat3::Exist));
        one.remove(one.root(), b"again").await.unwrap();
        create(&other, b"again", others).await.unwrap();
        assert_eq!(create(&one, b"again", how).await, Err(NfsStat3::Exist), "it is another file");
    });
}

#[test]
fn what_is_made_without_a_mode_before_an_origin_of_version_2_is_its_makers_alone() {
    world_behind(away(Nanos::from_millis(10)), async |clock, origin| {
        let old = session(&origin, origin.rpc(), Version::Two).await;
        let proxy = proxy_on(&clock, remote_over(&clock, old, None).await);
        let one = proxy.session(proxy.rpc()).await.unwrap();
        let nothing = Sattr3::default();
        let hows = [CreateHow::Unchecked(nothing), CreateHow::Guarded(nothing)];
        for (name, how) in [&b"unchecked"[..], b"guarded"].into_iter().zip(hows) {
            let made = one.create(one.root(), name, how).await.unwrap();
            assert_eq!(made.obj_attributes.unwrap().mode & 0o777, 0o600, "{how:?}");
        }
    });
}
