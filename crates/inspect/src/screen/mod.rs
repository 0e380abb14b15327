//! One screen of what a capture says.

mod pace;

use std::collections::BTreeSet;

use harness::records::scaled;
use perf::units::Nanos;
use perf::words::counted;
use trace::capture::Place;
use trace::{Analyzer, Flow, Flows, Guards, Kind, Operation, OperationTotal, Totals, Usage};

pub(crate) use self::pace::longest;
use self::pace::{gaps, pace};
use super::Seen;
use super::sides::{One, Side, sides};

/// Lines of a table.
const ROWS_MAX: usize = 12;
/// Lines of the shorter ones.
const FEW: usize = 5;

pub(super) fn text(seen: &Seen) -> String {
    let (head, analyzer) = (head(seen), &seen.analyzer);
    if analyzer.totals().calls() == 0 {
        return head + &nothing(analyzer);
    }
    let said = [super::verdict::lines(seen), copies(seen), operations(analyzer), pace(analyzer)];
    let why = [character(analyzer), gaps(analyzer), files(analyzer), explained(seen)];
    head + &said.concat() + &why.concat()
}

fn explained(seen: &Seen) -> String {
    seen.explained.as_ref().map(super::explain::lines).unwrap_or_default()
}

fn head(seen: &Seen) -> String {
    let (first, last) = seen.analyzer.span_ns();
    let files = match (seen.files.len(), seen.dropped) {
        (_, Some(dropped)) => format!("live, {dropped} dropped, "),
        (1, _) => String::new(),
        (files, _) => format!("{files} files, "),
    };
    let (packets, size) = (seen.analyzer.packets(), bytes(seen.bytes));
    let span = Nanos::from_nanos(last.saturating_sub(first));
    format!("capture     {files}{packets} packets, {size}, {span}\n")
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
fn nothing(analyzer: &Analyzer) -> String {
    let (connections, _) = analyzer.connections();
    let tcp = (connections > 0)
        .then(|| format!("{} without RPC", counted(connections as u64, "connection")));
    let others = analyzer.others().map(|(sort, count)| {
        let packets = if count == 1 { "packet" } else { "packets" };
        format!("{count} {packets} of {sort}")
    });
    let others: Vec<String> = others.chain(tcp).collect();
    let all = if others.is_empty() { "there are no packets" } else { &others.join(", ") };
    format!("no NFS found: {all}\n")
}

fn operations(analyzer: &Analyzer) -> String {
    let calls = calls(analyzer) + &operations_table(analyzer.totals());
    let ends = [("clients", Side::Clients), ("servers", Side::Servers)];
    let ends = ends.map(|(word, side)| most_calls(analyzer, word, side));
    calls + &relayed(analyzer.flows()) + &ends.concat()
}

/// How many, and between whom.
fn calls(analyzer: &Analyzer) -> String {
    let ends: Vec<_> = analyzer.flows().admitted().filter_map(|(_, flow)| flow.ends).collect();
    let clients: BTreeSet<_> = ends.iter().map(|ends| ends.client.ip()).collect();
    let servers: BTreeSet<_> = ends.iter().map(|ends| ends.server.ip()).collect();
    let counts = [(clients.len(), "client"), (servers.len(), "server"), (ends.len(), "connection")];
    let counts = counts.map(|(count, what)| counted(count as u64, what)).join(", ");
    let (calls, span) = (analyzer.totals().calls(), analyzer.totals().span());
    format!("calls       {calls} in {span} ({:.0}/s); {counts}\n", rate(calls, span))
}

fn operations_table(totals: &Totals) -> String {
    let mut rows: Vec<_> = totals.operations().collect();
    rows.sort_by_key(|(operation, total)| (std::cmp::Reverse(total.calls), *operation));
    let heads = ["operation", "calls", "errors", "retr.", "data", "mean", "p50", "p99", "max"];
    let shown = rows.iter().take(ROWS_MAX);
    let lines = shown.map(|(operation, total)| operation_line(&operation_cells(operation, total)));
    let table = operation_line(&heads.map(str::to_owned)) + &lines.collect::<String>();
    let more = match rows.len() {
        ..=ROWS_MAX => String::new(),
        all => format!("and {} more operations (--json)\n", all - ROWS_MAX),
    };
    let untimed = rows.iter().map(|(_, total)| total.untimed).sum();
    format!("\n{table}{more}{}", without_times(untimed, totals.replies()))
}

fn without_times(untimed: u64, replies: u64) -> String {
    if untimed == 0 {
        return String::new();
    }
    format!(
        "times       of {untimed} of {replies} replies are not known: the capture has lost the end \
         of the call or of the reply. They are in no time above\n"
    )
}

fn operation_line(cells: &[String; 9]) -> String {
    let [name, calls, errors, again, data, mean, p50, p99, max] = cells;
    format!(
        "{name:<16}{calls:>10}{errors:>8}{again:>7}{data:>11}{mean:>10}{p50:>10}{p99:>10}\
         {max:>10}\n"
    )
}

fn operation_cells(operation: &Operation, total: &OperationTotal) -> [String; 9] {
    let [calls, errors, again] =
        [total.calls, total.errors, total.retransmissions].map(|count| count.to_string());
    let data = if total.bytes > 0 { bytes(total.bytes) } else { "-".to_owned() };
    let max = Nanos::from_nanos(total.latency_ns_max);
    let times = [total.latency_mean(), total.latency_at(0.5), total.latency_at(0.99), max];
    let [mean, p50, p99, max] = times.map(|time| timed(total, time));
    [operation.to_string(), calls, errors, again, data, mean, p50, p99, max]
}

/// A time of an operation, if any of its calls has one.
pub(super) fn timed(total: &OperationTotal, time: Nanos) -> String {
    if total.timed() > 0 { time.to_string() } else { "-".to_owned() }
}

/// Calls that were seen on both sides of a relay.
fn relayed(flows: &Flows) -> String {
    let passed: Vec<_> = flows.iter().filter(|(_, flow)| flow.passed_on > 0).collect();
    let count: u64 = passed.iter().map(|(_, flow)| flow.passed_on).sum();
    let most = passed.iter().max_by_key(|(_, flow)| flow.passed_on);
    let Some((id, flow)) = most else { return String::new() };
    let from = flow.passed_from.map_or_else(String::new, |from| flows.name(from));
    let relayed = format!(
        "relay       {count} calls were seen twice, with the same number and bytes: of {from}, and \
         again of {}. They count once, as their client made them\n",
        flows.name(*id)
    );
    relayed + &behind_relay(flows)
}

fn behind_relay(flows: &Flows) -> String {
    let relay = flows.pairs().map(|(pair, _)| &pair.relay);
    let sum = relay.fold((0, 0, 0), |(calls, whole, behind), relay| {
        (calls + relay.added.count(), whole + relay.whole_ns, behind + relay.behind_ns)
    });
    let (calls @ 1.., whole, behind) = sum else { return String::new() };
    let [behind, whole] = [behind, whole].map(|ns| Nanos::from_nanos(ns / calls));
    format!("            behind the relay they took {behind} on average, of {whole} in all\n")
}

/// Clients or servers, where there are several.
fn most_calls(analyzer: &Analyzer, word: &str, side: Side) -> String {
    let all = sides(analyzer, side);
    if all.len() < 2 {
        return String::new();
    }
    let busiest: String = all.iter().take(FEW).map(end_line).collect();
    format!("\n{word:<12}{}; the busiest:\n{busiest}", all.len())
}

fn end_line(One { name, tallies, .. }: &One) -> String {
    let total = tallies.total();
    let [p50, p99] = [0.5, 0.99].map(|share| total.latency.quantile(share));
    let (calls, errors, data) = (total.calls(), total.errors, bytes(total.bytes));
    format!("            {name}: {calls} calls, {errors} errors, {data}, p50 {p50}, p99 {p99}\n")
}

/// How data are made stable, what the calls are for, and what the capture lacks.
fn character(analyzer: &Analyzer) -> String {
    let totals = analyzer.totals();
    let calls = [stability(totals.sync), purposes(totals), security(totals.guards)];
    calls.concat() + &losses(analyzer)
}

fn stability(sync: trace::Sync) -> String {
    let writes: u64 = sync.writes.iter().sum();
    if writes == 0 {
        return String::new();
    }
    let [stable, small] =
        [sync.writes[1] + sync.writes[2], sync.small_writes].map(|part| percent(part, writes));
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let commits = sync.commits as f64 / mebibytes(sync.written_bytes).max(1e-9);
    format!(
        "sync        {stable:.0} % of WRITEs stable, {commits:.3} COMMITs per MiB, {small:.0} % of \
         WRITEs under 4 KiB\n"
    )
}

fn purposes(totals: &Totals) -> String {
    let [attributes, links] = [Kind::Attributes, Kind::Readlink].map(|kind| {
        let all = totals.operations().filter(|(operation, _)| operation.kind() == kind);
        percent(all.map(|(_, total)| total.calls).sum(), totals.calls())
    });
    let storm = if attributes > 60.0 { " (an attribute storm)" } else { "" };
    format!("calls for   attributes {attributes:.0} %{storm}, symbolic links {links:.0} %\n")
}

fn security(guards: Guards) -> String {
    let Guards { authentication, integrity, privacy } = guards;
    if authentication + integrity + privacy == 0 {
        return String::new();
    }
    let hidden = match privacy {
        0 => "",
        _ => ": encrypted, so that of them only times and procedures are seen",
    };
    format!(
        "security    calls with krb5 {authentication}, krb5i {integrity}, krb5p {privacy}{hidden}\n"
    )
}

fn losses(analyzer: &Analyzer) -> String {
    let sum = |count: fn(&Flow) -> u64| -> u64 {
        analyzer.flows().admitted().map(|(_, flow)| count(flow)).sum()
    };
    let losses = format!(
        "losses      calls retransmitted {}, replies twice {}, without call {}, calls without \
         reply {}; TCP segments retransmitted {}, bytes missing {}\n",
        sum(|flow| flow.retransmissions),
        sum(|flow| flow.duplicate_replies),
        sum(|flow| flow.unasked_replies),
        analyzer.totals().unanswered,
        sum(|flow| flow.streams.again),
        sum(|flow| flow.streams.missing_bytes),
    );
    losses + &encrypted(sum(|flow| flow.tls)) + &cut(sum(|flow| flow.streams.cut))
}

/// What the capture has, and nobody can read.
fn encrypted(tls: u64) -> String {
    if tls == 0 {
        return String::new();
    }
    let connections = counted(tls, "connection");
    format!("tls         {connections} went over to TLS (RFC 9289): their calls are encrypted\n")
}

fn cut(times: u64) -> String {
    if times == 0 {
        return String::new();
    }
    format!(
        "cut         {times} times a message began in what the capture does not hold of a packet: \
         calls and replies there were not seen, and calls outstanding are too many (tcpdump -s 0 \
         captures whole packets)\n"
    )
}

fn files(analyzer: &Analyzer) -> String {
    let busiest = analyzer.files().busiest(FEW);
    if busiest.is_empty() {
        return String::new();
    }
    let lines =
        busiest.into_iter().map(|(id, usage)| file_line(&analyzer.files().path(id), &usage));
    let lines: String = lines.collect();
    format!("\nfiles       {}; the busiest:\n{lines}", analyzer.files().count())
}

fn file_line(path: &str, usage: &Usage) -> String {
    let (calls, [read, written]) =
        (usage.calls, [usage.read_bytes, usage.written_bytes].map(bytes));
    format!("            {path}: {calls} calls, read {read}, written {written}\n")
}

/// Columns before a sentence: what it is about, in the first line of several.
const NAME_WIDTH: usize = 12;

/// What a reader takes home: of what, and the sentences.
pub(super) fn findings(seen: &Seen) -> Vec<(String, Vec<String>)> {
    let analyzer = &seen.analyzer;
    let said = [super::verdict::lines(seen), copies(seen), pace(analyzer)];
    let why = [character(analyzer), gaps(analyzer), explained(seen)];
    grouped(&(said.concat() + &why.concat()))
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
