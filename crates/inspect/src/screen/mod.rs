//! One screen of what a capture says.

mod pace;

use std::collections::BTreeSet;

use harness::records::known;
use perf::units::Nanos;
use perf::words::counted;
use trace::capture::Place;
use trace::{
    Analyzer, Cut, Filter, Flow, Flows, Guards, Host, Kind, Operation, OperationTotal, SetBack,
    Totals, Usage,
};

pub(crate) use self::pace::longest;
use self::pace::{gaps, pace};
use super::amounts::{bytes, mebibytes, percent, rate};
use super::sides::{One, Side, sides};
use crate::seen::Seen;

/// Lines of a table.
const ROWS_MAX: usize = 12;
/// Lines of the shorter ones.
const FEW: usize = 5;

pub(super) fn text(seen: &Seen) -> String {
    let (head, analyzer) = (head(seen), &seen.analyzer);
    if analyzer.totals().calls() == 0 {
        return head + &nothing(seen);
    }
    let what = [super::verdict::lines(seen), copies(seen), operations(analyzer), pace(analyzer)];
    let why = [character(analyzer), gaps(analyzer), files(analyzer), explained(seen)];
    head + &what.concat() + &why.concat()
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
    format!("capture     {files}{packets} packets, {size}, {span}\n") + &set_back(&seen.analyzer)
}

