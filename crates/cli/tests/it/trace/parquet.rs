//! `--parquet`: the rows of `--csv`, with types.

use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};

use super::captured;
use crate::program::run;
use crate::rpc::NULL;

/// A row as `--csv` writes it.
fn line(row: &Row) -> String {
    let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let text = |column: usize| row.get_string(column).unwrap().clone();
    let number = |column: usize| row.get_uint(column).unwrap().to_string();
    let status = if row.get_string(10).is_ok() { text(10) } else { String::new() };
    [
        seconds(row.get_long(0).unwrap()),
        seconds(row.get_long(1).unwrap()),
        format!("{:.3}", row.get_double(2).unwrap()),
        text(3),
        row.get_ushort(4).unwrap().to_string(),
        text(5),
        text(6),
        number(7),
        format!("{:#x}", row.get_uint(8).unwrap()),
        text(9),
        status,
        text(11),
        row.get_ulong(12).unwrap().to_string(),
        number(13),
        number(14),
        row.get_ubyte(15).unwrap().to_string(),
        number(16),
        number(17),
        row.get_ushort(18).unwrap().to_string(),
        number(19),
        row.get_ulong(20).unwrap().to_string(),
        row.get_ulong(21).unwrap().to_string(),
    ]
    .join(",")
}

#[test]
fn a_row_for_every_transaction_is_the_line_of_the_csv() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, rows) = (folder.path().join("link.pcap"), folder.path().join("calls.parquet"));
    captured(&capture, |connection| {
        connection.is_served();
        connection.creates(b"f");
        for _ in 0..20 {
            connection.call(NULL, &[]);
        }
    });
    let capture = capture.to_str().unwrap();
    let finished = run(["trace", capture, "--parquet", rows.to_str().unwrap(), "--csv", "-"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut lines = finished.stdout.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let file = SerializedFileReader::new(File::open(&rows).unwrap()).unwrap();
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names[2..], head[2..]);
    assert_eq!(names[..2], ["call_ns", "reply_ns"]);
    let read: Vec<String> =
        file.get_row_iter(None).unwrap().map(|row| line(&row.unwrap())).collect();
    assert_eq!(read, lines.collect::<Vec<&str>>());
    assert!(read.len() > 20 && read.iter().any(|row| row.contains(",CREATE,0,")), "{read:?}");
    // Where nothing was found, there are no rows, and it is a file nevertheless.
    let finished =
        run(["trace", capture, "--operation", "READ", "--parquet", rows.to_str().unwrap()]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let file = SerializedFileReader::new(File::open(&rows).unwrap()).unwrap();
    assert_eq!(file.get_row_iter(None).unwrap().count(), 0);
}

#[test]
fn a_file_that_cannot_be_written_is_reported_before_the_capture_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (nowhere, other) = (folder.path().join("no/such/folder/x"), folder.path().join("other"));
    // The capture is none: if it were read first, that would be reported.
    let text = folder.path().join("text");
    std::fs::write(&text, "no capture").unwrap();
    let text = text.to_str().unwrap();
    for option in ["--parquet", "--csv", "--json", "--html", "--mix"] {
        let finished = run(["trace", text, option, nowhere.to_str().unwrap()]);
        finished.complains(3, &["cannot write", "no/such/folder/x"]);
        // And what could be written is not there when there was nothing to write.
        let finished = run(["trace", text, option, other.to_str().unwrap()]);
        finished.complains(3, &["is not a capture"]);
        assert!(!other.exists(), "{option}");
    }
    run(["trace", text, "--csv", "-", "--json", "-"]).complains(2, &["more than one output"]);
}

#[test]
fn a_full_disk_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("link.pcap");
    captured(&capture, |connection| connection.is_served());
    let finished = run(["trace", capture.to_str().unwrap(), "--parquet", "/dev/full", "-q"]);
    finished.complains(3, &["cannot write /dev/full", "No space left"]);
}
