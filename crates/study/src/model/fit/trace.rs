//! A trace of transactions explained.

use std::path::Path;

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use perf::model::trace::{Explained, Group, TRANSACTIONS_MAX, Transaction, Work};
use perf::record::Run as Record;

use crate::model::infer::{Fitted, failure, found};
use crate::model::page::{Page, percent, span};
use crate::model::source::keep;

/// A trace by its path and servers.
pub(in crate::model) fn explained(
    transactions: &[Transaction],
    file: &Path,
) -> Result<Explained, Failure> {
    Explained::from(transactions).map_err(|error| failure(file, &error, Fitted::Trace))
}

pub(super) fn explain(transactions: &[Transaction], file: &Path) -> Result<Page, Failure> {
    let explained = explained(transactions, file)?;
    let mut page = Page::new("fit", Some(file));
    keep(&mut page.record.model, &measured(transactions));
    parameters(&mut page.record, &explained);
    page.text = screen(&explained, transactions.len());
    page.unidentified(explained.unidentified());
    if transactions.len() > TRANSACTIONS_MAX {
        let (all, looked) = (transactions.len(), explained.transactions);
        let text = format!("of {all} transactions the first {looked} were looked at");
        page.record.warn("truncated", &text, "");
    }
    Ok(page)
}

fn parameters(record: &mut Record, explained: &Explained) {
    let n = explained.transactions as u64;
    for found in &explained.fitted.parameters {
        record.estimate(&format!("trace/{}", found.name), &found.estimate, found.unit, n);
    }
    let servers = explained.shows_demand().then(|| f64::from(explained.servers));
    record.metric_if_known("trace/servers", servers, "");
    record.metric("trace/typical_error", explained.fitted.deviation, "1");
}

/// As it is read again.
fn measured(transactions: &[Transaction]) -> String {
    let rows = transactions.iter().take(TRANSACTIONS_MAX).map(|transaction| {
        let Transaction { sent_us, answered_us, bytes, work } = transaction;
        format!("{sent_us} {answered_us} {bytes} {}\n", u8::from(*work == Work::Stable))
    });
    rows.fold("sent_us answered_us bytes stable\n".to_owned(), |text, row| text + &row)
}

fn screen(explained: &Explained, transactions: usize) -> String {
    let Explained { transactions: looked, groups, fitted, .. } = explained;
    let mut found = found(&fitted.parameters);
    let servers = match explained.shows_demand() {
        true => [explained.servers.to_string(), range(explained)],
        false => ["-".to_owned(), "not shown: no call waited for a server".to_owned()],
    };
    let [servers, range] = servers;
    found.row(["servers".to_owned(), servers, range]);
    format!(
        "{looked} of {transactions} transactions, {} groups, typical error {:.1} %\n\n{}\n{}",
        groups.len(),
        fitted.deviation * 100.0,
        found.text(),
        table(explained).text()
    )
}

/// How many servers it may be.
fn range(explained: &Explained) -> String {
    match explained.servers_range {
        (least, Some(most)) => format!("{least} to {most}"),
        (least, None) => format!("{least} or more"),
    }
}

/// The calls of one kind and size with so many outstanding, measured and by the model.
fn table(explained: &Explained) -> Table {
    let names = ["size", "outstanding", "calls", "measured", "model", "error"];
    let mean = explained.transactions as f64 / explained.groups.len().max(1) as f64;
    let groups = explained.groups.iter().zip(&explained.fitted.residuals);
    let rows = groups.map(|(group, residual)| row(group, residual, mean));
    Table::of([left("")].into_iter().chain(names.map(right)), rows)
}

/// Residuals are weighted by how many calls a group has beside the `mean`.
fn row(group: &Group, residual: &f64, mean: f64) -> [String; 7] {
    let kind = if group.work == Work::Stable { "stable" } else { "" };
    let residual = residual / (group.calls as f64 / mean).sqrt();
    [
        kind.to_owned(),
        scaled(group.kib * 1024.0),
        format!("{}+", group.outstanding),
        group.calls.to_string(),
        span(group.measured_us),
        span(group.measured_us * residual.exp()),
        percent(residual.exp_m1()),
    ]
}
