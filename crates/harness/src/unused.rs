//! Options that would have no effect: refused, as whoever gives one expects something of it.

use crate::exit::Failure;

/// Fails if one of `options` is given, which all belong to `what`.
///
/// # Errors
/// Usage, with the first that is given.
pub fn refuse<'a>(
    options: impl IntoIterator<Item = (bool, &'a str)>,
    what: &str,
) -> Result<(), Failure> {
    let given = options.into_iter().find(|(is_given, _)| *is_given);
    given.map_or(Ok(()), |(_, option)| {
        Err(Failure::usage(format!("{option} is of {what}"), format!("{what}, or no {option}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_option_that_is_given_is_refused_and_none_is_not() {
        let failure =
            refuse([(false, "--a"), (true, "--b"), (true, "--c")], "a curve").unwrap_err();
        assert_eq!((failure.what(), failure.advice()), ("--b is of a curve", "a curve, or no --b"));
        assert!(refuse([(false, "--a")], "a curve").is_ok());
    }
}
