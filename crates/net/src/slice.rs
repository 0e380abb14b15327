//! How long a thread runs at most while others wait for the processor.
//!
//! Who serves works for microseconds at a time, and waits for the next call in between. With the
//! slice that all threads have, some milliseconds, the kernel lets whoever runs end its own before
//! one that was woken has its turn, however nice it is: behind a long listing, or beside another
//! program, a small call waited for as long. A thread of a short slice goes before (sched(7),
//! EEVDF), and has no larger share for it.

use std::time::Duration;

/// The shortest that the kernel gives.
const SHORT: Duration = Duration::from_micros(100);

/// Gives this thread a short slice, where the kernel has such a thing (Linux 6.12); elsewhere, and
/// for threads of another policy, all stays as it is.
pub(crate) fn shorten() {
    #[cfg(target_os = "linux")]
    linux::set(SHORT);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use nix::libc;

    /// `struct sched_attr` of sched_setattr(2), as of Linux 3.14.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }

    /// Of the struct above.
    const SIZE: u32 = 48;
    const _: () = assert!(size_of::<Attributes>() == 48);

    /// Of this thread; `None` where the kernel has no such call.
    fn get() -> Option<Attributes> {
        let mut attributes = Attributes::default();
        #[allow(unsafe_code, reason = "no library has this call")]
        // SAFETY: the kernel fills in the struct, whose size it is given, and which lives until the
        // call returns; 0 is this thread.
        let got =
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
        (got == 0).then_some(attributes)
    }

    pub(super) fn set(slice: Duration) {
        let is_usual = |of: &Attributes| of.policy == libc::SCHED_OTHER.cast_unsigned();
        let Some(mut attributes) = get().filter(is_usual) else { return };
        // Policy and niceness stay. The slice is in the field that deadlines have their runtime in.
        attributes.size = SIZE;
        attributes.runtime_ns = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        #[allow(unsafe_code, reason = "no library has this call")]
        // SAFETY: the kernel reads the struct, which lives until the call returns. What it refuses
        // changes nothing.
        let _has_set =
            unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }

    /// Policy, niceness, slice in nanoseconds.
    #[cfg(test)]
    pub(super) fn seen() -> (u32, i32, u64) {
        let Attributes { policy, nice, runtime_ns, .. } = get().expect("this kernel has the call");
        (policy, nice, runtime_ns)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_short_slice_changes_nothing_else() {
        let joined = std::thread::spawn(|| {
            let before = linux::seen();
            shorten();
            (before, linux::seen())
        });
        let ((policy, nice, slice_ns), after) = joined.join().unwrap();
        assert_eq!((after.0, after.1), (policy, nice));
        // Kernels before 6.12 have no slices, and say 0.
        assert!(after.2 == slice_ns || after.2 == 100_000, "{after:?}, before {slice_ns}");
    }
}
