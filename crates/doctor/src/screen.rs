//! The findings on a terminal, in the order in which a reader asks: what is it, what is wrong,
//! where does the time go, how is that known, what is to be done, what else, what could not be
//! seen.

use std::fmt::Write;

use crate::finding::Finding;
use crate::reason::INTERVAL;
use crate::rules::About;
use crate::shares::Where;
use crate::{Layer, Report, Severity};

/// Columns of a line, as other commands have them.
const WIDTH: usize = 100;
const HEAD: usize = 12;
/// Findings below the first that are shown; `--json` and `--html` have all.
const OTHERS_MAX: usize = 5;

/// What is printed, in colour or not.
pub fn text(reports: &[Report], has_colour: bool) -> String {
    if reports.is_empty() {
        return "there is no NFS mount and no NFS server on this host\n".to_owned();
    }
    let is_one = reports.len() == 1;
    let begin = nothing_of_nfs(reports).map_or(String::new(), |text| format!("{text}\n\n"));
    let shown = reports.iter().map(|report| {
        let is_well = report.severity().is_none_or(|severity| severity == Severity::Low);
        match !is_one && is_well {
            true => short(report, has_colour),
            false => whole(report, has_colour),
        }
    });
    begin + &shown.collect::<Vec<String>>().join("\n")
}

/// The first sentence where only the host could be judged.
pub fn nothing_of_nfs(reports: &[Report]) -> Option<&'static str> {
    let is_host = |report: &Report| report.about == About::Host;
    reports.iter().all(is_host).then_some(
        "There is no NFS mount and no NFS server here: this is what the kernel says of the host.\n\
         Without a mount, a server is checked by nfskit doctor HOST:/EXPORT.",
    )
}

/// `/mnt/data: server:/export, NFS v3, 4 connections`.
pub fn title(report: &Report) -> String {
    let server = [report.fact("server").map(str::to_owned)].into_iter();
    let kernel = [report.fact("kernel").map(|kernel| format!("Linux {kernel}"))];
    let parts: Vec<String> = server.chain(of_kind(report)).chain(kernel).flatten().collect();
    match parts.is_empty() {
        true => report.name.clone(),
        false => format!("{}: {}", report.name, parts.join(", ")),
    }
}

/// What is reported of a mount, or of a server.
fn of_kind(report: &Report) -> Vec<Option<String>> {
    let fact = |name: &str| report.fact(name);
    let several = || fact("connections").filter(|count| !matches!(*count, "0" | "1"));
    match report.about {
        About::Mount => vec![
            fact("version").map(|version| format!("NFS v{version}")),
            several().map(|count| format!("{count} connections")),
            fact("numbers").map(str::to_owned),
        ],
        About::Server => vec![
            fact("version").map(|versions| format!("versions {versions}")),
            fact("threads").map(|threads| format!("{threads} threads")),
        ],
        About::Host | About::Capture | About::Record => Vec::new(),
    }
}

/// How sure the verdict is, and what its counters are of.
pub fn certainty(report: &Report) -> String {
    let over = match (report.span.seconds, report.is_lifetime) {
        (Some(seconds), false) if seconds < 1.0 => format!("; in {:.0} ms", seconds * 1e3),
        (Some(seconds), false) => format!("; in {seconds:.0} s"),
        (_, false) => String::new(),
        (_, true) => since(report).to_owned(),
    };
    format!("{}{over}", report.certainty.name())
}

fn since(report: &Report) -> &'static str {
    match report.about {
        About::Mount if report.fact("numbers") == Some(INTERVAL) => "; an interval of nfsiostat",
        About::Mount => "; an average since the mount",
        About::Server if report.name != "server" => "; since it was started",
        About::Server | About::Host | About::Capture | About::Record => "; since the boot",
    }
}

/// A mount that is well, in a line or two.
fn short(report: &Report, has_colour: bool) -> String {
    let mut out = Out::titled(report, has_colour);
    out.line("verdict", &verdict(report));
    out.text
}

