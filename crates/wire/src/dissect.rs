//! Any message on one readable line, for logs, traces and failing tests.
//!
//! ```text
//! call xid=0x1a WRITE file=1f2e3d4c.. offset=8192 count=8192 stable=UNSTABLE data=[8192 bytes]
//! reply xid=0x1a WRITE OK file_wcc=REG/0644/16384 count=8192 committed=UNSTABLE verf=0102030405060708
//! ```
//!
//! Fields appear as `name=value` with the RFC's names; absent optional ones are left out, lists
//! show how many elements they have. Garbage gives a line that says what is wrong and where.

use std::fmt::{Display, Write};

use crate::xdr::{Decode, DecodeError, List, Reader, Void};
use crate::{Procedure, mount, nfs3, portmap, rpc};

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
            show_args(procedure, r, line)
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
        rpc::ReplyBody::Accepted {
            status: rpc::AcceptStatus::Success,
            ..
        } => show_results(procedure, r, line),
        refused => {
            line.word(refused);
            Ok(())
        }
    }
}

/// Appends one kind of message to the line.
type Shower = fn(&mut Reader<'_>, &mut Line) -> Result<(), DecodeError>;

/// Decodes with `decode` and appends what came out.
macro_rules! shower {
    ($decode:path) => {
        |r, line| {
            $decode(r)?.show("", line);
            Ok(())
        }
    };
}

fn show_args(procedure: Procedure, r: &mut Reader<'_>, line: &mut Line) -> Result<(), DecodeError> {
    macro_rules! nfs3_args {
        ($($name:ident $module:ident,)*) => {
            |procedure| match procedure {
                $(nfs3::Procedure::$name => shower!(nfs3::$module::Args::decode),)*
            }
        };
    }
    let of_nfs3: fn(nfs3::Procedure) -> Shower = nfs3::for_each_procedure!(nfs3_args);
    match procedure {
        Procedure::Nfs3(procedure) => of_nfs3(procedure)(r, line),
        Procedure::Mount(procedure) => mount_args(procedure)(r, line),
        Procedure::Portmap(procedure) => portmap_args(procedure)(r, line),
        Procedure::Unknown { .. } => show_unknown(r, line),
    }
}

fn show_results(
    procedure: Procedure,
    r: &mut Reader<'_>,
    line: &mut Line,
) -> Result<(), DecodeError> {
    macro_rules! nfs3_results {
        ($($name:ident $module:ident,)*) => {
            |procedure| match procedure {
                $(nfs3::Procedure::$name => shower!(nfs3::$module::Reply::decode),)*
            }
        };
    }
    let of_nfs3: fn(nfs3::Procedure) -> Shower = nfs3::for_each_procedure!(nfs3_results);
    match procedure {
        Procedure::Nfs3(procedure) => of_nfs3(procedure)(r, line),
        Procedure::Mount(procedure) => mount_results(procedure)(r, line),
        Procedure::Portmap(procedure) => portmap_results(procedure)(r, line),
        Procedure::Unknown { .. } => show_unknown(r, line),
    }
}

fn mount_args(procedure: mount::Procedure) -> Shower {
    use mount::Procedure as P;
    match procedure {
        P::Null | P::Dump | P::Umntall | P::Export => shower!(Void::decode),
        P::Mnt | P::Umnt => shower!(mount::DirPath::decode),
    }
}

fn mount_results(procedure: mount::Procedure) -> Shower {
    use mount::Procedure as P;
    match procedure {
        P::Null | P::Umnt | P::Umntall => shower!(Void::decode),
        P::Mnt => shower!(mount::MntReply::decode),
        P::Dump => shower!(mount::DumpReply::decode),
        P::Export => shower!(mount::ExportReply::decode),
    }
}

fn portmap_args(procedure: portmap::Procedure) -> Shower {
    use portmap::Procedure as P;
    match procedure {
        P::Null | P::Dump => shower!(Void::decode),
        P::Set | P::Unset | P::Getport => shower!(portmap::Mapping::decode),
        P::Callit => shower!(portmap::CallitArgs::decode),
    }
}

fn portmap_results(procedure: portmap::Procedure) -> Shower {
    use portmap::Procedure as P;
    match procedure {
        P::Null => shower!(Void::decode),
        P::Set | P::Unset => shower!(portmap::Done::decode),
        P::Getport => shower!(portmap::Port::decode),
        P::Dump => shower!(portmap::DumpReply::decode),
        P::Callit => shower!(portmap::CallitReply::decode),
    }
}

fn show_unknown(r: &mut Reader<'_>, line: &mut Line) -> Result<(), DecodeError> {
    let rest = r.take(r.rest().len())?;
    line.payload("data", rest);
    Ok(())
}

/// A line that grows word by word up to [`LINE_LEN_MAX`].
#[derive(Debug)]
pub struct Line {
    text: String,
}

impl Line {
    fn new(first: &str) -> Self {
        Self {
            text: first.to_owned(),
        }
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
