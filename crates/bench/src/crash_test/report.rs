//! What came of it, for people and as a record.

use std::collections::BTreeMap;

use harness::records;
use load::crash::{Kind, Lost, Retransmitted, Round, add};
use perf::record::Run as Record;
use perf::words::counted;
use serde_json::json;

use super::{CrashTest, Shown};

/// So many losses are in the table; all are in the record.
const SHOWN_MAX: usize = 20;

/// A round, while it runs.
pub(super) fn line(number: u32, round: &Round) -> String {
    let Round { load, outage, files, .. } = round;
    let lost = match round.losses().values().map(|(count, _)| count).sum::<u64>() {
        0 => "nothing lost".to_owned(),
        lost => format!("{lost} LOST"),
    };
    let calls = round.calls();
    let went_on = if round.went_on { "; CONNECTIONS WENT ON" } else { "" };
    let behind = round.behind.map(|behind| format!(", behind it the same after {behind}"));
    let behind = behind.unwrap_or_default();
    format!(
        "round {number}: killed after {load} and {calls} answers; back after {outage}; {files} \
         files checked{behind}, {lost}{went_on}\n"
    )
}

/// How often each kind was lost, and how many bytes.
fn lost(shown: &Shown) -> BTreeMap<Kind, (u64, u64)> {
    let mut kinds = BTreeMap::new();
    for (kind, lost) in shown.rounds.iter().flat_map(Round::losses) {
        add(&mut kinds, kind, lost);
    }
    kinds
}

fn sum(shown: &Shown, of: impl Fn(&Round) -> u64) -> u64 {
    shown.rounds.iter().map(of).sum()
}

pub(super) fn table(args: &CrashTest, shown: &Shown) -> String {
    let (calls, open) = (sum(shown, Round::calls), sum(shown, |round| round.open));
    let (files, bytes) = (sum(shown, |round| round.files), sum(shown, |round| round.bytes));
    let gone = match sum(shown, |round| round.files_gone) {
        0 => String::new(),
        gone => format!("; {gone} files were gone"),
    };
    let mut text = format!(
        "crash-test  {}\nload        seed {}, {} clients of {} calls at once\n\
         kills       {}, after {calls} answers in all; {open} calls were not answered\n\
         checked     {files} files with {} MiB{gone}\n",
        args.target,
        shown.seed,
        args.clients,
        args.outstanding,
        shown.rounds.len(),
        bytes >> 20,
    );
    if args.retransmit {
        text += &retransmitted(&again(shown));
    }
    let behind = shown.rounds.iter().filter_map(|round| round.behind).max();
    if let (Some(url), Some(longest)) = (&args.behind, behind) {
        text += &format!("behind      {url} had the same within {longest}\n");
    }
    let (refused, refusal) = (sum(shown, |round| round.refused), first_refusal(shown));
    if let Some(refusal) = refusal {
        text += &format!("refused     {refused} calls, the first: {refusal}\n");
    }
    text += &went_on(shown);
    text += &restarts(shown);
    text + &losses(shown)
}

/// Kills that connections have survived.
fn survived(shown: &Shown) -> u64 {
    sum(shown, |round| round.went_on.into())
}

/// A server that was not killed has lost nothing, which shows nothing.
fn went_on(shown: &Shown) -> String {
    match survived(shown) {
        0 => String::new(),
        rounds => format!(
            "went on     connections, after {rounds} of the {} kills: the server was stopped, or \
             its network cut, and it was not killed; unless this is a proxy, and what was killed \
             is behind it\n",
            shown.rounds.len()
        ),
    }
}

/// Commands of `--restart` that have failed while the server answered, or after that.
fn restarts(shown: &Shown) -> String {
    let failed = shown.restarts.failed();
    failed.first().map_or_else(String::new, |(kill, how)| {
        format!(
            "restart     {} of --restart failed later, the first after kill {kill}: {how}\n",
            counted(failed.len(), "command")
        )
    })
}

fn retransmitted(again: &Retransmitted) -> String {
    let Retransmitted { answered, done, known, unknown } = again;
    format!(
        "again       {answered} calls that had been answered; of those that had not {done} done \
         then, {known} known to be done, {unknown} done and not known\n"
    )
}

