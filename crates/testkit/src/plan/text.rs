//! A plan as text: one line for each step, words with blanks between them, times in microseconds.
//!
//! ```text
//! plan 1
//! seed 42
//! latency 250
//! disk nvme
//! client calls stream
//! client files datagrams
//! 1200 0 create a/b guarded
//! 1500 1 write a 0 4096 7 unstable 1
//! 2000 ! cut 0
//! ```

use std::fmt;
use std::str::FromStr;

use perf::model::disk::{PROFILES, Profile};
use perf::units::Nanos;
use wire::nfs3::StableHow;

use super::{Act, By, CLIENTS_MAX, Client, FILE_BYTES_MAX, Fault, LOCKS, LOGS, Level, Op};
use super::{PART_BYTES, PLACES, PROGRAMS_MAX, Plan, Step, Style, Unheard, What};
use crate::reference::tree::{Change, How};

/// The form of the text; another number is another form.
const VERSION: &str = "1";

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {VERSION}")?;
        writeln!(f, "seed {}", self.seed)?;
        writeln!(f, "latency {}", micros(self.latency))?;
        writeln!(f, "disk {}", self.disk.name)?;
        for Client { level, by } in &self.clients {
            writeln!(f, "client {} {}", level.name(), by.name())?;
        }
        for Step { at, what } in &self.steps {
            write!(f, "{} ", micros(*at))?;
            match what {
                What::Do { client, op } => writeln!(f, "{client} {op}")?,
                What::Fault(fault) => writeln!(f, "! {fault}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(change) => match change {
                Change::Create(path, how) => write!(f, "create {path} {}", how.name()),
                Change::Mkdir(path) => write!(f, "mkdir {path}"),
                Change::Symlink(path) => write!(f, "symlink {path}"),
                Change::Remove(path) => write!(f, "remove {path}"),
                Change::Rmdir(path) => write!(f, "rmdir {path}"),
                Change::Rename(from, to) => write!(f, "rename {from} {to}"),
                Change::Link(file, link) => write!(f, "link {file} {link}"),
            },
            Self::Write { path, at, bytes, value, stable, pieces } => {
                let stable = stable_name(*stable);
                write!(f, "write {path} {at} {bytes} {value} {stable} {pieces}")
            }
            Self::Commit(path) => write!(f, "commit {path}"),
            Self::Close(path) => write!(f, "close {path}"),
            Self::Resize(path, bytes) => write!(f, "resize {path} {bytes}"),
            Self::Read { path, at, bytes } => write!(f, "read {path} {at} {bytes}"),
            Self::Look(path) => write!(f, "look {path}"),
            Self::List(path) => write!(f, "list {}", if path.is_empty() { "." } else { path }),
            Self::Publish { bytes, style } => write!(f, "publish {bytes} {}", style.name()),
            Self::Peek { of } => write!(f, "peek {of}"),
            Self::WritePart { at, bytes, value, stable } => {
                write!(f, "write-part {at} {bytes} {value} {}", stable_name(*stable))
            }
            Self::CommitPart => f.write_str("commit-part"),
            Self::ReadPart => f.write_str("read-part"),
            Self::Contend { program, act } => write!(f, "contend {program} {act}"),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make(name) => write!(f, "make {name}"),
            Self::Remove(name) => write!(f, "remove {name}"),
            Self::Replace { name, value } => write!(f, "replace {name} {value}"),
            Self::Move { from, to } => write!(f, "move {from} {to}"),
            Self::Link { from, to } => write!(f, "link {from} {to}"),
            Self::Cut { name, hold } => write!(f, "cut {name} {}", micros(*hold)),
            Self::Mode(name) => write!(f, "mode {name}"),
            Self::Write { name, first, count, value, hold } => {
                write!(f, "write {name} {first} {count} {value} {}", micros(*hold))
            }
            Self::Unheard { name, first, count, value, by } => {
                write!(f, "{} {name} {first} {count} {value}", by.name())
            }
            Self::Read(name) => write!(f, "read {name}"),
            Self::Look(name) => write!(f, "look {name}"),
            Self::List { wait } => write!(f, "list {}", micros(*wait)),
            Self::Append { log, keeps } => write!(f, "append {log} {}", keeps_or_closes(*keeps)),
            Self::ReadLog { log } => write!(f, "read-log {log}"),
            Self::Rewrite { log, hold } => write!(f, "rewrite {log} {}", micros(*hold)),
            Self::Lock { lock, hold, keeps } => {
                write!(f, "lock {lock} {} {}", micros(*hold), keeps_or_closes(*keeps))
            }
        }
    }
}

