//! `nfskit serve` as the host's portmapper, and registered with a running rpcbind, as `rpcinfo` and
//! `showmount` see it: over UDP and TCP, IPv4 and IPv6.
//!
//! Port 111 is one of a machine: this runs in namespaces of our own only.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::host::child::{Service, finish, text};
use crate::host::nfskit::{SERVES, START_WITHIN, STOP_WITHIN};
use crate::host::report::Report;
use crate::host::tools;

const PEER: &str = "rpcbind";
const WITHIN: Duration = Duration::from_secs(20);
const PORT: &str = "20049";

/// Programs, versions and transports that must be found; the port is ours.
const SERVED: [(&str, &str); 4] =
    [("100003", "2"), ("100003", "3"), ("100005", "1"), ("100005", "3")];

/// What `rpcinfo` and `showmount` say of our own portmapper, and rpcbind of us.
pub(super) fn check(report: &mut Report, scratch: &Path, nfskit: &Path) {
    let programs = [("rpcinfo", "rpcbind"), ("showmount", "nfs-common"), ("rpcbind", "rpcbind")];
    let missing = programs.iter().find_map(|(name, package)| tools::find(name, package).err());
    if let Some(why) = missing {
        return report.skip(PEER, "ask for ports", why);
    }
    let folder = scratch.join("portmapped");
    let made = std::fs::create_dir(&folder).map_err(|error| error.to_string());
    let server = report.make(PEER, "nfskit serve --portmap starts", || {
        made?;
        Ok((start(nfskit, &folder, "--portmap")?, String::new()))
    });
    let Some(running) = server else { return };
    for host in ["127.0.0.1", "::1"] {
        report.done(PEER, format!("rpcinfo -p {host}"), || ports(&ask("rpcinfo", &["-p", host])?));
        report.done(PEER, format!("rpcinfo {host} (rpcbind version 4)"), || {
            let output = ask("rpcinfo", &[host])?;
            SERVED.iter().try_for_each(|(program, version)| {
                ["tcp", "tcp6", "udp", "udp6"]
                    .iter()
                    .try_for_each(|netid| line(&output, &[program, version, netid]))
            })
        });
        report.done(PEER, format!("showmount -e {host}"), || {
            let output = ask("showmount", &["-e", host])?;
            line(&output, &["/data", "127.0.0.0/8,::1"])
        });
        report.done(PEER, format!("showmount -a and -d {host}"), || {
            ask("showmount", &["-a", host])?;
            ask("showmount", &["-d", host]).map(drop)
        });
        let six = if host == "::1" { "6" } else { "" };
        for transport in ["udp", "tcp"].map(|name| format!("{name}{six}")) {
            report.done(PEER, format!("NULL over {transport}"), || {
                SERVED.iter().try_for_each(|(program, version)| {
                    let output = ask("rpcinfo", &["-T", &transport, host, program, version])?;
                    line(&output, &["ready", "and", "waiting"])
                })
            });
        }
    }
    report.done(PEER, "nfskit serve stops", || running.stop(STOP_WITHIN));
    register(report, nfskit, &folder);
}

fn register(report: &mut Report, nfskit: &Path, folder: &Path) {
    let mut rpcbind = None;
    report.done(PEER, "rpcbind knows nfskit serve --register", || {
        std::fs::create_dir_all("/run/rpcbind").map_err(|error| error.to_string())?;
        let mut command = Command::new(tools::find("rpcbind", "rpcbind")?);
        rpcbind = Some(Service::start(command.arg("-f"))?);
        let deadline = std::time::Instant::now() + WITHIN;
        while ask("rpcinfo", &["-p", "127.0.0.1"]).is_err() {
            if std::time::Instant::now() > deadline {
                return Err("rpcbind gives no answer".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let server = start(nfskit, folder, "--register")?;
        let known = ask("rpcinfo", &["-p", "127.0.0.1"]).and_then(|output| ports(&output));
        server.stop(STOP_WITHIN)?;
        known
    });
    let Some(rpcbind) = rpcbind else { return };
    report.done(PEER, "and forgets it at its end", || {
        let output = ask("rpcinfo", &["-p", "127.0.0.1"])?;
        match output.contains(PORT) {
            true => Err(output),
            false => Ok(()),
        }
    });
    drop(rpcbind);
}

fn start(nfskit: &Path, folder: &Path, mode: &str) -> Result<Service, String> {
    let mut command = Command::new(nfskit);
    command.args(["serve", "--export"]);
    command.arg(format!("{}=name=/data,client=127.0.0.0/8,client=::1,insecure", folder.display()));
    command.args(["--listen", &format!("[::]:{PORT}"), "--udp", mode]);
    command.args(["--state", &format!("{}.state", folder.display())]);
    Service::start_until(&mut command, START_WITHIN, SERVES)
}

fn ask(program: &str, arguments: &[&str]) -> Result<String, String> {
    let program = tools::find(program, "rpcbind")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    finish(&mut command, WITHIN, text).map(|finished| finished.value)
}

/// All programs in all versions over both transports, as `rpcinfo -p` lists them.
fn ports(output: &str) -> Result<(), String> {
    SERVED.iter().try_for_each(|(program, version)| {
        ["tcp", "udp"]
            .iter()
            .try_for_each(|transport| line(output, &[program, version, transport, PORT]))
    })
}

/// Some line has these words, one after the other.
fn line(output: &str, words: &[&str]) -> Result<(), String> {
    let has = |line: &str| {
        let found: Vec<&str> = line.split_whitespace().collect();
        found.windows(words.len()).any(|part| part == words)
    };
    match output.lines().any(has) {
        true => Ok(()),
        false => Err(format!("no line with {}: {output}", words.join(" "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_looked_for_over_each_transport() {
        let line = |(program, version): &(&str, &str), transport: &str| {
            format!("    {program}    {version}   {transport}  {PORT}  nfs\n")
        };
        let tcp: String = SERVED.iter().map(|served| line(served, "tcp")).collect();
        let udp: String = SERVED.iter().map(|served| line(served, "udp")).collect();
        assert!(ports(&format!("{tcp}{udp}")).is_ok());
        assert!(ports(&udp).unwrap_err().contains("100003 2 tcp"));
    }
}
