//! The parts that every plot has: title, legend, drawing, caption, and the numbers as a table.

use maud::{Markup, html};

use super::canvas::{Ink, Shape};
use super::number::tied;

/// One plot with everything that belongs to it.
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) legend: Vec<Key>,
    pub(super) drawing: Markup,
    /// What to see, in a sentence or two.
    pub(super) caption: String,
    pub(super) table: Table,
}

/// One entry of a legend.
pub(super) struct Key {
    pub(super) swatch: Swatch,
    pub(super) text: String,
}

/// The little picture in front of a legend's text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Swatch {
    Area(Ink),
    Dashes(Ink),
    Line(Ink),
    /// The marker of a configuration.
    Marker(usize),
    /// The diamond of a measured sum.
    Diamond,
    /// An entry that explains something which is not drawn.
    Nothing,
}

/// Numbers beneath a plot. The first column is text, the others are numbers.
#[derive(Default)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Figure {
    pub(super) fn render(&self) -> Markup {
        html! {
            figure {
                h3 { (self.title) }
                @if !self.legend.is_empty() {
                    ul.legend {
                        @for key in &self.legend { li { (key.swatch.render()) (key.text) } }
                    }
                }
                div.plot { (self.drawing) }
                figcaption { (tied(&self.caption)) }
                details {
                    summary { "The numbers" }
                    (self.table.render())
                }
            }
        }
    }
}

impl Key {
    pub(super) fn new(swatch: Swatch, text: impl Into<String>) -> Self {
        Self { swatch, text: text.into() }
    }
}

impl Swatch {
    fn render(self) -> Markup {
        let shape = match self {
            Self::Area(ink) => html! {
                rect x="2" y="2" width="18" height="12" rx="2" fill=(ink.css()) {}
            },
            Self::Dashes(ink) => html! {
                path d="M1 8h5m3 0h5m3 0h4" stroke=(ink.css()) stroke-width="2" {}
            },
            Self::Line(ink) => html! {
                path d="M1 8h20" stroke=(ink.css()) stroke-width="2" {}
            },
            Self::Marker(index) => {
                let outline = match Shape::of(index) {
                    Shape::Circle => "M7 8a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
                    Shape::Square => "M7 4h8v8h-8z",
                    Shape::Triangle => "M11 2l5 10h-10z",
                };
                let colour = Ink::Series(index).css();
                html! { path d=(outline) fill=(colour) {} }
            }
            Self::Diamond => html! { path d="M11 2l5 6l-5 6l-5 -6z" fill=(Ink::Text.css()) {} },
            Self::Nothing => return html! {},
        };
        html! { svg.swatch viewBox="0 0 22 16" aria-hidden="true" { (shape) } }
    }
}

impl Table {
    pub(super) fn new<const N: usize>(columns: [&str; N]) -> Self {
        Self { columns: columns.map(String::from).into(), rows: Vec::new() }
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(super) fn render(&self) -> Markup {
        let classes: Vec<Option<&str>> =
            (0..self.columns.len()).map(|index| self.class(index)).collect();
        let class = |index: usize| classes.get(index).copied().flatten();
        html! {
            div.table { table {
                thead { tr {
                    @for (index, column) in self.columns.iter().enumerate() {
                        th scope="col" class=[class(index)] { (column) }
                    }
                } }
                tbody {
                    @for row in &self.rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                @if index == 0 {
                                    th scope="row" { (cell) }
                                } @else {
                                    td class=[class(index)] { (cell) }
                                }
                            }
                        }
                    }
                }
            } }
        }
    }

    /// Words stand at the left, and sentences in lines; numbers have no class.
    fn class(&self, column: usize) -> Option<&'static str> {
        /// What is longer is a sentence.
        const WORD_LEN_MAX: usize = 24;
        let cells = || self.rows.iter().filter_map(move |row| row.get(column));
        let has_words = |cell: &String| cell.starts_with(|first: char| first.is_alphabetic());
        let is_text = column > 0 && cells().any(has_words);
        let is_long = cells().any(|cell| cell.chars().count() > WORD_LEN_MAX);
        is_text.then_some(if is_long { "prose" } else { "word" })
    }
}
