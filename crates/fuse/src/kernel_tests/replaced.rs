//! Names that a program of this host gives to other files while another program opens them.

use super::*;

const WRITER: u32 = 12;

/// The writer makes a file and gives it the name of the one that others open.
fn replace(kernel: &Kernel) {
    // O_RDWR, a mode, no mask; and the name.
    let head = [2, 0o100_644, 0, 0].into_iter().flat_map(u32::to_ne_bytes);
    kernel.ask_by(WRITER, CREATE, 1, &head.chain(*b"new\0").collect::<Vec<u8>>());
    let created = kernel.ended(7).1;
    kernel.release((u64_at(&created, 0), u64_at(&created, 128)));
    kernel.ask_by(WRITER, RENAME, 1, &[&parts(&[1])[..], b"new\0file\0"].concat());
    assert_eq!(kernel.ended(7).0, 0);
}

fn look_up(kernel: &Kernel) -> u64 {
    kernel.ask(LOOKUP, 1, b"file\0");
    let (code, found) = kernel.ended(7);
    assert_eq!(code, 0);
    u64_at(&found, 0)
}

fn open(kernel: &Kernel, node: u64) -> Result<u64, Errno> {
    kernel.ask(OPEN, node, &parts(&[0]));
    let (code, opened) = kernel.ended(7);
    if code == 0 { Ok(u64_at(&opened, 0)) } else { Err(Errno::from_raw_os_error(code)) }
}

/// Hidden names that the server has.
fn hidden(scene: &Scene) -> usize {
    let listing = scene.other.listing(&own(), scene.other.root());
    let page = scene.runtime.block_on(listing.page(0)).unwrap();
    page.entries.iter().filter(|entry| entry.name.starts_with(b".nfs")).count()
}

#[test]
fn an_open_that_has_failed_once_is_not_overtaken_by_a_rename_again() {
    served(1 << 20, |kernel, scene| {
        kernel.release(kernel.create());
        let first = look_up(kernel);
        replace(kernel);
        assert_eq!(open(kernel, first), Err(Errno::STALE));
        // The kernel comes again.
        let second = look_up(kernel);
        replace(kernel);
        let opened = open(kernel, second).unwrap();
        assert_eq!(hidden(scene), 1);
        kernel.release((second, opened));
        assert_eq!(hidden(scene), 0);
    });
}
