//! What the program `mountstats` prints of each mount: the counters of the file, in words.
//!
//! Of times and bytes it prints means of a call, and of several connections one: sums are those
//! means times the calls, and [`Mount::is_printed`] says that connections are not all there.
//! Operations that were never called are not printed.

use super::event::{Bytes, EVENTS, Event, Events};
use super::{EACH_MAX, MOUNTS_MAX, Mount, Operation, Transport};
use crate::fields::{Line, Word};
use crate::problem::{Problem, Wrong};
use crate::rpc::bounded;

/// In place of the format's version.
pub(super) const FORMAT: &str = "printed";

/// A mean above this is none that a call has had.
const MEAN_MAX: f64 = 1e12;

/// Whether a text looks like it.
pub fn is_likely(text: &str) -> bool {
    text.lines().any(|line| head(line).is_some())
}

/// `Stats for server:/export mounted on /mnt:`
fn head(line: &str) -> Option<(&str, &str)> {
    line.trim().strip_prefix("Stats for ")?.strip_suffix(':')?.split_once(" mounted on ")
}

/// Reads the text: of a mount with several reports the last.
///
/// # Errors
/// The first line of numbers that is broken; [`Wrong::Nothing`] where no mount has any.
pub fn read(text: &[u8]) -> Result<Vec<Mount>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut mounts: Vec<Mount> = Vec::new();
    let mut now: Option<Reader<'_>> = None;
    for line in Line::all(&text) {
        bounded(&line)?;
        match (head(line.whole()), &mut now) {
            (Some(head), _) => {
                if mounts.len() == MOUNTS_MAX {
                    let wrong = Wrong::TooMany { what: "mounts", max: MOUNTS_MAX };
                    return Err({ line }.word().wrong(wrong));
                }
                keep(&mut mounts, now.take());
                now = Some(Reader::of(head));
            }
            (None, Some(reader)) => reader.take(line)?,
            (None, None) => {}
        }
    }
    keep(&mut mounts, now);
    match mounts.is_empty() {
        true => Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing }),
        false => Ok(mounts),
    }
}

/// Puts one in its place; a head alone is none.
fn keep(mounts: &mut Vec<Mount>, read: Option<Reader<'_>>) {
    let Some(mount) = read.and_then(Reader::end) else { return };
    let is_one = |other: &Mount| other.point == mount.point && other.device == mount.device;
    match mounts.iter().position(is_one) {
        Some(known) => mounts[known] = mount,
        None => mounts.push(mount),
    }
}

/// The number behind a text and before another, in this order, wherever they stand in the line.
type Between = (&'static str, &'static str);

fn between<'a>(line: Line<'a>, (before, behind): Between) -> Option<Word<'a>> {
    let mut rest = line.behind(before)?;
    let word = rest.word();
    (!word.text.is_empty() && rest.trimmed().starts_with(behind)).then_some(word)
}

const OF_EVENTS: [(Between, Event); 24] = [
    (("VFS requested", "inode revalidations"), Event::InodeRevalidate),
    (("VFS requested", "dentry revalidations"), Event::DentryRevalidate),
    (("data cache invalidated", "times"), Event::DataInvalidate),
    (("attribute cache invalidated", "times"), Event::AttributeInvalidate),
    (("nfs_file_open()", "times"), Event::Open),
    (("nfs_lookup()", "times"), Event::Lookup),
    (("nfs_permission()", "times"), Event::Access),
    (("nfs_readpage()", "times"), Event::ReadPage),
    (("nfs_readpages()", "times"), Event::ReadPages),
    (("nfs_writepage()", "times"), Event::WritePage),
    (("nfs_writepages()", "times"), Event::WritePages),
    (("nfs_readdir()", "times"), Event::ReadDirectory),
    (("nfs_file_flush()", "times"), Event::Flush),
    (("nfs_fsync()", "times"), Event::Fsync),
    (("nfs_lock()", "times"), Event::Lock),
    (("nfs_file_release()", "times"), Event::Release),
    (("truncating SETATTRs:", "extending"), Event::SetattrTruncate),
    (("extending WRITEs:", ""), Event::ExtendWrite),
    (("", "silly renames"), Event::SillyRename),
    (("short reads:", "short writes"), Event::ShortRead),
    (("short writes:", ""), Event::ShortWrite),
    (("NFSERR_DELAYs from server:", ""), Event::Delay),
    (("pNFS READs:", ""), Event::PnfsRead),
    (("pNFS WRITEs:", ""), Event::PnfsWrite),
];

type OfBytes = fn(&mut Bytes) -> &mut u64;

