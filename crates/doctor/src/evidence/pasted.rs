//! Outputs that somebody has saved: known by what is in them, whatever the file is called.
//!
//! A text with several outputs, each behind a shell's prompt and its command, is taken apart first.

use counters::client::{self, Client};
use counters::host::{
    device, disk, interfaces, iostat, load, named, processor, protocols, sockets, softnet, space,
    spray, tasks,
};
use counters::mounted;
use counters::mountstats::{self, Mount, printed};
use counters::nfsiostat;
use counters::nfsstat::{self, Section, Side};
use counters::procedures::{Procedures, Version};
use counters::server::{self, ReplyCache, Server};
use counters::{Partial, Problem, partial, pools, socket};

use super::{Evidence, RatesOf, Sample, all_mounts};
use crate::collect::{Files, is_known, is_setting};
use crate::subject;

/// Commands whose outputs are known, as they stand behind a prompt.
const COMMANDS: [&str; 16] = [
    "cat",
    "df",
    "head",
    "iostat",
    "mount",
    "mountstats",
    "netstat",
    "nfsiostat",
    "nfsstat",
    "ps",
    "spray",
    "ss",
    "sudo",
    "sysctl",
    "tail",
    "uname",
];

impl Evidence {
    /// Files in no root.
    pub(super) fn pasted(&mut self, files: &Files) {
        for (path, text) in files.all() {
            let is_read = self.used.iter().any(|used| used == path);
            if is_read || is_known(path) {
                continue;
            }
            if text.is_empty() {
                self.note(path, "is empty");
                continue;
            }
            let text = String::from_utf8_lossy(text);
            let parts = parts(&text);
            let taken = parts.iter().filter(|part| self.take(path, part)).count();
            match taken {
                0 => self.note(path, "format not recognized"),
                _ => self.used.push(path.to_owned()),
            }
        }
    }

    /// One output: whether it is known, and of use.
    fn take(&mut self, path: &str, text: &str) -> bool {
        let Some(read) = kind(text) else { return false };
        let mut problems = Vec::new();
        let taken = read(&mut self.last, text.as_bytes(), &mut problems);
        self.problems(path, &problems);
        taken || self.sysctls(text)
    }

    /// `vm.dirty_ratio = 20`, as `sysctl -a` prints it.
    fn sysctls(&mut self, text: &str) -> bool {
        let before = self.settings.len();
        for line in text.lines() {
            if let Some((name, value)) = line.split_once(" = ") {
                let path = format!("proc/sys/{}", name.replace('.', "/"));
                if is_setting(&path) {
                    self.settings.entry(path).or_insert_with(|| value.to_owned());
                }
            }
        }
        self.settings.len() > before
    }
}

