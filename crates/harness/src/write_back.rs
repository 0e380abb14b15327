//! `--write-back` of proxies, and `nfskit log` of their logs: the log and what lies beside it.
//!
//! ```text
//!   LOG             changes on their way
//!   LOG.state       which state directory names files in it (`log_state.rs`)
//!   LOG.root        which directory of the origin it is for (`log_root.rs`)
//!   LOG.conflicts   a line for each conflict
//!   LOG.refused     what clients have written, and the origin refuses for good
//! ```

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use load::environment::{rfc3339, rfc3339_of};
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use perf::words::counted;
use proxy::write_back::{
    Aliases, Event, Hear, Held, HeldError, LeaseError, Log, OpenError, Options, Owner, Settled,
    WriteBack, owner_name, owner_text,
};
use proxy::{Handles, Remote};
use server::locked::is_locked;
use server::small_file::{self, NO_LINK};
use server::store::dir::write_log::{Alone, LogError, LogTrouble, Peek};
use server::types::{Caller, Status};

use crate::exit::Failure;
use crate::log_root::{self, Root};
use crate::log_state::{self, Named};
use crate::mounts::settings::Settings;
use crate::signals::Interrupts;
use crate::state::State;
use crate::{origin, output, served};

/// Bytes of the file of conflicts at most: some ten thousands. Then changes by which something is
/// lost wait until somebody has seen to them.
const CONFLICTS_BYTES_MAX: u64 = 16 << 20;

/// Conflicts that `status` prints.
const CONFLICTS_SHOWN: usize = 20;

/// How often a drain reports how far it is.
const REPORTED_EVERY: Nanos = Nanos::from_secs(10);

/// A log that its proxy writes to may change while it is read.
const LOOKS: usize = 5;

/// Where a proxy's log is to be, and what belongs to it.
#[derive(Debug)]
pub struct Place<'a> {
    pub log: &'a Path,
    pub bytes: u64,
    pub state: Option<&'a State>,
}

/// A store that answers from its log.
#[derive(Debug)]
pub struct Opened {
    pub store: WriteBack<Remote>,
    /// For the banner.
    pub summary: String,
}

