//! One screen of what a capture says.

mod pace;

use std::collections::BTreeSet;
use std::fmt::Write;

use harness::records::scaled;
use perf::units::Nanos;
use trace::capture::Place;
use trace::{Analyzer, Flow, Flows, Guards, Kind, Operation, OperationTotal, Totals, Usage};

pub(crate) use self::pace::longest;
use self::pace::{gaps, pace};
use super::Seen;
use super::sides::{Side, sides};

/// Lines of a table.
const ROWS_MAX: usize = 12;
/// Lines of the shorter ones.
const FEW: usize = 5;

pub(super) fn text(seen: &Seen) -> String {
    let mut out = String::new();
    head(&mut out, seen);
    let analyzer = &seen.analyzer;
    if analyzer.totals().calls() == 0 {
        nothing(&mut out, analyzer);
        return out;
    }
    out.push_str(&super::verdict::lines(seen));
    out.push_str(&copies(seen));
    operations(&mut out, analyzer);
    pace(&mut out, analyzer);
    character(&mut out, analyzer);
    gaps(&mut out, analyzer);
    files(&mut out, analyzer);
    if let Some(explained) = &seen.explained {
        out.push_str(&super::explain::lines(explained));
    }
    out
}

fn head(out: &mut String, seen: &Seen) {
    let (first, last) = seen.analyzer.span_ns();
    let files = match (seen.files.len(), seen.dropped) {
        (_, Some(dropped)) => format!("live, {dropped} dropped, "),
        (1, _) => String::new(),
        (files, _) => format!("{files} files, "),
    };
    writeln!(
        out,
        "capture     {files}{} packets, {}, {}",
        seen.analyzer.packets(),
        bytes(seen.bytes),
        Nanos::from_nanos(last.saturating_sub(first)),
    )
    .ok();
}

/// Packets that were captured more than once.
fn copies(seen: &Seen) -> String {
    let (count @ 1.., _) = seen.analyzer.copies() else { return String::new() };
    let at = match &read_at(seen)[..] {
        [] => "where it was captured first".to_owned(),
        places => format!("as captured {}", places.join(" or ")),
    };
    format!(
        "copies      {count} packets are copies of others, captured elsewhere on their way: each \
         packet counts once, {at}\n"
    )
}

/// Of places that captured the same, those whose packets count.
pub(super) fn read_at(seen: &Seen) -> Vec<String> {
    let (_, places) = seen.analyzer.copies();
    let name = |place: &Place| match &seen.files[..] {
        [_, _, ..] => {
            let file = seen.files.get(usize::from(place.file));
            format!("in {}", file.map_or_else(String::new, |file| file.display().to_string()))
        }
        _ => format!("on interface {}", place.interface),
    };
    let mut names: Vec<String> = places.iter().map(name).collect();
    names.dedup();
    names
}

/// What there was instead.
fn nothing(out: &mut String, analyzer: &Analyzer) {
    let (connections, _) = analyzer.connections();
    let tcp =
        (connections > 0).then(|| format!("{} without RPC", plural(connections, "connection")));
    let others = analyzer.others().map(|(sort, count)| {
        let packets = if count == 1 { "packet" } else { "packets" };
        format!("{count} {packets} of {sort}")
    });
    let others: Vec<String> = others.chain(tcp).collect();
    let all = if others.is_empty() { "there are no packets" } else { &others.join(", ") };
    writeln!(out, "no NFS found: {all}").ok();
}

fn operations(out: &mut String, analyzer: &Analyzer) {
    let totals = analyzer.totals();
    let flows = analyzer.flows();
    let ends: Vec<_> = flows.admitted().filter_map(|(_, flow)| flow.ends).collect();
    let clients: BTreeSet<_> = ends.iter().map(|ends| ends.client.ip()).collect();
    let servers: BTreeSet<_> = ends.iter().map(|ends| ends.server.ip()).collect();
    let (calls, span) = (totals.calls(), totals.span());
    let counts = [(clients.len(), "client"), (servers.len(), "server"), (ends.len(), "connection")];
    let counts = counts.map(|(count, what)| plural(count, what)).join(", ");
    writeln!(out, "calls       {calls} in {span} ({:.0}/s); {counts}", rate(calls, span)).ok();
    operations_table(out, totals);
    relayed(out, flows);
    most_calls(out, analyzer, "clients", Side::Clients);
    most_calls(out, analyzer, "servers", Side::Servers);
}

