use super::mounts::{Change, MountRates};
use super::*;
use crate::{client, mountstats, pools, server};

const FIRST: &str = "\
device server:/export mounted on /mnt/a with fstype nfs statvers=1.1
\topts:\trw,vers=3,hard,proto=tcp,nconnect=2,sec=sys
\tage:\t1000
\tevents:\t10 100 0 0 50 20 200 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
\tbytes:\t1000000 0 0 0 400000 0 0 0
\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)
\txprt:\ttcp 800 1 1 0 3 100 100 0 100 0 16 0 0
\txprt:\ttcp 801 1 1 0 3 100 100 0 100 0 16 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t     GETATTR: 100 100 0 10000 11200 0 100 100 0
\t      LOOKUP: 40 40 0 0 0 0 0 0 0
\t      ACCESS: 20 20 0 0 0 0 0 0 0
\t        READ: 59 59 0 6000 400000 0 600 700 0
";

/// Two seconds later.
const SECOND: &str = "\
device server:/export mounted on /mnt/a with fstype nfs statvers=1.1
\topts:\trw,vers=3,hard,proto=tcp,nconnect=2,sec=sys
\tage:\t1002
\tevents:\t10 200 0 0 60 25 300 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
\tbytes:\t2000000 0 0 0 600000 0 0 0
\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)
\txprt:\ttcp 800 1 1 0 0 140 140 1 220 20 16 0 0
\txprt:\ttcp 801 1 2 0 0 110 110 0 110 0 16 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t     GETATTR: 120 122 1 12000 13440 10 140 160 4
\t      LOOKUP: 70 70 0 0 0 0 0 0 0
\t      ACCESS: 40 40 0 0 0 0 0 0 0
\t        READ: 79 79 0 8000 600000 0 1600 1900 0
";

fn one(now: &str, before: Option<(&str, f64)>) -> MountRates {
    let now = mountstats::read(now.as_bytes()).unwrap();
    let before = before.map(|(text, ago)| (mountstats::read(text.as_bytes()).unwrap(), ago));
    let rates = mounts::rates(&now, before.as_ref().map(|(mounts, ago)| (&mounts[..], *ago)));
    assert!(rates.vanished.is_empty());
    let [mount] = <[_; 1]>::try_from(rates.mounts).unwrap();
    mount
}

#[test]
fn a_mount_between_two_samples_has_rates_means_and_shares() {
    let mount = one(SECOND, Some((FIRST, 2.0)));
    assert_eq!((mount.span, mount.change), (Span::sample(2.0), None));
    let getattr = &mount.operations[1];
    assert_eq!((getattr.name.as_str(), getattr.calls), ("GETATTR", 20));
    assert_eq!(getattr.calls_per_s, Some(10.0));
    assert_eq!((getattr.retransmissions, getattr.retransmission_share), (2, Some(0.1)));
    assert_eq!((getattr.major_timeouts, getattr.errors), (1, Some(4)));
    assert_eq!((getattr.sent_bytes, getattr.received_bytes_per_s), (2000, Some(1120.0)));
    assert_eq!(getattr.bytes_per_call, Some(212.0));
    let times = [getattr.queue_ms_mean, getattr.rtt_ms_mean, getattr.execute_ms_mean];
    assert_eq!(times, [Some(0.5), Some(2.0), Some(3.0)]);
    let read = &mount.operations[4];
    assert_eq!((read.outstanding_mean, read.in_system_mean), (Some(0.5), Some(0.6)));
    let null = &mount.operations[0];
    assert_eq!((null.calls, null.rtt_ms_mean, null.calls_per_s), (0, None, Some(0.0)));
    assert_eq!((mount.total.calls, mount.total.name.as_str()), (90, ""));
    assert_eq!(mount.total.rtt_ms_mean, Some(1040.0 / 90.0));
    assert_eq!(mount.total.outstanding_mean, Some(0.52));
}

#[test]
fn connections_bytes_and_caches_are_reported_as_far_as_they_are_counted() {
    let mount = one(SECOND, Some((FIRST, 2.0)));
    let [first, second] = &mount.transports[..] else { panic!("{mount:?}") };
    assert_eq!((first.sends, first.sends_per_s, first.bad_xids), (Some(40), Some(20.0), Some(1)));
    assert_eq!((first.outstanding_mean, first.backlog_mean), (Some(3.0), Some(0.5)));
    assert_eq!((first.reconnects, second.reconnects), (Some(0), Some(1)));
    let bytes = mount.bytes.unwrap();
    assert_eq!(bytes.application_read_bytes_per_s, Some(500_000.0));
    assert_eq!(bytes.server_read_bytes_per_s, Some(100_000.0));
    // 1 MB read, 0.2 MB fetched; 100 checks with 20 ACCESSes; 100 checks of names and 5 new ones
    // with 30 LOOKUPs.
    assert_eq!(mount.caches.read_share, Some(0.8));
    assert_eq!(mount.caches.access_share, Some(0.8));
    assert_eq!(mount.caches.name_share, Some(0.75));
    assert_eq!(mount.caches.getattrs_per_open, Some(2.0));
    let idle = one(FIRST, Some((FIRST, 0.5))).caches;
    assert_eq!((idle.read_share, idle.access_share), (None, None));
}

