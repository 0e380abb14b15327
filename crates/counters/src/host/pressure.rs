//! `/proc/pressure/*`: the time in which somebody, or everybody, could not go on for want of
//! processors, memory or disks.

use super::nothing;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::bounded;

/// One resource: shares in percent over the last ten seconds, and all time in us.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    pub some_10s: f64,
    pub full_10s: f64,
    pub some_us: u64,
    pub full_us: u64,
}

/// Reads the file's content.
///
/// # Errors
/// The first value that is no number, or no line `some` or `full`.
pub fn read(text: &[u8]) -> Result<Pressure, Problem> {
    let text = String::from_utf8_lossy(text);
    let (mut pressure, mut has_lines) = (Pressure::default(), false);
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let is_full = match line.word().text {
            "some" => false,
            "full" => true,
            _ => continue,
        };
        has_lines = true;
        while let Some(word) = line.next() {
            let Some((name, value)) = word.text.split_once('=') else { continue };
            let number = value.parse().ok().filter(|number: &f64| number.is_finite());
            let number = number.ok_or_else(|| word.unexpected("a number"));
            match (name, is_full) {
                ("avg10", false) => pressure.some_10s = number?,
                ("avg10", true) => pressure.full_10s = number?,
                ("total", false) => {
                    pressure.some_us = value.parse().map_err(|_| word.unexpected("a number"))?
                }
                ("total", true) => {
                    pressure.full_us = value.parse().map_err(|_| word.unexpected("a number"))?
                }
                _ => {}
            }
        }
    }
    if has_lines { Ok(pressure) } else { Err(nothing()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_read() {
        let pressure = read(
            b"some avg10=1.53 avg60=0.87 avg300=0.79 total=34999\n\
              full avg10=0.25 avg60=0.00 avg300=0.00 total=99\n",
        )
        .unwrap();
        assert_eq!((pressure.some_10s, pressure.full_us), (1.53, 99));
        assert!(read(b"some avg10=nan total=1").is_err() && read(b"x").is_err());
    }
}
