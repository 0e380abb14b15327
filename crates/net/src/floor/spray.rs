//! Calls sent at a rate, whether they are answered or not.
//!
//! Two forms. The classic one sends SPRAY calls, which nobody answers, and asks the far end's
//! spray program how many came ([`classic`]). The other sends NULL calls to any RPC program
//! ([`null`]): one thread sends, another takes the replies, and a call is lost when its reply has
//! not come within a limit. Its response time counts from when it was due.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use perf::units::{Instant, Nanos};
use rustix::time::{ClockId, clock_gettime};
use wire::portmap::{self, Mapping, Port};
use wire::rpc::{self, MessageType};
use wire::spray::{ARRAY_LEN_MAX, Counted, PROGRAM, Procedure, VERSION};
use wire::xdr::{Encode, from_bytes};

use super::error::FloorError;
use super::kernel_counts::Host;
use super::lines::{duration, is_passing};
use super::near::LATE;
use super::pace::{self, Pace};
use super::rpc::{Service, dial_server, mark, null_call, reply_bytes};
use super::sockets::{connected, receive, send};
use crate::call;
use crate::clock::Clock;
use crate::error::CallError;

/// Times that CLEAR and GET are called before we give up: they may be lost as sprays are.
const ATTEMPTS: u32 = 5;
/// Most calls of one spray: a moment of each is recorded.
pub const CALLS_MAX: u32 = 10_000_000;
/// How often a thread that takes replies looks whether it is still wanted.
const LOOK: Nanos = Nanos::from_millis(20);

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spray {
    /// Of a call, rounded down to whole words.
    pub call_bytes: usize,
    pub calls: u32,
    /// Calls in a second; `None` as fast as they go.
    pub per_s: Option<f64>,
    /// Between the end of one call's sending and the next, as the classic `-d` has it.
    pub delay: Nanos,
    pub reply_limit: Nanos,
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub struct Sprayed {
    /// Calls that the system took, and the bytes of all.
    pub sent: u64,
    pub bytes: u64,
    /// From the first call to the last one's return, and of it the processor time of the thread
    /// that sends.
    pub span: Nanos,
    pub cpu: Nanos,
    /// From the first call to the last reply, where there are replies; else as `span`.
    pub heard: Nanos,
    /// Calls that left more than [`LATE`] after they were due.
    pub late: u64,
    /// Calls that came (classic), or were answered.
    pub came: u64,
    /// Of these, refused with GARBAGE_ARGS or otherwise.
    pub refused: u64,
    /// Response times from when each was due, of those that were answered.
    pub response_times: Vec<Nanos>,
    /// What this host counted meanwhile, of everybody's datagrams.
    pub host: Host,
}

/// Sends SPRAY calls over UDP, and asks how many came. The argument fills the call.
///
/// # Errors
/// [`FloorError`]; lost calls are none.
pub fn classic(
    clock: &Clock,
    service: Service,
    what: &Spray,
    stop: &AtomicBool,
) -> Result<Sprayed, FloorError> {
    let socket = connected(service.address)?;
    ask(clock, service, &socket, Procedure::Clear.code(), &[], what.reply_limit)?;
    let mut spray = null_call(service, Procedure::Spray.code(), what.call_bytes.max(44));
    let array_bytes = (spray.len() - 44).min(ARRAY_LEN_MAX / 4 * 4);
    spray.truncate(44 + array_bytes);
    // The array's length, between the header and its bytes.
    spray[40..44].copy_from_slice(&u32::try_from(array_bytes).unwrap_or(0).to_be_bytes());
    let host = Host::now();
    let mut sprayed = emit(clock, what, stop, spray.len(), |xid, _| {
        spray[..4].copy_from_slice(&xid.to_be_bytes());
        send(&socket, &spray).map_err(|cause| FloorError::of_socket(service.address, cause))
    })?;
    let results = ask(clock, service, &socket, Procedure::Get.code(), &[], what.reply_limit)?;
    let counted: Counted = from_bytes(&results)
        .map_err(|cause| FloorError::Call { address: service.address, cause: cause.into() })?;
    sprayed.came = u64::from(counted.calls);
    sprayed.host = Host::now().since(host);
    Ok(sprayed)
}

/// Asks a host's portmapper where its spray program is.
///
/// # Errors
/// [`FloorError::NotRegistered`], and others of [`FloorError`].
pub fn find(clock: &Clock, host: IpAddr, limit: Nanos) -> Result<SocketAddr, FloorError> {
    let address = SocketAddr::new(host, portmap::PORT);
    let portmapper =
        Service { address, program: portmap::PROGRAM, version: portmap::VERSION, is_udp: true };
    let (program, version, protocol) = (PROGRAM, VERSION, portmap::PROTOCOL_UDP);
    let mut args = Vec::new();
    Mapping { program, version, protocol, port: 0 }.encode(&mut args);
    let socket = connected(address)?;
    let getport = portmap::Procedure::Getport.code();
    let results = ask(clock, portmapper, &socket, getport, &args, limit)?;
    let Port { port } = from_bytes(&results)
        .map_err(|cause| FloorError::Call { address, cause: CallError::Malformed(cause) })?;
    match u16::try_from(port) {
        Ok(port) if port > 0 => Ok(SocketAddr::new(host, port)),
        _ => Err(FloorError::NotRegistered { address }),
    }
}

/// Calls a procedure until it is answered; its results.
fn ask(
    clock: &Clock,
    service: Service,
    socket: &UdpSocket,
    procedure: u32,
    args: &[u8],
    limit: Nanos,
) -> Result<Vec<u8>, FloorError> {
    let address = service.address;
    let failed = |cause| FloorError::of_socket(address, cause);
    let mut call = null_call(service, procedure, 0);
    call.extend_from_slice(args);
    let first = clock.since_1970().subsec_nanos();
    let mut reply = [0; 512];
    for attempt in 0..ATTEMPTS {
        let xid = first.wrapping_add(attempt);
        call[..4].copy_from_slice(&xid.to_be_bytes());
        send(socket, &call).map_err(failed)?;
        let wanted = (xid, MessageType::Reply);
        let is_it = |reply: &[u8]| rpc::peek(reply) == Ok(wanted);
        let came = receive(clock, socket, &mut reply, clock.now() + limit, is_it);
        if let Some((_, count)) = came.map_err(failed)? {
            let reply = &reply[..count];
            let at = call::results_at(reply);
            let at = at.map_err(|cause| FloorError::Call { address, cause })?;
            return Ok(reply[at..].to_vec());
        }
    }
    Err(FloorError::NoAnswer { address, count: ATTEMPTS, limit })
}

/// Sends NULL calls to any RPC program, and takes the replies.
///
/// # Errors
/// [`FloorError`]; lost calls are none.
pub fn null(
    clock: &Clock,
    service: Service,
    what: &Spray,
    stop: &AtomicBool,
) -> Result<Sprayed, FloorError> {
    let call = null_call(service, 0, what.call_bytes);
    let first_xid = clock.since_1970().subsec_nanos();
    let replies = Replies::new(clock, first_xid, what.calls);
    let host = Host::now();
    let mut due_times = Vec::with_capacity(what.calls as usize);
    let gone = |cause| FloorError::of_socket(service.address, cause);
    let mut sprayed = std::thread::scope(|scope| {
        let own = &replies;
        let begin = |taken: Taken| {
            let thread = std::thread::Builder::new().name("nfskit-replies".to_owned());
            let take = move || match taken {
                Taken::Datagrams(socket) => own.take_datagrams(&socket),
                Taken::Records(stream) => own.take_records(&stream),
            };
            thread.spawn_scoped(scope, take).map_err(FloorError::System)
        };
        // Whatever ends this scope ends the thread that takes replies.
        let _end = End(&replies.is_over);
        let sprayed = if service.is_udp {
            let socket = connected(service.address)?;
            let taken = socket.try_clone().map_err(FloorError::System)?;
            begin(Taken::Datagrams(taken))?;
            let mut call = call;
            emit(clock, what, stop, call.len(), |xid, due| {
                due_times.push(due);
                call[..4].copy_from_slice(&first_xid.wrapping_add(xid).to_be_bytes());
                send(&socket, &call).map_err(gone)
            })?
        } else {
            let stream = dial_server(service)?;
            stream.set_write_timeout(Some(duration(what.reply_limit))).map_err(gone)?;
            stream.set_read_timeout(Some(duration(LOOK))).map_err(gone)?;
            let taken = stream.try_clone().map_err(FloorError::System)?;
            begin(Taken::Records(taken))?;
            let mut record = [&mark(&call)[..], &call].concat();
            emit(clock, what, stop, call.len(), |xid, due| {
                due_times.push(due);
                record[4..8].copy_from_slice(&first_xid.wrapping_add(xid).to_be_bytes());
                (&stream).write_all(&record).map_err(gone)?;
                Ok(true)
            })?
        };
        replies.settle(sprayed.sent, clock.now() + what.reply_limit);
        Ok::<Sprayed, FloorError>(sprayed)
    })?;
    sprayed.host = Host::now().since(host);
    sprayed.response_times = replies.response_times(&due_times);
    sprayed.heard = sprayed.heard.max(replies.heard(&due_times));
    sprayed.came = sprayed.response_times.len() as u64;
    sprayed.refused = replies.refused.load(Ordering::Relaxed);
    if sprayed.came == 0 && sprayed.sent > 0 {
        let (address, limit) = (service.address, what.reply_limit);
        let count = u32::try_from(sprayed.sent).unwrap_or(u32::MAX);
        return Err(match replies.is_alien.load(Ordering::Relaxed) {
            true => FloorError::Call { address, cause: CallError::Unsolicited { count: 1 } },
            false => FloorError::NoAnswer { address, count, limit },
        });
    }
    Ok(sprayed)
}

/// Sends all calls at their times: `send` gets each one's number and when it was due.
fn emit(
    clock: &Clock,
    what: &Spray,
    stop: &AtomicBool,
    call_bytes: usize,
    mut send: impl FnMut(u32, Instant) -> Result<bool, FloorError>,
) -> Result<Sprayed, FloorError> {
    let mut sprayed = Sprayed::default();
    let (started, cpu) = (clock.now(), thread_cpu());
    let pace = Pace::new(started, what.per_s);
    let mut after_delay = None;
    for number in 0..what.calls {
        if stop.load(Ordering::Relaxed) {
            return Err(FloorError::Stopped);
        }
        let due = match (pace.due(u64::from(number)), after_delay) {
            (Some(due), _) | (None, Some(due)) => due,
            (None, None) => clock.now(),
        };
        if pace::until(clock, due) > LATE {
            sprayed.late += 1;
        }
        if send(number, due)? {
            sprayed.sent += 1;
            sprayed.bytes += call_bytes as u64;
        }
        let now = clock.now();
        sprayed.span = now.since(started);
        after_delay = (what.delay > Nanos::ZERO).then(|| now + what.delay);
    }
    sprayed.cpu = thread_cpu().saturating_sub(cpu).min(sprayed.span);
    sprayed.heard = sprayed.span;
    Ok(sprayed)
}

/// Processor time of the calling thread. That of the process is known to a tick of its other
/// threads only, which is longer than a short spray.
fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos::from_secs_f64(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

/// When each reply came, in nanoseconds of the clock; zero while it has not.
#[derive(Debug)]
struct Replies<'a> {
    clock: &'a Clock,
    first_xid: u32,
    came_ns: Vec<AtomicU64>,
    count: AtomicU64,
    refused: AtomicU64,
    /// Something came that is no reply of RPC.
    is_alien: AtomicBool,
    is_over: AtomicBool,
}

/// What replies come from.
enum Taken {
    Datagrams(UdpSocket),
    Records(TcpStream),
}

/// Ends the thread that takes replies, when dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<'a> Replies<'a> {
    fn new(clock: &'a Clock, first_xid: u32, calls: u32) -> Self {
        Self {
            clock,
            first_xid,
            came_ns: (0..calls).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_alien: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }

    fn take_datagrams(&self, socket: &UdpSocket) {
        let mut reply = vec![0; 1 << 16];
        while !self.is_over.load(Ordering::Relaxed) {
            match socket.recv(&mut reply) {
                Ok(count) => self.take(&reply[..count]),
                Err(cause) if is_passing(&cause) => {}
                Err(_) => return,
            }
        }
    }

    fn take_records(&self, stream: &TcpStream) {
        let mut reply = [0; 512];
        let patient = Patient { stream, is_over: &self.is_over };
        loop {
            let mut mark = [0; 4];
            let read = patient.fill(&mut mark).and_then(|()| {
                let count = reply_bytes(mark).inspect_err(|_| {
                    self.is_alien.store(true, Ordering::Relaxed);
                })?;
                patient.fill(&mut reply[..count]).map(|()| count)
            });
            match read {
                Ok(count) => self.take(&reply[..count]),
                Err(_) => break,
            }
        }
        // Then nobody sends any more, either.
        stream.shutdown(Shutdown::Both).ok();
    }

    fn take(&self, reply: &[u8]) {
        let Ok((xid, MessageType::Reply)) = rpc::peek(reply) else {
            self.is_alien.store(true, Ordering::Relaxed);
            return;
        };
        let now_ns = self.clock.now().as_nanos().max(1);
        let at = xid.wrapping_sub(self.first_xid) as usize;
        let Some(place) = self.came_ns.get(at) else { return };
        // The first reply counts, should there be two.
        if place.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.count.fetch_add(1, Ordering::Relaxed);
            if call::results_at(reply).is_err() {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until all that were sent are answered, or it is late.
    fn settle(&self, sent: u64, until: Instant) {
        while self.count.load(Ordering::Relaxed) < sent && self.clock.now() < until {
            pace::rest(Nanos::from_millis(1));
        }
    }

    /// From when the first was due to the last reply.
    fn heard(&self, due: &[Instant]) -> Nanos {
        let last_ns = self.came_ns.iter().map(|came_ns| came_ns.load(Ordering::Relaxed)).max();
        let last = Instant::from_nanos(last_ns.unwrap_or_default());
        due.first().map_or(Nanos::ZERO, |first| last.since(*first))
    }

    fn response_times(&self, due: &[Instant]) -> Vec<Nanos> {
        let came = self.came_ns.iter().zip(due);
        came.filter_map(|(came_ns, due)| {
            let came_ns = came_ns.load(Ordering::Relaxed);
            (came_ns > 0).then(|| Instant::from_nanos(came_ns).since(*due))
        })
        .collect()
    }
}

/// Reads through the limits of a socket until it is over.
struct Patient<'a> {
    stream: &'a TcpStream,
    is_over: &'a AtomicBool,
}

impl Patient<'_> {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut have = 0;
        while have < bytes.len() {
            match { self.stream }.read(&mut bytes[have..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => have += count,
                Err(cause) if is_passing(&cause) && !self.is_over.load(Ordering::Relaxed) => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }
}
