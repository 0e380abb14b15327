//! Where the time of a call goes in our own server, by its metrics.

use std::fmt;

use super::{About, Certainty, Found, Gain, Layer, NoFinding, Rule, Severity};
use crate::model;
use crate::shares::{Shares, Where};

/// The finding is made of a page of metrics ([`found`]), not of the kernel's counters.
pub(super) static RULE: Rule = Rule {
    name: "our-server",
    about: About::Server,
    layer: Layer::Server,
    severity: Severity::Medium,
    needs: &["nfskit serve --metrics ADDRESS:PORT"],
    thresholds: &[],
    source: "docs/metrics.md, where the time of a call goes; the limits (half of the time, 1 ms, a \
             twentieth of the time with a call in service) are ours",
    explanation: "For each call, our server counts how long it waited for its turn, how long it \
                  was processed, how long it waited for the store, and how long its reply took to \
                  send. The longest phase is the one to change.",
    remedy: "By phase: threads, processors, storage, or the client that does not take its replies. \
             Where WRITEs wait for storage and there is no write log: nfskit serve --write-log \
             FILE; where there is one: its size or its device, by its own counters.",
    gain: "The share of the time that the phase takes, where half to all of it goes away. Of a \
           write log: the model of nfskit model whatif write-log=DEVICE.",
    explained_by: &[],
    judge: |_| Err(NoFinding::NotApplicable),
};

/// What a page of metrics says, or what came between two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OurServed {
    pub address: String,
    pub calls: f64,
    pub calls_per_s: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Of a mean call, by the names of docs/metrics.md.
    pub phases_ms: Vec<(String, f64)>,
    /// Retransmissions that were answered from the reply cache.
    pub replayed: f64,
    /// Calls in service at a time, on average.
    pub in_service: Option<f64>,
    pub processors: Option<f64>,
    pub syncs_per_s: Option<f64>,
    /// Of the time in which calls wait for the store, the part of WRITEs, of 1.
    pub waiting_writes: Option<f64>,
    /// Its write log, if it has one.
    pub write_log: Option<OurLog>,
}

/// The write log of our server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OurLog {
    /// What a write of 4 KiB took at the start.
    pub write_us: Option<f64>,
    pub records: f64,
    pub frames: f64,
    /// Stable WRITEs that were made stable in their file instead.
    pub refused: f64,
    pub size_bytes: Option<f64>,
    pub has_failed: bool,
}

pub(crate) fn rule() -> &'static Rule {
    &RULE
}

/// What each phase waits for, and what to do about it.
const PHASES: [(&str, Layer, &str, &str); 5] = [
    ("queue", Layer::Server, "waiting for a turn", "more --threads; --commit-mode concurrent"),
    ("decode", Layer::Server, "the engine's own work", "more processors; nfskit serve --slow-log"),
    ("store", Layer::Server, "work in the store", "faster processors, directories in memory"),
    ("sync_wait", Layer::Storage, "waiting for the store", "faster stable storage: a log, an SSD"),
    ("send", Layer::Network, "sending replies", "the clients' side: nfskit doctor there; the link"),
];

/// The phase that takes most, if calls take long and half of that is its.
pub(crate) fn found(served: &OurServed) -> Option<(Layer, Found)> {
    let all: f64 = served.phases_ms.iter().map(|(_, ms)| ms).sum();
    let (name, ms) = served.phases_ms.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (_, layer, what, remedy) = PHASES.iter().find(|(known, ..)| known == name)?;
    let share = ms / all;
    let is_idle = served.in_service.is_some_and(|busy| busy < 0.05);
    if is_idle || all < 1.0 || share < 0.5 {
        return None;
    }
    let what = format!("{what} takes {:.0} % of the {all:.1} ms of a call", share * 100.0);
    let gain = (1.0 / (1.0 - share / 2.0), 1.0 / (1.0 - share).max(0.1));
    let mut found = Found::new(&RULE, what, *remedy)
        .severity(if all > 20.0 { Severity::High } else { Severity::Medium })
        .certainty(Certainty::Likely)
        .gain(Gain::faster("work", gain, "half of this phase to all of it goes away"));
    found.evidence.extend(served.phases_ms.iter().map(|(name, ms)| format!("{name} {ms:.2} ms")));
    if *name == "sync_wait" {
        found = stored(served, found, (share, *ms, all));
    }
    found.gain = found.gain.of_all_time(served.in_service);
    found.evidence.extend(served.write_log.map(|log| log.to_string()));
    let is_retransmitted = served.replayed / served.calls.max(1.0) > 0.0005;
    let replayed = || format!("{:.0} calls came a second time", served.replayed);
    Some((*layer, found.evidence_if(is_retransmitted, replayed)))
}

