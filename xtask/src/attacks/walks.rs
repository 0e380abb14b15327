//! Walks through a large directory without end: each reply has the attributes of thousands of
//! files.

use std::any::Any;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::attack::{Attack, Scene};
use super::calls::{Connection, MIB, hostile};
use super::strangers::Repeated;

const FILES: usize = 20_000;
const CONNECTIONS: usize = 16;

pub(super) const ATTACK: Attack = Attack {
    name: "walks",
    about: "16 connections walk by READDIRPLUS of 1 MiB through a directory of 20,000 files",
    tree: Some(tree),
    options: &[],
    begin,
};

fn tree(top: &Path) -> io::Result<()> {
    (0..FILES).try_for_each(|number| File::create(top.join(format!("file-{number}"))).map(drop))
}

fn begin(scene: &Scene) -> io::Result<Box<dyn Any + Send>> {
    let walking: io::Result<Vec<Repeated>> =
        (0..CONNECTIONS).map(|_| walking(scene.address)).collect();
    Ok(Box::new(walking?))
}

fn walking(server: SocketAddr) -> io::Result<Repeated> {
    let mut connection = Connection::over(hostile(server)?)?;
    let root = connection.root()?;
    let walk = move || drop(connection.walk(root, MIB));
    Ok(Repeated::start(walk, Duration::ZERO))
}
