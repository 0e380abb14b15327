//! Requests for /metrics without end, and connections beside them that ask for nothing.

use std::any::Any;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::attack::{Attack, Scene};
use super::strangers::Repeated;

const CONNECTIONS: usize = 200;
const PAUSE: Duration = Duration::from_millis(2);

pub(super) const ATTACK: Attack = Attack {
    name: "metrics-flood",
    about: "/metrics is requested 500 times a second beside 200 connections that request nothing",
    tree: None,
    options: &[],
    begin,
};

fn begin(scene: &Scene) -> io::Result<Box<dyn Any + Send>> {
    let metrics = scene.metrics;
    let idle: io::Result<Vec<TcpStream>> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(metrics)).collect();
    let asking = Repeated::start(move || drop(get(metrics, "/metrics")), PAUSE);
    let health = get(metrics, "/healthz")?;
    if !health.ends_with("ok\n") {
        return Err(io::Error::other(format!("/healthz answers {health:?}")));
    }
    Ok(Box::new((idle?, asking)))
}

fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}
