//! Targets: `nfs://host[:port]/path[?key=value&...]` (RFC 2224, with libnfs's arguments), or
//! `host:/path` as mount(8) has it.
//!
//! Which part of the path is the export and which lies inside it only the server knows: see
//! [`crate::mount`].

use std::fmt::{self, Write as _};
use std::str::FromStr;

use thiserror::Error;

/// The form that every message about a bad URL ends with.
pub const FORM: &str = "nfs://HOST[:PORT]/EXPORT[/PATH][?version=3|2&proto=tcp|udp&nfsport=N\
                        &mountport=N&uid=N&gid=N], or HOST:/EXPORT";

/// What can stand behind the `?`.
pub const ARGUMENTS: [&str; 6] = ["version", "proto", "nfsport", "mountport", "uid", "gid"];

/// A parsed target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// Name or address; an IPv6 address without its brackets.
    pub host: String,
    /// Begins with a slash, percent-decoded, no trailing slash but for the root.
    pub path: Vec<u8>,
    /// Where the NFS program listens; from the portmapper when absent.
    pub nfs_port: Option<u16>,
    /// Where the MOUNT program listens; from the portmapper when absent.
    pub mount_port: Option<u16>,
    pub version: Version,
    /// What carries the calls.
    pub protocol: Protocol,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
}

/// Which version of NFS is spoken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Version {
    Two,
    #[default]
    Three,
}

impl Version {
    pub fn number(self) -> u32 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// What carries calls to a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
}

impl Protocol {
    /// As it is written in a URL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// What is wrong with a URL.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum UrlError {
    #[error("{0:?} is not a URL")]
    Syntax(String),
    #[error("the scheme is {0:?}, it must be nfs")]
    Scheme(String),
    #[error("the path of an export begins with a slash, as in {0}")]
    NoSlash(String),
    #[error("there is no host name in {0:?}")]
    NoHost(String),
    #[error("a user or password has no meaning; NFS takes ?uid=N&gid=N")]
    UserInfo,
    #[error("#{0} has no meaning; a # in a name is written %23")]
    Fragment(String),
    #[error("unknown argument {0:?}; known are version, proto, nfsport, mountport, uid, gid")]
    UnknownArgument(String),
    #[error("{key}={value:?} is not a number between {low} and {high}")]
    BadNumber { key: &'static str, value: String, low: u32, high: u32 },
    #[error("version={0:?} is not supported; version=3 and version=2 are")]
    Version(String),
    #[error("proto={0:?} is not supported; proto=tcp and proto=udp are")]
    Protocol(String),
}

impl FromStr for Target {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if let Some((host, path)) = host_and_path(text) {
            return Self::of_plain(host, path).map_err(|error| error.of(text));
        }
        if let Some((host, path)) = host_and_name(text) {
            return Err(UrlError::NoSlash(format!("{host}:/{path}")));
        }
        let parsed = url::Url::parse(text).map_err(|_| UrlError::Syntax(text.to_owned()))?;
        if parsed.scheme() != "nfs" {
            return Err(UrlError::Scheme(parsed.scheme().to_owned()));
        }
        let host = parsed.host_str().unwrap_or_default();
        if host.is_empty() {
            return Err(UrlError::NoHost(text.to_owned()));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(UrlError::UserInfo);
        }
        if let Some(fragment) = parsed.fragment() {
            return Err(UrlError::Fragment(fragment.to_owned()));
        }
        let nfs_port = match parsed.port() {
            Some(given) => Some(port("port", &given.to_string())?),
            None => None,
        };
        let mut target = Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            path: decode_path(parsed.path()),
            nfs_port,
            mount_port: None,
            version: Version::default(),
            protocol: Protocol::default(),
            uid: None,
            gid: None,
        };
        for (key, value) in parsed.query_pairs() {
            target.set(&key, &value)?;
        }
        Ok(target)
    }
}

impl UrlError {
    /// The same about `text`, of which a part was read.
    fn of(self, text: &str) -> Self {
        match self {
            Self::Syntax(_) => Self::Syntax(text.to_owned()),
            Self::NoHost(_) => Self::NoHost(text.to_owned()),
            other => other,
        }
    }
}

/// The two parts of `HOST:/PATH`, the second without its slash. An address of IPv6 may have its
/// brackets.
fn host_and_path(text: &str) -> Option<(&str, &str)> {
    let (host, path) = text.split_once(":/")?;
    (!host.is_empty() && !host.contains('/') && !path.starts_with('/')).then_some((host, path))
}

/// The two parts of `HOST:NAME`, which lacks the slash.
fn host_and_name(text: &str) -> Option<(&str, &str)> {
    let (host, name) = text.split_once(':').filter(|_| !text.contains("://"))?;
    let is_host =
        !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-._".contains(c));
    (is_host && name.starts_with(char::is_alphabetic)).then_some((host, name))
}

