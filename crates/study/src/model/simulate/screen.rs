//! What a simulation says on one screen.

use std::fmt::Write;

use harness::records::bytes;
use perf::histogram::Histogram;
use world::simulate::ServerOutcome;
use world::simulate::topology::Topology;

use super::Simulated;

pub(super) fn text(simulated: &Simulated) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    write_all(&mut text, simulated).ok();
    text
}

fn write_all(text: &mut String, simulated: &Simulated) -> std::fmt::Result {
    let Simulated { topology, outcome, .. } = simulated;
    writeln!(text, "{}", setting(topology))?;
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    writeln!(
        text,
        "\nthroughput    {:.1} operations/s, read {:.2} MiB/s, written {:.2} MiB/s",
        outcome.per_s,
        mib(outcome.read_bytes_per_s),
        mib(outcome.written_bytes_per_s),
    )?;
    if outcome.failed > 0 {
        let first = outcome.first_failure.as_deref().unwrap_or_default();
        writeln!(text, "failed        {} operations, the first: {first}", outcome.failed)?;
    }
    writeln!(
        text,
        "\n{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "response time", "mean", "p50", "p95", "p99", "max"
    )?;
    row(text, "all", &outcome.response_time)?;
    for (operation, times) in &outcome.of_operation {
        row(text, operation.name(), times)?;
    }
    writeln!(text, "\n{:<14}{:>10}   ", "resource", "busy")?;
    for (number, server) in outcome.servers.iter().enumerate() {
        server_rows(text, number + 1, server)?;
    }
    curve(text, simulated)?;
    let client = &outcome.client;
    let share = format!("{:.1} %", client.utilization * 100.0);
    writeln!(text, "{:<14}{share:>10}   the busiest client's processor", "client")?;
    writeln!(
        text,
        "\ndigest        {} (seed {}, {} messages, {} of virtual time)",
        outcome.digest, topology.seed, outcome.digest.messages, outcome.elapsed
    )?;
    let calls = outcome.digest.messages as f64 / 2.0;
    let memory = simulated
        .memory_bytes_max
        .map_or_else(String::new, |bytes| format!(", {} MiB at most", bytes >> 20));
    writeln!(
        text,
        "simulator     {} for {calls:.0} calls: {:.0} calls/s{memory}",
        simulated.took,
        calls / simulated.took.as_secs_f64(),
    )
}

pub(super) fn setting(topology: &Topology) -> String {
    let workload = &topology.workload;
    let load = match workload.rate {
        Some(rate) => format!("{rate} operations/s"),
        None => format!("{} outstanding at each client", workload.outstanding),
    };
    let what = workload.write.map_or_else(
        || workload.mix.to_string(),
        |write| {
            let (write, commit) = (bytes(write.0), bytes(workload.commit.0));
            format!("sequential write in calls of {write}, a COMMIT after {commit}")
        },
    );
    let clients: Vec<_> = topology
        .clients
        .iter()
        .map(|clients| format!("{} behind {}", clients.count, clients.link.0.name))
        .collect();
    format!(
        "clients       {}\n\
         servers       {} with {}, disk {}\n\
         workload      {what}, {load}, for {}",
        clients.join(", "),
        topology.server.count,
        cores(topology.server.cores),
        topology.server.disk.0,
        workload.time.nanos(),
    )
}

/// Processors of a server: "1 core", "4 cores".
fn cores(count: usize) -> String {
    format!("{count} core{}", if count == 1 { "" } else { "s" })
}

/// Load points, where they were requested.
fn curve(text: &mut String, simulated: &Simulated) -> std::fmt::Result {
    if simulated.curve.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "{:<14}{:>10}{:>10}{:>10}{:>8}{:>8}",
        "rate", "got", "mean", "p95", "cpu", "disk"
    )?;
    for point in &simulated.curve {
        let (mean, p95) = (point.mean.to_string(), point.p95.to_string());
        let (cpu, disk) = (100.0 * point.processor, 100.0 * point.disk);
        writeln!(
            text,
            "{:<14.1}{:>10.1}{mean:>10}{p95:>10}{cpu:>6.0} %{disk:>6.0} %",
            point.asked_per_s, point.per_s
        )?;
    }
    Ok(())
}

fn row(text: &mut String, name: &str, times: &Histogram) -> std::fmt::Result {
    let at = |q: f64| times.quantile(q).to_string();
    let columns = [times.mean().to_string(), at(0.5), at(0.95), at(0.99), times.max().to_string()];
    write!(text, "{name:<14}")?;
    columns.iter().try_for_each(|column| write!(text, "{column:>10}"))?;
    writeln!(text)
}

fn server_rows(text: &mut String, number: usize, server: &ServerOutcome) -> std::fmt::Result {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let name = |what: &str| format!("server {number} {what}");
    writeln!(
        text,
        "{:<14}{:>10}   {}, a piece of work waits {}",
        name("cpu"),
        percent(server.processor_utilization),
        cores(server.cores),
        server.processor_wait
    )?;
    let disk = &server.disk;
    writeln!(
        text,
        "{:<14}{:>10}   {} reads, {} writes, {} syncs, {} seeks",
        name("disk"),
        percent(server.disk_utilization),
        disk.reads,
        disk.writes,
        disk.syncs,
        disk.seeks
    )?;
    let looks = server.cache_hits + server.cache_misses;
    let hits = server.cache_hits as f64 / looks.max(1) as f64;
    writeln!(
        text,
        "{:<14}{:>10}   of {looks} pages found in the cache",
        name("mem"),
        percent(hits)
    )?;
    if server.lives > 1 {
        writeln!(text, "{}: {}", name("restarts"), server.lives - 1)?;
    }
    Ok(())
}
