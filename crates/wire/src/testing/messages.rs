//! Every kind of message once, with golden bytes, and tests that hold for all of them.

use crate::fuzzing::{round_trip_args, round_trip_results};
use crate::xdr::{Decode, DecodeError, DecodeErrorKind, Reader};
use crate::{Procedure, mount, nfs2, nfs3, nlm, portmap, rpc, rpcbind};

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
    goldens.extend(nfs2_goldens());
    goldens.extend(mount1_goldens());
    goldens.extend(rpcbind_goldens());
    goldens.extend(nlm_goldens());
    goldens
}

fn nfs3_goldens() -> Vec<Golden> {
    macro_rules! table {
        ($($name:ident $module:ident = $code:literal $text:literal,)*) => {
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

fn nfs2_goldens() -> Vec<Golden> {
    macro_rules! table {
        ($($name:ident $module:ident = $code:literal $text:literal,)*) => {
            vec![$(
                (nfs2::Procedure::$name, Part::Args, nfs2::$module::tests::ARGS),
                (nfs2::Procedure::$name, Part::Ok, nfs2::$module::tests::OK),
                (nfs2::Procedure::$name, Part::Fail, nfs2::$module::tests::FAIL),
            )*]
        };
    }
    let table: Vec<(nfs2::Procedure, Part, &str)> = nfs2::for_each_procedure!(table);
    listed(&table, Procedure::Nfs2)
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

/// What differs from version 3, and an example of what does not.
fn mount1_goldens() -> Vec<Golden> {
    use mount::Procedure as P;
    use mount::tests as t;
    let table = [
        (P::Mnt, Part::Args, t::DIR_PATH),
        (P::Mnt, Part::Ok, t::MNT1_OK),
        (P::Mnt, Part::Fail, t::MNT_FAIL),
        (P::Dump, Part::Ok, t::DUMP_OK),
    ];
    listed(&table, Procedure::Mount1)
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

fn rpcbind_goldens() -> Vec<Golden> {
    use portmap::tests as p;
    use rpcbind::Procedure as P;
    use rpcbind::tests as t;
    let table = [
        (P::Set, Part::Args, t::RPCB),
        (P::Set, Part::Ok, p::DONE),
        (P::Getaddr, Part::Args, t::RPCB),
        (P::Getaddr, Part::Ok, t::UADDR),
        (P::Dump, Part::Ok, t::DUMP_OK),
        (P::Gettime, Part::Ok, t::SECONDS),
        (P::Uaddr2taddr, Part::Args, t::UADDR),
        (P::Uaddr2taddr, Part::Ok, t::NETBUF),
        (P::Taddr2uaddr, Part::Args, t::NETBUF),
        (P::Taddr2uaddr, Part::Ok, t::UADDR),
    ];
    let version_4 = [
        (P::Getversaddr, Part::Args, t::RPCB),
        (P::Getversaddr, Part::Ok, t::UADDR),
        (P::Indirect, Part::Args, p::CALLIT_ARGS),
    ];
    let mut goldens = listed(&table, Procedure::Rpcbind3);
    goldens.extend(listed(&version_4, Procedure::Rpcbind4));
    goldens
}

fn nlm_goldens() -> Vec<Golden> {
    use nlm::Procedure as P;
    use nlm::tests as t;
    let table = [
        (P::Null, Part::Args, ""),
        (P::Lock, Part::Ok, t::REPLY),
        (P::Share, Part::Ok, t::SHARE_REPLY),
    ];
    listed(&table, Procedure::Nlm4)
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
