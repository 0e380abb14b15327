//! The keys of a `Cargo.toml`, with their lines.
//!
//! Cargo has already checked that the file is TOML. We need which keys stand under which header
//! and on which line, and read just that: one key a line, values that may run on in brackets.

use super::source::numbered;

/// One `key = value` under its header.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Entry<'a> {
    /// The header, without its brackets: `workspace.dependencies`.
    pub(super) section: &'a str,
    /// The first word of the key: `wire` of `wire.workspace = true`.
    pub(super) key: &'a str,
    /// The rest of the line, which may be the beginning of a longer value.
    pub(super) value: &'a str,
    pub(super) line: usize,
}

/// Whether a section lists what the crate is built from (tests are not part of the crate).
pub(super) fn is_dependencies(section: &str) -> bool {
    section == "dependencies"
        || section == "build-dependencies"
        || section.starts_with("target.") && section.ends_with(".dependencies")
}

/// All entries in their order. `[dependencies.wire]` is an entry `wire` of `dependencies`.
pub(super) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut section = "";
    let mut depth = 0;
    for (line, content) in numbered(text) {
        let content = content.trim();
        if depth == 0 && content.starts_with('[') {
            section = content.split('#').next().unwrap_or("").trim().trim_matches(['[', ']']);
            if let Some((parent, key)) = section.rsplit_once('.')
                && parent.ends_with("dependencies")
            {
                let value = "";
                entries.push(Entry { section: parent, key, value, line });
            }
            continue;
        }
        if depth == 0
            && !content.starts_with('#')
            && let Some(at) = content.find(['=', '.'])
        {
            let (key, value) = (content[..at].trim().trim_matches('"'), &content[at + 1..]);
            entries.push(Entry { section, key, value: value.trim(), line });
        }
        depth += opened(content);
    }
    entries
}

/// How many brackets a line leaves open; negative when it closes some.
fn opened(line: &str) -> i32 {
    let mut quoted = false;
    let mut depth = 0;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '#' => break,
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    depth
}

/// The text between the first pair of double quotes in a value.
pub(super) fn first_string(value: &str) -> Option<&str> {
    value.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_with_their_header_and_line() {
        let text = "[package]\nname = \"x\"\n\n[dependencies]\nwire.workspace = true\n\
                    url = { version = \"2\", features = [\n  \"serde\",\n] } # why\nbytes = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n[dependencies.perf]\npath = \"..\"";
        let entries = entries(text);
        let found: Vec<_> = entries.iter().map(|e| (e.section, e.key, e.line)).collect();
        let expected = [
            ("package", "name", 2),
            ("dependencies", "wire", 5),
            ("dependencies", "url", 6),
            ("dependencies", "bytes", 9),
            ("target.'cfg(unix)'.dependencies", "libc", 11),
            ("dependencies", "perf", 12),
            ("dependencies.perf", "path", 13),
        ];
        assert_eq!(found, expected);
        assert_eq!(entries[1].value, "workspace = true");
        assert_eq!(first_string(entries[0].value), Some("x"));
    }
}
