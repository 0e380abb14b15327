//! Takes addresses and names of hosts out of what is collected: each becomes another of its kind,
//! the same one wherever it stands, so that what belongs together can still be seen.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Files, OURS};

/// See the module's head. What is masked: IPv4 and IPv6 addresses but loopback's and the
/// unspecified ones, the names of servers in lists of mounts, and of clients in exports.
#[must_use]
pub fn masked(files: &Files) -> Files {
    let mut mask = Mask::default();
    for (path, text) in files.all() {
        if path.ends_with("proc/self/mountstats") {
            mask.learn(&String::from_utf8_lossy(text));
        } else if path.ends_with("proc/self/mountinfo") {
            mask.learn_ours(&String::from_utf8_lossy(text));
        }
    }
    let mut all = Files { notes: files.notes.clone(), ..Files::default() };
    for (path, text) in files.all() {
        let text = String::from_utf8_lossy(text);
        let lines = text.lines().map(|line| match path.ends_with("etc/exports") {
            true => mask.export(line),
            false => mask.line(line),
        });
        let masked: String = lines
            .collect::<Vec<_>>()
            .into_iter()
            .flat_map(|line| [line, "\n".to_owned()])
            .collect();
        all.put(path, masked);
    }
    all
}

#[derive(Debug, Default)]
struct Mask {
    addresses: BTreeMap<IpAddr, IpAddr>,
    names: BTreeMap<String, String>,
}

impl Mask {
    /// Names of servers: `device NAME:/path mounted on`.
    fn learn(&mut self, mountstats: &str) {
        for line in mountstats.lines().filter(|line| line.contains(" with fstype nfs")) {
            let device = line.split_whitespace().nth(1).unwrap_or_default();
            if let Some((name, _)) = device.rsplit_once(":/") {
                self.name(name);
            }
        }
    }

    /// Those of our own mounts: `nfs://NAME:2049/path`, or as above.
    fn learn_ours(&mut self, mountinfo: &str) {
        for (_, tail) in mountinfo.lines().filter_map(|line| line.split_once(OURS)) {
            let source = tail.split_whitespace().next().unwrap_or_default();
            let bare = source.strip_prefix("nfs://").unwrap_or(source);
            if let Some(name) = bare.split(['/', ':']).next().filter(|_| !bare.starts_with('[')) {
                self.name(name);
            }
        }
    }

    fn name(&mut self, name: &str) {
        if !name.is_empty() && name.trim_matches(['[', ']']).parse::<IpAddr>().is_err() {
            let count = self.names.len() + 1;
            self.names.entry(name.to_owned()).or_insert_with(|| format!("server-{count}"));
        }
    }

    /// Every word of a line; words end where no address or name can go on.
    fn line(&mut self, line: &str) -> String {
        let ends = |one: char| one.is_whitespace() || "=,()[]/'\"".contains(one);
        let mut out = String::new();
        let mut word = String::new();
        for one in line.chars().map(Some).chain([None]) {
            match one.filter(|one| !ends(*one)) {
                Some(one) => word.push(one),
                None => {
                    out.push_str(&self.word(&word));
                    word.clear();
                    out.extend(one);
                }
            }
        }
        out
    }

    /// `10.0.0.1`, `10.0.0.1:2049`, `fd00::1`, `server:`.
    fn word(&mut self, word: &str) -> String {
        if let Some(address) = parsed(word) {
            return self.address(address).to_string();
        }
        let Some((head, tail)) = word.rsplit_once(':') else {
            return self.names.get(word).cloned().unwrap_or_else(|| word.to_owned());
        };
        let masked = match (parsed(head), self.names.get(head)) {
            (Some(address), _) => self.address(address).to_string(),
            (None, Some(name)) => name.clone(),
            (None, None) => return word.to_owned(),
        };
        format!("{masked}:{tail}")
    }

    /// `/path client(options) client(options)`.
    fn export(&mut self, line: &str) -> String {
        if line.trim_start().starts_with('#') {
            return String::new();
        }
        let words = line.split_whitespace().enumerate().map(|(at, word)| {
            match word.split_once('(').filter(|_| at > 0) {
                Some(("*", _)) => word.to_owned(),
                Some((_, options)) => format!("client({options}"),
                None if at > 0 => "client".to_owned(),
                None => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Of those that documents use (RFC 5737, RFC 3849).
    fn address(&mut self, address: IpAddr) -> IpAddr {
        if address.is_loopback() || address.is_unspecified() {
            return address;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a part of a number")]
        let number = self.addresses.len() as u16 + 1;
        *self.addresses.entry(address).or_insert_with(|| match address {
            IpAddr::V4(_) => {
                let [high, low] = number.to_be_bytes();
                Ipv4Addr::new(198, 18 + (high & 1), high, low).into()
            }
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number).into(),
        })
    }
}

/// An address, which has two dots or colons at least: a number is none.
fn parsed(word: &str) -> Option<IpAddr> {
    let word = word.split('%').next().unwrap_or(word);
    word.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_others_and_the_same_everywhere() {
        let mut files = Files::default();
        files.put(
            "1/proc/self/mountstats",
            "device nas.example.org:/srv/x mounted on /mnt with fstype nfs statvers=1.1\n\
             \topts:\trw,addr=10.1.2.3,clientaddr=10.1.2.4\n\tage:\t12\n",
        );
        files.put("1/ss.txt", "ESTAB 0 0 10.1.2.4:700 10.1.2.3:2049\n\t rtt:0.5/0.1\n");
        files.put("1/etc/exports", "/srv/x 10.0.0.0/8(rw) host.example.org(ro)\n# a secret\n");
        files.put(
            "1/proc/self/mountinfo",
            "35 25 0:31 / /mnt rw - nfs nas.example.org:/srv/x rw,addr=fd00::7\n\
             36 25 0:32 / /our rw - fuse.nfskit nfs://other.example.org/?nfsport=1 rw\n",
        );
        let masked = masked(&files);
        let text = |path: &str| String::from_utf8_lossy(masked.text(path).unwrap()).into_owned();
        let stats = text("1/proc/self/mountstats");
        assert!(stats.starts_with("device server-2:/srv/x mounted on /mnt"), "{stats}");
        let all: String = masked.all().map(|(path, _)| text(path)).collect();
        for secret in ["10.1.2", "example", "10.0.0", "secret", "fd00"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        let server = stats.split("addr=").nth(1).unwrap().split(',').next().unwrap();
        assert!(text("1/ss.txt").contains(&format!(" {server}:2049")), "{all}");
        assert!(all.contains("rtt:0.5/0.1") && all.contains("2001:db8::"), "{all}");
    }
}