/// That times are not all of one clock.
fn set_back(analyzer: &Analyzer) -> String {
    let SetBack { times: times @ 1.., ns, frame, .. } = analyzer.set_back() else {
        return String::new();
    };
    let (times, by) = (counted(times, "time"), Nanos::from_nanos(ns));
    format!(
        "clock       set back {times}, by {by} in all, first at frame {frame}: later times go on \
         from the packet before, and times across it are not known\n"
    )
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
fn nothing(seen: &Seen) -> String {
    let analyzer = &seen.analyzer;
    if let calls @ 1.. = analyzer.totals().left_out {
        // What no selection of operations and files leaves out.
        let rest = [super::verdict::lines(seen), pace(analyzer), gaps(analyzer)].concat();
        return format!("none of {calls} calls is selected by {}\n{rest}", selection(analyzer));
    }
    let (connections, _) = analyzer.connections();
    let tcp = (connections > 0)
        .then(|| format!("{} without RPC", counted(connections as u64, "connection")));
    let others = analyzer.others().map(|(sort, count)| sorted(sort, count));
    let others: Vec<String> = others.chain(tcp).collect();
    let all = match (&others[..], &seen.notes[..]) {
        ([], []) => "there are no packets".to_owned(),
        ([], _) => "there are no packets that can be read".to_owned(),
        _ => others.join(", "),
    };
    if let Some(why) = super::verdict::one_way(analyzer.one_way()) {
        return format!("no calls found: {why}\n");
    }
    if let Some(why) = super::verdict::fragmented(analyzer) {
        return format!("no calls found: {why}\n");
    }
    format!("no NFS found: {all}\n{}", cut_off(analyzer.cut()))
}

fn sorted(sort: &str, count: u64) -> String {
    let packets = if count == 1 { "packet" } else { "packets" };
    match sort {
        "damaged" => format!("{count} damaged {packets}"),
        "cut off" => format!("{count} {packets} cut off before the end of their headers"),
        _ => format!("{count} {packets} of {sort}"),
    }
}

/// That too little was captured of each packet.
fn cut_off(Cut { packets, captured_max }: Cut) -> String {
    if packets == 0 {
        return String::new();
    }
    format!(
        "cut         of {} only {captured_max} bytes at most were captured: tcpdump -s 256 keeps \
         heads and times, tcpdump -s 0 whole packets\n",
        counted(packets, "packet")
    )
}

/// The arguments by which calls are selected.
fn selection(analyzer: &Analyzer) -> String {
    let Filter { clients, servers, operations, file, from_ns, until_ns } = analyzer.filter();
    let listed = |name: &str, values: Vec<String>| {
        (!values.is_empty()).then(|| format!("--{name} {}", values.join(",")))
    };
    let hosts = |hosts: &[Host]| hosts.iter().map(ToString::to_string).collect();
    let time = |ns: &Option<u64>| ns.map(|ns| Nanos::from_nanos(ns).to_string());
    let all = [
        listed("client", hosts(clients)),
        listed("server", hosts(servers)),
        listed("operation", operations.clone()),
        listed("file", file.iter().cloned().collect()),
        listed("from", time(from_ns).into_iter().collect()),
        listed("until", time(until_ns).into_iter().collect()),
    ];
    all.into_iter().flatten().collect::<Vec<String>>().join(" ")
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
    // Where all happened at one moment there is no rate.
    let per_s = match span {
        Nanos::ZERO => String::new(),
        span => format!(" ({:.0}/s)", rate(calls, span)),
    };
    format!("calls       {calls} in {span}{per_s}; {counts}\n")
}

fn operations_table(totals: &Totals) -> String {
    let mut rows: Vec<_> = totals.operations().collect();
    rows.sort_by_key(|(operation, total)| (std::cmp::Reverse(total.calls), *operation));
    let heads = ["operation", "calls", "errors", "retr.", "data", "mean", "p50", "p99", "max"];
    let shown = rows.iter().take(ROWS_MAX);
    let lines = shown.map(|(operation, total)| {
        operation_line(&operation_cells(row_name(operation, &rows), total))
    });
    let table = operation_line(&heads.map(str::to_owned)) + &lines.collect::<String>();
    let more = match rows.len() {
        ..=ROWS_MAX => String::new(),
        all => format!("and {} more operations (--json)\n", all - ROWS_MAX),
    };
    let untimed = rows.iter().map(|(_, total)| total.untimed).sum();
    format!("\n{table}{more}{}", without_times(untimed, totals.replies()))
}

/// With its version, where another has an operation of that name.
fn row_name(operation: &Operation, rows: &[(Operation, &OperationTotal)]) -> String {
    let name = operation.to_string();
    let is_alone = rows.iter().filter(|(other, _)| other.to_string() == name).count() < 2;
    match operation.program.name().strip_prefix("NFS ") {
        Some(version) if !is_alone => format!("{name} {version}"),
        _ => name,
    }
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

fn operation_cells(name: String, total: &OperationTotal) -> [String; 9] {
    let [calls, errors, again] =
        [total.calls, total.errors, total.retransmissions].map(|count| count.to_string());
    let data = if total.bytes > 0 { bytes(total.bytes) } else { "-".to_owned() };
    let max = Nanos::from_nanos(total.latency_ns_max);
    let [mean, max] = [total.latency_mean(), max].map(|time| timed(total, time));
    let [p50, p99] = [0.5, 0.99].map(|share| known(total.latency_at(share)));
    [name, calls, errors, again, data, mean, p50, p99, max]
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
    let [p50, p99] = [0.5, 0.99].map(|share| known(total.latency.quantile_if_known(share)));
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
        return match sync.unknown {
            0 => String::new(),
            unknown => format!(
                "sync        not known: of {unknown} WRITEs the arguments were not captured \
                 (tcpdump -s 256)\n"
            ),
        };
    }
    let [stable, small] =
        [sync.writes[1] + sync.writes[2], sync.small_writes].map(|part| percent(part, writes));
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let per_mib = |bytes: u64| sync.commits as f64 / mebibytes(bytes);
    // Where nothing was written, or not captured how much, there is no rate.
    let commits = match (sync.written_bytes, sync.unknown) {
        (bytes @ 1.., 0) => format!(" {:.3} COMMITs per MiB,", per_mib(bytes)),
        _ => String::new(),
    };
    let of = match sync.unknown {
        0 => String::new(),
        unknown => format!(", of {writes} of {} whose arguments were captured", writes + unknown),
    };
    format!(
        "sync        {stable:.0} % of WRITEs stable,{commits} {small:.0} % of WRITEs under 4 \
         KiB{of}\n"
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
         reply {}; TCP segments retransmitted {}, lost before the capture {}, bytes missing {}\n",
        sum(|flow| flow.retransmissions),
        sum(|flow| flow.duplicate_replies),
        sum(|flow| flow.unsolicited_replies),
        analyzer.totals().unanswered,
        sum(|flow| flow.streams.again),
        sum(|flow| flow.streams.filled),
        sum(|flow| flow.streams.missing_bytes),
    );
    let cut = cut(sum(|flow| flow.streams.cut)) + &unread(analyzer) + &nameless(analyzer.totals());
    losses + &encrypted(sum(|flow| flow.tls)) + &cut
}

/// Connections of which so little was captured that nothing in them can be read: they are in no
/// count but this.
fn unread(analyzer: &Analyzer) -> String {
    let (Cut { packets, captured_max }, unread) = (analyzer.cut(), analyzer.unread_connections());
    let headless = analyzer.others().find(|(sort, _)| *sort == "cut off").map_or(0, |(_, n)| n);
    if packets == 0 || unread as u64 + headless == 0 {
        return String::new();
    }
    let connections = counted(unread as u64, "connection");
    let headless = match headless {
        0 => String::new(),
        packets => format!(", and {} lack the end of their headers", counted(packets, "packet")),
    };
    format!(
        "unread      {connections} carried data of which no call could be read{headless}: of {} \
         only {captured_max} bytes at most were captured (tcpdump -s 256 keeps heads and times)\n",
        counted(packets, "packet")
    )
}

/// COMPOUNDs that have no better name, for want of bytes.
fn nameless(totals: &Totals) -> String {
    if totals.v4_cut == 0 {
        return String::new();
    }
    format!(
        "cut         the operations of {} were cut off: which one it is for is not known \
         (tcpdump -s 512 captures it)\n",
        counted(totals.v4_cut, "COMPOUND")
    )
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
         calls and replies there were not seen (tcpdump -s 0 captures whole packets)\n"
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
    let relayed = relayed(analyzer.flows());
    let what = [super::verdict::lines(seen), copies(seen), relayed, pace(analyzer)];
    let why = [character(analyzer), gaps(analyzer), explained(seen)];
    grouped(&(what.concat() + &why.concat()))
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

#[cfg(test)]
mod tests {
    use trace::capture::{Link, Packet};

    use super::*;

    /// The lines for packets of raw IP that each have so many bytes more on the wire, by this
    /// selection.
    fn lines_of(packets: &[Vec<u8>], lacking: u32, filter: Filter) -> String {
        let mut analyzer = Analyzer::new(filter);
        for (frame, data) in (1..).zip(packets) {
            let wire_len = u32::try_from(data.len()).unwrap() + lacking;
            let (at_ns, place, link) = (0, Place::default(), Link::Raw);
            analyzer
                .packet(&Packet { frame, at_ns, place, link, wire_len, data }, &mut |_, _, _| {});
        }
        analyzer.end();
        text(&Seen::of(analyzer, 0, Vec::new(), Vec::new()))
    }

    /// A datagram with a NULL call of NFS version 3, and its reply.
    fn null() -> [Vec<u8>; 2] {
        let words = |words: &[u32]| words.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
        let call = words(&[7, 0, 2, 100_003, 3, 0, 0, 0, 0, 0]);
        let reply = words(&[7, 1, 0, 0, 0, 0]);
        let datagram = |[from, to]: [u16; 2], message: Vec<u8>| {
            let len = u16::try_from(message.len()).unwrap();
            let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
            ip[2..4].copy_from_slice(&(28 + len).to_be_bytes());
            let hosts = [from, to].map(|port| if port == 2049 { 2 } else { 1 });
            hosts.iter().for_each(|host| ip.extend([10, 0, 0, *host]));
            [from, to, 8 + len, 0].iter().for_each(|half| ip.extend(half.to_be_bytes()));
            [ip, message].concat()
        };
        [datagram([900, 2049], call), datagram([2049, 900], reply)]
    }

    #[test]
    fn a_selection_of_nothing_is_no_capture_without_calls() {
        let operations = vec!["MKNOD".to_owned()];
        let selected = lines_of(&null(), 0, Filter { operations, ..Filter::default() });
        let (_, selected) = selected.split_once('\n').unwrap();
        let none = "none of 1 calls is selected by --operation MKNOD\n";
        assert!(selected.starts_with(none) && selected.contains("pace  "), "{selected}");
        let all = lines_of(&null(), 0, Filter::default());
        assert!(all.contains("calls       1 in 0 ns; 1 client, 1 server, 1 connection\n"), "{all}");
    }

    #[test]
    fn rows_of_one_name_have_their_version() {
        let of_v2 = null().map(|mut packet| {
            let is_call = packet[21] == 132;
            packet[31] = 8;
            packet[47] = if is_call { 2 } else { packet[47] };
            packet
        });
        let rows = |packets: &[Vec<u8>]| -> Vec<String> {
            let all = lines_of(packets, 0, Filter::default());
            let rows = all.lines().filter(|line| line.starts_with("NULL"));
            rows.map(|line| line.get(..16).unwrap_or_default().trim_end().to_owned()).collect()
        };
        assert_eq!(rows(&null()), ["NULL"]);
        assert_eq!(rows(&[null(), of_v2].concat()), ["NULL v2", "NULL v3"]);
    }

    #[test]
    fn packets_that_were_cut_off_too_early_are_no_damage_and_the_remedy_is_named() {
        let packets = null().map(|packet| packet[..24].to_vec());
        let cut = lines_of(&packets, 60, Filter::default());
        let what = "no NFS found: 2 packets cut off before the end of their headers\ncut         of 2 \
                    packets only 24 bytes at most were captured: tcpdump -s 256";
        assert!(cut.contains(what), "{cut}");
        let damaged = lines_of(&packets, 0, Filter::default());
        assert!(damaged.ends_with("no NFS found: 2 damaged packets\n"), "{damaged}");
    }

    #[test]
    fn connections_that_were_cut_too_short_are_named_beside_those_that_were_not() {
        // TCP of which the first bytes of a call were captured, beside datagrams that are whole.
        let mut ip = vec![0x45, 0, 1, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 7, 10, 0, 0, 2];
        ip.extend([3, 0x84, 8, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        ip.extend([0x80, 0, 0, 0xd4]);
        let mut analyzer = Analyzer::new(Filter::default());
        let mut take = |frame, data: &[u8], wire_len| {
            let (at_ns, place, link) = (frame, Place::default(), Link::Raw);
            let packet = Packet { frame, at_ns, place, link, wire_len, data };
            analyzer.packet(&packet, &mut |_, _, _| {});
        };
        for (frame, data) in (1..).zip(null()) {
            take(frame, &data, u32::try_from(data.len()).unwrap());
        }
        take(3, &ip, 256);
        analyzer.end();
        assert_eq!(analyzer.unread_connections(), 1);
        let text = text(&Seen::of(analyzer, 0, Vec::new(), Vec::new()));
        let expected = "unread      1 connection carried data of which no call could be read: of 1 \
                        packet only 44 bytes at most were captured (tcpdump -s 256";
        assert!(text.contains(expected), "{text}");
        let whole = lines_of(&null(), 0, Filter::default());
        assert!(!whole.contains("unread"), "{whole}");
    }

    #[test]
    fn rates_of_what_was_not_captured_or_not_written_are_left_out() {
        let sync = trace::Sync { writes: [4, 0, 0], commits: 2, ..trace::Sync::default() };
        let whole = stability(trace::Sync { written_bytes: 4 << 20, ..sync });
        assert_eq!(
            whole.trim_start_matches("sync").trim(),
            "0 % of WRITEs stable, 0.500 COMMITs per MiB, \
                    0 % of WRITEs under 4 KiB"
        );
        let failed = stability(sync);
        assert!(!failed.contains("COMMIT") && failed.contains("0 % of WRITEs stable"), "{failed}");
        let some = stability(trace::Sync { written_bytes: 4 << 20, unknown: 6, ..sync });
        assert!(some.contains("of 4 of 10 whose") && !some.contains("COMMIT"), "{some}");
        let none = stability(trace::Sync { writes: [0; 3], unknown: 6, ..sync });
        assert!(none.contains("not known: of 6 WRITEs"), "{none}");
    }

    #[test]
    fn lines_beneath_a_name_are_about_it() {
        let text = "\nverdict     the disk  is slow\nevidence    one\n            two\n\n\
                    round trip  6 us\n";
        let expected = [
            ("verdict", &["the disk is slow"][..]),
            ("evidence", &["one", "two"]),
            ("round trip", &["6 us"]),
        ];
        let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
        let expected = expected.map(|(name, lines)| (name.to_owned(), owned(lines)));
        assert_eq!(grouped(text), expected);
    }
}
