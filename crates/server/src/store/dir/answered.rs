//! Calls whose replies go to the write log: what a recovery would look for, and when they are
//! answered.

use futures_util::future::join;
use log::EncodedReply;
use log::reply::{Effect, FileId};

use super::names::Created;
use super::objects::Object;
use super::tree::{Touched, Tree};
use super::write_log::file_id;
use crate::replies::Outcome;
use crate::store::{Changed, Linked, Node, Renamed};
use crate::types::{Handle, Status, Wcc};

impl Tree {
    /// A CREATE. Of a file that was there its name shows nothing.
    pub(super) fn reply_created(
        &self,
        change: &Changed<(Created, Touched)>,
        dir: &Handle,
        name: &[u8],
    ) -> Option<EncodedReply> {
        match &change.result.as_ref().ok()?.0 {
            Created::Named(node) => self.reply_named(node, &change.wcc, dir, name),
            Created::Sized(node) => {
                let changed = super::write_log::stamp(node.attr.changed);
                let outcome = Outcome::Made { node, dir: &change.wcc };
                self.encode(&node.handle, Effect::Changed { changed }, &outcome)
            }
        }
    }

    /// Something else was made.
    pub(super) fn reply_made(
        &self,
        change: &Changed<(Node, Touched)>,
        dir: &Handle,
        name: &[u8],
    ) -> Option<EncodedReply> {
        let (node, _) = change.result.as_ref().ok()?;
        self.reply_named(node, &change.wcc, dir, name)
    }

    fn reply_named(
        &self,
        node: &Node,
        wcc: &Wcc,
        dir: &Handle,
        name: &[u8],
    ) -> Option<EncodedReply> {
        let effect = Effect::Named { name, file: file_id(&node.attr) };
        self.encode(dir, effect, &Outcome::Made { node, dir: wcc })
    }

    /// A name was removed.
    pub(super) fn reply_removed(
        &self,
        change: &Changed<(FileId, Touched)>,
        dir: &Handle,
        name: &[u8],
    ) -> Option<EncodedReply> {
        let (file, _) = change.result.as_ref().ok()?;
        let effect = Effect::Unnamed { name, file: *file };
        self.encode(dir, effect, &Outcome::Changed(&change.wcc))
    }

    pub(super) fn reply_renamed(
        &self,
        renamed: &Renamed,
        file: Option<FileId>,
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Option<EncodedReply> {
        let effect = Effect::Named { name: to_name, file: file? };
        self.encode(to_dir, effect, &Outcome::Renamed { from: &renamed.from, to: &renamed.to })
    }

    pub(super) fn reply_linked(
        &self,
        linked: &Linked,
        dir: &Handle,
        name: &[u8],
    ) -> Option<EncodedReply> {
        linked.result.ok()?;
        let attr = linked.attr.as_ref();
        let effect = Effect::Named { name, file: file_id(attr?) };
        self.encode(dir, effect, &Outcome::Linked { attr, dir: &linked.dir })
    }

    /// Attributes were set that are not in the log.
    pub(super) fn reply_attributes(&self, object: &Object, wcc: &Wcc) -> Option<EncodedReply> {
        let changed = super::write_log::stamp(wcc.after?.changed);
        self.encode(&object.handle, Effect::Changed { changed }, &Outcome::Changed(wcc))
    }

    fn encode(
        &self,
        of: &Handle,
        effect: Effect<'_>,
        outcome: &Outcome<'_>,
    ) -> Option<EncodedReply> {
        self.log.as_ref()?.encode_reply(of, effect, outcome)
    }

    /// Waits until what was touched is stable, and its reply recorded, if it is to be.
    pub(super) async fn settle_touched(
        &self,
        touched: Touched,
        reply: Option<EncodedReply>,
    ) -> Result<(), Status> {
        let (Some(log), Some(reply)) = (&self.log, reply) else {
            return self.make_stable(touched).await;
        };
        // First the record: it may be written while the sync waits for others.
        let (noted, stable) = join(log.note(reply), self.make_stable(touched)).await;
        if let Some(noted) = noted {
            noted.decide(stable.is_ok());
        }
        stable
    }

    /// Waits until a change of a directory is stable, and gives the reply free.
    pub(super) async fn settle<T>(
        &self,
        change: Changed<(T, Touched)>,
        reply: Option<EncodedReply>,
    ) -> Changed<T> {
        let result = match change.result {
            Ok((value, touched)) => self.settle_touched(touched, reply).await.map(|()| value),
            Err(status) => Err(status),
        };
        Changed { wcc: change.wcc, result }
    }
}
