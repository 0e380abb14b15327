//! What can be read of a text that is damaged or cut off, and what cannot.
//!
//! The readers of this crate stop at the first line that is broken, since half a table would be
//! believed. Who has nothing but a damaged text leaves that line out, reports it, and reads on.

use super::problem::{Problem, Wrong};

/// Lines of one text that are left out, at most: what is more broken is another format.
pub const LEFT_OUT_MAX: usize = 16;

/// A text, as far as it could be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Partial<T> {
    /// None where nothing of it is what it should be.
    pub value: Option<T>,
    /// Each line that was left out; or why there is nothing.
    pub problems: Vec<Problem>,
}

/// Reads a text with a reader of whole texts, and leaves out the lines that it refuses.
///
/// A last line without an end is one of them: a number that was cut off is another number.
pub fn partial<T>(text: &[u8], read: impl Fn(&[u8]) -> Result<T, Problem>) -> Partial<T> {
    let text = String::from_utf8_lossy(text);
    let mut lines: Vec<&str> = text.lines().collect();
    let mut problems = Vec::new();
    if lines.len() > 1 && !text.ends_with('\n') {
        let line = lines.len();
        lines[line - 1] = "";
        problems.push(Problem { line, column: 1, wrong: Wrong::CutOff });
    }
    loop {
        let mut problem = match read(lines.join("\n").as_bytes()) {
            Ok(value) => return Partial { value: Some(value), problems },
            Err(problem) => problem,
        };
        if lines.get(problem.line - 1) == Some(&NO_MOUNT) {
            // A place in what stands there instead is none in the text.
            problem.column = 1;
        }
        let line = lines.get_mut(problem.line - 1);
        let line = line.filter(|line| !line.is_empty() && **line != NO_MOUNT);
        let (Some(line), true) = (line, problems.len() < LEFT_OUT_MAX) else {
            problems.push(problem);
            return Partial { value: None, problems };
        };
        *line = if line.starts_with("device ") { NO_MOUNT } else { "" };
        problems.push(problem);
    }
}

/// What stands for a broken head of a mount, so that what follows is not taken for the one before.
const NO_MOUNT: &str = "device none mounted on none with fstype none";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{client, mountstats};

    #[test]
    fn broken_lines_are_left_out_and_reported() {
        let text = b"net 1 2 3 4\nrpc 1 x 3\nproc4 2 7 8\n";
        let partial = partial(text, client::read);
        let client = partial.value.unwrap();
        assert_eq!((client.net.unwrap().packets, client.rpc), (1, None));
        assert_eq!(client.v4.unwrap().calls, [7, 8]);
        assert_eq!(partial.problems.len(), 1);
        assert_eq!(partial.problems[0].line, 2);
    }

    #[test]
    fn a_last_line_that_is_cut_off_is_not_believed() {
        let partial = partial(b"net 1 2 3 4\nrpc 10 0 12", client::read);
        assert_eq!(partial.value.unwrap().rpc, None);
        assert!(partial.problems[0].to_string().contains("line 2, column 1: the text ends"));
    }

    #[test]
    fn what_follows_a_broken_head_belongs_to_no_other_mount() {
        let text = b"device a:/ mounted on /a with fstype nfs statvers=1.1\n\tage:\t5\n\
            device b:/ mounted on /b with fstype nfs\n\tage:\t7\n";
        let partial = partial(text, mountstats::read);
        let mounts = partial.value.unwrap();
        assert_eq!((mounts.len(), mounts[0].age_s), (1, Some(5)));
    }

    #[test]
    fn what_is_nothing_stays_nothing() {
        for text in [&b""[..], b"\n\n", b"hello\nworld\n", b"\0\x01\xff"] {
            let partial = partial(text, client::read);
            assert!(partial.value.is_none() && !partial.problems.is_empty());
        }
    }

    #[test]
    fn any_beginning_of_a_text_gives_what_is_in_it() {
        let text = b"net 1 2 3 4\nrpc 10 0 12\nproc2 18 2 69 0 0 4410 0 0 0 0 0 0 0 0 0 0 0 99 2\n";
        for end in 0..=text.len() {
            let partial = partial(&text[..end], client::read);
            let has_net = end > b"net 1 2 3 4\n".len();
            assert!(!has_net || partial.value.unwrap().net.is_some(), "{end}");
        }
    }
}
