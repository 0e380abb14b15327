//! What a server keeps open, it closes when nobody asks for it.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::program::Closing;
use crate::rpc::Connection;
use crate::served::Served;

/// In real time: the server closes it some four seconds after the last call.
#[test]
fn a_program_that_a_client_has_written_runs_on_the_server_while_the_client_stays() {
    let served = Served::folder(&[]);
    let closing = Closing::watch(served.path());
    let mut client = Connection::to(&served);
    let program = served.path().join("program");
    let file = client.creates(b"program");
    client.writes(file, b"#!/bin/sh\nexit 7\n");
    set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    closing.wait();
    assert_eq!(Command::new(&program).status().unwrap().code(), Some(7));
    // It is the same file for the client, which may write on.
    client.writes(file, b"#!/bin/sh\nexit 8\n");
    closing.wait();
    assert_eq!(Command::new(&program).status().unwrap().code(), Some(8));
    served.stop();
}
