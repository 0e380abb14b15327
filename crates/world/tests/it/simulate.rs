//! Topologies are read strictly, and run the same each time.

use world::simulate::{KindOutcome, Outcome, Topology, run};

const SMALL: &str = r#"
seed = 3
[server]
cores = 1
per-call = "100us"
per-byte = "0"
disk = "nvme"
[[clients]]
count = 6
link = "lan-1g,o=5us"
[workload]
mix = "getattr"
warm-up = "5ms"
time = "50ms"
files = "64K"
"#;

fn outcome(text: &str) -> Outcome {
    run(&Topology::parse(text).unwrap()).unwrap()
}

#[test]
fn a_closed_loop_on_one_busy_processor_gets_what_it_has() {
    let outcome = outcome(SMALL);
    // Six clients, a round trip of 100 us and 100 us of work: the processor is always busy.
    assert!((9_900.0..10_100.0).contains(&outcome.per_s), "{}", outcome.per_s);
    let server = &outcome.servers[0];
    assert!(server.processor_utilization > 0.98, "{server:?}");
    assert_eq!((outcome.failed, server.lives), (0, 1));
    let slices = &server.over_time;
    assert_eq!(slices.len(), 50);
    let mean = slices.iter().map(|slice| slice.processor).sum::<f64>() / slices.len() as f64;
    assert!((mean / server.processor_utilization - 1.0).abs() < 0.01, "{mean}");
    assert!(slices.iter().all(|slice| (0.8..1.2).contains(&slice.processor)), "{slices:?}");
    // In a closed loop N = X R.
    let mean = outcome.response_time.mean().as_secs_f64();
    assert!((mean * outcome.per_s / 6.0 - 1.0).abs() < 0.03, "{mean}");
}

#[test]
fn clients_of_several_kinds_do_not_hold_each_other_up() {
    let of = |outstanding: usize, links: &[&str]| {
        let clients = |link: &&str| format!("[[clients]]\ncount = 2\nlink = \"{link}\"\n");
        outcome(&format!(
            "{}[workload]\nmix = \"getattr\"\noutstanding = {outstanding}\nwarm-up = \"200ms\"\n\
             time = \"800ms\"\nfiles = \"64K\"\n",
            links.iter().map(clients).collect::<String>()
        ))
    };
    for outstanding in [1, 3] {
        let (near, far) = (of(outstanding, &["lan-1g"]), of(outstanding, &["wan-80ms"]));
        let both = of(outstanding, &["lan-1g", "wan-80ms"]);
        for (kind, alone) in both.kinds.iter().zip([&near, &far]) {
            assert!((kind.per_s / alone.per_s - 1.0).abs() < 0.02, "{kind:?} {}", alone.per_s);
            // In a closed loop N = X R: none has more outstanding than was stated.
            let found = kind.per_s * kind.response_mean.unwrap().as_secs_f64();
            let stated = (2 * outstanding) as f64;
            assert!((found / stated - 1.0).abs() < 0.03, "{found} of {stated}: {kind:?}");
        }
        let sum: f64 = both.kinds.iter().map(|kind| kind.per_s).sum();
        assert!((sum / both.per_s - 1.0).abs() < 1e-9, "{sum} {both:?}");
    }
}

#[test]
fn each_kind_has_the_sessions_of_its_own_clients_on_several_servers() {
    let clients = |count, link| format!("[[clients]]\ncount = {count}\nlink = \"{link}\"\n");
    let workloads = ["mix = \"getattr\"", "write = \"64K\""];
    for workload in workloads {
        let outcome = outcome(&format!(
            "[server]\ncount = 3\n{}{}[workload]\n{workload}\nwarm-up = \"100ms\"\n\
             time = \"400ms\"\nfiles = \"1M\"\n",
            clients(4, "lan-1g"),
            clients(3, "wan-10ms")
        ));
        let [near, far] = &outcome.kinds[..] else { panic!("{outcome:?}") };
        assert_eq!((near.clients, far.clients), (4, 3));
        let ms = |kind: &KindOutcome| kind.response_mean.unwrap().as_millis_f64();
        assert!(ms(near) < 2.0 && ms(far) > 10.0, "{workload}: {near:?} {far:?}");
    }
}

#[test]
fn a_sequential_write_has_as_many_calls_outstanding_as_its_response_times_make() {
    for (call, outstanding) in [("1M", 4.0), ("64K", 32.0)] {
        let text = format!(
            "[server]\ndisk = \"none\"\n[[clients]]\ncount = 1\nlink = \"1ms/100m\"\n\
             [workload]\nwrite = \"{call}\"\noutstanding = {outstanding}\ntime = \"20s\"\n"
        );
        let outcome = outcome(&text);
        // N = X R: those that wait for the client's own link are outstanding, too.
        let mean = outcome.response_time.mean().as_secs_f64();
        let found = outcome.per_s * mean;
        assert!((found / outstanding - 1.0).abs() < 0.05, "{found} of {outstanding}");
        // What limits is the link, to the server.
        let [link] = &outcome.links[..] else { panic!("{:?}", outcome.links) };
        assert!(link.there > 0.95 && link.there < 1.05 && link.back < 0.1, "{link:?}");
    }
}

