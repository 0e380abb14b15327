//! What rows were like in the samples before.

use std::collections::{HashMap, VecDeque};

use crate::table::{Row, Table};

/// Samples that are kept of each row.
pub const SAMPLES_MAX: usize = 120;

/// Rows of which any are kept; others have none.
pub const ROWS_MAX: usize = 20_000;

/// Samples of rows, by the table's number, the row that it lies below, and its name.
#[derive(Debug, Default)]
pub struct History {
    rows: HashMap<(usize, Option<String>, String), Samples>,
    /// How many samples there were.
    count: u64,
}

/// Of one row, the newest last; 0 where nothing was known.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    pub calls_per_s: VecDeque<f64>,
    pub ms: VecDeque<f64>,
    last: u64,
}

impl History {
    /// Adds a sample of all rows. Those that are gone for long are forgotten; those that are new
    /// were nothing before.
    pub fn add(&mut self, tables: &[Table]) {
        self.count += 1;
        for (number, table) in tables.iter().enumerate() {
            for row in &table.rows {
                self.put(number, None, row);
                for below in row.below.iter().flat_map(|below| &below.rows) {
                    self.put(number, Some(&row.name), below);
                }
            }
        }
        let now = self.count;
        // An operation that was not called in this sample is no row of it, and may be again.
        self.rows.retain(|_, samples| {
            if samples.last != now {
                samples.push(0.0, 0.0);
            }
            now - samples.last < SAMPLES_MAX as u64
        });
    }

    pub fn of(&self, table: usize, above: Option<&str>, row: &str) -> Option<&Samples> {
        self.rows.get(&(table, above.map(str::to_owned), row.to_owned()))
    }

    fn put(&mut self, table: usize, above: Option<&str>, row: &Row) {
        let key = (table, above.map(str::to_owned), row.name.clone());
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&key) {
            return;
        }
        let samples = self.rows.entry(key).or_default();
        if samples.last != self.count {
            samples.last = self.count;
            samples.push(row.calls_per_s.unwrap_or(0.0), row.ms.unwrap_or(0.0));
        }
    }
}

impl Samples {
    fn push(&mut self, calls_per_s: f64, ms: f64) {
        for (all, value) in [(&mut self.calls_per_s, calls_per_s), (&mut self.ms, ms)] {
            if all.len() == SAMPLES_MAX {
                all.pop_front();
            }
            all.push_back(if value.is_finite() { value.max(0.0) } else { 0.0 });
        }
    }
}
