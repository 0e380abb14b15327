//! What others have named, as it may stand on a terminal and in a log: a name is bytes, and among
//! them may be sequences that a terminal obeys, and the end of a line with another one behind it.

/// A name as text of one line.
pub fn printable(name: impl AsRef<[u8]>) -> String {
    let text = String::from_utf8_lossy(name.as_ref());
    escaped(&text, |char| char.is_control() || char == '\\')
}

/// A sentence with names in it, as text of one line.
pub fn in_one_line(sentence: &str) -> String {
    escaped(sentence, char::is_control)
}

/// Lines of ours with names in them: no terminal obeys what is in a name.
pub fn in_lines(text: &str) -> String {
    escaped(text, |char| char.is_control() && !matches!(char, '\n' | '\t'))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match is_escaped(char) {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_makes_a_line_or_is_obeyed_by_a_terminal() {
        assert_eq!(printable("plain, \u{fc}ml\u{e4}ut"), "plain, \u{fc}ml\u{e4}ut");
        assert_eq!(printable(b"a\nCONFLICT: \x1b[31mb\\"), "a\\nCONFLICT: \\u{1b}[31mb\\\\");
        assert_eq!(printable("\u{9b}2J\r\x7f"), "\\u{9b}2J\\r\\u{7f}");
        assert_eq!(in_one_line("a\\b: c\nd"), "a\\b: c\\nd");
        assert_eq!(in_lines("a\tb\nc\x07\r"), "a\tb\nc\\u{7}\\r");
    }
}
