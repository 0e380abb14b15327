//! Whatever a message holds, its bytes decode to the same message.

use std::cell::OnceCell;
use std::fmt::Debug;

use proptest::prelude::*;

use crate::xdr::{Decode, DecodeError, Encode, Reader, from_bytes};
use crate::{mount, nfs2, nfs3, portmap, rpc, rpcbind};

use super::{Entropy, Sample};

/// Checks a random value of the type that `decode` makes.
fn assert_round_trip<'a, T>(
    entropy: &'a [u8],
    encoded: &'a OnceCell<Vec<u8>>,
    _decode: fn(&mut Reader<'a>) -> Result<T, DecodeError>,
) where
    T: Debug + Decode<'a> + Encode + PartialEq + Sample<'a>,
{
    let value = T::sample(&mut Entropy::new(entropy));
    let encoded = encoded.get_or_init(|| value.to_bytes());
    assert_eq!(encoded.len() % 4, 0, "{value:?}");
    assert_eq!(from_bytes(encoded), Ok(value));
}

macro_rules! assert_round_trips {
    ($entropy:expr, $($decode:expr,)*) => {
        $({
            let encoded = OnceCell::new();
            assert_round_trip($entropy, &encoded, $decode);
        })*
    };
}

proptest! {
    #[test]
    fn nfs2_messages_survive_the_way_there_and_back(
        entropy in prop::collection::vec(any::<u8>(), 0..1000),
    ) {
        macro_rules! of_procedures {
            ($($name:ident $module:ident = $code:literal $text:literal,)*) => {
                assert_round_trips! {
                    &entropy,
                    $(nfs2::$module::Args::decode, nfs2::$module::Reply::decode,)*
                }
            };
        }
        nfs2::for_each_procedure!(of_procedures);
    }

    #[test]
    fn nfs3_messages_survive_the_way_there_and_back(
        entropy in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        macro_rules! of_procedures {
            ($($name:ident $module:ident = $code:literal $text:literal,)*) => {
                assert_round_trips! {
                    &entropy,
                    $(nfs3::$module::Args::decode, nfs3::$module::Reply::decode,)*
                }
            };
        }
        nfs3::for_each_procedure!(of_procedures);
    }

    #[test]
    fn other_messages_survive_the_way_there_and_back(
        entropy in prop::collection::vec(any::<u8>(), 0..1000),
    ) {
        assert_round_trips! {
            &entropy,
            mount::DirPath::decode,
            mount::MntReply::decode,
            mount::MntReply1::decode,
            mount::DumpReply::decode,
            mount::ExportReply::decode,
            portmap::Mapping::decode,
            portmap::Done::decode,
            portmap::Port::decode,
            portmap::DumpReply::decode,
            portmap::CallitArgs::decode,
            portmap::CallitReply::decode,
            rpcbind::Rpcb::decode,
            rpcbind::Uaddr::decode,
            rpcbind::DumpReply::decode,
            rpcbind::Seconds::decode,
            rpcbind::Netbuf::decode,
            rpc::AuthSys::decode,
            rpc::CallHeader::decode,
            rpc::ReplyHeader::decode,
        }
    }
}
