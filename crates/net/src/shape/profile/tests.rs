use super::*;
use crate::shape::conditions::{Outage, OutageKind};

fn parse(text: &str) -> Profile {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    match text.parse::<Profile>() {
        Err(error) => error.to_string(),
        Ok(profile) => panic!("{text} is taken as {profile:?}"),
    }
}

#[test]
fn a_profile_is_found_by_its_name_and_an_unknown_one_lists_the_known() {
    let lan = parse("lan-1g");
    assert_eq!(lan.there.link.serialization(8192), Nanos::from_nanos(65_536));
    assert_eq!(lan.to_string(), "lan-1g (emulated: L 100 us one way, 1 Gbit/s)");
    let own = parse("20ms/2g");
    assert_eq!(own.to_string(), "20ms/2g (emulated: L 20.0 ms one way, 2 Gbit/s)");
    for wrong in ["1ms", "1/1g", "1ms/", "1ms/0g", "-1ms/1g", "99s/1g", "1ms/1x", "\u{b5}/1g"] {
        refused(wrong);
    }
    let error = refused("lan-2g");
    assert!(error.contains("wan-10ms") && error.contains("\"lan-2g\""), "{error}");
    for name in NAMES {
        let named = parse(name);
        assert_eq!((named.there.impossible(), named.name.as_str()), (None, name));
        assert_eq!(named.has_link(), name != "none");
    }
}

#[test]
fn a_profile_is_changed_by_keys_for_both_directions_or_one() {
    let far = parse("lan-1g,L=5ms,back.L=0.5us,G=1.25MB/s,o=50us,o.receive=10us,loss=0.5%");
    assert_eq!(far.there.link.latency, Nanos::from_millis(5));
    assert_eq!(far.back.link.latency, Nanos::from_nanos(500));
    assert_eq!(far.there.link.gap_per_byte_ps, 800_000);
    let (send, receive) = (Nanos::from_micros(50), Nanos::from_micros(10));
    assert_eq!(far.overhead, Overhead { send, receive });
    assert_eq!(far.there.lost, Ppm(5000));
    assert_eq!(parse("G=8ns").there.link, parse("G=125MB/s").there.link);
    assert_eq!(parse("G=8ns/B").there.link, parse("G=1g").there.link);
    assert_eq!(parse("lan-1g,G=none").there.link.gap_per_byte_ps, 0);
    assert_eq!(parse("queue=256K").there.queue_bytes_max, Some(256 << 10));
    assert_eq!(parse("campus,queue=none,mtu=none").back.mtu, None);
    assert_eq!(parse("jitter=200us").there.jitter, Jitter::Uniform(Nanos::from_micros(200)));
    let tail = Jitter::Pareto { scale: Nanos::from_millis(1), shape: 2.5 };
    assert_eq!(parse("back.jitter=pareto:1ms:2.5").back.jitter, tail);
    let by = Nanos::from_millis(2);
    let reordered = Reordering { share: Ppm::percent(3), by };
    assert_eq!(parse("reorder=3%:2ms").there.reordered, reordered);
    let (at, span) = (Nanos::from_secs(10), Nanos::from_millis(500));
    let once = Outage { kind: OutageKind::Partition, at, span, every: None };
    let often = Outage { kind: OutageKind::Stall, every: Some(Nanos::from_secs(60)), ..once };
    let schedule = parse("partition=10s:500ms,stall=10s:500ms:60s").there.schedule;
    assert_eq!(schedule, [once, often]);
    assert_eq!(parse("lossy,seed=77").seed, 77);
    assert!(!parse("none,loss=0").has_link());
}

