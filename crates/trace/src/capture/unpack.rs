//! Compression, recognised by the first bytes.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The bytes of `reader`, unpacked if they are gzip or zstd.
///
/// # Errors
/// When the first bytes cannot be read, or the head of a zstd frame is wrong.
pub fn unpack<'r>(mut reader: Box<dyn Read + 'r>) -> io::Result<Box<dyn Read + 'r>> {
    let mut head = [0; 4];
    let mut have = 0;
    while have < head.len() {
        match reader.read(&mut head[have..]) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    let whole = Cursor::new(head).take(have as u64).chain(reader);
    if head.starts_with(&GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(whole)));
    }
    if head == ZSTD {
        return Ok(Box::new(Frames { now: None, rest: Some(Box::new(whole)) }));
    }
    Ok(Box::new(whole))
}

/// Frames of zstd one after the other: `zstd` with several threads, and `cat`, make such files.
struct Frames<'r> {
    now: Option<Box<Frame<'r>>>,
    /// While no frame is open.
    rest: Option<Box<dyn Read + 'r>>,
}

type Frame<'r> = StreamingDecoder<Box<dyn Read + 'r>, ruzstd::decoding::FrameDecoder>;

impl Read for Frames<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.now {
                match frame.read(out)? {
                    0 if !out.is_empty() => {}
                    n => return Ok(n),
                }
            }
            if let Some(frame) = self.now.take() {
                self.rest = Some(frame.into_inner());
            }
            let Some(mut rest) = self.rest.take() else { return Ok(0) };
            let mut first = [0];
            if rest.read(&mut first)? == 0 {
                return Ok(0);
            }
            let rest: Box<dyn Read + '_> = Box::new(Cursor::new(first).chain(rest));
            let frame = StreamingDecoder::new(rest).map_err(io::Error::other)?;
            self.now = Some(Box::new(frame));
        }
    }
}
