//! CREATE and REMOVE of files, each under a name that was not used before.

use wire::Procedure;
use wire::nfs3::{self, DirOp, FileHandle, Sattr3, create, remove};
use wire::xdr::Encode;

use crate::peers::client::pipeline::{Job, SLOTS_MAX};
use crate::peers::client::replies::{results, succeeded};
use crate::peers::client::{call, put_call};

/// A name's number stands in its last characters.
const DIGITS: usize = 8;
const NAME: &[u8] = b"created-00000000";

/// In each slot a file is created, then removed, then the next one is created.
#[derive(Debug)]
pub(crate) struct CreateRemove {
    create: Vec<u8>,
    remove: Vec<u8>,
    /// Where the name's digits stand in the two calls.
    digits_at: (usize, usize),
    /// The number of the file that a slot has created and must remove.
    made: [Option<u32>; SLOTS_MAX],
    /// The last request of a slot.
    requested: [Option<u32>; SLOTS_MAX],
    names: u32,
    is_ending: bool,
    done: u64,
}

impl CreateRemove {
    pub(crate) fn new(dir: FileHandle) -> Self {
        let mode = Sattr3::of_mode(0o644);
        let what = DirOp { dir, name: NAME };
        let args = create::Args { where_: what, how: create::CreateHow::Unchecked(mode) };
        let create = call(Procedure::Nfs3(nfs3::Procedure::Create), |out| args.encode(out), 0);
        let args = remove::Args { object: what };
        let remove = call(Procedure::Nfs3(nfs3::Procedure::Remove), |out| args.encode(out), 0);
        let digits_at = (digits_at(&create), digits_at(&remove));
        Self {
            create,
            remove,
            digits_at,
            made: [None; SLOTS_MAX],
            requested: [None; SLOTS_MAX],
            names: 0,
            is_ending: false,
            done: 0,
        }
    }

    /// From now on nothing is created: run it to its end, and the directory is as it was.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
    }
}

impl Job for CreateRemove {
    fn next(&mut self, slot: usize, xid: u32, out: &mut Vec<u8>) -> bool {
        let at = out.len();
        if let Some(number) = self.made[slot] {
            put_call(out, &self.remove, xid);
            put_digits(&mut out[at + self.digits_at.1..], number);
            self.requested[slot] = None;
            return true;
        }
        if self.is_ending {
            return false;
        }
        put_call(out, &self.create, xid);
        put_digits(&mut out[at + self.digits_at.0..], self.names);
        self.requested[slot] = Some(self.names);
        self.names += 1;
        true
    }

    fn reply(&mut self, slot: usize, reply: &[u8]) -> Result<(), String> {
        let results = results(reply)?;
        match self.requested[slot] {
            Some(_) => {
                if succeeded::<create::Reply, _>("CREATE", results)?.obj.is_none() {
                    return Err("CREATE: no handle".to_owned());
                }
            }
            None => drop(succeeded::<remove::Reply, _>("REMOVE", results)?),
        }
        self.made[slot] = self.requested[slot];
        self.done += 1;
        Ok(())
    }

    fn amount(&self) -> u64 {
        self.done
    }
}

fn digits_at(call: &[u8]) -> usize {
    let name_at = call.windows(NAME.len()).position(|bytes| bytes == NAME);
    name_at.expect("the call was made with the name") + NAME.len() - DIGITS
}

fn put_digits(at: &mut [u8], mut number: u32) {
    for place in at[..DIGITS].iter_mut().rev() {
        *place = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slot_created_it_removes_and_the_next_name_is_new() {
        let mut job = CreateRemove::new(FileHandle::new(&[1]).unwrap());
        let name_of = |out: &[u8]| {
            let at = out.windows(8).position(|bytes| bytes == &NAME[..8]).unwrap();
            String::from_utf8_lossy(&out[at..at + NAME.len()]).into_owned()
        };
        let mut names = Vec::new();
        for _ in 0..3 {
            let mut out = Vec::new();
            assert!(job.next(3, 9, &mut out));
            names.push(name_of(&out));
            job.made[3] = job.requested[3];
        }
        assert_eq!(names, ["created-00000000", "created-00000000", "created-00000001"]);
        job.end();
        assert!(job.next(3, 9, &mut Vec::new()), "what was created is still removed");
        job.made[3] = job.requested[3];
        assert!(!job.next(3, 9, &mut Vec::new()));
    }
}
