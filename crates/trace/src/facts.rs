//! Which reader of [`wire::partial`] reads which message.

use wire::nfs3::Procedure::Readdirplus;
use wire::partial::{self, Arguments, Results};

use super::operation::{Operation, Program};

/// Of the arguments of anything but a COMPOUND.
pub(super) fn arguments(operation: Operation, args: &[u8]) -> Arguments<'_> {
    match (operation.nfs2(), operation.nfs3(), operation.program) {
        (Some(procedure), _, _) => partial::nfs2_args(procedure, args),
        (_, Some(procedure), _) => partial::nfs3_args(procedure, args),
        (_, _, Program::NfsAcl) if operation.code > 0 => partial::acl_args(args),
        _ => Arguments::default(),
    }
}

/// Of the results of anything but a COMPOUND.
pub(super) fn answered(operation: Operation, results: &[u8]) -> Results<'_> {
    match (operation.nfs2(), operation.nfs3(), operation.program) {
        (Some(procedure), _, _) => partial::nfs2_results(procedure, results),
        (_, Some(procedure), _) => partial::nfs3_results(procedure, results),
        (_, _, Program::NfsAcl) if operation.code > 0 => partial::status(results),
        (_, _, Program::Mount) if operation.code == 1 => partial::status(results), // MNT
        _ => Results::default(),
    }
}

/// Calls `each` with the name and handle of every entry of a READDIRPLUS reply that has both.
pub(super) fn listed<'a>(
    operation: Operation,
    results: &'a [u8],
    each: impl FnMut(&'a [u8], &'a [u8]),
) {
    if operation.nfs3() == Some(Readdirplus) {
        partial::listed(results, each);
    }
}