#[test]
fn a_single_sample_counts_since_the_mount() {
    let mount = one(FIRST, None);
    assert_eq!((mount.span, mount.change), (Span::beginning(Some(1000.0)), None));
    assert_eq!(mount.operations[1].calls_per_s, Some(0.1));
    assert_eq!(mount.transports[0].reconnects, Some(0), "the first connection is none");
    let new = one(&FIRST.replace("\tage:\t1000", "\tage:\t0"), None);
    assert_eq!((new.span.seconds, new.operations[1].calls_per_s), (None, None));
    assert_eq!(new.operations[1].rtt_ms_mean, Some(1.0));
}

#[test]
fn a_mount_that_is_too_young_was_mounted_anew() {
    let young = SECOND.replace("\tage:\t1002", "\tage:\t1");
    let mount = one(&young, Some((FIRST, 2.0)));
    assert_eq!(mount.change, Some(Change::Remounted));
    assert_eq!((mount.span, mount.operations[1].calls), (Span::beginning(Some(1.0)), 120));
    // Younger by as much as two ages that are cut off can be, and by more.
    let mount = |ago| one(SECOND, Some((FIRST, ago))).change;
    assert_eq!((mount(3.9), mount(4.1)), (None, Some(Change::Remounted)));
    let other = SECOND.replace("100003/3", "100003/4");
    assert_eq!(one(&other, Some((FIRST, 2.0))).change, Some(Change::Remounted));
}

#[test]
fn mounts_come_and_go_and_lie_on_each_other() {
    let at = |point: &str| FIRST.replace("/mnt/a", point);
    let read = |texts: &[String]| mountstats::read(texts.concat().as_bytes()).unwrap();
    let before = read(&[at("/a"), at("/b"), at("/b")]);
    let now = read(&[at("/b"), at("/c")]);
    let rates = mounts::rates(&now, Some((&before, 1.0)));
    let changes: Vec<_> = rates.mounts.iter().map(|mount| mount.change).collect();
    assert_eq!(changes, [None, Some(Change::Appeared)]);
    let gone: Vec<_> = rates.vanished.iter().map(|gone| gone.point.as_str()).collect();
    assert_eq!(gone, ["/a", "/b"]);
}

#[test]
fn times_that_were_turned_back_are_not_known() {
    let before = FIRST.replace("11200 0 100 100 0", "11200 500 100 100 0");
    // -9 ms, as some kernels have it.
    let now = SECOND.replace("13440 10 140", "13440 18446744073709551607 140");
    let mount = one(&now, Some((&before, 2.0)));
    assert_eq!(mount.operations[1].queue_ms_mean, None);
    assert_eq!(mount.operations[1].rtt_ms_mean, Some(2.0));
    assert_eq!(mount.total.queue_ms_mean, Some(0.0), "of the other calls");
    let since_made = one(&now, None);
    assert_eq!(since_made.operations[1].queue_ms_mean, None);
    // Both below zero: what came between is known.
    let before = FIRST.replace("11200 0 100 100 0", "11200 18446744073709551587 100 100 0");
    assert_eq!(one(&now, Some((&before, 2.0))).operations[1].queue_ms_mean, Some(1.0));
}

#[test]
fn a_connection_that_was_made_anew_counts_from_its_beginning() {
    let before = FIRST.replace("tcp 800 1 1 0 3 100", "tcp 800 1 1 0 3 90000");
    let mount = one(SECOND, Some((&before, 2.0)));
    assert_eq!(mount.transports[0].sends, Some(140));
    let fewer = FIRST.replace("\txprt:\ttcp 801 1 1 0 3 100 100 0 100 0 16 0 0\n", "");
    let mount = one(SECOND, Some((&fewer, 2.0)));
    assert_eq!((mount.transports[1].sends, mount.transports[1].reconnects), (Some(110), Some(1)));
}

const NFS: &str = "net 100 0 100 1\nrpc 4294967290 5 0\nproc3 22 1 4294967200 0 0 0 0 0 0 0 0 0 0 \
    0 0 0 0 0 0 0 0 0 0\nproc4 3 0 7 8\n";

#[test]
fn a_clients_counters_wrap_at_32_bits() {
    let before = client::read(NFS.as_bytes()).unwrap();
    let now = NFS.replace("rpc 4294967290 5", "rpc 94 7").replace("1 4294967200", "1 4");
    let now = client::read(now.replace("proc4 3 0 7 8", "proc4 3 0 9 8").as_bytes()).unwrap();
    let rates = super::client::rates(&now, Some((&before, 2.0)), None);
    assert_eq!((rates.calls, rates.calls_per_s), (Some(100), Some(50.0)));
    assert_eq!((rates.retransmissions, rates.retransmission_share), (Some(2), Some(0.02)));
    let getattr = rates.procedures.iter().find(|one| one.name == "getattr").unwrap();
    assert_eq!((getattr.version, getattr.calls), (Version::V3, 100));
    assert_eq!((rates.v4_calls, rates.net.unwrap().packets), (Some(2), 0));
}