/// What was lost by its kind, and the first losses one by one.
fn losses(shown: &Shown) -> String {
    let mut text = String::new();
    let kinds = lost(shown);
    if kinds.is_empty() {
        text += "lost        nothing\n";
    }
    for (kind, (count, bytes)) in &kinds {
        let bytes = if *bytes > 0 { format!(", {bytes} bytes") } else { String::new() };
        let held = if shown.held.contains(kind) { "" } else { " (not held)" };
        text += &format!("lost        {}: {count}{bytes}{held}\n", kind.name());
    }
    for (number, lost) in numbered(shown).take(SHOWN_MAX) {
        text += &format!("  kill {number}, {}: {}\n", lost.kind.name(), lost.what);
    }
    text
}

/// All losses, with the number of their kill.
fn numbered(shown: &Shown) -> impl Iterator<Item = (u32, &Lost)> {
    let rounds = (1..).zip(&shown.rounds);
    rounds.flat_map(|(number, round)| round.lost.iter().map(move |lost| (number, lost)))
}

fn again(shown: &Shown) -> Retransmitted {
    let mut all = Retransmitted::default();
    for Round { again, .. } in &shown.rounds {
        all.answered += again.answered;
        all.done += again.done;
        all.known += again.known;
        all.unknown += again.unknown;
    }
    all
}

fn first_refusal(shown: &Shown) -> Option<&str> {
    shown.rounds.iter().find_map(|round| round.refusal.as_deref())
}

pub(super) fn record(args: &CrashTest, shown: &Shown) -> Record {
    let mut record = records::of("crash-test");
    record.target = records::server(&args.target);
    let given = [
        ("seed", json!(shown.seed)),
        ("clients", args.clients.into()),
        ("outstanding", args.outstanding.into()),
        ("file_bytes_max", args.file_size.into()),
        ("load_s_max", args.load.as_secs_f64().into()),
        ("calls", args.calls.iter().map(|calls| format!("{calls:?}").to_lowercase()).collect()),
        ("retransmit", args.retransmit.into()),
        ("held", shown.held.iter().map(|kind| kind.name()).collect()),
    ];
    records::parameters(&mut record, given);
    if let Some(longest) = shown.rounds.iter().filter_map(|round| round.behind).max() {
        record.metric("behind_s_max", longest.as_secs_f64(), "s");
    }
    record.metric("kills_survived_by_connections", survived(shown) as f64, "");
    let retransmitted = args.retransmit.then(|| retransmissions(shown));
    for (name, count, unit) in counts(shown).into_iter().chain(retransmitted.into_iter().flatten())
    {
        record.metric(name, count as f64, unit);
    }
    let kinds = lost(shown);
    for kind in Kind::ALL {
        let name = format!("lost_{}", kind.name().replace('-', "_"));
        record.metric(&name, kinds.get(&kind).map_or(0, |(count, _)| *count) as f64, "");
    }
    for (kill, how) in shown.restarts.failed() {
        let text = format!("kill {kill}: --restart: {how}");
        record.warn("restart_failed", &text, "the command as sh takes it, by hand");
    }
    for (number, lost) in numbered(shown) {
        let text = format!("kill {number}: {}: {}", lost.kind.name(), lost.what);
        record.warn("lost", &text, &advice(shown));
    }
    record
}

/// A metric's name, value and unit.
type Count = (&'static str, u64, &'static str);

fn counts(shown: &Shown) -> [Count; 7] {
    [
        ("kills", shown.rounds.len() as u64, ""),
        ("calls", sum(shown, Round::calls), "calls"),
        ("calls_open", sum(shown, |round| round.open), "calls"),
        ("calls_refused", sum(shown, |round| round.refused), "calls"),
        ("files_checked", sum(shown, |round| round.files), "files"),
        ("files_gone", sum(shown, |round| round.files_gone), "files"),
        ("bytes_checked", sum(shown, |round| round.bytes), "B"),
    ]
}

fn retransmissions(shown: &Shown) -> [Count; 4] {
    let Retransmitted { answered, done, known, unknown } = again(shown);
    [
        ("retransmitted_answered", answered, "calls"),
        ("retransmitted_done", done, "calls"),
        ("retransmitted_known", known, "calls"),
        ("retransmitted_unknown", unknown, "calls"),
    ]
}

