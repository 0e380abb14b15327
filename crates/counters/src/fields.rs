//! Lines and their words, with their places.

use std::iter;

use super::problem::{Found, Problem, Wrong};

/// A word, and where it is in its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) line: usize,
    whole: &'a str,
    /// Bytes before it.
    at: usize,
    pub(super) text: &'a str,
}

impl<'a> Word<'a> {
    /// The same place, with a part of its text.
    pub(super) fn named(self, text: &'a str) -> Self {
        Self { text, ..self }
    }

    pub(super) fn wrong(&self, wrong: Wrong) -> Problem {
        // Counted here only: most words are right.
        let column = self.whole[..self.at].chars().count() + 1;
        Problem { line: self.line, column, wrong }
    }

    /// What was expected instead of it.
    pub(super) fn unexpected(&self, expected: &'static str) -> Problem {
        let found = if self.text.is_empty() { Found::End } else { Found::word(self.text) };
        self.wrong(Wrong::Unexpected { expected, found })
    }

    /// A counter. Kernels print some that have wrapped as negative ones.
    pub(super) fn number(&self) -> Result<u64, Problem> {
        let parsed = match self.text.strip_prefix('-') {
            Some(_) => self.text.parse::<i64>().map(i64::cast_unsigned),
            None => self.text.parse(),
        };
        parsed.map_err(|_| self.unexpected("a number"))
    }
}

/// One line, word by word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    all: &'a str,
    /// Bytes that have been read.
    at: usize,
}

impl<'a> Line<'a> {
    /// The lines of a text, with their numbers.
    pub(super) fn all(text: &'a str) -> impl Iterator<Item = Line<'a>> {
        text.lines().zip(1..).map(|(all, number)| Line { number, all, at: 0 })
    }

    /// What is left of it.
    pub(super) fn whole(&self) -> &'a str {
        &self.all[self.at..]
    }

    /// What is left of it, without blanks around.
    pub(super) fn trimmed(&self) -> &'a str {
        self.whole().trim()
    }

    /// The next word; an empty one at the line's end.
    pub(super) fn word(&mut self) -> Word<'a> {
        let rest = self.whole().as_bytes();
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let letters = rest[blanks..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        let at = self.at + blanks;
        self.at = at + letters;
        // Blanks are bytes of one character each: both ends are between characters.
        Word { line: self.number, whole: self.all, at, text: &self.all[at..self.at] }
    }

    /// The next word if there is one.
    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        let word = self.word();
        (!word.text.is_empty()).then_some(word)
    }

    /// All words up to the line's end.
    pub(super) fn words(mut self) -> impl Iterator<Item = Word<'a>> {
        iter::from_fn(move || self.next())
    }

    /// The number that comes next.
    pub(super) fn number(&mut self) -> Result<u64, Problem> {
        self.word().number()
    }

    /// The first numbers up to the line's end, of which there are at least `min` and at most
    /// `max`; zeros for those that are not there. And how many there were.
    pub(super) fn first<const N: usize>(
        &mut self,
        what: &str,
        min: usize,
        max: usize,
    ) -> Result<([u64; N], usize), Problem> {
        let (mut first, mut found) = ([0; N], 0);
        while let Some(word) = self.next() {
            if found == max {
                return Err(word.wrong(Wrong::TooMany { what: "numbers in a line", max }));
            }
            let number = word.number()?;
            if let Some(place) = first.get_mut(found) {
                *place = number;
            }
            found += 1;
        }
        if found < min { Err(self.too_few(what, min, found)) } else { Ok((first, found)) }
    }

    /// All numbers up to the line's end, of which there are at least `min` and at most `max`.
    pub(super) fn numbers(
        &mut self,
        what: &str,
        min: usize,
        max: usize,
    ) -> Result<Vec<u64>, Problem> {
        let mut numbers = Vec::new();
        while let Some(word) = self.next() {
            if numbers.len() == max {
                return Err(word.wrong(Wrong::TooMany { what: "numbers in a line", max }));
            }
            numbers.push(word.number()?);
        }
        match numbers.len() < min {
            true => Err(self.too_few(what, min, numbers.len())),
            false => Ok(numbers),
        }
    }

    fn too_few(&mut self, what: &str, expected: usize, found: usize) -> Problem {
        let what = Found::word(what);
        let what = if let Found::Word(word) = what { word } else { String::new() };
        self.word().wrong(Wrong::TooFew { what, expected, found })
    }

    /// What comes behind a text, wherever that stands in what is left.
    pub(super) fn behind(&self, text: &str) -> Option<Self> {
        let at = self.whole().find(text)?;
        Some(Self { at: self.at + at + text.len(), ..*self })
    }

    /// Up to behind the first of such characters, if there is one.
    pub(super) fn skip_past(&mut self, character: char) {
        if let Some(at) = self.whole().find(character) {
            self.at += at + character.len_utf8();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_columns_in_characters() {
        let mut line = Line::all("x\n  für\t-1 18446744073709551615").nth(1).unwrap();
        let word = line.word();
        let column = word.wrong(Wrong::Nothing).column;
        assert_eq!((word.line, column, word.text), (2, 3, "für"));
        assert_eq!(line.number(), Ok(u64::MAX));
        assert_eq!(line.number(), Ok(u64::MAX));
        let error = line.number().unwrap_err().to_string();
        assert_eq!(error, "line 2, column 30: the line's end where a number is expected");
    }

    #[test]
    fn a_list_of_numbers_has_bounds() {
        let of = |text| Line::all(text).next().unwrap().numbers("net", 2, 3);
        assert_eq!(of("1 2 3"), Ok(vec![1, 2, 3]));
        assert!(of("1").unwrap_err().to_string().contains("net has 1 numbers; at least 2"));
        assert!(
            of("1 2 3 4").unwrap_err().to_string().starts_with("line 1, column 7: more than 3")
        );
        assert!(of("1 x").unwrap_err().to_string().contains("column 3: \"x\" where a number"));
    }
}
