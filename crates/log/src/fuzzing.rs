//! Bodies of fuzz targets, which ordinary tests run too.

use crate::BLOCK_BYTES;
use crate::frame::{Builder, Frame};
use crate::identity::{Identity, Set};
use crate::replay::Plan;
use crate::scan::{salvage, scan};

/// Any bytes as a log's first block, as a frame, and as a log: an answer or an error, and what is
/// taken for whole is the same when it is written again.
pub fn write_log(input: &[u8]) {
    let _ = Identity::decode(input);
    let id = [1; 16];
    if let Ok(frame) = Frame::decode(input, &id, 0, BLOCK_BYTES) {
        let mut again = Vec::new();
        let mut builder = Builder::new(&mut again);
        frame.records().flatten().for_each(|record| builder.push(&record));
        let header = builder.seal(&frame.header);
        let same = Frame::decode(&again, &id, 0, BLOCK_BYTES).expect("what we write we can read");
        assert_eq!((same.header, header.records), (header, frame.header.records));
        assert!(same.records().eq(frame.records()));
    }
    let set = Set { id, bytes: vec![input.len() as u64] };
    if let Ok((found, _)) = salvage(input, &set) {
        Plan::of(input, &set, &found).expect("it was whole a moment ago");
    }
    if let Ok(found) = scan(input, &set) {
        // A log cannot be longer in the second look.
        let plan = Plan::of(input, &set, &found).expect("it was whole a moment ago");
        let mut bytes = 0;
        let all = plan.run(input, &set, &found, |record| {
            bytes += record.key.as_bytes().len();
            Ok::<_, crate::scan::ScanError>(())
        });
        assert!(all.is_ok() && bytes <= input.len());
    }
}
