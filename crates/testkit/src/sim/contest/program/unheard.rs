//! What a program writes without a reply: where no error is reported, not even in the
//! end, it must be there.

use std::ops::Range;

use futures_util::future::join_all;
use wire::nfs3::NfsStat3;

use super::Program;
use crate::plan::{PLACE_BYTES, Unheard};
use crate::sim::contest::refused::Way;
use crate::sim::failure::Failure;

impl Program<'_> {
    /// Writes places of a file, and does not hear whether they are there.
    pub(super) async fn write_unheard(
        &self,
        name: &str,
        places: Range<u32>,
        value: u8,
        by: Unheard,
    ) -> Result<(), Failure> {
        let begun = self.now();
        let opened = match self.host.open(name, Way::Write).await {
            Ok(opened) => opened,
            Err(error) => return self.not_there(name, &error, begun),
        };
        let file = opened.file;
        self.check_name(name, Some(file), begun)?;
        let (session, tickets) = {
            let mut truth = self.scene.truth.lock();
            let session = truth.open(file, self.client, begun);
            let write = |place| (place, truth.write(file, place, value, self.client, begun));
            (session, places.clone().map(write).collect())
        };
        self.host.begin_unheard(&opened, tickets);
        let data = vec![value; PLACE_BYTES as usize];
        let at = |place: u32| u64::from(place) * u64::from(self.scene.stride);
        let result = match by {
            Unheard::Interrupted => {
                let write = |place| self.host.write(&opened, at(place), &data);
                let written = join_all(places.map(write)).await.into_iter().collect();
                self.host.close_interrupted(opened).await;
                written
            }
            Unheard::Mapped => {
                let writes: Vec<_> = places.map(|place| (at(place), data.clone())).collect();
                self.host.close_mapped(opened, &writes).await
            }
        };
        self.scene.truth.lock().closed(file, session, self.now());
        match result {
            Err(error) if error.status()? == NfsStat3::Stale => self.may_be_gone(name, begun),
            result => self.unless_disk_failed(result).map(drop),
        }
    }
}
