//! Pages of metrics of our own programs: `nfskit serve --metrics` and `nfskit mount --metrics`
//! (docs/metrics.md), and the rates between two of them.
//!
//! Response times come as histograms whose buckets are powers of two: a percentile is exact to its
//! bucket, and stated as the point inside at which a uniform bucket has it.

mod histogram;

use std::collections::{BTreeMap, HashMap};

use counters::Problem;
use counters::exposition::{self, Series};
use counters::rates::Span;
use serde::Serialize;

use self::histogram::Histogram;
pub use self::histogram::Percentiles;
use crate::cached::{OurCache, OurHits};

/// A page that was read at one time.
#[derive(Clone, Debug, Default)]
pub struct Page {
    series: Vec<Series>,
    /// By name and labels.
    index: HashMap<String, f64>,
}

/// What one of our programs did between two pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ours {
    Mount(Box<OurMount>),
    Server(Box<OurServer>),
}

/// `nfskit serve`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OurServer {
    pub span: Span,
    /// All procedures together, without a name.
    pub total: OurProcedure,
    /// Those that were called.
    pub procedures: Vec<OurProcedure>,
    pub clients: Vec<OurClient>,
    /// Where it counts them apart (`--metrics-files`), those that were called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<OurFile>,
    pub connections: Option<f64>,
    pub calls_in_progress: Option<f64>,
    /// Retransmissions that were answered from the reply cache.
    pub replayed: f64,
    /// Syncs that were requested, and that were done.
    pub sync_requests_per_s: Option<f64>,
    pub syncs_per_s: Option<f64>,
    /// Processors that the process used.
    pub processors_mean: Option<f64>,
    pub resident_bytes: Option<f64>,
    /// Its write log, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_log: Option<OurLog>,
    /// None: it is no proxy with a cache on a local disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<OurCache>,
}

/// A server's write log; what is counted, over the span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OurLog {
    pub records: f64,
    pub frames: f64,
    /// Stable WRITEs that were made stable in their file instead.
    pub refused: f64,
    pub write_us: Option<f64>,
    pub size_bytes: Option<f64>,
    pub has_failed: bool,
}

/// One procedure of our server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OurProcedure {
    /// `WRITE`, with the program and version where it is not version 3 of NFS.
    pub name: String,
    pub calls: f64,
    pub calls_per_s: Option<f64>,
    pub errors: f64,
    pub received_bytes_per_s: Option<f64>,
    pub sent_bytes_per_s: Option<f64>,
    pub response_ms: Percentiles,
    /// Of a call, in the order of docs/metrics.md.
    pub phases_ms_mean: Vec<(String, f64)>,
    /// Calls being served, on average over the span, by Little's law.
    pub in_service_mean: Option<f64>,
}

/// One client of our server, by its address.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OurClient {
    pub client: String,
    pub calls: f64,
    pub calls_per_s: Option<f64>,
    pub errors: f64,
    pub received_bytes_per_s: Option<f64>,
    pub sent_bytes_per_s: Option<f64>,
    /// Processors that its calls used, or blocked.
    pub store_mean: Option<f64>,
}

/// One file of our server, by the path under which it was requested.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OurFile {
    pub file: String,
    pub calls: f64,
    pub calls_per_s: Option<f64>,
    pub received_bytes_per_s: Option<f64>,
    pub sent_bytes_per_s: Option<f64>,
    /// Until a reply is there.
    pub ms_mean: Option<f64>,
    /// Calls being served, on average over the span, by Little's law.
    pub in_service_mean: Option<f64>,
}

/// `nfskit mount`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OurMount {
    pub span: Span,
    pub procedures: Vec<OurMountProcedure>,
    /// Stages of written data on their way, of those that any data passed.
    pub stages: Vec<OurStage>,
    pub dirty_bytes: Option<f64>,
    pub uncommitted_bytes: Option<f64>,
    pub calls_in_flight: Option<f64>,
    pub write_calls_outstanding: Option<f64>,
    pub write_calls_window: Option<f64>,
    pub reconnects: f64,
    /// None: it has no cache on a local disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<OurCache>,
}

/// One procedure of our client.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OurMountProcedure {
    pub name: String,
    pub calls: f64,
    pub calls_per_s: Option<f64>,
    pub retransmissions: f64,
    pub major_timeouts: f64,
    pub errors: f64,
    pub sent_bytes_per_s: Option<f64>,
    pub received_bytes_per_s: Option<f64>,
    pub queue_ms_mean: Option<f64>,
    pub rtt_ms_mean: Option<f64>,
    pub execute_ms_mean: Option<f64>,
    pub outstanding_mean: Option<f64>,
}

