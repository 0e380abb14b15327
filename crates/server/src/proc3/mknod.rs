//! MKNOD (RFC 1813 section 3.3.11).

use wire::nfs3::NfsStat3;
use wire::nfs3::mknod::{Args, DeviceData, MknodData, Reply};

use super::{Context, convert};
use crate::store::Store;
use crate::types::{SetAttr, Special};

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let entry = context.writable().and_then(|()| context.new_entry(&args.where_));
    let wanted = entry.and_then(|entry| special(args.what).map(|what| (entry, what)));
    let ((dir, name), (what, attrs)) = match wanted {
        Ok(wanted) => wanted,
        Err(status) => return Err(context.refuse(&args.where_.dir, status).await),
    };
    context.made(context.store.make_node(&context.caller, &dir, name, what, attrs).await)
}

fn special(what: MknodData) -> Result<(Special, SetAttr), NfsStat3> {
    let numbers = |device: DeviceData| (device.spec.specdata1, device.spec.specdata2);
    match what {
        MknodData::Chr(device) => {
            let (major, minor) = numbers(device);
            let what = Special::CharDevice { major, minor };
            Ok((what, convert::set_attr(device.dev_attributes)))
        }
        MknodData::Blk(device) => {
            let (major, minor) = numbers(device);
            let what = Special::BlockDevice { major, minor };
            Ok((what, convert::set_attr(device.dev_attributes)))
        }
        MknodData::Sock(attributes) => Ok((Special::Socket, convert::set_attr(attributes))),
        MknodData::Fifo(attributes) => Ok((Special::Fifo, convert::set_attr(attributes))),
        MknodData::Reg | MknodData::Dir | MknodData::Lnk => Err(NfsStat3::BadType),
    }
}
