//! `/etc/exports`, as exports(5) has it.

use std::fmt;
use std::iter;

/// A line: a path, and who may mount it. Without a client, everybody may.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Export {
    /// Without quotes; other escapes stay.
    pub path: String,
    pub clients: Vec<Client>,
}

/// A host, a network, a netgroup or a pattern; empty for everybody.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Client {
    pub host: String,
    /// With those that hold for the rest of the line (`-rw,sync`).
    pub options: Vec<String>,
}

/// What is exported; lines that begin with no path are passed over.
pub fn exports(text: &str) -> Vec<Export> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    joined.lines().filter_map(export).collect()
}

fn export(line: &str) -> Option<Export> {
    let mut words = words(line);
    let path = words.next().filter(|path| path.starts_with('/'))?;
    let (mut all, mut clients) = (Vec::new(), Vec::new());
    for word in words {
        if let Some(defaults) = word.strip_prefix('-') {
            all = options(defaults);
            continue;
        }
        let (host, own) = word.split_once('(').unwrap_or((&word, ""));
        let own = options(own.split(')').next().unwrap_or_default());
        let options = all.iter().cloned().chain(own).collect();
        clients.push(Client { host: host.to_owned(), options });
    }
    Some(Export { path, clients })
}

fn options(text: &str) -> Vec<String> {
    text.split(',').filter(|option| !option.is_empty()).map(str::to_owned).collect()
}

/// Words up to a comment; a quoted part may have blanks in it.
fn words(line: &str) -> impl Iterator<Item = String> + '_ {
    let mut left = line.chars().peekable();
    iter::from_fn(move || {
        while left.next_if(|one| one.is_whitespace()).is_some() {}
        let (mut word, mut is_quoted) = (String::new(), false);
        while let Some(one) = left.next_if(|one| is_quoted || !one.is_whitespace()) {
            match one {
                '"' => is_quoted = !is_quoted,
                '#' if word.is_empty() && !is_quoted => return None,
                one => word.push(one),
            }
        }
        (!word.is_empty()).then_some(word)
    })
    .fuse()
}

impl fmt::Display for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.contains(char::is_whitespace) {
            true => write!(f, "\"{}\"", self.path)?,
            false => f.write_str(&self.path)?,
        }
        for Client { host, options } in &self.clients {
            write!(f, " {host}({})", options.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_exportfs_reads_them() {
        let text = "# all of it\n/srv/x host1(rw,sync) \\\n  host2(ro) 10.7.7.7\n\
                    \"/srv/a b\" -ro,async *.corp(sec=sys) (insecure) # not host3(rw)\n\
                    host4(rw)\n\n/srv/open\n";
        let all: Vec<String> = exports(text).iter().map(ToString::to_string).collect();
        assert_eq!(
            all,
            [
                "/srv/x host1(rw,sync) host2(ro) 10.7.7.7()",
                "\"/srv/a b\" *.corp(ro,async,sec=sys) (ro,async,insecure)",
                "/srv/open",
            ]
        );
    }
}
