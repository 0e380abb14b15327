//! `--parquet`: a row for every transaction, in the columns of `--csv`, each with its type.
//!
//! Rows are kept by column until there are [`ROWS`], which make a row group: the unit in which
//! engines read, skip and share out. So memory does not grow with the capture, but for a few
//! hundred bytes of each group's summary, which stand at the end of the file.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::exit::Failure;
use harness::output;
use harness::sink::Sink;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use trace::{Files, FlowId, Flows, Operation, Transaction};

use super::row::{self, Who};

/// Rows of a group: as DuckDB makes them, and some 15 MB while they are kept.
const ROWS: usize = 1 << 17;

const SCHEMA: &str = "message calls {
    required int64 call_ns;
    required int64 reply_ns;
    optional double latency_us;
    required binary client (STRING);
    required int32 client_port (INTEGER(16,false));
    required binary server (STRING);
    required binary transport (STRING);
    required int32 version (INTEGER(32,false));
    required int32 xid (INTEGER(32,false));
    required binary operation (STRING);
    optional binary status (STRING);
    required binary file (STRING);
    required int64 offset (INTEGER(64,false));
    required int32 count (INTEGER(32,false));
    required int32 bytes (INTEGER(32,false));
    required int32 stable (INTEGER(8,false));
    required int32 call_len (INTEGER(32,false));
    required int32 reply_len (INTEGER(32,false));
    required int32 retransmissions (INTEGER(16,false));
    required int32 outstanding (INTEGER(32,false));
    required int64 call_frame (INTEGER(64,false));
    required int64 reply_frame (INTEGER(64,false));
}";

type Out = SerializedFileWriter<Sink>;

pub(super) struct Parquet {
    path: PathBuf,
    sink: Sink,
    /// None when writing has failed.
    out: Option<Out>,
    columns: Columns,
    /// Names that come again and again.
    ends: HashMap<FlowId, Names>,
    operations: HashMap<Operation, ByteArray>,
    failed: Option<ParquetError>,
}

/// Those of a connection.
struct Names {
    client: ByteArray,
    client_port: u16,
    server: ByteArray,
    transport: ByteArray,
}

/// The rows of a group.
#[derive(Default)]
struct Columns {
    call_ns: Vec<i64>,
    reply_ns: Vec<i64>,
    latency_us: Vec<f64>,
    /// 1 where it is known.
    has_latency: Vec<i16>,
    client: Vec<ByteArray>,
    client_port: Vec<i32>,
    server: Vec<ByteArray>,
    transport: Vec<ByteArray>,
    version: Vec<i32>,
    xid: Vec<i32>,
    operation: Vec<ByteArray>,
    status: Vec<ByteArray>,
    /// 1 where there is a status.
    has_status: Vec<i16>,
    file: Vec<ByteArray>,
    offset: Vec<i64>,
    count: Vec<i32>,
    bytes: Vec<i32>,
    stable: Vec<i32>,
    call_len: Vec<i32>,
    reply_len: Vec<i32>,
    retransmissions: Vec<i32>,
    outstanding: Vec<i32>,
    call_frame: Vec<i64>,
    reply_frame: Vec<i64>,
}

impl Parquet {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let no = |cause: io::Error| output::cannot_write(path, &cause);
        let sink = Sink::create(path).map_err(no)?;
        let out = sink.another().map_err(no)?;
        let schema = parse_message_type(SCHEMA).map(Arc::new);
        let out = schema.and_then(|schema| SerializedFileWriter::new(out, schema, properties()));
        Ok(Self {
            path: path.to_owned(),
            sink,
            out: Some(out.map_err(|error| cannot_write(path, &error))?),
            columns: Columns::default(),
            ends: HashMap::new(),
            operations: HashMap::new(),
            failed: None,
        })
    }

    pub(super) fn row(&mut self, transaction: &Transaction, files: &Files, flows: &Flows) {
        if self.out.is_none() {
            return;
        }
        let ends = self.ends.entry(transaction.flow).or_insert_with(|| {
            let Who { client, client_port, server, transport } = row::who(transaction, flows);
            Names {
                client: client.as_str().into(),
                client_port,
                server: server.as_str().into(),
                transport: transport.into(),
            }
        });
        let operation = transaction.operation;
        let name = self.operations.entry(operation);
        let name = name.or_insert_with(|| operation.to_string().as_str().into()).clone();
        self.columns.push(transaction, ends, name, files);
        if self.columns.len() >= ROWS {
            self.flush();
        }
    }

    /// Writes a group.
    fn flush(&mut self) {
        let Some(out) = &mut self.out else { return };
        if let Err(error) = self.columns.write(out) {
            self.failed = Some(error);
            self.out = None;
        }
        self.columns.clear();
    }

    pub(super) fn end(mut self) -> Result<(), Failure> {
        if self.columns.len() > 0 {
            self.flush();
        }
        let ended = match (self.failed.take(), self.out.take()) {
            (Some(error), _) => Err(error),
            (None, Some(out)) => out.close().and_then(|_| Ok(self.sink.end()?)),
            (None, None) => Ok(()),
        };
        match ended {
            Err(error) if is_gone(&error) => Ok(()),
            ended => ended.map_err(|error| cannot_write(&self.path, &error)),
        }
    }
}