#[test]
fn a_sequential_write_has_its_commits_and_uses_its_disk_however_short_its_files_are() {
    let of = |count: usize, files: &str, commit: &str| {
        outcome(&format!(
            "[server]\ndisk = \"nvme\"\n[[clients]]\ncount = {count}\nlink = \"lan-10g\"\n\
             [workload]\nwrite = \"1M\"\noutstanding = 4\ntime = \"300ms\"\nfiles = \"{files}\"\n\
             commit = \"{commit}\"\n"
        ))
    };
    for (count, files, commit) in [(1, "16M", "16M"), (2, "16M", "16M"), (1, "2M", "50M")] {
        let outcome = of(count, files, commit);
        let server = &outcome.servers[0];
        assert!(server.disk.syncs >= 3, "{count} clients, {files}, {commit}: {server:?}");
        // The disk's rate limits, of which a few of its 64 requests use all.
        let rate = outcome.written_bytes_per_s / 1050e6;
        let busy = server.disk_utilization;
        assert!((0.95..1.02).contains(&(busy / rate)), "{busy} of {rate}: {server:?}");
        let slices = &server.over_time;
        let mean = slices.iter().map(|slice| slice.disk).sum::<f64>() / slices.len() as f64;
        assert!((mean / busy - 1.0).abs() < 0.02, "{mean} of {busy}");
    }
}

#[test]
fn the_same_topology_and_seed_give_the_same_run() {
    let crash = "[[faults]]\nwhat = \"crash\"\nat = \"20ms\"\ndown = \"5ms\"\n";
    let text = SMALL.replace("\"getattr\"", "\"sfs97-v3\"") + crash;
    let (first, again) = (outcome(&text), outcome(&text));
    assert_eq!(first.digest, again.digest);
    assert_eq!(first.servers, again.servers);
    assert_eq!(first.servers[0].lives, 2);
    assert_ne!(outcome(&text.replace("seed = 3", "seed = 4")).digest, first.digest);
}

#[test]
fn utilization_is_that_of_all_lives_of_a_server() {
    let of = |faults: &str| {
        let text = SMALL.replace("\"getattr\"", "\"write\"").replace("\"50ms\"", "\"100ms\"");
        outcome(&(text + faults)).servers.remove(0)
    };
    let whole = of("");
    // It starts again when nine tenths of the time have passed.
    let late = "[[faults]]\nwhat = \"crash\"\nat = \"95ms\"\ndown = \"1ms\"\n";
    let again = of(late);
    assert_eq!((whole.lives, again.lives), (1, 2));
    let slices = &again.over_time;
    let mean = slices.iter().map(|slice| slice.disk).sum::<f64>() / slices.len() as f64;
    assert!((again.disk_utilization / mean - 1.0).abs() < 0.02, "{again:?}");
    assert!(again.disk_utilization > 0.85 * whole.disk_utilization, "{again:?} {whole:?}");
    assert!(again.disk.syncs as f64 > 0.85 * whole.disk.syncs as f64, "{again:?} {whole:?}");
}

#[test]
fn an_open_loop_offers_what_was_requested() {
    let open =
        outcome(&SMALL.replace("\"getattr\"", "\"getattr\"\nrate = 2000\narrivals = \"fixed\""));
    assert!((1_990.0..2_010.0).contains(&open.per_s), "{}", open.per_s);
    assert!((0.19..0.21).contains(&open.servers[0].processor_utilization));
}

#[test]
fn a_long_link_does_not_hold_the_rate_of_an_open_loop_up() {
    let open = outcome(
        "[[clients]]\ncount = 2\nlink = \"lan-1g\"\n[[clients]]\ncount = 2\nlink = \"wan-80ms\"\n\
         [workload]\nmix = \"getattr\"\nrate = 8000\nfiles = \"64K\"\nwarm-up = \"200ms\"\n\
         time = \"300ms\"\n",
    );
    // 2,000 at each far client make 160 on the way.
    assert!(open.keeps_up && (open.per_s / 8_000.0 - 1.0).abs() < 0.05, "{}", open.per_s);
    let [near, far] = [0, 1].map(|kind| open.kinds[kind].response_mean.unwrap().as_millis_f64());
    assert!(near < 1.0 && (80.0..82.0).contains(&far), "{near} {far}");
}

