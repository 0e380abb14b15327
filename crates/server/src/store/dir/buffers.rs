//! Recycled buffers for reads.
//!
//! A buffer is zeroed once, when it is made; after that each read overwrites what it returns, and
//! the buffer comes back when the reply that carries it has been sent. What lies idle for long goes
//! back to the allocator ([`Buffers::give_back`]).

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// Sizes are powers of two from here...
const CLASS_BYTES_MIN: usize = 4 << 10;
/// ...in this many classes: to 4 MiB, the longest message. Larger ones are not pooled.
const CLASSES: usize = 11;
/// Most memory that waits to be used again. More than that is given back to the allocator.
const IDLE_BYTES_MAX: usize = 64 << 20;
/// What is shorter than this is copied out, so that a small reply does not hold a large buffer.
const COPY_BYTES_MAX: usize = 2 << 10;

#[derive(Clone, Default)]
pub(super) struct Buffers {
    idle: Arc<Mutex<Idle>>,
}

#[derive(Default)]
struct Idle {
    bytes: usize,
    classes: [Vec<Box<[u8]>>; CLASSES],
    /// The fewest that lay in each class since the last look: they were not needed.
    spare: [usize; CLASSES],
    /// The period in which they were last looked at.
    period: u32,
}

/// A buffer on loan.
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
    home: Buffers,
}

impl Buffers {
    /// A buffer of at least `len` bytes; what is in it is of no meaning.
    pub(super) fn take(&self, len: usize) -> Buffer {
        let size = len.next_power_of_two().max(CLASS_BYTES_MIN);
        let used = class(size).and_then(|class| {
            let mut idle = self.idle.lock();
            let bytes = idle.classes[class].pop()?;
            idle.bytes -= size;
            idle.spare[class] = idle.spare[class].min(idle.classes[class].len());
            Some(bytes)
        });
        Buffer {
            bytes: used.unwrap_or_else(|| vec![0; size].into_boxed_slice()),
            len,
            home: self.clone(),
        }
    }
}

impl Buffers {
    /// Gives back those that nobody has needed since the period before this one.
    pub(super) fn give_back(&self, now: u32) {
        let mut freed = Vec::new();
        let mut idle = self.idle.lock();
        if idle.period == now {
            return;
        }
        let Idle { bytes, classes, spare, period } = &mut *idle;
        *period = now;
        for (class, spare) in classes.iter_mut().zip(spare) {
            // Those at the end are taken first.
            freed.extend(class.drain(..*spare));
            *spare = class.len();
        }
        *bytes -= freed.iter().map(|buffer| buffer.len()).sum::<usize>();
        drop(idle);
        // Outside of the lock.
        drop(freed);
    }
}

fn class(size: usize) -> Option<usize> {
    let steps = (size / CLASS_BYTES_MIN).checked_ilog2()?;
    usize::try_from(steps).ok().filter(|&class| class < CLASSES)
}

impl Buffer {
    pub(super) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }

    /// The first `len` bytes, on their way to the client.
    pub(super) fn into_bytes(mut self, len: usize) -> Bytes {
        self.len = len.min(self.len);
        if self.len <= COPY_BYTES_MAX {
            Bytes::copy_from_slice(self.as_ref())
        } else {
            Bytes::from_owner(self)
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let Some(class) = class(bytes.len()) else {
            return;
        };
        let mut idle = self.home.idle.lock();
        if idle.bytes + bytes.len() <= IDLE_BYTES_MAX {
            idle.bytes += bytes.len();
            idle.classes[class].push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_the_last_reader_is_done() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take(8192);
        buffer.as_mut().fill(7);
        let at = buffer.as_ref().as_ptr();
        let sent = buffer.into_bytes(5000);
        assert_eq!(&sent[..], &[7; 5000]);
        let part = sent.slice(10..20);
        drop(sent);
        assert_ne!(buffers.take(8192).as_ref().as_ptr(), at, "still in use");
        drop(part);
        assert_eq!(buffers.take(8192).as_ref().as_ptr(), at, "last in, first out");
    }

    #[test]
    fn idle_memory_is_bounded_and_huge_buffers_are_not_pooled() {
        let buffers = Buffers::default();
        drop((0..40).map(|_| buffers.take(4 << 20)).collect::<Vec<_>>());
        assert_eq!(buffers.idle.lock().bytes, IDLE_BYTES_MAX);
        drop(buffers.take(5 << 20));
        assert_eq!(buffers.idle.lock().bytes, IDLE_BYTES_MAX);
    }

    #[test]
    fn buffers_that_nobody_needs_are_given_back() {
        let buffers = Buffers::default();
        drop((0..10).map(|_| buffers.take(1 << 20)).collect::<Vec<_>>());
        buffers.give_back(1);
        assert_eq!(buffers.idle.lock().bytes, 10 << 20, "they were needed just now");
        buffers.give_back(1);
        assert_eq!(buffers.idle.lock().bytes, 10 << 20, "it is not over");
        drop((0..3).map(|_| buffers.take(1 << 20)).collect::<Vec<_>>());
        buffers.give_back(2);
        assert_eq!(buffers.idle.lock().bytes, 3 << 20);
        buffers.give_back(3);
        assert_eq!(buffers.idle.lock().bytes, 0);
    }

    #[test]
    fn short_results_are_copied_and_free_the_buffer_at_once() {
        let buffers = Buffers::default();
        let sent = buffers.take(1 << 20).into_bytes(100);
        assert_eq!((sent.len(), buffers.idle.lock().bytes), (100, 1 << 20));
    }
}