/// Storage that is waited for: with a write log or without.
fn stored(served: &OurServed, found: Found, (share, wait_ms, all_ms): (f64, f64, f64)) -> Found {
    // The sum of no floats is -0, which is printed so.
    let writes = served.waiting_writes.unwrap_or(0.0) + 0.0;
    let found = found.evidence(format!("{:.0} % of that are WRITEs", 100.0 * writes));
    match &served.write_log {
        None if writes >= WRITES_MIN => {
            // All but the wait stays, and each call waits by itself.
            let callers = served.in_service.unwrap_or(1.0);
            let floor_ms = all_ms - wait_ms;
            let gain = model::logged(share * writes, all_ms, (floor_ms, floor_ms), callers);
            let remedy = "nfskit serve --write-log FILE, on a device that is stable quickly";
            Found { remedy: remedy.to_owned(), ..found }.gain(gain)
        }
        None => Found { remedy: WITHOUT_LOG.to_owned(), ..found },
        Some(log) => Found { remedy: log.remedy(writes), ..found },
    }
}

const WITHOUT_LOG: &str = "faster stable storage: names and COMMITs of more than 64 KiB are synced \
                           in their place, also with --write-log";
const WITH_LOG: &str = "faster storage for the directory: names and COMMITs of more than 64 KiB \
                        are synced there, also with a write log";

impl OurLog {
    /// What to do where storage is waited for; `writes` is the share of WRITEs in that.
    fn remedy(&self, writes: f64) -> String {
        let Self { records, refused, .. } = self;
        if self.has_failed {
            return "another device for the write log: this one has failed, and files are synced as \
                    without"
                .to_owned();
        }
        if *refused > REFUSED * records {
            return format!(
                "a larger log (--write-log-size; it has {:.0} MiB), or fewer WRITEs of more than \
                 256 KiB: {refused:.0} WRITEs were synced in their file instead",
                self.size_bytes.unwrap_or(0.0) / 1_048_576.0
            );
        }
        match self.write_us {
            _ if writes < WRITES_MIN => WITH_LOG.to_owned(),
            Some(us) => format!("a faster device for the write log: this one takes {us:.0} us"),
            None => "a faster device for the write log".to_owned(),
        }
    }
}

/// Where the time of a mean call goes.
pub(crate) fn shares(served: &OurServed) -> Option<Shares> {
    let all: f64 = served.phases_ms.iter().map(|(_, ms)| ms).sum();
    let of = |layer: Layer| {
        let phases = served.phases_ms.iter().filter(|(name, _)| {
            PHASES.iter().any(|(known, found, ..)| known == name && *found == layer)
        });
        (Where::Layer(layer), phases.map(|(_, ms)| ms / all).fold(0.0, std::ops::Add::add))
    };
    (all > 0.0).then(|| Shares {
        of_calls: [Layer::Network, Layer::Server, Layer::Storage].map(of).to_vec(),
        call_ms: all,
        application: None,
    })
}

/// A write log answers WRITEs: they have to be so much of the wait.
const WRITES_MIN: f64 = 0.5;
/// Of the records, what is synced in files instead.
const REFUSED: f64 = 0.1;

impl fmt::Display for OurLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, frames, refused, .. } = self;
        write!(f, "write log: {records:.0} records in {frames:.0} frames")?;
        if let Some(us) = self.write_us {
            write!(f, ", 4 KiB in {us:.0} us")?;
        }
        if *refused > 0.0 {
            write!(f, ", {refused:.0} WRITEs synced in their file")?;
        }
        if self.has_failed {
            write!(f, "; it has FAILED")?;
        }
        Ok(())
    }
}

