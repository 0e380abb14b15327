//! Permission: whether the path is exported, and to this caller.

use super::fault::{Cause, Known, cause};
use super::phase::Phase;
use crate::finding::Layer;

pub(super) fn denied(phase: Phase, known: &Known) -> Vec<Cause> {
    let user = cause(
        "the caller has no right there; root is nobody for a server with root_squash",
        "?uid=N&gid=N of the directory's owner; ls -ln on the server",
    )
    .of(Layer::Client);
    let host = cause(
        "the export is not for this host",
        "exportfs -v on the server; the address it sees: ss -tn there",
    );
    let port = cause(
        "the export wants a privileged port (secure, the default), and this caller is not root",
        "as root, or insecure for the export",
    )
    .of(Layer::Client);
    match phase {
        Phase::Permission if known.is_privileged => vec![host, user],
        Phase::Permission if known.is_local => vec![port, host],
        Phase::Permission => vec![host, port],
        _ if known.is_privileged => vec![user],
        _ => vec![user, port],
    }
}

pub(super) fn absent(phase: Phase, known: &Known) -> Vec<Cause> {
    if phase > Phase::Permission || known.inside_of.is_some() {
        let export = known.inside_of.as_deref().unwrap_or("the export");
        return vec![cause(
            format!("{export} is exported, and inside of it is no such directory"),
            "ls on the server, below the export: the path is misspelt, or was removed",
        )];
    }
    let listed = match known.exports.as_deref() {
        None => "showmount -e, or exportfs -v on the server".to_owned(),
        Some([]) => "exportfs -ra on the server: it exports nothing to anybody".to_owned(),
        Some(exports) => format!("one of {}", exports.join(", ")),
    };
    let nearest = known.exports.iter().flatten().find(|one| is_near(one, &known.path));
    let mut all = Vec::new();
    if let Some(nearest) = nearest {
        let what = format!("{} is misspelt: {nearest} is exported", known.path);
        all.push(cause(what, format!("{}:{nearest}", known.host)));
    }
    all.push(cause(format!("{} is no export of it", known.path), listed));
    all.push(cause(
        "it is one for version 4, whose paths begin at a pseudo root (fsid=0)",
        "mount -o vers=4.2 with the path below the root",
    ));
    all
}

/// Whether two paths differ in so little that one is the other misspelt.
fn is_near(one: &str, other: &str) -> bool {
    let bare = |path: &str| path.trim_matches('/').to_lowercase();
    let (one, other) = (bare(one), bare(other));
    let same_case = one == other;
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let same_end = !last(&one).is_empty() && last(&one) == last(&other);
    same_case || same_end || distance(&one, &other) <= 2 && one.len() > 3
}

/// Letters to change, to put in or to take out (Levenshtein), of short paths.
fn distance(one: &str, other: &str) -> usize {
    const LETTERS_MAX: usize = 256;
    let one: Vec<char> = one.chars().take(LETTERS_MAX).collect();
    let other: Vec<char> = other.chars().take(LETTERS_MAX).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut left_above = row[0];
        row[0] = at + 1;
        for (below, wanted) in other.iter().enumerate() {
            let above = row[below + 1];
            let changed = left_above + usize::from(letter != wanted);
            row[below + 1] = changed.min(above + 1).min(row[below] + 1);
            left_above = above;
        }
    }
    row[other.len()]
}
