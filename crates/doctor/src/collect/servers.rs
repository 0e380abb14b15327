//! Which servers of NFS in user space there are: who listens on NFS's port, and what runs.

/// Where the port of NFS is listened to, in the form of `2049 PROGRAM`.
pub const SERVERS: &str = "servers.txt";

/// Programs that serve NFS, as the kernel has their names.
const PROGRAMS: [&str; 4] = ["ganesha.nfsd", "glusterfsd", "nfskit", "unfsd"];

const NFS_PORT: u16 = 2049;

/// A line for whoever listens, from `/proc/net/tcp` and `tcp6` and the names of all programs; none
/// where nobody does. The kernel's own server listens, too: it has counters.
pub fn servers(tcp: &str, commands: &[String]) -> Option<String> {
    let listens = tcp.lines().any(|line| {
        let mut words = line.split_whitespace();
        let local = words.nth(1).and_then(|local| local.rsplit_once(':'));
        let port = local.and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        // State 0A is LISTEN (include/net/tcp_states.h).
        port == Some(NFS_PORT) && words.nth(1) == Some("0A")
    });
    let known = PROGRAMS.iter().find(|name| commands.iter().any(|command| command == *name));
    listens.then(|| format!("{NFS_PORT} {}\n", known.unwrap_or(&"?")))
}

/// The program of such a line; `None` where its name is not known.
pub fn program(text: &str) -> Option<&str> {
    let (port, name) = text.lines().next()?.split_once(' ')?;
    (port.parse::<u16>().is_ok() && name != "?").then_some(name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_named_if_it_is_known() {
        let line = |port: &str, state: &str| {
            format!("  sl local rem st\n   0: 00000000:{port} 00000000:0000 {state} 0:0 00:0\n")
        };
        let all = ["bash".to_owned(), "ganesha.nfsd".to_owned()];
        let found = servers(&line("0801", "0A"), &all).unwrap();
        assert_eq!(
            (found.as_str(), program(&found)),
            ("2049 ganesha.nfsd\n", Some("ganesha.nfsd"))
        );
        assert_eq!(servers(&line("0801", "0A"), &all[..1]).as_deref(), Some("2049 ?\n"));
        assert_eq!(program("2049 ?\n"), None);
        assert_eq!(servers(&line("0801", "01"), &all), None, "a connection");
        assert_eq!(servers(&line("0802", "0A"), &all), None, "another port");
    }
}