#[test]
fn a_mistake_is_reported_with_what_where_and_what_is_possible() {
    for (wrong, parts) in [
        ("lan-1g,L=5", ["L=5", "ms"]),
        ("lan-1g,L=-5ms", ["L=-5ms", "negative"]),
        ("lan-1g,delay=5ms", ["unknown key \"delay\"", "jitter"]),
        ("lan-1g,", ["\"\"", "KEY=VALUE"]),
        ("lan-1g,L=1ms,L=2ms", ["L", "twice"]),
        ("lan-1g,there.o=1us", ["o is of the endpoint", "there."]),
        ("L=11s", ["L: 11.0 s", "at most 10.0 s"]),
        ("back.L=99999999999999999999999s", ["back.L", "at most 10.0 s"]),
        ("loss=101%", ["loss: 101 %", "0 to 100 %"]),
        ("corrupt=0.5", ["corrupt=0.5", "%"]),
        ("G=0g", ["G=0g", "above 0"]),
        ("G=1Mb/s", ["G=1Mb/s", "bits"]),
        ("G=9000g", ["G=9000g", "8000g"]),
        ("G=10B/s", ["G: 10", "1 kB/s"]),
        ("mtu=67", ["mtu: 67", "68"]),
        ("mtu=70000", ["mtu=70000", "65535"]),
        ("queue=10K", ["queue: 10240 bytes", "65536"]),
        ("mtu=1500,queue=1400", ["queue: 1400 bytes", "1500"]),
        ("queue=1G", ["queue: 1073741824", "134217728"]),
        ("o=1s", ["o.send: 1.00 s", "at most 100 ms"]),
        ("jitter=gauss:1ms", ["jitter=gauss:1ms", "normal:TIME"]),
        ("jitter=pareto:1ms:0.5", ["jitter: 0.5", "above 1"]),
        ("jitter=pareto:1ms:NaN", ["jitter=pareto", "SHAPE"]),
        ("reorder=1%", ["reorder=1%", "SHARE:TIME"]),
        ("partition=1s", ["partition=1s", "AT:FOR"]),
        ("stall=1s:2s:2s", ["stall: 2.00 s of every 2.00 s", "below"]),
        ("stall=1s:0s", ["stall: for 0 s", "above 0"]),
        ("L=1s,G=10g", ["L: 1.00 s at 1250.0 MB/s", "128 MiB"]),
        ("seed=-1", ["seed=-1", "whole number"]),
        ("nowhere.toml", ["nowhere.toml", "cannot be read"]),
    ] {
        let error = refused(wrong);
        for part in parts {
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }
}

#[test]
fn a_file_says_the_same_and_a_mistake_in_it_has_its_line() {
    let text = r#"
base = "lan-1g"
o.receive = "10us"
seed = 7
mtu = 1500
[there]
L = "5ms"
stall = ["1s:10ms", "5s:10ms:20s"]
[back]
loss = "1%"
"#;
    let read = file::parse(text).unwrap().checked().unwrap();
    let short = parse(
        "lan-1g,o.receive=10us,seed=7,mtu=1500,there.L=5ms,there.stall=1s:10ms,\
         there.stall=5s:10ms:20s,back.loss=1%",
    );
    assert_eq!(Profile { name: String::new(), ..read }, Profile { name: String::new(), ..short });
    for (wrong, line, part) in [
        ("\n\nL = 5", 3, "L=5"),
        ("[there]\nL = \"11s\"", 2, "there.L: 11.0 s"),
        ("g = \"1us\"\nL = \"11s\"", 2, "L: 11.0 s"),
        ("base = \"lan-2g\"", 1, "lan-2g"),
        ("\nbase = 7", 2, "\"7\""),
        ("[their]\nL = \"1ms\"", 1, "their"),
        ("[there]\nbase = \"lan-1g\"", 2, "there.base"),
        ("[back]\n\nmtu = true", 3, "boolean"),
        ("L = ", 1, ""),
        ("L = \"1ms\"\nL = \"1ms\"", 2, "duplicate"),
    ] {
        let error = file::parse(wrong).and_then(Reading::checked).unwrap_err();
        assert_eq!(error.line, Some(line), "{wrong}: {error}");
        assert!(error.to_string().contains(part), "{wrong}: {error}");
    }
}

#[test]
fn a_file_is_found_and_listed_with_its_name_and_may_be_changed() {
    let dir = std::env::temp_dir().join(format!("nfskit-profile-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("far.toml");
    std::fs::write(&path, "L = \"5ms\"\n[there]\nloss = \"101%\"\n").unwrap();
    let error = refused(path.to_str().unwrap());
    assert!(error.contains("far.toml, line 3: there.loss: 101 %"), "{error}");
    std::fs::write(&path, "L = \"5ms\"\n").unwrap();
    let changed = parse(&format!("{},back.L=1ms", path.display()));
    assert_eq!(changed.there.link.latency, Nanos::from_millis(5));
    assert_eq!(changed.back.link.latency, Nanos::from_millis(1));
    std::fs::remove_dir_all(&dir).unwrap();
}

mod hostile {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_link_that_can_be_or_an_error(
            text in "(none|lan-1g|1ms/1g|L=1us)?(,(there\\.|back\\.)?[a-zA-Z.]{1,9}=[-0-9a-zA-Z.:%/]{0,12}){0,4}",
        ) {
            if let Ok(profile) = text.parse::<Profile>() {
                prop_assert_eq!(profile.there.impossible(), None);
                prop_assert_eq!(profile.back.impossible(), None);
            }
        }

        #[test]
        fn whatever_a_file_says_is_a_link_or_an_error(text in "\\PC{0,200}") {
            file::parse(&text).and_then(Reading::checked).ok();
        }
    }
}