/// A text at its prompts.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.lines() {
        let behind = line.split_once("$ ").or_else(|| line.split_once("# "));
        let command = behind.and_then(|(_, command)| command.split_whitespace().next());
        let is_prompt = command.is_some_and(|command| {
            COMMANDS.iter().any(|known| command.rsplit('/').next() == Some(*known))
        });
        match (is_prompt, parts.last_mut()) {
            (false, Some(part)) => part.extend([line, "\n"]),
            _ => parts.push(String::new()),
        }
    }
    if !text.ends_with('\n')
        && let Some(part) = parts.last_mut()
    {
        part.pop();
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

type Take = fn(&mut Sample, &[u8], &mut Vec<Problem>) -> bool;

/// Puts what could be read in its place, if that is free.
fn put<T>(place: &mut Option<T>, read: Partial<T>, problems: &mut Vec<Problem>) -> bool {
    problems.extend(read.problems);
    let taken = read.value.is_some() && place.is_none();
    if taken {
        *place = read.value;
    }
    taken
}

fn put_all<T>(place: &mut Vec<T>, read: Partial<Vec<T>>, problems: &mut Vec<Problem>) -> bool {
    let mut free = None;
    let taken = put(&mut free, read, problems) && place.is_empty();
    if let (true, Some(values)) = (taken, free) {
        *place = values;
    }
    taken
}

/// What reads a text, by what is in it: the first that says it is its own.
fn kind(text: &str) -> Option<Take> {
    let head: String = text.chars().take(65_536).collect();
    KINDS.iter().find_map(|(is_it, take)| is_it(&head).then_some(*take))
}

fn has_line(head: &str, begin: &str) -> bool {
    head.lines().any(|line| line.trim_start().starts_with(begin))
}

type Is = fn(&str) -> bool;

/// Puts what this reads into this place of a sample.
macro_rules! value {
    ($place:ident, $read:path) => {
        |sample, text, problems| put(&mut sample.$place, partial(text, $read), problems)
    };
}

/// The same with a list.
macro_rules! list {
    ($place:ident, $read:path) => {
        |sample, text, problems| put_all(&mut sample.$place, partial(text, $read), problems)
    };
}

const KINDS: [(Is, Take); 25] = [
    (
        |head| head.contains(" mounted on ") && head.contains(" with fstype "),
        |sample, text, problems| mounts(sample, partial(text, mountstats::read), None, problems),
    ),
    (printed::is_likely, |sample, text, problems| {
        mounts(sample, partial(text, printed::read), None, problems)
    }),
    (nfsiostat::is_likely, |sample, text, problems| {
        let of = match nfsiostat::is_interval(text) {
            true => RatesOf::Interval,
            false => RatesOf::SinceTheMount,
        };
        mounts(sample, partial(text, nfsiostat::read), Some(of), problems)
    }),
    (|head| head.contains("packets-arrived"), list!(pools, pools::read)),
    (|head| has_line(head, "rc ") && has_line(head, "th "), value!(server, server::read)),
    (
        |head| has_line(head, "rpc ") && (has_line(head, "proc3 ") || has_line(head, "proc4 ")),
        value!(client, client::read),
    ),
    (|head| has_line(head, "TCP: inuse"), value!(sockets, sockets::read)),
    (
        |head| has_line(head, "Tcp: ") || has_line(head, "TcpExt: "),
        |sample, text, problems| {
            let mut more = None;
            let taken = put(&mut more, partial(text, protocols::read), problems);
            if let Some(more) = more {
                sample.protocols.get_or_insert_default().join(more);
            }
            taken
        },
    ),
    (|head| has_line(head, "Ip6InReceives"), value!(protocols_v6, named::read)),
    (|head| has_line(head, "Inter-|"), list!(devices, device::read)),
    (interfaces::is_likely, list!(devices, interfaces::read)),
    (|head| has_line(head, "MemTotal:"), value!(memory, named::read)),
    (|head| has_line(head, "nr_dirty "), value!(pages, named::read)),
    (|head| has_line(head, "cpu ") && has_line(head, "cpu0 "), value!(processors, processor::read)),
    (nfsstat::is_likely, |sample, text, problems| {
        let mut sections = None;
        let taken = put(&mut sections, partial(text, nfsstat::read), problems);
        if let Some(sections) = sections {
            of_nfsstat(sample, &sections);
        }
        taken
    }),
    (mounted::is_likely, list!(listed, mounted::read)),
    (socket::is_likely, list!(connections, socket::read)),
    (is_softnet, list!(softnet, softnet::read)),
    (is_disks, list!(disks, disk::read)),
    (iostat::is_likely, list!(disk_uses, iostat::read)),
    (space::is_likely, |sample, text, problems| {
        // Blocks and inodes come from two runs of df.
        let mut more = Vec::new();
        let taken = put_all(&mut more, partial(text, space::read), problems);
        sample.spaces.append(&mut more);
        taken
    }),
    (spray::is_likely, list!(sprays, spray::read)),
    (tasks::is_likely, value!(waits, tasks::read)),
    (load::is_likely, value!(load, load::read)),
    (|head| head.contains(" = "), |_, _, _| false),
];

/// Mounts, unless there are some.
fn mounts(
    sample: &mut Sample,
    read: Partial<Vec<Mount>>,
    rates_of: Option<RatesOf>,
    problems: &mut Vec<Problem>,
) -> bool {
    let mut mounts = None;
    let taken = !sample.has_mounts && put(&mut mounts, read, problems);
    if let Some(mounts) = mounts {
        (sample.mounts, sample.has_mounts, sample.rates_of) = (mounts, true, rates_of);
    }
    taken
}

/// A dozen columns of eight hexadecimal digits.
fn is_softnet(head: &str) -> bool {
    let is_column = |word: &str| word.len() == 8 && word.chars().all(|one| one.is_ascii_hexdigit());
    head.lines().next().is_some_and(|line| {
        line.split_whitespace().count() >= 9 && line.split_whitespace().all(is_column)
    })
}

/// Two numbers, a name, and many numbers.
fn is_disks(head: &str) -> bool {
    head.lines().next().is_some_and(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_number = |at: usize| words.get(at).is_some_and(|word| word.parse::<u64>().is_ok());
        words.len() >= 14 && is_number(0) && is_number(1) && !is_number(2) && is_number(3)
    })
}

