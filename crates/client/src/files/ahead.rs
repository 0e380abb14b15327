//! Looking up a name of a directory that is no longer known to be what it was, where both the
//! directory and the file that the name has led to take a call. Neither call needs the reply to the
//! other:
//!
//! - with a local disk the two are under way together, which is one network round trip;
//! - without, the LOOKUP that the file takes has the directory's attributes, too, and is the only
//!   call.
//!
//! As long as nobody has changed the directory, these are the calls that would be made one after
//! the other, or one fewer. If somebody has, the name is looked up as ever, and the file's call was
//! for nothing.

use perf::units::Nanos;
use wire::nfs3::FileHandle;

use super::absent::is_listed;
use super::joint::Question;
use super::listing::LISTED_BYTES_MAX;
use super::{Acting, Files, State};
use crate::cache::attributes::Version;
use crate::cache::names::Target;

impl State {
    /// Whether a LOOKUP of this name is to be a listing of its directory; counts it as one LOOKUP
    /// if not.
    fn looks_up_singly(&mut self, dir: &FileHandle, name: &[u8], version: Version) -> bool {
        let size = self.attributes.last(dir).map_or(u64::MAX, |last| last.size);
        if !is_listed(name) || size > LISTED_BYTES_MAX {
            return true;
        }
        !self.singly.would_list(dir, version) && !self.singly.lists(dir, version)
    }
}

impl Files {
    /// The file to which a name has led, if that and the directory take a call each.
    pub(super) async fn both_are_old(
        &self,
        acting: &Acting,
        (dir, name): (&FileHandle, &[u8]),
        is_doubted: impl Fn(&Target) -> bool,
    ) -> Option<FileHandle> {
        let times = &self.inner.options.times;
        let are_reused = times.reg_min > Nanos::ZERO && times.dir_min > Nanos::ZERO;
        let is_known = self.found(dir).is_some() && self.known_right(acting, dir).is_some();
        if !are_reused || is_known || self.inner.joint.is_under_way(Question::Names, *dir) {
            return None;
        }
        self.recall(dir).await;
        let target = self.find(dir, name).filter(|target| !is_doubted(target))?;
        let Target::File(file) = target else { return None };
        let is_good = self.found(&file).is_some();
        let mut state = self.inner.state.lock();
        let version = state.attributes.sure_version(dir)?;
        let comes_in_a_page = state.catalogs.before(dir, name, version).is_some();
        if is_good || comes_in_a_page || state.moved.contains(&file) {
            return None;
        }
        state.looks_up_singly(dir, name, version).then_some(file)
    }
}
