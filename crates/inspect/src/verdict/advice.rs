//! What to try, by what is found.

use trace::Work;
use trace::verdict::{Doubt, Evidence, Suspect};

/// Who is blamed in doubt is not what to change: first what tells.
pub(super) fn advice(evidence: &Evidence, suspect: Suspect, doubts: &[Doubt]) -> &'static str {
    let is_open = |doubt: &Doubt| matches!(doubt, Doubt::NoAcks | Doubt::OneWay);
    let may_be_way = |end: usize| {
        let is_it = |doubt: &Doubt| [Doubt::LateAcks(end), Doubt::Steady(end)].contains(doubt);
        doubts.iter().any(|doubt| is_it(doubt) || is_open(doubt))
    };
    match suspect {
        Suspect::IdleClient if may_be_way(0) => IDLE_OR_WAY,
        Suspect::SlowCommit
        | Suspect::SlowStableWrite
        | Suspect::SmallSyncs
        | Suspect::OneOutstanding
        | Suspect::SlowServer
            if may_be_way(1) || doubts.contains(&Doubt::EarlyAcks) =>
        {
            SERVER_OR_WAY
        }
        _ => sure(evidence, suspect),
    }
}

/// Where nothing speaks for the network.
fn sure(evidence: &Evidence, suspect: Suspect) -> &'static str {
    let moves_data = matches!(evidence.main(), Work::Read | Work::Write);
    match suspect {
        Suspect::NoReply => NO_REPLY,
        Suspect::HangingCalls => HANGING_CALLS,
        Suspect::SlowCommit => SLOW_COMMIT,
        Suspect::SlowStableWrite => SLOW_STABLE_WRITE,
        Suspect::SmallSyncs => SMALL_SYNCS,
        Suspect::Latency => LATENCY,
        Suspect::OneOutstanding if moves_data => ONE_OUTSTANDING,
        Suspect::OneOutstanding => ONE_CALL_AFTER_THE_OTHER,
        Suspect::Rate => RATE,
        Suspect::Loss => LOSS,
        Suspect::Stalls if evidence.clients <= 1 => STALLS_OF_ONE,
        Suspect::Stalls => STALLS,
        Suspect::AttributeStorm => ATTRIBUTE_STORM,
        Suspect::Retransmission => RETRANSMISSION,
        Suspect::ZeroWindow => ZERO_WINDOW,
        Suspect::IdleClient => IDLE_CLIENT,
        Suspect::Postponed => POSTPONED,
        Suspect::Relay => RELAY,
        Suspect::SlowServer if evidence.main() == Work::Change => SLOW_CHANGES,
        Suspect::SlowServer => SLOW_SERVER,
    }
}

const NO_REPLY: &str = "whether the server lives (nfskit ping, rpcinfo), and what its threads wait \
    for: its disks, its log, a lock (dmesg of both; a thread in state D)";
const HANGING_CALLS: &str = "what that call is for: its file, lock or directory, and the disk or \
    tier below it; what the server's thread waits for (dmesg, a thread in state D)";
const SLOW_COMMIT: &str = "a disk that is stable sooner: NVMe, a log on one, a cache with a \
    battery; the same capture at the server tells whether it is the disk";
const SLOW_STABLE_WRITE: &str = "a disk that is stable sooner (NVMe, a cache with a battery); a \
    mount without sync, a program without O_SYNC, where it can do without";
const SMALL_SYNCS: &str = "the program: larger or fewer fsyncs, several at once; else a disk that \
    is stable sooner, for it waits for each of them";
const LATENCY: &str = "more calls outstanding: nconnect, larger rsize and wsize, more read-ahead, \
    several programs; or a server that is nearer";
const ONE_CALL_AFTER_THE_OTHER: &str = "several programs or threads at once, for tar, cp -r and ls \
    -l make one call after the other; fewer calls, such as by caching; a server that is nearer";
const ONE_OUTSTANDING: &str = "more calls outstanding: read-ahead, asynchronous writes, several \
    programs or threads; larger calls";
const RATE: &str = "a faster link, or a second one (nconnect alone does not help); less data";
const LOSS: &str = "errors and drops of the interfaces and the switch between (ethtool -S, duplex, \
    cables, full queues)";
const STALLS_OF_ONE: &str = "the server at that time: its disks, its log, and what else it did \
    (dmesg, iostat); a file on a tape or another tier";
const STALLS: &str = "a server that answers others while it makes data stable: more threads, a \
    faster disk, smaller COMMITs";
const ATTRIBUTE_STORM: &str = "longer attribute caching (actimeo, nocto for what nobody changes), \
    fewer stat calls in the program, delegations of version 4";
const RETRANSMISSION: &str = "TCP; or a longer timeo where the server answers twice, and else what \
    loses datagrams (fragments, full socket buffers)";
const ZERO_WINDOW: &str = "the end that does not read: a server short of threads or waiting for \
    its disk, a client short of processor time or memory";
const IDLE_OR_WAY: &str = "a capture at the client: if it is idle there, too, the program itself; \
    if not, the network on the way to it";
const SERVER_OR_WAY: &str = "a capture at the server: if calls take as long there, its disks, \
    processors and threads; if not, the network on the way to it";
const IDLE_CLIENT: &str = "the program itself: NFS is not what it waits for";
const POSTPONED: &str = "what the server waits for: files on tape or another tier, delegations \
    that it recalls, the grace period after it was started";
const RELAY: &str = "the relay and the link behind it: their rate, and what else they carry; fewer \
    calls outstanding wait less, and carry as much where the link is full";
/// RFC 1813: what changes a directory or attributes is stable when it is answered.
const SLOW_CHANGES: &str = "the server: a disk or a log that is stable sooner, for CREATE, REMOVE, \
    RENAME and SETATTR are stable when they are answered; its processors and threads (nfskit \
    probe, iostat)";
const SLOW_SERVER: &str =
    "the server: its processors, disks and threads while this runs (nfskit probe, nfsstat, iostat)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_advised_for_calls_that_change_names_and_not_for_others() {
        let of = |work: Work| {
            let mut evidence = Evidence::default();
            evidence.waited.works[work as usize] = 1;
            advice(&evidence, Suspect::SlowServer, &[])
        };
        assert_eq!([Work::Change, Work::Other].map(of), [SLOW_CHANGES, SLOW_SERVER]);
    }

    #[test]
    fn who_is_blamed_in_doubt_is_not_what_to_change() {
        let of = |suspect, doubts: &[Doubt]| advice(&Evidence::default(), suspect, doubts);
        assert_eq!(of(Suspect::IdleClient, &[]), IDLE_CLIENT);
        assert_eq!(of(Suspect::IdleClient, &[Doubt::LateAcks(1)]), IDLE_CLIENT);
        for doubt in [Doubt::LateAcks(0), Doubt::NoAcks, Doubt::Steady(0), Doubt::OneWay] {
            assert_eq!(of(Suspect::IdleClient, &[doubt]), IDLE_OR_WAY, "{doubt:?}");
        }
        assert_eq!(of(Suspect::SlowCommit, &[Doubt::LateAcks(0)]), SLOW_COMMIT);
        for doubt in [Doubt::LateAcks(1), Doubt::EarlyAcks, Doubt::Steady(1)] {
            assert_eq!(of(Suspect::SlowCommit, &[doubt]), SERVER_OR_WAY, "{doubt:?}");
        }
    }
}
