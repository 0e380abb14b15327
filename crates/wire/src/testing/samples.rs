//! Random values of the types that are not made by the macros of `xdr/macros.rs`.

use super::{Entropy, Sample};
use crate::nfs2::{FHandle, Sattr2, Timeval};
use crate::nfs3::create::CreateHow;
use crate::nfs3::mknod::{DeviceData, MknodData};
use crate::nfs3::{Failure, FileHandle, HANDLE_LEN_MAX, NfsStat3, NfsTime, Sattr3, SetTime};
use crate::rpc::{
    AcceptStatus, AuthStat, CallHeader, GIDS_MAX, Gids, OpaqueAuth, RejectStatus, ReplyBody,
    ReplyHeader,
};

impl Sample<'_> for FHandle {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        Self(entropy.array())
    }
}

impl Sample<'_> for Sattr2 {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        let mut number = || Option::<u32>::sample(entropy).filter(|number| *number != u32::MAX);
        let (mode, uid, gid, size) = (number(), number(), number(), number());
        let is_set = |time: &Timeval| ![time.seconds, time.useconds].contains(&u32::MAX);
        let mut time = || Option::<Timeval>::sample(entropy).filter(is_set);
        Self { mode, uid, gid, size, atime: time(), mtime: time() }
    }
}

impl Sample<'_> for CreateHow {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        let attributes = Sattr3::sample(entropy);
        let verf = entropy.array();
        *entropy.choose(&[
            Self::Unchecked(attributes),
            Self::Guarded(attributes),
            Self::Exclusive(verf),
        ])
    }
}

impl Sample<'_> for FileHandle {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        Self::new(entropy.bytes(HANDLE_LEN_MAX)).unwrap()
    }
}

impl Sample<'_> for MknodData {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        let device = DeviceData::sample(entropy);
        *entropy.choose(&[
            Self::Chr(device),
            Self::Blk(device),
            Self::Sock(device.dev_attributes),
            Self::Fifo(device.dev_attributes),
            Self::Reg,
            Self::Dir,
            Self::Lnk,
        ])
    }
}

impl<'a, D: Sample<'a>> Sample<'a> for Failure<D> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        Self { status: NfsStat3::sample(entropy), detail: D::sample(entropy) }
    }
}

impl Sample<'_> for SetTime {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        let time = NfsTime::sample(entropy);
        *entropy.choose(&[Self::DontChange, Self::ServerTime, Self::ClientTime(time)])
    }
}

impl Sample<'_> for Gids {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        let ids = entropy.array::<{ 1 + GIDS_MAX }>().map(u32::from);
        let count = ids[0] as usize % (1 + GIDS_MAX);
        Self::new(&ids[1..=count]).unwrap()
    }
}

impl<'a> Sample<'a> for CallHeader<'a> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        Self {
            xid: entropy.u32(),
            program: entropy.u32(),
            version: entropy.u32(),
            procedure: entropy.u32(),
            credential: OpaqueAuth::sample(entropy),
            verifier: OpaqueAuth::sample(entropy),
        }
    }
}

impl<'a> Sample<'a> for ReplyHeader<'a> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        let (xid, low, high) = (entropy.u32(), entropy.u32(), entropy.u32());
        let verifier = OpaqueAuth::sample(entropy);
        let status = *entropy.choose(&[
            AcceptStatus::Success,
            AcceptStatus::ProgUnavail,
            AcceptStatus::ProgMismatch { low, high },
            AcceptStatus::ProcUnavail,
            AcceptStatus::GarbageArgs,
            AcceptStatus::SystemErr,
        ]);
        let why = AuthStat::sample(entropy);
        let body = *entropy.choose(&[
            ReplyBody::Accepted { verifier, status },
            ReplyBody::Denied(RejectStatus::RpcMismatch { low, high }),
            ReplyBody::Denied(RejectStatus::AuthError(why)),
        ]);
        Self { xid, body }
    }
}
