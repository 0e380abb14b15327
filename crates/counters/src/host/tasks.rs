//! Tasks that wait uninterruptibly (state D), as `ps -eo state,wchan:30,comm` prints them.

use super::nothing;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::bounded;

/// Above the lines that [`line()`] makes, as `ps` prints it.
pub const HEAD: &str = "S WCHAN\n";

/// How many wait, by where in the kernel.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Waits {
    /// In the client of NFS or RPC, for a reply.
    pub for_replies: u64,
    /// Where is hidden from who has looked.
    pub unknown: u64,
    /// For something else: a disk, a page, a lock.
    pub others: u64,
}

/// Whether a text looks like it.
pub fn is_likely(text: &str) -> bool {
    text.lines().next().is_some_and(is_head)
}

fn is_head(line: &str) -> bool {
    line.split_whitespace().take(2).eq(["S", "WCHAN"])
}

/// Reads the text. What a program is called does not matter.
///
/// # Errors
/// There is no head.
pub fn read(text: &[u8]) -> Result<Waits, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut lines = Line::all(&text);
    lines.next().filter(|line| is_head(line.whole())).ok_or_else(nothing)?;
    let mut waits = Waits::default();
    for line in lines {
        bounded(&line)?;
        let mut words = line.whole().split_whitespace();
        let (state, place) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !state.starts_with('D') {
            continue;
        }
        let count = match place {
            "" | "-" | "0" | "?" => &mut waits.unknown,
            _ if place.starts_with("nfs") || place.starts_with("rpc_") => &mut waits.for_replies,
            _ => &mut waits.others,
        };
        *count += 1;
    }
    Ok(waits)
}

/// The line of a task, from its `stat` and `wchan`, if it waits so.
pub fn line(stat: &str, place: &str) -> Option<String> {
    // The name before the state may have blanks and parentheses.
    let state = stat.rsplit_once(')')?.1.split_whitespace().next()?;
    (state == "D").then(|| format!("D {}\n", place.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_reply_is_counted_apart() {
        let text = "S WCHAN                          COMMAND\n\
                    S do_sys_poll                    sshd\n\
                    D rpc_wait_bit_killable          cp\n\
                    D nfs_wait_on_request            make -j\n\
                    D+ folio_wait_bit_common         cat\n\
                    D -                              tar\n\
                    D\n";
        assert!(is_likely(text) && !is_likely("STATE\n"));
        let waits = Waits { for_replies: 2, unknown: 2, others: 1 };
        assert_eq!(read(text.as_bytes()), Ok(waits));
        assert!(read(b"D rpc_wait_bit_killable\n").is_err());
    }

    #[test]
    fn a_task_that_waits_has_a_line() {
        let waits = |stat: &str, place: &str| line(stat, place);
        assert_eq!(waits("7 (a) D (b) D 1 7", "rpc_x").as_deref(), Some("D rpc_x\n"));
        assert_eq!(waits("7 (a) S 1 7", "0"), None);
        assert_eq!(waits("7", ""), None);
        let text = format!("{HEAD}{}", line("7 (a) D 1", "0").unwrap());
        assert_eq!(read(text.as_bytes()), Ok(Waits { unknown: 1, ..Waits::default() }));
    }
}