fn whole(report: &Report, has_colour: bool) -> String {
    let mut out = Out::titled(report, has_colour);
    out.line("options", report.fact("options").unwrap_or_default());
    out.verdict(report);
    out.line("time", &shares(report));
    // Where nothing weighs, the verdict is that all is well.
    let first = report.findings.first().filter(|one| one.found.what == report.verdict);
    if let Some(Finding { found, .. }) = first {
        out.line("evidence", &found.evidence.join("; "));
        out.line("against", &found.against.join("; "));
    }
    out.line("floor", &floor(report));
    if let Some(Finding { found, below, .. }) = first {
        out.line("try first", &found.remedy);
        out.line("gain", &found.gain.to_string());
        below.iter().for_each(|below| out.line("explains", &below.found.what));
    }
    out.lines("besides", besides(&report.findings[usize::from(first.is_some())..]));
    out.lines("but", report.contradictions.iter().cloned());
    out.line("well", &well(report));
    out.lines("not seen", missing(report));
    out.text
}

/// Findings below the first.
fn besides(others: &[Finding]) -> impl Iterator<Item = String> {
    let left = others.len().saturating_sub(OTHERS_MAX);
    let more = (left > 0).then(|| format!("and {left} more, in --json"));
    others.iter().take(OTHERS_MAX).map(besides_one).chain(more)
}

fn besides_one(Finding { layer, found, .. }: &Finding) -> String {
    let (layer, severity) = (layer.name(), found.severity.name());
    format!("{} ({layer}, {severity}); try: {}", found.what, found.remedy)
}

/// What could not be seen, and the command that shows it.
pub(crate) fn missing(report: &Report) -> impl Iterator<Item = String> {
    report.missing.iter().map(|one| format!("{} (run: {})", one.what, one.run))
}

/// What was looked at and is well, as much as fits a few lines.
fn well(report: &Report) -> String {
    const CHARACTERS_MAX: usize = 250;
    let mut text = String::new();
    for (at, fine) in report.fine.iter().enumerate() {
        if text.len() + fine.len() > CHARACTERS_MAX {
            return format!("{text}; and {} more", report.fine.len() - at);
        }
        text.push_str(if at == 0 { "" } else { "; " });
        text.push_str(fine);
    }
    text
}

/// The verdict and how sure it is.
pub fn verdict(report: &Report) -> String {
    format!("{} ({})", report.verdict, certainty(report))
}

/// Shares of the calls' time.
pub fn shares(report: &Report) -> String {
    let Some(shares) = &report.shares else { return String::new() };
    let parts = shares.of_calls.iter();
    let part = |(place, share): &(Where, f64)| {
        let at_least = if shares.is_least(*place) { " at least" } else { "" };
        format!("{}{at_least} {:.0} %", place.name(), share * 100.0)
    };
    let mut text: Vec<String> = parts.map(part).collect();
    if let Some(application) = shares.application {
        let name = Layer::Application.name();
        text.push(format!("{name} alone at least {:.0} % of all time", application * 100.0));
    }
    text.join(", ")
}

pub fn floor(report: &Report) -> String {
    let Some(floor) = report.floor else { return String::new() };
    let now = floor.now_ms.map(|now| format!(", {now:.2} ms now")).unwrap_or_default();
    let most = match floor.most_ms > 2.0 * floor.ms {
        true => format!("; up to {:.2} ms of a call may be the network's", floor.most_ms),
        false => String::new(),
    };
    format!("the network's round trip is {:.2} ms at least{now}{most}", floor.ms)
}

struct Out {
    text: String,
    has_colour: bool,
}

impl Out {
    fn titled(report: &Report, has_colour: bool) -> Self {
        // As of a line: what comes from a host's files may have anything in it.
        let title = title(report).replace(char::is_control, " ");
        let text = match has_colour {
            true => format!("\x1b[1m{title}\x1b[0m\n"),
            false => format!("{title}\n"),
        };
        Self { text, has_colour }
    }

