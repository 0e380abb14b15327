//! Several captures as one, in the order of time.

use super::{Capture, CaptureError, Note, Packet, Place};

/// Captures whose packets come in the order of their time, as far as each file is in order.
#[derive(Debug)]
pub struct Merged<'r> {
    captures: Vec<Capture<'r>>,
    /// Whose packet was given last.
    given: Option<usize>,
    /// The number of the last packet that each has given.
    frames: Vec<u64>,
}

impl<'r> Merged<'r> {
    /// # Errors
    /// When the first packet of one cannot be read.
    pub fn new(mut captures: Vec<Capture<'r>>) -> Result<Self, CaptureError> {
        for capture in &mut captures {
            capture.advance()?;
        }
        let frames = vec![0; captures.len()];
        Ok(Self { captures, given: None, frames })
    }

    /// The next packet of all; `None` at the end of all.
    ///
    /// # Errors
    /// When a file cannot be read any more.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        if let Some(index) = self.given.take() {
            self.captures[index].advance()?;
        }
        let index = match &self.captures[..] {
            // One file, as nearly always: nothing to compare.
            [_] => 0,
            captures => {
                let times = captures.iter().enumerate();
                let times = times.filter_map(|(index, capture)| Some((capture.at_ns()?, index)));
                let Some((_, index)) = times.min() else { return Ok(None) };
                index
            }
        };
        self.given = Some(index);
        let packet = self.captures[index].packet();
        let Some(packet) = packet else { return Ok(None) };
        self.frames[index] = packet.frame;
        let place = Place { file: u16::try_from(index).unwrap_or(u16::MAX), ..packet.place };
        Ok(Some(Packet { frame: self.frames.iter().sum(), place, ..packet }))
    }

    /// What times are multiples of, in the file with the coarsest.
    pub fn resolution_ns(&self) -> u64 {
        self.captures.iter().map(Capture::resolution_ns).max().unwrap_or(1)
    }

    /// What was wrong with the files.
    pub fn notes(&self) -> Vec<Note> {
        self.captures.iter().flat_map(Capture::notes).collect()
    }

    /// Packets and bytes read of all files.
    pub fn read(&self) -> (u64, u64) {
        let packets = self.captures.iter().map(Capture::packets).sum();
        let bytes = self.captures.iter().map(Capture::bytes).sum();
        (packets, bytes)
    }
}
