//! The operations of a capture as a mix: how often each procedure was called.

use std::io::Read;

use super::{Analyzer, Filter, Operation, Program};
use crate::capture::{Capture, CaptureError, Note};

/// Calls of each procedure of one version, retransmissions not counted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Counts {
    /// 2 or 3.
    pub version: u32,
    /// The procedure's number and name, and its calls; those never called are left out.
    pub procedures: Vec<(u32, &'static str, u64)>,
}

impl Counts {
    pub fn calls(&self) -> u64 {
        self.procedures.iter().map(|(_, _, calls)| calls).sum()
    }
}

/// Whether a file begins as a capture does, packed or not.
pub fn is_capture(begins: &[u8]) -> bool {
    const MAGICS: [&[u8]; 7] = [
        &[0xa1, 0xb2, 0xc3, 0xd4],
        &[0xd4, 0xc3, 0xb2, 0xa1],
        &[0xa1, 0xb2, 0x3c, 0x4d],
        &[0x4d, 0x3c, 0xb2, 0xa1],
        &[0x0a, 0x0d, 0x0d, 0x0a],
        &[0x1f, 0x8b],
        &[0x28, 0xb5, 0x2f, 0xfd],
    ];
    MAGICS.iter().any(|magic| begins.starts_with(magic))
}

/// Counts the calls of a capture. Of two versions the one with more calls; `None` when there is no
/// call of version 2 or 3.
///
/// # Errors
/// When it cannot be read as a capture.
pub fn mix<'r>(
    name: &str,
    reader: Box<dyn Read + 'r>,
) -> Result<(Option<Counts>, Vec<Note>), CaptureError> {
    let mut capture = Capture::open(name, reader)?;
    let mut analyzer = Analyzer::new(Filter::default()).without_files();
    while capture.advance()? {
        if let Some(packet) = capture.packet() {
            analyzer.packet(&packet, &mut |_, _, _| {});
        }
    }
    analyzer.end();
    Ok((counts(&analyzer), capture.notes().collect()))
}

/// The calls that an analyzer has seen, as a mix.
pub fn counts(analyzer: &Analyzer) -> Option<Counts> {
    let of = |program: Program, version: u32| {
        let operations = analyzer.totals().operations();
        let own = operations.filter(|(operation, _)| operation.program == program);
        let procedures = own.map(|(operation, total)| {
            let Operation { code, .. } = operation;
            (u32::from(code), operation.name(), total.calls)
        });
        Counts { version, procedures: procedures.collect() }
    };
    let (v2, v3) = (of(Program::Nfs2, 2), of(Program::Nfs3, 3));
    let most = if v2.calls() > v3.calls() { v2 } else { v3 };
    (most.calls() > 0).then_some(most)
}
