//! Where ours goes when the origin's has to stay: a file beside it, with all that clients see in
//! it.

use bytes::{Bytes, BytesMut};
use server::store::{Node as StoreNode, Store};
use server::types::{Attr, Caller, FileKind, Handle, SetAttr, Stability, Status};

use super::Inner;
use super::aside::is_for_good;
use super::came::Came;
use super::events::Conflict;
use super::nodes::{Begun, Beside, Node};
use super::record::{Change, Entry, Made};

/// Bytes copied at a time, and of those that are compared with nothing at all.
const COPY_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: usize = 4096;

/// Rights that a mode gives the owner, and all others.
const OWNERS: u32 = 0o700;
const OTHERS: u32 = 0o077;

/// All bits of a mode.
const ALL_BITS: u32 = 0o7777;

/// A copy's mode until it is whole, and known whose it is.
const PRIVATE: u32 = 0o600;

/// Names that are tried for one copy.
const NAMES_MAX: u32 = 16;

/// Longest name.
const NAME_BYTES_MAX: usize = 255;

/// What is to be made beside something of this name.
#[derive(Clone, Copy)]
struct Copied<'c> {
    caller: &'c Caller,
    /// Of the change that it is made for.
    number: u64,
    name: &'c Bytes,
    what: &'c Made,
    set: SetAttr,
    /// The widest mode that it is given.
    mode_max: u32,
}

impl Copied<'_> {
    /// The same for its owner alone.
    fn private(self) -> Self {
        let mode = self.set.mode.map(|mode| mode & OWNERS);
        Self { set: SetAttr { mode, ..self.set }, mode_max: self.mode_max & OWNERS, ..self }
    }

    /// Whether this may be what the caller has made: it is his alone, as far as its attributes say.
    fn may_be(&self, found: &Attr) -> bool {
        let kind = match self.what {
            Made::File(_) => FileKind::Regular,
            Made::Directory => FileKind::Directory,
            Made::Symlink(_) => FileKind::Symlink,
        };
        let has_mode = kind == FileKind::Symlink || found.mode & !self.mode_max & ALL_BITS == 0;
        let has_names = kind == FileKind::Directory || found.links == 1;
        let is_own = found.uid == self.set.uid.unwrap_or(self.caller.uid);
        found.kind == kind && is_own && has_names && has_mode
    }
}

impl<S: Store> Inner<S> {
    /// A name for ours beside theirs; the first one, or another one if that is taken.
    pub(super) fn beside_name(&self, name: &Bytes, number: u64, which: u32) -> Bytes {
        let again = if which > 1 { format!(".{which}") } else { String::new() };
        let suffix = format!(".nfskit-conflict-{:08x}-{number}{again}", self.mark);
        let head = name.len().min(NAME_BYTES_MAX - suffix.len());
        Bytes::from([&name[..head], suffix.as_bytes()].concat())
    }

    /// Makes a file beside one that somebody else has changed or removed, with all that clients see
    /// in it, for what is on its way and what comes until that is there. What nobody has written
    /// through the proxy is as in theirs.
    pub(super) async fn keep_beside(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
        theirs: Option<(&Handle, &Attr)>,
        why: Conflict,
    ) -> Result<Handle, Status> {
        let (node, home, name) = {
            let state = self.state.lock();
            let node = state.nodes.find(file).ok_or(Status::Stale)?;
            (node.clone(), state.place(file).map(|(dir, _)| *dir), state.called(file))
        };
        let dir = home.unwrap_or_else(|| self.id(&self.root));
        let begun = self.begin_copy(&entry.caller, number, (file, &node), (&dir, &name)).await?;
        let of = [Some(&node.attr), theirs.map(|(_, attr)| attr)];
        let mode_max =
            if home == Some(begun.dir) { mode_max(&begun.made.attr, of) } else { OWNERS };
        let copy = begun.made.handle;
        let filled = async {
            self.fill_copy(&entry.caller, &copy, &node, theirs).await?;
            self.open_copy(&entry.caller, &copy, node.attr.mode & mode_max).await
        };
        let filled = filled.await;
        if let Some(node) = self.state.lock().nodes.find_mut(file) {
            match filled {
                Ok(()) => (node.beside, node.begun) = (Some(Beside { copy, mode_max }), None),
                // Somebody has removed it: the next one is another.
                Err(Status::Stale | Status::BadHandle) => node.begun = None,
                Err(_) => {}
            }
        }
        filled.map_err(|status| match status {
            Status::Stale | Status::BadHandle => Status::Jukebox,
            status => status,
        })?;
        self.stored_beside(&begun.dir, &name, &begun.name, why);
        Ok(copy)
    }