impl Target {
    /// The path is taken letter by letter, as mount(8) does. A `?` begins arguments only where
    /// arguments follow: it can be part of a name.
    fn of_plain(host: &str, path: &str) -> Result<Self, UrlError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // The URL's own rules say which hosts there can be.
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let is_argument =
            |pair: &str| pair.split_once('=').is_some_and(|(key, _)| ARGUMENTS.contains(&key));
        let (path, arguments) = match path.rsplit_once('?') {
            Some((path, after)) if after.split('&').all(is_argument) => (path, after),
            _ => (path, ""),
        };
        let mut target: Self = format!("nfs://{host}/?{arguments}").parse()?;
        target.path = format!("/{}", path.trim_end_matches('/')).into_bytes();
        Ok(target)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), UrlError> {
        match key {
            "version" if value == "3" => self.version = Version::Three,
            "version" if value == "2" => self.version = Version::Two,
            "version" => return Err(UrlError::Version(value.to_owned())),
            "proto" if value == "tcp" => self.protocol = Protocol::Tcp,
            "proto" if value == "udp" => self.protocol = Protocol::Udp,
            "proto" => return Err(UrlError::Protocol(value.to_owned())),
            "nfsport" => self.nfs_port = Some(port("nfsport", value)?),
            "mountport" => self.mount_port = Some(port("mountport", value)?),
            "uid" => self.uid = Some(number("uid", value, 0, u32::MAX)?),
            "gid" => self.gid = Some(number("gid", value, 0, u32::MAX)?),
            unknown => return Err(UrlError::UnknownArgument(unknown.to_owned())),
        }
        Ok(())
    }

    /// The path as text, for messages.
    pub fn path_text(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracketed = self.host.contains(':');
        let (open, close) = if bracketed { ("[", "]") } else { ("", "") };
        write!(f, "nfs://{open}{}{close}{}", self.host, encoded(&self.path))?;
        // Version 3 and TCP go without saying.
        let mut mark = '?';
        if self.version != Version::Three {
            write!(f, "{mark}version={}", self.version.number())?;
            mark = '&';
        }
        if self.protocol != Protocol::Tcp {
            write!(f, "{mark}proto={}", self.protocol.name())?;
            mark = '&';
        }
        let numbers = [
            ("nfsport", self.nfs_port.map(u32::from)),
            ("mountport", self.mount_port.map(u32::from)),
            ("uid", self.uid),
            ("gid", self.gid),
        ];
        let mut given = numbers.iter().filter_map(|(key, value)| value.map(|value| (key, value)));
        given.try_for_each(|(key, value)| {
            write!(f, "{}{key}={value}", std::mem::replace(&mut mark, '&'))
        })
    }
}

fn port(key: &'static str, value: &str) -> Result<u16, UrlError> {
    let number = number(key, value, 1, u32::from(u16::MAX))?;
    Ok(u16::try_from(number).unwrap_or(u16::MAX))
}

fn number(key: &'static str, value: &str, low: u32, high: u32) -> Result<u32, UrlError> {
    let parsed = value.parse().ok().filter(|number| (low..=high).contains(number));
    parsed.ok_or_else(|| UrlError::BadNumber { key, value: value.to_owned(), low, high })
}

/// Percent-decodes, drops trailing slashes, makes the empty path the root.
fn decode_path(path: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = match after.split_first_chunk::<2>().filter(|_| byte == b'%') {
            Some((digits, behind)) if hex(*digits).is_some() => {
                decoded.extend(hex(*digits));
                behind
            }
            _ => {
                decoded.push(byte);
                after
            }
        };
    }
    while decoded.len() > 1 && decoded.last() == Some(&b'/') {
        decoded.pop();
    }
    if decoded.is_empty() { b"/".to_vec() } else { decoded }
}

/// A path as it stands in a URL: what ends a path there, what shells and terminals take for
/// something else, and what is no text, is percent-encoded.
pub fn encoded(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                ' ' | '%' | '?' | '#' | '"' | '\'' | '\\' | '`' => {
                    push_encoded(&mut text, letter as u32)
                }
                letter if letter.is_ascii_control() => push_encoded(&mut text, letter as u32),
                letter => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_encoded(&mut text, u32::from(*byte)));
    }
    text
}

fn push_encoded(text: &mut String, byte: u32) {
    // Writing to a String does not fail.
    write!(text, "%{byte:02X}").ok();
}