fn keeps_or_closes(keeps: bool) -> &'static str {
    if keeps { "kept" } else { "closed" }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Self::Cut { client }
            | Self::Vanish { client }
            | Self::Kill { client }
            | Self::PowerLoss { client } => write!(f, " {client}"),
            Self::CutAfterCalls { client, calls } => write!(f, " {client} {calls}"),
            Self::CutAfterReplies { client, replies } => write!(f, " {client} {replies}"),
            Self::Outage { client, span } => write!(f, " {client} {}", micros(span)),
            Self::Impairments { client, lost, doubled, jitter, span } => {
                let (jitter, span) = (micros(jitter), micros(span));
                write!(f, " {client} {lost} {doubled} {jitter} {span}")
            }
            Self::Clock { secs } => write!(f, " {secs}"),
            Self::Crash { polls, down } => write!(f, " {polls} {}", micros(down)),
            Self::WriteErrors { span } | Self::SyncErrors { span } | Self::Full { span } => {
                write!(f, " {}", micros(span))
            }
            Self::Slow { factor, span } => write!(f, " {factor} {}", micros(span)),
        }
    }
}

fn micros(span: Nanos) -> u64 {
    span.as_nanos() / 1_000
}

fn stable_name(stable: StableHow) -> &'static str {
    match stable {
        StableHow::Unstable => "unstable",
        StableHow::DataSync => "data-sync",
        StableHow::FileSync => "file-sync",
    }
}

impl FromStr for Plan {
    type Err = String;

    /// # Errors
    /// Which line makes no sense, and why.
    fn from_str(text: &str) -> Result<Self, String> {
        let (latency, disk) = (Nanos::ZERO, Profile::NONE);
        let mut plan = Self { seed: 0, latency, disk, clients: Vec::new(), steps: Vec::new() };
        let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
        let mut is_plan = false;
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let read = plan.read(&mut is_plan, Words(line.split_whitespace()));
            read.map_err(|what| format!("line {number}, {line:?}: {what}"))?;
        }
        match is_plan {
            true => Ok(plan),
            false => Err(format!("no plan: it does not begin with \"plan {VERSION}\"")),
        }
    }
}

impl Plan {
    fn read(&mut self, is_plan: &mut bool, mut words: Words<'_>) -> Result<(), String> {
        let first = words.word()?;
        if !*is_plan && first != "plan" {
            return Err(format!("the first line is \"plan {VERSION}\""));
        }
        match first {
            "plan" if words.word()? == VERSION => *is_plan = true,
            "plan" => return Err(format!("only plans of form {VERSION} can be read")),
            "seed" => self.seed = words.number(u64::MAX)?,
            "latency" => self.latency = words.span()?,
            "disk" => {
                let name = words.word()?;
                let disk = PROFILES.into_iter().find(|disk| disk.name == name);
                self.disk = disk.ok_or_else(|| format!("{name:?} is no disk"))?;
            }
            "client" => {
                let level = words.one_of(Level::ALL, Level::name, "level of a client")?;
                let by = words.one_of(By::ALL, By::name, "carrier of calls")?;
                if self.clients.len() == CLIENTS_MAX {
                    return Err(format!("there may be {CLIENTS_MAX} clients"));
                }
                self.clients.push(Client { level, by });
            }
            at => {
                let at = Words(at.split_whitespace()).span()?;
                let clients = self.clients.len();
                let what = match words.word()? {
                    "!" => What::Fault(words.fault(clients)?),
                    client => {
                        let client = Words(client.split_whitespace()).client(clients)?;
                        What::Do { client, op: words.op(clients)? }
                    }
                };
                self.steps.push(Step { at, what });
            }
        }
        words.end()
    }
}

/// The words of a line that have not been read.
struct Words<'t>(std::str::SplitWhitespace<'t>);