    /// The copy that this caller has begun of a file, or begins.
    async fn begin_copy(
        &self,
        caller: &Caller,
        number: u64,
        (file, node): (&Handle, &Node),
        (dir, name): (&Handle, &Bytes),
    ) -> Result<Begun, Status> {
        if let Some(begun) = node.begun.as_ref().filter(|begun| begun.caller == *caller) {
            return Ok(Begun::clone(begun));
        }
        let mode_max = node.attr.mode & (OWNERS | OTHERS) | PRIVATE;
        let what = &Made::File(None);
        let copied = Copied { caller, number, name, what, set: mode(PRIVATE), mode_max };
        let begun = self.make_somewhere(dir, copied).await?;
        if let Some(node) = self.state.lock().nodes.find_mut(file) {
            node.begun = Some(Box::new(begun.clone()));
        }
        Ok(begun)
    }

    /// Gives a copy that is whole its mode. Where the origin does not let it have that, it stays
    /// its owner's.
    async fn open_copy(&self, caller: &Caller, copy: &Handle, bits: u32) -> Result<(), Status> {
        if bits == PRIVATE {
            return Ok(());
        }
        match self.store.set_attr(caller, copy, mode(bits), None).await.result {
            Err(status) if !is_for_good(status) => Err(status),
            _ => Ok(()),
        }
    }

    /// Gives a copy all that clients see in a file. Holes stay holes.
    async fn fill_copy(
        &self,
        caller: &Caller,
        copy: &Handle,
        node: &Node,
        theirs: Option<(&Handle, &Attr)>,
    ) -> Result<(), Status> {
        // One that a proxy has begun that was killed has bytes already.
        let begun = self.store.attr(caller, copy).await?.size;
        let theirs = theirs.map(|(theirs, attr)| (theirs, attr.size.min(node.cut())));
        let theirs_end = theirs.map_or(0, |(_, end)| end);
        let (size, mut offset) = (node.attr.size, 0);
        let mut written_to = begun;
        while offset < size {
            if offset >= theirs_end.max(begun) {
                // Below here, there is nothing but ours.
                match node.extents.next(offset) {
                    Some(next) if next < size => offset = next,
                    _ => break,
                }
            }
            let end = size.min(offset.saturating_add(COPY_BYTES));
            let len = usize::try_from(end - offset).map_err(|_| Status::TooLarge)?;
            let mut bytes = BytesMut::zeroed(len);
            if let Some((theirs, theirs_end)) = theirs
                && !node.extents.covers(offset, end)
                && offset < theirs_end
            {
                let count = u32::try_from(theirs_end.min(end) - offset).unwrap_or(0);
                let read = self.store.read(caller, theirs, offset, count).await.result?;
                let got = read.data.len().min(len);
                bytes[..got].copy_from_slice(&read.data[..got]);
            }
            node.extents.over(offset, &mut bytes);
            let bytes = bytes.freeze();
            let known = usize::try_from(begun.saturating_sub(offset)).unwrap_or(len).min(len);
            for (from, to) in runs(&bytes, known) {
                let (at, data) = (offset + from as u64, bytes.slice(from..to));
                written_to = written_to.max(offset + to as u64);
                let written = self.store.write(caller, copy, at, data, Stability::FileSync).await;
                written.result?;
            }
            offset = end;
        }
        if written_to < size {
            let set = SetAttr { size: Some(size), ..SetAttr::default() };
            self.store.set_attr(caller, copy, set, None).await.result?;
        }
        Ok(())
    }

    /// Makes something in a directory, or if that is gone or refuses it, in the root.
    async fn make_somewhere(&self, dir: &Handle, copied: Copied<'_>) -> Result<Begun, Status> {
        let dirs = [self.origin(dir).ok().flatten(), Some(self.root)];
        let ids = [*dir, self.id(&self.root)];
        let mut last = Status::Stale;
        for (there, id) in dirs.into_iter().zip(ids).filter_map(|(there, id)| Some((there?, id))) {
            // Elsewhere others may come to it.
            let copied = if id == *dir { copied } else { copied.private() };
            match self.make_named(&there, copied).await {
                Ok((made, name)) => {
                    self.state.lock().unknown_names(&id);
                    return Ok(Begun { caller: copied.caller.clone(), made, dir: id, name });
                }
                Err(status) => last = status,
            }
        }
        Err(last)
    }

    /// Makes something under the first name that is free, or that a call has given it of which
    /// nobody has heard. What others have put there is not ours to write to.
    async fn make_named(
        &self,
        dir: &Handle,
        copied: Copied<'_>,
    ) -> Result<(StoreNode, Bytes), Status> {
        let Copied { caller, number, what, set, .. } = copied;
        for which in 1..=NAMES_MAX {
            let name = self.beside_name(copied.name, number, which);
            let doubts = self.store.doubts();
            match self.make_at(caller, dir, &name, what, &set).await.result {
                Err(Status::Exists) => {}
                made => return made.map(|made| (made, name)),
            }
            let is_in_doubt =
                self.store.doubts() != doubts || self.state.lock().is_in_doubt(number);
            match self.store.lookup(caller, dir, &name).await.result {
                Ok(found) if is_in_doubt && copied.may_be(&found.attr) => return Ok((found, name)),
                Ok(_) | Err(Status::NoEntry) => {}
                Err(status) => return Err(status),
            }
        }
        Err(Status::Exists)
    }

