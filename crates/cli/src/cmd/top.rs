//! `nfskit top`: the terminal of [`watch::top`], and the clock that gives it samples.
//!
//! The terminal is given back whatever happens: at the end of the command, on Ctrl-C, SIGTERM and
//! a hangup, which are caught from before it is taken, and by a panic, whose hook does it before it
//! says what is wrong.

use std::io::{self, IsTerminal};
use std::pin::pin;

use harness::exit::Failure;
use harness::signals::Interrupts;
use net::clock::Clock;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use watch::top::{Key, Next, State};

use crate::args::stat::Top;
use crate::samples::Source;

/// Events that wait for us to draw, at most; who types on is slowed down.
const EVENTS_MAX: usize = 64;

/// Runs the command: until `q`, Ctrl-C or SIGTERM.
pub(crate) fn run(args: &Top) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let what = "standard input and output are no terminal";
        return Err(Failure::usage(what, "nfskit stat 1, which writes to anything"));
    }
    let run = net::runtime::block_on(watch(args));
    run.map_err(Failure::resources)?
}

/// The terminal, as long as this is there.
struct Taken(DefaultTerminal);

impl Taken {
    /// Takes it; a panic gives it back before its message.
    fn take() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A terminal that has gone away wants nothing back.
        ratatui::try_restore().ok();
    }
}

/// What comes from the terminal.
#[derive(Debug)]
enum Input {
    Key(Key),
    /// Another size: to be drawn anew.
    Resized,
    /// Ctrl-C, or no terminal any more.
    End,
}

async fn watch(args: &Top) -> Result<(), Failure> {
    let clock = Clock::real();
    let mut interrupts = Interrupts::catch()?;
    let mut source = Source::new(&clock, &args.metrics, args.from.as_ref(), &[]);
    let mut state = State::new(format!("every {}", args.interval));
    // What is wrong at once is shown on a terminal that is as it was.
    let first = source.take().await?;
    state.update(first.tables(), &first.time, first.problems);
    let mut taken = Taken::take().map_err(|cause| no_terminal(&cause))?;
    let mut inputs = inputs()?;
    loop {
        let due = source.until_next(args.interval);
        let mut next = pin!(async {
            clock.sleep(due).await;
            source.take().await
        });
        let sample = loop {
            // One that cannot be drawn on has gone away.
            if taken.0.draw(|frame| state.draw(frame)).is_err() {
                return Ok(());
            }
            tokio::select! {
                sample = &mut next => break sample?,
                input = inputs.recv() => match input {
                    Some(Input::Key(key)) if state.key(key) == Next::GoOn => {}
                    Some(Input::Resized) => {}
                    Some(Input::Key(_) | Input::End) | None => return Ok(()),
                },
                () = interrupts.next() => return Ok(()),
            }
        };
        state.update(sample.tables(), &sample.time, sample.problems);
    }
}

/// Reads the terminal in a thread of its own, since reading waits.
fn inputs() -> Result<mpsc::Receiver<Input>, Failure> {
    let (sender, receiver) = mpsc::channel(EVENTS_MAX);
    let read = move || {
        loop {
            let input = next();
            let is_end = matches!(input, Some(Input::End));
            let is_heard = input.is_none_or(|input| sender.blocking_send(input).is_ok());
            if is_end || !is_heard {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("nfskit-keys".to_owned());
    let begun = thread.spawn(read);
    begun.map_err(Failure::resources)?;
    Ok(receiver)
}

/// What comes next; none where it means nothing.
fn next() -> Option<Input> {
    match event::read() {
        Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => input(key),
        Ok(Event::Resize(..)) => Some(Input::Resized),
        Ok(_) => None,
        Err(_) => Some(Input::End),
    }
}

/// What a key means; Ctrl-C is one while the terminal is ours.
fn input(key: KeyEvent) -> Option<Input> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_control => Some(Input::End),
        KeyCode::Char(_) if is_control => None,
        KeyCode::Char(letter) => Some(Input::Key(Key::Char(letter))),
        code => named(code),
    }
}

fn named(code: KeyCode) -> Option<Input> {
    let known = KEYS.iter().find(|(known, _)| *known == code);
    known.map(|(_, key)| Input::Key(*key))
}

const KEYS: [(KeyCode, Key); 12] = [
    (KeyCode::Backspace, Key::Backspace),
    (KeyCode::Down, Key::Down),
    (KeyCode::End, Key::End),
    (KeyCode::Enter, Key::Enter),
    (KeyCode::Esc, Key::Escape),
    (KeyCode::Home, Key::Home),
    (KeyCode::Left, Key::Left),
    (KeyCode::PageDown, Key::PageDown),
    (KeyCode::PageUp, Key::PageUp),
    (KeyCode::Right, Key::Right),
    (KeyCode::Tab, Key::Tab),
    (KeyCode::Up, Key::Up),
];

fn no_terminal(cause: &io::Error) -> Failure {
    let what = format!("the terminal cannot be used: {cause}");
    Failure::environment(what, "nfskit stat 1, which writes to anything")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_they_are_and_control_ends() {
        let meant = |code, modifiers| input(KeyEvent::new(code, modifiers));
        let plain = |code| meant(code, KeyModifiers::NONE);
        assert!(matches!(plain(KeyCode::Char('q')), Some(Input::Key(Key::Char('q')))));
        assert!(matches!(plain(KeyCode::Esc), Some(Input::Key(Key::Escape))));
        assert!(plain(KeyCode::F(1)).is_none());
        assert!(matches!(meant(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Input::End)));
        assert!(meant(KeyCode::Char('a'), KeyModifiers::CONTROL).is_none());
    }
}
