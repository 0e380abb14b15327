//! Connections and sockets under the conditions as they are now.

use std::io;

use super::controls::Shape;
use super::{Busy, BusyDatagrams, Shaped, ShapedDatagrams};
use crate::clock::Clock;
use crate::processor::Processor;
use crate::transport::Transport;
use crate::transport::datagram::Datagrams;

impl Shape {
    /// A connection under these conditions, with its endpoint's overhead; as it is if there is
    /// neither.
    ///
    /// # Errors
    /// The system has no more timers to give.
    pub fn around<T: Transport + 'static>(
        &self,
        transport: T,
        processor: &Processor,
        clock: &Clock,
    ) -> io::Result<Box<dyn Transport>> {
        let (has_link, overhead) = (self.has_link(), self.overhead());
        let linked: Box<dyn Transport> = match has_link {
            true => Box::new(Shaped::new(transport, self, clock)?),
            false => Box::new(transport),
        };
        match overhead.is_none() {
            true => Ok(linked),
            false => Ok(Box::new(Busy::new(linked, overhead, processor, clock)?)),
        }
    }

    /// The same around a socket of datagrams.
    ///
    /// # Errors
    /// As [`Shape::around`].
    pub fn around_datagrams<D: Datagrams + 'static>(
        &self,
        socket: D,
        processor: &Processor,
        clock: &Clock,
    ) -> io::Result<Box<dyn Datagrams>> {
        let (has_link, overhead) = (self.has_link(), self.overhead());
        let linked: Box<dyn Datagrams> = match has_link {
            true => Box::new(ShapedDatagrams::new(socket, self, clock)?),
            false => Box::new(socket),
        };
        match overhead.is_none() {
            true => Ok(linked),
            false => Ok(Box::new(BusyDatagrams::new(linked, overhead, processor, clock)?)),
        }
    }
}