    /// What was to be made has no place under its name; it gets another one.
    pub(super) async fn make_beside(
        &self,
        entry: &Entry,
        number: u64,
        there: Option<Handle>,
        name: &Bytes,
        what: &Made,
        set: &SetAttr,
    ) -> Result<Came, Status> {
        let Change::Make { dir, .. } = &entry.change else { return Err(Status::ServerFault) };
        let mode_max = set.mode.unwrap_or(0o777);
        let copied = Copied { caller: &entry.caller, number, name, what, set: *set, mode_max };
        let begun = self.make_somewhere(dir, copied).await?;
        let attr = self.store.attr(&entry.caller, &begun.made.handle).await?;
        let why = if there.is_some() { Conflict::Replaced } else { Conflict::Gone };
        self.stored_beside(&begun.dir, name, &begun.name, why);
        let came = self.made(number, StoreNode { attr, ..begun.made }, None);
        let mut state = self.state.lock();
        let (id, _) = state.identity(number);
        state.moved(&id, (begun.dir, begun.name));
        drop(state);
        Ok(Came { differs: true, ..came })
    }
}

fn mode(bits: u32) -> SetAttr {
    SetAttr { mode: Some(bits), ..SetAttr::default() }
}

/// The bits that a copy's mode may have beside the files that its bytes are of: nobody may do more
/// with it than with each of them but who has made it, and no program acts as him.
fn mode_max(copy: &Attr, of: [Option<&Attr>; 2]) -> u32 {
    let others = of.into_iter().flatten().map(|of| match of.gid == copy.gid {
        true => of.mode & OTHERS,
        // Who is of which of the two groups is not known.
        false => {
            let both = (of.mode >> 3) & of.mode & 0o7;
            both << 3 | both
        }
    });
    OWNERS | others.fold(OTHERS, |max, others| max & others)
}

/// Where there are bytes to be written: up to `known` all, and from there on the blocks that are
/// not zeros.
fn runs(bytes: &[u8], known: usize) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
        let from = number * BLOCK_BYTES;
        let to = from + block.len();
        if from >= known && block.iter().all(|byte| *byte == 0) {
            continue;
        }
        match runs.last_mut() {
            Some((_, end)) if *end == from => *end = to,
            _ => runs.push((from, to)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_back::nodes::tests::attr;

    #[test]
    fn a_copy_is_for_nobody_for_whom_its_files_are_not() {
        let of = |gid, mode| Attr { gid, mode, ..attr(1) };
        let max =
            |ours, theirs: Option<Attr>| mode_max(&of(5, 0o600), [Some(&ours), theirs.as_ref()]);
        assert_eq!(max(of(5, 0o6664), None), 0o764, "no bits by which programs act as its owner");
        assert_eq!(max(of(5, 0o640), Some(of(5, 0o600))), 0o700);
        assert_eq!(max(of(6, 0o640), None), 0o700, "another group");
        assert_eq!(max(of(6, 0o604), None), 0o700, "that the group may not, others may");
        assert_eq!(max(of(6, 0o755), Some(of(5, 0o754))), 0o754);
    }

    #[test]
    fn what_others_have_put_under_the_name_of_a_copy_is_not_taken_for_it() {
        let caller = Caller { uid: 7, gid: 5, gids: Vec::new() };
        let (name, what) = (Bytes::from_static(b"name"), Made::File(None));
        let set = mode(PRIVATE);
        let copied =
            Copied { caller: &caller, number: 1, name: &name, what: &what, set, mode_max: 0o640 };
        let right = Attr { uid: 7, links: 1, mode: 0o600, ..attr(1) };
        assert!(copied.may_be(&right));
        assert!(copied.may_be(&Attr { mode: 0o640, ..right }), "it was whole");
        assert!(!copied.private().may_be(&Attr { mode: 0o640, ..right }));
        for wrong in [
            Attr { uid: 8, ..right },
            Attr { mode: 0o666, ..right },
            Attr { mode: 0o4600, ..right },
            Attr { links: 2, ..right },
            Attr { kind: FileKind::Symlink, ..right },
        ] {
            assert!(!copied.may_be(&wrong), "{wrong:?}");
        }
    }

    #[test]
    fn blocks_of_zeros_are_left_out_but_where_there_were_bytes() {
        const BLOCK: usize = BLOCK_BYTES;
        let mut bytes = vec![0; 5 * BLOCK + 7];
        assert_eq!(runs(&bytes, 0), []);
        assert_eq!(runs(&bytes, BLOCK + 1), [(0, 2 * BLOCK)]);
        for at in [BLOCK, 3 * BLOCK - 1, 5 * BLOCK + 6] {
            bytes[at] = 1;
        }
        assert_eq!(runs(&bytes, 0), [(BLOCK, 3 * BLOCK), (5 * BLOCK, 5 * BLOCK + 7)]);
        assert_eq!(runs(&bytes[..0], 9), []);
    }
}
