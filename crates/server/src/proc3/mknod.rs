//! MKNOD (RFC 1813 section 3.3.11).

use wire::nfs3::Procedure::Mknod;
use wire::nfs3::mknod::{Args, MknodData, Reply};

use crate::store::Store;
use crate::types::{SetAttr, Special, Status};

use super::attributes::set_attr;
use super::{Context, name};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.where_.dir)?;
    let made = match check(cx, &args) {
        Ok((name, what, attrs)) => cx.store.make_node(cx.caller, &dir, name, what, attrs).await,
        Err(status) => cx.unchanged(&dir, status).await,
    };
    cx.new_object(Mknod, made)
}

fn check<'a, S: Store>(
    cx: &Context<'_, S>,
    args: &Args<'a>,
) -> Result<(&'a [u8], Special, SetAttr), Status> {
    cx.check_writable()?;
    let name = name::to_make(args.where_.name)?;
    let (what, attributes) = match &args.what {
        MknodData::Chr(device) => {
            let (major, minor) = (device.spec.specdata1, device.spec.specdata2);
            (Special::CharDevice { major, minor }, &device.dev_attributes)
        }
        MknodData::Blk(device) => {
            let (major, minor) = (device.spec.specdata1, device.spec.specdata2);
            (Special::BlockDevice { major, minor }, &device.dev_attributes)
        }
        MknodData::Sock(attributes) => (Special::Socket, attributes),
        MknodData::Fifo(attributes) => (Special::Fifo, attributes),
        MknodData::Reg | MknodData::Dir | MknodData::Lnk => return Err(Status::BadType),
    };
    Ok((name, what, set_attr(attributes)?.of_new(cx.caller)))
}
