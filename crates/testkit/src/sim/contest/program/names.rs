//! Names that a program makes, removes, moves and gives to other files.

use perf::units::Nanos;
use wire::nfs3::NfsStat3;

use super::{Program, failed};
use crate::plan::PLACES;
use crate::sim::contest::refused::Way;
use crate::sim::contest::truth::Bound;
use crate::sim::failure::Failure;

impl Program<'_> {
    pub(super) async fn make(&self, name: &str) -> Result<(), Failure> {
        let begun = self.now();
        let ticket = self.scene.truth.lock().bind(name, Bound::Some, self.client, begun);
        let made = self.host.make(name).await;
        if self.was_forgotten(begun) {
            // Another file may have had the name, which the server has lost.
            self.scene.truth.lock().bind(name, Bound::Some, self.client, begun);
        }
        match made {
            made if self.may_be_ours(&made, NfsStat3::Exist, begun)? => Ok(()),
            Ok(file) => {
                self.scene.truth.lock().bound(name, ticket, Bound::File(file), self.now());
                Ok(())
            }
            Err(error) if error.status()? == NfsStat3::Exist => {
                let mut truth = self.scene.truth.lock();
                truth.not_bound(name, ticket);
                let look = self.look_since(begun);
                truth.check_taken(name, look, self.host.believes()).map_err(failed("name"))
            }
            // It was made, and is gone before its attributes were set.
            Err(error) if error.status()? == NfsStat3::Stale => self.may_be_gone(name, begun),
            Err(error) => self.excuse("make", &error),
        }
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Failure> {
        let begun = self.now();
        let ticket = self.scene.truth.lock().bind(name, Bound::Nothing, self.client, begun);
        match self.host.remove(name).await {
            removed if self.may_be_ours(&removed, NfsStat3::NoEnt, begun)? => Ok(()),
            Ok(()) => {
                self.scene.truth.lock().bound(name, ticket, Bound::Nothing, self.now());
                Ok(())
            }
            Err(error) if error.status()? == NfsStat3::NoEnt => {
                let mut truth = self.scene.truth.lock();
                truth.not_bound(name, ticket);
                let look = self.look_since(begun);
                let believes = self.host.believes();
                truth.check_name(name, None, look, believes).map_err(failed("name"))
            }
            Err(error) if error.status()? == NfsStat3::Stale => self.may_be_gone(name, begun),
            Err(error) => self.excuse("remove", &error),
        }
    }

    pub(super) async fn replace(&self, step: u32, name: &str, value: u8) -> Result<(), Failure> {
        let beside = format!("t{}-{}-{step}", self.client, self.number);
        let begun = self.now();
        let made = self.host.make(&beside).await;
        if self.may_be_ours(&made, NfsStat3::Exist, begun)?
            || self.unless_disk_failed(made)?.is_none()
        {
            return Ok(());
        }
        let opened = self.host.open(&beside, Way::Write).await;
        let Some(opened) = self.unless_disk_failed(opened)? else { return Ok(()) };
        let file = opened.file;
        match self.fill((opened, begun), 0..PLACES, value, Nanos::ZERO).await? {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => return Err(Failure::new("stale", format!("nobody has taken {beside} away"))),
        }
        let begun = self.now();
        let ticket = self.scene.truth.lock().bind(name, Bound::File(file), self.client, begun);
        let renamed = self.host.rename(&beside, name).await;
        if self.may_be_ours(&renamed, NfsStat3::NoEnt, begun)? {
            return Ok(());
        }
        if self.unless_disk_failed(renamed)?.is_some() {
            self.scene.truth.lock().bound(name, ticket, Bound::File(file), self.now());
        }
        Ok(())
    }

    pub(super) async fn move_name(&self, from: &str, to: &str) -> Result<(), Failure> {
        let begun = self.now();
        let (left, reached) = {
            let mut truth = self.scene.truth.lock();
            let left = truth.bind(from, Bound::Nothing, self.client, begun);
            (left, truth.bind(to, Bound::Some, self.client, begun))
        };
        let renamed = self.host.rename(from, to).await;
        if self.may_be_ours(&renamed, NfsStat3::NoEnt, begun)? {
            return Ok(());
        }
        let look = self.look_since(begun);
        let mut truth = self.scene.truth.lock();
        match renamed {
            Ok(()) => {
                truth.moved((from, left), (to, reached), look);
                Ok(())
            }
            Err(error) if error.status()? == NfsStat3::NoEnt => {
                truth.not_bound(from, left);
                truth.not_bound(to, reached);
                truth.check_name(from, None, look, self.host.remembers()).map_err(failed("name"))
            }
            Err(error) if error.status()? == NfsStat3::Stale => {
                drop(truth);
                self.may_be_gone(from, begun).or_else(|_| self.may_be_gone(to, begun))
            }
            Err(error) => self.excuse("rename", &error),
        }
    }

    pub(super) async fn link(&self, from: &str, to: &str) -> Result<(), Failure> {
        let looked = self.now();
        let file = match self.host.look(from).await {
            Ok(file) => file,
            Err(error) => return self.not_there(from, &error, looked),
        };
        self.check_name(from, Some(file), looked)?;
        let begun = self.now();
        let ticket = self.scene.truth.lock().bind(to, Bound::File(file), self.client, begun);
        let linked = self.host.link((from, file), to).await;
        if self.may_be_ours(&linked, NfsStat3::Exist, begun)? {
            return Ok(());
        }
        match linked {
            Ok(()) => {
                self.scene.truth.lock().bound(to, ticket, Bound::File(file), self.now());
                Ok(())
            }
            Err(error) if error.status()? == NfsStat3::Exist => {
                let mut truth = self.scene.truth.lock();
                truth.not_bound(to, ticket);
                let (look, believes) = (self.look_since(begun), self.host.believes());
                truth.check_taken(to, look, believes).map_err(failed("name"))
            }
            Err(error) => {
                self.scene.truth.lock().not_bound(to, ticket);
                self.not_there(from, &error, looked)
            }
        }
    }

    pub(super) async fn mode(&self, name: &str) -> Result<(), Failure> {
        let begun = self.now();
        match self.host.set_mode(name).await {
            Ok(()) => Ok(()),
            Err(error) => self.not_there(name, &error, begun),
        }
    }
}
