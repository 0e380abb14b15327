//! Command lines that can be pasted into a shell.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The command line of this process.
pub fn own() -> String {
    line(std::env::args_os())
}

/// Words as a shell takes them apart again.
pub fn line(words: impl IntoIterator<Item = OsString>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quoted(&word)).collect();
    words.join(" ")
}

/// One word. As it is where no character means anything to a shell; else in single quotes, or,
/// where it could not be printed in them, as bash, zsh and ksh take it (`$'\\x07'`).
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(|byte| is_plain(&byte)) => {
            text.to_owned()
        }
        Some(text) if !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => {
            let escaped = word.as_bytes().iter().map(|byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                other => format!("\\x{other:02x}"),
            });
            format!("$'{}'", escaped.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const WORDS: [&[u8]; 12] = [
        b"nfskit",
        b"--target",
        b"nfs://h/x?version=3&proto=tcp",
        b"/mnt/my files",
        b"it's",
        b"",
        b"$HOME `id` \"x\" !1 #",
        b"~",
        b"*;|<>()",
        "L\u{e4}nge".as_bytes(),
        b"lan-1g,L=5ms",
        b"back\\slash",
    ];

    #[test]
    fn plain_words_stay_as_they_are() {
        assert_eq!(quoted("nfs://h/x"), "nfs://h/x");
        assert_eq!(quoted("lan-1g,L=5ms"), "lan-1g,L=5ms");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("nfs://h/x?a=1&b=2"), "'nfs://h/x?a=1&b=2'");
        assert_eq!(quoted("a\nb'"), r"$'a\x0ab\''");
        assert_eq!(quoted(OsStr::from_bytes(b"\xff")), r"$'\xff'");
    }

    #[test]
    fn a_shell_takes_the_same_words_apart_again() {
        let words = WORDS.map(|word| OsStr::from_bytes(word).to_owned());
        let script = format!("printf '%s\\0' {}", line(words));
        let printed = Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
        let seen: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
        assert_eq!(seen[..WORDS.len()], WORDS);
    }
}
