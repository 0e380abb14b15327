//! Times of what the kernel writes back, where it has none to send.

use wire::nfs3::NfsTime;

use super::*;

const O_EXCL: u32 = 0o200;

/// The clock of a kernel ticks: a write in the tick of the CREATE moves no time, and it sends none.
#[test]
fn a_file_that_is_written_as_soon_as_it_is_made_has_the_kernels_time() {
    for flags in [O_EXCL, 0] {
        served(1 << 20, move |kernel, scene| {
            kernel.ask_create(flags);
            let created = kernel.answer();
            let (node, file) = (u64_at(&created, 0), u64_at(&created, 128));
            let nanos = u32::from_ne_bytes(created[92..96].try_into().unwrap());
            let its_time = (u64_at(&created, 72), nanos);
            kernel.write((node, file), CACHED, 0, b"data");
            kernel.answer();
            kernel.ask(FLUSH, node, &parts(&[file, 0, 0]));
            kernel.answer();
            kernel.release((node, file));
            let NfsTime { seconds, nseconds } = on_the_server(scene).mtime;
            assert_eq!((u64::from(seconds), nseconds), its_time);
        });
    }
}

/// What a program sets in between counts, and is sent once.
#[test]
fn a_time_that_a_program_sets_after_a_write_stays() {
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        kernel.write(file, CACHED, 0, b"data");
        kernel.answer();
        set_time(kernel, file.0, None, 1000, 0);
        kernel.ask(FLUSH, file.0, &parts(&[file.1, 0, 0]));
        kernel.answer();
        kernel.release(file);
        assert_eq!(on_the_server(scene).mtime, NfsTime { seconds: 1000, nseconds: 0 });
    });
}
