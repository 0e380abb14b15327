//! `--metrics` of a mount: what the client counts, for Prometheus.

use std::net::SocketAddr;

use cache::{Sample, Statistics};
use client::files::Files;
use client::url::Version;
use net::call::Counters;
use net::clock::Clock;
use net::http::Listener;
use perf::histogram::Histogram;
use perf::units::Nanos;
use server::metrics::{Kind, Page, Reading};

use crate::exit::Failure;
use crate::{hints, metrics};

/// Answers /metrics and /healthz, in a task of its own.
pub fn serve(clock: &Clock, listen: SocketAddr, files: &Files) -> Result<(), Failure> {
    let listener = Listener::bind(listen).map_err(|cause| hints::metrics(listen, &cause))?;
    let files = files.clone();
    metrics::serve_page(listener, clock, move |page| write(page, &files));
    Ok(())
}

fn write(page: &mut Page, files: &Files) {
    let session = files.session();
    procedures(page, &session.rpc().counters(), session.version());
    page.readings(&transport(&session.rpc().counters()));
    page.readings(&write_behind(files));
    if let Some(disk) = files.disk() {
        page.readings(&cached(&disk.statistics()));
    }
    stages(page, files);
}

/// What is counted for each procedure, as /proc/self/mountstats has it.
fn procedures(page: &mut Page, counters: &Counters, version: Version) {
    type Count = fn(&net::call::ProcedureCounters) -> f64;
    let families: [(&str, &str, Count); 9] = [
        ("nfskit_mount_calls_total", "Calls ended.", |p| p.ops as f64),
        ("nfskit_mount_retransmissions_total", "Calls retransmitted.", |p| {
            p.retransmissions as f64
        }),
        ("nfskit_mount_major_timeouts_total", "Calls without answer for timeo x retrans.", |p| {
            p.major_timeouts as f64
        }),
        ("nfskit_mount_errors_total", "Calls that got no reply.", |p| p.errors as f64),
        ("nfskit_mount_sent_bytes_total", "Bytes of calls.", |p| p.bytes_sent as f64),
        ("nfskit_mount_received_bytes_total", "Bytes of replies.", |p| p.bytes_received as f64),
        ("nfskit_mount_queue_seconds_total", "From the call until it was sent.", |p| {
            seconds(p.queue)
        }),
        ("nfskit_mount_rtt_seconds_total", "From the sending to the reply.", |p| seconds(p.rtt)),
        ("nfskit_mount_execute_seconds_total", "The whole.", |p| seconds(p.execute)),
    ];
    for (name, help, count) in families {
        let mut family = page.family(name, Kind::Counter, help);
        for (number, procedure) in counters.procedures.iter().enumerate() {
            if procedure.transmissions > 0 {
                family.sample(&[("procedure", &named(number, version))], count(procedure));
            }
        }
    }
}

pub fn named(number: usize, version: Version) -> String {
    let code = u32::try_from(number).unwrap_or(u32::MAX);
    let name = match version {
        Version::Three => wire::nfs3::Procedure::from_code(code).map(|known| known.name()),
        Version::Two => wire::nfs2::Procedure::from_code(code).map(|known| known.name()),
    };
    name.map_or_else(|| number.to_string(), str::to_owned)
}

fn transport(counters: &Counters) -> Vec<Reading> {
    let transport = counters.transport;
    let row = |name, help, count: u64| Reading::new(name, help, count as f64);
    vec![
        row("nfskit_mount_connects_total", "Connections made.", transport.connects),
        row("nfskit_mount_disconnects_total", "Connections lost.", transport.disconnects),
        row("nfskit_mount_bad_xids_total", "Replies nobody waited for.", transport.bad_xids),
        row("nfskit_mount_calls_in_flight", "Calls outstanding.", transport.in_flight),
    ]
}

fn write_behind(files: &Files) -> Vec<Reading> {
    let counters = files.write_behind().counters();
    let row = |name, help, count: u64| Reading::new(name, help, count as f64);
    vec![
        row("nfskit_dirty_bytes", "Bytes not yet acknowledged.", counters.dirty_bytes),
        row(
            "nfskit_uncommitted_bytes",
            "Bytes acknowledged and not yet stable.",
            counters.uncommitted_bytes,
        ),
        row(
            "nfskit_write_calls_outstanding",
            "WRITEs and COMMITs outstanding.",
            u64::from(counters.outstanding),
        ),
        row("nfskit_write_calls_window", "How many may be.", u64::from(counters.window)),
        row("nfskit_writer_waits_total", "Writers that had to wait.", counters.writer_waits),
        row(
            "nfskit_forced_flushes_total",
            "Writers that had to flush their file.",
            counters.forced_flushes,
        ),
        row(
            "nfskit_resent_bytes_total",
            "Bytes that the server lost and got again.",
            counters.lost_bytes,
        ),
        row("nfskit_lost_bytes_total", "Bytes given up.", counters.dropped_bytes),
    ]
}

/// What a local disk keeps of files.
fn cached(statistics: &Statistics) -> Vec<Reading> {
    let reading = |sample: Sample| Reading {
        labels: sample.labels(),
        ..Reading::new(sample.name, sample.help, sample.count as f64)
    };
    statistics.samples().into_iter().map(reading).collect()
}

/// Where the time of a write goes.
fn stages(page: &mut Page, files: &Files) {
    let stages = files.write_behind().stages();
    let mut family = page.family(
        "nfskit_write_stage_seconds",
        Kind::Histogram,
        "Stages of written data on their way.",
    );
    for (stage, histogram) in &stages.histograms {
        let name = stage.name().replace(' ', "_");
        for (bound, count) in cumulated(histogram) {
            family.suffixed("_bucket", &[("stage", &name), ("le", &bound)], count);
        }
        let sum = seconds(histogram.mean()) * histogram.count() as f64;
        family.suffixed("_sum", &[("stage", &name)], sum);
        family.suffixed("_count", &[("stage", &name)], histogram.count());
    }
}

/// Counts up to powers of two of nanoseconds, from 256 ns to 17 s.
fn cumulated(histogram: &Histogram) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    for power in 8..=34 {
        let bound = Nanos::from_nanos(1 << power);
        let below = histogram.buckets().filter(|bucket| bucket.high <= bound);
        counts.push((seconds(bound).to_string(), below.map(|bucket| bucket.count).sum()));
    }
    counts.push(("+Inf".to_owned(), histogram.count()));
    counts
}

fn seconds(span: Nanos) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_and_end_with_all() {
        let mut histogram = Histogram::new();
        for nanos in [100, 1_000, 1_000_000] {
            histogram.record(Nanos::from_nanos(nanos));
        }
        let counts: Vec<u64> = cumulated(&histogram).into_iter().map(|(_, count)| count).collect();
        assert!(counts.is_sorted());
        assert_eq!((counts[0], counts.last()), (1, Some(&3)));
    }
}
