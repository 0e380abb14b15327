//! The transactions of `nfskit trace --csv`, of one connection.
//!
//! NULL calls and calls to other programs than NFS are left out, as `nfskit trace --explain` does.

use perf::model::trace::{TRANSACTIONS_MAX, Transaction, Work};

use super::{Names, SourceError, choose, csv};

const COLUMNS: [&str; 9] = [
    "call_s",
    "reply_s",
    "latency_us",
    "client",
    "client_port",
    "server",
    "operation",
    "bytes",
    "stable",
];

/// Transactions of all connections that are looked at before one is chosen.
const LINES_MAX: usize = 16 * TRANSACTIONS_MAX;

pub(super) fn is_csv(text: &str) -> bool {
    text.starts_with("call_s,reply_s,")
}

pub(super) fn of_csv(text: &str, of: Option<&str>) -> Result<Vec<Transaction>, SourceError> {
    let mut rows = csv::rows(text);
    let columns = csv::columns(rows.next(), COLUMNS)?;
    let mut connections = Names::default();
    let mut found: Vec<(usize, Call)> = Vec::new();
    for fields in rows.take(LINES_MAX) {
        let fields = fields?;
        let Some((connection, call)) = call(fields.0, csv::picked(&fields, columns)?)? else {
            continue;
        };
        found.push((connections.number(connection), call));
    }
    let own = choose("connections", &connections.names, of)?;
    found.retain(|(connection, _)| *connection == own);
    let begin = found.iter().map(|(_, call)| call.sent).min().unwrap_or_default();
    let us = |nanos: u64| (nanos - begin) as f64 / 1e3;
    let transaction = |(_, Call { sent, answered, bytes, work }): (usize, Call)| Transaction {
        sent_us: us(sent),
        answered_us: us(answered),
        bytes,
        work,
    };
    Ok(found.into_iter().map(transaction).collect())
}

/// A transaction, in nanoseconds since 1970.
struct Call {
    sent: u64,
    answered: u64,
    bytes: u64,
    work: Work,
}

/// A row with the name of its connection; none for what is left out.
fn call(
    row: usize,
    [call, reply, latency, client, port, server, operation, bytes, stable]: [&str; 9],
) -> Result<Option<(String, Call)>, String> {
    // Other programs have a point in their name. Without a latency the times are not known.
    if operation == "NULL" || operation.contains('.') || latency.is_empty() {
        return Ok(None);
    }
    let (sent, answered) = (nanos(row, "call_s", call)?, nanos(row, "reply_s", reply)?);
    if answered <= sent {
        return Err(format!("row {row}: the reply is not after the call"));
    }
    let (bytes, stable) = (whole(row, "bytes", bytes)?, whole(row, "stable", stable)?);
    let is_stable = operation == "COMMIT" || (operation == "WRITE" && stable > 0);
    let work = if is_stable { Work::Stable } else { Work::Memory };
    let connection = format!("{} to {server}", end(client, port));
    Ok(Some((connection, Call { sent, answered, bytes, work })))
}

fn whole(row: usize, name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| wrong(row, name, text, "a whole number"))
}

fn wrong(row: usize, name: &str, text: &str, what: &str) -> String {
    let text: String = text.chars().take(30).collect();
    format!("row {row}: {name} is {text:?}: it has to be {what}")
}

/// An address with its port.
fn end(address: &str, port: &str) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// Seconds since 1970 to the nanosecond, of which a float would lose hundreds.
fn nanos(row: usize, name: &str, text: &str) -> Result<u64, String> {
    let wrong = || wrong(row, name, text, "a number of seconds");
    let (secs, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(fraction) || fraction.len() > 9 {
        return Err(wrong());
    }
    let secs: u64 = secs.parse().map_err(|_| wrong())?;
    let nanos: u64 = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
    secs.checked_mul(1_000_000_000).and_then(|all| all.checked_add(nanos)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "call_s,reply_s,latency_us,client,client_port,server,transport,version,\
        xid,operation,status,file,offset,count,bytes,stable,call_len,reply_len,retransmissions,\
        outstanding,call_frame,reply_frame\n";

    fn line(call: &str, reply: &str, client: &str, operation: &str, stable: &str) -> String {
        format!(
            "{call},{reply},1,{client},1,s:2049,tcp,3,0x1,{operation},0,f,0,0,8192,{stable},0,0,0,1,\
             7,9\n"
        )
    }

    #[test]
    fn transactions_of_one_connection_are_read_to_the_nanosecond() {
        let mut text = HEADING.to_owned();
        text += &line("1700000000.000001000", "1700000000.000201500", "c", "WRITE", "2");
        text += &line("1700000000.000000000", "1700000000.5", "c", "READ", "0");
        text += &line("1700000000.1", "1700000000.2", "c", "NULL", "0");
        text += &line("1700000000.1", "1700000000.2", "c", "MOUNT.MNT", "0");
        let read = of_csv(&text, None).unwrap();
        let write =
            Transaction { sent_us: 1.0, answered_us: 201.5, bytes: 8192, work: Work::Stable };
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], write);
        assert_eq!((read[1].sent_us, read[1].work), (0.0, Work::Memory));
        text += &line("1700000000.1", "1700000000.2", "d", "READ", "0");
        // The capture lost an end of this one.
        let unknown = line("1700000000.1", "1700000000.1", "c", "READ", "0");
        text += &unknown.replacen(",1,c", ",,c", 1);
        let which = "there are 2 connections: choose with --of, of c:1 to s:2049, d:1 to s:2049";
        assert_eq!(of_csv(&text, None), Err(SourceError::Several(which.to_owned())));
        assert_eq!(of_csv(&text, Some("d:1")).unwrap().len(), 1);
    }

    #[test]
    fn bad_rows_are_reported_with_their_reason() {
        let error = |row: &str| of_csv(&format!("{HEADING}{row}"), None).unwrap_err().to_string();
        assert!(error("").contains("0 connections"));
        assert_eq!(
            error(&line("2", "1", "c", "READ", "0")),
            "row 2: the reply is not after the call"
        );
        assert!(error(&line("-2", "1", "c", "READ", "0")).contains("row 2: call_s is \"-2\""));
        assert!(error(&line("NaN", "1", "c", "READ", "0")).contains("row 2: call_s is \"NaN\""));
        assert!(error(&line("1", "2.x", "c", "READ", "0")).contains("row 2: reply_s is \"2.x\""));
        assert!(error(&line("1", "2", "c", "WRITE", "")).contains("row 2: stable is \"\""));
        assert!(error("1,2\n").contains("row 2: at least 16 fields are needed, got 2"));
        assert!(error(&line("99999999999999", "2", "c", "READ", "0")).contains("row 2: call_s"));
    }
}