/// One stage of written data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OurStage {
    pub stage: String,
    pub count: f64,
    pub ms: Percentiles,
}

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// It is no page of metrics.
    pub fn read(text: &[u8]) -> Result<Self, Problem> {
        let series = exposition::read(text)?;
        let index = series.iter().map(|one| (key(&one.name, &one.labels), one.value)).collect();
        Ok(Self { series, index })
    }

    /// Takes another page of the same program in.
    pub fn join(&mut self, other: Self) {
        self.series.extend(other.series);
        self.index.extend(other.index);
    }

    /// What came since `before`, `elapsed_s` ago; without it, or if the program was started anew,
    /// since its start. None where the page is not of our programs.
    pub fn rates(&self, before: Option<(&Self, f64)>, now_1970_s: f64) -> Option<Ours> {
        let started = self.value("process_start_time_seconds");
        let is_same = |before: &Self| before.value("process_start_time_seconds") == started;
        let before = before.filter(|(before, _)| is_same(before));
        let span = match before {
            Some((_, elapsed_s)) => Span::sample(elapsed_s),
            None => Span::beginning(started.map(|started| now_1970_s - started)),
        };
        let since = Since { now: self, before: before.map(|(before, _)| before), span };
        if self.has("nfskit_call_seconds_count") || self.has("nfskit_clients") {
            return Some(Ours::Server(Box::new(since.server())));
        }
        self.has("nfskit_mount_calls_in_flight").then(|| Ours::Mount(Box::new(since.mount())))
    }

    /// Of the series without labels.
    fn value(&self, name: &str) -> Option<f64> {
        self.index.get(name).copied()
    }

    fn has(&self, name: &str) -> bool {
        self.series.iter().any(|one| one.name == name)
    }

    /// Of each export, or of whatever else its labels tell apart.
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = f64> {
        self.named(name).map(|one| one.value)
    }

    /// Of all of these; none if there is none.
    fn sum(&self, name: &str) -> Option<f64> {
        self.values(name).reduce(|all, one| all + one)
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Series> {
        self.series.iter().filter(move |one| one.name == name)
    }
}

fn key(name: &str, labels: &[(String, String)]) -> String {
    labels.iter().fold(name.to_owned(), |key, (label, value)| key + "\0" + label + "\0" + value)
}

/// Two pages, or one.
#[derive(Clone, Copy, Debug)]
struct Since<'a> {
    now: &'a Page,
    before: Option<&'a Page>,
    span: Span,
}

/// What is summed up of one procedure, or of all.
#[derive(Clone, Debug, Default)]
struct Sums {
    calls: f64,
    errors: f64,
    received_bytes: f64,
    sent_bytes: f64,
    response: Histogram,
    phases_s: Vec<(String, f64)>,
}

