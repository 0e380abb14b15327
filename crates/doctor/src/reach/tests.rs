use super::*;

fn known() -> Known {
    Known { host: "h".to_owned(), path: "/export".to_owned(), ..Known::default() }
}

#[test]
fn a_cause_is_in_the_layer_where_it_is_changed() {
    let alive = Known { is_alive: true, port: Some(111), ..known() };
    let of = |phase, fault| causes(phase, fault, &alive)[0].layer;
    assert_eq!(of(Phase::Portmapper, Fault::Silent), Layer::Network);
    assert_eq!(of(Phase::Connect, Fault::Refused), Layer::Server);
    assert_eq!(of(Phase::Read, Fault::NoReply), Layer::Network);
    assert_eq!(of(Phase::Write, Fault::Full), Layer::Storage);
    assert_eq!(of(Phase::Name, Fault::Unresolved), Layer::Client);
}

fn first(phase: Phase, fault: Fault, known: &Known) -> String {
    causes(phase, fault, known)[0].what.clone()
}

#[test]
fn every_phase_and_every_fault_has_causes_with_something_to_do() {
    for phase in Phase::ALL {
        for fault in Fault::ALL {
            for is_alive in [false, true] {
                let known = Known { is_alive, port: Some(2049), ..known() };
                let all = causes(phase, fault, &known);
                assert!(!all.is_empty(), "{phase} {fault:?}");
                for one in all {
                    assert!(one.what.len() > 10 && one.check.len() > 4, "{phase} {fault:?}");
                    assert!(!one.what.contains("  "), "{}", one.what);
                }
            }
        }
    }
}

#[test]
fn silence_is_a_host_that_is_down_unless_it_has_answered_elsewhere() {
    let (down, alive) = (known(), Known { is_alive: true, port: Some(2049), ..known() });
    assert!(first(Phase::Connect, Fault::Silent, &down).contains("host is down"));
    assert!(first(Phase::Connect, Fault::Silent, &alive).contains("firewall drops"));
    assert!(causes(Phase::Connect, Fault::Silent, &alive)[0].check.contains("TCP 2049"));
    let all = causes(Phase::Connect, Fault::Silent, &alive);
    assert!(all.iter().all(|one| !one.what.contains("host is down")));
}

#[test]
fn a_port_that_is_refused_is_a_service_that_is_not_there() {
    let of = |phase| first(phase, Fault::Refused, &known());
    assert!(of(Phase::Portmapper).contains("no portmapper"));
    assert!(of(Phase::Connect).contains("no NFS server listens"));
    assert!(of(Phase::MountProgram).contains("mountd does not run"));
}

#[test]
fn no_reply_is_blamed_on_what_the_phase_waits_for() {
    let of = |phase| first(phase, Fault::NoReply, &known());
    assert!(of(Phase::Null).contains("server hangs"));
    assert!(of(Phase::Permission).contains("name server"));
    assert!(of(Phase::Getattr).contains("file system behind"));
    assert!(of(Phase::Read).contains("packets of full size"), "small calls were answered");
}

#[test]
fn a_refused_caller_is_distinguished_by_what_he_may() {
    let of = |is_privileged, is_local| {
        let known = Known { is_privileged, is_local, ..known() };
        first(Phase::Permission, Fault::Denied, &known)
    };
    assert!(of(false, true).contains("privileged port"));
    assert!(of(true, true).contains("not for this host"));
    assert!(of(false, false).contains("not for this host"));
    assert!(first(Phase::Write, Fault::Denied, &known()).contains("no right there"));
}

#[test]
fn an_export_that_is_nearly_one_is_named() {
    let of = |path: &str, exports: &[&str]| {
        let exports = Some(exports.iter().map(|one| (*one).to_owned()).collect());
        let known = Known { path: path.to_owned(), exports, ..known() };
        causes(Phase::Permission, Fault::Absent, &known)
    };
    assert!(of("/exprot", &["/srv", "/export"])[0].what.contains("/export is exported"));
    assert!(of("/home", &["/export/home"])[0].what.contains("/export/home is exported"));
    let far = of("/data", &["/export", "/srv"]);
    assert_eq!(far[0].check, "one of /export, /srv");
    assert!(of("/data", &[])[0].check.contains("exports nothing"));
    let inside = Known { inside_of: Some("/srv".to_owned()), ..known() };
    let cause = first(Phase::Permission, Fault::Absent, &inside);
    assert!(cause.contains("/srv is exported, and inside"), "{cause}");
}

#[test]
fn a_version_that_is_off_is_turned_on_or_gone_without() {
    let of = |low, high| causes(Phase::Null, Fault::NoVersion { low, high }, &known());
    assert!(of(4, 4)[0].what.contains("turned version 3 off"));
    assert!(of(2, 2)[0].check.contains("version=2"));
}
