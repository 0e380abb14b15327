//! Reads requests, one after the other. What can be answered from memory is answered here, by the
//! thread that has read the request, without a change of threads; what has to wait goes on as a
//! task of its own. So the order in which the kernel asks is the order in which work begins: a
//! file that is closed before its name is removed is closed then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::abi::init::TRANSFER_BYTES_MAX;
use crate::abi::request::{Header, Operation, parse};
use crate::abi::{WRITE_HEAD_BYTES, init};
use crate::device::Device;
use crate::fs::FileSystem;
use crate::inflight::{Abandoned, Inflight, Reply};

/// Room for the largest request.
const BUFFER_BYTES: usize = WRITE_HEAD_BYTES + TRANSFER_BYTES_MAX as usize;

/// Data of WRITEs from this size on stay where they were read, which takes a buffer away; below
/// they are copied, so that little data does not keep a large buffer.
const POOLED_BYTES_MIN: usize = 512 << 10;

/// Buffers pooled for use again; further ones are given back to the system.
const FREE_MAX: usize = 16;

/// Work that answers a request.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request of the kernel.
pub(crate) struct Incoming<'a> {
    pub(crate) header: Header,
    pub(crate) operation: Operation<'a>,
    /// The data of a WRITE.
    pub(crate) data: Bytes,
}

/// Buffers that are read into.
#[derive(Clone, Debug, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }
}

/// A buffer that goes back when nobody uses its data any more.
#[derive(Debug)]
struct Lent {
    bytes: Vec<u8>,
    buffers: Buffers,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut free = self.buffers.0.lock();
        if free.len() < FREE_MAX {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// Reads and begins requests until the kernel has none any more.
pub(crate) fn run(
    device: &Arc<Device>,
    system: &Arc<FileSystem>,
    inflight: &Inflight,
    runtime: &Handle,
) {
    let _entered = runtime.enter();
    let buffers = Buffers::default();
    let mut buffer = buffers.take();
    while let Ok(Some(())) = device.read(&mut buffer) {
        let unique = match parse(&buffer) {
            Ok((header, Operation::Write { file, offset, count, how })) => {
                let end = WRITE_HEAD_BYTES + count as usize;
                let data = if count as usize >= POOLED_BYTES_MIN {
                    let bytes = std::mem::replace(&mut buffer, buffers.take());
                    Bytes::from_owner(Lent { bytes, buffers: buffers.clone() })
                        .slice(WRITE_HEAD_BYTES..end)
                } else {
                    Bytes::copy_from_slice(&buffer[WRITE_HEAD_BYTES..end])
                };
                let operation = Operation::Write { file, offset, count, how };
                begin(device, system, inflight, Incoming { header, operation, data });
                continue;
            }
            Ok((_, Operation::Interrupt { unique })) => {
                inflight.signalled(unique);
                continue;
            }
            Ok((header, Operation::Destroy)) => {
                device.answer(header.unique, 0, &[]);
                return;
            }
            Ok((header, operation)) => {
                let request = Incoming { header, operation, data: Bytes::new() };
                begin(device, system, inflight, request);
                continue;
            }
            Err((unique, _malformed)) => unique,
        };
        device.answer(unique, rustix::io::Errno::IO.raw_os_error(), &[]);
    }
}

fn begin(
    device: &Arc<Device>,
    system: &Arc<FileSystem>,
    inflight: &Inflight,
    request: Incoming<'_>,
) {
    let Header { unique, pid, .. } = request.header;
    let abandoned = abandoned(&request.operation);
    let reply = Reply::new(device, unique);
    let mark = Inflight::mark(&reply);
    let Some(mut work) = system.begin(request, reply) else {
        return;
    };
    // Whom it wakes does not matter: it is polled again when it is spawned.
    let mut context = Context::from_waker(Waker::noop());
    if work.as_mut().poll(&mut context).is_pending() {
        inflight.spawn(unique, pid, mark, abandoned, work);
    }
}

/// What only asks may be dropped halfway.
fn abandoned(operation: &Operation<'_>) -> Abandoned {
    match operation {
        Operation::Lookup { .. }
        | Operation::Getattr { .. }
        | Operation::Readlink
        | Operation::Read { .. }
        | Operation::Statfs
        | Operation::Opendir { .. }
        | Operation::Readdir { .. }
        | Operation::Access { .. } => Abandoned::Dropped,
        Operation::Setlk { may_wait: true, .. } => Abandoned::AtOnce,
        _ => Abandoned::GoesOn,
    }
}

/// The kernel's first request, and our answer. `waiting_bytes_max`: bytes of WRITEs that may wait
/// here, where the kernel does not bound what it holds of written data.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn greet(
    device: &Device,
    cache: init::KernelCache,
    waiting_bytes_max: Option<u64>,
) -> Result<init::Agreed, String> {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        match device.read(&mut buffer) {
            Ok(Some(())) => {}
            Ok(None) => return Err("it was unmounted at once".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        let (header, init) = match parse(&buffer) {
            Ok((header, Operation::Init(init))) => (header, init),
            Ok((header, _)) => {
                device.answer(header.unique, rustix::io::Errno::IO.raw_os_error(), &[]);
                continue;
            }
            Err((_, malformed)) => return Err(malformed.to_string()),
        };
        if init.major != 7 || init.minor < init::MINOR_MIN {
            device.answer(header.unique, rustix::io::Errno::PROTO.raw_os_error(), &[]);
            return Err(format!(
                "it speaks version {}.{}; 7.{} is needed",
                init.major,
                init.minor,
                init::MINOR_MIN
            ));
        }
        let agreed = init::Agreed::with(&init, cache);
        device.answer(header.unique, 0, agreed.answer(waiting_bytes_max).as_slice());
        return Ok(agreed);
    }
}
