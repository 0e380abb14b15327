//! What nfsstat prints, in the layouts that it has had: a useful input by itself, since it is what
//! people keep and paste.
//!
//! - SunOS and its successors: `Server nfs:` or `nfs:`, a line `calls badcalls` with its numbers,
//!   then names and below them `count percent%`; Solaris separates versions by `Version 3: (12
//!   calls)`.
//! - Linux: `Client nfs v3:`, then the same without the line of calls.
//! - Linux with `-l`: `nfs v3 client getattr: 123`.

use super::fields::{Line, Word};
use super::problem::{Problem, Wrong};
use super::procedures::{Procedures, Version};
use super::rpc::bounded;

/// Sections of one text, and values of one section, at most.
const SECTIONS_MAX: usize = 1024;
const VALUES_MAX: usize = 1024;

/// What stands in a section of procedures in old layouts and is none.
const OTHERS: [&str; 9] = [
    "calls",
    "badcalls",
    "total",
    "nclget",
    "nclcreate",
    "nclsleep",
    "clgets",
    "cltoomany",
    "clsleeps",
];

/// Who counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    Client,
    Server,
}

/// A title and what is below it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Section {
    /// Without its colon.
    pub title: String,
    /// Of the title.
    pub line: usize,
    pub side: Option<Side>,
    /// Of a section of procedures. Where the title has none it is version 2.
    pub version: Option<Version>,
    /// The operations inside of version 4's COMPOUND.
    pub is_inside_compound: bool,
    pub values: Vec<Value>,
}

/// A number with its name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Value {
    pub name: String,
    pub count: u64,
    /// As it is printed: cut off, or rounded.
    pub percent: Option<u64>,
}

impl Section {
    /// The calls of version 2 or 3.
    pub fn procedures(&self) -> Option<Procedures> {
        let version = self.version.filter(|version| *version != Version::V4)?;
        let calls = version.names().iter().map(|name| self.value(name).unwrap_or(0));
        Some(Procedures { version, calls: calls.collect() })
    }

    /// What is counted by this name.
    pub fn value(&self, name: &str) -> Option<u64> {
        let is_named = |value: &&Value| value.name.eq_ignore_ascii_case(name);
        self.values.iter().find(is_named).map(|value| value.count)
    }
}

/// Whether a line of the text is a title, or one of a list, that nfsstat prints.
pub fn is_likely(text: &str) -> bool {
    text.lines().take(1_000).any(|line| {
        let line = Line::all(line).next();
        let is_ours = |title: Section| {
            let is_of_rpc = title.side.is_some() && title.title.to_lowercase().contains(" rpc");
            title.version.is_some() || is_of_rpc
        };
        line.is_some_and(|line| {
            title(line.trimmed()).is_some_and(is_ours) || listed(line).is_some()
        })
    })
}

/// Reads a text.
///
/// # Errors
/// The first line that is broken, or that there is no section.
pub fn read(text: &[u8]) -> Result<Vec<Section>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut sections: Vec<Section> = Vec::new();
    let mut names: Option<(Line<'_>, Vec<Word<'_>>)> = None;
    for line in Line::all(&text) {
        bounded(&line)?;
        let trimmed = line.trimmed();
        if trimmed.is_empty() || trimmed.starts_with('-') {
            continue;
        }
        let is_title = title(trimmed).is_some() || listed(line).is_some();
        if let Some((above, _)) = names.as_ref().filter(|_| is_title) {
            return Err(numberless(*above));
        }
        if let Some(mut section) = title(trimmed) {
            section.line = line.number;
            if section.side.is_none() && trimmed.starts_with("Version") {
                section.side = sections.last().and_then(|section| section.side);
            }
            push(&mut sections, section, line)?;
            continue;
        }
        if let Some((section, value)) = listed(line) {
            list(&mut sections, section, value, line)?;
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        let list: Vec<Word<'_>> = line.words().collect();
        names = match names.take() {
            None => {
                list.iter().try_for_each(|name| section.knows(name))?;
                Some((line, list))
            }
            Some((_, names)) => {
                section.add(&names, &list)?;
                None
            }
        };
    }
    if let Some((above, _)) = names {
        return Err(numberless(above));
    }
    if sections.is_empty() {
        return Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing });
    }
    Ok(sections)
}

/// A line of names that ends its section.
fn numberless(mut names: Line<'_>) -> Problem {
    names.word().unexpected("a line of numbers below it")
}

impl Section {
    /// A name that may stand here.
    fn knows(&self, name: &Word<'_>) -> Result<(), Problem> {
        let starts_right = name.text.starts_with(|first: char| first.is_ascii_alphabetic());
        let Some(version) = self.version.filter(|version| *version != Version::V4) else {
            return match starts_right || !self.values.is_empty() || self.version.is_none() {
                true => Ok(()),
                false => Err(name.unexpected("a name")),
            };
        };
        let is = |known: &&str| known.eq_ignore_ascii_case(name.text);
        match version.names().iter().any(is) || OTHERS.iter().any(is) {
            true => Ok(()),
            false => Err(name.unexpected("the name of a procedure")),
        }
    }