impl<'t> Words<'t> {
    fn word(&mut self) -> Result<&'t str, String> {
        self.0.next().ok_or_else(|| "a word is missing".to_owned())
    }

    fn end(mut self) -> Result<(), String> {
        self.0.next().map_or(Ok(()), |word| Err(format!("{word:?} is one word too many")))
    }

    fn number(&mut self, most: u64) -> Result<u64, String> {
        let word = self.word()?;
        let number = word.parse().ok().filter(|number| *number <= most);
        number.ok_or_else(|| format!("{word:?} is no number from 0 to {most}"))
    }

    fn small<T: TryFrom<u64>>(&mut self, most: u64) -> Result<T, String> {
        let number = self.number(most)?;
        T::try_from(number).map_err(|_| format!("{number} is too large"))
    }

    fn span(&mut self) -> Result<Nanos, String> {
        // A day: times are added up.
        self.number(86_400_000_000).map(Nanos::from_micros)
    }

    fn client(&mut self, clients: usize) -> Result<usize, String> {
        match clients.checked_sub(1) {
            Some(last) => self.small(last as u64),
            None => Err("there are no clients".to_owned()),
        }
    }

    fn path(&mut self) -> Result<String, String> {
        let word = self.word()?;
        let is_name = |name: &str| (1..=16).contains(&name.len()) && !name.starts_with('.');
        match word.split('/').all(is_name) && word.len() <= 128 {
            true => Ok(word.to_owned()),
            false => Err(format!("{word:?} is no path")),
        }
    }

    /// The one of `all` that has this word for its name; an error says what it is not.
    fn one_of<T: Copy, const N: usize>(
        &mut self,
        all: [T; N],
        name: impl Fn(T) -> &'static str,
        what: &str,
    ) -> Result<T, String> {
        let word = self.word()?;
        let found = all.into_iter().find(|&one| name(one) == word);
        found.ok_or_else(|| format!("{word:?} is no {what}"))
    }

    fn stable(&mut self) -> Result<StableHow, String> {
        let all = [StableHow::Unstable, StableHow::DataSync, StableHow::FileSync];
        self.one_of(all, stable_name, "stability")
    }

    fn op(&mut self, clients: usize) -> Result<Op, String> {
        let most = u64::from(FILE_BYTES_MAX);
        let part = u64::from(PART_BYTES);
        Ok(match self.word()? {
            "create" => Op::Change(Change::Create(
                self.path()?,
                self.one_of(How::ALL, How::name, "way to create")?,
            )),
            "mkdir" => Op::Change(Change::Mkdir(self.path()?)),
            "symlink" => Op::Change(Change::Symlink(self.path()?)),
            "remove" => Op::Change(Change::Remove(self.path()?)),
            "rmdir" => Op::Change(Change::Rmdir(self.path()?)),
            "rename" => Op::Change(Change::Rename(self.path()?, self.path()?)),
            "link" => Op::Change(Change::Link(self.path()?, self.path()?)),
            "write" => {
                let (path, at) = (self.path()?, self.small(most)?);
                let (bytes, value) = (self.small(most - u64::from(at))?, self.small(255)?);
                let (stable, pieces) = (self.stable()?, self.small(64)?);
                Op::Write { path, at, bytes, value, stable, pieces }
            }
            "commit" => Op::Commit(self.path()?),
            "close" => Op::Close(self.path()?),
            "resize" => Op::Resize(self.path()?, self.small(most)?),
            "read" => {
                Op::Read { path: self.path()?, at: self.small(most)?, bytes: self.small(most)? }
            }
            "look" => Op::Look(self.path()?),
            "list" => match self.0.clone().next() {
                Some(".") => self.word().map(|_| Op::List(String::new()))?,
                _ => Op::List(self.path()?),
            },
            "publish" => {
                let bytes = self.small(most)?;
                Op::Publish {
                    bytes,
                    style: self.one_of(Style::ALL, Style::name, "way to publish")?,
                }
            }
            "peek" => Op::Peek { of: self.client(clients)? },
            "write-part" => {
                let at: u32 = self.small(part)?;
                let (bytes, value) = (self.small(part - u64::from(at))?, self.small(255)?);
                Op::WritePart { at, bytes, value, stable: self.stable()? }
            }
            "commit-part" => Op::CommitPart,
            "read-part" => Op::ReadPart,
            "contend" => {
                let program = self.small(PROGRAMS_MAX as u64 - 1)?;
                Op::Contend { program, act: self.act()? }
            }
            other => return Err(format!("no client does {other:?}")),
        })
    }

    fn act(&mut self) -> Result<Act, String> {
        let (places, logs) = (u64::from(PLACES), u64::from(LOGS) - 1);
        Ok(match self.word()? {
            "interrupted" => self.unheard(Unheard::Interrupted)?,
            "mapped" => self.unheard(Unheard::Mapped)?,
            "make" => Act::Make(self.path()?),
            "remove" => Act::Remove(self.path()?),
            "replace" => Act::Replace { name: self.path()?, value: self.small(255)? },
            "move" => Act::Move { from: self.path()?, to: self.path()? },
            "link" => Act::Link { from: self.path()?, to: self.path()? },
            "cut" => Act::Cut { name: self.path()?, hold: self.span()? },
            "mode" => Act::Mode(self.path()?),
            "write" => {
                let (name, first) = (self.path()?, self.small(places)?);
                let count = self.small(places - u64::from(first))?;
                let (value, hold) = (self.small(255)?, self.span()?);
                Act::Write { name, first, count, value, hold }
            }
            "read" => Act::Read(self.path()?),
            "look" => Act::Look(self.path()?),
            "list" => Act::List { wait: self.span()? },
            "append" => Act::Append { log: self.small(logs)?, keeps: self.keeps()? },
            "read-log" => Act::ReadLog { log: self.small(logs)? },
            "rewrite" => Act::Rewrite { log: self.small(logs)?, hold: self.span()? },
            "lock" => {
                let (lock, hold) = (self.small(u64::from(LOCKS) - 1)?, self.span()?);
                Act::Lock { lock, hold, keeps: self.keeps()? }
            }
            other => return Err(format!("no program does {other:?}")),
        })
    }

    fn unheard(&mut self, by: Unheard) -> Result<Act, String> {
        let (name, first) = (self.path()?, self.small(u64::from(PLACES))?);
        let count = self.small(u64::from(PLACES - first))?;
        Ok(Act::Unheard { name, first, count, value: self.small(255)?, by })
    }

    /// What becomes of a descriptor.
    fn keeps(&mut self) -> Result<bool, String> {
        match self.word()? {
            "kept" => Ok(true),
            "closed" => Ok(false),
            other => Err(format!("a descriptor is kept or closed, not {other:?}")),
        }
    }

    fn fault(&mut self, clients: usize) -> Result<Fault, String> {
        Ok(match self.word()? {
            "cut" => Fault::Cut { client: self.client(clients)? },
            "cut-after-calls" => {
                Fault::CutAfterCalls { client: self.client(clients)?, calls: self.number(1 << 20)? }
            }
            "cut-after-replies" => Fault::CutAfterReplies {
                client: self.client(clients)?,
                replies: self.number(1 << 20)?,
            },
            "outage" => Fault::Outage { client: self.client(clients)?, span: self.span()? },
            // The second is how version 0.1 spelled it.
            "impairments" | "weather" => {
                let (client, lost) = (self.client(clients)?, self.number(1_000)?);
                let doubled = self.number(1_000 - lost)?;
                Fault::Impairments {
                    client,
                    lost,
                    doubled,
                    jitter: self.span()?,
                    span: self.span()?,
                }
            }
            "clock" => {
                let word = self.word()?;
                let secs = word.parse().ok().filter(|secs: &i64| secs.abs() <= 1 << 32);
                Fault::Clock { secs: secs.ok_or_else(|| format!("{word:?} is no jump"))? }
            }
            "vanish" => Fault::Vanish { client: self.client(clients)? },
            "kill" => Fault::Kill { client: self.client(clients)? },
            "power-loss" => Fault::PowerLoss { client: self.client(clients)? },
            "crash" => Fault::Crash { polls: self.number(1 << 32)?, down: self.span()? },
            "write-errors" => Fault::WriteErrors { span: self.span()? },
            "sync-errors" => Fault::SyncErrors { span: self.span()? },
            "full" => Fault::Full { span: self.span()? },
            "slow" => Fault::Slow { factor: self.small(1_000_000)?, span: self.span()? },
            other => return Err(format!("{other:?} does not go wrong")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_what_its_text_says() {
        for seed in 0..200 {
            let contests = [Plan::contest(seed), Plan::kills_in_contest(seed), Plan::live(seed)];
            for plan in contests.into_iter().chain([Plan::generate(seed)]) {
                assert_eq!(plan.to_string().parse(), Ok(plan));
            }
        }
    }

    #[test]
    fn a_plan_of_version_0_1_is_read() {
        let plan = |fault: &str| {
            format!("plan 1\nseed 1\nclient calls datagrams\n0 ! {fault} 0 9 9 10 10")
                .parse::<Plan>()
        };
        assert!(plan("weather").is_ok());
        assert_eq!(plan("weather"), plan("impairments"));
    }

    #[test]
    fn what_is_no_plan_is_refused_with_its_line() {
        let begun = "plan 1\nseed 1\nclient calls stream\n";
        for (line, what) in [
            ("12 1 look a", "no number from 0 to 0"),
            ("12 0 look ../a", "no path"),
            ("12 0 look", "a word is missing"),
            ("12 0 look a b", "one word too many"),
            ("12 ! rain 0", "does not go wrong"),
            ("12 0 write a 262144 1 1 unstable 1", "no number from 0 to 0"),
            ("x", "no number"),
        ] {
            let error = format!("{begun}{line}").parse::<Plan>().unwrap_err();
            assert!(error.starts_with("line 4") && error.contains(what), "{error}");
        }
        assert!("".parse::<Plan>().is_err());
        assert!("plan 2".parse::<Plan>().is_err());
    }
}
