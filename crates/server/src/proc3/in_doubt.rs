//! Whether a call that fails now was executed before.
//!
//! A process was killed between executing a call and recording its reply, and now the call comes
//! again. REMOVE finds nothing to remove, MKDIR finds a directory: the errors that the call's own
//! success causes. If the file system shows its traces from the time in question, the answer is
//! the success that was never sent; else it is the error.
//!
//! The traces are change times. Something made must have been made between the claim of the call
//! and the end of the process that claimed it: making a name is how clients take locks, and who
//! made it later is somebody else. What was removed or moved only has to have changed since: if it
//! was somebody else, it is gone all the same. The traces deceive when somebody made the same name
//! within that time and the call itself had failed; without this file every such call would be
//! answered wrongly.
//!
//! CREATE that takes what is there (UNCHECKED) never fails because of itself. Executed again it
//! would take the file that it had made itself for one that was there, and not give it the owner,
//! the mode and the times that it was to have. So its traces are looked for before
//! ([`success_of_create`]), where the file system keeps when a file was made: it must not take one
//! that was only truncated for one that was made.

use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::MknodData;
use wire::nfs3::{self, DirOp, NewObject, NfsStat3, Procedure, Sattr3, WccData};
use wire::xdr::{self, Encode};

use crate::replies::Doubt;
use crate::store::{Node, Store};
use crate::types::{FileKind, Handle, SetAttr};

use super::Context;
use super::attributes::{fattr3, set_attr};

/// Whether results are an error that a call's own success causes.
pub(crate) fn may_be_done(results: &[u8]) -> bool {
    const CAUSED: [NfsStat3; 3] = [NfsStat3::NoEnt, NfsStat3::Exist, NfsStat3::NotSync];
    CAUSED.iter().any(|status| results.starts_with(&status.code().to_be_bytes()))
}

/// The results of a success that happened before; none when there is no trace of it.
pub(crate) async fn success<S: Store>(
    cx: &Context<'_, S>,
    procedure: Procedure,
    args: &[u8],
    doubt: Doubt,
) -> Option<Vec<u8>> {
    let traces = Traces { cx, doubt };
    let mut results = Vec::new();
    match procedure {
        Procedure::Remove | Procedure::Rmdir => {
            let DirOp { dir, name } = xdr::from_bytes::<nfs3::remove::Args<'_>>(args).ok()?.object;
            traces.removed(&cx.handle(&dir).ok()?, name).await?;
            let reply: nfs3::remove::Reply = Ok(nfs3::remove::ReplyOk { dir_wcc: UNKNOWN });
            reply.encode(&mut results);
        }
        Procedure::Rename => {
            let args: nfs3::rename::Args<'_> = xdr::from_bytes(args).ok()?;
            let to_dir = cx.handle(&args.to.dir).ok()?;
            traces.removed(&cx.handle(&args.from.dir).ok()?, args.from.name).await?;
            let node = traces.named(&to_dir, args.to.name).await?;
            if !traces.doubt.may_have_changed(&node.attr) {
                return None;
            }
            let done = nfs3::rename::ReplyOk { fromdir_wcc: UNKNOWN, todir_wcc: UNKNOWN };
            let reply: nfs3::rename::Reply = Ok(done);
            reply.encode(&mut results);
        }
        Procedure::Link => {
            let args: nfs3::link::Args<'_> = xdr::from_bytes(args).ok()?;
            let file = cx.handle(&args.file).ok()?;
            let dir = cx.handle(&args.link.dir).ok()?;
            let node = traces.named(&dir, args.link.name).await?;
            let file_attributes = Some(fattr3(&node.attr));
            let reply: nfs3::link::Reply = (node.handle == file)
                .then_some(Ok(nfs3::link::ReplyOk { file_attributes, linkdir_wcc: UNKNOWN }))?;
            reply.encode(&mut results);
        }
        Procedure::Setattr => {
            let args: nfs3::setattr::Args = xdr::from_bytes(args).ok()?;
            let attr = cx.store.attr(cx.caller, &cx.handle(&args.object).ok()?).await.ok()?;
            let reply: nfs3::setattr::Reply = traces
                .doubt
                .may_have_changed_last(&attr)
                .then_some(Ok(nfs3::setattr::ReplyOk { obj_wcc: UNKNOWN }))?;
            reply.encode(&mut results);
        }
        Procedure::Create | Procedure::Mkdir | Procedure::Symlink | Procedure::Mknod => {
            let made = traces.made(Wanted::of(procedure, args)?).await?;
            // The four have the same results.
            let reply: nfs3::create::Reply = Ok(made);
            reply.encode(&mut results);
        }
        _ => return None,
    }
    Some(results)
}

/// The results of a CREATE that takes what is there, if it was executed before, perhaps in part.
pub(crate) async fn success_of_create<S: Store>(
    cx: &Context<'_, S>,
    procedure: Procedure,
    args: &[u8],
    doubt: Doubt,
) -> Option<Vec<u8>> {
    if procedure != Procedure::Create {
        return None;
    }
    let nfs3::create::Args { where_, how } = xdr::from_bytes(args).ok()?;
    let CreateHow::Unchecked(attributes) = how else { return None };
    cx.check_writable().ok()?;
    let wanted = Wanted { births_only: true, ..Wanted::new(where_, FileKind::Regular, attributes) };
    let made = Traces { cx, doubt }.made(wanted).await?;
    let reply: nfs3::create::Reply = Ok(made);
    Some(reply.to_bytes())
}