#[test]
fn a_machine_that_was_started_anew_counts_from_there() {
    let before = client::read(b"rpc 3000 5 0\n").unwrap();
    let now = client::read(b"rpc 20 1 0\n").unwrap();
    let rates = super::client::rates(&now, Some((&before, 2.0)), Some(10.0));
    assert_eq!((rates.span, rates.calls_per_s), (Span::beginning(Some(10.0)), Some(2.0)));
    let alone = super::client::rates(&now, None, None);
    assert_eq!((alone.calls, alone.calls_per_s), (Some(20), None));
}

const NFSD: &str = "rc 10 1000 500\nfh 3 0 0 0 0\nio 4294967000 1000\nth 8 0 0 0 0\nnet 900 0 900 \
    2\nrpc 1510 4 1 3 0\nproc3 22 0 100 0 0 0 0 200 1200 0 0 0 0 0 0 0 0 0 0 0 0 0 10\nproc4 2 1 \
    50\nproc4ops 4 0 0 0 40\n";

#[test]
fn a_servers_counters_give_rates_and_shares() {
    let before = server::read(NFSD.as_bytes()).unwrap();
    let now = NFSD
        .replace("rc 10 1000 500", "rc 20 1080 510")
        .replace("io 4294967000", "io 1704")
        .replace("rpc 1510 4 1 3", "rpc 1610 6 1 5")
        .replace("200 1200", "220 1260")
        .replace("4 0 0 0 40", "4 0 0 0 60");
    let now = server::read(now.as_bytes()).unwrap();
    let text = |arrived, enqueued| {
        format!("# pool packets-arrived sockets-enqueued\n0 {arrived} {enqueued}\n1 5 5\n")
    };
    let pools = |arrived, enqueued| pools::read(text(arrived, enqueued).as_bytes()).unwrap();
    let (old_pools, new_pools) = (pools(100, 10), pools(200, 15));
    let now = super::server::Sample { server: &now, pools: &new_pools };
    let before = super::server::Sample { server: &before, pools: &old_pools };
    let rates = super::server::rates(now, Some((before, 4.0)), Some(1e4));
    assert_eq!((rates.calls, rates.calls_per_s), (Some(100), Some(25.0)));
    let refused = rates.refused.unwrap();
    assert_eq!((refused.all, refused.bad_authentication), (2, 2));
    let cache = rates.reply_cache.unwrap();
    assert_eq!((cache.hits, cache.misses, cache.hit_share), (10, 80, Some(0.1)));
    assert_eq!(rates.read_bytes_per_s, Some(500.0), "32 bits that have wrapped");
    assert_eq!(rates.threads, Some(8));
    let write = rates.procedures.iter().find(|one| one.name == "write").unwrap();
    assert_eq!((write.calls, write.calls_per_s), (60, Some(15.0)));
    assert_eq!(rates.v4_operations, [0, 0, 0, 20]);
    assert_eq!((rates.pools[0].enqueued, rates.pools[0].enqueued_share), (Some(5), Some(0.05)));
    assert_eq!(rates.pools[1].enqueued_share, None);
}

#[test]
fn a_server_that_began_anew_after_half_of_32_bits_is_no_wrap() {
    let read = |text: &str| server::read(text.as_bytes()).unwrap();
    let rates = |now: &str, before: &str| {
        let (now, before) = (read(now), read(before));
        let sample = |server| super::server::Sample { server, pools: &[] };
        super::server::rates(sample(&now), Some((sample(&before), 10.0)), Some(50.0))
    };
    let before = "rc 5 3000000000 40\nio 5000000000 1\nnet 3000000000 0 3000000000 77\n\
                  rpc 3000000000 0 0 0 0\n";
    let now = "rc 0 1000 0\nio 4000 0\nnet 1000 0 1000 1\nrpc 1000 0 0 0 0\n";
    let anew = rates(now, before);
    assert_eq!((anew.span, anew.calls), (Span::beginning(Some(50.0)), Some(1000)));
    assert_eq!(anew.reply_cache.unwrap().misses, 1000);
    // All of them large: they fell together, and none rose.
    let (large, small) =
        ("rc 0 3000000000 0\nrpc 3000000000 0 0 0 0\n", "rc 0 9 0\nrpc 9 0 0 0 0\n");
    assert_eq!(rates(small, large).calls, Some(9));
    // A wrap: others count on.
    let wrap = before.replace("rpc 3000000000", "rpc 4294967290");
    let after = before.replace("rpc 3000000000", "rpc 94").replace("rc 5", "rc 6");
    assert_eq!(rates(&after, &wrap).calls, Some(100));
}

#[test]
fn retransmissions_of_all_are_those_of_each() {
    // 20 READs were under way, which have ended since.
    let before = FIRST.replace("READ: 59 59 0", "READ: 59 79 0");
    let now = SECOND.replace("GETATTR: 120 122 1", "GETATTR: 120 180 1");
    let mount = one(&now, Some((&before, 2.0)));
    let each: u64 = mount.operations.iter().map(|one| one.retransmissions).sum();
    assert_eq!((mount.total.retransmissions, each), (60, 60));
}