#[test]
fn a_rate_above_what_the_server_does_is_reported_as_such() {
    let at =
        |rate: f64| outcome(&SMALL.replace("\"getattr\"", &format!("\"getattr\"\nrate = {rate}")));
    let (under, over) = (at(2_000.0), at(1e6));
    assert_eq!((under.keeps_up, under.given_up), (true, 0));
    assert!(!over.keeps_up && over.given_up > 10_000, "{over:?}");
    // What ended in the time that counts was due before it.
    assert!(!over.is_empty() && over.response_mean().is_none(), "{over:?}");
    assert!(at(0.001).is_empty());
}

#[test]
fn the_schedule_of_a_link_counts_from_the_warm_up() {
    let free = outcome(SMALL).operations;
    let stalled = outcome(&SMALL.replace("o=5us", "o=5us,stall=5ms:25ms")).operations;
    assert!((0.4..0.6).contains(&(stalled as f64 / free as f64)), "{stalled} of {free}");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let error = |from: &str, to: &str| {
        let text = SMALL.replace(from, to);
        Topology::parse(&text).map(drop).unwrap_err().to_string()
    };
    let cases = [
        ("cores = 1", "cores = 0", "line 4: 0 is not between 1 and 1024"),
        ("cores = 1", "kores = 1", "line 4: unknown field `kores`"),
        ("\"nvme\"", "\"floppy\"", "line 7: unknown disk \"floppy\""),
        ("lan-1g,o=5us", "lan-2g", "line 10: "),
        ("\"100us\"", "\"100y\"", "line 5: \"100y\" is not a time"),
        ("\"100us\"", "100", "line 5: "),
        ("\"getattr\"", "\"gettr\"", "line 12: unknown mix \"gettr\"; known are "),
        ("\"64K\"", "\"64X\"", "line 15: \"64X\" is not a size"),
        ("files = \"64K\"", "files = -1", "line 15: a size below 0"),
        ("files = \"64K\"", "rate = 0.0", "line 15: 0 is not a rate"),
        ("count = 6", "count = 999999", "line 9: 999999 is not between 1 and 100000"),
        ("count = 6", "", "missing field `count`"),
        ("\"50ms\"", "\"0\"", "workload.time is 0"),
        ("\"64K\"", "\"900M\"", "workload.files takes more than half of server.memory"),
        ("cores = 1", "cores = 1\ncosts.WRTE = \"1us\"", "line 5: unknown procedure \"WRTE\""),
        ("cores = 1", "count = 7", "6 clients for 7 servers"),
        ("cores = 1", "threads = 0", "line 4: 0 is not between 1 and 1048576"),
        (
            "cores = 1",
            "cores = 1\n[[faults]]\nwhat = \"slow-disk\"\nat = \"0\"\npercent = 100001\nfor = \"1s\"\n[server2]",
            "100001 is not between 1 and 100000",
        ),
    ];
    for (from, to, wanted) in cases {
        let found = error(from, to);
        assert!(found.contains(wanted), "{to}: {found}");
    }
    let crowd = SMALL.replace("count = 6", "count = 100000");
    let crowd = crowd.replace("\"getattr\"", "\"getattr\"\noutstanding = 1024");
    let refused = Topology::parse(&crowd).map(drop).unwrap_err().to_string();
    assert!(refused.contains("102400000, and at most 1048576"), "{refused}");
    assert!(Topology::parse("").is_err() && Topology::parse("clients = []").is_err());
}

#[test]
fn what_has_no_effect_is_refused() {
    let error = |more: &str| Topology::parse(&(SMALL.to_owned() + more)).map(drop).unwrap_err();
    let without = "workload.commit has no effect without workload.write";
    let cases = [
        ("rate = 10\noutstanding = 2", "workload.outstanding has no effect beside workload.rate"),
        ("write = \"1K\"", "workload.mix has no effect beside workload.write"),
        ("arrivals = \"fixed\"", "workload.arrivals has no effect without workload.rate"),
        ("commit = \"1M\"", without),
        (
            "[[faults]]\nwhat = \"crash\"\nat = \"5000s\"\ndown = \"1s\"",
            "crash at 5000 s, down 1.00 s has no effect: the run ends after 55.0 ms",
        ),
        (
            "[[faults]]\nwhat = \"slow-disk\"\nat = \"0\"\npercent = 100\nfor = \"1s\"",
            "slow-disk at 0 ns, percent 100, for 1.00 s has no effect",
        ),
        (
            "[[faults]]\nwhat = \"fail-syncs\"\nat = \"54ms\"\ncount = 0",
            "fail-syncs at 54.0 ms, count 0 has no effect",
        ),
    ];
    for (more, wanted) in cases {
        assert_eq!(error(more).to_string(), wanted);
    }
    let fault = "[[faults]]\nwhat = \"full\"\nat = \"54ms\"\nfor = \"5s\"";
    assert!(Topology::parse(&(SMALL.to_owned() + fault)).is_ok());
}
