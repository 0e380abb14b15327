//! A file of exports:
//!
//! ```toml
//! [[export]]
//! path = "/srv/data"            # a directory of this host
//! name = "/data"                # what clients mount; default: the path
//! clients = ["10.0.0.0/8", "build.example"]   # default: everyone
//! access = "rw"                 # or "ro"
//! squash = "root"               # or "none", "all"
//! anonuid = 65534
//! anongid = 65534
//! secure = true                 # only calls from privileged ports, or of this host's root
//! ```
//!
//! Several tables with one name are several rules: the first that names a client is the client's.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use server::{NOBODY, Squash};

use super::{Client, RuleSpec, Spec};
use crate::input;

/// A file may have this many bytes: some ten thousand exports.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    export: Vec<Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    path: Absolute,
    name: Option<Name>,
    id: Option<u32>,
    clients: Option<Clients>,
    #[serde(default)]
    access: Access,
    #[serde(default)]
    squash: SquashWord,
    anonuid: Option<Anonymous>,
    anongid: Option<Anonymous>,
    #[serde(default = "yes")]
    secure: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Access {
    #[default]
    Rw,
    Ro,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SquashWord {
    None,
    #[default]
    Root,
    All,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Absolute(String);

impl TryFrom<String> for Absolute {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.starts_with('/') {
            true => Ok(Self(text)),
            false => Err(format!("{text:?} is no absolute path")),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        super::name(&text).map(Self)
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Listed(Client);

impl TryFrom<String> for Listed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        super::client(&text).map(Self)
    }
}

/// At least one: without a list it is everyone.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<Listed>")]
struct Clients(Vec<Client>);

impl TryFrom<Vec<Listed>> for Clients {
    type Error = &'static str;

    fn try_from(listed: Vec<Listed>) -> Result<Self, &'static str> {
        match listed.is_empty() {
            true => Err("an empty list of clients; without a list it is everyone"),
            false => Ok(Self(listed.into_iter().map(|Listed(client)| client).collect())),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "u32")]
struct Anonymous(u32);

impl TryFrom<u32> for Anonymous {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        super::anonymous(number).map(Self)
    }
}

/// Reads a file of exports.
///
/// # Errors
/// What is wrong with it, with line and column where that helps.
pub fn read(path: &Path) -> Result<Vec<Spec>, String> {
    let about = |why: String| format!("{}: {why}", path.display());
    let text = input::text(path, FILE_BYTES_MAX).map_err(|cause| about(cause.to_string()))?;
    parse(&text).map_err(about)
}

fn parse(text: &str) -> Result<Vec<Spec>, String> {
    let file: File = toml::from_str(text).map_err(|error| located(text, &error))?;
    if file.export.is_empty() {
        return Err("it exports nothing: there is no [[export]]".to_owned());
    }
    file.export.into_iter().map(spec).collect()
}

/// The message with its place in the text, on one line.
fn located(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let before = &text.as_bytes()[..at];
    let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|&&byte| byte != b'\n').count();
    let message = error.message().replace('\n', ", ");
    format!("line {line}, column {column}: {}", message.trim_end_matches(", "))
}

fn spec(table: Table) -> Result<Spec, String> {
    let Absolute(path) = table.path;
    let name = match table.name {
        Some(Name(name)) => name,
        None => super::name(&path)?,
    };
    let rule = RuleSpec {
        clients: table.clients.map_or_else(Vec::new, |Clients(clients)| clients),
        read_only: matches!(table.access, Access::Ro),
        squash: match table.squash {
            SquashWord::None => Squash::None,
            SquashWord::Root => Squash::Root,
            SquashWord::All => Squash::All,
        },
        anonymous_uid: table.anonuid.map_or(NOBODY, |Anonymous(uid)| uid),
        anonymous_gid: table.anongid.map_or(NOBODY, |Anonymous(gid)| gid),
        secure: table.secure,
    };
    Ok(Spec { path: PathBuf::from(path), name, id: table.id, rule })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_an_export() {
        let specs = parse(
            r#"
            [[export]]
            path = "/srv/data"
            name = "/data"
            clients = ["10.0.0.0/8", "build.example"]
            access = "ro"
            squash = "none"
            secure = true

            [[export]]
            path = "/home"
            "#,
        )
        .unwrap();
        assert_eq!(specs.len(), 2);
        assert_eq!((specs[0].name.as_str(), specs[0].rule.clients.len()), ("/data", 2));
        assert!(specs[0].rule.read_only && specs[0].rule.secure);
        assert_eq!(specs[0].rule.squash, Squash::None);
        assert_eq!((specs[1].name.as_str(), &specs[1].rule), ("/home", &RuleSpec::default()));
    }

    #[test]
    fn mistakes_are_reported_with_line_and_column() {
        let cases = [
            ("[[export]]\npath = \"/a\"\nacces = \"ro\"", "line 3", "unknown field `acces`"),
            ("[[export]]\npath = \"a\"", "line 2, column 8", "no absolute path"),
            (
                "[[export]]\npath = \"/a\"\nclients = [\"10.0.0.1/8\"]",
                "line 3",
                "behind its prefix",
            ),
            ("[[export]]\npath = \"/a\"\naccess = \"rx\"", "line 3", "unknown variant `rx`"),
            ("[[export]]\npath = \"/a\"\nanonuid = -1", "line 3", "invalid value"),
            ("[[export]]\npath = \"/a\"\nanongid = 4294967295", "line 3", "no user or group has"),
            ("[[export]]\npath = \"/a\"\nclients = []", "line 3", "an empty list of clients"),
            ("[[export]]\nname = \"/a\"", "line 1", "missing field `path`"),
            ("[[export]\n", "line 1", ""),
            ("[export]\npath = \"/a\"", "line 1", ""),
        ];
        for (text, place, why) in cases {
            let message = parse(text).unwrap_err();
            assert!(message.contains(place) && message.contains(why), "{message}");
        }
        assert!(parse("").unwrap_err().contains("exports nothing"));
    }
}