/// What nfsstat has printed of both sides.
struct Printed<'a>(&'a [Section]);

impl Printed<'_> {
    fn of(&self, side: Side) -> impl Iterator<Item = &Section> {
        self.0.iter().filter(move |section| section.side == Some(side))
    }

    fn value(&self, side: Side, title: &str, name: &str) -> Option<u64> {
        let mut titled = self.of(side).filter(|one| one.title.to_lowercase().contains(title));
        titled.find_map(|section| section.value(name))
    }

    fn procedures(&self, side: Side, version: Version) -> Option<Procedures> {
        self.of(side).filter_map(Section::procedures).find(|found| found.version == version)
    }

    /// The operations of version 4.
    fn v4(&self, side: Side) -> Option<&Section> {
        self.of(side).find(|section| {
            section.version == Some(Version::V4) && section.value("compound").is_none()
        })
    }

    fn client(&self) -> Client {
        let rpc = |name| self.value(Side::Client, "rpc", name);
        Client {
            net: None,
            rpc: rpc("calls").map(|calls| client::Rpc {
                calls,
                retransmissions: rpc("retrans").unwrap_or(0),
                authentication_refreshes: rpc("authrefrsh").unwrap_or(0),
                bad_calls: rpc("badcalls"),
                bad_xids: rpc("badxid"),
                timeouts: rpc("timeout").or_else(|| rpc("timeouts")),
            }),
            v2: self.procedures(Side::Client, Version::V2),
            v3: self.procedures(Side::Client, Version::V3),
            v4: self.v4(Side::Client).map(all_mounts::v4_of),
        }
    }

    fn server(&self) -> Server {
        let rpc = |name| self.value(Side::Server, "rpc", name);
        Server {
            rpc: rpc("calls").map(|calls| server::Rpc {
                calls,
                bad: rpc("badcalls").unwrap_or(0),
                bad_format: rpc("badfmt").unwrap_or(0),
                bad_authentication: rpc("badauth").unwrap_or(0),
                bad_client: rpc("badclnt").unwrap_or(0),
            }),
            reply_cache: self.reply_cache(),
            stale_handles: self.value(Side::Server, "file handle cache", "stale"),
            v2: self.procedures(Side::Server, Version::V2),
            v3: self.procedures(Side::Server, Version::V3),
            v4_operations: self.v4(Side::Server).map(subject::v4_operations),
            ..Server::default()
        }
    }

    fn reply_cache(&self) -> Option<ReplyCache> {
        let of = |name| self.value(Side::Server, "reply cache", name);
        let count = |name| of(name).unwrap_or(0);
        of("hits").map(|hits| ReplyCache {
            hits,
            misses: count("misses"),
            uncached: count("nocache"),
        })
    }
}

