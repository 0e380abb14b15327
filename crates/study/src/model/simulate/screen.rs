//! What a simulation says on one screen.

use std::fmt::Write;

use harness::records::{bytes, known, quantile};
use perf::histogram::Histogram;
use perf::units::Nanos;
use perf::words::counted;
use world::simulate::topology::{Fault, Topology};
use world::simulate::{KindOutcome, LinkOutcome, Outcome, ServerOutcome};

use super::simulated::{Simulated, shortfall};

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
    let [read, written] = [outcome.read_bytes_per_s, outcome.written_bytes_per_s].map(mib);
    writeln!(
        text,
        "\nthroughput    {:.1} operations/s, read {read:.2} MiB/s, written {written:.2} MiB/s",
        outcome.per_s
    )?;
    if let Some(formula) = simulated.formula_mib_per_s {
        let (over, what) = (written / formula - 1.0, "written by the formula: the simulation is");
        writeln!(text, "formula       {formula:.2} MiB/s {what} {:+.0} %", 100.0 * over)?;
    }
    if let Some(why) = shortfall(simulated) {
        writeln!(text, "warning       {why}")?;
    }
    if outcome.failed > 0 {
        let first = outcome.first_failure.as_deref().unwrap_or_default();
        writeln!(text, "failed        {} operations, the first: {first}", outcome.failed)?;
    }
    response_times(text, outcome)?;
    kinds(text, outcome)?;
    writeln!(text, "\n{:<14}{:>10}   ", "resource", "busy")?;
    for (number, server) in outcome.servers.iter().enumerate() {
        server_rows(text, number + 1, server)?;
    }
    for LinkOutcome { name, there, back } in &outcome.links {
        let [there, back] = [there, back].map(|share| format!("{:.1} %", share * 100.0));
        writeln!(
            text,
            "{:<14}{there:>10}   to the server, {back} back: {name}, of the busiest client",
            "link"
        )?;
    }
    let client = &outcome.client;
    let share = format!("{:.1} %", client.utilization * 100.0);
    writeln!(text, "{:<14}{share:>10}   the busiest client's processor", "client")?;
    curve(text, simulated)?;
    cost(text, simulated)
}

fn response_times(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let columns = ["mean", "p50", "p95", "p99", "max"].map(str::to_owned);
    text.push('\n');
    row(text, "response time", &columns)?;
    row(text, "all", &times(&outcome.response_time))?;
    let mut each = outcome.of_operation.iter();
    each.try_for_each(|(operation, of)| row(text, operation.name(), &times(of)))
}

/// Clients of each kind, where there are several.
fn kinds(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    if outcome.kinds.len() < 2 {
        return Ok(());
    }
    writeln!(text, "\n{:<14}{:>14}{:>10}{:>10}", "clients", "operations/s", "of each", "mean")?;
    for KindOutcome { clients, link, per_s, response_mean } in &outcome.kinds {
        let (each, mean) = (per_s / *clients as f64, known(*response_mean));
        writeln!(text, "{clients:<14}{per_s:>14.1}{each:>10.1}{mean:>10}   behind {link}")?;
    }
    Ok(())
}

/// Of the run: its messages, and what it took of this machine.
fn cost(text: &mut String, simulated: &Simulated) -> std::fmt::Result {
    let Simulated { topology, outcome, .. } = simulated;
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
    let faults: Vec<String> = topology.faults.iter().map(Fault::to_string).collect();
    let faults = if faults.is_empty() {
        String::new()
    } else {
        format!("\nfaults        {}", faults.join("; "))
    };
    format!(
        "clients       {}\n\
         servers       {} with {}, disk {}\n\
         workload      {what}, {load}, for {}{faults}",
        clients.join(", "),
        topology.server.count,
        counted(topology.server.cores as u64, "core"),
        topology.server.disk.0,
        workload.time.nanos(),
    )
}

/// Load points, where they were requested.
fn curve(text: &mut String, simulated: &Simulated) -> std::fmt::Result {
    if simulated.curve.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "\n{:<14}{:>10}{:>10}{:>10}{:>8}{:>8}",
        "rate", "got", "mean", "p95", "cpu", "disk"
    )?;
    for point in &simulated.curve {
        let [mean, p95] = [point.mean, point.p95].map(known);
        let over = if point.keeps_up { "" } else { "  over" };
        let (cpu, disk) = (100.0 * point.processor, 100.0 * point.disk);
        writeln!(
            text,
            "{:<14.1}{:>10.1}{mean:>10}{p95:>10}{cpu:>6.0} %{disk:>6.0} %{over}",
            point.offered_per_s, point.per_s
        )?;
    }
    Ok(())
}

fn times(times: &Histogram) -> [String; 5] {
    let at = |q: f64| quantile(times, q);
    let of_all = |time: Nanos| known((!times.is_empty()).then_some(time));
    [of_all(times.mean()), at(0.5), at(0.95), at(0.99), of_all(times.max())]
}

fn row(text: &mut String, name: &str, columns: &[String; 5]) -> std::fmt::Result {
    write!(text, "{name:<14}")?;
    columns.iter().try_for_each(|column| write!(text, "{column:>10}"))?;
    writeln!(text)
}

fn server_rows(text: &mut String, number: usize, server: &ServerOutcome) -> std::fmt::Result {
    let mut resource = |what: &str, share: f64, about: String| {
        let (name, busy) = (format!("server {number} {what}"), format!("{:.1} %", share * 100.0));
        writeln!(text, "{name:<14}{busy:>10}   {about}")
    };
    let work = format!(
        "{}, a piece of work waits {}",
        counted(server.cores as u64, "core"),
        server.processor_wait
    );
    resource("cpu", server.processor_utilization, work)?;
    let disk = &server.disk;
    let (reads, writes, syncs, seeks) = (disk.reads, disk.writes, disk.syncs, disk.seeks);
    let work = format!("{reads} reads, {writes} writes, {syncs} syncs, {seeks} seeks");
    resource("disk", server.disk_utilization, work)?;
    let looks = server.cache_hits + server.cache_misses;
    let hits = server.cache_hits as f64 / looks.max(1) as f64;
    resource("mem", hits, format!("of {looks} pages found in the cache"))?;
    if server.lives > 1 {
        writeln!(text, "server {number} restarts: {}", server.lives - 1)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_that_too_few_calls_show_is_a_dash() {
        let of = |calls| times(&(0..calls).map(|_| Nanos::from_micros(5)).collect());
        let [_, p50, p95, p99, max] = of(15);
        assert_eq!([p95.as_str(), p99.as_str()], ["-", "-"]);
        assert!([p50, max].iter().all(|time| time.starts_with('5')));
        assert!(!of(100).contains(&"-".to_owned()));
        assert_eq!(of(0), ["-"; 5]);
    }
}
