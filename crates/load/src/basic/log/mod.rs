//! Reads logs of the Connectathon suite's basic tests: its own, and ours.
//!
//! A log may hold several runs, and anything between them and before their lines. What is no line
//! of the suite's is passed over; what looks like one and cannot be read is a [`Problem`], with the
//! line's number.
//!
//! How seconds are read is a story of its own: [`time`].

pub mod time;

use std::fmt;

use self::time::{Rate, Reading, Time, times};
use super::lines::Work;

/// Bytes of a line that are looked at.
const LINE_BYTES_MAX: usize = 4096;
/// Words before a line of the suite's: the times that collectors of logs write there.
const PREFIX_WORDS_MAX: usize = 6;
/// Problems that are listed; the others are counted.
const PROBLEMS_MAX: usize = 1000;
/// Complaints of one test that are listed.
const COMPLAINTS_MAX: usize = 100;
/// Characters of a line that a problem shows.
const SHOWN_MAX: usize = 80;

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    pub runs: Vec<Run>,
    pub problems: Vec<Problem>,
    /// Problems beyond those that are listed.
    pub problems_left_off: usize,
    pub lines: usize,
}

/// One run of the suite, or of some of its programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Where it begins, from 1.
    pub line: usize,
    pub directory: Option<String>,
    /// What the suite was called with: `-t`, `-f`.
    pub argument: Option<String>,
    /// What it reported of itself at its end.
    pub passed: Option<bool>,
    pub tests: Vec<Test>,
}

/// One program of the suite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    pub line: usize,
    /// `test5`, `test4a`.
    pub name: String,
    pub passed: bool,
    /// What it complained about.
    pub complaints: Vec<String>,
    pub results: Vec<Measured>,
}

/// A line with numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub line: usize,
    pub work: Work,
    pub numbers: [u64; 3],
    pub time: Option<Time>,
    pub rate: Option<Rate>,
}

/// A line that looks like one of the suite's and cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    pub what: &'static str,
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {:?}", self.line, self.what, self.text)
    }
}

/// Reads a log, whatever it is.
pub fn read(bytes: &[u8]) -> Log {
    let mut reader = Reader::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        reader.log.lines += 1;
        reader.line(line);
    }
    if bytes.is_empty() || bytes.ends_with(b"\n") {
        // What follows the last line's end is no line.
        reader.log.lines -= 1;
    }
    for run in &mut reader.log.runs {
        decide(run);
    }
    reader.log
}

#[derive(Default)]
struct Reader {
    log: Log,
    /// The last run goes on.
    is_open: bool,
}

impl Reader {
    fn line(&mut self, line: &[u8]) {
        let number = self.log.lines;
        let text = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]);
        let text = text.trim();
        let mut rest = text;
        for words in 0..=PREFIX_WORDS_MAX {
            match self.from(number, rest, words == 0) {
                Ok(false) => {}
                Ok(true) => return,
                Err(what) => return self.problem(number, what, text),
            }
            let Some((_, after)) = rest.split_once(char::is_whitespace) else { return };
            rest = after.trim_start();
        }
    }

    /// Takes a line that begins here; `false` when it is none of the suite's.
    fn from(&mut self, line: usize, text: &str, is_whole: bool) -> Result<bool, &'static str> {
        if let Some(rest) = text.strip_prefix("Starting BASIC tests:") {
            let (directory, argument) = header(rest);
            self.begin(Run { line, directory, argument, ..Run::default() });
        } else if text.starts_with("Congratulations, you passed the basic tests") {
            self.end(true);
        } else if text == "basic tests failed" {
            self.end(false);
        } else if let Some((name, rest)) = program(text, is_whole) {
            self.program(line, name, rest);
        } else {
            let Some(measured) = measured(line, text)? else { return Ok(false) };
            self.test(line, measured.work).results.push(measured);
        }
        Ok(true)
    }

    fn begin(&mut self, run: Run) {
        self.log.runs.push(run);
        self.is_open = true;
    }

    fn end(&mut self, passed: bool) {
        if self.is_open {
            self.run(self.log.lines).passed = Some(passed);
        }
        self.is_open = false;
    }

    /// The run that a line belongs to; single programs have no header.
    fn run(&mut self, line: usize) -> &mut Run {
        if !self.is_open || self.log.runs.is_empty() {
            self.begin(Run { line, ..Run::default() });
        }
        let last = self.log.runs.len() - 1;
        &mut self.log.runs[last]
    }

    /// The test that a result belongs to; where its title is missing, the words tell.
    fn test(&mut self, line: usize, work: Work) -> &mut Test {
        // Variants of a program print what it prints: test5a what test5 does.
        let number = |name: &str| name.trim_end_matches(['a', 'b']).to_owned();
        let is_other = |test: &Test| test.passed || number(&test.name) != number(work.program());
        let tests = &mut self.run(line).tests;
        if tests.last().is_none_or(is_other) {
            tests.push(Test { line, name: work.program().to_owned(), ..Test::default() });
        }
        let last = tests.len() - 1;
        &mut tests[last]
    }

    /// `./test5: title`, `./test5 ok.`, or `./test5: (/where) what is wrong`.
    fn program(&mut self, line: usize, name: &str, rest: &str) {
        let is_same = |test: &Test| test.name == name;
        if let Some(rest) = rest.strip_prefix(':') {
            let rest = rest.trim_start();
            let is_complaint = rest.starts_with('(');
            if !is_complaint {
                let test = Test { line, name: name.to_owned(), ..Test::default() };
                return self.run(line).tests.push(test);
            }
            let tests = &mut self.run(line).tests;
            if !tests.last().is_some_and(is_same) {
                tests.push(Test { line, name: name.to_owned(), ..Test::default() });
            }
            if let Some(test) = tests.last_mut()
                && test.complaints.len() < COMPLAINTS_MAX
            {
                test.complaints.push(rest.to_owned());
            }
        } else if rest.trim() == "ok." {
            let tests = &mut self.run(line).tests;
            match tests.last_mut().filter(|test| is_same(test) && !test.passed) {
                Some(test) => test.passed = true,
                None => {
                    let name = name.to_owned();
                    tests.push(Test { line, name, passed: true, ..Test::default() });
                }
            }
        }
    }

    fn problem(&mut self, line: usize, what: &'static str, text: &str) {
        if self.log.problems.len() == PROBLEMS_MAX {
            self.log.problems_left_off += 1;
            return;
        }
        let text = text.chars().take(SHOWN_MAX).collect();
        self.log.problems.push(Problem { line, what, text });
    }
}