fn hex(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_target_is_read_and_printed_again() {
        let text = "nfs://[fe80::1]/a/b%20c?nfsport=2049&mountport=20048&uid=0&gid=7";
        let target: Target = text.parse().unwrap();
        assert_eq!(target.host, "fe80::1");
        assert_eq!(target.path, b"/a/b c");
        assert_eq!(target.nfs_port, Some(2049));
        assert_eq!(target.protocol, Protocol::Tcp);
        assert_eq!(
            target.to_string(),
            "nfs://[fe80::1]/a/b%20c?nfsport=2049&mountport=20048&uid=0&gid=7"
        );
    }

    #[test]
    fn a_path_of_any_bytes_is_read_as_it_was_printed() {
        let every: Vec<u8> = (1..=u8::MAX).filter(|byte| *byte != b'/').collect();
        for path in [&every[..], b"50%25 of", "d\u{e9}j\u{e0} vu \u{1f600}".as_bytes(), b"a//b"] {
            let path = [b"/", path].concat();
            let text = format!("nfs://h{}", encoded(&path));
            assert!(!text.contains([' ', '\'', '"', '\n', '\u{1b}']), "{text}");
            assert_eq!(text.parse::<Target>().unwrap().path, path, "{text}");
        }
        assert_eq!(encoded("/d\u{e9}j\u{e0}".as_bytes()), "/d\u{e9}j\u{e0}");
    }

    #[test]
    fn calls_go_over_udp_when_it_is_requested() {
        let text = "nfs://server/x?proto=udp&nfsport=2049";
        let target: Target = text.parse().unwrap();
        assert_eq!(target.protocol, Protocol::Udp);
        assert_eq!(target.to_string(), text);
        let tcp: Target = "nfs://server/x?proto=tcp".parse().unwrap();
        assert_eq!(tcp.to_string(), "nfs://server/x");
    }

    #[test]
    fn version_2_is_spoken_when_it_is_requested() {
        let text = "nfs://server/x?version=2&proto=udp";
        let target: Target = text.parse().unwrap();
        assert_eq!(target.version, Version::Two);
        assert_eq!(target.to_string(), text);
        let three: Target = "nfs://server/x?version=3".parse().unwrap();
        assert_eq!(three.to_string(), "nfs://server/x");
    }

    #[test]
    fn a_port_behind_the_host_is_the_nfs_port_and_the_root_is_a_slash() {
        for text in ["nfs://server:12049", "nfs://server:12049/", "nfs://server:12049//"] {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.nfs_port, target.path.as_slice()), (Some(12049), &b"/"[..]));
        }
    }

    #[test]
    fn a_target_is_written_as_mount_takes_it_too() {
        let read = |text: &str| text.parse::<Target>().unwrap();
        for (text, url) in [
            ("server:/export", "nfs://server/export"),
            ("server:/", "nfs://server/"),
            ("server:/export/", "nfs://server/export"),
            ("10.0.0.1:/a b", "nfs://10.0.0.1/a%20b"),
            ("[fe80::1]:/x", "nfs://[fe80::1]/x"),
            ("fe80::1:/x", "nfs://[fe80::1]/x"),
            ("h:/50%25", "nfs://h/50%2525"),
            ("h:/what?", "nfs://h/what%3F"),
            ("h:/x?version=2&nfsport=7", "nfs://h/x?version=2&nfsport=7"),
        ] {
            assert_eq!(read(text), read(url), "{text}");
        }
    }

    #[test]
    fn bad_targets_say_what_is_wrong() {
        let cases = [
            ("server://export", "the scheme is \"server\", it must be nfs"),
            ("a b:/export", "\"a b:/export\" is not a URL"),
            ("me@h:/x", "a user or password has no meaning; NFS takes ?uid=N&gid=N"),
            ("h:/x?version=4", "version=\"4\" is not supported; version=3 and version=2 are"),
            ("/data:/x", "\"/data:/x\" is not a URL"),
            ("export", "\"export\" is not a URL"),
            ("http://server/x", "the scheme is \"http\", it must be nfs"),
            ("nfs:///x", "there is no host name in \"nfs:///x\""),
            ("nfs://h/x?version=4", "version=\"4\" is not supported; version=3 and version=2 are"),
            (
                "nfs://h/x?proto=rdma",
                "proto=\"rdma\" is not supported; proto=tcp and proto=udp are",
            ),
            ("nfs://h/x?nfsport=0", "nfsport=\"0\" is not a number between 1 and 65535"),
            ("nfs://h:0/x", "port=\"0\" is not a number between 1 and 65535"),
            ("nfs://me@h/x", "a user or password has no meaning; NFS takes ?uid=N&gid=N"),
            ("nfs://h/x#y", "#y has no meaning; a # in a name is written %23"),
            ("nfs://h:99999/x", "\"nfs://h:99999/x\" is not a URL"),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<Target>().unwrap_err().to_string(), message);
        }
        let unknown = "nfs://h/x?color=red".parse::<Target>().unwrap_err();
        assert_eq!(unknown, UrlError::UnknownArgument("color".to_owned()));
    }
}
