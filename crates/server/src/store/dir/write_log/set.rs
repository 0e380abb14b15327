//! All logs of a directory: found together, or made together, or refused.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use log::identity::LOGS_MAX;
use log::replay::Plan;
use log::scan::{Found, Lost, Unreadable, salvage, scan};
use log::{Identity, Journal, Medium, Purpose, Set, frame};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

use super::error::{LogError, LogTrouble, Trouble};
use super::file::{self, LogFile, Site};
use super::marker::Marker;
use super::options::WriteLog;

/// What `nfskit log inspect` tells.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub id: [u8; 16],
    /// How many they are together.
    pub logs: usize,
    pub size_bytes: u64,
    /// What a recovery would read.
    pub frames: usize,
    pub frames_bytes: u64,
    pub sequence: u64,
    /// What it would do again.
    pub files: usize,
    pub records: u64,
    /// Of the records, the SETATTRs.
    pub attributes: u64,
    pub bytes: u64,
    pub is_clean: bool,
    pub is_torn: bool,
    pub has_doubts: bool,
    pub unreadable: Option<Unreadable>,
}

/// By their numbers, whatever the order in which they were given.
pub(in crate::store::dir) struct LogFiles {
    pub(in crate::store::dir) files: Vec<LogFile>,
    pub(super) set: Set,
}

impl Medium for LogFiles {
    fn read(&self, log: usize, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.files.get(log).ok_or(io::ErrorKind::NotFound)?.read(at, into)
    }
}

impl LogFiles {
    /// The logs of this directory at their places, made if nothing is there.
    pub(super) fn open_or_make(
        options: &WriteLog,
        root: &OwnedFd,
        boot: [u8; 16],
    ) -> Result<Self, LogError> {
        let first = options.files.first().cloned().unwrap_or_default();
        if !(1..=LOGS_MAX).contains(&options.files.len()) {
            let what = format!("a directory has 1 to {LOGS_MAX} logs");
            return Err(Trouble::other(what).about(&first));
        }
        let export = file::export_name(root)
            .map_err(|cause| Trouble::from(cause).in_doing("no handle").about(&first))?;
        check_each_once(&options.files)?;
        let marker = Marker::of(root).map_err(LogError::Mark)?;
        if marker.is_none() {
            let mark = Marker { id: [0; 16], files: options.files.clone() };
            // Before a log is made that nothing could remember.
            mark.try_out(root).map_err(|errno| not_remembered(errno).about(&first))?;
        }
        make_if_none(options, marker.as_ref(), &export, boot)?;
        let rebuilt = marker.as_ref().filter(|_| options.salvages).map(|marker| (marker, &export));
        let logs = Self::open(&options.files, rebuilt).map_err(|error| match (error, &marker) {
            // The directory knows it: it is damaged.
            (LogError::Refused { file, kind: LogTrouble::NoLog, what }, Some(marker))
                if marker.place(&file).is_some() =>
            {
                LogError::Damaged { file, what }
            }
            (error, _) => error,
        })?;
        logs.check_owner(&export, marker.as_ref(), options.salvages)?;
        match marker {
            Some(Marker { id, files }) if id != logs.set.id => Err(LogError::Missing { files }),
            Some(_) => Ok(logs),
            None if logs.needs_nothing()? => Ok(logs),
            None => Err(logs.error(Trouble::other(
                "it holds stable writes, but the directory does not know it any more: it was \
                 restored, or the log could not be written and its server went on without it. Keep \
                 a copy of the log, and remove it",
            ))),
        }
    }

    /// Opens and locks them, whose ever they are. A directory's marker and name, where first blocks
    /// may be damaged.
    pub(super) fn open(
        paths: &[PathBuf],
        rebuilt: Option<(&Marker, &Vec<u8>)>,
    ) -> Result<Self, LogError> {
        let mut files = Vec::new();
        check_each_once(paths)?;
        for (index, path) in paths.iter().enumerate() {
            let rebuilt = rebuilt.map(|(marker, export)| {
                let log = marker.place(path).unwrap_or(index);
                let number = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
                let (log, logs, export) = (number(log), number(paths.len()), export.clone());
                let purpose = Purpose::Server;
                Identity { purpose, id: marker.id, log, logs, bytes: 0, export }
            });
            join(&mut files, LogFile::open(path, rebuilt)?, paths.len())?;
        }
        Ok(Self::of(files))
    }

