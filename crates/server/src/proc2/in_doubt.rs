//! Whether a call that fails now was executed before: `proc3/in_doubt.rs` for version 2.
//!
//! CREATE of a regular file never fails because it is there: it is looked for before
//! ([`success_of_create`]). SETATTR has no guard and can be done again.

use wire::nfs2::{self, DirOp, DirOpRes, NfsStat2, Procedure, Sattr2, mode_type};
use wire::xdr::{self, Encode};

use crate::replies::Doubt;
use crate::store::{Node, Store};
use crate::types::{FileKind, Handle, SetAttr};

use super::Context;
use super::attributes::{set_attr, wanted_type};

/// Whether results are an error that a call's own success causes.
pub(crate) fn may_be_done(results: &[u8]) -> bool {
    const CAUSED: [NfsStat2; 2] = [NfsStat2::NoEnt, NfsStat2::Exist];
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
    let done = match procedure {
        Procedure::Remove => {
            traces.removed(xdr::from_bytes::<nfs2::remove::Args<'_>>(args).ok()?.what).await
        }
        Procedure::Rmdir => {
            traces.removed(xdr::from_bytes::<nfs2::rmdir::Args<'_>>(args).ok()?.what).await
        }
        Procedure::Rename => {
            let args: nfs2::rename::Args<'_> = xdr::from_bytes(args).ok()?;
            let moved = traces.named(args.to).await?;
            traces.doubt.may_have_changed(&moved.attr) && traces.removed(args.from).await
        }
        Procedure::Link => {
            let args: nfs2::link::Args<'_> = xdr::from_bytes(args).ok()?;
            traces.named(args.to).await?.handle == cx.handle(&args.from).ok()?
        }
        Procedure::Symlink => traces.linked(&xdr::from_bytes(args).ok()?).await?,
        Procedure::Mkdir | Procedure::Create => {
            let made = traces.made(procedure, args).await?;
            let reply: DirOpRes = cx.found(procedure, Ok(made));
            return Some(reply.to_bytes());
        }
        _ => false,
    };
    let success: nfs2::remove::Reply = Ok(());
    done.then(|| success.to_bytes())
}

/// The results of a CREATE of a regular file, if it was executed before, perhaps in part.
pub(crate) async fn success_of_create<S: Store>(
    cx: &Context<'_, S>,
    procedure: Procedure,
    args: &[u8],
    doubt: Doubt,
) -> Option<Vec<u8>> {
    if procedure != Procedure::Create {
        return None;
    }
    let args: nfs2::create::Args<'_> = xdr::from_bytes(args).ok()?;
    if wanted_type(&args.attributes) != mode_type::REG {
        return None;
    }
    cx.check_writable().ok()?;
    let traces = Traces { cx, doubt };
    let node = traces.recent(args.where_, FileKind::Regular).await?;
    node.attr.made?;
    let reply: DirOpRes = cx.found(procedure, Ok(traces.finished(node, &args.attributes).await?));
    Some(reply.to_bytes())
}

struct Traces<'t, 'c, S> {
    cx: &'t Context<'c, S>,
    doubt: Doubt,
}

impl<S: Store> Traces<'_, '_, S> {
    /// The name is not there, and its directory changed since.
    async fn removed(&self, what: DirOp<'_>) -> bool {
        let Ok(dir) = self.cx.handle(&what.dir) else { return false };
        let found = self.cx.store.lookup(self.cx.caller, &dir, what.name).await;
        let gone = found.result.is_err()
            && found.attr.is_some_and(|attr| self.doubt.may_have_changed(&attr));
        gone && self.cx.store.settle(&dir).await.is_ok()
    }

    /// What the name names.
    async fn named(&self, what: DirOp<'_>) -> Option<Node> {
        let dir: Handle = self.cx.handle(&what.dir).ok()?;
        let node = self.cx.store.lookup(self.cx.caller, &dir, what.name).await.result.ok()?;
        self.cx.store.settle(&dir).await.ok()?;
        self.cx.store.settle(&node.handle).await.ok()?;
        Some(node)
    }

    /// Something of this kind that was made in the time of the doubt.
    async fn recent(&self, what: DirOp<'_>, kind: FileKind) -> Option<Node> {
        let node = self.named(what).await?;
        (node.attr.kind == kind && self.doubt.may_have_made(&node.attr)).then_some(node)
    }

    async fn linked(&self, args: &nfs2::symlink::Args<'_>) -> Option<bool> {
        let node = self.recent(args.from, FileKind::Symlink).await?;
        let found = self.cx.store.read_link(self.cx.caller, &node.handle).await;
        Some(found.result.ok()? == args.to)
    }

    async fn made(&self, procedure: Procedure, args: &[u8]) -> Option<Node> {
        if !self.cx.store.shares_clock() {
            return None;
        }
        if procedure == Procedure::Mkdir {
            let args: nfs2::mkdir::Args<'_> = xdr::from_bytes(args).ok()?;
            let node = self.recent(args.where_, FileKind::Directory).await?;
            return self.finished(node, &args.attributes).await;
        }
        let args: nfs2::create::Args<'_> = xdr::from_bytes(args).ok()?;
        let kind = match (wanted_type(&args.attributes), args.attributes.size) {
            (mode_type::CHR, Some(_)) => FileKind::CharDevice,
            (mode_type::CHR, None) | (mode_type::FIFO, _) => FileKind::Fifo,
            (mode_type::BLK, _) => FileKind::BlockDevice,
            (mode_type::SOCK, _) => FileKind::Socket,
            _ => return None,
        };
        let node = self.recent(args.where_, kind).await?;
        self.finished(node, &args.attributes).await
    }

    /// It may have been made, and not yet given its attributes.
    async fn finished(&self, node: Node, attributes: &Sattr2) -> Option<Node> {
        let attrs = set_attr(attributes).ok()?.of_new(self.cx.caller);
        let attrs = SetAttr { size: None, ..attrs };
        let changed = self.cx.store.set_attr(self.cx.caller, &node.handle, attrs, None).await;
        changed.result.ok()?;
        Some(Node { attr: changed.wcc.after.unwrap_or(node.attr), ..node })
    }
}