/// ` test directory D (arg: A)`.
fn header(rest: &str) -> (Option<String>, Option<String>) {
    let Some(rest) = rest.trim_start().strip_prefix("test directory ") else { return (None, None) };
    let known = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    match rest.rsplit_once("(arg:") {
        Some((directory, argument)) => {
            (known(directory), known(argument.trim_end().trim_end_matches(')')))
        }
        None => (known(rest), None),
    }
}

/// The name of a program of the suite that a line begins with, and what follows. Within a line it
/// takes a path to be one.
fn program(text: &str, is_whole: bool) -> Option<(&str, &str)> {
    let end = text.find([':', ' ', '\t'])?;
    let (path, rest) = text.split_at(end);
    let name = path.rsplit('/').next().unwrap_or(path);
    let number = name.strip_prefix("test")?;
    let digits = number.trim_end_matches(['a', 'b']);
    let is_name = matches!(digits.as_bytes(), [b'1'..=b'9']) && number.len() <= digits.len() + 1;
    (is_name && (is_whole || path.contains('/'))).then_some((name, rest))
}

/// A line with numbers; an error when it begins as one and goes on as none.
fn measured(line: usize, text: &str) -> Result<Option<Measured>, &'static str> {
    for work in Work::ALL {
        let Some((numbers, rest)) = fill(work.words(), text)? else { continue };
        let (time, rate) = times(work, &numbers, rest)?;
        return Ok(Some(Measured { line, work, numbers, time, rate }));
    }
    Ok(None)
}

/// The numbers in the places of `words`, and what follows; `None` when the words are others. Logs
/// hold sentences, too: only what has the first number and the words behind it is ours.
fn fill<'t>(words: &str, text: &'t str) -> Result<Option<([u64; 3], &'t str)>, &'static str> {
    let mut numbers = [0; 3];
    let mut is_too_large = false;
    let mut rest = text;
    for (place, word) in words.split('#').enumerate() {
        if place > 0 {
            let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = &rest[..rest.len() - after.len()];
            match (digits.parse(), numbers.get_mut(place - 1)) {
                (Ok(number), Some(slot)) => *slot = number,
                _ if !digits.is_empty() => is_too_large = true,
                _ if place == 1 => return Ok(None),
                _ => return Err("a number is missing"),
            }
            rest = after;
        }
        match rest.strip_prefix(word) {
            Some(after) => rest = after,
            None => return Ok(None),
        }
    }
    match is_too_large {
        true => Err("a number is too large"),
        false => Ok(Some((numbers, rest))),
    }
}

/// One program has printed all lines of a run.
fn decide(run: &mut Run) {
    let results = || run.tests.iter().flat_map(|test| &test.results);
    let mut found =
        results().filter_map(|result| result.time.and_then(|time| time.reading.is_hundredths()));
    let Some(is_hundredths) = found.next() else { return };
    if found.any(|other| other != is_hundredths) {
        return;
    }
    let results = run.tests.iter_mut().flat_map(|test| &mut test.results);
    for time in results.filter_map(|result| result.time.as_mut()) {
        if time.reading == Reading::Ambiguous {
            time.reading = Reading::Run { is_hundredths };
        }
    }
}

#[cfg(test)]
mod tests;