    /// Opens them for reading, whose ever they are, unless somebody has one.
    fn look(paths: &[PathBuf]) -> Result<Self, LogError> {
        let mut files = Vec::new();
        check_each_once(paths)?;
        for path in paths {
            join(&mut files, LogFile::look(path)?, paths.len())?;
        }
        Ok(Self::of(files))
    }

    fn of(mut files: Vec<LogFile>) -> Self {
        files.sort_by_key(|log| log.identity.log);
        let id = files.first().map_or([0; 16], |log| log.identity.id);
        let set = Set { id, bytes: files.iter().map(|log| log.identity.bytes).collect() };
        Self { files, set }
    }

    pub(super) fn error(&self, trouble: impl Into<Trouble>) -> LogError {
        trouble.into().about(self.files.first().map_or_else(|| Path::new(""), LogFile::path))
    }

    pub(super) fn not_remembered(&self, errno: Errno) -> LogError {
        self.error(not_remembered(errno))
    }

    pub(super) fn marker(&self) -> Marker {
        Marker { id: self.set.id, files: self.files.iter().map(LogFile::real_path).collect() }
    }

    /// What is to be read of them, through a medium that sees its progress; `salvages` takes what
    /// is whole of damaged ones, and says what is not there any more.
    pub(super) fn scan_with(
        &self,
        salvages: bool,
        medium: &impl Medium,
    ) -> Result<(Found, Option<Lost>), LogError> {
        let (found, lost) = match scan(medium, &self.set) {
            Ok(found) => (found, None),
            Err(error) if salvages && error.is_damage() => {
                let (found, lost) =
                    salvage(medium, &self.set).map_err(|error| self.error(error))?;
                (found, Some(lost))
            }
            Err(error) => return Err(self.error(error)),
        };
        // A first block is written anew only where what follows shows whose it is.
        let shows = |log: usize| found.frames.iter().any(|place| place.log == log);
        let stranger =
            self.files.iter().enumerate().find(|(index, log)| log.is_nameless() && !shows(*index));
        match stranger {
            Some((_, log)) => Err(log.error(Trouble::other(
                "its first block is not that of a write log, and nothing else in it shows that it \
                 is this directory's",
            ))),
            None => Ok((found, lost)),
        }
    }

    pub(super) fn plan(&self, found: &Found) -> Result<Plan, LogError> {
        Plan::of(self, &self.set, found).map_err(|error| self.error(error))
    }

    /// Where each lies, and how long it is.
    pub(super) fn places(&self) -> Vec<(PathBuf, u64)> {
        self.files.iter().map(|log| (log.path().to_owned(), log.identity.bytes)).collect()
    }

    /// Bytes of the logs that had been cut off when they were opened.
    pub(super) fn cut_bytes(&self) -> u64 {
        self.files.iter().map(LogFile::cut_bytes).sum()
    }

    /// Writes first blocks that were damaged, after all that was held was brought to its place.
    pub(super) fn name_again(&self) -> io::Result<()> {
        self.files.iter().try_for_each(LogFile::name_again)
    }

    fn needs_nothing(&self) -> Result<bool, LogError> {
        let (found, _) = self.scan_with(false, self)?;
        Ok(self.plan(&found)?.files.is_empty())
    }

    fn has_ended_in_order(&self) -> Result<bool, LogError> {
        Ok(self.scan_with(false, self)?.0.last.flags & frame::CLEAN != 0)
    }

