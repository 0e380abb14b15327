//! What is removed while the kernel has not reported yet as closed.

use super::*;

/// A directory of the kernel's, by its node, and a file of it that is open.
fn made(kernel: &Kernel) -> (u64, (u64, u64)) {
    let dir = kernel.mkdir(b"dir");
    let head = [2, 0o100_644, 0, 0].into_iter().flat_map(u32::to_ne_bytes);
    kernel.ask(CREATE, dir, &head.chain(*b"file\0").collect::<Vec<u8>>());
    let created = kernel.answer();
    (dir, (u64_at(&created, 0), u64_at(&created, 128)))
}

/// close(2), rm and rmdir by a program; the kernel sends RELEASE by itself, and late.
#[test]
fn a_directory_is_removed_though_the_kernel_is_late_to_say_that_its_files_are_closed() {
    served(1 << 20, |kernel, _| {
        let (dir, (node, file)) = made(kernel);
        kernel.write((node, file), CACHED, 0, b"data");
        kernel.answer();
        kernel.ask(FLUSH, node, &parts(&[file, 0, 0]));
        kernel.answer();
        kernel.ask(UNLINK, dir, b"file\0");
        kernel.answer();
        kernel.ask_as(8, RMDIR, 1, b"dir\0");
        kernel.ask_as(9, RELEASE, node, &parts(&[file, 0, 0]));
        let ends = [(); 2].map(|()| kernel.hear()).map(|(of, code, _)| (of, code));
        assert!(ends.contains(&(8, 0)) && ends.contains(&(9, 0)), "{ends:?}");
    });
}

#[test]
fn a_directory_with_a_file_that_is_open_is_not_removed() {
    served(1 << 20, |kernel, _| {
        let (dir, open) = made(kernel);
        kernel.ask(UNLINK, dir, b"file\0");
        kernel.answer();
        kernel.ask(RMDIR, 1, b"dir\0");
        assert_eq!(kernel.ended(7).0, Errno::NOTEMPTY.raw_os_error());
        kernel.release(open);
        kernel.ask(RMDIR, 1, b"dir\0");
        kernel.answer();
    });
}

/// Which nodes the kernel forgets the attributes of until it hears the end of a request.
fn forgotten(kernel: &Kernel) -> Vec<u64> {
    let mut nodes = Vec::new();
    loop {
        let (unique, code, body) = kernel.hear();
        if unique != 0 {
            assert_eq!((unique, code), (7, 0));
            return nodes;
        }
        assert_eq!((code, u64_at(&body, 8)), (INVAL, u64::MAX), "no data");
        nodes.push(u64_at(&body, 0));
    }
}

fn link(kernel: &Kernel, node: u64) -> u64 {
    kernel.ask(LINK, 1, &[&parts(&[node])[..], b"link\0"].concat());
    u64_at(&kernel.ended(7).1, 0)
}

#[test]
fn another_name_of_a_file_leads_to_the_node_that_the_file_has() {
    served(1 << 20, |kernel, _| {
        let file = kernel.create();
        kernel.release(file);
        for _ in 0..3 {
            assert_eq!(link(kernel, file.0), file.0);
            kernel.ask(UNLINK, 1, b"link\0");
            kernel.answer();
        }
    });
}

/// The kernel counts the links of the node that it changes a name of, and sends its time.
#[test]
fn links_are_counted_anew_where_a_file_has_several_nodes() {
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        kernel.release(file);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        let other = link(kernel, file.0);
        assert_ne!(other, file.0, "others have changed the data");
        for (changed, name) in [(file.0, b"link\0"), (other, b"file\0")] {
            ask_time(kernel, changed, None, 1000, 0);
            let mut nodes = forgotten(kernel);
            nodes.sort_unstable();
            assert_eq!(nodes, [file.0, other]);
            ask_time(kernel, changed, None, 1000, 0);
            assert!(forgotten(kernel).is_empty(), "no name was changed since");
            kernel.ask(UNLINK, 1, name);
            kernel.answer();
        }
    });
}
