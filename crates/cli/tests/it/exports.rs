//! `nfskit serve` with several exports: which are valid, what the banner has, and what a reload and
//! a restart change.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::program::{Program, nfskit, run};
use crate::rpc::Connection;
use crate::served::Served;

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

#[test]
fn a_file_with_an_unknown_option_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exports.toml");
    let file_name = file.to_str().unwrap();
    let serve = || run(["serve", "--listen", "127.0.0.1:0", "--exports", file_name]);
    write(&file, "[[export]]\npath = \"/tmp\"\nroot_squash = true\n");
    serve().complains(3, &["exports.toml", "line 3, column 1", "root_squash", "expected one of"]);
    write(&file, "[[export]]\npath = \"/tmp\"\nclients = [\"10.0.0.300\"]\n");
    serve().complains(3, &["line 3, column 11", "10.0.0.300"]);
    write(&file, "[[export]]\npath = \"/nowhere/at/all\"\n");
    serve().complains(3, &["cannot serve /nowhere/at/all", "No such file"]);
    write(&file, "");
    serve().complains(3, &["exports nothing"]);
    fs::remove_file(&file).unwrap();
    serve().complains(3, &["exports.toml", "No such file"]);
}

#[test]
fn options_that_are_not_understood_are_refused() {
    let refused = |export: &str| run(["serve", "--listen", "127.0.0.1:0", "--export", export]);
    for (export, why) in [
        ("/tmp=frobnicate", "unknown option"),
        ("/tmp=client=1.2.3.4/33", "bits that the address has"),
        ("tmp=ro", "begins with a slash"),
    ] {
        let finished = refused(export);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.contains(why), "{finished:?}");
    }
    let finished = run(["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(finished.code, Some(2), "nothing to serve: {finished:?}");
    let twice = ["serve", "/tmp", "--export", "/a", "--export", "/b"];
    run(twice).complains(2, &["one store has one name"]);
    let same = ["serve", "--listen", "127.0.0.1:0", "--export", "/tmp", "--export", "/=name=/tmp"];
    run(same).complains(3, &["/tmp is the name of"]);
}

#[test]
fn a_client_that_has_no_address_is_named() {
    let export = "/tmp=client=no-such-host.invalid";
    let finished = run(["serve", "--listen", "127.0.0.1:0", "--export", export]);
    finished.complains(3, &["no-such-host.invalid"]);
}

#[test]
fn a_reload_changes_what_is_exported_and_a_bad_one_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    for dir in [&a, &b] {
        fs::create_dir(dir).unwrap();
    }
    let file = folder.path().join("exports.toml");
    let export = |dir: &Path, more: &str| {
        format!("[[export]]\npath = {dir:?}\nname = \"/\"\nsquash = \"none\"\n{more}")
    };
    write(&file, &export(&a, ""));
    let mut command = nfskit(["serve", "--exports"]);
    command.arg(&file);
    let served = Served::start(command, "127.0.0.1:0");
    let mut before = Connection::to(&served);
    before.creates(b"x");
    assert!(a.join("x").exists());

    write(&file, "[[export]]\npath = 5\n");
    served.program.signal(Signal::HUP);
    served.program.wait_for_error(|text| text.contains("reload error=").then_some(()));
    before.creates(b"y");
    assert!(a.join("y").exists());

    write(&file, &export(&b, "id = 77\n"));
    served.program.signal(Signal::HUP);
    served.program.wait_for_error(|text| text.contains("reload exports=").then_some(()));
    Connection::to(&served).creates(b"z");
    assert!(b.join("z").exists());
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
}

#[test]
fn exports_that_a_reload_opens_to_everybody_are_reported() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("exports.toml");
    let export = |clients: &str| {
        format!("[[export]]\npath = {:?}\nname = \"/data\"\n{clients}", folder.path())
    };
    write(&file, &export("clients = [\"127.0.0.1\"]\n"));
    let mut command = nfskit(["serve", "--listen", "0.0.0.0:0", "--log-format", "json"]);
    command.arg("--state").arg(state.path()).arg("--exports").arg(&file);
    let server = Program::start(&mut command);
    let banner =
        server.wait_for_error(|text| text.contains("\"started\"").then(|| text.to_owned()));
    assert!(!banner.contains("open to every host"), "{banner}");
    for (number, clients) in ["", "clients = [\"127.0.0.1\", \"::/0\"]\n"].iter().enumerate() {
        write(&file, &export(clients));
        server.signal(Signal::HUP);
        server.wait_for_error(|text| {
            (text.matches("\"event\":\"open_to_everybody\"").count() == number + 1).then_some(())
        });
    }
    server.signal(Signal::TERM);
    assert_eq!(server.finish().code, Some(0));
}

