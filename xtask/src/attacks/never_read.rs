//! Clients that ask for much and never read.

use std::any::Any;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use super::attack::{Attack, Scene};
use super::calls::{MIB, from, hostile, reads};

const CONNECTIONS: usize = 150;
const CALLS: u32 = 1000;

pub(super) const ATTACK: Attack = Attack {
    name: "never-read",
    about: "150 connections ask for 1,000 READs of 1 MiB each and read nothing",
    tree: None,
    options: &[],
    begin: |scene| begin(scene, hostile, MIB),
};

pub(super) const SMALL: Attack = Attack {
    name: "never-read-small",
    about: "the same with READs of 32 KiB",
    tree: None,
    options: &[],
    begin: |scene| begin(scene, hostile, 32 << 10),
};

/// From the address of the client that behaves: for the server they are one host.
pub(super) const SAME_HOST: Attack = Attack {
    name: "never-read-same-host",
    about: "the first, from the address of the client that behaves",
    tree: None,
    options: &[],
    begin: |scene| begin(scene, |server| from(Ipv4Addr::LOCALHOST, server), MIB),
};

fn begin(
    scene: &Scene,
    connect: impl Fn(SocketAddr) -> io::Result<TcpStream>,
    count: u32,
) -> io::Result<Box<dyn Any + Send>> {
    let calls = reads(scene.file, count, CALLS);
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = connect(scene.address)?;
        stream.set_nonblocking(true)?;
        // As much as is taken: a server that reads no more is what we want.
        match stream.write(&calls) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        open.push(stream);
    }
    Ok(Box::new(open))
}
