//! Any message on one readable line, for logs, traces and failing tests.
//!
//! ```text
//! call xid=0x1a WRITE file=1f2e3d4c.. offset=8192 count=8192 stable=UNSTABLE data=[8192 bytes]
//! reply xid=0x1a WRITE OK count=8192 committed=UNSTABLE verf=0102030405060708
//! ```
//!
//! Fields appear as `name=value` with the RFC's names; absent optional ones are left out, lists
//! show how many elements they have. Garbage gives a line that says what is wrong and where.

use crate::catalog::{Visit, visit_args, visit_results};
pub use crate::show::LINE_LEN_MAX;
use crate::show::{Line, Show};
use crate::xdr::{Decode, DecodeError, Reader};
use crate::{Procedure, rpc};

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
        assert_eq!(line.end(Ok(()), &r), " dir= name=\"\\n\\\"\\x80\"");
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
