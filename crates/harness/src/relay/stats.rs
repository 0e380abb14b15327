//! Statistics of a relay that runs: a line that refreshes on a terminal, a line a second with
//! `--stats`, and the summary at the end.

use std::io::IsTerminal;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use net::clock::{Clock, Task};
use net::relay::{Carried, Counts, Relay};
use perf::units::{Instant, Nanos};

use crate::output;
use crate::records::quantile;
use crate::verbosity::Verbosity;

/// Time between two lines.
const INTERVAL: Nanos = Nanos::from_secs(1);

/// Tells about a relay until it is ended.
#[derive(Debug)]
pub struct Statistics {
    clock: Clock,
    pub started: Instant,
    pub began: String,
    task: Option<Task>,
    bar: Option<ProgressBar>,
}

impl Statistics {
    /// With a line a second, where `prints_lines` or on a terminal.
    pub fn begin(relay: &Relay, clock: &Clock, prints_lines: bool, verbosity: Verbosity) -> Self {
        let is_terminal = std::io::stderr().is_terminal() && verbosity > Verbosity::Quiet;
        let bar = is_terminal.then(|| {
            let bar = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        let shows = bar.is_some() || prints_lines;
        let task = shows.then(|| {
            let (relay, own, bar) = (relay.clone(), clock.clone(), bar.clone());
            clock.spawn(async move { show_regularly(&relay, &own, bar.as_ref()).await })
        });
        Self {
            clock: clock.clone(),
            started: clock.now(),
            began: load::environment::rfc3339(clock),
            task,
            bar,
        }
    }

    /// Says no more.
    pub fn end(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    pub fn elapsed(&self) -> Nanos {
        self.clock.now().since(self.started)
    }

    /// What there was, for people.
    pub fn summary(&self, counts: &Counts) -> String {
        let seconds = self.elapsed().as_secs_f64();
        format!("relayed for {seconds:.1} s\n{}", table(counts))
    }
}

/// What has passed, a few lines.
pub fn table(counts: &Counts) -> String {
    let Counts { accepted, refused, strangers, unreachable, broken, garbled, given_up, .. } =
        counts;
    let (there, back) = (direction("there", &counts.there), direction("back", &counts.back));
    format!(
        "{there}{back}  {accepted} connections; {unreachable} found no server, {refused} refused \
         (connection limit), {strangers} refused (another user's), {broken} broke ({garbled} \
         malformed RPC records, {given_up} stalled)\n"
    )
}

fn direction(name: &str, carried: &Carried) -> String {
    let Carried { messages, .. } = carried;
    let waits = if *messages == 0 { String::new() } else { waits(carried) };
    let (size, lost, else_) = (bytes(carried.bytes), losses(carried), misfortunes(carried));
    format!("  {name:6} {messages} messages, {size}; {lost}{else_}\n{waits}")
}

fn waits(Carried { queued, late, .. }: &Carried) -> String {
    format!(
        "         waited for the link {} (median), {} (99 %), {} at most; handed on {} (median), \
         {} (99 %) late\n",
        quantile(queued, 0.5),
        quantile(queued, 0.99),
        quantile(queued, 1.0),
        quantile(late, 0.5),
        quantile(late, 0.99),
    )
}

/// Tells once in an interval what has passed since the last time.
async fn show_regularly(relay: &Relay, clock: &Clock, bar: Option<&ProgressBar>) {
    let mut before = (clock.now(), Arc::new(relay.counts()));
    loop {
        clock.sleep(INTERVAL).await;
        let (now, counts) = (clock.now(), Arc::new(relay.counts()));
        let line = line(&before.1, &counts, now.since(before.0));
        match bar {
            Some(bar) => bar.set_message(line),
            None => output::complain(format_args!("{line}\n")),
        }
        before = (now, counts);
    }
}

/// What has passed in `span`.
fn line(before: &Counts, counts: &Counts, span: Nanos) -> String {
    let sessions = match counts.sessions {
        0 => String::new(),
        sessions => format!(", {sessions} sources of datagrams"),
    };
    format!(
        "{} connections{sessions} | there {} | back {}",
        counts.connections,
        flow(&before.there, &counts.there, span),
        flow(&before.back, &counts.back, span)
    )
}

/// One direction.
fn flow(before: &Carried, carried: &Carried, span: Nanos) -> String {
    let messages = (carried.passed - before.passed) as f64 / span.as_secs_f64().max(1e-9);
    let rate = rate(carried.passed_bytes - before.passed_bytes, span);
    let held = match carried.held {
        0 => String::new(),
        held => format!(", {held} on their way ({})", bytes(carried.held_bytes)),
    };
    let wait = carried.queued.quantile_if_known(0.99);
    let wait = wait.map_or_else(String::new, |wait| format!(", 99 % waited {wait} at most"));
    format!("{messages:.0} msg/s {rate}{held}{wait}, {}", losses(carried))
}

fn losses(carried: &Carried) -> String {
    let lost: u64 = carried.lost.values().sum();
    let causes = carried.lost.iter().map(|(loss, count)| format!("{count} {}", loss.name()));
    match lost {
        0 => "0 lost".to_owned(),
        lost => format!("{lost} lost ({})", causes.collect::<Vec<_>>().join(", ")),
    }
}

/// What else has happened to messages; nothing is stated of what has not.
fn misfortunes(carried: &Carried) -> String {
    let counts = [
        (carried.duplicated, "duplicated"),
        (carried.reordered, "reordered"),
        (carried.corrupted, "corrupted"),
        (carried.retransmitted, "packets retransmitted"),
    ];
    let seen = counts.into_iter().filter(|(count, _)| *count > 0);
    seen.map(|(count, what)| format!(", {count} {what}")).collect()
}

fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 * 1e-3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", count as f64 * 1e-6),
        _ => format!("{:.1} GB", count as f64 * 1e-9),
    }
}

fn rate(count: u64, span: Nanos) -> String {
    format!("{:.2} MB/s", count as f64 * 1e-6 / span.as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use net::relay::Loss;

    use super::*;

    #[test]
    fn a_line_tells_what_has_passed_and_what_was_lost() {
        let before = Counts::default();
        let mut counts = Counts { connections: 2, ..Counts::default() };
        counts.there.passed = 100;
        counts.there.passed_bytes = 5_000_000;
        counts.back.held = 3;
        counts.back.held_bytes = 24_000;
        counts.back.lost.insert(Loss::NoRoom, 7);
        let line = line(&before, &counts, Nanos::from_secs(2));
        let parts =
            ["2 connections", "there 50 msg/s 2.50 MB/s", "3 on their way (24.0 kB)", "7 no-room"];
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }

    #[test]
    fn waits_are_counted_of_messages_only() {
        let mut counts = Counts::default();
        assert!(!table(&counts).contains("median"), "{}", table(&counts));
        counts.back.messages = 1;
        assert_eq!(table(&counts).matches("median").count(), 2, "{}", table(&counts));
    }

    #[test]
    fn the_worst_of_a_few_messages_is_no_quantile() {
        let mut counts = Counts::default();
        counts.there.messages = 99;
        counts.there.queued.record_n(Nanos::from_micros(2), 99);
        counts.there.late.record_n(Nanos::from_micros(3), 99);
        let short = table(&counts);
        assert!(short.contains("2.00 us (median), - (99 %), 2.00 us at most"), "{short}");
        assert!(short.contains("3.00 us (median), - (99 %) late"), "{short}");
        assert!(!line(&counts, &counts, Nanos::from_secs(1)).contains("waited"));
        counts.there.queued.record(Nanos::from_micros(2));
        assert!(table(&counts).contains("2.00 us (99 %)"), "{}", table(&counts));
    }

    #[test]
    fn who_is_refused_for_being_another_user_is_counted_apart_from_who_finds_no_place() {
        let table = table(&Counts { refused: 2, strangers: 3, ..Counts::default() });
        let parts = ["2 refused (connection limit)", "3 refused (another user's)"];
        assert!(parts.iter().all(|part| table.contains(part)), "{table}");
    }
}
