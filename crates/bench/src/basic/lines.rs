//! What is printed while the tests run, and at their end: the lines of the suite.

use std::fmt::Write;

use harness::output;
use load::basic::{Ended, Event, Measured, Mode, Plan};

use super::ran::Ran;

/// The line before the first test.
pub(super) fn beginning(directory: &str, plan: &Plan) -> String {
    let mut arguments = plan.mode.argument().to_owned();
    if plan.in_place {
        arguments.push('n');
    }
    format!("Starting BASIC tests: test directory {directory} (arg: {arguments})\n\n")
}

/// Prints what is observed, if it is reported at all.
pub(super) fn observer(is_printed: bool, mode: Mode) -> impl FnMut(Event<'_>) + Send {
    move |event| {
        if is_printed {
            // Who does not listen gets nothing more at the end.
            output::print(&of(&event, mode)).ok();
        }
    }
}

fn of(event: &Event<'_>, mode: Mode) -> String {
    match event {
        Event::Begins(test) => format!("./test{}: {}\n", test.number(), test.title()),
        Event::Ended(one) => of_test(one, mode),
    }
}

fn of_test(one: &Measured, mode: Mode) -> String {
    let mut text = String::new();
    for line in &one.lines {
        // Writing to a String does not fail.
        match mode {
            Mode::Timed => writeln!(text, "\t{line}").ok(),
            Mode::Functional => writeln!(text, "\t{}", line.untimed()).ok(),
        };
    }
    let number = one.test.number();
    match &one.ended {
        None => writeln!(text, "\t./test{number} ok.\n").ok(),
        Some(Ended::Unsupported(why)) => {
            writeln!(text, "\tnot supported here: {why}\n\t./test{number} ok.\n").ok()
        }
        Some(Ended::Failed(failed)) => {
            let (step, expected, seen) = (&failed.step, &failed.expected, &failed.seen);
            writeln!(text, "\t./test{number}: ({step}) expected {expected}, seen {seen}\n").ok()
        }
        Some(Ended::Broken { .. } | Ended::Stopped) => writeln!(text).ok(),
    };
    text
}

/// The line after the last test, of whoever came to it.
pub(super) fn end(ran: &Ran) -> &'static str {
    match (&ran.failure, ran.left.is_empty()) {
        (None, true) => "Congratulations, you passed the basic tests!\n",
        (None, false) => "",
        (Some(_), _) => "basic tests failed\n",
    }
}
