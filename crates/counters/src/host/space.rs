//! What `df` prints: how full each file system is.

use super::nothing;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::bounded;

/// One file system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    pub device: String,
    pub point: String,
    /// Share of the room that a program may use, or of the inodes where it is `df -i`.
    pub used: f64,
    /// It is of inodes.
    pub is_of_inodes: bool,
}

/// Whether a text looks like it.
pub fn is_likely(text: &str) -> bool {
    text.lines().any(is_head)
}

fn is_head(line: &str) -> bool {
    line.trim_start().starts_with("Filesystem") && line.contains("Mounted on")
}

/// Reads the text. A long device may stand on a line of its own.
///
/// # Errors
/// The first line whose share is none, or no line.
pub fn read(text: &[u8]) -> Result<Vec<Space>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut all = Vec::new();
    let (mut is_of_inodes, mut is_below) = (false, false);
    let mut device: Option<&str> = None;
    for line in Line::all(&text) {
        bounded(&line)?;
        if is_head(line.whole()) {
            (is_below, is_of_inodes) = (true, line.whole().contains("IUse%"));
            continue;
        }
        let words: Vec<&str> = line.whole().split_whitespace().collect();
        let [first, rest @ ..] = &words[..] else { continue };
        if !is_below {
            continue;
        }
        if rest.is_empty() {
            device = Some(first);
            continue;
        }
        // Blanks in a mount point are its own: it is all that stands behind the share.
        let Some(at) = words.iter().position(|word| word.ends_with('%') || *word == "-") else {
            return Err(line.clone().word().unexpected("a line with a share (`42%`)"));
        };
        let joined = device.take();
        let of = joined.unwrap_or(first).to_owned();
        let point = words[at + 1..].join(" ");
        let percent: Option<f64> = words[at].trim_end_matches('%').parse().ok();
        let Some(percent) = percent.filter(|_| !point.is_empty()) else { continue };
        all.push(Space { device: of, point, used: percent / 100.0, is_of_inodes });
    }
    if all.is_empty() { Err(nothing()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_in_every_layout() {
        let text = "Filesystem     1K-blocks    Used Available Use% Mounted on
/dev/sda1       41152736 9876543  29153193  26% /
/dev/mapper/a-very-long-name
                41152736 39999999   1152737  98% /srv/my data
tmpfs                  0       0         0    - /sys
server:/export  41152736 39999999   1152737  91% /mnt
";
        let all = read(text.as_bytes()).unwrap();
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!(all[1].device, "/dev/mapper/a-very-long-name");
        assert_eq!((all[1].point.as_str(), all[1].used), ("/srv/my data", 0.98));
        let inodes = "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/sda1 10 9 1 90% /\n";
        assert!(read(inodes.as_bytes()).unwrap()[0].is_of_inodes);
    }

    #[test]
    fn a_line_without_a_share_is_named() {
        let problem = read(b"Filesystem Use% Mounted on\n/dev/sda1 12\n").unwrap_err();
        assert!(problem.to_string().starts_with("line 2, column 1"), "{problem}");
        assert!(read(b"hello\n").is_err());
    }
}
