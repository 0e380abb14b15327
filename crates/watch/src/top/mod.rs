//! What `nfskit top` shows: a plain state. Samples and keys go in, a picture comes out; who has the
//! terminal and the clock calls it.
//!
//! - [`history`]: what rows were like in the samples before.
//! - `draw.rs`: the picture.

mod draw;
pub mod history;

use crate::table::{Row, Table};

use self::history::History;

/// A key, as far as one means anything here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Key {
    Backspace,
    Char(char),
    Down,
    End,
    Enter,
    Escape,
    Home,
    Left,
    PageDown,
    PageUp,
    Right,
    Tab,
    Up,
}

/// Whether it goes on after a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    GoOn,
    Quit,
}

/// Letters of a filter, at most.
const FILTER_MAX: usize = 64;

/// Rows that a page key moves by, until it is drawn and known.
const PAGE_ROWS: usize = 10;

/// Everything that is shown.
#[derive(Debug, Default)]
pub struct State {
    /// The newest sample that was not paused away.
    tables: Vec<Table>,
    history: History,
    /// What stands at the top beside the time.
    host: String,
    time: String,
    /// The numbers are from the beginning: there is one sample only.
    is_first: bool,
    /// Which of the tables.
    at: usize,
    /// The row of it that is looked into, by its name.
    inside: Option<String>,
    /// The row at the cursor; a name, so that it stays where others move.
    selected: Option<String>,
    /// Rows above the first one shown.
    scrolled: usize,
    page_rows: usize,
    sort: Option<Sort>,
    filter: String,
    is_typing: bool,
    is_paused: bool,
    is_help: bool,
    /// Files that were passed over, and the like.
    problems: Vec<String>,
}

/// By which column rows are in order; the first is their name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Sort {
    column: usize,
    is_descending: bool,
}

impl State {
    pub fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), is_first: true, page_rows: PAGE_ROWS, ..Self::default() }
    }

    /// A new sample. The first one counts from the beginning, and is no part of the history.
    pub fn update(&mut self, tables: Vec<Table>, time: &str, problems: Vec<String>) {
        let is_first = self.tables.is_empty();
        if !is_first {
            self.history.add(&tables);
        }
        if self.is_paused {
            return;
        }
        (self.is_first, self.time) = (is_first, time.to_owned());
        (self.tables, self.problems) = (tables, problems);
        self.at = self.at.min(self.tables.len().saturating_sub(1));
        self.keep_selection();
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Key) -> Next {
        if self.is_typing {
            self.filter_key(key);
            return Next::GoOn;
        }
        if self.is_help {
            self.is_help = false;
            return if key == Key::Char('q') { Next::Quit } else { Next::GoOn };
        }
        match key {
            Key::Char('q') => return Next::Quit,
            Key::Char('h' | '?') => self.is_help = true,
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('/') => self.is_typing = true,
            Key::Char('r') => self.reverse(),
            Key::Char('s') | Key::Right => self.sort_by(1),
            Key::Char('S') | Key::Left => self.sort_by(-1),
            Key::Tab => self.other_table(),
            Key::Enter => self.look_inside(),
            Key::Escape | Key::Backspace => self.go_back(),
            Key::Up | Key::Char('k') => self.move_by(-1),
            Key::Down | Key::Char('j') => self.move_by(1),
            Key::PageUp => self.move_by(-(self.page_rows.cast_signed())),
            Key::PageDown => self.move_by(self.page_rows.cast_signed()),
            Key::Home => self.move_by(isize::MIN),
            Key::End => self.move_by(isize::MAX),
            Key::Char(_) => {}
        }
        Next::GoOn
    }

    fn filter_key(&mut self, key: Key) {
        match key {
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            Key::Backspace => drop(self.filter.pop()),
            Key::Char(letter) if self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(letter);
            }
            _ => {}
        }
        self.keep_selection();
    }

    /// The table that is looked at.
    fn table(&self) -> Option<&Table> {
        let table = self.tables.get(self.at)?;
        let Some(inside) = &self.inside else { return Some(table) };
        table.rows.iter().find(|row| row.name == *inside)?.below.as_deref()
    }

    /// Its rows that pass the filter, in order. A sum is first.
    fn rows(&self) -> Vec<&Row> {
        let Some(table) = self.table() else { return Vec::new() };
        let wanted = self.filter.to_lowercase();
        let passes = |row: &&Row| row.is_sum || row.name.to_lowercase().contains(&wanted);
        let mut rows: Vec<&Row> = table.rows.iter().filter(passes).collect();
        let sort = self.order();
        rows.sort_by(|a, b| {
            let by_name = a.name.cmp(&b.name);
            let order = match sort.column.checked_sub(1) {
                None => by_name,
                // What is not known is last either way, as the least.
                Some(at) => cell(a, at).total_cmp(&cell(b, at)).then(by_name.reverse()),
            };
            let order = if sort.is_descending { order.reverse() } else { order };
            b.is_sum.cmp(&a.is_sum).then(order)
        });
        rows
    }

    fn order(&self) -> Sort {
        self.sort.unwrap_or(Sort { column: 1, is_descending: true })
    }

    fn sort_by(&mut self, step: isize) {
        let columns = self.table().map_or(1, |table| table.columns.len()).max(1);
        let column =
            (self.order().column.min(columns - 1) + columns).wrapping_add_signed(step) % columns;
        self.sort = Some(Sort { column, is_descending: column > 0 });
    }

    fn reverse(&mut self) {
        let order = self.order();
        self.sort = Some(Sort { is_descending: !order.is_descending, ..order });
    }

    fn other_table(&mut self) {
        self.at = (self.at + 1) % self.tables.len().max(1);
        self.show_from_top(None);
    }

    /// The first rows of a table, or of the one below a row.
    fn show_from_top(&mut self, inside: Option<String>) {
        (self.inside, self.selected, self.sort, self.scrolled) = (inside, None, None, 0);
        self.keep_selection();
    }

    fn look_inside(&mut self) {
        let selected = self.selected_row().filter(|row| row.below.is_some());
        if let Some(name) = selected.map(|row| row.name.clone()) {
            self.filter.clear();
            self.show_from_top(Some(name));
        }
    }

    /// Out of a row, or of a filter.
    fn go_back(&mut self) {
        match self.inside.take() {
            Some(name) => (self.selected, self.sort) = (Some(name), None),
            None => self.filter.clear(),
        }
        self.keep_selection();
    }

    fn selected_row(&self) -> Option<&Row> {
        let rows = self.rows();
        let name = self.selected.as_ref()?;
        rows.into_iter().find(|row| row.name == *name)
    }

    fn move_by(&mut self, step: isize) {
        let rows = self.rows();
        let Some(last) = rows.len().checked_sub(1) else { return };
        let now = rows.iter().position(|row| Some(&row.name) == self.selected.as_ref());
        let to = now.unwrap_or(0).saturating_add_signed(step).min(last);
        self.selected = Some(rows[to].name.clone());
    }

    /// A row that is gone leaves the cursor to the first; a mount that is gone, its table.
    fn keep_selection(&mut self) {
        if self.inside.is_some() && self.table().is_none() {
            self.inside = None;
        }
        if self.selected_row().is_none() {
            self.selected = self.rows().first().map(|row| row.name.clone());
        }
    }
}

fn cell(row: &Row, at: usize) -> f64 {
    let value = row.cells.get(at).copied().flatten();
    value.filter(|value| !value.is_nan()).unwrap_or(f64::NEG_INFINITY)
}

#[cfg(test)]
mod tests;