/// What to look at first.
pub(super) fn advice(shown: &Shown) -> String {
    let kinds = lost(shown);
    let advice = match kinds.keys().find(|kind| shown.held.contains(kind)) {
        Some(Kind::DataSync | Kind::DataCommit) => {
            "the export's sync option (async?), write caches of disks, barriers of the file system"
        }
        Some(Kind::Names | Kind::Attributes) => {
            "whether the server syncs directories before it answers CREATE, REMOVE and RENAME \
             (RFC 1813 section 4.8)"
        }
        Some(Kind::Foreign) => "the file system's journal mode, and its log",
        Some(Kind::Handles) => "whether handles outlive a restart of the server (fsid=)",
        Some(Kind::Replies) => {
            "whether the server keeps replies through a restart, and says that a call is done \
             before its reply is stored"
        }
        Some(Kind::Verifier) => "whether the write verifier changes with each start of the server",
        None => "whether the server's directory outlives its restart",
    };
    advice.to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::site::Restarts;
    use super::*;
    use crate::workload::Workload;

    fn shown(lost: &[(Kind, u64)], hold: &str) -> (CrashTest, Shown) {
        let words = ["crash-test", "nfs://h/", "--kill", "k", "--restart", "r", "--hold", hold];
        let args = CrashTest::parse_from(words);
        let lost = lost.iter().map(|(kind, bytes)| Lost {
            kind: *kind,
            what: "client1-1/n3: gone".to_owned(),
            bytes: *bytes,
        });
        let answered = BTreeMap::from([("CREATE", 12)]);
        let round = Round { lost: lost.collect(), answered, ..Round::default() };
        let held = args.hold.clone();
        let (rounds, restarts) = (vec![Round::default(), round], Restarts::default());
        (args, Shown { seed: 7, rounds, held, restarts })
    }

    #[test]
    fn what_must_be_held_and_is_lost_is_a_failure() {
        let (args, shown) = shown(&[(Kind::Names, 0), (Kind::DataSync, 512)], "data-sync,names");
        let text = table(&args, &shown);
        assert!(text.contains("lost        data-sync: 1, 512 bytes\n"), "{text}");
        assert!(text.contains("kill 2, names: client1-1/n3: gone"), "{text}");
        let record = record(&args, &shown);
        assert_eq!(record.value("lost_data_sync"), Some(1.0));
        assert_eq!(record.warnings.len(), 2);
        assert!(args.verdict(shown).is_err());
    }

    #[test]
    fn each_line_begins_with_a_label() {
        let (args, mut shown) = shown(&[(Kind::Names, 0)], "names");
        shown.rounds[1].went_on = true;
        for line in table(&args, &shown).lines() {
            let (label, rest) = line.split_at(12);
            let is_loss = label.starts_with("  kill 2,");
            assert!(is_loss || label.ends_with(' ') && !rest.starts_with(' '), "{line}");
        }
    }

    #[test]
    fn what_need_not_be_held_is_reported_and_no_failure() {
        let (args, shown) = shown(&[(Kind::Names, 0)], "data-sync");
        assert!(table(&args, &shown).contains("lost        names: 1 (not held)\n"));
        args.verdict(shown).unwrap();
        let (args, shown) = self::shown(&[], "names");
        assert!(table(&args, &shown).contains("lost        nothing\n"));
        args.verdict(shown).unwrap();
    }

    #[test]
    fn a_server_that_has_lost_all_files_holds_nothing() {
        let (args, mut shown) = shown(&[(Kind::Names, 0)], "handles,verifier");
        shown.rounds[1].files_gone = 9;
        assert!(table(&args, &shown).contains("checked     0 files with 0 MiB; 9 files were gone"));
        let failure = args.verdict(shown).unwrap_err();
        assert!(failure.what().contains("no file was left to check after 1"), "{failure:?}");
    }

    #[test]
    fn a_run_without_an_answer_shows_nothing() {
        let (args, mut shown) = shown(&[], "names");
        shown.rounds[1].answered.clear();
        shown.rounds[1].refusal = Some("CREATE to h: NFS3ERR_ROFS".to_owned());
        let failure = args.verdict(shown).unwrap_err();
        assert!(failure.what().contains("ROFS"), "{}", failure.what());
    }
}
