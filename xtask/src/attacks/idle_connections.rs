//! As many connections as there may be, on which nothing happens.

use std::any::Any;
use std::io;
use std::net::TcpStream;

use super::attack::{Attack, Scene};
use super::calls::one_of_many;

/// As many as may be at once, of each address and of all.
const CONNECTIONS: usize = 4096;
const OF_HOST: usize = 1024;

pub(super) const ATTACK: Attack = Attack {
    name: "idle-connections",
    about: "4,096 connections of 4 addresses do nothing, as many as may be",
    tree: None,
    options: &[],
    begin,
};

fn begin(scene: &Scene) -> io::Result<Box<dyn Any + Send>> {
    let open: io::Result<Vec<TcpStream>> =
        (0..CONNECTIONS).map(|number| one_of_many(number, OF_HOST, scene.address)).collect();
    Ok(Box::new(open?))
}
