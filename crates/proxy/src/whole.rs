//! A READ of any length: in transfers that the origin takes.

use bytes::{Bytes, BytesMut};
use client::error::Error;
use client::ops::ReadOk;
use client::session::Session;
use futures_util::future::try_join_all;
use wire::nfs3::FileHandle;

/// Reads as much as was requested, or to the end of the file, in transfers that the origin takes.
pub(crate) async fn read_whole(
    session: &Session,
    file: FileHandle,
    offset: u64,
    count: u32,
) -> Result<ReadOk, Error> {
    let most = session.sizes_now().read_bytes_max;
    if count <= most {
        return read_part(session, file, offset, count).await;
    }
    let places = (0..count).step_by(most as usize);
    let parts = places.clone().map(|at| {
        let part = most.min(count - at);
        read_part(session, file, offset.saturating_add(u64::from(at)), part)
    });
    let mut whole = BytesMut::with_capacity(count as usize);
    let mut last = ReadOk { file_attributes: None, eof: true, data: Bytes::new() };
    for (part, at) in try_join_all(parts).await?.into_iter().zip(places) {
        // A part that ends early is the end of the file, or there was one for a moment.
        if whole.len() < at as usize {
            break;
        }
        whole.extend_from_slice(&part.data);
        last = part;
    }
    Ok(ReadOk { data: whole.freeze(), ..last })
}

/// Reads no more than a READ may ask for; asks again when the origin gives less.
async fn read_part(
    session: &Session,
    file: FileHandle,
    offset: u64,
    count: u32,
) -> Result<ReadOk, Error> {
    let mut got = BytesMut::new();
    loop {
        let done = u32::try_from(got.len()).unwrap_or(count).min(count);
        let want = count - done;
        let reply = session.read(file, offset.saturating_add(u64::from(done)), want).await?;
        let is_whole = reply.data.len() >= want as usize || reply.eof || reply.data.is_empty();
        if is_whole && got.is_empty() {
            return Ok(reply);
        }
        got.extend_from_slice(&reply.data);
        if is_whole {
            return Ok(ReadOk { data: got.freeze(), ..reply });
        }
    }
}
