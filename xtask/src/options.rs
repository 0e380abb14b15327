//! The arguments of a command, which clap reads.

use clap::Parser;

/// Reads the words behind the command's name.
///
/// # Errors
/// What is wrong with them, and how they are written.
pub(crate) fn parse<T: Parser>(words: &[&str]) -> Result<T, String> {
    let command = T::command();
    let words = [command.get_name()].into_iter().chain(words.iter().copied());
    T::try_parse_from(words).map_err(|error| match error.use_stderr() {
        true => error.to_string(),
        // The help that was requested.
        false => error.exit(),
    })
}

/// One of those that have a name.
///
/// # Errors
/// None is called `name`; those that there are.
pub(crate) fn find<T: Copy>(
    name: &str,
    all: impl IntoIterator<Item = (&'static str, T)>,
) -> Result<T, String> {
    let mut names = Vec::new();
    for (one, found) in all {
        if one == name {
            return Ok(found);
        }
        names.push(one);
    }
    Err(format!("there are {}", names.join(", ")))
}
