//! Takes addresses and names of hosts out of what is collected: each becomes another of its kind,
//! the same one wherever it stands, so that what belongs together can still be seen.
//!
//! Names are found by their places: devices and options of mounts, clients of exports, values of
//! settings, ends of connections. A file of which these places are not known is left out, and so is
//! what else may have names in it.

mod names;

use super::{CONNECTIONS, Files, Note, OF_MANY, SPACES, WAITS, exports, in_root, lines, nfs_only};
use names::{Kind, MASKED, Names};

/// See the module's head. What is masked: IPv4 and IPv6 addresses but loopback's and the
/// unspecified ones, and all names of hosts. What was left out for that is noted.
#[must_use]
pub fn masked(files: &Files) -> Files {
    let mut all = Files { notes: files.notes.clone(), ..Files::default() };
    let mut names = Names::default();
    let mut roots: Vec<&str> = Vec::new();
    let mut placed = Vec::new();
    for (path, text) in files.all() {
        let Some((root, tail)) = in_root(path) else {
            let why = "is left out: where names of hosts stand in it is not known";
            all.notes.push(Note { path: path.to_owned(), why: why.to_owned() });
            continue;
        };
        if !roots.contains(&root) {
            roots.push(root);
        }
        placed.push((root, tail, in_places(&mut names, tail, &String::from_utf8_lossy(text))));
    }
    // Full names are masked wherever they are, and so all must be known before.
    for (root, tail, text) in placed {
        let masked: String =
            text.lines().flat_map(|line| [names.line(line), "\n".into()]).collect();
        all.put(format!("{}{tail}", folder(&roots, root)), masked);
    }
    all
}

/// A root's name may be that of a host; a number keeps the order of several.
fn folder(roots: &[&str], root: &str) -> String {
    match roots.iter().position(|one| *one == root) {
        Some(at) if !root.is_empty() => format!("{}/", at + 1),
        _ => String::new(),
    }
}

