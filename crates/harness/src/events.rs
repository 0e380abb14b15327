//! What a server has to say while it runs: one line for each event, on standard error.
//!
//! ```text
//! 2026-01-02T03:04:05.678Z WARN slow_call client=10.0.0.7 procedure=WRITE xid=0x1a ...
//! {"time":"2026-01-02T03:04:05.678Z","level":"warn","event":"slow_call","client":"10.0.0.7",...}
//! ```
//!
//! Each kind of event is a function here, so that its fields are the same wherever it happens. A
//! thread of its own writes: up to [`LINES_MAX`] lines wait for it, further ones are lost and
//! counted (`lost` on the next line). So a server never waits for whoever reads its log.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use net::clock::Clock;
use net::error::TransportError;
use net::relay;
use net::serve::Limits;
use perf::units::Nanos;
use serde_json::{Map, Value, json};
use server::metrics::SlowCall;

use crate::descriptors;

/// Lines that wait to be written.
pub const LINES_MAX: usize = 256;

/// Says that no line follows that is worth waiting for.
const END: &str = "";

/// How long the end of the program waits for lines that nobody reads.
const END_WAIT: Duration = Duration::from_secs(1);

/// How lines look.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// Words and `name=value`, for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

perf::named! {
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    enum Level {
        Info => "info",
        Warn => "warn",
        Error => "error",
    }
}

/// Where events are logged; clones share the log.
#[derive(Clone, Debug)]
pub struct Log {
    format: Format,
    clock: Clock,
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

/// The thread that writes.
#[derive(Debug)]
pub struct Writer(Receiver<()>);

impl Log {
    /// A log on standard error.
    pub fn start(format: Format, clock: &Clock) -> std::io::Result<(Self, Writer)> {
        Self::to(std::io::stderr(), format, clock)
    }

    fn to(
        mut out: impl Write + Send + 'static,
        format: Format,
        clock: &Clock,
    ) -> std::io::Result<(Self, Writer)> {
        let (lines, queue) = mpsc::sync_channel::<String>(LINES_MAX);
        let (ended, end) = mpsc::channel();
        thread::Builder::new().name("nfskit-log".to_owned()).spawn(move || {
            for line in queue {
                if line == END {
                    break;
                }
                // Nobody reads any more: the server goes on.
                out.write_all(line.as_bytes()).and_then(|()| out.flush()).ok();
            }
            drop(ended);
        })?;
        let (clock, lost) = (clock.clone(), Arc::default());
        Ok((Self { format, clock, lines, lost }, Writer(end)))
    }