pub(crate) fn beside(log: &Path, suffix: &str) -> PathBuf {
    let mut name = log.to_owned().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// A log that cannot be had or made.
fn unusable(error: LogError) -> Failure {
    let advice = match error.kind() {
        LogTrouble::InMemory => "a place on a disk, such as /var/lib/nfskit",
        LogTrouble::InUse => {
            "its proxy brings it to the origin by itself; how far: nfskit log status"
        }
        LogTrouble::NoSpace => {
            "a disk with room for all of the log, or a smaller --write-back-size"
        }
        LogTrouble::NotFound | LogTrouble::NotMade => {
            "a folder that is there, and in which this user may make files"
        }
        LogTrouble::Damaged | LogTrouble::WrongLength => KEEP_A_COPY,
        _ => "the log of a proxy to the same origin, or a path where nothing is",
    };
    Failure::environment(error, advice)
}

/// What to do with a log that is not whole.
pub const KEEP_A_COPY: &str =
    "keep a copy of it; what is whole in it is not brought anywhere by itself";

/// Why a log cannot be looked at.
fn unreadable(error: LogError) -> Failure {
    let advice = match error.kind() {
        LogTrouble::Damaged | LogTrouble::WrongLength => KEEP_A_COPY,
        _ => "the log of serve nfs://... --write-back, as the user who has it",
    };
    Failure::environment(error, advice)
}

/// Finds or makes the log, takes the lease of the origin's export, and goes on with what the log
/// holds.
pub async fn open(
    clock: &Clock,
    remote: Remote,
    settings: &Settings,
    place: &Place<'_>,
    everyone: Option<Caller>,
) -> Result<Opened, Failure> {
    let Place { log: path, bytes, state } = *place;
    let state = state.ok_or_else(without_state)?;
    check_is_file(path)?;
    let name = origin::name(&settings.target);
    check_is_for(path, &name)?;
    let alone = Alone::open_or_make(path, bytes, &owner_name(&name)).map_err(unusable)?;
    let (id, boot, size) = (alone.set().id, alone.boot(), alone.set().all_bytes());
    let log = Log::of_file(alone, path).map_err(unusable)?;
    let changes = log.held().changes();
    let state_path = fs::canonicalize(state.path()).map_err(|cause| no_state(path, &cause))?;
    let named = Named::at(state_path)?;
    log_state::check(path, &named, changes)?;
    let root = Root::of(&remote);
    log_root::check(path, &root, changes)?;
    let aliases = Aliases::open(state.path()).map_err(|why| {
        Failure::environment(why, "another --state DIR, if nothing is in the log")
    })?;
    let owner = owner(id, boot, everyone);
    let uid = owner.caller.uid;
    let options = Options {
        patience: settings.soft.then(|| patience(settings)),
        owner: Some(owner),
        hear: hear(clock, path),
        ..Options::default()
    };
    let opened = WriteBack::open(clock, remote, Arc::new(aliases), log, options);
    let store = opened.await.map_err(|error| cannot_open(&error, path, uid))?;
    // Nothing is answered before: what is in the log is named by that state, and for that root.
    let remembered =
        log_state::remember(path, &named).and_then(|()| log_root::remember(path, &root));
    if let Err(cause) = remembered {
        store.end().await;
        return Err(no_state(path, &cause));
    }
    let held = match changes {
        0 => "nothing was on its way".to_owned(),
        1 => "the change that it held is on its way again".to_owned(),
        changes => format!("the {changes} changes that it held are on their way again"),
    };
    let summary = format!("{}, {} MiB: {held}", path.display(), size >> 20);
    Ok(Opened { store, summary })
}

fn without_state() -> Failure {
    Failure::environment(
        "--write-back needs a state directory, by which files keep their names",
        "--state DIR, and a port that is the same at each start",
    )
}

fn check_is_file(log: &Path) -> Result<(), Failure> {
    if !fs::metadata(log).is_ok_and(|found| found.file_type().is_block_device()) {
        return Ok(());
    }
    let what = format!("--write-back {}: a log on a device is not there yet", log.display());
    Err(Failure::usage(what, "a file"))
}

/// What is no log, or cannot be read, is found out later.
fn check_is_for(log: &Path, origin: &str) -> Result<(), Failure> {
    match Peek::open(log) {
        Ok(peek) if peek.owner() != owner_name(origin) => {
            let made_for = origin::as_target(&owner_text(peek.owner()));
            let what = format!(
                "the log {} was made for another origin: {made_for}, not {}",
                log.display(),
                origin::as_target(origin)
            );
            Err(Failure::environment(what, "the same URL as before, or another log"))
        }
        _ => Ok(()),
    }
}

fn patience(settings: &Settings) -> Nanos {
    settings.timeo.unwrap_or(Nanos::from_secs(60))
}

fn owner(log: [u8; 16], boot: [u8; 16], everyone: Option<Caller>) -> Owner {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let caller = everyone.unwrap_or_else(served::this_user);
    Owner { log, host, process: std::process::id(), boot, caller }
}

fn cannot_open(error: &OpenError, log: &Path, uid: u32) -> Failure {
    let advice = match error {
        OpenError::Lease(lease) => about_lease(lease, uid),
        OpenError::Origin(_) => {
            format!("when the origin answers: nothing of {} is lost", log.display())
        }
    };
    Failure::environment(error, advice)
}

fn about_lease(error: &LeaseError, uid: u32) -> String {
    let advice = match error {
        LeaseError::Upper(upper) => return about_lease(upper, uid),
        LeaseError::Alive { .. } => {
            "mount that proxy, or end it: one at a time writes back to an export"
        }
        LeaseError::Dead { .. } => {
            "start that proxy with its log, or nfskit log drain LOG URL there; if that log is \
             lost, remove .nfskit-write-back in the root of its export"
        }
        LeaseError::Foreign => "look what it is, and remove it at the origin",
        LeaseError::Refused(status) | LeaseError::Unwritten(status) => {
            return about_refusal(*status, uid);
        }
    };
    advice.to_owned()
}

fn about_refusal(status: Status, uid: u32) -> String {
    let advice = match status {
        Status::ReadOnly => "an origin that exports it read-write, or no --write-back",
        Status::NoSpace | Status::Quota => "when the origin has room for it",
        Status::Access | Status::NotOwner => {
            return format!(
                "let uid {uid} write to the root of the export, or name who may: ?uid=&gid=; if \
                 the origin is a proxy with --write-back, start one of the two without"
            );
        }
        _ => "the same again when the origin takes it",
    };
    advice.to_owned()
}

fn no_state(log: &Path, cause: &std::io::Error) -> Failure {
    let what = format!("files beside {}: {cause}", log.display());
    Failure::environment(what, "a directory of its own")
}

/// What a file beside a log has in it, up to so many bytes; none if there is no such file. A link
/// that somebody has put there is not followed.
pub(crate) fn read_beside(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, Failure> {
    let wrong = |cause: std::io::Error| {
        let what = format!("{}: {cause}", path.display());
        Failure::environment(what, "as the user whose proxy it is")
    };
    small_file::read(path, bytes_max).map_err(wrong)
}

/// Who hears of conflicts: standard error, and a file beside the log. A change by which something
/// is lost is no conflict before that file has it.
fn hear(clock: &Clock, log: &Path) -> Arc<Hear> {
    let (clock, path) = (clock.clone(), beside(log, ".conflicts"));
    Arc::new(move |event| {
        let noted = match event {
            Event::Beside { .. } | Event::NotMade { .. } | Event::SetAside { .. } => {
                let line = format!("{} {event}\n", rfc3339(&clock));
                note(&path, &line).map_err(|cause| format!("{}: {cause}", path.display()))
            }
            _ => Ok(()),
        };
        match (event, &noted) {
            (_, Ok(())) => output::say(format_args!("write-back: {event}")),
            (Event::Beside { .. }, Err(why)) => {
                output::say(format_args!("write-back: {event}; {why}"));
            }
            // It is tried again.
            (_, Err(_)) => {}
        }
        noted
    })
}

fn note(path: &Path, line: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(NO_LINK);
    let mut file = options.open(path)?;
    if file.metadata()?.size() > CONFLICTS_BYTES_MAX {
        return Err(std::io::Error::other("it is full: see to it, and remove it"));
    }
    file.write_all(line.as_bytes())?;
    // Of a change that the origin refuses this may be all that is left.
    file.sync_data()
}

/// A server has ended: what is on its way comes to the origin, or stays for the next.
pub async fn end(store: &WriteBack<Remote>, log: &Path, limit: Nanos) {
    let left = store.drained(Some(limit)).await;
    if left > 0 {
        output::say(format_args!(
            "write-back: {} left in {}: the next start brings what is there to the origin, or \
             nfskit log drain",
            counted(left, "change"),
            log.display()
        ));
    } else if !store.end().await {
        output::say(format_args!("write-back: {LEASE_STAYS}"));
    }
}

const LEASE_STAYS: &str = "the lease .nfskit-write-back could not be removed at the origin";

/// `nfskit log drain LOG URL`, within a limit if one is given: what came of it.
///
/// # Errors
/// It cannot be done, or not all of it.
pub fn drain(
    logs: &[PathBuf],
    url: &str,
    salvages: bool,
    limit: Option<Nanos>,
) -> Result<String, Failure> {
    let [log] = logs else {
        let form = "nfskit log drain LOG nfs://HOST/EXPORT";
        return Err(Failure::usage("a proxy has one log", form));
    };
    if salvages {
        return Err(Failure::usage("--salvage is for logs of directories", "without it"));
    }
    check_is_left(log)?;
    let state = log_state::opened(log)?;
    let drained = net::runtime::block_on(async { drain_to(log, url, &state, limit).await });
    drained.map_err(|cause| Failure::environment(cause, "raise the limit of open files"))?
}

/// A log that is there (it would be made, and would be empty), and that no proxy has.
fn check_is_left(log: &Path) -> Result<(), Failure> {
    if !is_locked(Peek::open(log).map_err(unreadable)?.file()) {
        return Ok(());
    }
    let what = format!("a proxy has {}, and brings it to the origin by itself", log.display());
    Err(Failure::environment(what, "how far it is: nfskit log status"))
}

async fn drain_to(
    log: &Path,
    url: &str,
    state: &State,
    limit: Option<Nanos>,
) -> Result<String, Failure> {
    let (clock, mut interrupts) = (Clock::real(), Interrupts::catch()?);
    let until = limit.map(|limit| clock.now() + limit);
    let opened = async {
        let opening = opened_to_drain(&clock, log, url, state);
        let Some(limit) = limit else { return opening.await };
        let over = |_| Err(over().and(format_args!("all is left in {}", log.display())));
        clock.within(limit, opening).await.unwrap_or_else(over)
    };
    let store = interrupts.or(opened).await?;
    let all = interrupts.or(until_brought(&clock, &store, until, log)).await;
    all.map_err(|failure| failure.and(so_far(&store, log)))?;
    drop(interrupts);
    let has_ended = store.end().await;
    let brought = brought(&store.settled(), url, log)?;
    match has_ended {
        true => Ok(format!("{brought}\n")),
        false => {
            let what = format!("{brought}; {LEASE_STAYS}");
            Err(Failure::environment(what, "the same again, or remove it there"))
        }
    }
}

async fn opened_to_drain(
    clock: &Clock,
    log: &Path,
    url: &str,
    state: &State,
) -> Result<WriteBack<Remote>, Failure> {
    let settings = origin::settings(url, "")?;
    let reached = origin::mounted(clock, &settings).await?;
    let name = origin::name(&settings.target);
    let handles = Handles::open(&name, Some(state.path())).map_err(origin::no_key)?;
    let everyone = origin::everyone(&settings.target);
    let options = proxy::Options { everyone: everyone.clone(), ..proxy::Options::default() };
    let remote = Remote::open(clock, reached.session, handles, options).await?;
    let place = Place { log, bytes: 0, state: Some(state) };
    Ok(open(clock, remote, &settings, &place, everyone).await?.store)
}

/// Waits until the origin has all, and reports meanwhile how far it is.
async fn until_brought(
    clock: &Clock,
    store: &WriteBack<Remote>,
    until: Option<Instant>,
    log: &Path,
) -> Result<(), Failure> {
    loop {
        let left = until.map(|until| until.since(clock.now()));
        let wait = left.map_or(REPORTED_EVERY, |left| left.min(REPORTED_EVERY));
        if store.drained(Some(wait)).await == 0 {
            return Ok(());
        }
        if left == Some(wait) {
            return Err(over());
        }
        output::say(format_args!("write-back: {}", so_far(store, log)));
    }
}

fn over() -> Failure {
    let advice = "the same again when the origin takes it, or a longer --for";
    Failure::environment("the time of --for is over", advice)
}

/// How far a drain is that has not brought everything.
fn so_far(store: &WriteBack<Remote>, log: &Path) -> String {
    part_brought(&store.settled(), store.pending(), store.trouble(), log)
}

fn part_brought(settled: &Settled, left: usize, why: Option<Status>, log: &Path) -> String {
    let Settled { brought, conflicts, .. } = *settled;
    let why = match why {
        None => String::new(),
        Some(Status::Away) => " (the origin does not answer)".to_owned(),
        Some(status) => format!(" (the origin refuses: {status:?})"),
    };
    let conflicts = match conflicts {
        0 => String::new(),
        conflicts => format!("; {}", counted(conflicts, "conflict")),
    };
    let (brought, log) = (counted(brought, "change"), log.display());
    format!("{brought} brought, {left} left in {log}{why}{conflicts}")
}

/// What a drain has come to. Of conflicts somebody is to know: it fails.
fn brought(settled: &Settled, url: &str, log: &Path) -> Result<String, Failure> {
    let Settled { brought, lost, conflicts } = *settled;
    let log = log.display();
    let brought = format!("{} brought to {url}; {log} is empty", counted(brought, "change"));
    if conflicts == 0 && lost == 0 {
        return Ok(brought);
    }
    let lost = match lost {
        0 => String::new(),
        lost => format!("; {} not carried out, or not in full", counted(lost, "change")),
    };
    let what = format!("{brought}{lost}; {}", counted(conflicts, "conflict"));
    Err(Failure::check(what, format!("look at {log}.conflicts, which has a line for each")))
}

/// `nfskit log status LOG`: what it has on its way.
///
/// # Errors
/// It cannot be read.
pub fn status(log: &Path) -> Result<String, Failure> {
    let (peek, held) = looked_at(log)?;
    let has = if is_locked(peek.file()) { "a proxy has it" } else { "no proxy has it" };
    let mut text = format!(
        "origin     {}\nlog        {}, {} MiB; {has}\npending    {}, {} bytes of data\n",
        origin::as_target(&owner_text(peek.owner())),
        log.display(),
        peek.set().all_bytes() >> 20,
        counted(held.changes(), "change"),
        held.bytes(),
    );
    text.extend(oldest(&held));
    Ok(text + &conflicts(log)?)
}

/// What is on its way, by kinds, and since when.
fn oldest(held: &Held) -> Option<String> {
    let oldest = u64::try_from(held.oldest_seconds()?).ok()?;
    let oldest = rfc3339_of(Duration::from_secs(oldest));
    let kinds = held.kinds().into_iter().filter(|(_, count)| *count > 0);
    let kinds: Vec<_> = kinds.map(|(name, count)| format!("{name} {count}")).collect();
    Some(format!("           {}; the oldest of {oldest}\n", kinds.join(", ")))
}

/// How many conflicts there were, and the last ones.
fn conflicts(log: &Path) -> Result<String, Failure> {
    let path = beside(log, ".conflicts");
    // One line may be begun below the maximum and end above it.
    let bytes = read_beside(&path, 2 * CONFLICTS_BYTES_MAX)?.unwrap_or_default();
    let is_full = bytes.len() as u64 > CONFLICTS_BYTES_MAX;
    let lines = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = lines.lines().collect();
    let shown = lines.iter().rev().take(CONFLICTS_SHOWN);
    let shown: String = shown.map(|line| format!("           {line}\n")).collect();
    let path = path.display();
    let all = match (lines.is_empty(), is_full) {
        (true, _) => String::new(),
        (false, false) => format!("           all in {path}: remove it when they are seen to\n"),
        (false, true) => format!("           {path} is full: changes wait until it is removed\n"),
    };
    Ok(format!("conflicts  {}\n{shown}{all}", lines.len()))
}

fn looked_at(log: &Path) -> Result<(Peek, Held), Failure> {
    let mut last: Option<HeldError> = None;
    for _ in 0..LOOKS {
        let peek = Peek::open(log).map_err(unreadable)?;
        match Held::read(&peek, &peek.set()) {
            Ok(held) => return Ok((peek, held)),
            Err(error) => {
                let is_in_use = is_locked(peek.file());
                last = Some(error);
                if !is_in_use {
                    break;
                }
            }
        }
    }
    let what = last.map_or_else(String::new, |error| error.to_string());
    Err(Failure::check(format!("{}: {what}", log.display()), KEEP_A_COPY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_drain_has_not_brought_makes_it_fail() {
        let words = |settled| brought(&settled, "nfs://h/x", Path::new("log"));
        let all = Settled { brought: 1, ..Settled::default() };
        assert_eq!(words(all).expect("it is"), "1 change brought to nfs://h/x; log is empty");
        let beside = Settled { conflicts: 1, ..all };
        let failed = words(beside).expect_err("somebody is to know");
        assert_eq!(failed.what(), "1 change brought to nfs://h/x; log is empty; 1 conflict");
        let lost = words(Settled { lost: 2, ..beside }).expect_err("they are not there");
        assert!(lost.what().contains("; 2 changes not carried out"), "{}", lost.what());
    }

    #[test]
    fn a_drain_that_goes_on_says_how_far_it_is_and_why_it_waits() {
        let words = |settled, why| part_brought(&settled, 3, why, Path::new("log"));
        let all = Settled { brought: 1, ..Settled::default() };
        assert_eq!(words(all, None), "1 change brought, 3 left in log");
        let full = "1 change brought, 3 left in log (the origin refuses: NoSpace); 1 conflict";
        assert_eq!(words(Settled { conflicts: 1, ..all }, Some(Status::NoSpace)), full);
        let away = "1 change brought, 3 left in log (the origin does not answer)";
        assert_eq!(words(all, Some(Status::Away)), away);
    }

    #[test]
    fn what_cannot_be_recorded_is_no_conflict_yet() {
        let dir = tempfile::tempdir().expect("there is room");
        let (log, change) = (dir.path().join("log"), "REMOVE of f".to_owned());
        let hear = hear(&Clock::real(), &log);
        let lost = Event::NotMade { change, why: proxy::write_back::Gone::Changed };
        assert_eq!(hear(&lost), Ok(()));
        let path = beside(&log, ".conflicts");
        let file = fs::File::options().append(true).open(&path).expect("it is there");
        file.set_len(CONFLICTS_BYTES_MAX + 1).expect("there is room");
        assert!(hear(&lost).is_err_and(|why| why.contains("it is full")));
        assert_eq!(file.metadata().expect("it is open").len(), CONFLICTS_BYTES_MAX + 1);
        let failed = Event::LogFailed { why: "a test's".to_owned() };
        assert_eq!(hear(&failed), Ok(()), "it is no conflict");
    }

    #[test]
    fn what_to_try_depends_on_why_the_origin_refuses_the_lease() {
        let advice = |status| about_lease(&LeaseError::Refused(status), 7);
        assert!(advice(Status::ReadOnly).contains("read-write"));
        assert!(advice(Status::Quota).contains("room"));
        assert!(advice(Status::Access).contains("let uid 7 write"));
        assert!(!advice(Status::Io).contains("uid"));
    }
}
