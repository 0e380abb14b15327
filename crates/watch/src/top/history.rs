//! What rows were like in the samples before.

use std::collections::{HashMap, VecDeque};

use crate::table::{Row, Table};

/// Samples that are remembered of each row.
pub const SAMPLES_MAX: usize = 120;

/// Rows of which any are remembered; others have none.
pub const ROWS_MAX: usize = 20_000;

/// Samples of rows, by the table's number and their names.
#[derive(Debug, Default)]
pub struct History {
    tables: Vec<HashMap<String, Rows>>,
    /// Of all tables together.
    rows: usize,
    /// How many samples there were.
    count: u64,
}

/// A row, and those below it.
#[derive(Debug, Default)]
struct Rows {
    own: Samples,
    below: HashMap<String, Samples>,
}

impl Rows {
    /// What was not in the latest sample is remembered for as long as it is shown.
    fn goes_on(&mut self, now: u64) -> bool {
        self.below.retain(|_, samples| samples.goes_on(now));
        self.own.goes_on(now) || !self.below.is_empty()
    }
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
        let now = self.count;
        if self.tables.len() < tables.len() {
            self.tables.resize_with(tables.len(), HashMap::new);
        }
        for (table, rows) in tables.iter().zip(&mut self.tables) {
            for row in &table.rows {
                let Some(history) = place(rows, &row.name, &mut self.rows) else { continue };
                history.own.take(row, now);
                for below in row.below.iter().flat_map(|below| &below.rows) {
                    if let Some(samples) = place(&mut history.below, &below.name, &mut self.rows) {
                        samples.take(below, now);
                    }
                }
            }
        }
        // An operation that was not called in this sample is no row of it, and may be again.
        self.tables.iter_mut().for_each(|rows| rows.retain(|_, row| row.goes_on(now)));
        let each = self.tables.iter().flat_map(HashMap::values);
        self.rows = each.map(|row| 1 + row.below.len()).sum();
    }

    pub fn of(&self, table: usize, above: Option<&str>, row: &str) -> Option<&Samples> {
        let rows = self.tables.get(table)?;
        match above {
            Some(above) => rows.get(above)?.below.get(row),
            None => rows.get(row).map(|row| &row.own),
        }
    }
}

/// The place of a row; none where there are too many. A name is copied for a new one only.
fn place<'a, T: Default>(
    rows: &'a mut HashMap<String, T>,
    name: &str,
    count: &mut usize,
) -> Option<&'a mut T> {
    if !rows.contains_key(name) {
        if *count >= ROWS_MAX {
            return None;
        }
        *count += 1;
        rows.insert(name.to_owned(), T::default());
    }
    rows.get_mut(name)
}

impl Samples {
    /// The first row of a name in a sample.
    fn take(&mut self, row: &Row, now: u64) {
        if self.last != now {
            self.last = now;
            self.push(row.calls_per_s.unwrap_or(0.0), row.ms.unwrap_or(0.0));
        }
    }

    /// One that was not in the sample has nothing in it, and is forgotten some time.
    fn goes_on(&mut self, now: u64) -> bool {
        if self.last != now {
            self.push(0.0, 0.0);
        }
        now - self.last < SAMPLES_MAX as u64
    }

    fn push(&mut self, calls_per_s: f64, ms: f64) {
        for (all, value) in [(&mut self.calls_per_s, calls_per_s), (&mut self.ms, ms)] {
            if all.len() == SAMPLES_MAX {
                all.pop_front();
            }
            all.push_back(if value.is_finite() { value.max(0.0) } else { 0.0 });
        }
    }
}