/// Times are nearly in order, so that their differences take the least room. LZ4 packs as fast as a
/// capture is read.
fn properties() -> WriterPropertiesPtr {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("nfskit ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::LZ4_RAW)
        // Of groups only: of pages they would be kept until the end.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(ROWS));
    for name in ["call_ns", "reply_ns", "offset", "call_frame", "reply_frame"] {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Arc::new(properties.build())
}

impl Columns {
    fn len(&self) -> usize {
        self.call_ns.len()
    }

    fn clear(&mut self) {
        let of_words = [
            &mut self.client_port,
            &mut self.version,
            &mut self.xid,
            &mut self.count,
            &mut self.bytes,
            &mut self.stable,
            &mut self.call_len,
            &mut self.reply_len,
            &mut self.retransmissions,
            &mut self.outstanding,
        ];
        of_words.into_iter().for_each(Vec::clear);
        let of_longs = [
            &mut self.call_ns,
            &mut self.reply_ns,
            &mut self.offset,
            &mut self.call_frame,
            &mut self.reply_frame,
        ];
        of_longs.into_iter().for_each(Vec::clear);
        self.latency_us.clear();
        [&mut self.has_latency, &mut self.has_status].into_iter().for_each(Vec::clear);
        let of_names = [
            &mut self.client,
            &mut self.server,
            &mut self.transport,
            &mut self.operation,
            &mut self.status,
            &mut self.file,
        ];
        of_names.into_iter().for_each(Vec::clear);
    }

    fn push(
        &mut self,
        transaction: &Transaction,
        names: &Names,
        operation: ByteArray,
        files: &Files,
    ) {
        self.call_ns.push(transaction.call_ns.cast_signed());
        self.reply_ns.push(transaction.reply_ns.cast_signed());
        let latency = transaction.latency();
        self.has_latency.push(i16::from(latency.is_some()));
        self.latency_us.extend(latency.map(|latency| latency.as_micros_f64()));
        self.client.push(names.client.clone());
        self.client_port.push(names.client_port.into());
        self.server.push(names.server.clone());
        self.transport.push(names.transport.clone());
        self.version.push(transaction.version.cast_signed());
        self.xid.push(transaction.xid.cast_signed());
        self.operation.push(operation);
        let status = row::status(transaction);
        self.has_status.push(i16::from(status.is_some()));
        self.status.extend(status.map(|status| ByteArray::from(&*status)));
        self.file.push(files.path(transaction.file).into_bytes().into());
        self.offset.push(transaction.offset.cast_signed());
        self.count.push(transaction.count.cast_signed());
        self.bytes.push(transaction.bytes.cast_signed());
        self.stable.push(transaction.stable.into());
        self.call_len.push(transaction.call_len.cast_signed());
        self.reply_len.push(transaction.reply_len.cast_signed());
        self.retransmissions.push(transaction.retransmissions.into());
        self.outstanding.push(transaction.outstanding.cast_signed());
        self.call_frame.push(transaction.call_frame.cast_signed());
        self.reply_frame.push(transaction.reply_frame.cast_signed());
    }

    /// In the order of [`SCHEMA`].
    fn write(&self, out: &mut Out) -> Result<(), ParquetError> {
        let mut writer = out.next_row_group()?;
        let group = &mut writer;
        column::<Int64Type>(group, &self.call_ns, None)?;
        column::<Int64Type>(group, &self.reply_ns, None)?;
        column::<DoubleType>(group, &self.latency_us, Some(&self.has_latency))?;
        column::<ByteArrayType>(group, &self.client, None)?;
        column::<Int32Type>(group, &self.client_port, None)?;
        column::<ByteArrayType>(group, &self.server, None)?;
        column::<ByteArrayType>(group, &self.transport, None)?;
        column::<Int32Type>(group, &self.version, None)?;
        column::<Int32Type>(group, &self.xid, None)?;
        column::<ByteArrayType>(group, &self.operation, None)?;
        column::<ByteArrayType>(group, &self.status, Some(&self.has_status))?;
        column::<ByteArrayType>(group, &self.file, None)?;
        column::<Int64Type>(group, &self.offset, None)?;
        for values in [
            &self.count,
            &self.bytes,
            &self.stable,
            &self.call_len,
            &self.reply_len,
            &self.retransmissions,
            &self.outstanding,
        ] {
            column::<Int32Type>(group, values, None)?;
        }
        column::<Int64Type>(group, &self.call_frame, None)?;
        column::<Int64Type>(group, &self.reply_frame, None)?;
        writer.close().map(|_| ())
    }
}

/// Writes the next column of a group; `defined` says for each row whether there is a value.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Sink>,
    values: &[T::T],
    defined: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_owned()));
    };
    column.typed::<T>().write_batch(values, defined, None)?;
    column.close()
}

/// The error of the system in one of the writer.
fn cause(error: &ParquetError) -> Option<&io::Error> {
    match error {
        ParquetError::External(cause) => cause.downcast_ref(),
        _ => None,
    }
}

/// Who read it wants no more.
fn is_gone(error: &ParquetError) -> bool {
    cause(error).is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn cannot_write(path: &Path, error: &ParquetError) -> Failure {
    match cause(error) {
        Some(cause) => output::cannot_write(path, cause),
        None => output::cannot_write(path, &io::Error::other(error.to_string())),
    }
}