const OF_BYTES: [(Between, OfBytes); 6] = [
    (("applications read", "bytes via read(2)"), |bytes| &mut bytes.normal_read),
    (("applications wrote", "bytes via write(2)"), |bytes| &mut bytes.normal_write),
    (("applications read", "bytes via O_DIRECT"), |bytes| &mut bytes.direct_read),
    (("applications wrote", "bytes via O_DIRECT"), |bytes| &mut bytes.direct_write),
    (("client read", "bytes via NFS READ"), |bytes| &mut bytes.server_read),
    (("client wrote", "bytes via NFS WRITE"), |bytes| &mut bytes.server_write),
];

type OfTransport = fn(&mut Transport) -> &mut Option<u64>;

const OF_TRANSPORT: [(Between, OfTransport); 15] = [
    (("", "RPC requests sent,"), |one| &mut one.sends),
    (("RPC requests sent,", "RPC replies received"), |one| &mut one.receives),
    (("RPC replies received", "XIDs not found"), |one| &mut one.bad_xids),
    (("Source port:", ""), |one| &mut one.port),
    (("Bind count:", ""), |one| &mut one.binds),
    (("Connect count:", ""), |one| &mut one.connects),
    (("Idle time:", "seconds"), |one| &mut one.idle_s),
    (("RPC requests:", ""), |one| &mut one.sends),
    (("RPC replies:", ""), |one| &mut one.receives),
    (("XIDs not found:", ""), |one| &mut one.bad_xids),
    (("Max slots:", ""), |one| &mut one.slots_max),
    // Means over all sends, of which sums are made at the end.
    (("average backlog queue length:", ""), |one| &mut one.backlog_sum),
    (("Avg backlog length:", ""), |one| &mut one.backlog_sum),
    (("Avg send queue length:", ""), |one| &mut one.sending_sum),
    (("Avg pending queue length:", ""), |one| &mut one.pending_sum),
];

/// One mount, as far as it was read.
struct Reader<'a> {
    mount: Mount,
    events: [u64; EVENTS],
    has_events: bool,
    transport: Option<Transport>,
    /// What the next lines are of: a name, and once it has calls, its counters.
    name: Option<&'a str>,
    is_inside: bool,
}

impl<'a> Reader<'a> {
    fn of((device, point): (&str, &str)) -> Self {
        let mount = Mount {
            device: device.to_owned(),
            point: point.to_owned(),
            kind: "nfs".to_owned(),
            format: FORMAT.to_owned(),
            ..Mount::default()
        };
        let (events, transport, name) = ([0; EVENTS], None, None);
        Self { mount, events, has_events: false, transport, name, is_inside: false }
    }

    fn take(&mut self, line: Line<'a>) -> Result<(), Problem> {
        if let Some(name) = operation_name(line.whole()) {
            (self.name, self.is_inside) = (Some(name), false);
            return Ok(());
        }
        if let Some(name) = self.name {
            return self.operation(name, line);
        }
        if let Some(options) = line.behind("NFS mount options:") {
            self.mount.options = super::split(options.trimmed());
        } else if let Some(age) = line.behind("NFS mount age:") {
            self.mount.age_s = Some(seconds(age)?);
        } else if let Some(text) = line.behind("NFS server capabilities:") {
            self.mount.capabilities = Some(text.trimmed().to_owned());
        } else if let Some(text) = line.behind("NFS security flavor:") {
            self.mount.security = Some(format!("flavor={}", text.trimmed()));
        } else if let Some(mut kind) = line.behind("Transport protocol:") {
            let kind = kind.word().text.to_owned();
            self.transport.get_or_insert_default().kind = kind;
        }
        self.counters(line)
    }

    /// What is counted outside of operations.
    fn counters(&mut self, line: Line<'_>) -> Result<(), Problem> {
        for (place, event) in OF_EVENTS {
            if let Some(word) = between(line, place) {
                self.events[event as usize] = count(word)?;
                self.has_events = true;
            }
        }
        for (place, field) in OF_BYTES {
            if let Some(word) = between(line, place) {
                *field(self.mount.bytes.get_or_insert_default()) = count(word)?;
            }
        }
        for (place, field) in OF_TRANSPORT {
            if let Some(word) = between(line, place) {
                *field(self.transport.get_or_insert_default()) = Some(count(word)?);
            }
        }
        Ok(())
    }

