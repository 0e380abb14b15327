//! A value that many write and many read, each for a while: which of them a reader may see.
//!
//! Every write has a beginning, and an end when it was surely done; between, and for ever if it
//! failed, it may be done or not. A reader sees a value that was written, and not one that another
//! write has certainly replaced before the reader's promise begins. That is a *regular register*
//! (Lamport 1986), and all that close-to-open and remembered names promise once one says from when
//! on each reader must have heard of what.

use perf::units::Instant;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Register<V> {
    writes: Vec<Write<V>>,
}

#[derive(Clone, Debug)]
struct Write<V> {
    value: V,
    by: usize,
    begun: Instant,
    /// None: it is under way, or has failed.
    ended: Option<Instant>,
}

/// A reader's look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub by: usize,
    pub begun: Instant,
    pub ended: Instant,
    /// What others had done by then must be seen; of its own client it must have seen all by
    /// `begun`.
    pub heard: Instant,
}

/// Names a write until it ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ticket(usize);

impl<V> Register<V> {
    /// It has had this value for ever.
    pub fn new(value: V) -> Self {
        let (begun, ended) = (Instant::EPOCH, Some(Instant::EPOCH));
        Self { writes: vec![Write { value, by: usize::MAX, begun, ended }] }
    }

    pub fn begin(&mut self, value: V, by: usize, now: Instant) -> Ticket {
        self.writes.push(Write { value, by, begun: now, ended: None });
        Ticket(self.writes.len() - 1)
    }

    /// What it writes is known now.
    pub fn is(&mut self, Ticket(at): Ticket, value: V) {
        self.writes[at].value = value;
    }

    /// It is done for sure.
    pub fn end(&mut self, Ticket(at): Ticket, now: Instant) {
        self.writes[at].ended = Some(now);
    }

    /// It was not done, and never will be.
    pub fn undone(&mut self, Ticket(at): Ticket)
    where
        V: Clone,
    {
        // As if the first value had been written again before all others.
        self.writes[at] = Write { value: self.writes[0].value.clone(), ..self.writes[0].clone() };
    }

    /// The values that a look may see.
    pub fn seen(&self, look: Look) -> impl Iterator<Item = &V> {
        let may_be =
            move |write: &&Write<V>| write.begun <= look.ended && !self.is_replaced(write, look);
        self.writes.iter().filter(may_be).map(|write| &write.value)
    }

    fn is_replaced(&self, write: &Write<V>, look: Look) -> bool {
        let Some(done) = write.ended else { return false };
        self.writes.iter().any(|later| {
            let heard = if later.by == look.by { look.begun } else { look.heard };
            later.begun > done && later.ended.is_some_and(|ended| ended < heard)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn look(by: usize, heard: u64, begun: u64, ended: u64) -> Look {
        Look { by, heard: at(heard), begun: at(begun), ended: at(ended) }
    }

    #[test]
    fn what_was_replaced_before_is_not_seen_any_more() {
        let mut register = Register::new('-');
        let seen = |register: &Register<char>, look| register.seen(look).collect::<String>();
        let first = register.begin('a', 1, at(10));
        assert_eq!(seen(&register, look(2, 5, 5, 9)), "-", "it has not begun");
        assert_eq!(seen(&register, look(2, 15, 15, 20)), "-a", "it is under way");
        register.end(first, at(20));
        assert_eq!(seen(&register, look(2, 30, 30, 40)), "a");
        assert_eq!(seen(&register, look(2, 15, 30, 40)), "-a", "it need not have heard of it");
        assert_eq!(seen(&register, look(1, 15, 30, 40)), "a", "of its own it has");
        let failed = register.begin('b', 1, at(50));
        let third = register.begin('c', 2, at(60));
        register.end(third, at(70));
        assert_eq!(seen(&register, look(1, 80, 80, 90)), "bc");
        register.undone(failed);
        assert_eq!(seen(&register, look(1, 80, 80, 90)), "c");
    }

    #[test]
    fn of_two_at_the_same_time_either_may_be_the_last() {
        let mut register = Register::new('-');
        let (first, second) = (register.begin('a', 1, at(10)), register.begin('b', 2, at(15)));
        register.end(first, at(20));
        register.end(second, at(25));
        assert_eq!(register.seen(look(3, 30, 30, 30)).collect::<String>(), "ab");
    }
}
