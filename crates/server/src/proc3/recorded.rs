//! Replies to calls that have succeeded, before they are stable: for a store that keeps them
//! beside what they answer. They are those that the procedures make.

use wire::nfs3::{self, NewObject, Procedure, StableHow};
use wire::xdr::Encode;

use super::attributes::{fattr3, wcc_data};
use super::write::stable_how;
use crate::handle;
use crate::replies::Outcome;

/// Appends the results; none if the procedure does not come to this.
pub(crate) fn recorded(
    procedure: Procedure,
    export: u32,
    outcome: &Outcome<'_>,
    head: &mut Vec<u8>,
) -> Option<()> {
    match (procedure, *outcome) {
        (
            Procedure::Create | Procedure::Mkdir | Procedure::Symlink | Procedure::Mknod,
            Outcome::Made { node, dir },
        ) => {
            // The four have the same results.
            let reply: nfs3::create::Reply = Ok(NewObject {
                obj: Some(handle::wrap(export, &node.handle)),
                obj_attributes: Some(fattr3(&node.attr)),
                dir_wcc: wcc_data(dir),
            });
            reply.encode(head);
        }
        (Procedure::Remove | Procedure::Rmdir, Outcome::Changed(dir)) => {
            let reply: nfs3::remove::Reply = Ok(nfs3::remove::ReplyOk { dir_wcc: wcc_data(dir) });
            reply.encode(head);
        }
        (Procedure::Setattr, Outcome::Changed(object)) => {
            let reply: nfs3::setattr::Reply =
                Ok(nfs3::setattr::ReplyOk { obj_wcc: wcc_data(object) });
            reply.encode(head);
        }
        (Procedure::Rename, Outcome::Renamed { from, to }) => {
            let done =
                nfs3::rename::ReplyOk { fromdir_wcc: wcc_data(from), todir_wcc: wcc_data(to) };
            let reply: nfs3::rename::Reply = Ok(done);
            reply.encode(head);
        }
        (Procedure::Link, Outcome::Linked { attr, dir }) => {
            let done = nfs3::link::ReplyOk {
                file_attributes: attr.map(fattr3),
                linkdir_wcc: wcc_data(dir),
            };
            let reply: nfs3::link::Reply = Ok(done);
            reply.encode(head);
        }
        (Procedure::Write, Outcome::Written { file, count, stability, verifier }) => {
            let committed = stable_how(stability);
            if committed == StableHow::Unstable {
                return None;
            }
            let reply: nfs3::write::Reply = Ok(nfs3::write::ReplyOk {
                file_wcc: wcc_data(file),
                count,
                committed,
                verf: verifier.0,
            });
            reply.encode(head);
        }
        _ => return None,
    }
    Some(())
}
