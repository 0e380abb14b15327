//! The picture: a heading, the table, what is known of the row at the cursor, and the keys.
//!
//! Any size is drawn, down to none: what has no room is left out from the bottom, columns from the
//! right.

use std::borrow::Cow;
use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline, Widget};

use super::State;
use crate::table::{Column, Kind, Row, Table, show};

/// Lines of what is known of one row, and from which height on there are any.
const DETAIL_LINES: u16 = 5;
const DETAIL_FROM: u16 = 18;

/// Lines of notes below a table, at most.
const NOTES_MAX: u16 = 6;

/// Letters of a name that columns leave to it.
const NAME_MIN: usize = 12;

const HELP: [&str; 15] = [
    "Up Down k j      choose a row            PgUp PgDn Home End  farther",
    "Enter            the operations of a mount; Esc or Backspace goes back",
    "Tab              the next table: mounts, server, clients, files",
    "Left Right S s   sort by another column    r   the other way round",
    "/                only names with ...; Enter keeps it, Esc ends it",
    "p, space         pause and go on           q   quit",
    "",
    "queue   ms from the making of a call until it is sent",
    "rtt     ms from there to its reply: network and server",
    "exec    ms of the whole call",
    "outst.  calls outstanding, on average (calls/s x rtt: Little's law)",
    "retrans transmissions beyond the first of a call",
    "B/s     bytes a second, with the headers of RPC; k, M, G are thousands",
    "-       not known, or no calls",
    "Any key goes back.",
];

impl State {
    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.is_empty() {
            return;
        }
        let lines = self.notes(area.width);
        let notes = u16::try_from(lines.len()).unwrap_or(NOTES_MAX).min(NOTES_MAX);
        let (details, notes) = match area.height {
            DETAIL_FROM.. => (DETAIL_LINES, notes),
            10.. => (0, notes.min(1)),
            _ => (0, 0),
        };
        let [heading, title, table, below, detail, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(0),
            Constraint::Length(notes),
            Constraint::Length(details),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Line::styled(self.heading(), reversed()), heading);
        if self.is_help {
            let lines: Vec<Line<'_>> = HELP.iter().map(|line| Line::raw(*line)).collect();
            frame.render_widget(Paragraph::new(lines), table.union(detail).union(below));
            return;
        }
        frame.render_widget(Line::styled(self.title(), bold()), title);
        self.draw_table(frame, table);
        frame.render_widget(Paragraph::new(lines), below);
        self.draw_detail(frame, detail);
        frame.render_widget(Line::raw(self.keys()), keys);
    }

    fn heading(&self) -> String {
        let paused = if self.is_paused { "  PAUSED" } else { "" };
        let first = if self.is_first { "  since the beginning" } else { "" };
        format!(" nfskit top  {}  {}{first}{paused}", self.host, self.time)
    }

    fn title(&self) -> String {
        let Some(table) = self.table() else {
            let problems = self.problems.join("; ");
            let why = match (problems.is_empty(), self.time.is_empty()) {
                (false, _) => &problems,
                (true, true) => "waiting for a sample",
                (true, false) => "no NFS mount here, and no server of the kernel's",
            };
            return format!(" nothing to show: {why}");
        };
        let of = match self.tables.len() {
            0 | 1 => String::new(),
            all => format!("[{} of {all}] ", self.at + 1),
        };
        let problems = match self.problems.len() {
            0 => String::new(),
            _ => format!("  ({})", self.problems.join("; ")),
        };
        format!(" {of}{}{problems}", table.title)
    }

    fn keys(&self) -> String {
        if self.is_typing {
            return format!(" names with: {}_", self.filter);
        }
        let filter = match self.filter.is_empty() {
            true => String::new(),
            false => format!("[names with {}]  ", self.filter),
        };
        format!(
            " {filter}q quit  h help  Enter details  Esc back  Tab table  s sort  / filter  p pause"
        )
    }

    fn draw_table(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let Some(table) = self.table() else { return };
        let visible = usize::from(area.height.saturating_sub(1));
        let rows = self.rows();
        let selected = rows.iter().position(|row| Some(&row.name) == self.selected.as_ref());
        let at = selected.unwrap_or(0);
        // The cursor stays inside of what is shown.
        let most = rows.len().saturating_sub(visible);
        let scrolled = self.scrolled.clamp((at + 1).saturating_sub(visible.max(1)), at).min(most);
        let columns = Columns::fitting(table, &rows, area.width);
        let mut lines = vec![Line::styled(columns.head(self.order().column), bold())];
        for (number, row) in rows.iter().enumerate().skip(scrolled).take(visible) {
            let style = if number == at { reversed() } else { Style::new() };
            lines.push(Line::styled(columns.line(row), style));
        }
        frame.render_widget(Paragraph::new(lines), area);
        (self.scrolled, self.page_rows) = (scrolled, visible.max(1));
    }

    /// The notes of the table, in lines of this width.
    fn notes(&self, width: u16) -> Vec<Line<'static>> {
        let notes = self.table().map_or(&[][..], |table| &table.notes);
        let mut lines = Vec::new();
        for note in notes {
            let mut line = String::new();
            for word in note.split_whitespace() {
                let letters = line.chars().count() + 1 + word.chars().count();
                if letters > usize::from(width) && !line.is_empty() {
                    lines.push(Line::raw(std::mem::replace(&mut line, String::from("  "))));
                }
                line.push(' ');
                line.push_str(word);
            }
            lines.push(Line::raw(line));
        }
        lines
    }

    /// History and shares of the row at the cursor.
    fn draw_detail(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(row) = self.selected_row().filter(|_| area.height == DETAIL_LINES) else { return };
        let [head, calls, ms, parts, _] =
            Layout::vertical([Constraint::Length(1); DETAIL_LINES as usize]).areas(area);
        let dashes =
            "-".repeat(usize::from(area.width).saturating_sub(row.name.chars().count() + 6));
        frame.render_widget(Line::raw(format!(" -- {} {dashes}", row.name)), head);
        let samples = self.history.of(self.at, self.inside.as_deref(), &row.name);
        if let Some(samples) = samples {
            let buffer = frame.buffer_mut();
            draw_history(buffer, calls, "calls/s", Kind::Number, &samples.calls_per_s);
            draw_history(buffer, ms, "ms", Kind::Ms, &samples.ms);
        }
        frame.render_widget(Line::raw(shares(&row.parts, parts.width)), parts);
    }
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// A line of history: what it is, the newest value, the largest, and all of them as a sparkline.
fn draw_history(buffer: &mut Buffer, area: Rect, name: &str, kind: Kind, values: &VecDeque<f64>) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let now = show(values.back().copied(), kind);
    let text = format!(" {name:<8}{now:>7}, most {:<8}", show(Some(most), kind));
    let [left, right] = Layout::horizontal([
        Constraint::Length(u16::try_from(text.len()).unwrap_or(u16::MAX)),
        Constraint::Min(0),
    ])
    .areas(area);
    Line::raw(text).render(left, buffer);
    let shown = values.iter().skip(values.len().saturating_sub(usize::from(right.width)));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
    let scaled = shown.map(|value| if most > 0.0 { (value / most * 1000.0) as u64 } else { 0 });
    Sparkline::default().data(scaled).max(1000).render(right, buffer);
}