/// By the outer one its files would be reached by other rules than their own.
#[test]
fn an_export_inside_another_has_the_same_rules_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (outer, inner) = (folder.path().join("outer"), folder.path().join("outer/deep/inner"));
    fs::create_dir_all(&inner).unwrap();
    let file = folder.path().join("exports.toml");
    let of = |dir: &Path, name: &str, rule: &str| {
        format!("[[export]]\npath = {dir:?}\nname = {name:?}\n{rule}\n")
    };
    let refusal = ["the export /b lies in the export /a", "rules differ", "mount --bind"];
    let both = of(&outer, "/a", "") + &of(&inner, "/b", "access = \"ro\"");
    write(&file, &both);
    let serve = || {
        let mut command = nfskit(["serve", "--exports"]);
        command.arg(&file);
        command
    };
    let refused = |command: &mut std::process::Command| {
        Program::start(command.args(["--listen", "127.0.0.1:0"])).finish().complains(3, &refusal);
    };
    refused(&mut serve());
    // By a link it is the same directory.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&inner, &link).unwrap();
    write(&file, &(of(&outer, "/a", "") + &of(&link, "/b", "clients = [\"127.0.0.1\"]")));
    refused(&mut serve());
    // The same rules are the same by either way.
    write(&file, &(of(&outer, "/a", "") + &of(&inner, "/b", "")));
    let served = Served::start(serve(), "127.0.0.1:0");
    // And a reload is no way around it.
    write(&file, &both);
    served.program.signal(Signal::HUP);
    served.program.wait_for_error(|text| text.contains("lies in the export /a").then_some(()));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
}

/// Clients could change what the next server believes.
#[test]
fn a_reload_does_not_export_what_the_server_keeps_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let [data, other] = ["data", "other"].map(|name| folder.path().join(name));
    fs::create_dir_all(data.join("state")).unwrap();
    fs::create_dir(&other).unwrap();
    let file = folder.path().join("exports.toml");
    let export = |dir: &Path| {
        write(&file, &format!("[[export]]\npath = {dir:?}\nname = \"/\"\nsquash = \"none\"\n"));
    };
    export(&other);
    let mut command = nfskit(["serve", "--exports"]);
    command.arg(&file).arg("--state").arg(data.join("state"));
    let served = Served::start(command, "127.0.0.1:0");
    export(&data);
    served.program.signal(Signal::HUP);
    let lies = |text: &str| text.contains("lies in the export /, where clients").then_some(());
    served.program.wait_for_error(lies);
    Connection::to(&served).creates(b"x");
    assert!(other.join("x").exists(), "the exports are what they were");
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
}

#[test]
fn an_export_that_a_reload_takes_away_is_let_go_and_can_come_back() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let file = folder.path().join("exports.toml");
    let export = |dir: &Path| write(&file, &format!("[[export]]\npath = {dir:?}\n"));
    for dir in [&a, &b] {
        fs::create_dir(dir).unwrap();
    }
    export(&a);
    let mut command = nfskit(["serve", "--exports"]);
    command.arg(&file).arg("--state").arg(state.path());
    let served = Served::start(command, "127.0.0.1:0");
    for (dir, left, times) in [(&b, &a, 1), (&a, &b, 2)] {
        export(dir);
        served.program.signal(Signal::HUP);
        let reloaded = |text: &str| text.matches("reload exports=").count() == times;
        served.program.wait_for_error(|text| reloaded(text).then_some(()));
        let fds = fs::read_dir(format!("/proc/{}/fd", served.program.pid())).unwrap();
        let mut open = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        assert!(!open.any(|path| path == *left), "{} is still open", left.display());
    }
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
}

#[test]
fn a_state_directory_belongs_to_one_server() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = |listen: &str| {
        let mut command = nfskit(["serve", "--state"]);
        command.args([state.path(), folder.path()]);
        Served::start(command, listen)
    };
    let first = start("127.0.0.1:0");
    let second = start(&format!("127.0.0.2:{}", first.port()));
    let banner = second.program.wait_for(|text| text.contains("macOS").then(|| text.to_owned()));
    assert!(banner.contains("warning") && banner.contains("another server has it"), "{banner}");
    let banner = first.program.wait_for(|text| text.contains("macOS").then(|| text.to_owned()));
    assert!(!banner.contains("warning"), "{banner}");
    for served in [first, second] {
        served.program.signal(Signal::TERM);
        assert_eq!(served.program.finish().code, Some(0));
    }
}
