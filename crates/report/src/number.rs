//! Numbers as a reader wants them: three significant digits, a dash for what is not known.

use perf::stats::Interval;

/// `0.0123`, `4.56`, `78.9`, `1234`, `5.6e15`; `–` for what is not finite.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return UNKNOWN.into();
    }
    let places = match size {
        0.0 => return "0".into(),
        _ if !(1e-3..1e9).contains(&size) => return format!("{value:.2e}"),
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.places$}")
}

/// A number on an axis: without digits that say nothing, `0.5` rather than `0.500`.
pub(super) fn tick(value: f64) -> String {
    let text = number(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

pub(super) fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), number)
}

/// A number of things that were counted.
pub(super) fn count(value: Option<u64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), |count| count.to_string())
}

/// `1.2 to 3.4`.
pub(super) fn interval(value: Option<Interval>) -> String {
    value.map_or_else(
        || UNKNOWN.into(),
        |ends| format!("{} to {}", number(ends.lo), number(ends.hi)),
    )
}

/// One line of at most `width` characters.
pub(super) fn clipped(text: &str, width: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Every text once, in order of appearance.
pub(super) fn distinct<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for text in texts {
        if !distinct.contains(&text) {
            distinct.push(text);
        }
    }
    distinct
}

/// A difference in percent with its sign: `+2.4 %`, `-0.3 %`, `+310 %`.
pub(super) fn percent(value: Option<f64>) -> String {
    match value.filter(|v| v.is_finite()) {
        None => UNKNOWN.into(),
        Some(v) if v.abs() >= 1e6 => format!("{v:+.1e} %"),
        Some(v) if v.abs() >= 99.95 => format!("{v:+.0} %"),
        Some(v) if v.abs() < 0.05 => "0.0 %".into(),
        Some(v) => format!("{v:+.1} %"),
    }
}

/// Text in which no line breaks between a number and its unit.
pub(super) fn tied(text: &str) -> String {
    ["%", "MiB/s", "MiB", "KiB", "ms", "µs", "us"].iter().fold(text.into(), |text: String, unit| {
        text.replace(&format!(" {unit}"), &format!("\u{a0}{unit}"))
    })
}

/// Stands where a number is not known.
pub(super) const UNKNOWN: &str = "–";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_that_count() {
        let cases = [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (0.999_9, "1.00"),
            (4.561, "4.56"),
            (99.99, "100"),
            (-1234.4, "-1234"),
            (5.6e15, "5.60e15"),
            (1e-9, "1.00e-9"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!((tick(0.5), tick(20.0), tick(100.0)), ("0.5".into(), "20".into(), "100".into()));
    }

    #[test]
    fn differences_carry_their_sign() {
        let texts = [2.44, -0.31, 310.2, 0.01, -0.01, f64::NAN].map(|v| percent(Some(v)));
        assert_eq!(texts, ["+2.4 %", "-0.3 %", "+310 %", "0.0 %", "0.0 %", "–"]);
        assert_eq!(percent(None), "–");
    }
}
