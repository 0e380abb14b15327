//! What is removed while the kernel has not reported yet as closed.

use super::*;

const MKDIR: u32 = 9;
const UNLINK: u32 = 10;
const RMDIR: u32 = 11;

/// A directory of the kernel's, by its node, and a file of it that is open.
fn made(kernel: &Kernel) -> (u64, (u64, u64)) {
    let head = [0o755, 0].into_iter().flat_map(u32::to_ne_bytes);
    kernel.ask(MKDIR, 1, &head.chain(*b"dir\0").collect::<Vec<u8>>());
    let dir = u64_at(&kernel.answer(), 0);
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