fn operations_table(out: &mut String, totals: &Totals) {
    let mut rows: Vec<_> = totals.operations().collect();
    rows.sort_by_key(|(operation, total)| (std::cmp::Reverse(total.calls), *operation));
    let heads = ["operation", "calls", "errors", "retr.", "data", "mean", "p50", "p99", "max"];
    writeln!(out, "\n{}", operation_line(&heads.map(str::to_owned))).ok();
    for (operation, total) in rows.iter().take(ROWS_MAX) {
        writeln!(out, "{}", operation_line(&operation_cells(operation, total))).ok();
    }
    if rows.len() > ROWS_MAX {
        writeln!(out, "and {} more operations (--json)", rows.len() - ROWS_MAX).ok();
    }
    let untimed: u64 = rows.iter().map(|(_, total)| total.untimed).sum();
    if untimed > 0 {
        writeln!(
            out,
            "times       of {untimed} of {} replies are not known: the capture has lost the end of \
             the call or of the reply. They are in no time above",
            totals.replies()
        )
        .ok();
    }
}

fn operation_line(cells: &[String; 9]) -> String {
    let [name, calls, errors, again, data, mean, p50, p99, max] = cells;
    format!(
        "{name:<16}{calls:>10}{errors:>8}{again:>7}{data:>11}{mean:>10}{p50:>10}{p99:>10}{max:>10}"
    )
}

fn operation_cells(operation: &Operation, total: &OperationTotal) -> [String; 9] {
    [
        operation.to_string(),
        total.calls.to_string(),
        total.errors.to_string(),
        total.retransmissions.to_string(),
        if total.bytes > 0 { bytes(total.bytes) } else { "-".to_owned() },
        timed(total, total.latency_mean()),
        timed(total, total.latency_at(0.5)),
        timed(total, total.latency_at(0.99)),
        timed(total, Nanos::from_nanos(total.latency_ns_max)),
    ]
}

/// A time of an operation, if any of its calls has one.
pub(super) fn timed(total: &OperationTotal, time: Nanos) -> String {
    if total.timed() > 0 { time.to_string() } else { "-".to_owned() }
}

/// Calls that were seen on both sides of a relay.
fn relayed(out: &mut String, flows: &Flows) {
    let passed: Vec<_> = flows.iter().filter(|(_, flow)| flow.passed_on > 0).collect();
    let count: u64 = passed.iter().map(|(_, flow)| flow.passed_on).sum();
    let Some((id, flow)) = passed.iter().max_by_key(|(_, flow)| flow.passed_on) else { return };
    let from = flow.passed_from.map_or_else(String::new, |from| flows.name(from));
    writeln!(
        out,
        "relay       {count} calls were seen twice, with the same number and bytes: of {from}, and \
         again of {}. They count once, as their client made them",
        flows.name(*id)
    )
    .ok();
    behind_relay(out, flows);
}

fn behind_relay(out: &mut String, flows: &Flows) {
    let relay = flows.pairs().map(|(pair, _)| &pair.relay);
    let sum = relay.fold((0, 0, 0), |(calls, whole, behind), relay| {
        (calls + relay.added.count(), whole + relay.whole_ns, behind + relay.behind_ns)
    });
    if let (calls @ 1.., whole, behind) = sum {
        let [behind, whole] = [behind, whole].map(|ns| Nanos::from_nanos(ns / calls));
        writeln!(
            out,
            "            behind the relay they took {behind} on average, of {whole} in all"
        )
        .ok();
    }
}

/// Clients or servers, where there are several.
fn most_calls(out: &mut String, analyzer: &Analyzer, word: &str, side: Side) {
    let all = sides(analyzer, side);
    if all.len() < 2 {
        return;
    }
    writeln!(out, "\n{word:<12}{}; the busiest:", all.len()).ok();
    for one in all.iter().take(FEW) {
        let total = one.tallies.total();
        let (p50, p99) = (total.latency.quantile(0.5), total.latency.quantile(0.99));
        let (name, calls, errors, data) =
            (&one.name, total.calls(), total.errors, bytes(total.bytes));
        writeln!(
            out,
            "            {name}: {calls} calls, {errors} errors, {data}, p50 {p50}, p99 {p99}"
        )
        .ok();
    }
}

/// How data are made stable, what the calls are for, and what the capture lacks.
fn character(out: &mut String, analyzer: &Analyzer) {
    stability(out, analyzer);
    purposes(out, analyzer);
    losses(out, analyzer);
}

fn stability(out: &mut String, analyzer: &Analyzer) {
    let sync = analyzer.totals().sync;
    let writes: u64 = sync.writes.iter().sum();
    if writes == 0 {
        return;
    }
    let stable = percent(sync.writes[1] + sync.writes[2], writes);
    let mib = mebibytes(sync.written_bytes);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let commits = sync.commits as f64 / mib.max(1e-9);
    writeln!(
        out,
        "sync        {stable:.0} % of WRITEs stable, {commits:.3} COMMITs per MiB, {:.0} % of \
         WRITEs under 4 KiB",
        percent(sync.small_writes, writes)
    )
    .ok();
}

