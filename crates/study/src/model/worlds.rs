//! What was fitted, as a world: the production client and server in virtual time, with the
//! parameters of a fit. The simulation's column of a what-if, and `model simulate` of a fit.
//!
//! | of a fit | in the world |
//! |---|---|
//! | way, cycle without its stage; D | latency of the link |
//! | think of a trace's callers | the same: nobody waits for another there either |
//! | stage, demand; S of the processor | what each call costs a core of the server |
//! | m, c | its cores |
//! | o of a sweep | what the client's processor takes for each call it sends |
//! | disks, their time | a disk that works on so many requests at once |
//! | P_miss | the share of READs, with nothing in the cache; the others are GETATTRs |
//!
//! Service is regular here, and arrivals at a rate are random: so a world waits less than formulas
//! that have random service, and the truth lies between.

use load::mix::Mix;
use load::mix::Operation::{self, Getattr, Read};
use load::mix::table::Sureness;
use perf::model::queue::file_server::{DiskLines, FileServer};
use perf::model::trace::Measured;
use perf::model::whatif::of_trace::TraceCase;
use perf::units::Nanos;
use world::simulate::{self, Outcome, Topology};

/// Calls of a run, about: where service is regular and nothing is drawn, and where arrivals are.
const REGULAR_CALLS: f64 = 4_000.0;
const RANDOM_CALLS: f64 = 10_000.0;

/// Calls outstanding that one client of a world may have.
const OUTSTANDING_MAX: u32 = 1024;

/// Calls that wait in an open loop: so many times as many as there are on average, over as many
/// clients as that takes.
const RESERVE: f64 = 6.0;
const OF_A_CLIENT: f64 = 64.0;
const CLIENTS_MAX: f64 = 256.0;

/// Callers that are run: each is a client with a connection.
const CALLERS_MAX: u32 = 4096;

/// A delay, and servers behind one line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stage {
    /// With what a caller thinks.
    pub(super) way_us: f64,
    pub(super) demand_us: f64,
    pub(super) servers: u32,
    /// o, at the client.
    pub(super) overhead_us: f64,
    pub(super) outstanding: u32,
}

impl Stage {
    /// Of a sweep: T is the way, S, and one o.
    pub(super) fn of_sweep(values: &[f64], outstanding: u32) -> Self {
        let (cycle_us, stage_us) = (values[0], values[1]);
        let overhead_us = values.get(2).copied().unwrap_or(0.0);
        Self {
            way_us: (cycle_us - stage_us - overhead_us).max(0.0),
            demand_us: stage_us,
            servers: 1,
            overhead_us,
            outstanding,
        }
    }

    pub(super) fn of_trace(case: &TraceCase) -> Self {
        let TraceCase { way_us, think_us, servers, outstanding, .. } = *case;
        let (way_us, demand_us) = (way_us + think_us, case.demand_us());
        Self { way_us, demand_us, servers, overhead_us: 0.0, outstanding }
    }

    pub(super) fn topology(&self) -> Result<Topology, String> {
        let Self { way_us, demand_us, servers, overhead_us, outstanding } = *self;
        if outstanding > OUTSTANDING_MAX {
            return Err(format!(
                "a client of a world has at most {OUTSTANDING_MAX} calls outstanding"
            ));
        }
        let cycle_us = way_us + demand_us + overhead_us;
        let stage_us = (demand_us / f64::from(servers)).max(overhead_us);
        let call_us = (cycle_us / f64::from(outstanding)).max(stage_us);
        parse(&format!(
            "[server]\ncores = {servers}\nper-call = \"{demand_us:.4}us\"\nper-byte = \"0\"\n\
             disk = \"none\"\nthreads = {threads}\n\
             [[clients]]\ncount = 1\nlink = \"L={:.4}us,o.send={overhead_us:.4}us\"\n\
             [workload]\nmix = \"getattr\"\noutstanding = {outstanding}\nfiles = \"1M\"\n\
             warm-up = \"{:.3}us\"\ntime = \"{:.3}us\"\n",
            way_us / 2.0,
            10.0 * cycle_us + 200.0 * call_us,
            REGULAR_CALLS * call_us,
            threads = outstanding.max(256),
        ))
    }

    /// Calls a second, and what each takes with its think time.
    pub(super) fn measured(&self) -> Result<Measured, String> {
        let outcome = run(&self.topology()?)?;
        Ok(Measured { per_s: outcome.per_s, response_us: response(&outcome) })
    }

    /// Calls a second.
    pub(super) fn per_s(&self) -> Result<f64, String> {
        self.measured().map(|measured| measured.per_s)
    }
}

/// What asks a file server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// Calls a second that do not wait for each other.
    Rate(f64),
    /// So many callers that do not think.
    Callers(u32),
}

impl Load {
    /// How many clients ask, and each of them how.
    fn clients(self, response_us: f64) -> Result<(f64, String), String> {
        match self {
            Self::Rate(per_s) => {
                let clients = (RESERVE * per_s * response_us / 1e6 / OF_A_CLIENT).ceil();
                Ok((clients.clamp(1.0, CLIENTS_MAX), format!("rate = {per_s:.3}")))
            }
            Self::Callers(callers) if callers > CALLERS_MAX => {
                Err(format!("a world is run with at most {CALLERS_MAX} callers"))
            }
            Self::Callers(callers) => Ok((f64::from(callers), "outstanding = 1".to_owned())),
        }
    }
}

