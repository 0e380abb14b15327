//! Stable WRITEs to one file, over and over: how many a second, with so many outstanding.

use bytes::Bytes;
use client::session::Session;
use client::transfer::{Kind, Limit};
use net::clock::Clock;
use perf::units::Nanos;
use wire::nfs3::{FileHandle, StableHow};

use crate::error::Error;
use crate::scratch::Scratch;
use crate::seqwrite::{self, Workload};

/// A server with the file.
#[derive(Debug)]
pub struct StableWrites {
    clock: Clock,
    session: Session,
    file: FileHandle,
    data: Bytes,
}

/// The file is overwritten, as those of a study are.
const FILE_BYTES: u64 = 4 << 20;

impl StableWrites {
    /// Makes the file, in a scratch directory of its own that is left.
    ///
    /// # Errors
    /// Any call's.
    pub async fn begin(clock: &Clock, session: Session, call_bytes: u32) -> Result<Self, Error> {
        let scratch = Scratch::create(&session, "stable").await?;
        let file = scratch.file(&session, "f").await?;
        let data = seqwrite::pattern(call_bytes as usize);
        Ok(Self { clock: clock.clone(), session, file, data })
    }

    /// WRITEs a second, over about `time`.
    ///
    /// # Errors
    /// Any call's.
    pub async fn per_s(&self, outstanding: u32, time: Nanos) -> Result<f64, Error> {
        let workload = Workload {
            call_bytes: u32::try_from(self.data.len()).unwrap_or(u32::MAX),
            outstanding: outstanding as usize,
            file_bytes: FILE_BYTES,
            total_bytes: u64::MAX,
            commit_bytes: u64::MAX,
            stable: StableHow::FileSync,
            limit: Limit { time: Some(time), drain: None },
        };
        let run =
            seqwrite::run(&self.clock, &self.session, self.file, &self.data, workload).await?;
        let writes = run.events.iter().filter(|event| event.kind == Kind::Write).count();
        Ok(writes as f64 / run.elapsed.as_secs_f64().max(1e-9))
    }
}