    /// Names and, below them, numbers with or without percentages.
    fn add(&mut self, names: &[Word<'_>], words: &[Word<'_>]) -> Result<(), Problem> {
        let mut words = words.iter().peekable();
        for name in names {
            let Some(count) = words.next() else {
                return Err(name.unexpected("a name with a number below it"));
            };
            let percent = words.next_if(|word| word.text.ends_with('%'));
            let percent = match percent {
                Some(word) => {
                    let digits = word.text.trim_end_matches('%');
                    let number = digits.parse().map_err(|_| word.unexpected("a percentage"))?;
                    Some(number)
                }
                None => None,
            };
            self.push(
                Value { name: name.text.to_owned(), count: count.number()?, percent },
                count,
            )?;
        }
        match words.next() {
            Some(more) => Err(more.unexpected("the line's end")),
            None => Ok(()),
        }
    }

    fn push(&mut self, value: Value, at: &Word<'_>) -> Result<(), Problem> {
        if self.values.iter().any(|other| other.name == value.name) {
            return Err(at.wrong(Wrong::Twice { what: value.name }));
        }
        if self.values.len() == VALUES_MAX {
            return Err(at.wrong(Wrong::TooMany { what: "values in a section", max: VALUES_MAX }));
        }
        self.values.push(value);
        Ok(())
    }
}

fn push(sections: &mut Vec<Section>, section: Section, line: Line<'_>) -> Result<(), Problem> {
    if sections.len() == SECTIONS_MAX {
        let wrong = Wrong::TooMany { what: "sections", max: SECTIONS_MAX };
        return Err(Problem { line: line.number, column: 1, wrong });
    }
    sections.push(section);
    Ok(())
}

/// A line that ends with a colon, or `Version 3: (12 calls)`.
fn title(line: &str) -> Option<Section> {
    let is_version = line.starts_with("Version ");
    let title = match line.strip_suffix(':') {
        Some(title) => title,
        None if is_version => line.split_once(':')?.0,
        // The program `mountstats` leaves the colon out.
        None if ["Client nfs v", "Server nfs v"].iter().any(|begin| line.starts_with(begin)) => {
            line
        }
        None => return None,
    };
    let lower = title.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let side = match *words.first()? {
        "client" => Some(Side::Client),
        "server" => Some(Side::Server),
        _ => None,
    };
    let rest = &words[usize::from(side.is_some())..];
    let number = |word: &str| word.trim_start_matches('v').parse().ok().and_then(Version::of);
    let version = match rest {
        ["nfs"] => Some(Version::V2),
        ["nfs" | "version", version, ..] => number(version),
        _ => None,
    };
    let is_inside_compound = rest.contains(&"operations");
    let title = title.to_owned();
    Some(Section { title, side, version, is_inside_compound, ..Section::default() })
}

/// `nfs v3 client getattr: 123`: the section that it belongs to, and its value.
fn listed<'a>(mut line: Line<'a>) -> Option<(Section, (Word<'a>, Word<'a>))> {
    let [nfs, version, side, name, count] =
        [line.word(), line.word(), line.word(), line.word(), line.word()];
    if nfs.text != "nfs" || !name.text.ends_with(':') {
        return None;
    }
    let version_of = version.text.strip_prefix('v')?.parse().ok().and_then(Version::of)?;
    let (kind, is_inside_compound) = match side.text {
        "client" => (Side::Client, false),
        "server" => (Side::Server, false),
        "servop" => (Side::Server, true),
        _ => return None,
    };
    let section = Section {
        title: format!("nfs {} {}", version.text, side.text),
        line: nfs.line,
        side: Some(kind),
        version: Some(version_of),
        is_inside_compound,
        ..Section::default()
    };
    Some((section, (name, count)))
}

