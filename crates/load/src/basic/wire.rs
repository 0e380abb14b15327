//! A server, at the wire: each operation is the calls that a client without caches makes.

use ::wire::nfs3::create::CreateHow;
use ::wire::nfs3::{FType, Fattr3, FileHandle, Sattr3, StableHow, WccData};
use bytes::Bytes;
use client::session::Session;
use client::url::Version;
use client::walk::Walk;

use super::place::{
    Above, Answer, Change, Changes, Entry, Kind, Known, Listing, Place, Refused, Space, Stat,
    WithAttributes,
};

/// Bytes requested with each READDIR, and of READDIRPLUS: as a kernel of a page asks, so that a
/// directory of 200 files takes several.
const DIR_COUNT: u32 = 4096;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Wire {
    session: Session,
    /// How the target is shown to people.
    name: String,
    /// What each WRITE asks for.
    stable: StableHow,
}

/// A directory, by its handle and the names that lead to it from the target.
#[derive(Clone, Debug)]
pub struct Dir {
    handle: FileHandle,
    names: Vec<String>,
}

/// An open file.
#[derive(Debug)]
pub struct File {
    handle: FileHandle,
    /// What has been written and not committed: the verifier of the WRITEs.
    uncommitted: Option<[u8; 8]>,
    /// The server has lost its memory between two WRITEs.
    is_lost: bool,
}

impl Wire {
    /// Works in the session's root.
    pub fn new(session: Session, name: String, sync: bool) -> Self {
        let stable = if sync { StableHow::FileSync } else { StableHow::Unstable };
        Self { session, name, stable }
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    async fn lookup(&self, dir: &Dir, name: &str) -> Answer<(FileHandle, Option<Stat>)> {
        let found = self.session.lookup(dir.handle, name.as_bytes()).await?;
        Ok((found.object, found.obj_attributes.map(stat)))
    }

    /// What a procedure gave that makes something.
    async fn made(
        &self,
        dir: &Dir,
        name: &str,
        made: ::wire::nfs3::NewObject,
    ) -> Answer<WithAttributes<FileHandle>> {
        let value = match made.obj {
            Some(handle) => handle,
            None => self.lookup(dir, name).await?.0,
        };
        Ok(WithAttributes { value, stat: made.obj_attributes.map(stat) })
    }

    async fn page(
        &self,
        dir: &Dir,
        how: Listing,
        cookie: u64,
        verifier: [u8; 8],
    ) -> Result<client::ops::DirPage, client::error::Error> {
        let (session, handle) = (&self.session, dir.handle);
        match how {
            Listing::WithAttributes if session.version() == Version::Three => {
                session.readdirplus(handle, cookie, verifier, DIR_COUNT, 4 * DIR_COUNT).await
            }
            _ => session.readdir(handle, cookie, verifier, DIR_COUNT).await,
        }
    }
}

fn stat(attributes: Fattr3) -> Stat {
    Stat {
        kind: match attributes.ftype {
            FType::Reg => Kind::File,
            FType::Dir => Kind::Dir,
            FType::Lnk => Kind::Symlink,
            _ => Kind::Other,
        },
        mode: attributes.mode & 0o7777,
        links: u64::from(attributes.nlink),
        size: attributes.size,
        fileid: attributes.fileid,
        modified: (i64::from(attributes.mtime.seconds), attributes.mtime.nseconds),
    }
}

impl Place for Wire {
    type Dir = Dir;
    type File = File;
    type Path = Vec<String>;

    fn root(&self) -> Dir {
        Dir { handle: self.session.root(), names: Vec::new() }
    }

    fn show(&self, dir: &Dir) -> String {
        match dir.names.is_empty() {
            true => self.name.clone(),
            false => format!("{}/{}", self.name, dir.names.join("/")),
        }
    }

