//! Our own tables, read back: rows by the numbers of their lines, columns by their names.

use ::csv::{ReaderBuilder, StringRecord};

/// A row, and the number of its line.
pub(super) type Row = (usize, StringRecord);

/// The rows of a text, of which the first is the heading. Empty lines are none.
pub(super) fn rows(text: &str) -> impl Iterator<Item = Result<Row, String>> {
    let bytes = text.as_bytes();
    let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let (mut line, mut counted) = (1, 0);
    let rows = reader.into_records().map(move |record| {
        let record = record.map_err(|error| error.to_string())?;
        // A row's position is where the one before it ended: ends of empty lines come first.
        let ended = record.position().and_then(|at| usize::try_from(at.byte()).ok());
        let ended = ended.unwrap_or(counted);
        let ends = bytes[ended..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let begun = ended + ends;
        line += bytes[counted..begun].iter().filter(|byte| **byte == b'\n').count();
        counted = begun;
        Ok((line, record))
    });
    let is_empty = |(_, row): &Row| row.iter().all(|field| field.trim().is_empty());
    rows.filter(move |row| !row.as_ref().is_ok_and(is_empty))
}

/// Where each of the columns stands in a heading.
pub(super) fn columns<const N: usize>(
    heading: Option<Result<Row, String>>,
    names: [&'static str; N],
) -> Result<[usize; N], String> {
    let (_, heading) = heading.transpose()?.unwrap_or_default();
    let mut at = [0; N];
    for (at, name) in at.iter_mut().zip(names) {
        let place = heading.iter().position(|field| field == name);
        *at = place.ok_or_else(|| format!("row 1: there is no column {name:?}"))?;
    }
    Ok(at)
}

/// Those of the columns of a row.
pub(super) fn picked<const N: usize>(
    (row, fields): &Row,
    columns: [usize; N],
) -> Result<[&str; N], String> {
    let most = columns.iter().copied().max().unwrap_or(0);
    match fields.len() {
        got if most >= got => {
            Err(format!("row {row}: at least {} fields are needed, got {got}", most + 1))
        }
        _ => Ok(columns.map(|column| &fields[column])),
    }
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
        let mut read = rows("x,y,z\na,\"b,\"\"c\"\"\",\r\n\n1,2\n");
        assert_eq!(columns(read.next(), ["z", "x"]), Ok([2, 0]));
        let first = read.next().unwrap().unwrap();
        assert_eq!(picked(&first, [1, 2]), Ok(["b,\"c\"", ""]));
        let short = read.next().unwrap().unwrap();
        let error = picked(&short, [2]).unwrap_err();
        assert_eq!(error, "row 4: at least 3 fields are needed, got 2");
        assert!(read.next().is_none());
        for text in ["x,y", ""] {
            let error = columns(rows(text).next(), ["z"]).unwrap_err();
            assert_eq!(error, "row 1: there is no column \"z\"");
        }
        let error = number(3, "load", "fast").unwrap_err();
        assert_eq!(error, "row 3: load is \"fast\": it has to be a number");
    }
}