fn purposes(out: &mut String, analyzer: &Analyzer) {
    let totals = analyzer.totals();
    let of = |kind: Kind| -> u64 {
        let all = totals.operations().filter(|(operation, _)| operation.kind() == kind);
        all.map(|(_, total)| total.calls).sum()
    };
    let calls = totals.calls();
    let attributes = percent(of(Kind::Attributes), calls);
    let links = percent(of(Kind::Readlink), calls);
    let storm = if attributes > 60.0 { " (an attribute storm)" } else { "" };
    writeln!(out, "calls for   attributes {attributes:.0} %{storm}, symbolic links {links:.0} %")
        .ok();
    security(out, totals.guards);
}

fn security(out: &mut String, guards: Guards) {
    let Guards { authentication, integrity, privacy } = guards;
    if authentication + integrity + privacy == 0 {
        return;
    }
    let hidden = match privacy {
        0 => "",
        _ => ": encrypted, so that of them only times and procedures are seen",
    };
    out.push_str(&format!(
        "security    calls with krb5 {authentication}, krb5i {integrity}, krb5p {privacy}{hidden}\n"
    ));
}

fn losses(out: &mut String, analyzer: &Analyzer) {
    let sum = |count: fn(&Flow) -> u64| -> u64 {
        analyzer.flows().admitted().map(|(_, flow)| count(flow)).sum()
    };
    writeln!(
        out,
        "losses      calls retransmitted {}, replies twice {}, without call {}, calls without \
         reply {}; TCP segments retransmitted {}, bytes missing {}",
        sum(|flow| flow.retransmissions),
        sum(|flow| flow.duplicate_replies),
        sum(|flow| flow.unasked_replies),
        analyzer.totals().unanswered,
        sum(|flow| flow.streams.again),
        sum(|flow| flow.streams.missing_bytes),
    )
    .ok();
    unseen(out, sum(|flow| flow.tls), sum(|flow| flow.streams.cut));
}

/// What the capture has, and nobody can read.
fn unseen(out: &mut String, tls: u64, cut: u64) {
    if tls > 0 {
        let connections = plural(usize::try_from(tls).unwrap_or(usize::MAX), "connection");
        writeln!(
            out,
            "tls         {connections} went over to TLS (RFC 9289): their calls are encrypted"
        )
        .ok();
    }
    if cut > 0 {
        out.push_str(&format!(
            "cut         {cut} times a message began in what the capture does not hold of a \
             packet: calls and replies there were not seen, and calls outstanding are too many \
             (tcpdump -s 0 captures whole packets)\n"
        ));
    }
}

fn files(out: &mut String, analyzer: &Analyzer) {
    let busiest = analyzer.files().busiest(FEW);
    if busiest.is_empty() {
        return;
    }
    let count = analyzer.files().count();
    writeln!(out, "\nfiles       {count}; the busiest:").ok();
    for (id, Usage { calls, read_bytes, written_bytes, .. }) in busiest {
        let (path, [read, written]) =
            (analyzer.files().path(id), [read_bytes, written_bytes].map(bytes));
        writeln!(out, "            {path}: {calls} calls, read {read}, written {written}").ok();
    }
}

/// Columns before a sentence: what it is about, in the first line of several.
const NAME_WIDTH: usize = 12;

/// What a reader takes home: of what, and the sentences.
pub(super) fn findings(seen: &Seen) -> Vec<(String, Vec<String>)> {
    let mut text = super::verdict::lines(seen);
    text.push_str(&copies(seen));
    pace(&mut text, &seen.analyzer);
    character(&mut text, &seen.analyzer);
    gaps(&mut text, &seen.analyzer);
    if let Some(explained) = &seen.explained {
        text.push_str(&super::explain::lines(explained));
    }
    grouped(&text)
}

fn grouped(text: &str) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (name, sentence) = line.split_at_checked(NAME_WIDTH).unwrap_or(("", line));
        let sentence = sentence.split_whitespace().collect::<Vec<&str>>().join(" ");
        match groups.last_mut() {
            Some((_, sentences)) if name.trim().is_empty() => sentences.push(sentence),
            _ => groups.push((name.trim().to_owned(), vec![sentence])),
        }
    }
    groups
}

fn plural(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(count: u64, span: Nanos) -> f64 {
    count as f64 / span.as_secs_f64().max(1e-9)
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / (whole as f64).max(1.0) * 100.0
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beneath_a_name_are_about_it() {
        let text = "\nverdict     the disk  is slow\nevidence    one\n            two\n\n\
                    round trip  6 us\n";
        let expected = [
            ("verdict", &["the disk is slow"][..]),
            ("evidence", &["one", "two"]),
            ("round trip", &["6 us"]),
        ];
        let owned = |said: &[&str]| said.iter().map(|&line| line.to_owned()).collect();
        let expected = expected.map(|(name, said)| (name.to_owned(), owned(said)));
        assert_eq!(grouped(text), expected);
    }
}