/// Where the time of a call goes, as letters of a bar and in numbers.
fn shares(parts: &[(Cow<'static, str>, f64)], width: u16) -> String {
    let all: f64 = parts.iter().map(|(_, ms)| ms).sum();
    if parts.is_empty() || all <= 0.0 {
        return String::from(" time    no calls");
    }
    let text =
        parts.iter().map(|(name, ms)| format!("{name} {}", show(Some(ms / all), Kind::Share)));
    let text = text.collect::<Vec<_>>().join(", ");
    let room = usize::from(width).saturating_sub(text.chars().count() + 14).min(40);
    let mut bar = String::new();
    for (name, ms) in parts {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 40")]
        let letters = (ms / all * room as f64).round() as usize;
        let letter = name.chars().next().unwrap_or(' ');
        bar.extend(std::iter::repeat_n(letter, letters));
    }
    format!(" time    [{bar}] {text}")
}

/// The columns that have room.
struct Columns<'a> {
    /// Each with its width; the first takes what is left.
    each: Vec<(&'a Column, usize)>,
}

impl<'a> Columns<'a> {
    fn fitting(table: &'a Table, rows: &[&Row], width: u16) -> Self {
        let width = usize::from(width);
        let mut each = Vec::new();
        for (at, column) in table.columns.iter().enumerate().skip(1) {
            let cells = rows.iter().map(|row| row.shown(at, column.kind).len());
            each.push((column, cells.chain([column.name.len()]).max().unwrap_or(0)));
        }
        let needed = |each: &[(&Column, usize)]| -> usize {
            each.iter().map(|(_, width)| width + 1).sum::<usize>() + NAME_MIN + 1
        };
        while !each.is_empty() && needed(&each) > width {
            each.pop();
        }
        let others: usize = each.iter().map(|(_, width)| width + 1).sum();
        let first = table.columns.first().map(|name| (name, width.saturating_sub(others + 1)));
        Self { each: first.into_iter().chain(each).collect() }
    }

    /// Names of columns; the one that rows are sorted by is in capitals.
    fn head(&self, sorted: usize) -> String {
        let cells = self.each.iter().enumerate().map(|(at, (column, _))| {
            if at == sorted { column.name.to_uppercase() } else { column.name.to_owned() }
        });
        self.join(cells)
    }

    fn line(&self, row: &Row) -> String {
        let cells = self.each.iter().enumerate();
        self.join(cells.map(|(at, (column, _))| row.shown(at, column.kind)))
    }

    fn join(&self, cells: impl Iterator<Item = String>) -> String {
        let mut line = String::from(" ");
        for (at, (cell, (_, width))) in cells.zip(&self.each).enumerate() {
            let width = *width;
            match at {
                0 => line.push_str(&format!("{:<width$}", cut(&cell, width))),
                _ => line.push_str(&format!(" {cell:>width$}")),
            }
        }
        line
    }
}

/// The end of a name that is too long: of paths, that says more than the beginning.
fn cut(name: &str, width: usize) -> String {
    let letters = name.chars().count();
    if letters <= width {
        return name.to_owned();
    }
    let end = name.chars().skip(letters - width.saturating_sub(1));
    std::iter::once('~').chain(end).take(width).collect()
}
