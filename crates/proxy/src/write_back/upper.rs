//! Leases above: who exports a part of what another exports finds the other's lease by `..`. The
//! other does not look for leases below him, which may be anywhere. So he may begin, and the one
//! with the part sends nothing from then on.
//!
//! What cannot be seen is above what the origin exports for itself, or where the lease's owner may
//! not look.

use net::clock::Clock;
use server::store::Store;
use server::types::{Handle, Status};

use super::aside::is_for_good;
use super::lease::{Found, Lease, LeaseError, Says, WATCHED_FOR, read};
use super::options::Owner;

/// Directories that are looked at; guess, many more than are above an export.
const LEVELS_MAX: usize = 64;

/// The nearest lease above what is exported.
async fn find<S: Store>(store: &S, owner: &Owner) -> Result<Option<(Handle, Lease)>, Status> {
    let mut dir = store.root();
    for _ in 0..LEVELS_MAX {
        let above = match store.climb(&owner.caller, &dir).await.result {
            // The top is above itself.
            Ok(above) if above.handle == dir => return Ok(None),
            Ok(above) => above.handle,
            Err(status) if is_for_good(status) => return Ok(None),
            Err(status) => return Err(status),
        };
        match read(store, owner, &above).await {
            Ok(Some(Found { says: Says::Lease(lease), .. })) => return Ok(Some((above, lease))),
            Err(LeaseError::Refused(status)) if !is_for_good(status) => return Err(status),
            // What says nothing is no lease yet.
            Ok(_) | Err(_) => {}
        }
        dir = above;
    }
    Ok(None)
}

/// Looks whether another has all of which this is a part, before this one's lease is made.
///
/// # Errors
/// [`LeaseError::Upper`].
pub(super) async fn check<S: Store>(
    store: &S,
    clock: &Clock,
    owner: &Owner,
) -> Result<(), LeaseError> {
    // Where that is not known now, it is looked at again when the lease is renewed.
    let Ok(Some((dir, first))) = find(store, owner).await else { return Ok(()) };
    clock.sleep(WATCHED_FOR).await;
    match read(store, owner, &dir).await? {
        Some(Found { says: Says::Lease(last), .. }) => {
            let is_renewed = first != last;
            Err(LeaseError::Upper(Box::new(last.of_another(is_renewed))))
        }
        _ => Ok(()),
    }
}

/// The same when this one's lease was renewed: who has all of it, if not this one.
pub(super) async fn renewed<S: Store>(store: &S, owner: &Owner) -> Result<(), Option<String>> {
    match find(store, owner).await {
        Ok(Some((_, lease))) => Err(Some(format!("{}, in a directory above", lease.holder()))),
        Ok(None) => Ok(()),
        Err(_) => Err(None),
    }
}