/// Masks what stands where only hosts do, and leaves out what may be anything.
fn in_places(names: &mut Names, tail: &str, text: &str) -> String {
    let text = match OF_MANY.iter().find(|(path, _)| *path == tail) {
        Some((_, is_wanted)) => lines(text, is_wanted),
        None => text.to_owned(),
    };
    let each = |text: &str, mask: &mut dyn FnMut(&str) -> Option<String>| -> String {
        text.lines().filter_map(mask).flat_map(|line| [line, "\n".to_owned()]).collect()
    };
    match tail {
        "proc/self/mountstats" => {
            each(&nfs_only(text.as_bytes()), &mut |line| of_mountstats(names, line))
        }
        "proc/self/mountinfo" => each(&text, &mut |line| of_mountinfo(names, line)),
        "etc/fstab" => each(&text, &mut |line| of_fstab(names, line)),
        "etc/exports" => of_exports(names, &text),
        "etc/nfs.conf" => each(&text, &mut |line| of_conf(names, line)),
        CONNECTIONS => each(&text, &mut |line| of_connections(names, line)),
        SPACES => each(&text, &mut |line| of_spaces(names, line)),
        // What is called may have arguments.
        WAITS => each(&text, &mut |line| {
            Some(line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        }),
        _ => text,
    }
}

/// `device HOST:/path mounted on`, options, and lines of numbers; servers describe themselves in
/// others (`impl_id`).
fn of_mountstats(names: &mut Names, line: &str) -> Option<String> {
    const PLAIN: [&str; 9] =
        ["age:", "caps:", "sec:", "nfsv4:", "events:", "bytes:", "RPC iostats", "xprt:", "per-op"];
    if let Some(rest) = line.strip_prefix("device ") {
        let (device, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        return Some(format!("device {} {rest}", names.device(device)));
    }
    if let Some((head, options)) = line.split_once("opts:\t") {
        return Some(format!("{head}opts:\t{}", names.options(options)));
    }
    let is_number = |word: &str| word.parse::<i128>().is_ok();
    let is_plain = PLAIN.iter().any(|tag| line.trim_start().starts_with(tag))
        || line.split_whitespace().skip(1).all(is_number) && line.contains(": ");
    is_plain.then(|| line.to_owned())
}

/// `... /point rw - nfs HOST:/path options`.
fn of_mountinfo(names: &mut Names, line: &str) -> Option<String> {
    let (head, tail) = line.split_once(" - ")?;
    let mut words = tail.split(' ');
    let (kind, device) = (words.next()?, names.device(words.next()?));
    Some(format!("{head} - {kind} {device} {}", names.options(words.next()?)))
}

/// `HOST:/path /point nfs options 0 0`, be it behind a `#`; no more of it.
fn of_fstab(names: &mut Names, line: &str) -> Option<String> {
    let bare = line.trim_start_matches(['#', ' ', '\t']);
    let comment = if bare.len() < line.trim_start().len() { "#" } else { "" };
    let mut words = bare.split_whitespace();
    let (device, point, kind) = (names.device(words.next()?), words.next()?, words.next()?);
    let options = names.options(words.next().unwrap_or("defaults"));
    Some(format!("{comment}{device} {point} {kind} {options}"))
}

/// `/path HOST(options)`.
fn of_exports(names: &mut Names, text: &str) -> String {
    let mut all = exports(text);
    for client in all.iter_mut().flat_map(|export| &mut export.clients) {
        client.host = of_client(names, &client.host);
        client.options = client.options.iter().map(|option| of_export(option)).collect();
    }
    all.iter().flat_map(|export| [export.to_string(), "\n".to_owned()]).collect()
}

/// Everybody, a flavor, and a network stay; a name, a netgroup and a pattern do not.
fn of_client(names: &mut Names, client: &str) -> String {
    let (address, mask) = client.split_once('/').unwrap_or((client, ""));
    match client {
        "*" | "gss/krb5" | "gss/krb5i" | "gss/krb5p" => client.to_owned(),
        _ if mask.is_empty() => names.host(client, Kind::Client),
        _ => match names.host(address, Kind::Client) {
            same if same == address => client.to_owned(),
            other => other,
        },
    }
}

/// Options that are known to have no host in them; of the others, the name (`refer=`).
fn of_export(option: &str) -> String {
    const VALUED: [&str; 7] = ["anonuid", "anongid", "fsid", "mountpoint", "mp", "sec", "xprtsec"];
    match option.split_once('=') {
        Some((key, _)) if !VALUED.contains(&key) => format!("{key}={MASKED}"),
        _ => option.to_owned(),
    }
}

/// Sections, and what is a number, a yes or no, or a path. No comments.
fn of_conf(names: &mut Names, line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(section) = line.strip_prefix('[') {
        let name = section.split(|one: char| !one.is_ascii_alphanumeric()).next()?;
        return Some(format!("[{name}]"));
    }
    let (key, value) = line.split(['#', ';']).next()?.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let is_plain = |word: &str| {
        let words = ["y", "n", "yes", "no", "true", "false", "on", "off", "t", "f", "all", "auto"];
        words.contains(&word.to_lowercase().as_str()) || word.parse::<f64>().is_ok()
    };
    let masked = match key {
        "host" | "name" => {
            let each = value.split(',').map(|host| names.host(host.trim(), Kind::Server));
            each.collect::<Vec<_>>().join(",")
        }
        _ if is_plain(value) || value.starts_with('/') => value.to_owned(),
        _ => MASKED.to_owned(),
    };
    Some(format!("{key}={masked}"))
}

/// `ESTAB 0 0 HOST:port HOST:port`, and what is known of it; ss has names with `-r`.
fn of_connections(names: &mut Names, line: &str) -> Option<String> {
    if line.starts_with([' ', '\t']) || line.starts_with("State") {
        return Some(line.to_owned());
    }
    let end = |(at, word): (usize, &str)| match word.rsplit_once(':') {
        Some((host, port)) if (2..5).contains(&at) => {
            format!("{}:{port}", names.host(host, Kind::Client))
        }
        _ => word.to_owned(),
    };
    Some(line.split_whitespace().enumerate().map(end).collect::<Vec<_>>().join(" "))
}

/// `HOST:/path 1 2 3 4% /point`.
fn of_spaces(names: &mut Names, line: &str) -> Option<String> {
    let (device, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some(format!("{} {rest}", names.device(device)))
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
        assert!(stats.starts_with("device server-1:/srv/x mounted on /mnt"), "{stats}");
        let all: String = masked.all().map(|(path, _)| text(path)).collect();
        for secret in ["10.1.2", "example", "10.0.0", "secret", "fd00"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        let server = stats.split("addr=").nth(1).unwrap().split(',').next().unwrap();
        assert!(text("1/ss.txt").contains(&format!(" {server}:2049")), "{all}");
        assert!(all.contains("rtt:0.5/0.1") && all.contains("2001:db8::"), "{all}");
    }

    /// Every place where a host can stand, each with a word that is secret.
    const PLACES: [(&str, &str); 9] = [
        (
            "etc/exports",
            "/srv/x secret1.corp.example(rw,sync) \\\n    secret2(ro) 10.7.7.7(rw)\n\
             /srv/y *(ro,refer=/y@secret3.corp.example+10.8.8.8,sync) # of secret4\n\
             \"/srv/a b\" -sync @secret5(rw) *.secret6.example(ro,x=secret7)\nsecret8(rw)\n",
        ),
        (
            "etc/fstab",
            "secret9.corp.example:/x /net/Secret9.corp.example/secret13 nfs mounthost=secret10,x-y.z=secret11 0 0 # secret12\n\
             #secret13:/x /mnt/y nfs4 rw 0 0\nsecret14:/x /mnt/z sshfs rw 0 0\n",
        ),
        (
            "etc/nfs.conf",
            "# secret15\n[nfsd \"secret16\"]\nthreads=16 # secret17\nhost=secret18,10.9.9.9\n\
             [gssd]\npreferred-realm=SECRET19.CORP\n",
        ),
        (
            "proc/self/mountinfo",
            "35 25 0:31 / /mnt rw - nfs secret20:/a:/b rw,addr=fd00::7\n\
             36 25 0:32 / /our rw - fuse.nfskit nfs://secret21:2049/?nfsport=1 rw\n\
             37 25 0:33 / /other rw - cifs //secret22/x rw,unc=//secret22/x\n",
        ),
        (
            "proc/self/mountstats",
            "device secret20:/a:/b mounted on /mnt with fstype nfs statvers=1.1\n\
             \topts:\trw,vers=4.1,addr=10.1.2.3,mountaddr=secret23\n\tage:\t12\n\
             \timpl_id:\tname='secret24',domain='secret25.example'\n\
             \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\
             \txprt:\ttcp 0 1 1 0 0 1 1 0 1 0 2 0 0\n\tper-op statistics\n\tREAD: 1 1 0 0 0 1 2 3 0\n",
        ),
        ("ss.txt", "ESTAB 0 0 secret26.corp:700 [fd00::7%secret27]:2049\n\t rtt:0.5/0.1\n"),
        ("df.txt", "Filesystem x\nsecret28:/x 100 50 50 50% /mnt\n"),
        ("ps.txt", "S WCHAN COMMAND\nD rpc_wait ssh secret29\n"),
        ("hosts.txt", "10.1.2.3 secret30.corp.example\n"),
    ];

    #[test]
    fn no_name_of_a_host_is_left_in_any_file() {
        let mut files = Files::default();
        for (path, text) in PLACES {
            files.put(format!("sosreport-secret31-2026/{path}"), text);
        }
        let masked = masked(&files);
        let text = |path: &str| String::from_utf8_lossy(masked.text(path).unwrap()).into_owned();
        let all: String = masked.all().map(|(path, _)| format!("{path}\n{}", text(path))).collect();
        for secret in ["secret", "10.1", "10.7", "10.8", "10.9", "fd00"] {
            assert!(!all.to_lowercase().contains(secret), "{secret} in {all}");
        }
        assert!(masked.notes[0].path.ends_with("hosts.txt"), "{:?}", masked.notes);
        let exports = text("1/etc/exports");
        assert!(exports.starts_with("/srv/x client-1(rw,sync) client-2(ro) 198.18.0."), "{all}");
        assert!(exports.contains("\n/srv/y *(ro,refer=masked,sync)\n"), "{exports}");
        assert!(text("1/etc/fstab").contains("\n#server-4:/x /mnt/y nfs4 rw\n"), "{all}");
        assert!(text("1/etc/nfs.conf").contains("[nfsd]\nthreads=16\nhost=server-5,"), "{all}");
        let evidence = crate::Evidence::of(masked);
        let mount = &evidence.last.mounts[0];
        assert_eq!((mount.device.as_str(), mount.point.as_str()), ("server-6:/a:/b", "/mnt"));
        assert_eq!((mount.age_s, mount.operations.len()), (Some(12), 1));
        assert_eq!(evidence.last.connections[0].peer_port(), Some(2049));
        assert_eq!(evidence.option_in_mountinfo("/mnt", "addr"), Some("2001:db8::3"));
    }

    #[test]
    fn a_server_may_be_called_as_a_word_of_the_format() {
        let mut files = Files::default();
        let line = "device nfs:/x mounted on /mnt with fstype nfs statvers=1.1\n";
        files.put("proc/self/mountstats", line);
        let masked = masked(&files);
        let expected = "device server-1:/x mounted on /mnt with fstype nfs statvers=1.1\n";
        assert_eq!(masked.text("proc/self/mountstats"), Some(expected.as_bytes()));
    }
}
