//! The few words of CSV (RFC 4180) that our own tables use: fields in quotes, and columns by name.

/// The fields of a line.
pub(super) fn fields(line: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let (mut field, mut is_quoted) = (String::new(), false);
    let mut chars = line.trim_end_matches('\r').chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

/// Where each of the columns stands in a heading.
pub(super) fn columns<const N: usize>(
    heading: &str,
    names: [&'static str; N],
) -> Result<[usize; N], String> {
    let found = fields(heading);
    let mut at = [0; N];
    for (at, name) in at.iter_mut().zip(names) {
        let place = found.iter().position(|field| field == name);
        *at = place.ok_or_else(|| format!("row 1: there is no column {name:?}"))?;
    }
    Ok(at)
}

/// Those of the columns of a line.
pub(super) fn picked<const N: usize>(
    row: usize,
    line: &str,
    columns: [usize; N],
) -> Result<[String; N], String> {
    let mut fields = fields(line);
    let got = fields.len();
    let most = columns.iter().copied().max().unwrap_or(0);
    if most >= got {
        return Err(format!("row {row}: at least {} fields are needed, got {got}", most + 1));
    }
    Ok(columns.map(|column| std::mem::take(&mut fields[column])))
}

/// A number, or what it is instead.
pub(super) fn number(row: usize, name: &str, text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().parse().ok();
    number.ok_or_else(|| {
        let text: String = text.chars().take(30).collect();
        format!("row {row}: {name} is {text:?}: it has to be a number")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_with_their_quotes() {
        assert_eq!(fields("a,\"b,\"\"c\"\"\",,d\r"), ["a", "b,\"c\"", "", "d"]);
        assert_eq!(columns("x,y,z", ["z", "x"]), Ok([2, 0]));
        assert_eq!(columns("x,y", ["z"]).unwrap_err(), "row 1: there is no column \"z\"");
        let said = picked(7, "1,2", [2]).unwrap_err();
        assert_eq!(said, "row 7: at least 3 fields are needed, got 2");
        let said = number(3, "load", "fast").unwrap_err();
        assert_eq!(said, "row 3: load is \"fast\": it has to be a number");
    }
}
