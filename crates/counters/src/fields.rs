//! Lines and their words, with their places.

use super::problem::{Found, Problem, Wrong};

/// A word, and the column at which it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) text: &'a str,
}

impl Word<'_> {
    pub(super) fn wrong(&self, wrong: Wrong) -> Problem {
        Problem { line: self.line, column: self.column, wrong }
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
    /// Of the first character of `rest`.
    column: usize,
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// The lines of a text, with their numbers.
    pub(super) fn all(text: &'a str) -> impl Iterator<Item = Line<'a>> {
        text.lines().zip(1..).map(|(rest, number)| Line { number, column: 1, rest })
    }

    /// What is left of it.
    pub(super) fn whole(&self) -> &'a str {
        self.rest
    }

    /// What is left of it, without blanks around.
    pub(super) fn trimmed(&self) -> &'a str {
        self.rest.trim()
    }

    /// The next word; an empty one at the line's end.
    pub(super) fn word(&mut self) -> Word<'a> {
        let begin = self.rest.len() - self.rest.trim_start().len();
        self.skip(begin);
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (text, column) = (&self.rest[..end], self.column);
        self.skip(end);
        Word { line: self.number, column, text }
    }

    /// The next word if there is one.
    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        let word = self.word();
        (!word.text.is_empty()).then_some(word)
    }

    /// The number that comes next.
    pub(super) fn number(&mut self) -> Result<u64, Problem> {
        self.word().number()
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
        if numbers.len() < min {
            let what = Found::word(what);
            let what = if let Found::Word(word) = what { word } else { String::new() };
            let found = numbers.len();
            return Err(self.word().wrong(Wrong::TooFew { what, expected: min, found }));
        }
        Ok(numbers)
    }

    /// Up to behind the first of such characters, if there is one.
    pub(super) fn skip_past(&mut self, character: char) {
        if let Some(at) = self.rest.find(character) {
            self.skip(at + character.len_utf8());
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.column += self.rest[..bytes].chars().count();
        self.rest = &self.rest[bytes..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_columns_in_characters() {
        let mut line = Line::all("x\n  für\t-1 18446744073709551615").nth(1).unwrap();
        let word = line.word();
        assert_eq!((word.line, word.column, word.text), (2, 3, "für"));
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