impl Since<'_> {
    /// The growth of one series; one that fell was begun anew.
    fn grown(&self, one: &Series) -> f64 {
        let before =
            self.before.and_then(|before| before.index.get(&key(&one.name, &one.labels)).copied());
        let grown = one.value - before.unwrap_or(0.0);
        let grown = if grown < 0.0 { one.value } else { grown };
        if grown.is_finite() { grown.max(0.0) } else { 0.0 }
    }

    fn per_s(&self, grown: impl Into<Option<f64>>) -> Option<f64> {
        Some(grown.into()? / self.span.seconds?)
    }

    /// The growth of all series of a name that have a label, by its value.
    fn by(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for one in self.now.named(name) {
            let Some(value) = one.label(label) else { continue };
            *sums.entry(value.to_owned()).or_insert(0.0) += self.grown(one);
        }
        sums
    }

    /// For every value of a label that has calls: the value, its calls, and the growth of each of
    /// the other series.
    fn called<const N: usize>(
        &self,
        prefix: &str,
        label: &str,
        others: [&str; N],
    ) -> impl Iterator<Item = (String, f64, [Option<f64>; N])> {
        let by = |name: &str| self.by(&format!("nfskit_{prefix}_{name}_total"), label);
        let others = others.map(by);
        let calls = by("calls").into_iter().filter(|(_, calls)| *calls > 0.0);
        calls.map(move |(value, calls)| {
            let grown = others.each_ref().map(|all| all.get(&value).copied());
            (value, calls, grown)
        })
    }

    /// The growth of all series of a name; none if there is none.
    fn all(&self, name: &str) -> Option<f64> {
        let mut each = self.now.named(name).peekable();
        each.peek()?;
        Some(each.map(|one| self.grown(one)).sum())
    }

    fn server(&self) -> OurServer {
        let sums = self.procedures();
        let mut total = Sums::default();
        for of in sums.values() {
            total.add(of);
        }
        let called = sums.iter().filter(|(_, of)| of.calls > 0.0);
        OurServer {
            span: self.span,
            total: total.rates("", self),
            procedures: called.map(|(name, of)| of.rates(name, self)).collect(),
            clients: self.clients(),
            files: self.files(),
            connections: self.now.value("nfskit_connections"),
            calls_in_progress: self.now.value("nfskit_calls_in_progress"),
            replayed: self.all("nfskit_replies_replayed_total").unwrap_or(0.0),
            sync_requests_per_s: self.per_s(self.all("nfskit_store_sync_requests_total")),
            syncs_per_s: self.per_s(self.all("nfskit_store_syncs_total")),
            processors_mean: self.per_s(self.all("process_cpu_seconds_total")),
            resident_bytes: self.now.value("process_resident_memory_bytes"),
            write_log: self.write_log(),
            cache: self.cache(),
        }
    }

    fn write_log(&self) -> Option<OurLog> {
        Some(OurLog {
            records: self.all("nfskit_log_records_total")?,
            frames: self.all("nfskit_log_frames_total")?,
            refused: self.all("nfskit_log_refused_total").unwrap_or(0.0),
            write_us: self.now.values("nfskit_log_sync_microseconds").reduce(f64::max),
            size_bytes: self.now.sum("nfskit_log_size_bytes"),
            has_failed: self.now.values("nfskit_log_failed").any(|failed| failed > 0.0),
        })
    }

    /// Sums of each procedure, by its name.
    fn procedures(&self) -> BTreeMap<String, Sums> {
        let mut all: BTreeMap<String, Sums> = BTreeMap::new();
        for one in &self.now.series {
            let Some(name) = procedure_name(one) else { continue };
            let grown = self.grown(one);
            let of = all.entry(name).or_default();
            match one.name.as_str() {
                "nfskit_calls_total" => of.calls += grown,
                "nfskit_errors_total" => of.errors += grown,
                "nfskit_received_bytes_total" => of.received_bytes += grown,
                "nfskit_sent_bytes_total" => of.sent_bytes += grown,
                "nfskit_call_seconds_bucket" => of.response.bucket(one, grown),
                "nfskit_call_seconds_sum" => of.response.sum_s += grown,
                "nfskit_phase_seconds_sum" => of.phase(one.label("phase"), grown),
                _ => {}
            }
        }
        all
    }

    fn clients(&self) -> Vec<OurClient> {
        let others = ["errors", "received_bytes", "sent_bytes", "store_seconds"];
        let clients = self.called("client", "client", others);
        let each = clients.map(|(client, calls, [errors, received, sent, store])| OurClient {
            client,
            calls,
            calls_per_s: self.per_s(calls),
            errors: errors.unwrap_or(0.0),
            received_bytes_per_s: self.per_s(received),
            sent_bytes_per_s: self.per_s(sent),
            store_mean: self.per_s(store),
        });
        each.collect()
    }

    fn files(&self) -> Vec<OurFile> {
        let files = self.called("file", "file", ["received_bytes", "sent_bytes", "seconds"]);
        let each = files.map(|(file, calls, [received, sent, seconds])| OurFile {
            file,
            calls,
            calls_per_s: self.per_s(calls),
            received_bytes_per_s: self.per_s(received),
            sent_bytes_per_s: self.per_s(sent),
            ms_mean: seconds.map(|seconds| seconds * 1e3 / calls),
            in_service_mean: self.per_s(seconds),
        });
        each.collect()
    }

    fn mount(&self) -> OurMount {
        OurMount {
            span: self.span,
            procedures: self.mount_procedures(),
            stages: self.stages(),
            dirty_bytes: self.now.value("nfskit_dirty_bytes"),
            uncommitted_bytes: self.now.value("nfskit_uncommitted_bytes"),
            calls_in_flight: self.now.value("nfskit_mount_calls_in_flight"),
            write_calls_outstanding: self.now.value("nfskit_write_calls_outstanding"),
            write_calls_window: self.now.value("nfskit_write_calls_window"),
            reconnects: self.all("nfskit_mount_disconnects_total").unwrap_or(0.0),
            cache: self.cache(),
        }
    }

    /// That of a mount, or those of all exports of a proxy.
    fn cache(&self) -> Option<OurCache> {
        let hits = |of: &str| {
            let hits = self.all(&format!("nfskit_cache_{of}hits_total"))?;
            let misses = self.by(&format!("nfskit_cache_{of}misses_total"), "cause");
            Some(OurHits { hits, misses })
        };
        Some(OurCache {
            reads: hits("")?,
            directories: hits("directory_").unwrap_or_default(),
            stored_bytes: self.all("nfskit_cache_stored_bytes_total").unwrap_or(0.0),
            bytes: self.now.sum("nfskit_cache_bytes"),
            files: self.now.sum("nfskit_cache_files"),
        })
    }

    fn mount_procedures(&self) -> Vec<OurMountProcedure> {
        let counts =
            ["retransmissions", "major_timeouts", "errors", "sent_bytes", "received_bytes"];
        let times = ["queue_seconds", "rtt_seconds", "execute_seconds"];
        let counted = self.called("mount", "procedure", counts);
        let timed = self.called("mount", "procedure", times);
        let each = counted.zip(timed).map(|((name, calls, counts), (_, _, times))| {
            let [retransmissions, major_timeouts, errors, sent, received] =
                counts.map(|count| count.unwrap_or(0.0));
            let [queue_ms_mean, rtt_ms_mean, execute_ms_mean] =
                times.map(|seconds| Some(seconds? * 1e3 / calls));
            OurMountProcedure {
                name,
                calls,
                calls_per_s: self.per_s(calls),
                retransmissions,
                major_timeouts,
                errors,
                sent_bytes_per_s: self.per_s(sent),
                received_bytes_per_s: self.per_s(received),
                queue_ms_mean,
                rtt_ms_mean,
                execute_ms_mean,
                outstanding_mean: self.per_s(times[1].unwrap_or(0.0)),
            }
        });
        each.collect()
    }

    fn stages(&self) -> Vec<OurStage> {
        let mut all: BTreeMap<String, Histogram> = BTreeMap::new();
        for one in &self.now.series {
            let Some(stage) = one.label("stage") else { continue };
            let of = all.entry(stage.replace('_', " ")).or_default();
            match one.name.as_str() {
                "nfskit_write_stage_seconds_bucket" => of.bucket(one, self.grown(one)),
                "nfskit_write_stage_seconds_sum" => of.sum_s += self.grown(one),
                _ => {}
            }
        }
        let passed = all.into_iter().filter(|(_, of)| of.count() > 0.0);
        passed
            .map(|(stage, of)| OurStage { stage, count: of.count(), ms: of.percentiles() })
            .collect()
    }
}

