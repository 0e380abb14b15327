//! `--csv`: a line for every transaction.

use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};

use harness::exit::Failure;
use harness::output;
use harness::sink::Sink;
use trace::{Files, Talks, Transaction};

use super::row::{self, Who};

const HEAD: &str = "call_s,reply_s,latency_us,client,client_port,server,transport,version,xid,\
                    operation,status,file,offset,count,bytes,stable,call_len,reply_len,\
                    retransmissions,outstanding,call_frame,reply_frame\n";

pub(super) struct Csv {
    path: PathBuf,
    out: BufWriter<Sink>,
    /// Told at the end: lines are many.
    failed: Option<io::Error>,
}

impl Csv {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let out = Sink::create(path).map_err(|cause| output::cannot_write(path, &cause))?;
        let out = BufWriter::with_capacity(1 << 20, out);
        let mut csv = Self { path: path.to_owned(), out, failed: None };
        csv.keep(HEAD.as_bytes());
        Ok(csv)
    }

    pub(super) fn line(&mut self, transaction: &Transaction, files: &Files, talks: &Talks) {
        let Transaction { operation, offset, count, bytes, .. } = transaction;
        let Who { client, client_port, server, transport } = row::who(transaction, talks);
        let latency =
            transaction.latency().map(|latency| format!("{:.3}", latency.as_micros_f64()));
        let status = row::status(transaction).unwrap_or_default();
        let line = format!(
            "{},{},{},{client},{client_port},{server},{transport},{},{:#x},{operation},{status},{},\
             {offset},{count},{bytes},{},{},{},{},{},{},{}\n",
            seconds(transaction.call_ns),
            seconds(transaction.reply_ns),
            latency.unwrap_or_default(),
            transaction.version,
            transaction.xid,
            output::field(&files.path(transaction.file)),
            transaction.stable,
            transaction.call_len,
            transaction.reply_len,
            transaction.retransmissions,
            transaction.outstanding,
            transaction.call_frame,
            transaction.reply_frame,
        );
        self.keep(line.as_bytes());
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(bytes).err();
        }
    }

    pub(super) fn end(self) -> Result<(), Failure> {
        let ended = match self.failed {
            Some(cause) => Err(cause),
            None => self.out.into_inner().map_err(IntoInnerError::into_error).and_then(Sink::end),
        };
        match ended {
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
