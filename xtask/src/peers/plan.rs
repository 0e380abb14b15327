//! The order of the runs: modes, rounds, rows, servers.

use std::collections::BTreeSet;

use super::cpu;
use super::durability::{self, Syncs};
use super::fixture::{self, Site};
use super::measure::{Measurer, drop_caches};
use super::options::Options;
use super::outcome::{Mode, Outcomes};
use super::rows::{Cache, ROWS, Row, SCALED, Work};
use super::servers::{Name, Peer, Stage};

/// A server with the connections to it; one, or two where two are measured.
type Mounted = (Peer, Vec<Site>);

/// Everything that was requested. Fails only when the machine does; what a server fails at is
/// among the outcomes.
pub(crate) fn measure_all(
    stage: &Stage,
    options: &Options,
    outcomes: &mut Outcomes,
) -> Result<(), String> {
    let cores = cpu::cores()?;
    let last = *cores.last().ok_or("no core to run on")?;
    let modes: &[Mode] = match cores.len() {
        2.. if !options.pinned_only => &[Mode::Pinned, Mode::Unpinned, Mode::Doubled],
        _ => &[Mode::Pinned],
    };
    if !drop_caches() {
        println!("peers: the kernel's caches cannot be dropped; cold is a fresh server alone");
    }
    for round in 0..options.repeats() {
        for &mode in modes {
            let rows: Vec<&Row> =
                ROWS.iter().filter(|row| is_measured(row, mode, options)).collect();
            if rows.is_empty() {
                continue;
            }
            println!("peers: round {} of {}, {}", round + 1, options.repeats(), mode.label());
            // A server sees so many cores at its start, and makes its threads accordingly.
            let one = [last];
            cpu::pin(if mode == Mode::Pinned { &one } else { &cores })?;
            let mut round =
                Round { stage, options, mode, round, cores: &cores, mounted: Vec::new() };
            round.start(&rows, outcomes);
            fixture::warm(&stage.export).map_err(|error| format!("page cache: {error}"))?;
            for row in rows {
                round.measure(row, outcomes);
            }
            round.stop(outcomes);
        }
    }
    Ok(())
}

/// What each server syncs; nothing where strace is missing.
pub(crate) fn watch_syncs(stage: &Stage, outcomes: &mut Outcomes) -> Vec<Syncs> {
    let mut all = Vec::new();
    let disk = [Name::Ours, Name::OursLog, Name::OursUnsynced, Name::Ganesha, Name::Unfs3];
    for name in disk.into_iter().filter(|&name| stage.obstacle(name).is_ok()) {
        let watched = (|| {
            let peer = stage.start(name)?.ok_or("no server")?;
            let mut site = Site::open(&peer, 0)?;
            let syncs = durability::watch(&peer, &mut site, &stage.scratch)?;
            peer.stop()?;
            Ok::<_, String>(syncs)
        })();
        match watched {
            Ok(syncs) => all.extend(syncs),
            Err(why) => outcomes.failures.push(format!("{}, syncs: {why}", name.label())),
        }
    }
    all
}

fn is_measured(row: &Row, mode: Mode, options: &Options) -> bool {
    options.wants(row.name) && (mode != Mode::Doubled || SCALED.contains(&row.name))
}

/// One round of one mode, with servers of its own.
struct Round<'a> {
    stage: &'a Stage,
    options: &'a Options,
    mode: Mode,
    round: usize,
    cores: &'a [usize],
    mounted: Vec<Mounted>,
}

impl Round<'_> {
    /// Starts and mounts all servers of these rows that can run here.
    fn start(&mut self, rows: &[&Row], outcomes: &mut Outcomes) {
        let names: BTreeSet<Name> = rows.iter().flat_map(|row| row.peers).copied().collect();
        let names: Vec<Name> =
            names.into_iter().filter(|&name| self.stage.obstacle(name).is_ok()).collect();
        for name in names {
            let started = self.stage.start(name).and_then(|peer| match peer {
                Some(peer) => self.mount(&peer).map(|sites| Some((peer, sites))),
                None => Ok(None),
            });
            match started {
                Ok(mounted) => self.mounted.extend(mounted),
                Err(why) => outcomes.failures.push(format!("{}: {why}", name.label())),
            }
        }
    }

    fn mount(&self, peer: &Peer) -> Result<Vec<Site>, String> {
        let connections = if self.mode == Mode::Doubled { 2 } else { 1 };
        // Apart by a million calls, so that no two connections use the same transaction ids.
        let first = u32::try_from(self.round).unwrap_or(0) * connections;
        (0..connections).map(|number| Site::open(peer, (first + number) << 20)).collect()
    }

    /// A row on one server after the other; who is first changes from round to round.
    fn measure(&mut self, row: &Row, outcomes: &mut Outcomes) {
        for turn in 0..row.peers.len() {
            let name = row.peers[(turn + self.round) % row.peers.len()];
            let Some(sample) = self.sample(row, name) else { continue };
            match sample {
                Ok(sample) => outcomes.add(self.mode, row, name, self.round, sample),
                Err(why) => {
                    let what = format!("{}, {}: {why}", name.label(), row.name);
                    println!("peers: {what}");
                    outcomes.failures.push(what);
                }
            }
        }
        if matches!(row.work, Work::List(Cache::Cold)) {
            // With the names the kernel may have dropped what the next rows take for cached.
            let _ = fixture::warm(&self.stage.export);
        }
    }

    /// None for a server that is not there.
    fn sample(&mut self, row: &Row, name: Name) -> Option<Result<super::measure::Sample, String>> {
        let measurer = Measurer {
            options: self.options,
            scratch: &self.stage.scratch,
            export: &self.stage.export,
            is_ours: name.is_ours(),
        };
        if name == Name::Local {
            return Some(measurer.local(row));
        }
        let (peer, sites) = self.mounted.iter_mut().find(|(peer, _)| peer.name == name)?;
        let sample = match sites.as_mut_slice() {
            [site] => measurer.run(row, site, (name, peer.pid)),
            sites => measurer.run_at_once(row, sites, self.cores, peer.pid),
        };
        Some(sample)
    }

    fn stop(self, outcomes: &mut Outcomes) {
        for (peer, sites) in self.mounted {
            let name = peer.name;
            drop(sites);
            if let Err(why) = peer.stop() {
                outcomes.failures.push(format!("{}: {why}", name.label()));
            }
        }
    }
}
