//! Every kind of message once, with golden bytes, and tests that hold for all of them.

use crate::fuzzing::{round_trip_args, round_trip_results};
use crate::xdr::{Decode, DecodeError, DecodeErrorKind, Reader};
use crate::{Procedure, mount, nfs3, portmap, rpc};

use super::bytes_of;

/// Golden bytes and what they are.
pub(crate) struct Golden {
    pub(crate) procedure: Procedure,
    pub(crate) part: Part,
    pub(crate) bytes: &'static [u8],
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Args,
    Ok,
    Fail,
}

impl Golden {
    /// `write-args`, `mount.mnt-ok`
    pub(crate) fn name(&self) -> String {
        format!("{}-{:?}", self.procedure, self.part).to_lowercase()
    }

    fn decode(&self, bytes: &[u8]) -> Result<(), DecodeError> {
        match self.part {
            Part::Args => round_trip_args(self.procedure, bytes),
            Part::Ok | Part::Fail => round_trip_results(self.procedure, bytes),
        }
    }
}

/// The golden messages of all programs.
pub(crate) fn goldens() -> Vec<Golden> {
    let mut goldens = nfs3_goldens();
    goldens.extend(mount_goldens());
    goldens.extend(portmap_goldens());
    goldens
}

fn nfs3_goldens() -> Vec<Golden> {
    macro_rules! table {
        ($($name:ident $module:ident,)*) => {
            vec![$(
                (nfs3::Procedure::$name, Part::Args, nfs3::$module::tests::ARGS),
                (nfs3::Procedure::$name, Part::Ok, nfs3::$module::tests::OK),
                (nfs3::Procedure::$name, Part::Fail, nfs3::$module::tests::FAIL),
            )*]
        };
    }
    let table: Vec<(nfs3::Procedure, Part, &str)> = nfs3::for_each_procedure!(table);
    listed(&table, Procedure::Nfs3)
}

fn mount_goldens() -> Vec<Golden> {
    use mount::Procedure as P;
    use mount::tests as t;
    let table = [
        (P::Null, Part::Args, ""),
        (P::Mnt, Part::Args, t::DIR_PATH),
        (P::Mnt, Part::Ok, t::MNT_OK),
        (P::Mnt, Part::Fail, t::MNT_FAIL),
        (P::Dump, Part::Ok, t::DUMP_OK),
        (P::Umnt, Part::Args, t::DIR_PATH),
        (P::Umntall, Part::Args, ""),
        (P::Export, Part::Ok, t::EXPORT_OK),
    ];
    listed(&table, Procedure::Mount)
}

fn portmap_goldens() -> Vec<Golden> {
    use portmap::Procedure as P;
    use portmap::tests as t;
    let table = [
        (P::Null, Part::Args, ""),
        (P::Set, Part::Args, t::MAPPING),
        (P::Set, Part::Ok, t::DONE),
        (P::Unset, Part::Args, t::MAPPING),
        (P::Unset, Part::Ok, t::DONE),
        (P::Getport, Part::Args, t::MAPPING),
        (P::Getport, Part::Ok, t::PORT),
        (P::Dump, Part::Ok, t::DUMP_OK),
        (P::Callit, Part::Args, t::CALLIT_ARGS),
        (P::Callit, Part::Ok, t::CALLIT_OK),
    ];
    listed(&table, Procedure::Portmap)
}

fn listed<P: Copy>(table: &[(P, Part, &str)], of: impl Fn(P) -> Procedure) -> Vec<Golden> {
    table
        .iter()
        .map(|&(procedure, part, text)| Golden {
            procedure: of(procedure),
            part,
            bytes: bytes_of(text),
        })
        .collect()
}

/// Cuts `bytes` at every place; each cut must be noticed as what it is.
fn assert_truncations(name: &str, bytes: &[u8], decode: impl Fn(&[u8]) -> Result<(), DecodeError>) {
    assert_eq!(decode(bytes), Ok(()), "{name}");
    for len in 0..bytes.len() {
        let error = decode(&bytes[..len]).expect_err(name);
        assert!(!error.field.is_empty(), "{name} of {len} bytes: {error}");
        let DecodeErrorKind::Truncated { need, have } = error.kind else {
            panic!("{name} of {len} bytes: {error}");
        };
        assert_eq!(error.at + have, len, "{name} of {len} bytes: {error}");
        assert!(need > have, "{name} of {len} bytes: {error}");
    }
}

#[test]
fn a_message_cut_off_anywhere_is_an_error_that_names_field_and_offset() {
    for golden in goldens() {
        assert_truncations(&golden.name(), golden.bytes, |bytes| golden.decode(bytes));
    }
}

#[test]
fn a_header_cut_off_anywhere_is_an_error_that_names_field_and_offset() {
    use rpc::reply::tests as t;
    let call = |bytes: &[u8]| rpc::CallHeader::decode(&mut Reader::new(bytes)).map(drop);
    assert_truncations("call", bytes_of(rpc::call::tests::HEADER), call);
    let reply = |bytes: &[u8]| rpc::ReplyHeader::decode(&mut Reader::new(bytes)).map(drop);
    for text in [t::SUCCESS, t::PROG_MISMATCH, t::RPC_MISMATCH, t::AUTH_ERROR] {
        assert_truncations("reply", bytes_of(text), reply);
    }
    let ids = |bytes: &[u8]| rpc::AuthSys::decode(&mut Reader::new(bytes)).map(drop);
    assert_truncations("AUTH_SYS", bytes_of(rpc::auth::tests::BODY), ids);
}
