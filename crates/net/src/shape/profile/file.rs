//! A link in a file:
//!
//! ```toml
//! base = "lan-1g"            # begin with this: a name or LATENCY/RATE; default: none
//! o = "50us"                 # keys and values as on the command line
//! seed = 7
//! mtu = 1500                 # outside the tables: both directions
//!
//! [there]                    # from the end that reads this file to the other
//! L = "5ms"
//! loss = "1%"
//! stall = ["10s:500ms:60s"]  # several partitions or stalls are a list
//!
//! [back]
//! L = "20ms"
//! G = "1.25MB/s"
//! ```

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Cause, ProfileError};
use super::keys::Reading;
use super::{Profile, based_on};

/// A file may have this many bytes: no link takes so many words.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Reads a file.
pub(super) fn read(path: &str) -> Result<Reading, ProfileError> {
    let unreadable = |why: String| ProfileError::of(Cause::Unreadable { why }).within(path);
    let mut text = String::new();
    // Opening a FIFO would wait for its writer: a relay reads profiles while it relays.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|cause| unreadable(cause.to_string()))?;
    if file.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(unreadable("a directory, device, pipe or socket, not a file".to_owned()));
    }
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|cause| unreadable(cause.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(format!("more than {FILE_BYTES_MAX} bytes are no link")));
    }
    // What cannot be is found here, and not after the changes, so that it has its line.
    let reading = parse(&text).map_err(|error| error.within(path))?;
    reading.check().map_err(|error| error.within(path))?;
    Ok(reading)
}

/// Reads a file's text.
pub(super) fn parse(text: &str) -> Result<Reading, ProfileError> {
    let table = DeTable::parse(text).map_err(|error| {
        let why = error.message().to_owned();
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        ProfileError::of(Cause::Toml { why }).at(line)
    })?;
    let table = table.into_inner();
    let base = match table.iter().find(|(key, _)| key.get_ref() == "base") {
        None => Profile::none(),
        Some((key, value)) => {
            let line = line_of(text, key.span().start);
            let base = word("base", value).map_err(|error| error.at(line))?;
            based_on(&base).map_err(|error| error.at(line))?
        }
    };
    let mut file = Text { text, reading: Reading::new(base) };
    // What is for both directions comes before what is for one.
    let (tables, keys): (Vec<_>, Vec<_>) =
        table.iter().partition(|(_, value)| matches!(value.get_ref(), DeValue::Table(_)));
    for (key, value) in keys {
        if key.get_ref() != "base" {
            file.set(key.get_ref(), key, value)?;
        }
    }
    for (name, value) in tables {
        let DeValue::Table(table) = value.get_ref() else { continue };
        if !["there", "back", "o"].contains(&&**name.get_ref()) {
            let unknown = Cause::UnknownKey { key: name.get_ref().to_string() };
            return Err(ProfileError::of(unknown).at(line_of(text, name.span().start)));
        }
        for (key, value) in table {
            file.set(&format!("{}.{}", name.get_ref(), key.get_ref()), key, value)?;
        }
    }
    Ok(file.reading)
}

struct Text<'t> {
    text: &'t str,
    reading: Reading,
}

impl Text<'_> {
    fn set(
        &mut self,
        name: &str,
        key: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ProfileError> {
        let line = line_of(self.text, key.span().start);
        let mut set_one = |line: usize, value: &Spanned<DeValue<'_>>| {
            self.reading.line = Some(line);
            let value = word(name, value)?;
            self.reading.set(name, &value)
        };
        let outcome = match value.get_ref() {
            DeValue::Array(all) if name.ends_with("partition") || name.ends_with("stall") => {
                all.iter().try_for_each(|value| set_one(line, value))
            }
            _ => set_one(line, value),
        };
        outcome.map_err(|error| error.at(line))
    }
}

/// A value as it would be on the command line.
fn word(key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, ProfileError> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        other => {
            let got = format!("a {}", other.type_str());
            let why = "a text or a number is wanted".to_owned();
            Err(ProfileError::of(Cause::Value { key: key.to_owned(), got, why }))
        }
    }
}

/// Counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}
