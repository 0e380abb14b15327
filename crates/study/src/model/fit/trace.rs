//! A trace of transactions explained.

use std::fmt::Write;
use std::path::Path;

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::model::trace::{Explained, TRANSACTIONS_MAX, Transaction, Work};

use crate::model::infer::{Fitted, failure, found};
use crate::model::source::keep;
use crate::model::{Page, span};

pub(super) fn explain(
    transactions: &[Transaction],
    file: &Path,
    json: Option<&Path>,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let explained =
        Explained::from(transactions).map_err(|error| failure(file, &error, Fitted::Trace))?;
    let mut page = Page::new("fit", Some(file));
    keep(&mut page.record.model, &measured(transactions));
    let n = explained.transactions as u64;
    for found in &explained.fitted.parameters {
        page.record.estimate(&format!("trace/{}", found.name), &found.estimate, found.unit, n);
    }
    page.record.metric("trace/servers", f64::from(explained.servers), "");
    page.record.metric("trace/typical_error", explained.fitted.deviation, "1");
    page.text = screen(&explained, transactions.len());
    page.unidentified(explained.unidentified());
    if transactions.len() > TRANSACTIONS_MAX {
        let text = format!("of {} transactions the first {n} were looked at", transactions.len());
        page.record.warn("truncated", &text, "");
    }
    page.show(json, verbosity)
}

/// As it is read again.
fn measured(transactions: &[Transaction]) -> String {
    let mut text = "sent_us answered_us bytes stable\n".to_owned();
    for transaction in transactions.iter().take(TRANSACTIONS_MAX) {
        let Transaction { sent_us, answered_us, bytes, work } = transaction;
        let stable = u8::from(*work == Work::Stable);
        writeln!(text, "{sent_us} {answered_us} {bytes} {stable}").ok();
    }
    text
}

fn screen(explained: &Explained, transactions: usize) -> String {
    let mut text = String::new();
    let percent = explained.fitted.deviation * 100.0;
    let looked = explained.transactions;
    writeln!(
        text,
        "{looked} of {transactions} transactions, {} groups, typical error {percent:.1} %",
        explained.groups.len()
    )
    .ok();
    let mut found = found(&explained.fitted.parameters);
    let (least, most) = explained.servers_range;
    let range =
        most.map_or_else(|| format!("{least} or more"), |most| format!("{least} to {most}"));
    found.row(["servers".to_owned(), explained.servers.to_string(), range]);
    writeln!(text, "\n{}", found.text()).ok();
    text + &groups(explained).text()
}

/// The calls of one kind and size with so many outstanding, measured and by the model.
fn groups(explained: &Explained) -> Table {
    let names = ["size", "outstanding", "calls", "measured", "model", "error"];
    let mut groups = Table::new([left("")].into_iter().chain(names.map(right)));
    let mean = explained.transactions as f64 / explained.groups.len().max(1) as f64;
    for (group, residual) in explained.groups.iter().zip(&explained.fitted.residuals) {
        let kind = if group.work == Work::Stable { "stable" } else { "" };
        let residual = residual / (group.calls as f64 / mean).sqrt();
        groups.row([
            kind.to_owned(),
            scaled(group.kib * 1024.0),
            format!("{}+", group.outstanding),
            group.calls.to_string(),
            span(group.measured_us),
            span(group.measured_us * residual.exp()),
            format!("{:+.1} %", residual.exp_m1() * 100.0),
        ]);
    }
    groups
}