    /// It serves from here on.
    pub fn started(&self, listen: &[SocketAddr], exports: &[&str], versions: &str) {
        let listen: Vec<_> = listen.iter().map(SocketAddr::to_string).collect();
        let fields = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "listen": listen,
            "exports": exports,
            "protocols": versions,
        });
        self.emit(Level::Info, "started", fields);
    }

    /// The exports were read again; those before stay where that failed.
    pub fn reload(&self, exports: Result<&[&str], &str>) {
        match exports {
            Ok(exports) => self.emit(Level::Info, "reload", json!({ "exports": exports })),
            Err(cause) => self.emit(Level::Error, "reload", json!({ "error": cause })),
        }
    }

    /// Every host that reaches the address may mount an export.
    pub fn open_to_everybody(&self, export: &str, address: SocketAddr) {
        let fields = json!({ "export": export, "listen": address.to_string() });
        self.emit(Level::Warn, "open_to_everybody", fields);
    }

    /// A call took long.
    pub fn slow(&self, call: &SlowCall) {
        let ms = |span: Nanos| (span.as_micros_f64().round() / 1e3).into();
        let mut fields = Map::new();
        let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        field("client", call.client.to_string().into());
        let procedure = call.procedure.map_or_else(|| "?".to_owned(), |p| p.to_string());
        field("procedure", procedure.into());
        field("xid", format!("{:#x}", call.xid).into());
        if let Some(uid) = call.uid {
            field("uid", uid.into());
        }
        field("args", call.args.as_str().into());
        if let Some(path) = &call.path {
            field("path", path.as_str().into());
        }
        field("status", call.failure.as_deref().unwrap_or("OK").into());
        field("total_ms", ms(call.phases.total()));
        for (phase, span) in call.phases.iter() {
            field(&format!("{}_ms", phase.name()), ms(span));
        }
        if call.suppressed > 0 {
            field("suppressed", call.suppressed.into());
        }
        self.emit(Level::Warn, "slow_call", fields.into());
    }

    /// Connections were closed at once, because there were as many already as `limits` allow.
    pub fn refused(&self, connections: u64, limits: &Limits) {
        self.emit(Level::Warn, "connections_refused", crowd(connections, limits));
    }

    /// Connections were closed: no export names the address they came from.
    pub fn denied(&self, connections: u64) {
        self.emit(Level::Warn, "connections_denied", json!({ "connections": connections }));
    }

    /// Idle connections were closed to make room for others.
    pub fn evicted(&self, connections: u64, limits: &Limits) {
        self.emit(Level::Warn, "connections_evicted", crowd(connections, limits));
    }

    /// Connections could not be accepted for a while, so many times.
    pub fn short(&self, times: u64) {
        let fields = json!({ "times": times, "descriptors_max": descriptors::limit() });
        self.emit(Level::Warn, "connections_short", fields);
    }

    /// Connections were closed because of a record of more than `limit` bytes.
    pub fn records_too_long(&self, records: u64, limit: usize) {
        let fields = json!({ "records": records, "limit_bytes": limit });
        self.emit(Level::Warn, "records_too_long", fields);
    }

    /// Calls have been waiting for a file system or a disk for seconds; 0 when that is over.
    pub fn calls_stalled(&self, calls: u64) {
        let level = if calls > 0 { Level::Warn } else { Level::Info };
        self.emit(level, "calls_stalled", json!({ "calls": calls }));
    }

    /// Syncs of a store failed: callers got the error, and unstable data will be written again.
    pub fn sync_failed(&self, export: &str, failures: u64) {
        let fields = json!({ "export": export, "failures": failures });
        self.emit(Level::Error, "sync_failed", fields);
    }

    /// The state directory cannot be written: a restart would forget handles. `None`: all are in
    /// it.
    pub fn handles_unstored(&self, export: &str, handles: Option<u64>) {
        match handles {
            Some(handles) => {
                let fields = json!({ "export": export, "handles": handles });
                self.emit(Level::Error, "handles_unwritten", fields);
            }
            None => self.emit(Level::Info, "handles_written", json!({ "export": export })),
        }
    }

    /// The state directory cannot be written: a restart would forget replies. Or it can again.
    pub fn replies_unstored(&self, is_failing: bool) {
        match is_failing {
            true => self.emit(Level::Warn, "replies_unwritten", json!({})),
            false => self.emit(Level::Info, "replies_written", json!({})),
        }
    }

    /// A link was read again; it stays as it was where that failed.
    pub fn link_changed(&self, link: Result<&str, &str>) {
        match link {
            Ok(link) => self.emit(Level::Info, "reload", json!({ "link": link })),
            Err(cause) => self.emit(Level::Error, "reload", json!({ "error": cause })),
        }
    }

    /// A capture cannot be written any more; what is relayed goes on.
    pub fn capture_ended(&self, path: &str, cause: &std::io::Error) {
        let fields = json!({ "file": path, "error": cause.to_string() });
        self.emit(Level::Warn, "capture_ended", fields);
    }

    /// Something happened to a connection that is relayed. That a peer resets a connection, as
    /// many do to end it, is logged if `verbose`.
    pub fn relay(&self, event: &relay::Event, verbose: bool) {
        use relay::Event;
        if matches!(event, Event::Broken { cause: TransportError::Io(_), .. }) && !verbose {
            return;
        }
        let (name, client, mut fields) = match event {
            Event::Unreachable { client, cause } => {
                ("server_unreachable", client, json!({ "error": cause.to_string() }))
            }
            Event::Broken { client, side, cause } => {
                let (side, cause) = (side.to_string(), cause.to_string());
                ("connection_broken", client, json!({ "by": side, "error": cause }))
            }
            Event::NoPlace { client } => ("connection_refused", client, json!({})),
            Event::Stranger { client } => {
                let try_ = "--insecure, for all users of this host and all ports";
                ("connection_of_another_user", client, json!({ "try": try_ }))
            }
            Event::NobodyListens { client, server } => {
                ("nobody_listens", client, json!({ "server": server.to_string() }))
            }
        };
        fields["client"] = client.to_string().into();
        self.emit(Level::Warn, name, fields);
    }

    /// It serves no more.
    pub fn shutdown(&self, reason: &str, calls_abandoned: u64, connections_abandoned: u64) {
        let level = if calls_abandoned > 0 { Level::Warn } else { Level::Info };
        let fields = json!({
            "reason": reason,
            "calls_abandoned": calls_abandoned,
            "connections_abandoned": connections_abandoned,
        });
        self.emit(level, "shutdown", fields);
    }

    fn emit(&self, level: Level, event: &str, fields: Value) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let mut line = Map::new();
        let time = SystemTime::UNIX_EPOCH + self.clock.since_1970();
        let time = humantime::format_rfc3339_millis(time).to_string();
        line.insert("time".to_owned(), time.into());
        line.insert("level".to_owned(), level.name().into());
        line.insert("event".to_owned(), event.into());
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        if lost > 0 {
            line.insert("lost".to_owned(), lost.into());
        }
        let line = match self.format {
            Format::Json => format!("{}\n", Value::Object(line)),
            Format::Text => text(&line),
        };
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Waits until everything that was logged before is written, a second at most.
    pub fn end(self, log: Log) {
        // Others may have clones of it. Where there is no room for this, what there is takes long.
        log.lines.try_send(END.to_owned()).ok();
        drop(log);
        self.0.recv_timeout(END_WAIT).ok();
    }
}

