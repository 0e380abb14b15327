//! Pages of a block that are zero: they are not written, so that a file with holes takes no more
//! room here than at its origin. A block whose pages were never written reads as zeros, and its
//! checksum says whether it should. Pure, but for the calls to the medium.

use std::io;
use std::ops::Range;

use crate::header::DATA_AT;
use crate::medium::Stored;

/// What local file systems allocate: blocks begin at multiples of it.
const PAGE_BYTES: usize = 4096;

const _: () = assert!(PAGE_BYTES as u64 == DATA_AT);

static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// A part of a block that is written, or zero.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Run {
    range: Range<usize>,
    is_zero: bool,
}

fn runs(block: &[u8]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, page) in (0..).step_by(PAGE_BYTES).zip(block.chunks(PAGE_BYTES)) {
        let (end, is_zero) = (at + page.len(), page == &ZEROS[..page.len()]);
        match runs.last_mut().filter(|last| last.is_zero == is_zero) {
            Some(last) => last.range.end = end,
            None => runs.push(Run { range: at..end, is_zero }),
        }
    }
    runs
}

/// Bytes that a block takes of a local disk.
pub(crate) fn disk_bytes(block: &[u8]) -> u64 {
    let pages = block.chunks(PAGE_BYTES).filter(|page| *page != &ZEROS[..page.len()]);
    pages.count() as u64 * DATA_AT
}

/// Writes a block. `is_new`: nothing was ever written to its place.
pub(crate) fn write(stored: &dyn Stored, at: u64, block: &[u8], is_new: bool) -> io::Result<()> {
    for Run { range, is_zero } in runs(block) {
        let place = at + range.start as u64;
        match is_zero {
            true if is_new => {}
            true => stored.clear(place, range.len())?,
            false => stored.write(place, &block[range])?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        let mut block = vec![0; 5 * PAGE_BYTES + 100];
        let run = |range, is_zero| Run { range, is_zero };
        assert_eq!(runs(&block), [run(0..block.len(), true)]);
        assert_eq!(disk_bytes(&block), 0);
        (block[PAGE_BYTES], block[3 * PAGE_BYTES - 1]) = (1, 1);
        *block.last_mut().unwrap() = 1;
        let page = |from: usize, to: usize| from * PAGE_BYTES..to * PAGE_BYTES;
        let end = 5 * PAGE_BYTES..block.len();
        let all =
            [run(page(0, 1), true), run(page(1, 3), false), run(page(3, 5), true), run(end, false)];
        assert_eq!(runs(&block), all);
        assert_eq!(disk_bytes(&block), 3 * DATA_AT);
        assert_eq!(runs(&[]), []);
    }
}
