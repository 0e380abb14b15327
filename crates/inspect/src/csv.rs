//! `--csv`: a line for every transaction.

use std::io;
use std::path::{Path, PathBuf};

use harness::csv::Rows;
use harness::exit::Failure;
use harness::output;
use harness::sink::Sink;
use trace::{Files, Flows, Transaction};

use super::row::{self, Who};

const COLUMNS: &str = "call_s,reply_s,latency_us,client,client_port,server,transport,version,xid,\
                       operation,status,file,offset,count,bytes,stable,call_len,reply_len,\
                       retransmissions,outstanding,call_frame,reply_frame";

pub(super) struct Csv {
    path: PathBuf,
    rows: Rows<Sink>,
}

impl Csv {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let out = Sink::create(path).map_err(|cause| output::cannot_write(path, &cause))?;
        Ok(Self { path: path.to_owned(), rows: Rows::new(out, COLUMNS) })
    }

    pub(super) fn line(&mut self, transaction: &Transaction, files: &Files, flows: &Flows) {
        let Transaction { operation, offset, count, bytes, .. } = transaction;
        let Who { client, client_port, server, transport } = row::who(transaction, flows);
        let latency =
            transaction.latency().map(|latency| format!("{:.3}", latency.as_micros_f64()));
        self.rows.add((
            (seconds(transaction.call_ns), seconds(transaction.reply_ns), latency),
            (client, client_port, server, transport),
            (transaction.version, format!("{:#x}", transaction.xid)),
            (operation.to_string(), row::status(transaction)),
            (files.path(transaction.file), offset, count, bytes, transaction.stable),
            (transaction.call_len, transaction.reply_len),
            (transaction.retransmissions, transaction.outstanding),
            (transaction.call_frame, transaction.reply_frame),
        ));
    }

    pub(super) fn end(self) -> Result<(), Failure> {
        match self.rows.end().and_then(Sink::end) {
            // Who read it wants no more.
            Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            ended => ended.map_err(|cause| output::cannot_write(&self.path, &cause)),
        }
    }
}

/// Seconds since 1970, to the nanosecond.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
