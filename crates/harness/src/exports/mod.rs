//! What is to be exported, as users say it: `--export PATH=OPTIONS` (`options`) or a TOML file
//! (`file`), and what the server makes of it (`resolve`).

pub mod file;
pub mod options;
pub mod resolve;

use std::path::PathBuf;

use server::{NOBODY, Network, NetworkError, Squash};

/// A directory, the name under which it is mounted, and what some clients may do with it. Several
/// with one name are several rules of one export.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spec {
    pub path: PathBuf,
    /// The path that clients mount.
    pub name: String,
    /// Instead of one that is made from the name.
    pub id: Option<u32>,
    pub rule: RuleSpec,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleSpec {
    /// Everyone when there are none.
    pub clients: Vec<Client>,
    pub read_only: bool,
    pub squash: Squash,
    pub anonymous_uid: u32,
    pub anonymous_gid: u32,
    /// Only calls from privileged ports; of this host those of root and of the server's user.
    pub secure: bool,
}

impl Default for RuleSpec {
    /// Everyone may write whose host vouches for him, and root is nobody, as in exports(5).
    fn default() -> Self {
        Self {
            clients: Vec::new(),
            read_only: false,
            squash: Squash::Root,
            anonymous_uid: NOBODY,
            anonymous_gid: NOBODY,
            secure: true,
        }
    }
}

impl RuleSpec {
    /// Whether it is for everyone: no clients, or a network of all addresses.
    pub fn is_open(&self) -> bool {
        let is_everyone =
            |client: &Client| matches!(client, Client::Network(network) if network.is_everyone());
        self.clients.is_empty() || self.clients.iter().any(is_everyone)
    }
}

/// Who is meant by a client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Client {
    Network(Network),
    /// A name, for the resolver.
    Host(String),
}

/// Reads `10.0.0.0/8`, `fd00::1` or the name of a host.
pub fn client(text: &str) -> Result<Client, String> {
    let form = || {
        format!("{text:?} is neither an address, a network such as 10.0.0.0/8, nor a host's name")
    };
    match text.parse() {
        Ok(network) => Ok(Client::Network(network)),
        Err(NetworkError::Address) if is_host_name(text) => Ok(Client::Host(text.to_owned())),
        Err(NetworkError::Address) => Err(form()),
        Err(error @ (NetworkError::Prefix | NetworkError::HostBits)) => {
            Err(format!("{text:?} is no network: {error}"))
        }
    }
}

/// A user or group for whoever has none: not the number that says "unchanged" to the system.
pub fn anonymous(number: u32) -> Result<u32, String> {
    match number {
        u32::MAX => Err(format!("{number} is a number that no user or group has (it is -1)")),
        number => Ok(number),
    }
}

/// As far as names differ from mistyped addresses: some label has a letter.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let labels = text.strip_suffix('.').unwrap_or(text);
    text.len() <= 253
        && labels.split('.').all(is_label)
        && labels.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// The path under which something is mounted: absolute, without a slash at its end.
pub fn name(text: &str) -> Result<String, String> {
    let trimmed = text.trim_end_matches('/');
    if !text.starts_with('/') {
        return Err(format!("{text:?} does not begin with a slash: the form is /export"));
    }
    if text.split('/').any(|part| matches!(part, "." | "..")) || text.contains('\0') {
        return Err(format!("{text:?} has a part that is `.` or `..`, or a NUL"));
    }
    if text.len() > wire::mount::PATH_LEN_MAX {
        return Err(format!("an export's name has at most {} bytes", wire::mount::PATH_LEN_MAX));
    }
    Ok(if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_networks_or_names() {
        assert!(matches!(client("10.0.0.0/8"), Ok(Client::Network(_))));
        assert!(matches!(client("fd00::1"), Ok(Client::Network(_))));
        assert_eq!(client("build-1.example"), Ok(Client::Host("build-1.example".to_owned())));
        assert_eq!(client("::ffff:10.0.0.0/104"), client("10.0.0.0/8"));
        for wrong in ["", "10.0.0", "1.2.3.4.5", "a b", "-a", "a..b", "*", "a/8", "10.0.0.1/8"] {
            assert!(client(wrong).is_err(), "{wrong}");
        }
        assert!(client("10.0.0.1/8").unwrap_err().contains("behind its prefix"));
    }

    #[test]
    fn names_begin_with_a_slash_and_end_without() {
        assert_eq!(name("/"), Ok("/".to_owned()));
        assert_eq!(name("/a/b/"), Ok("/a/b".to_owned()));
        for wrong in ["a", "", "/a/../b", "/.", "/a\0"] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
    }
}