    /// Whether they were made for this directory. Its file system may have got another UUID, or a
    /// kernel that reports it; but roots of different file systems can have the same handle.
    fn check_owner(
        &self,
        export: &[u8],
        marker: Option<&Marker>,
        salvages: bool,
    ) -> Result<(), LogError> {
        let Some(log) = self.files.iter().find(|log| log.identity.export != export) else {
            return Ok(());
        };
        let named = &log.identity.export;
        let is_known = marker.is_some_and(|marker| marker.id == self.set.id);
        let is_same_root = file::is_same_root(named, export);
        let lacks_uuid = file::lacks_uuid(named) || file::lacks_uuid(export);
        // The directory knows it, or no other does.
        let is_its = if is_known {
            lacks_uuid || salvages
        } else {
            lacks_uuid && is_same_root && marker.is_none() && self.has_ended_in_order()?
        };
        if is_same_root && is_its {
            return Ok(());
        }
        let (kind, what) = match (is_same_root && is_known, marker) {
            (true, _) => (LogTrouble::OfOtherUuid, OTHER_UUID),
            (false, Some(_)) => (LogTrouble::OfAnother, ANOTHERS),
            (false, None) => (LogTrouble::Taken, ANOTHERS),
        };
        Err(log.error(Trouble::new(kind, what)))
    }
}

const ANOTHERS: &str = "it was made for another directory";
const OTHER_UUID: &str = "the directory names it, but its file system had another UUID when it was \
                          made: it got a new one (tune2fs -U), or the directory is a copy";

fn not_remembered(errno: Errno) -> Trouble {
    let kind = match errno {
        Errno::ROFS => LogTrouble::NotRememberedReadOnly,
        Errno::NOSPC | Errno::DQUOT => LogTrouble::NotRememberedForRoom,
        _ => LogTrouble::NotRemembered,
    };
    let what = format!("the directory cannot remember it (user.nfskit.write_log): {errno}");
    Trouble::new(kind, what)
}

/// No file may be given twice, however its path is written.
fn check_each_once(paths: &[PathBuf]) -> Result<(), LogError> {
    let real = |path: &PathBuf| {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = dir.unwrap_or_else(|| Path::new(".")).canonicalize().ok();
        let of_new = dir.zip(path.file_name()).map(|(dir, name)| dir.join(name));
        path.canonicalize().ok().or(of_new).unwrap_or_else(|| path.clone())
    };
    let mut seen = Vec::new();
    for path in paths {
        let real = real(path);
        if seen.contains(&real) {
            let what = "it is given twice: each log is needed once";
            return Err(Trouble::new(LogTrouble::NotEachOnce, what).about(path));
        }
        seen.push(real);
    }
    Ok(())
}

/// Puts a log beside those that were opened before it, of so many.
fn join(files: &mut Vec<LogFile>, log: LogFile, given: usize) -> Result<(), LogError> {
    if log.identity.purpose == Purpose::Proxy {
        let what = "it is the log of a proxy (serve nfs://... --write-back)";
        return Err(log.error(Trouble::new(LogTrouble::OfProxy, what)));
    }
    check_company(&log, files, given)?;
    files.push(log);
    Ok(())
}

/// Whether a log belongs to those that were opened before it.
fn check_company(log: &LogFile, others: &[LogFile], given: usize) -> Result<(), LogError> {
    let Identity { log: number, logs, id, .. } = &log.identity;
    let it = format!("it is log {} of {logs}", number + 1);
    if usize::from(*logs) != given {
        let given =
            if given == 1 { "one was given".to_owned() } else { format!("{given} were given") };
        let what = format!("{it}, and {given}: all are needed, each once");
        return Err(log.error(Trouble::new(LogTrouble::NotEachOnce, what)));
    }
    if let Some(other) = others.iter().find(|other| other.identity.id != *id) {
        let other = other.path().display();
        let what = format!("{it} of another server or directory than {other}");
        return Err(log.error(Trouble::new(LogTrouble::OfAnother, what)));
    }
    match others.iter().find(|other| other.identity.log == *number) {
        Some(other) => {
            let what = format!("{it}, and so is {}", other.path().display());
            Err(log.error(Trouble::other(what)))
        }
        None => Ok(()),
    }
}