/// What nfsstat has printed of a side that nothing else is known of.
fn of_nfsstat(sample: &mut Sample, sections: &[Section]) {
    let printed = Printed(sections);
    let has = |side| printed.of(side).next().is_some();
    if sample.client.is_none() && has(Side::Client) {
        sample.client = Some(printed.client());
    }
    if sample.server.is_none() && has(Side::Server) {
        sample.server = Some(printed.server());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn of(files: &[(&str, &str)]) -> Evidence {
        let mut all = Files::default();
        for (path, text) in files {
            all.put(*path, *text);
        }
        Evidence::of(all)
    }

    #[test]
    fn what_is_pasted_is_known_by_what_is_in_it() {
        let mounts = testing::mount("rw", &[]);
        let evidence = of(&[("mail.txt", &mounts), ("other.bin", "\0\x01"), ("empty", "")]);
        assert_eq!(evidence.last.mounts.len(), 1);
        let notes: Vec<&str> = evidence.notes.iter().map(|note| note.why.as_str()).collect();
        assert_eq!(notes, ["is empty", "format not recognized"]);
    }

    #[test]
    fn a_session_of_a_shell_is_taken_apart() {
        let text = "root@a:~# cat /proc/net/softnet_stat\n\
            00000010 00000002 00000001 00000000 00000000 00000000 00000000 00000000 00000000\n\
            [me@a ~]$ cat /proc/meminfo\nMemTotal: 1000 kB\nDirty: 7 kB\n\
            $ sysctl -a\nvm.dirty_ratio = 20\nvm.overcommit = 1\n\
            $ ss -tino\nESTAB 0 0 10.0.0.2:789 10.0.0.1:2049\n\t cubic rtt:0.5/0.1 minrtt:0.2\n";
        let evidence = of(&[("session", text)]);
        assert_eq!(evidence.last.softnet[0].dropped, 2);
        assert_eq!(evidence.last.memory.as_ref().unwrap().bytes_of("Dirty"), Some(7_168));
        assert_eq!(evidence.number("proc/sys/vm/dirty_ratio"), Some(20.0));
        assert_eq!(evidence.last.connections[0].rtt_min_ms, Some(0.2));
        assert!(evidence.notes.is_empty(), "{:?}", evidence.notes);
    }

    #[test]
    fn a_list_of_mounts_has_options_and_no_times() {
        let text = "s:/e on /mnt type nfs4 (rw,vers=4.2,noac,rsize=8192)\n";
        let reports = crate::diagnose(&of(&[("mounts", text)]), &crate::Limits::default());
        let names: Vec<&str> =
            reports[0].findings.iter().map(|finding| finding.rule.name).collect();
        assert_eq!(names, ["attribute-caching-off", "small-transfers"]);
        assert!(reports[0].verdict.starts_with("noac sends a call for every look"));
        assert!(!reports[0].verdict.contains("0 %"), "{}", reports[0].verdict);
        // Counters say more than a list.
        let both = of(&[("a", text), ("b", &testing::mount("rw", &[]))]);
        assert_eq!((both.last.mounts.len(), both.last.counts_only), (1, false));
    }

    #[test]
    fn nfsstat_gives_counters_of_both_sides() {
        let text = "Server rpc stats:\ncalls      badcalls   badfmt     badauth    badclnt\n\
            100        3          0          3          0\n\n\
            Client rpc stats:\ncalls      retrans    authrefrsh\n2000       40         0\n\n\
            Client nfs v3:\nnull             getattr          setattr          lookup\n\
            0         0%     1500     75%    0         0%    500      25%\n";
        let evidence = of(&[("nfsstat.txt", text)]);
        assert_eq!(evidence.last.server.unwrap().rpc.unwrap().bad, 3);
        let client = evidence.last.client.unwrap();
        assert_eq!(client.rpc.unwrap().retransmissions, 40);
        assert_eq!(client.v3.unwrap().calls[1], 1_500);
    }
}