/// A file server of the queueing model under a load; `per_s` is the rate at which its cache is.
pub(super) fn file_server(server: &FileServer, per_s: f64, load: Load) -> Result<Topology, String> {
    if server.disk_lines == DiskLines::Each && server.cache.misses(per_s) > 0.0 {
        return Err("a world has one line for all disks".to_owned());
    }
    let base_us = server.response_us(per_s.min(0.9 * server.saturation().0)).unwrap_or(0.0);
    let (clients, load_text) = load.clients(base_us)?;
    let (cpu, disks) = (server.cpu, server.disks);
    let calls = RANDOM_CALLS;
    let mut topology = parse(&format!(
        "[server]\ncores = {}\nper-call = \"{:.4}us\"\nper-byte = \"0\"\ncache = 0\n\
         disk = \"seek=0,rate=1000GB/s,read-access={:.3}us,parallel={}\"\nthreads = 65536\n\
         [[clients]]\ncount = {clients}\nlink = \"L={:.4}us\"\n\
         [workload]\nmix = \"read\"\n{load_text}\nfiles = \"4M\"\n\
         warm-up = \"{:.3}us\"\ntime = \"{:.3}us\"\n",
        cpu.servers(),
        cpu.service_us(),
        disks.service_us(),
        disks.servers(),
        server.delay_us / 2.0,
        20.0 * base_us + 0.05 * calls / per_s * 1e6,
        calls / per_s * 1e6,
    ))?;
    topology.workload.mix = missing(server.cache.misses(per_s));
    Ok(topology)
}

/// Of 1,000 calls, so many READs; a share to the thousandth.
fn missing(share: f64) -> Mix {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
    let reads = (share.clamp(0.0, 1.0) * 1000.0).round() as usize;
    let shares: &'static [(Operation, u32)] = match reads {
        0 => &SHARES[0][..1],
        1000 => &SHARES[1000][1..],
        reads => &SHARES[reads],
    };
    let source = "a share of calls that miss the cache, from a fit";
    Mix { name: "hits and misses", shares, sureness: Sureness::Given, source }
}

/// A mix has its shares for as long as the program runs.
static SHARES: [[(Operation, u32); 2]; 1001] = {
    let mut shares = [[(Getattr, 1000), (Read, 0)]; 1001];
    let mut reads = 0;
    while reads <= 1000 {
        #[expect(clippy::cast_possible_truncation, reason = "0 to 1000")]
        let of_reads = reads as u32;
        shares[reads] = [(Getattr, 1000 - of_reads), (Read, of_reads)];
        reads += 1;
    }
    shares
};

fn parse(text: &str) -> Result<Topology, String> {
    Topology::parse(text).map_err(|error| format!("no world is like that: {error}"))
}

pub(super) fn run(topology: &Topology) -> Result<Outcome, String> {
    simulate::run(topology).map_err(|error| format!("in the world: {error}"))
}

/// Mean response time, us, and calls a second.
pub(super) fn response(outcome: &Outcome) -> f64 {
    Nanos::as_micros_f64(outcome.response_time.mean())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_in_a_world_has_the_throughput_of_its_formula() {
        for (outstanding, servers, overhead_us) in
            [(1, 1, 0.0), (4, 1, 10.0), (64, 1, 10.0), (64, 4, 0.0)]
        {
            let stage = Stage { way_us: 400.0, demand_us: 60.0, servers, overhead_us, outstanding };
            let calls = f64::from(outstanding);
            let window = calls / (460.0 + overhead_us + (calls - 1.0) * overhead_us);
            let formula = window.min(f64::from(servers) / 60.0) * 1e6;
            let ratio = stage.per_s().unwrap() / formula;
            assert!((0.9..1.1).contains(&ratio), "{stage:?}: {ratio}");
        }
        let many =
            Stage { way_us: 1.0, demand_us: 1.0, servers: 1, overhead_us: 0.0, outstanding: 2000 };
        assert!(many.per_s().unwrap_err().contains("at most 1024"));
    }

    #[test]
    fn a_file_server_in_a_world_answers_as_its_formula_with_regular_service() {
        let server = FileServer::paper_scsi();
        let outcome = run(&file_server(&server, 600.0, Load::Rate(600.0)).unwrap()).unwrap();
        assert!((outcome.per_s / 600.0 - 1.0).abs() < 0.05, "{}", outcome.per_s);
        let formula_us = server.response_us(600.0).unwrap();
        let world_us = response(&outcome);
        // Random service waits twice as long for the processor as regular service does.
        assert!((0.85..1.02).contains(&(world_us / formula_us)), "{world_us} {formula_us}");
        let full = file_server(&server, 1_111.0, Load::Callers(64)).unwrap();
        let per_s = run(&full).unwrap().per_s;
        assert!((per_s / 1_111.0 - 1.0).abs() < 0.05, "{per_s}");
        let each = FileServer { disk_lines: DiskLines::Each, ..server };
        assert!(file_server(&each, 600.0, Load::Rate(600.0)).is_err());
    }

    #[test]
    fn shares_are_those_of_the_misses() {
        assert_eq!(missing(0.0).shares, [(Getattr, 1000)]);
        assert_eq!(missing(1.0).shares, [(Read, 1000)]);
        assert_eq!(missing(0.25).shares, [(Getattr, 750), (Read, 250)]);
    }
}