fn list(
    sections: &mut Vec<Section>,
    section: Section,
    (name, count): (Word<'_>, Word<'_>),
    line: Line<'_>,
) -> Result<(), Problem> {
    if sections.last().is_none_or(|last| last.title != section.title) {
        push(sections, section, line)?;
    }
    let Some(last) = sections.last_mut() else { return Ok(()) };
    let bare = name.named(name.text.trim_end_matches(':'));
    last.knows(&bare)?;
    last.push(Value { name: bare.text.to_owned(), count: count.number()?, percent: None }, &name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the program on Linux, 2.6.
    const LINUX: &str = include_str!("testdata/nfsstat-s-v.txt");
    const LIST: &str = include_str!("testdata/nfsstat-l.txt");
    const SUN: &str = "\
Client rpc:
calls    badcalls retrans  badxid   timeout  wait     newcred  timers
1234     1        9        0        10       0        0        10

Client nfs:
calls      badcalls   nclget     nclsleep
1000       0          1000       0
null       getattr    setattr    root       lookup     readlink   read
0   0%     130  13%   10   1%    0   0%     340  34%   80   8%    220  22%
wrcache    write      create     remove     rename     link       symlink
0   0%     150  15%   20   2%    10   1%    0   0%     0   0%     0   0%
mkdir      rmdir      readdir    fsstat
0   0%     0   0%     30   3%    10   1%
";
    /// Of an older Linux.
    const SIX_COLUMNS: &str = "\
Client nfs v3:
null         getattr      setattr      lookup       access       readlink
0         0% 259158128 66% 450431    0% 20827600  5% 61029281 15% 21567     0%
read         write        create       mkdir        symlink      mknod
17020877  4% 5331960   1% 403351    0% 24746     0% 1862      0% 1         0%
";

    fn problem(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn all_layouts_are_read() {
        let sun = read(SUN.as_bytes()).unwrap();
        assert_eq!((sun.len(), sun[1].side, sun[1].line), (2, Some(Side::Client), 5));
        let calls = sun[1].procedures().unwrap();
        assert_eq!((calls.version, calls.total()), (Version::V2, 1_000));
        assert_eq!(sun[0].value("retrans"), Some(9));
        let bare = SUN.replace("Client nfs:", "nfs:");
        assert_eq!(read(bare.as_bytes()).unwrap()[1].procedures().unwrap(), calls);
        let six = read(SIX_COLUMNS.as_bytes()).unwrap();
        assert_eq!(six[0].value("getattr"), Some(259_158_128));
        assert_eq!(six[0].values[1].percent, Some(66));
        let bare = SIX_COLUMNS.replace("v3:", "v3");
        assert_eq!(read(bare.as_bytes()).unwrap()[0].values, six[0].values);
        let solaris = "Server nfs:\ncalls badcalls\n12 0\nVersion 2: (0 calls)\nnull getattr\n0 0% \
                       0 0%\nVersion 3: (12 calls)\nnull getattr\n2 16% 10 83%\n";
        let solaris = read(solaris.as_bytes()).unwrap();
        assert_eq!((solaris.len(), solaris[2].side), (3, Some(Side::Server)));
        assert_eq!(solaris[2].procedures().unwrap().total(), 12);
    }

    #[test]
    fn what_the_program_of_today_prints_is_read() {
        let sections = read(LINUX.as_bytes()).unwrap();
        let of = |version, inside| {
            let mut found = sections.iter();
            found.find(|s| s.version == Some(version) && s.is_inside_compound == inside).unwrap()
        };
        assert_eq!(of(Version::V2, false).procedures().unwrap().total(), 4_582);
        assert_eq!(of(Version::V3, false).procedures().unwrap().total(), 3_190);
        assert_eq!(of(Version::V4, false).value("compound"), Some(10_853));
        assert_eq!(of(Version::V4, true).value("putrootfh"), Some(9_609));
        assert!(of(Version::V4, false).procedures().is_none());
        assert!(sections.iter().any(|section| section.value("10-20%") == Some(0)));
        let list = read(LIST.as_bytes()).unwrap();
        assert_eq!(list.len(), 7);
        assert_eq!(list[1].procedures(), of(Version::V3, false).procedures());
        assert_eq!(list[1].value("total"), Some(3_190));
        assert_eq!(list[5].side, Some(Side::Client));
        assert!(is_likely(LINUX) && is_likely(LIST) && is_likely(SUN) && is_likely(SIX_COLUMNS));
        assert!(!is_likely("getattr 40\nread 60\n"));
    }

    #[test]
    fn what_is_broken_has_its_place() {
        let six = |from: &str, to: &str| problem(&SIX_COLUMNS.replacen(from, to, 1));
        assert_eq!(
            six("lookup", "lokup"),
            "line 2, column 40: \"lokup\" where the name of a procedure is expected"
        );
        assert!(six("450431 ", "many").starts_with("line 3, column 28: \"many\" where a number"));
        assert!(six(" 15% 21567     0%", "").contains("line 2, column 66: \"readlink\" where"));
        assert!(six("21567     0%", "21567     0% 7").contains("\"7\" where the line's end"));
        assert!(six("setattr", "getattr").contains("getattr comes a second time"));
        assert!(problem("Client nfs v3:\nnull getattr\n").contains("a line of numbers below it"));
        assert!(problem("hello\n").contains("no NFS counters"));
    }

    #[test]
    fn half_a_text_gives_what_is_in_it_or_a_problem() {
        for text in [LINUX, LIST, SUN, SIX_COLUMNS] {
            for end in (0..text.len()).step_by(7) {
                read(&text.as_bytes()[..end]).ok();
            }
        }
    }
}
