//! Changes while a relay runs: `--control` takes them, `--set` says them, SIGHUP reads a file
//! again.
//!
//! | line | does |
//! |---|---|
//! | `L=5ms,there.loss=1%` | changes parameters, and leaves the others |
//! | `wan-10ms`, `1ms/1g,loss=1%`, `far.toml` | replaces the link, as on the command line |
//! | `reload` | reads the profile again, as SIGHUP does: a file may have changed |
//! | `show` | tells the link as it is, and what has passed |

use std::path::Path;
use std::sync::Arc;

use harness::exit::Failure;
use harness::output;
use harness::relay::stats;
use net::clock::Clock;
use net::control::{self, Listener};
use net::relay::Relay;
use parking_lot::Mutex;
use perf::units::Nanos;

/// How long a relay may take to answer.
const LIMIT: Nanos = Nanos::from_secs(5);

/// A link as it was requested: what it is based on, and what is changed of that.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Words {
    /// A name, two numbers, a file; none for no link.
    base: Option<String>,
    changes: Vec<(String, String)>,
}

impl Words {
    pub(super) fn parse(text: &str) -> Self {
        let mut words = Self::default();
        words.say(text);
        words
    }

    /// Changes what `text` names; what begins with no `KEY=VALUE` replaces everything.
    fn say(&mut self, text: &str) {
        for (index, word) in text.split(',').map(str::trim).enumerate() {
            match word.split_once('=') {
                Some((key, value)) => self.change(key.trim(), value.trim()),
                None if index == 0 => {
                    *self = Self { base: Some(word.to_owned()), changes: Vec::new() };
                }
                // Not a change: whoever reads the whole says so.
                None => self.changes.push((word.to_owned(), String::new())),
            }
        }
    }

    fn change(&mut self, key: &str, value: &str) {
        let is_replaced = |old: &str| {
            let one_way = old.strip_prefix("there.").or_else(|| old.strip_prefix("back."));
            old == key || one_way == Some(key)
        };
        self.changes.retain(|(old, _)| !is_replaced(old));
        self.changes.push((key.to_owned(), value.to_owned()));
    }

    /// In the form of the command line.
    pub(super) fn text(&self) -> String {
        let changes = self.changes.iter().map(|(key, value)| match value.is_empty() {
            true => key.clone(),
            false => format!("{key}={value}"),
        });
        let words: Vec<String> = self.base.clone().into_iter().chain(changes).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(",") }
    }
}

/// What a relay's link is changed by.
#[derive(Clone, Debug)]
pub(super) struct Knobs {
    relay: Relay,
    clock: Clock,
    /// Guards what was requested, and that changes come one after the other.
    words: Arc<Mutex<Words>>,
    /// What the relay may hold.
    held_bytes_max: u64,
}

impl Knobs {
    pub(super) fn new(relay: &Relay, clock: &Clock, words: Words, held_bytes_max: u64) -> Self {
        let words = Arc::new(Mutex::new(words));
        Self { relay: relay.clone(), clock: clock.clone(), words, held_bytes_max }
    }

    /// Takes lines from a socket at `path`, in a task of its own.
    pub(super) fn listen(&self, path: &Path, clock: &Clock) -> Result<(), Failure> {
        let listener = Listener::bind(path).map_err(|cause| {
            Failure::environment(
                format!("cannot listen on {}: {cause}", path.display()),
                "another name for the socket, in a directory that you may write to",
            )
        })?;
        let (knobs, own) = (self.clone(), clock.clone());
        let answer = move |line: &str| knobs.answer(line);
        clock.spawn(async move { listener.serve(own, answer).await });
        Ok(())
    }

    fn answer(&self, line: &str) -> Result<String, String> {
        match line {
            "show" => Ok(self.show()),
            "reload" => self.reload(),
            _ => self.turn(line.strip_prefix("profile ").unwrap_or(line)),
        }
    }

    /// Reads the same words again.
    pub(super) fn reload(&self) -> Result<String, String> {
        self.turn("")
    }

    /// Changes the link; nothing is changed where anything is wrong.
    fn turn(&self, text: &str) -> Result<String, String> {
        let mut words = self.words.lock();
        let mut changed = words.clone();
        if !text.is_empty() {
            changed.say(text);
        }
        let profile = super::possible(&changed, self.held_bytes_max)?;
        let shown = profile.to_string();
        super::apply(&self.relay, profile, self.clock.now());
        *words = changed;
        Ok(shown)
    }

    fn show(&self) -> String {
        let text = self.words.lock().text();
        let profile = self.relay.shape().profile();
        format!("{text}\n{profile}\n{}", stats::table(&self.relay.counts()))
    }
}

/// `--set`: says each of `words` to a relay and prints what it answers.
pub(super) fn say(path: &Path, words: &[String]) -> Result<(), Failure> {
    let clock = Clock::real();
    let words: Vec<String> = words.iter().map(|word| from_here(word)).collect();
    let answer = net::runtime::block_on(control::ask(&clock, path, &words, LIMIT));
    let answers = answer.and_then(|answers| answers).map_err(|cause| {
        Failure::environment(
            format!("cannot ask the relay at {}: {cause}", path.display()),
            "start one with --control of that name, as the same user",
        )
    })?;
    for (word, answer) in words.iter().zip(answers) {
        match answer {
            Ok(text) => output::print(&text)?,
            Err(why) => {
                return Err(Failure::usage(
                    format!("the relay does not take {word:?}: {why}"),
                    super::FORM,
                ));
            }
        }
    }
    Ok(())
}

/// The same word for a relay that runs in another directory: a file by its whole path.
fn from_here(word: &str) -> String {
    let (base, changes) = word.split_at(word.find(',').unwrap_or(word.len()));
    let whole = std::path::absolute(base.trim()).ok().filter(|_| base.trim().ends_with(".toml"));
    let whole = whole.as_deref().and_then(Path::to_str).unwrap_or(base);
    format!("{whole}{changes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_that_of_the_directory_where_its_name_is_given() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        assert_eq!(from_here("far.toml,L=5ms"), format!("{here}/far.toml,L=5ms"));
        for word in ["/a/far.toml", "show", "L=5ms,there.loss=1%", "1ms/1g,loss=1%"] {
            assert_eq!(from_here(word), word);
        }
    }

    #[test]
    fn a_change_replaces_what_it_names_and_a_name_everything() {
        let mut words = Words::parse("wan-10ms,loss=1%");
        let mut after = |text: &str| {
            words.say(text);
            words.text()
        };
        assert_eq!(after("L=5ms"), "wan-10ms,loss=1%,L=5ms");
        assert_eq!(after("there.L=1ms, loss=0%"), "wan-10ms,L=5ms,there.L=1ms,loss=0%");
        assert_eq!(after("L=7ms"), "wan-10ms,loss=0%,L=7ms");
        assert_eq!(after("far.toml"), "far.toml");
        assert_eq!(after("G=1MB/s,nonsense"), "far.toml,G=1MB/s,nonsense");
        assert_eq!(after("1ms/1g,mtu=1500"), "1ms/1g,mtu=1500");
        assert_eq!(Words::default().text(), "none");
        assert_eq!(Words::parse("L=1ms").text(), "L=1ms");
    }
}
