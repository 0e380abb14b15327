//! `--parquet`: a row for every transaction, in the columns of `--csv`, each with its type.
//!
//! Rows are collected by column until there are [`ROWS`], which make a row group: the unit in which
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

/// Rows of a group: as DuckDB makes them, and some 15 MB while they wait.
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
type Group<'a> = SerializedRowGroupWriter<'a, Sink>;

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
    call_ns: Column<Int64Type>,
    reply_ns: Column<Int64Type>,
    latency_us: Column<DoubleType>,
    client: Column<ByteArrayType>,
    client_port: Column<Int32Type>,
    server: Column<ByteArrayType>,
    transport: Column<ByteArrayType>,
    version: Column<Int32Type>,
    xid: Column<Int32Type>,
    operation: Column<ByteArrayType>,
    status: Column<ByteArrayType>,
    file: Column<ByteArrayType>,
    offset: Column<Int64Type>,
    count: Column<Int32Type>,
    bytes: Column<Int32Type>,
    stable: Column<Int32Type>,
    call_len: Column<Int32Type>,
    reply_len: Column<Int32Type>,
    retransmissions: Column<Int32Type>,
    outstanding: Column<Int32Type>,
    call_frame: Column<Int64Type>,
    reply_frame: Column<Int64Type>,
}

/// What is known of the rows; of a column that is not always known, 1 for each row where it is.
struct Column<T: DataType> {
    values: Vec<T::T>,
    defined: Vec<i16>,
}

impl<T: DataType> Default for Column<T> {
    fn default() -> Self {
        Self { values: Vec::new(), defined: Vec::new() }
    }
}

impl<T: DataType> Column<T> {
    fn push(&mut self, value: impl Into<T::T>) {
        self.values.push(value.into());
    }

    fn push_if_known(&mut self, value: Option<T::T>) {
        self.defined.push(value.is_some().into());
        self.values.extend(value);
    }

    /// Writes the next column of a group, and is empty again.
    fn write(&mut self, group: &mut Group<'_>) -> Result<(), ParquetError> {
        let more = || ParquetError::General("more columns than the schema has".to_owned());
        let mut column = group.next_column()?.ok_or_else(more)?;
        let defined = (!self.defined.is_empty()).then_some(&self.defined[..]);
        column.typed::<T>().write_batch(&self.values, defined, None)?;
        self.values.clear();
        self.defined.clear();
        column.close()
    }
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
            self.columns = Columns::default();
        }
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
        // Of groups only: of pages they would stay in memory until the end.
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
        self.call_ns.values.len()
    }

    fn push(&mut self, of: &Transaction, names: &Names, operation: ByteArray, files: &Files) {
        self.call_ns.push(of.call_ns.cast_signed());
        self.reply_ns.push(of.reply_ns.cast_signed());
        self.latency_us.push_if_known(of.latency().map(|latency| latency.as_micros_f64()));
        self.client.push(names.client.clone());
        self.client_port.push(names.client_port);
        self.server.push(names.server.clone());
        self.transport.push(names.transport.clone());
        self.version.push(of.version.cast_signed());
        self.xid.push(of.xid.cast_signed());
        self.operation.push(operation);
        self.status.push_if_known(row::status(of).map(|status| ByteArray::from(&*status)));
        self.file.push(files.path(of.file).into_bytes());
        self.offset.push(of.offset.cast_signed());
        self.count.push(of.count.cast_signed());
        self.bytes.push(of.bytes.cast_signed());
        self.stable.push(of.stable);
        self.call_len.push(of.call_len.cast_signed());
        self.reply_len.push(of.reply_len.cast_signed());
        self.retransmissions.push(of.retransmissions);
        self.outstanding.push(of.outstanding.cast_signed());
        self.call_frame.push(of.call_frame.cast_signed());
        self.reply_frame.push(of.reply_frame.cast_signed());
    }

    /// In the order of [`SCHEMA`].
    fn write(&mut self, out: &mut Out) -> Result<(), ParquetError> {
        let mut writer = out.next_row_group()?;
        let group = &mut writer;
        self.call_ns.write(group)?;
        self.reply_ns.write(group)?;
        self.latency_us.write(group)?;
        self.client.write(group)?;
        self.client_port.write(group)?;
        self.server.write(group)?;
        self.transport.write(group)?;
        self.version.write(group)?;
        self.xid.write(group)?;
        self.operation.write(group)?;
        self.status.write(group)?;
        self.file.write(group)?;
        self.offset.write(group)?;
        let sizes = [&mut self.count, &mut self.bytes, &mut self.stable, &mut self.call_len];
        let counts = [&mut self.reply_len, &mut self.retransmissions, &mut self.outstanding];
        sizes.into_iter().chain(counts).try_for_each(|column| column.write(group))?;
        self.call_frame.write(group)?;
        self.reply_frame.write(group)?;
        writer.close().map(|_| ())
    }
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
