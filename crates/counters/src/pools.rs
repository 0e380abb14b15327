//! `/proc/fs/nfsd/pool_stats`: for each pool of the server's threads, what arrived and how a thread
//! was found for it.
//!
//! The columns differ between kernels; the line that begins with `#` names them.

use super::fields::Line;
use super::problem::{Problem, Wrong};
use super::rpc::{NUMBERS_MAX, bounded};

/// Pools of one text, at most: one for each processor or NUMA node.
pub const POOLS_MAX: usize = 65_536;

/// Counters of one pool; what a kernel does not count is none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pool {
    pub number: u64,
    /// Messages that sockets have announced (`packets-arrived`, `messages-arrived`).
    pub arrived: Option<u64>,
    /// Of these, those that found no idle thread and waited.
    pub enqueued: Option<u64>,
    pub woken: Option<u64>,
    /// Threads that had nothing to do for an hour.
    pub timed_out: Option<u64>,
}

/// Reads the file's content.
///
/// # Errors
/// The first line that is broken; [`Wrong::Nothing`] where no line names the columns.
pub fn read(text: &[u8]) -> Result<Vec<Pool>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut columns: Vec<String> = Vec::new();
    let mut pools = Vec::new();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let trimmed = line.trimmed();
        if let Some(names) = trimmed.strip_prefix('#') {
            columns = names.split_whitespace().take(NUMBERS_MAX).map(str::to_owned).collect();
        } else if !columns.is_empty() && !trimmed.is_empty() {
            let begin = line;
            let numbers = line.numbers("pool", 2, NUMBERS_MAX)?;
            if pools.len() == POOLS_MAX {
                let wrong = Wrong::TooMany { what: "pools", max: POOLS_MAX };
                return Err(Problem { line: begin.number, column: 1, wrong });
            }
            pools.push(Pool::of(&columns, &numbers));
        }
    }
    if columns.is_empty() {
        return Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing });
    }
    Ok(pools)
}

impl Pool {
    fn of(columns: &[String], numbers: &[u64]) -> Self {
        let column = |ends: &str| {
            let at = columns.iter().position(|name| name.ends_with(ends))?;
            numbers.get(at).copied()
        };
        Self {
            number: numbers.first().copied().unwrap_or(0),
            arrived: column("-arrived"),
            enqueued: column("-enqueued"),
            woken: column("-woken"),
            timed_out: column("-timedout"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_names() {
        let old = b"# pool packets-arrived sockets-enqueued threads-woken overloads-avoided \
            threads-timedout\n0 100 7 93 1 2\n1 5 0 5 0 0\n";
        let pools = read(old).unwrap();
        assert_eq!(pools.len(), 2);
        let Pool { number, arrived, enqueued, woken, timed_out } = pools[0];
        assert_eq!((number, arrived, enqueued), (0, Some(100), Some(7)));
        assert_eq!((woken, timed_out), (Some(93), Some(2)));
        let new = b"# pool messages-arrived sockets-enqueued\n0 9 1\n";
        assert_eq!(read(new).unwrap()[0].arrived, Some(9));
        assert_eq!(read(new).unwrap()[0].woken, None);
    }

    #[test]
    fn what_is_broken_has_its_place() {
        let problem = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            problem("# pool packets-arrived\n0 x\n"),
            "line 2, column 3: \"x\" where a number is expected"
        );
        assert!(problem("0 1 2 3 4\n").contains("no NFS counters"));
        assert_eq!(read(b"# pool packets-arrived\n"), Ok(Vec::new()), "no threads run");
    }
}
