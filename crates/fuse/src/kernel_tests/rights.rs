//! What a change of rights waits for, and mounts of one user, where no kernel looks at the modes.

use super::*;

const USER: u32 = 3001;
const SIZE: u64 = 1 << 3;
const O_TRUNC: u64 = 0o1000;

/// A file of the user's with this mode, and six bytes: its node.
fn file(kernel: &Kernel, scene: &Scene, mode: u32) -> u64 {
    scene.runtime.block_on(async {
        let (root, other) = (scene.other.root(), &scene.other);
        let made = other.create(&own(), root, b"file", Sattr3::of_mode(0o600), true).await;
        appended_elsewhere(scene, b"theirs").await;
        let of_user = Sattr3 { uid: Some(USER), ..Sattr3::of_mode(mode) };
        other.setattr(&own(), made.unwrap().handle, of_user).await.unwrap();
    });
    kernel.ask(LOOKUP, 1, b"file\0");
    u64_at(&kernel.ended(7).1, 0)
}

fn served_to_user(test: impl FnOnce(&Kernel, &Scene) + Send + 'static) {
    let who = Credential { uid: USER, gid: USER, ..own() };
    let how = (files::Options::default(), KernelCache::Writeback, LinkPair::default());
    served_to((who, None), notifications, how, 1 << 20, test);
}

#[test]
fn an_owner_cuts_no_file_that_it_may_not_write() {
    served_to_user(|kernel, scene| {
        let node = file(kernel, scene, 0o444);
        let denied = Errno::ACCESS.raw_os_error();
        kernel.ask(SETATTR, node, &parts(&[SIZE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(kernel.ended(7).0, denied);
        kernel.ask(OPEN, node, &parts(&[O_TRUNC]));
        assert_eq!(kernel.ended(7).0, denied, "to be read");
        assert_eq!(on_the_server(scene).size, 6);
    });
}

#[test]
fn a_program_cuts_a_file_that_it_has_open_whatever_its_mode_is_by_then() {
    const FH: u64 = 1 << 6;
    served_to_user(|kernel, scene| {
        let node = file(kernel, scene, 0o600);
        kernel.ask(OPEN, node, &parts(&[2]));
        let open = u64_at(&kernel.ended(7).1, 0);
        scene.runtime.block_on(set_elsewhere(scene, Sattr3::of_mode(0o400)));
        kernel.ask(SETATTR, node, &parts(&[SIZE | FH, open, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(kernel.ended(7).0, 0);
        assert_eq!(on_the_server(scene).size, 0);
    });
}

/// A kernel that writes back does so before it sends the SETATTR.
#[test]
fn what_a_program_has_written_through_a_mapping_is_written_before_its_rights_are_taken() {
    const MODE: u64 = 1;
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        served_with(cache, 1 << 20, |kernel, _| {
            let file = kernel.create();
            let close_to_others = || {
                kernel.ask(
                    SETATTR,
                    file.0,
                    &parts(&[MODE, 0, 0, 0, 0, 0, 0, 0, 0o600 << 32, 0, 0]),
                );
            };
            close_to_others();
            assert_eq!(kernel.notice(), (INVAL, parts(&[file.0, 0, 0])));
            assert_eq!(kernel.ended(7).0, 0);
            kernel.release(file);
            close_to_others();
            assert_eq!(kernel.hear().0, 7, "nobody writes it any more");
        });
    }
}
