//! `nfskit probe`: parameters of servers that are reached in every way, and what it refuses.

use serde_json::Value;

use crate::peer::Nobody;
use crate::program::run;
use crate::served::{Served, url};

#[test]
fn a_known_way_is_found_and_the_server_left_clean() {
    let served = Served::folder(&["--metadata-sync", "never", "--link", "L=4ms"]);
    let finished = run(["probe", "--quick", &served.url(), "--json", "-"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(served.left_behind(), [] as [String; 0]);
    let record: Value = serde_json::from_str(&finished.stdout).unwrap();
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    // Not less than was put in; how much more is the machine's affair.
    assert!(value("t_prop_us") >= 4_000.0, "{record}");
    for name in ["t_ser_us_per_kib", "gap_us_per_kib", "t_op_us", "t_b_us", "t_op_client_us"] {
        assert!(value(name).is_finite(), "{name}: {record}");
    }
    for name in
        ["t_prop_us", "t_ser_us_per_kib", "gap_us_per_kib", "gap_us", "overhead_us", "t_op_us"]
    {
        assert!(record["metrics"][name]["ci95"].is_array(), "{name}: {record}");
    }
    for name in ["error_pct_if_it_stops", "error_pct_if_it_works_on"] {
        assert!(value(name).is_finite(), "{name}: {record}");
    }
    assert!(record["model"]["path"]["round_trip_us"].as_f64().unwrap() > 8_000.0);
    served.stop();
}

#[test]
fn version_2_and_datagrams_are_probed_and_what_cannot_be_distinguished_is_stated() {
    let served = Served::memory(&["--udp"]);
    let address = served.url();
    let separator = if address.contains('?') { '&' } else { '?' };
    let old = run(["probe", "--quick", &format!("{address}{separator}version=2&proto=udp")]);
    assert_eq!((old.code, old.stderr.as_str()), (Some(0), ""), "{old:?}");
    for part in ["T_op and T_B cannot be distinguished", "T_prop", "L and the fixed costs"] {
        assert!(old.stdout.contains(part), "no {part:?} in {old:?}");
    }
    served.stop();
}

#[test]
fn what_cannot_be_probed_ends_with_3() {
    let nobody = Nobody::there();
    run(["probe", &url(nobody.address.port(), "/x")])
        .complains(3, &["refused the connection", "nfsport="]);
    let read_only = Served::memory(&["--ro"]);
    run(["probe", "--quick", &read_only.url()]).complains(3, &["ROFS", "writable"]);
    read_only.stop();
    let finished = run(["probe", "http://h/x"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
}
