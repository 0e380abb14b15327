//! Any message on one readable line, for logs, traces and failing tests.
//!
//! ```text
//! call xid=0x1a WRITE file=1f2e3d4c.. offset=8192 count=8192 stable=UNSTABLE data=[8192 bytes]
//! reply xid=0x1a WRITE OK count=8192 committed=UNSTABLE verf=0102030405060708
//! ```
//!
//! Fields appear as `name=value` with the RFC's names; absent optional ones are left out, lists
//! show how many elements they have. Garbage gives a line that says what is wrong and where.

use std::fmt::{Display, Write};

use crate::catalog::{Visit, visit_args, visit_results};
use crate::xdr::{Decode, DecodeError, List, Reader};
use crate::{Procedure, rpc};

/// Characters after which a line is cut off.
pub const LINE_LEN_MAX: usize = 1000;

/// Bytes of a name or handle that are shown.
const OPAQUE_SHOWN_MAX: usize = 80;

/// A call: header and arguments.
pub fn call(bytes: &[u8]) -> String {
    let mut line = Line::new("call");
    let mut r = Reader::new(bytes);
    let outcome = show_call(&mut r, &mut line);
    line.end(outcome, &r)
}

/// A reply, which does not say itself what it answers.
pub fn reply(bytes: &[u8], procedure: Procedure) -> String {
    let mut line = Line::new("reply");
    let mut r = Reader::new(bytes);
    let outcome = show_reply(&mut r, procedure, &mut line);
    line.end(outcome, &r)
}

fn show_call(r: &mut Reader<'_>, line: &mut Line) -> Result<(), DecodeError> {
    match rpc::Call::decode(r)? {
        rpc::Call::OtherVersion { xid, version } => {
            line.field("xid", format_args!("{xid:#x}"));
            line.field("rpcvers", version);
            r.take(r.rest().len())?; // of a version we cannot read
            Ok(())
        }
        rpc::Call::Version2(header) => {
            let procedure = header.procedure();
            line.field("xid", format_args!("{:#x}", header.xid));
            line.word(procedure);
            visit_args(procedure, r, line)
        }
    }
}

fn show_reply(
    r: &mut Reader<'_>,
    procedure: Procedure,
    line: &mut Line,
) -> Result<(), DecodeError> {
    let header = rpc::ReplyHeader::decode(r)?;
    line.field("xid", format_args!("{:#x}", header.xid));
    line.word(procedure);
    match header.body {
        rpc::ReplyBody::Accepted { status: rpc::AcceptStatus::Success, .. } => {
            visit_results(procedure, r, line)
        }
        refused => {
            line.word(refused);
            Ok(())
        }
    }
}

impl<'a> Visit<'a> for &mut Line {
    fn visit<T>(
        self,
        r: &mut Reader<'a>,
        decode: fn(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<(), DecodeError>
    where
        T: Show,
    {
        decode(r)?.show("", self);
        Ok(())
    }
}

/// A line that grows word by word up to [`LINE_LEN_MAX`].
#[derive(Debug)]
pub struct Line {
    text: String,
}

impl Line {
    fn new(first: &str) -> Self {
        Self { text: first.to_owned() }
    }

    /// Appends ` name=value`, or ` value` when the name is empty.
    pub fn field(&mut self, name: &'static str, value: impl Display) {
        match name {
            "" => self.word(value),
            _ => self.word(format_args!("{name}={value}")),
        }
    }

    /// Appends ` word`.
    pub fn word(&mut self, word: impl Display) {
        if self.text.len() <= LINE_LEN_MAX {
            write!(self.text, " {word}").expect("writing to a String cannot fail");
        }
    }

    /// Appends a payload as its length.
    pub fn payload(&mut self, name: &'static str, payload: &[u8]) {
        self.field(name, format_args!("[{} bytes]", payload.len()));
    }

    fn end(mut self, outcome: Result<(), DecodeError>, r: &Reader<'_>) -> String {
        match (outcome, r.rest().len()) {
            (Ok(()), 0) => {}
            (Ok(()), have) => self.word(format_args!("(+{have} bytes)")),
            (Err(error), _) => self.word(format_args!("(malformed: {error})")),
        }
        if self.text.len() > LINE_LEN_MAX {
            self.text = self.text.chars().take(LINE_LEN_MAX).collect();
            self.text.push_str("...");
        }
        self.text
    }
}

/// How a value appears in a line under the name its holder gives it.
pub trait Show {
    fn show(&self, name: &'static str, line: &mut Line);
}

macro_rules! show_by_display {
    ($($type:ty)*) => {
        $(impl Show for $type {
            fn show(&self, name: &'static str, line: &mut Line) {
                line.field(name, self);
            }
        })*
    };
}
show_by_display! { u32 u64 bool }

impl Show for () {
    fn show(&self, _name: &'static str, _line: &mut Line) {}
}

impl Show for &[u8] {
    fn show(&self, name: &'static str, line: &mut Line) {
        let shown = &self[..self.len().min(OPAQUE_SHOWN_MAX)];
        let dots = if shown.len() < self.len() { ".." } else { "" };
        line.field(name, format_args!("\"{}{dots}\"", shown.escape_ascii()));
    }
}

impl<const N: usize> Show for [u8; N] {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, Hex(self));
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self, name: &'static str, line: &mut Line) {
        if let Some(value) = self {
            value.show(name, line);
        }
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, format_args!("[{}]", self.len()));
    }
}

impl<T: Show> Show for List<T> {
    fn show(&self, name: &'static str, line: &mut Line) {
        self.0.show(name, line);
    }
}

impl<T: Show, F: Show> Show for Result<T, F> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        match self {
            Ok(value) => {
                line.word("OK");
                value.show("", line);
            }
            Err(failure) => failure.show("", line),
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfs3;
    use crate::testing::bytes_of;