/// The numbers of a server that is well.
pub(crate) fn well(served: &OurServed) -> String {
    let rate = served.calls_per_s.map_or(String::new(), |rate| format!(", {rate:.1}/s"));
    let p99 = served.p99_ms.map_or(String::new(), |ms| format!(", 99 % within {ms:.2} ms"));
    let log = served.write_log.map_or_else(|| "no write log".to_owned(), |log| log.to_string());
    format!(
        "{:.0} calls{rate}{p99}, {:.0} came a second time; {log}",
        served.calls, served.replayed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(sync_ms: f64, in_service: f64) -> OurServed {
        OurServed {
            calls: 1_000.0,
            in_service: Some(in_service),
            phases_ms: vec![("queue".to_owned(), 0.1), ("sync_wait".to_owned(), sync_ms)],
            ..OurServed::default()
        }
    }

    #[test]
    fn the_phase_that_takes_most_of_a_slow_call_is_found() {
        let (layer, all) = found(&served(30.0, 2.0)).unwrap();
        assert_eq!((layer, all.severity), (Layer::Storage, Severity::High));
        assert!(
            all.what.starts_with("waiting for the store takes 100 % of the 30.1 ms"),
            "{all:?}"
        );
    }

    #[test]
    fn whether_a_log_is_on_decides_what_to_do_about_storage() {
        let of = |write_log, waiting_writes| {
            let waiting_writes = Some(waiting_writes);
            found(&OurServed { write_log, waiting_writes, ..served(30.0, 2.0) }).unwrap().1
        };
        let without = of(None, 0.9);
        assert!(without.remedy.contains("--write-log FILE"), "{without:?}");
        let Gain::Faster { least, most, model, .. } = without.gain else { panic!("{without:?}") };
        assert!(least > 5.0 && most < 10.0 && model.contains("write log"), "{least} {most}");
        assert!(of(None, 0.1).remedy.contains("also with --write-log"));
        let log = OurLog {
            write_us: Some(95.0),
            records: 1_000.0,
            frames: 100.0,
            size_bytes: Some(67_108_864.0),
            ..OurLog::default()
        };
        let slow = of(Some(log), 0.9);
        assert!(slow.remedy.contains("faster device for the write log: this one takes 95 us"));
        assert!(slow.evidence.iter().any(|line| line.contains("1000 records in 100 frames")));
        assert!(of(Some(OurLog { refused: 500.0, ..log }), 0.9).remedy.contains("it has 64 MiB"));
        assert!(of(Some(OurLog { has_failed: true, ..log }), 0.9).remedy.contains("has failed"));
        assert!(of(Some(log), 0.1).remedy.contains("are synced there, also with a write log"));
        let well = well(&OurServed { write_log: Some(log), ..served(0.3, 2.0) });
        assert!(
            well.ends_with("; write log: 1000 records in 100 frames, 4 KiB in 95 us"),
            "{well}"
        );
    }

    #[test]
    fn a_server_without_a_call_for_most_of_the_time_has_little_to_gain() {
        let gain = |in_service| found(&served(30.0, in_service)).unwrap().1.gain.to_string();
        assert_eq!(
            gain(0.22),
            "1.1 to 1.2 times the work, by half of this phase to all of it goes away"
        );
        assert!(gain(2.0).starts_with("2.0 to 10.0 times the work, by"), "{}", gain(2.0));
    }

    #[test]
    fn no_writes_are_not_less_than_none() {
        let only = OurServed { waiting_writes: Some(-0.0), ..served(30.0, 2.0) };
        let (_, all) = found(&only).unwrap();
        assert!(all.evidence.contains(&"0 % of that are WRITEs".to_owned()), "{all:?}");
        let shares = shares(&only).unwrap();
        assert!(shares.of_calls.iter().all(|(_, share)| share.is_sign_positive()), "{shares:?}");
    }

    #[test]
    fn fast_calls_and_few_of_them_are_well() {
        assert_eq!(found(&served(0.3, 2.0)), None);
        assert_eq!(found(&served(30.0, 0.01)), None);
        assert!(well(&served(1.0, 1.0)).starts_with("1000 calls"));
        let shares = shares(&served(0.3, 2.0)).unwrap();
        assert!((shares.of_calls[2].1 - 0.75).abs() < 1e-9, "{shares:?}");
    }
}