    /// Several texts, of which only the first has the head.
    fn lines(&mut self, head: &str, texts: impl Iterator<Item = String>) {
        for (at, text) in texts.enumerate() {
            self.line(if at == 0 { head } else { "" }, &text);
        }
    }

    fn verdict(&mut self, report: &Report) {
        let colour = match report.severity() {
            Some(Severity::High) => "31",
            Some(Severity::Medium) => "33",
            Some(Severity::Low) | None => "32",
        };
        let begin = self.text.len();
        self.line("verdict", &verdict(report));
        if self.has_colour {
            self.text.insert_str(begin, &format!("\x1b[{colour}m"));
            self.text.insert_str(self.text.trim_end().len(), "\x1b[0m");
        }
    }

    /// A head and its text, in as many lines as that needs; nothing without a text.
    fn line(&mut self, head: &str, text: &str) {
        let (mut column, mut head) = (0, head);
        // What comes from a host's files may have anything in it.
        let text = text.replace(char::is_control, " ");
        let mut is_split = false;
        for word in pieces(&text) {
            if column > 0 && (is_split || column + 1 + word.chars().count() > WIDTH) {
                self.text.push('\n');
                column = 0;
            }
            // A piece of a list: the next belongs to it, and no blank comes between.
            is_split = word.ends_with(',') && word.len() > WIDTH / 2;
            if column == 0 {
                write!(self.text, "  {head:<HEAD$}").ok();
                (column, head) = (HEAD + 2, "");
            } else {
                self.text.push(' ');
                column += 1;
            }
            self.text.push_str(&word);
            column += word.chars().count();
        }
        if column > 0 {
            self.text.push('\n');
        }
    }
}

/// Words; a long list without blanks, as mount options are, at its commas.
fn pieces(text: &str) -> Vec<String> {
    const LONG: usize = WIDTH - HEAD - 4;
    let cut = |word: &str| match word.chars().count() <= LONG {
        true => vec![word.to_owned()],
        false => at_commas(word, LONG),
    };
    text.split_whitespace().flat_map(cut).collect()
}

/// A word in pieces of so many letters at most.
fn at_commas(word: &str, long: usize) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    for part in word.split_inclusive(',') {
        let letters: Vec<char> = part.chars().collect();
        for part in letters.chunks(long).map(String::from_iter) {
            if !piece.is_empty() && piece.chars().count() + part.chars().count() > long {
                pieces.push(std::mem::take(&mut piece));
            }
            piece.push_str(&part);
        }
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Captured;

    #[test]
    fn a_long_list_is_broken_at_its_commas_and_nothing_is_lost() {
        let list = (0..40).map(|at| format!("option{at}=value")).collect::<Vec<_>>().join(",");
        let mut out = Out { text: String::new(), has_colour: false };
        out.line("options", &list);
        assert!(out.text.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(out.text.replace("options", "").split_whitespace().collect::<String>(), list);
        let mut evil = Out { text: String::new(), has_colour: false };
        evil.line("x", "a\x1b[31mb");
        assert!(!evil.text.contains('\x1b'));
    }

    #[test]
    fn a_finding_of_low_weight_that_is_the_verdict_is_printed_once() {
        let idle = Captured {
            of: "a -> b".to_owned(),
            suspect: trace::verdict::Suspect::IdleClient,
            share: 0.8,
            certainty: crate::Certainty::Sure,
            what: "the client is idle".to_owned(),
            evidence: Vec::new(),
            against: Vec::new(),
            remedy: "the program itself".to_owned(),
        };
        let report = crate::reason::of_capture("x.pcap", Some(9.0), Ok(&idle));
        let text = whole(&report, false);
        assert_eq!(text.matches("the client is idle").count(), 1, "{text}");
        assert!(text.contains("the program itself") && !text.contains("besides"), "{text}");
    }
}