    /// A call with the header of a WRITE and these arguments.
    fn write_call(args: &str) -> String {
        call(bytes_of(&format!("{} {args}", rpc::call::tests::HEADER)))
    }

    fn nfs3_reply(procedure: nfs3::Procedure, results: &str) -> String {
        let text = format!("{} {results}", rpc::reply::tests::SUCCESS);
        reply(bytes_of(&text), Procedure::Nfs3(procedure))
    }

    #[test]
    fn a_call_shows_its_arguments() {
        assert_eq!(
            write_call(nfs3::write::tests::ARGS),
            "call xid=0x1a WRITE file=a1a2a3a4a5 offset=4294975488 count=5 stable=FILE_SYNC \
             data=[5 bytes]"
        );
    }

    #[test]
    fn a_reply_shows_its_results_or_why_it_failed() {
        assert_eq!(
            nfs3_reply(nfs3::Procedure::Write, nfs3::write::tests::OK),
            "reply xid=0x1a WRITE OK file_wcc=REG/0644/8192 count=5 committed=FILE_SYNC \
             verf=0102030405060708"
        );
        assert_eq!(
            nfs3_reply(nfs3::Procedure::Lookup, nfs3::lookup::tests::FAIL),
            "reply xid=0x1a LOOKUP NFS3ERR_NOENT attributes=REG/0644/8192"
        );
        assert_eq!(
            nfs3_reply(nfs3::Procedure::Readdir, nfs3::readdir::tests::OK),
            "reply xid=0x1a READDIR OK dir_attributes=REG/0644/8192 \
             cookieverf=0102030405060708 entries=[2] eof=true"
        );
    }

    #[test]
    fn names_are_escaped() {
        let text = "00000002 00000000 00000003 0a2280 00";
        let mut line = Line::new("");
        let mut r = Reader::new(bytes_of(text));
        r.u32().unwrap();
        nfs3::DirOp::decode(&mut r).unwrap().show("", &mut line);
        assert_eq!(line.text, " dir= name=\"\\n\\\"\\x80\"");
    }

    #[test]
    fn a_refusal_shows_its_reason() {
        let refused = |text| reply(bytes_of(text), Procedure::Nfs3(nfs3::Procedure::Read));
        assert_eq!(
            refused(rpc::reply::tests::PROG_MISMATCH),
            "reply xid=0x1a READ PROG_MISMATCH(2..3)"
        );
        assert_eq!(
            refused(rpc::reply::tests::AUTH_ERROR),
            "reply xid=0x1a READ AUTH_ERROR(AUTH_TOOWEAK)"
        );
    }

    #[test]
    fn garbage_says_what_is_wrong_and_where() {
        assert_eq!(
            write_call("00000001"),
            "call xid=0x1a WRITE (malformed: file at byte 64: needs 4 bytes, 0 are left)"
        );
        assert_eq!(call(&[]), "call (malformed: xid at byte 0: needs 4 bytes, 0 are left)");
    }

    #[test]
    fn bytes_too_many_are_counted() {
        let line = nfs3_reply(nfs3::Procedure::Null, "00000000");
        assert_eq!(line, "reply xid=0x1a NULL (+4 bytes)");
    }

    #[test]
    fn an_unknown_procedure_shows_its_numbers() {
        let text = "00000001 00000000 00000002 00000007 00000008 00000009
            00000000 00000000 00000000 00000000 abcdef";
        assert_eq!(call(bytes_of(text)), "call xid=0x1 7.8.9 data=[3 bytes]");
    }

    #[test]
    fn a_line_is_cut_off() {
        let mut line = Line::new("call");
        for _ in 0..1000 {
            line.word("0123456789");
        }
        let text = line.end(Ok(()), &Reader::new(&[]));
        assert_eq!(text.len(), LINE_LEN_MAX + 3);
        assert!(text.ends_with("..."));
    }
}