/// All of them or none.
fn make_if_none(
    options: &WriteLog,
    marker: Option<&Marker>,
    export: &[u8],
    boot: [u8; 16],
) -> Result<(), LogError> {
    let mut sites = Vec::new();
    for path in &options.files {
        sites.push(match marker.and_then(|marker| marker.place(path)) {
            // Whatever has become of it, nothing is made in its place.
            Some(_) => Site::Taken,
            None => Site::at(path).map_err(|trouble| trouble.about(path))?,
        });
    }
    let is_there = |site: &Site| matches!(site, Site::Taken);
    if sites.iter().all(is_there) {
        return Ok(());
    }
    if let Some(marker) = marker {
        return Err(one_too_many(&options.files, marker));
    }
    if let Some(there) = sites.iter().position(is_there) {
        let missing = sites.iter().position(|site| !is_there(site)).unwrap_or_default();
        let there = options.files[there].display();
        let trouble = Trouble::new(
            LogTrouble::NotEachOnce,
            format!(
                "no log is there, but one is at {there}, and logs are made together: if an earlier \
             start was interrupted, remove that one (on a device, its first MiB)"
            ),
        );
        return Err(trouble.about(&options.files[missing]));
    }
    let mut id = [0; 16];
    rustix::rand::getrandom(&mut id, GetRandomFlags::empty())
        .map_err(|errno| Trouble::from(errno).about(&options.files[0]))?;
    let mut bytes = Vec::new();
    for (path, site) in options.files.iter().zip(&sites) {
        bytes.push(site.bytes(options.bytes).map_err(|trouble| trouble.about(path))?);
    }
    let set = Set { id, bytes };
    let first = Journal::first_frame(&set, boot);
    let number = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    for (index, (path, site)) in options.files.iter().zip(&sites).enumerate() {
        let (log, logs) = (number(index), number(sites.len()));
        let (bytes, export) = (set.bytes[index], export.to_vec());
        let purpose = Purpose::Server;
        let identity = Identity { purpose, id, log, logs, bytes, export };
        let first = if index == 0 { &first[..] } else { &[] };
        file::make(path, site, &identity, first).map_err(|trouble| {
            // Those that were made before are of no use to anybody.
            let made = options.files.iter().zip(&sites).take(index);
            made.filter(|(_, site)| matches!(site, Site::Free)).for_each(|(path, _)| {
                std::fs::remove_file(path).ok();
            });
            trouble.about(path)
        })?;
    }
    Ok(())
}

/// Why a directory that has logs gets no others.
fn one_too_many(given: &[PathBuf], marker: &Marker) -> LogError {
    let files = &marker.files;
    let has = |number| given.iter().any(|path| marker.place(path) == Some(number));
    let other = given.iter().find(|path| marker.place(path).is_none());
    match other.filter(|_| (0..files.len()).all(has)) {
        Some(other) => {
            let what = "the directory has its logs, which are given, too; more can be made when \
                        it needs them no more (nfskit log drain), and they were removed";
            Trouble::new(LogTrouble::NotEachOnce, what).about(other)
        }
        None => LogError::Missing { files: files.clone() },
    }
}

/// Reads logs that no server has. One that begins meanwhile gets them, and nothing is reported of
/// what it changes.
pub(super) fn inspect(paths: &[PathBuf]) -> Result<Inspection, LogError> {
    let logs = LogFiles::look(paths)?;
    let inspected = inspect_opened(&logs);
    match logs.files.iter().find(|log| log.is_in_use()) {
        Some(log) => Err(log.error(file::of_another_server())),
        None => inspected,
    }
}

fn inspect_opened(logs: &LogFiles) -> Result<Inspection, LogError> {
    let (found, _) = logs.scan_with(false, logs)?;
    let plan = logs.plan(&found)?;
    Ok(Inspection {
        logs: logs.files.len(),
        frames: found.frames.len(),
        frames_bytes: found.frames.iter().map(|place| place.bytes).sum(),
        sequence: found.last.sequence,
        files: plan.files.len(),
        records: plan.files.values().map(|needed| needed.records).sum(),
        attributes: plan.files.values().map(|needed| needed.attributes).sum(),
        bytes: plan.files.values().map(|needed| needed.bytes).sum(),
        is_clean: found.last.flags & frame::CLEAN != 0,
        is_torn: found.is_torn,
        has_doubts: found.last.flags & frame::DOUBT != 0,
        unreadable: found.unreadable,
        id: logs.set.id,
        size_bytes: logs.set.all_bytes(),
    })
}
