//! `..`: the directory above one, if that is in what is exported.
//!
//! The origin knows the bounds of its own export, and not those of a part of it that a proxy
//! exports. A directory that somebody moves out of the part keeps its handle, so of each `..` it is
//! shown that the root is above it, level by level: clients ask seldom, when they find a way back
//! to a name.

use client::session::Session;
use server::store::{Looked, Node};
use server::types::Status;
use wire::nfs3::{Fattr3, FileHandle, lookup};

use crate::neutral;
use crate::remote::Remote;

/// Levels climbed: a path of 4,096 bytes has at most 2,048, and few have more than some.
const LEVELS_MAX: usize = 2048;

impl Remote {
    /// What is above `dir`: the root is above itself.
    pub(crate) async fn above(&self, session: &Session, dir: FileHandle) -> Looked<Node> {
        if dir == self.root {
            let node = self.node(session, dir, None).await;
            return Looked { attr: node.ok().map(|node| node.attr), result: node };
        }
        let reply = match session.lookup(dir, b"..").await {
            Ok(reply) => reply,
            Err(error) => return self.looked_in_vain(&error),
        };
        let attr = neutral::post_op(reply.dir_attributes);
        let result = match self.is_inside(session, dir, &reply).await {
            Ok(true) => self.node(session, reply.object, reply.obj_attributes).await,
            Ok(false) => Err(Status::Access),
            Err(status) => Err(status),
        };
        Looked { attr, result }
    }

    /// The same also of the root, which is below what is outside.
    pub(crate) async fn above_any(&self, session: &Session, dir: FileHandle) -> Looked<Node> {
        match session.lookup(dir, b"..").await {
            Ok(reply) => {
                let attr = neutral::post_op(reply.dir_attributes);
                let result = self.node(session, reply.object, reply.obj_attributes).await;
                Looked { attr, result }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }

    /// Whether the root is above a directory: `above` is what is directly above.
    async fn is_inside(
        &self,
        session: &Session,
        dir: FileHandle,
        above: &lookup::ReplyOk,
    ) -> Result<bool, Status> {
        let (mut below, mut found) = (dir, above.object);
        let mut attributes = above.obj_attributes;
        for _ in 0..LEVELS_MAX {
            if self.is_root(found, attributes.as_ref()) {
                return Ok(true);
            }
            // The top of everything is above itself.
            if found == below {
                return Ok(false);
            }
            below = found;
            let reply = session.lookup(below, b"..").await;
            let reply =
                reply.map_err(|error| self.failed(&error, crate::fate::Kind::Repeatable))?;
            (found, attributes) = (reply.object, reply.obj_attributes);
        }
        Ok(false)
    }

    /// Some servers have several handles of one directory.
    fn is_root(&self, handle: FileHandle, attributes: Option<&Fattr3>) -> bool {
        let same = |of: &Fattr3| (of.fsid, of.fileid) == self.root_identity;
        handle == self.root || attributes.is_some_and(same)
    }
}
