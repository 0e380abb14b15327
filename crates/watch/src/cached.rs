//! What the cache of a mount or a proxy on a local disk has served, and why it has not.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::table::Kind::{Name, Number, Share};
use crate::table::{Kind, Row, Table, show};

/// Causes of a miss, as `nfskit_cache_misses_total` has them; others are in the sum alone.
const CAUSES: [&str; 7] =
    ["cold", "changed", "evicted", "damaged", "unsure", "invalidated", "failed"];

const COLUMNS: [(&str, Kind); 11] = [
    ("kept on disk", Name),
    ("hits", Number),
    ("hit", Share),
    ("misses", Number),
    ("cold", Number),
    ("changed", Number),
    ("evicted", Number),
    ("damaged", Number),
    ("unsure", Number),
    ("invalid.", Number),
    ("failed", Number),
];

/// A cache of `nfskit mount --cache` or `nfskit serve nfs://... --cache`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OurCache {
    /// Reads of files.
    pub reads: OurHits,
    /// Directories whose names were requested.
    pub directories: OurHits,
    pub stored_bytes: f64,
    /// What lies there now.
    pub bytes: Option<f64>,
    pub files: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OurHits {
    pub hits: f64,
    /// By their causes.
    pub misses: BTreeMap<String, f64>,
}

impl OurHits {
    fn misses_all(&self) -> f64 {
        self.misses.values().sum()
    }

    fn row(&self, name: &'static str) -> Row {
        let (hits, misses) = (self.hits, self.misses_all());
        let all = hits + misses;
        let mut cells = vec![Some(hits), (all > 0.0).then(|| hits / all), Some(misses)];
        cells.extend(CAUSES.map(|cause| self.misses.get(cause).copied()));
        Row { name: name.into(), cells, ..Row::default() }
    }
}

/// Nothing where there is no cache; a row only for what was requested.
pub(crate) fn table(of: Option<&OurCache>, name: &str) -> Option<Table> {
    let of = of?;
    let rows = [(&of.reads, "reads"), (&of.directories, "directories")];
    let mut table = Table::new(format!("{name}: cache"), &COLUMNS);
    let used = rows.into_iter().filter(|(of, _)| of.hits + of.misses_all() > 0.0);
    table.rows = used.map(|(of, name)| of.row(name)).collect();
    table.notes.push(format!(
        "{} B in {} local files; {} B stored",
        show(of.bytes, Number),
        show(of.files, Number),
        show(Some(of.stored_bytes), Number),
    ));
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_and_causes_of_misses_stand_beside_each_other() {
        let misses = [("cold", 2.0), ("changed", 1.0)].map(|(name, n)| (name.to_owned(), n));
        let reads = OurHits { hits: 9.0, misses: misses.into_iter().collect() };
        let (directories, bytes) = (OurHits::default(), Some(5e6));
        let of = OurCache { reads, directories, stored_bytes: 4096.0, bytes, files: Some(7.0) };
        let table = table(Some(&of), "m").unwrap();
        assert_eq!(table.rows.len(), 1, "of directories nobody has listed");
        let shown: Vec<_> = (1..=5).map(|at| table.rows[0].shown(at, COLUMNS[at].1)).collect();
        assert_eq!(shown, ["9", "75 %", "3", "2", "1"]);
        assert_eq!(table.rows[0].cells.len() + 1, COLUMNS.len());
    }
}
