//! Replies to calls that have succeeded, before they are stable: see the one of version 3.

use wire::nfs2::{self, DirOpOk, DirOpRes, Procedure};
use wire::xdr::Encode;

use super::attributes::fattr2;
use crate::handle2;
use crate::replies::Outcome;

/// Appends the results; none if the procedure does not come to this.
pub(crate) fn recorded(
    procedure: Procedure,
    export: u32,
    outcome: &Outcome<'_>,
    head: &mut Vec<u8>,
) -> Option<()> {
    match (procedure, *outcome) {
        (Procedure::Create | Procedure::Mkdir, Outcome::Made { node, .. }) => {
            let file = handle2::wrap2(export, &node.handle)?;
            let reply: DirOpRes = Ok(DirOpOk { file, attributes: fattr2(&node.attr) });
            reply.encode(head);
        }
        // These say that it was done, and nothing else.
        (Procedure::Symlink, Outcome::Made { .. })
        | (Procedure::Remove | Procedure::Rmdir, Outcome::Changed(_))
        | (Procedure::Rename, Outcome::Renamed { .. })
        | (Procedure::Link, Outcome::Linked { .. }) => {
            let reply: nfs2::remove::Reply = Ok(());
            reply.encode(head);
        }
        (Procedure::Setattr, Outcome::Changed(of))
        | (Procedure::Write, Outcome::Written { file: of, .. }) => {
            let reply: nfs2::setattr::Reply = Ok(fattr2(of.after.as_ref()?));
            reply.encode(head);
        }
        _ => return None,
    }
    Some(())
}