    async fn create(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<File>> {
        let how = CreateHow::Unchecked(Sattr3 { size: Some(0), ..Sattr3::of_mode(0o666) });
        let made = self.session.create(dir.handle, name.as_bytes(), how).await?;
        let WithAttributes { value: handle, stat } = self.made(dir, name, made).await?;
        Ok(WithAttributes { value: File { handle, uncommitted: None, is_lost: false }, stat })
    }

    async fn create_new(&self, dir: &Dir, name: &str) -> Answer<()> {
        let how = CreateHow::Guarded(Sattr3::of_mode(0o666));
        self.session.create(dir.handle, name.as_bytes(), how).await?;
        Ok(())
    }

    async fn open(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<File>> {
        let (handle, stat) = self.lookup(dir, name).await?;
        Ok(WithAttributes { value: File { handle, uncommitted: None, is_lost: false }, stat })
    }

    async fn write(
        &self,
        file: &mut File,
        offset: u64,
        data: &Bytes,
    ) -> Answer<WithAttributes<()>> {
        let mut done = 0;
        let mut last = None;
        while done < data.len() {
            let most = self.session.sizes_now().write_bytes_max as usize;
            let piece = data.slice(done..data.len().min(done + most));
            let at = offset + done as u64;
            let written = self.session.write(file.handle, at, piece, self.stable).await?.reply;
            if written.committed == StableHow::Unstable {
                file.is_lost |= file.uncommitted.is_some_and(|verifier| verifier != written.verf);
                file.uncommitted = Some(written.verf);
            }
            // The reply is checked: it is above zero, and no more than was sent.
            done += written.count as usize;
            last = written.file_wcc.after.map(stat);
        }
        Ok(WithAttributes { value: (), stat: last })
    }

    async fn read(&self, file: &File, offset: u64, count: u32) -> Answer<WithAttributes<Vec<u8>>> {
        let mut data = Vec::new();
        let mut last = None;
        loop {
            let done = u32::try_from(data.len()).unwrap_or(count).min(count);
            let want = (count - done).min(self.session.sizes_now().read_bytes_max);
            let at = offset + u64::from(done);
            let got = self.session.read(file.handle, at, want).await?;
            last = got.file_attributes.map(stat).or(last);
            data.extend_from_slice(&got.data);
            if got.eof || got.data.is_empty() || data.len() >= count as usize {
                return Ok(WithAttributes { value: data, stat: last });
            }
        }
    }

    async fn close(&self, file: File) -> Answer<()> {
        let Some(verifier) = file.uncommitted else { return Ok(()) };
        let committed = self.session.commit(file.handle, 0, 0).await?.reply;
        if file.is_lost || committed.verf != verifier {
            let what = "the verifier changed: the server has lost what was written";
            let nonsense = self.session.nonsense("COMMIT", what);
            return Err(Refused { known: Some(Known::Other), error: nonsense.into() });
        }
        Ok(())
    }

    async fn make_dir(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<()>> {
        let made = self.session.mkdir(dir.handle, name.as_bytes(), Sattr3::of_mode(0o777)).await?;
        Ok(WithAttributes { value: (), stat: made.obj_attributes.map(stat) })
    }

    async fn enter(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<Dir>> {
        let (handle, stat) = self.lookup(dir, name).await?;
        let mut names = dir.names.clone();
        names.push(name.to_owned());
        Ok(WithAttributes { value: Dir { handle, names }, stat })
    }

    async fn remove(&self, dir: &Dir, name: &str) -> Answer<()> {
        self.session.remove(dir.handle, name.as_bytes()).await?;
        Ok(())
    }

    async fn remove_dir(&self, dir: &Dir, name: &str) -> Answer<()> {
        self.session.rmdir(dir.handle, name.as_bytes()).await?;
        Ok(())
    }

    async fn stat(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<Stat>> {
        let (handle, in_reply) = self.lookup(dir, name).await?;
        let value = stat(self.session.getattr(handle).await?);
        Ok(WithAttributes { value, stat: in_reply })
    }

    async fn stat_dir(&self, dir: &Dir) -> Answer<Stat> {
        Ok(stat(self.session.getattr(dir.handle).await?))
    }

    async fn set_mode(&self, dir: &Dir, name: &str, mode: u32) -> Answer<WithAttributes<()>> {
        let (handle, _) = self.lookup(dir, name).await?;
        let wcc = self.session.setattr(handle, Sattr3::of_mode(mode), None).await?;
        Ok(WithAttributes { value: (), stat: wcc.after.map(stat) })
    }

    async fn rename(&self, dir: &Dir, from: &str, to: &str) -> Answer<()> {
        let (from, to) = ((dir.handle, from.as_bytes()), (dir.handle, to.as_bytes()));
        self.session.rename(from, to).await?;
        Ok(())
    }

    async fn link(&self, dir: &Dir, from: &str, to: &str) -> Answer<WithAttributes<()>> {
        let (handle, _) = self.lookup(dir, from).await?;
        let linked = self.session.link(handle, dir.handle, to.as_bytes()).await?;
        Ok(WithAttributes { value: (), stat: linked.file_attributes.map(stat) })
    }

    async fn symlink(&self, dir: &Dir, name: &str, target: &str) -> Answer<WithAttributes<()>> {
        let (name, target) = (name.as_bytes(), target.as_bytes());
        let made = self.session.symlink(dir.handle, name, Sattr3::of_mode(0o777), target).await?;
        Ok(WithAttributes { value: (), stat: made.obj_attributes.map(stat) })
    }

    async fn read_link(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<Vec<u8>>> {
        let (handle, _) = self.lookup(dir, name).await?;
        let (value, in_reply) = self.session.readlink(handle).await?;
        Ok(WithAttributes { value, stat: in_reply.map(stat) })
    }

    async fn list(&self, dir: &Dir, how: Listing, most: usize) -> Answer<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        let (mut cookie, mut verifier) = (0, [0; 8]);
        let mut walk = Walk::default();
        loop {
            let page = self.page(dir, how, cookie, verifier).await?;
            walk.page(cookie, &page).map_err(|what| self.session.nonsense("READDIR", what))?;
            let Some(last) = page.entries.last() else { return Ok(entries) };
            (cookie, verifier) = (last.cookie, page.cookieverf);
            entries.extend(page.entries.into_iter().map(|entry| Entry {
                name: entry.name,
                fileid: entry.fileid,
                stat: entry.attributes.map(stat),
            }));
            if page.eof || entries.len() >= most {
                entries.truncate(most);
                return Ok(entries);
            }
        }
    }

    async fn changes(
        &self,
        dir: &Dir,
        which: Changes,
        (file, folder): (&str, &str),
    ) -> Answer<Vec<Change>> {
        let (session, handle) = (&self.session, dir.handle);
        let (file, folder) = (file.as_bytes(), folder.as_bytes());
        let mut changes = Vec::new();
        let mut note = async |doing, wcc: WccData| {
            let by_getattr = stat(session.getattr(handle).await?);
            changes.push(Change { doing, in_reply: wcc.after.map(stat), by_getattr });
            Ok::<_, Refused>(())
        };
        let made =
            session.create(handle, file, CreateHow::Unchecked(Sattr3::of_mode(0o666))).await?;
        if which == Changes::Making {
            note("create", made.dir_wcc).await?;
        }
        let made = session.mkdir(handle, folder, Sattr3::of_mode(0o777)).await?;
        if which == Changes::Making {
            note("mkdir", made.dir_wcc).await?;
        }
        if which == Changes::Renaming {
            // There and back, so that the names are the given ones.
            let other = [file, b".renamed"].concat();
            let there = session.rename((handle, file), (handle, &other)).await?;
            let noted = note("rename", there.fromdir_wcc).await;
            let back = session.rename((handle, &other), (handle, file)).await?;
            noted?;
            note("rename back", back.todir_wcc).await?;
        }
        let gone = session.rmdir(handle, folder).await?;
        if which == Changes::Removing {
            note("rmdir", gone).await?;
        }
        let gone = session.remove(handle, file).await?;
        if which == Changes::Removing {
            note("remove", gone).await?;
        }
        Ok(changes)
    }

    async fn space(&self, dir: &Dir) -> Answer<Space> {
        let found = self.session.fsstat(dir.handle).await?;
        Ok(Space { total: found.tbytes, free: found.fbytes, available: found.abytes })
    }

    /// From a directory that is not the target's own there is a way up.
    async fn path_of(&self, dir: &Dir) -> Answer<Above<Vec<String>>> {
        let parent = match dir.names.is_empty() {
            true => None,
            false => {
                let (handle, _) = self.lookup(dir, "..").await?;
                Some(stat(self.session.getattr(handle).await?))
            }
        };
        Ok(Above { path: dir.names.clone(), parent })
    }

    async fn stat_path(&self, path: &Vec<String>) -> Answer<Stat> {
        let mut dir = self.root();
        for name in path {
            dir.handle = self.lookup(&dir, name).await?.0;
        }
        self.stat_dir(&dir).await
    }
}