/// How much a count that only grows has grown since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rise(u64);

impl Rise {
    pub fn look(&mut self, count: u64) -> Option<u64> {
        let risen = count.saturating_sub(self.0);
        self.0 = count;
        (risen > 0).then_some(risen)
    }
}

/// Connections that found no place: by one limit or by the other, which is not counted apart.
fn crowd(connections: u64, limits: &Limits) -> Value {
    json!({
        "connections": connections,
        "limit": limits.connections_max,
        "limit_per_host": limits.connections_per_host_max,
    })
}

/// `time LEVEL event name=value ...`; what is no single word stands in quotation marks.
fn text(line: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in line {
        let value = match value {
            Value::String(value) if is_word(value) => value.clone(),
            Value::Array(values) if values.iter().all(|v| v.as_str().is_some_and(is_word)) => {
                values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
            }
            other => other.to_string(),
        };
        match name.as_str() {
            "time" => text.push_str(&value),
            "level" => text.extend([" ", &value.to_uppercase()]),
            "event" => text.extend([" ", &value]),
            _ => text.extend([" ", name, "=", &value]),
        }
    }
    text.push('\n');
    text
}

fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '=');
    !text.is_empty() && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use server::metrics::Phases;

    use super::*;

    /// Where lines go, once it is unlocked.
    #[derive(Clone, Default)]
    struct Out(Arc<Mutex<Vec<u8>>>);

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines(format: Format, tell: impl FnOnce(&Log, &Out)) -> Vec<String> {
        let out = Out::default();
        let clock = net::clock::world::World::new().clock();
        let (log, writer) = Log::to(out.clone(), format, &clock).unwrap();
        tell(&log, &out);
        writer.end(log);
        let bytes = out.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    fn slow() -> SlowCall {
        let phases = Phases { sync_wait: Nanos::from_micros(12_345), ..Phases::default() };
        SlowCall {
            client: std::net::IpAddr::from([10, 0, 0, 7]),
            procedure: Some(wire::Procedure::Nfs3(wire::nfs3::Procedure::Write)),
            xid: 26,
            uid: Some(1000),
            args: "file=a1b2 count=\"5\"".to_owned(),
            path: Some("/srv/a b".to_owned()),
            failure: Some("NOSPC".to_owned()),
            phases,
            suppressed: 3,
        }
    }

    #[test]
    fn a_line_is_one_json_object() {
        let lines = lines(Format::Json, |log, _| {
            let address = SocketAddr::from(([127, 0, 0, 1], 2049));
            log.started(&[address], &["/srv", "/a b"], "NFS 2, 3");
            log.reload(Err("line 1,\ncolumn 2"));
            log.slow(&slow());
            log.refused(5, &Limits::default());
            log.sync_failed("/srv", 1);
            log.shutdown("SIGTERM", 2, 1);
        });
        let parsed: Vec<Map<String, Value>> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let events: Vec<_> = parsed.iter().map(|line| line["event"].as_str().unwrap()).collect();
        let expected =
            ["started", "reload", "slow_call", "connections_refused", "sync_failed", "shutdown"];
        assert_eq!(events, expected);
        for line in &parsed {
            assert!(line.keys().take(3).eq(["time", "level", "event"]));
            humantime::parse_rfc3339(line["time"].as_str().unwrap()).unwrap();
        }
        assert_eq!(parsed[0]["exports"], json!(["/srv", "/a b"]));
        assert_eq!(parsed[2]["sync_wait_ms"], json!(12.345));
        assert_eq!(parsed[2]["suppressed"], json!(3));
        assert_eq!(parsed[2]["path"], json!("/srv/a b"));
        assert_eq!(parsed[3]["limit"], json!(Limits::default().connections_max));
        assert_eq!(parsed[3]["limit_per_host"], json!(Limits::default().connections_per_host_max));
        assert_eq!(parsed[5]["level"], json!("warn"));
    }

    #[test]
    fn text_is_one_line_whatever_it_says() {
        let lines = lines(Format::Text, |log, _| {
            log.slow(&slow());
            log.reload(Err("two\nlines"));
            log.started(&[], &["/srv", "/home"], "NFS 3");
        });
        let (time, rest) = lines[0].split_once(' ').unwrap();
        humantime::parse_rfc3339(time).unwrap();
        assert_eq!(
            rest,
            "WARN slow_call client=10.0.0.7 procedure=WRITE xid=0x1a uid=1000 \
             args=\"file=a1b2 count=\\\"5\\\"\" path=\"/srv/a b\" status=NOSPC \
             total_ms=12.345 queue_ms=0.0 decode_ms=0.0 store_ms=0.0 sync_wait_ms=12.345 suppressed=3"
        );
        assert!(lines[1].ends_with("ERROR reload error=\"two\\nlines\""));
        assert!(lines[2].ends_with("exports=/srv,/home protocols=\"NFS 3\""), "{}", lines[2]);
    }

    #[test]
    fn nobody_waits_for_a_log_that_is_not_read() {
        let sent = LINES_MAX as u64 + 100;
        let mut not_yet_reported = 0;
        let lines = lines(Format::Json, |log, out| {
            let unread = out.0.lock().unwrap();
            for _ in 0..sent {
                log.sync_failed("/again", 1);
            }
            not_yet_reported = log.lost.load(Ordering::Relaxed);
            drop(unread);
        });
        // One more when its writer has taken one and waits with it.
        assert!((LINES_MAX..=LINES_MAX + 1).contains(&lines.len()));
        let lost = |line: &String| {
            let line: Map<String, Value> = serde_json::from_str(line).unwrap();
            line.get("lost").and_then(Value::as_u64).unwrap_or(0)
        };
        let reported: u64 = lines.iter().map(lost).sum();
        assert_eq!(lines.len() as u64 + reported + not_yet_reported, sent);
    }

    #[test]
    fn a_rise_is_reported_once() {
        let mut rise = Rise::default();
        assert_eq!([0, 2, 2, 5].map(|count| rise.look(count)), [None, Some(2), None, Some(3)]);
    }
}