/// Of what was changed before, others may have made since what it is now, and nobody knows what it
/// was: a client that gets the one without the other takes it for its own doing.
const UNKNOWN: WccData = WccData { before: None, after: None };

struct Traces<'t, 'c, S> {
    cx: &'t Context<'c, S>,
    doubt: Doubt,
}

impl<S: Store> Traces<'_, '_, S> {
    /// The name is not there, and its directory changed since.
    async fn removed(&self, dir: &Handle, name: &[u8]) -> Option<()> {
        let found = self.cx.store.lookup(self.cx.caller, dir, name).await;
        let attr = found.attr?;
        if found.result.is_ok() || !self.doubt.may_have_changed(&attr) {
            return None;
        }
        self.cx.store.settle(dir).await.ok()
    }

    /// What the name names.
    async fn named(&self, dir: &Handle, name: &[u8]) -> Option<Node> {
        let found = self.cx.store.lookup(self.cx.caller, dir, name).await;
        let node = found.result.ok()?;
        self.cx.store.settle(dir).await.ok()?;
        Some(node)
    }

    async fn made(&self, wanted: Wanted<'_>) -> Option<NewObject> {
        let Wanted { where_, kind, target, attributes, births_only } = wanted;
        // By another host's clock, what somebody else made shortly before would look like it.
        if !self.cx.store.shares_clock() {
            return None;
        }
        let dir = self.cx.handle(&where_.dir).ok()?;
        let node = self.named(&dir, where_.name).await?;
        let is_known = !births_only || node.attr.made.is_some();
        if node.attr.kind != kind || !is_known || !self.doubt.may_have_made(&node.attr) {
            return None;
        }
        if let Some(target) = target {
            let found = self.cx.store.read_link(self.cx.caller, &node.handle).await;
            if found.result.ok()? != target {
                return None;
            }
        }
        // It may have been made, and not yet given its attributes; this makes it stable, too.
        let attrs = set_attr(&attributes).ok()?.of_new(self.cx.caller);
        let attrs = SetAttr { size: None, ..attrs };
        let attrs = if kind == FileKind::Symlink { SetAttr::default() } else { attrs };
        let changed = self.cx.store.set_attr(self.cx.caller, &node.handle, attrs, None).await;
        changed.result.ok()?;
        let attr = changed.wcc.after.unwrap_or(node.attr);
        Some(NewObject {
            obj: Some(self.cx.file_handle(&node.handle)),
            obj_attributes: Some(fattr3(&attr)),
            dir_wcc: UNKNOWN,
        })
    }
}

/// What a call wanted to make, and where.
struct Wanted<'a> {
    where_: DirOp<'a>,
    kind: FileKind,
    /// Of a symbolic link.
    target: Option<&'a [u8]>,
    attributes: Sattr3,
    /// Only a file of which it is known when it was made will do.
    births_only: bool,
}

impl<'a> Wanted<'a> {
    fn new(where_: DirOp<'a>, kind: FileKind, attributes: Sattr3) -> Self {
        Self { where_, kind, target: None, attributes, births_only: false }
    }

    /// Of a call that fails when the name is there.
    fn of(procedure: Procedure, args: &'a [u8]) -> Option<Self> {
        Some(match procedure {
            Procedure::Create => {
                let args: nfs3::create::Args<'_> = xdr::from_bytes(args).ok()?;
                let attributes = match args.how {
                    CreateHow::Guarded(attributes) => attributes,
                    // Made, and not yet marked with its verifier: else it would have been
                    // recognised.
                    CreateHow::Exclusive(_) => Sattr3::default(),
                    CreateHow::Unchecked(_) => return None,
                };
                Self::new(args.where_, FileKind::Regular, attributes)
            }
            Procedure::Mkdir => {
                let args: nfs3::mkdir::Args<'_> = xdr::from_bytes(args).ok()?;
                Self::new(args.where_, FileKind::Directory, args.attributes)
            }
            Procedure::Symlink => {
                let args: nfs3::symlink::Args<'_> = xdr::from_bytes(args).ok()?;
                let wanted = Self::new(args.where_, FileKind::Symlink, args.symlink_attributes);
                Self { target: Some(args.symlink_data), ..wanted }
            }
            Procedure::Mknod => {
                let args: nfs3::mknod::Args<'_> = xdr::from_bytes(args).ok()?;
                let (kind, attributes) = match args.what {
                    MknodData::Chr(device) => (FileKind::CharDevice, device.dev_attributes),
                    MknodData::Blk(device) => (FileKind::BlockDevice, device.dev_attributes),
                    MknodData::Sock(attributes) => (FileKind::Socket, attributes),
                    MknodData::Fifo(attributes) => (FileKind::Fifo, attributes),
                    _ => return None,
                };
                Self::new(args.where_, kind, attributes)
            }
            _ => return None,
        })
    }
}