/// The name of a procedure of ours, if it is one.
fn procedure_name(one: &Series) -> Option<String> {
    let procedure = one.label("procedure")?;
    Some(match (one.label("program")?, one.label("version")?) {
        ("nfs", "3") => procedure.to_owned(),
        ("nfs", version) => format!("{procedure} v{version}"),
        (program, _) => format!("{program} {procedure}"),
    })
}

impl Sums {
    fn phase(&mut self, name: Option<&str>, seconds: f64) {
        let Some(name) = name else { return };
        match self.phases_s.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += seconds,
            None => self.phases_s.push((name.to_owned(), seconds)),
        }
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.response.add(&other.response);
        for (name, seconds) in &other.phases_s {
            self.phase(Some(name), *seconds);
        }
    }

    fn rates(&self, name: &str, since: &Since<'_>) -> OurProcedure {
        let phases = self.phases_s.iter().filter(|_| self.calls > 0.0);
        OurProcedure {
            name: name.to_owned(),
            calls: self.calls,
            calls_per_s: since.per_s(self.calls),
            errors: self.errors,
            received_bytes_per_s: since.per_s(self.received_bytes),
            sent_bytes_per_s: since.per_s(self.sent_bytes),
            response_ms: self.response.percentiles(),
            phases_ms_mean: phases.map(|(name, s)| (name.clone(), s * 1e3 / self.calls)).collect(),
            in_service_mean: since.per_s(self.response.sum_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(calls: [u32; 3], start: u32) -> Page {
        let [fast, slow, hung] = calls.map(f64::from);
        let write = "program=\"nfs\",version=\"3\",procedure=\"WRITE\"";
        let text = format!(
            "process_start_time_seconds {start}\nprocess_cpu_seconds_total 2\n\
             nfskit_clients 1\nnfskit_connections 3\n\
             nfskit_calls_total{{{write}}} {all}\n\
             nfskit_errors_total{{{write},layer=\"nfs\",status=\"IO\"}} 4\n\
             nfskit_sent_bytes_total{{{write}}} 1000\n\
             nfskit_call_seconds_bucket{{{write},le=\"0.001\"}} {fast}\n\
             nfskit_call_seconds_bucket{{{write},le=\"0.002\"}} {two}\n\
             nfskit_call_seconds_bucket{{{write},le=\"+Inf\"}} {all}\n\
             nfskit_call_seconds_sum{{{write}}} {sum}\nnfskit_call_seconds_count{{{write}}} {all}\n\
             nfskit_phase_seconds_sum{{{write},phase=\"queue\"}} 0.5\n\
             nfskit_phase_seconds_sum{{{write},phase=\"store\"}} {sum}\n\
             nfskit_client_calls_total{{client=\"10.0.0.9\"}} {all}\n\
             nfskit_client_calls_total{{client=\"other\"}} 0\n\
             nfskit_client_store_seconds_total{{client=\"10.0.0.9\"}} {sum}\n",
            two = fast + slow,
            all = fast + slow + hung,
            sum = (fast + slow + hung) / 100.0,
        );
        Page::read(text.as_bytes()).unwrap()
    }

    fn server(page: &Page, before: Option<(&Page, f64)>) -> OurServer {
        match page.rates(before, 110.0) {
            Some(Ours::Server(server)) => *server,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_server_has_rates_percentiles_and_phases() {
        let before = page([50, 50, 0], 10);
        let server = server(&page([150, 149, 1], 10), Some((&before, 2.0)));
        assert_eq!((server.span, server.connections), (Span::sample(2.0), Some(3.0)));
        let [write] = &server.procedures[..] else { panic!("{server:?}") };
        assert_eq!((write.name.as_str(), write.calls, write.errors), ("WRITE", 200.0, 0.0));
        assert_eq!((write.calls_per_s, write.in_service_mean), (Some(100.0), Some(1.0)));
        let Percentiles { mean, p50, p95, p99 } = write.response_ms;
        assert_eq!((mean, p50), (Some(10.0), Some(1.0)));
        let near = |value: Option<f64>, wanted: f64| (value.unwrap() - wanted).abs() < 1e-9;
        assert!(near(p95, 1.0 + 90.0 / 99.0) && near(p99, 1.0 + 98.0 / 99.0), "{p95:?} {p99:?}");
        assert_eq!(write.phases_ms_mean[0], ("queue".to_owned(), 0.0));
        assert_eq!(server.total.calls, 200.0);
        let [client] = &server.clients[..] else { panic!("{server:?}") };
        assert_eq!((client.client.as_str(), client.store_mean), ("10.0.0.9", Some(1.0)));
        assert_eq!(server.sync_requests_per_s, None, "this store counts no syncs");
    }

    #[test]
    fn a_percentile_above_all_bounds_is_the_last_of_them() {
        let server = server(&page([1, 0, 99], 10), None);
        assert_eq!(server.total.response_ms.p50, Some(2.0));
        assert_eq!(server.span, Span::beginning(Some(100.0)));
    }

    #[test]
    fn a_program_that_was_started_anew_counts_from_there() {
        let before = page([500, 0, 0], 10);
        let server = server(&page([5, 5, 0], 100), Some((&before, 2.0)));
        assert_eq!((server.span, server.total.calls), (Span::beginning(Some(10.0)), 10.0));
    }

    #[test]
    fn a_server_without_clients_has_no_table_of_them() {
        let alone = OurServer { clients: Vec::new(), ..server(&page([1, 0, 0], 5), None) };
        assert_eq!(crate::tables::our_server(&alone, "127.0.0.1:1").len(), 1);
        let one = server(&page([1, 0, 0], 5), None);
        assert_eq!(crate::tables::our_server(&one, "127.0.0.1:1").len(), 2);
    }

    #[test]
    fn a_page_without_calls_has_no_percentiles_and_another_program_is_none_of_ours() {
        let idle = page([7, 7, 7], 10);
        let server = server(&idle, Some((&idle, 1.0)));
        assert_eq!((server.procedures.len(), server.clients.len()), (0, 0));
        assert_eq!(server.total.response_ms, Percentiles::default());
        let other = Page::read(b"process_start_time_seconds 5\nnode_load1 0.5\n").unwrap();
        assert_eq!(other.rates(None, 10.0), None);
    }

    /// Gauges of stores have a label, too, and each export may have a log.
    #[test]
    fn a_write_log_is_that_of_all_exports() {
        let of = |export: &str, failed: u8, us: u32| {
            format!(
                "nfskit_log_records_total{{export=\"{export}\"}} 10\n\
                 nfskit_log_frames_total{{export=\"{export}\"}} 4\n\
                 nfskit_log_size_bytes{{export=\"{export}\"}} 1048576\n\
                 nfskit_log_sync_microseconds{{export=\"{export}\"}} {us}\n\
                 nfskit_log_failed{{export=\"{export}\"}} {failed}\n"
            )
        };
        let text = format!("nfskit_clients 1\n{}{}", of("/a", 0, 75), of("/b", 1, 60));
        let log = server(&Page::read(text.as_bytes()).unwrap(), None).write_log.unwrap();
        let expected = OurLog {
            records: 20.0,
            frames: 8.0,
            refused: 0.0,
            write_us: Some(75.0),
            size_bytes: Some(2_097_152.0),
            has_failed: true,
        };
        assert_eq!(log, expected);
    }

    #[test]
    fn the_cache_of_a_proxy_is_that_of_all_its_exports() {
        let of = |export: &str| {
            format!(
                "nfskit_cache_hits_total{{export=\"{export}\"}} 5\n\
                 nfskit_cache_misses_total{{cause=\"cold\",export=\"{export}\"}} 3\n\
                 nfskit_cache_misses_total{{cause=\"changed\",export=\"{export}\"}} 1\n\
                 nfskit_cache_bytes{{export=\"{export}\"}} 4096\n"
            )
        };
        let text = format!("nfskit_clients 1\n{}{}", of("/a"), of("/b"));
        let proxy = server(&Page::read(text.as_bytes()).unwrap(), None);
        let cache = proxy.cache.as_ref().unwrap();
        assert_eq!((cache.reads.hits, cache.bytes), (10.0, Some(8192.0)));
        assert_eq!((cache.reads.misses["cold"], cache.reads.misses["changed"]), (6.0, 2.0));
        let titles = |of| -> Vec<String> {
            crate::tables::our_server(of, "p").into_iter().map(|table| table.title).collect()
        };
        assert_eq!(titles(&proxy).last().unwrap(), "p: cache");
        let plain = server(&page([1, 0, 0], 10), None);
        assert!(!titles(&plain).contains(&"p: cache".to_owned()));
    }

    #[test]
    fn a_mount_has_the_times_of_its_calls_and_stages() {
        let text = "process_start_time_seconds 90\nnfskit_mount_calls_in_flight 2\n\
            nfskit_mount_calls_total{procedure=\"WRITE\"} 100\n\
            nfskit_mount_rtt_seconds_total{procedure=\"WRITE\"} 0.2\n\
            nfskit_mount_execute_seconds_total{procedure=\"WRITE\"} 0.5\n\
            nfskit_write_stage_seconds_bucket{stage=\"in_memory\",le=\"0.004\"} 4\n\
            nfskit_write_stage_seconds_bucket{stage=\"in_memory\",le=\"+Inf\"} 4\n\
            nfskit_write_stage_seconds_sum{stage=\"in_memory\"} 0.008\n\
            nfskit_cache_hits_total 5\nnfskit_cache_misses_total{cause=\"cold\"} 3\n\
            nfskit_cache_bytes 4096\n";
        let Some(Ours::Mount(mount)) = Page::read(text.as_bytes()).unwrap().rates(None, 100.0)
        else {
            panic!()
        };
        let write = &mount.procedures[0];
        assert_eq!((write.calls_per_s, write.rtt_ms_mean), (Some(10.0), Some(2.0)));
        assert_eq!((write.execute_ms_mean, write.queue_ms_mean), (Some(5.0), None));
        assert_eq!(
            (mount.stages[0].stage.as_str(), mount.stages[0].ms.p50),
            ("in memory", Some(2.0))
        );
        let cache = mount.cache.unwrap();
        assert_eq!((cache.reads.hits, cache.reads.misses["cold"]), (5.0, 3.0));
        assert_eq!((cache.bytes, cache.directories.hits), (Some(4096.0), 0.0));
    }
}