    /// The lines below an operation's name: the first has its calls.
    fn operation(&mut self, name: &str, line: Line<'_>) -> Result<(), Problem> {
        if line.behind("ops (").is_some() {
            if self.mount.operations.len() == EACH_MAX {
                let wrong = Wrong::TooMany { what: "operations of a mount", max: EACH_MAX };
                return Err({ line }.word().wrong(wrong));
            }
            let mut operation = calls(line)?;
            name.clone_into(&mut operation.name);
            self.mount.operations.push(operation);
            self.is_inside = true;
            return Ok(());
        }
        let Some(operation) = self.mount.operations.last_mut().filter(|_| self.is_inside) else {
            return Ok(());
        };
        type Sum = fn(&mut Operation) -> &mut u64;
        let sums: [(&str, Sum); 5] = [
            ("avg bytes sent per op:", |one| &mut one.sent_bytes),
            ("avg bytes received per op:", |one| &mut one.received_bytes),
            ("backlog wait:", |one| &mut one.queue_ms),
            ("RTT:", |one| &mut one.rtt_ms),
            ("total execute time:", |one| &mut one.execute_ms),
        ];
        for (before, sum) in sums {
            if let Some(word) = between(line, (before, "")) {
                *sum(operation) = sum_of(mean(word)?, operation.calls);
            }
        }
        Ok(())
    }

    /// The mount, if there was more than its head.
    fn end(mut self) -> Option<Mount> {
        let mount = &mut self.mount;
        mount.events = self.has_events.then(|| Events::of_list(self.events.to_vec()));
        if let Some(mut transport) = self.transport {
            let sends = transport.sends.unwrap_or(0);
            let sum = |mean: &mut Option<u64>| *mean = mean.map(|mean| mean.saturating_mul(sends));
            sum(&mut transport.backlog_sum);
            sum(&mut transport.sending_sum);
            sum(&mut transport.pending_sum);
            if transport.kind.is_empty() {
                let kind = mount.option("proto").unwrap_or("").trim_end_matches('6').to_owned();
                transport.kind = kind;
            }
            mount.transports = vec![transport];
        }
        let is_any = mount.bytes.is_some()
            || mount.events.is_some()
            || !(mount.options.is_empty()
                && mount.transports.is_empty()
                && mount.operations.is_empty());
        is_any.then_some(self.mount)
    }
}

/// `GETATTR:`, alone.
fn operation_name(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_suffix(':')?;
    let is_letter = |one: char| one.is_ascii_uppercase() || one.is_ascii_digit() || one == '_';
    (!name.is_empty() && name.chars().all(is_letter)).then_some(name)
}

/// `10 ops (5%) 2 retrans (20%) 0 major timeouts 1 errors (10%)`
fn calls(line: Line<'_>) -> Result<Operation, Problem> {
    let mut operation = Operation::default();
    let (mut words, mut before) = (line, None);
    while let Some(word) = words.next() {
        match (word.text, before) {
            ("ops", Some(number)) => operation.calls = count(number)?,
            ("retrans", Some(number)) => operation.transmissions = count(number)?,
            ("major", Some(number)) => operation.major_timeouts = count(number)?,
            ("errors", Some(number)) => operation.errors = Some(count(number)?),
            _ => {}
        }
        before = Some(word);
    }
    operation.transmissions = operation.transmissions.saturating_add(operation.calls);
    Ok(operation)
}

/// A number, also in brackets. Calls under way make one of retransmissions negative: none.
fn count(word: Word<'_>) -> Result<u64, Problem> {
    let bare = word.named(word.text.trim_matches(['(', ')', ',']));
    match bare.text.strip_prefix('-').map(str::parse::<u64>) {
        Some(Ok(_)) => Ok(0),
        _ => bare.number(),
    }
}

