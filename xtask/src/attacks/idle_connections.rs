//! As many connections as there may be, on which nothing happens.

use std::any::Any;
use std::io;
use std::net::TcpStream;

use super::calls::hostile;
use super::{Attack, Scene};

/// More than may be at once, of one address and of all.
const CONNECTIONS: usize = 1200;

pub(super) const ATTACK: Attack = Attack {
    name: "idle-connections",
    about: "1,200 connections do nothing, where 1,000 may be",
    tree: None,
    options: &["--connections", "1000"],
    begin,
};

fn begin(scene: &Scene) -> io::Result<Box<dyn Any + Send>> {
    let open: io::Result<Vec<TcpStream>> =
        (0..CONNECTIONS).map(|_| hostile(scene.address)).collect();
    Ok(Box::new(open?))
}