fn mean(word: Word<'_>) -> Result<f64, Problem> {
    let parsed: Option<f64> = word.text.parse().ok();
    let known = parsed.filter(|value| (0.0..MEAN_MAX).contains(value));
    known.ok_or_else(|| word.unexpected("a mean"))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn sum_of(mean: f64, calls: u64) -> u64 {
    (mean * calls as f64).round() as u64
}

/// `1 day, 2:03:04`, `12 days, 0:00:01` or `0:00:03`.
fn seconds(mut line: Line<'_>) -> Result<u64, Problem> {
    let mut days = 0;
    let mut word = line.word();
    if let Some(mut rest) = line.behind("day") {
        days = word.number()?;
        // The end of `days,`.
        rest.word();
        word = rest.word();
    }
    let parts: Option<Vec<u64>> = word.text.split(':').map(|part| part.parse().ok()).collect();
    let known = parts.filter(|parts| parts.len() == 3 && parts.iter().all(|part| *part < 60 * 60));
    let [hours, minutes, seconds] = known
        .as_deref()
        .and_then(|parts| parts.try_into().ok())
        .ok_or_else(|| word.unexpected("hours:minutes:seconds"))?;
    Ok(days.min(1 << 40) * 86_400 + hours * 3600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of nfs-utils 2.8, with `--nfs` and `--xprt` besides.
    const TEXT: &str = "\
Stats for server:/export mounted on /mnt/data:

  NFS mount options: rw,vers=3,rsize=131072,wsize=131072,hard,proto=tcp,nconnect=4,sec=sys
  NFS mount age: 12 days, 3:04:05
  NFS server capabilities: caps=0xf,wtmult=4096,dtsize=131072,bsize=0,namlen=255
  NFS security flavor: 1  pseudoflavor: 0

Cache events:
  data cache invalidated 3 times
VFS calls:
  VFS requested 11 inode revalidations
  VFS requested 12 dentry revalidations
  VFS called nfs_file_open() 5 times
Generic NFS counters:
    truncating SETATTRs: 1  extending WRITEs: 2
  7 silly renames
  short reads: 0  short writes: 0
  NFSERR_DELAYs from server: 9

NFS byte counts:
  applications read 16777216 bytes via read(2)
  applications wrote 0 bytes via write(2)
  applications read 5 bytes via O_DIRECT read(2)
  client read 16777216 bytes via NFS READ
RPC statistics:
  340 RPC requests sent, 338 RPC replies received (2 XIDs not found)
  average backlog queue length: 3

READ:
\t128 ops (37%) \t10 retrans (7%) \t1 major timeouts\t2 errors (1%)
\tavg bytes sent per op: 108\tavg bytes received per op: 131200
\tbacklog wait: 0.085938 \tRTT: 0.867188 \ttotal execute time: 1.070312 (milliseconds)
GETATTR:
\t2 ops (5%) \t-1 retrans (-50%) \t0 major timeouts
\tavg bytes sent per op: 84\tavg bytes received per op: 112
\tbacklog wait: 0.500000 \tRTT: 1.000000 \ttotal execute time: 2.000000 (milliseconds)

Stats for other:/ mounted on /o:

\tTransport protocol: tcp
\tConnect count: 2
\tRPC requests: 34
\tMax slots: 2
\tAvg send queue length: 4
";

    #[test]
    fn words_become_the_counters_that_they_were_made_of() {
        assert!(is_likely(TEXT));
        let mounts = read(TEXT.as_bytes()).unwrap();
        let [mount, other] = &mounts[..] else { panic!("{mounts:?}") };
        assert_eq!((mount.point.as_str(), mount.version()), ("/mnt/data", Some(3)));
        assert_eq!(mount.age_s, Some(12 * 86_400 + 3 * 3600 + 4 * 60 + 5));
        assert_eq!(mount.option("nconnect"), Some("4"));
        let events = mount.events.as_ref().unwrap();
        let of = |event| events.of(event).unwrap();
        assert_eq!((of(Event::DataInvalidate), of(Event::DentryRevalidate)), (3, 12));
        assert_eq!((of(Event::SillyRename), of(Event::ExtendWrite), of(Event::Delay)), (7, 2, 9));
        let bytes = mount.bytes.unwrap();
        assert_eq!((bytes.normal_read, bytes.direct_read), (16_777_216, 5));
        let [transport] = &mount.transports[..] else { panic!("{mount:?}") };
        assert_eq!((transport.kind.as_str(), transport.bad_xids), ("tcp", Some(2)));
        assert_eq!(transport.backlog_mean(), Some(3.0));
        let read = mount.operation("READ").unwrap();
        assert_eq!((read.calls, read.retransmissions(), read.major_timeouts), (128, 10, 1));
        assert_eq!(
            (read.errors, read.queue_ms, read.rtt_ms, read.execute_ms),
            (Some(2), 11, 111, 137)
        );
        assert_eq!(mount.operation("GETATTR").unwrap().retransmissions(), 0);
        assert_eq!(
            (other.transports[0].connects, other.transports[0].sending_sum),
            (Some(2), Some(136))
        );
        assert!(mount.is_printed() && !Mount::default().is_printed());
    }

    #[test]
    fn what_is_broken_has_its_place() {
        let problem = |from: &str, to: &str| {
            assert!(TEXT.contains(from));
            read(TEXT.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
        };
        assert!(problem("RTT: 0.867188", "RTT: soon").contains("\"soon\" where a mean"));
        assert!(problem("128 ops", "many ops").contains("column 2: \"many\" where a number"));
        assert!(problem("3:04:05", "3:04").contains("hours:minutes:seconds"));
        assert!(problem("340 RPC", "x RPC").contains("column 3: \"x\" where a number"));
        assert!(
            read(b"Stats for a:/b mounted on /c:\n").unwrap_err().to_string().contains("no NFS")
        );
    }

    #[test]
    fn half_a_text_gives_what_is_in_it_or_a_problem() {
        for end in 0..TEXT.len() {
            read(&TEXT.as_bytes()[..end]).ok();
        }
    }
}
