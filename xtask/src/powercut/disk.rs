//! A disk with a cache that a loss of power takes: a block device of the guest, over the network
//! (NBD).
//!
//! What is written stays in the cache until a FLUSH, or goes to the image at once with FUA. A power
//! cut keeps any sectors of what was never flushed, and loses the others: writes are torn, and come
//! to the platter in any order.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

pub(super) const SECTOR: usize = 512;
/// A drive's own memory; when it is full, half of it is written.
const CACHE_SECTORS_MAX: usize = (32 << 20) / SECTOR;
/// A disk that is late: a sync of a journaling file system is two of them.
const FLUSHES_LATE: usize = 12;
/// Longest request that is taken: the kernel's are far shorter.
const REQUEST_BYTES_MAX: usize = 32 << 20;

const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
/// Of a WRITE: it is to be stable when it is answered.
const FUA: u16 = 1;
const EINVAL: u32 = 22;

type Sectors = BTreeMap<u64, [u8; SECTOR]>;

/// What the disk was requested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) writes: u64,
    pub(super) bytes_written: u64,
    pub(super) flushes: u64,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Disk {
    image: File,
    bytes: u64,
    cache: Sectors,
    /// With a disk that is late: what came before each of the last of them, oldest first.
    late: Option<VecDeque<Sectors>>,
    pub(super) counts: Counts,
}

impl Disk {
    /// With `is_late`, a FLUSH, or a write with FUA, is answered when what came [`FLUSHES_LATE`] of
    /// them before is there: a cut leaves the disk whole, as it was earlier, and what was promised
    /// since is gone.
    pub(super) fn open(path: &Path, is_late: bool) -> io::Result<Self> {
        let image = File::options().read(true).write(true).open(path)?;
        let bytes = image.metadata()?.len();
        let late = is_late.then(VecDeque::new);
        Ok(Self { image, bytes, cache: Sectors::new(), late, counts: Counts::default() })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.image.read_exact_at(buffer, at)?;
        let first = at / SECTOR as u64;
        let sectors = first..first + (buffer.len() / SECTOR) as u64;
        for cache in self.late.iter().flatten().chain([&self.cache]) {
            for (sector, content) in cache.range(sectors.clone()) {
                let from = usize::try_from(sector - first).map_or(0, |index| index * SECTOR);
                buffer[from..from + SECTOR].copy_from_slice(content);
            }
        }
        Ok(())
    }

    fn write(&mut self, at: u64, data: &[u8], is_stable: bool) -> io::Result<()> {
        self.counts.writes += 1;
        self.counts.bytes_written += data.len() as u64;
        let is_late = is_stable && self.late.is_some();
        let is_stable = is_stable && !is_late;
        for (index, content) in (0u64..).zip(data.as_chunks::<SECTOR>().0) {
            let sector = at / SECTOR as u64 + index;
            match is_stable {
                true => self.cache.remove(&sector),
                false => self.cache.insert(sector, *content),
            };
        }
        if is_stable {
            self.image.write_all_at(data, at)?;
        } else if is_late {
            self.write_cache()?;
        }
        if self.cache.len() > CACHE_SECTORS_MAX && self.late.is_none() {
            self.keep_some(&mut fastrand::Rng::with_seed(self.counts.writes), 2)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.counts.flushes += 1;
        self.write_cache()
    }

    /// Now, or with a disk that is late after others.
    fn write_cache(&mut self) -> io::Result<()> {
        let cache = std::mem::take(&mut self.cache);
        let Some(late) = &mut self.late else { return self.put(cache) };
        late.push_back(cache);
        match late.len() > FLUSHES_LATE {
            true => late.pop_front().map_or(Ok(()), |due| self.put(due)),
            false => Ok(()),
        }
    }

    /// Writes some parts in four of what is in the cache.
    fn keep_some(&mut self, rng: &mut fastrand::Rng, parts: u32) -> io::Result<()> {
        let cache = std::mem::take(&mut self.cache);
        let (written, lost) = cache.into_iter().partition(|_| rng.u32(0..4) < parts);
        self.cache = lost;
        self.put(written)
    }

    fn put(&self, sectors: Sectors) -> io::Result<()> {
        let mut all = sectors.into_iter();
        all.try_for_each(|(sector, content)| {
            self.image.write_all_at(&content, sector * SECTOR as u64)
        })
    }

    /// The power is gone. Says how many sectors were lost.
    pub(super) fn cut(&mut self, rng: &mut fastrand::Rng) -> io::Result<usize> {
        if self.late.is_none() {
            let parts = rng.u32(0..=4);
            self.keep_some(rng, parts)?;
        }
        let late = self.late.iter_mut().flat_map(std::mem::take);
        let late: usize = late.map(|sectors| sectors.len()).sum();
        Ok(std::mem::take(&mut self.cache).len() + late)
    }

    fn answer(&mut self, request: &Request, payload: &mut Vec<u8>) -> Result<(), u32> {
        let end = request.at.checked_add(u64::from(request.bytes));
        let is_inside = end.is_some_and(|end| end <= self.bytes);
        let is_whole = (request.at | u64::from(request.bytes)).is_multiple_of(SECTOR as u64);
        if !is_inside || !is_whole {
            return Err(EINVAL);
        }
        let done = match request.kind {
            READ => {
                payload.resize(request.bytes as usize, 0);
                self.read(request.at, payload)
            }
            WRITE => self.write(request.at, payload, request.flags & FUA != 0),
            FLUSH => self.flush(),
            _ => return Err(EINVAL),
        };
        done.map_err(|error| error.raw_os_error().map_or(EINVAL, i32::unsigned_abs))
    }
}

#[derive(Debug)]
struct Request {
    flags: u16,
    kind: u16,
    cookie: [u8; 8],
    at: u64,
    bytes: u32,
}

impl Request {
    fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 28];
        from.read_exact(&mut head)?;
        let [m0, m1, m2, m3, f0, f1, k0, k1, rest @ ..] = head;
        if u32::from_be_bytes([m0, m1, m2, m3]) != REQUEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no request of NBD"));
        }
        let (cookie, rest) = rest.split_first_chunk().expect("8 of 20 bytes");
        let (at, rest) = rest.split_first_chunk().expect("8 of 12 bytes");
        let bytes = rest.first_chunk().expect("the last 4 bytes");
        Ok(Self {
            flags: u16::from_be_bytes([f0, f1]),
            kind: u16::from_be_bytes([k0, k1]),
            cookie: *cookie,
            at: u64::from_be_bytes(*at),
            bytes: u32::from_be_bytes(*bytes),
        })
    }
}

/// The disk on the network, for one guest after the other.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) disk: Arc<Mutex<Disk>>, // guards image and cache, held for one request
    listener: TcpListener,
    serving: Option<JoinHandle<()>>,
    guest: Arc<Mutex<Option<TcpStream>>>, // guards the connection under way, held for a moment
}

impl Served {
    pub(super) fn listen(disk: Disk) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 0)))?;
        Ok(Self {
            disk: Arc::new(Mutex::new(disk)),
            listener,
            serving: None,
            guest: Arc::default(),
        })
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Waits for the next guest's connection in the background, and answers it.
    pub(super) fn await_guest(&mut self) -> io::Result<()> {
        let (disk, listener) = (Arc::clone(&self.disk), self.listener.try_clone()?);
        let under_way = Arc::clone(&self.guest);
        self.serving = Some(thread::spawn(move || {
            let Ok((guest, _)) = listener.accept() else { return };
            if let (Ok(mut under_way), Ok(guest)) = (under_way.lock(), guest.try_clone()) {
                *under_way = Some(guest);
            }
            // A connection that ends is how every guest ends.
            serve(&disk, guest).ok();
        }));
        Ok(())
    }

    /// Ends the connection of a guest that is dead and cannot end it.
    pub(super) fn end_guest(&mut self) -> io::Result<()> {
        let Some(serving) = self.serving.take() else { return Ok(()) };
        let guest =
            self.guest.lock().map_err(|_| io::Error::other("the disk has panicked"))?.take();
        match guest {
            // What is closed already is as good.
            Some(guest) => drop(guest.shutdown(Shutdown::Both)),
            // A guest that has died before it connected: somebody has to.
            None => drop(TcpStream::connect(("127.0.0.1", self.port()?))),
        }
        serving.join().map_err(|_| io::Error::other("the disk has panicked"))
    }
}

fn serve(disk: &Mutex<Disk>, guest: TcpStream) -> io::Result<()> {
    guest.set_nodelay(true)?;
    let mut input = io::BufReader::with_capacity(1 << 20, guest.try_clone()?);
    let mut output = guest;
    let mut payload = Vec::new();
    loop {
        let request = Request::read(&mut input)?;
        if request.kind == DISCONNECT {
            return Ok(());
        }
        payload.clear();
        if request.kind == WRITE {
            if request.bytes as usize > REQUEST_BYTES_MAX {
                return Err(io::Error::other("a request is too long"));
            }
            payload.resize(request.bytes as usize, 0);
            input.read_exact(&mut payload)?;
        }
        let answered = disk.lock().expect("nobody panics with it").answer(&request, &mut payload);
        let error = answered.err().unwrap_or(0);
        let mut reply = Vec::with_capacity(16 + payload.len());
        reply.extend(REPLY.to_be_bytes());
        reply.extend(error.to_be_bytes());
        reply.extend(request.cookie);
        if request.kind == READ && error == 0 {
            reply.extend_from_slice(&payload);
        }
        output.write_all(&reply)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(is_late: bool) -> Disk {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 10).unwrap();
        Disk::open(file.path(), is_late).unwrap()
    }

    fn seen(disk: &Disk) -> Vec<u8> {
        let mut bytes = vec![0; 64 << 10];
        disk.read(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_flushed_survives_a_cut_and_the_rest_in_sectors_or_not() {
        let mut counts = [0; 2];
        for seed in 0..50 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut disk = disk(false);
            disk.write(4096, &[1; 4096], false).unwrap();
            disk.flush().unwrap();
            disk.write(8192, &[2; 512], true).unwrap();
            disk.write(4096, &[3; 8192], false).unwrap();
            assert!(seen(&disk)[4096..12_288].iter().all(|byte| *byte == 3), "it is read");
            disk.cut(&mut rng).unwrap();
            let after = seen(&disk);
            for (index, sector) in after[4096..8192].chunks(SECTOR).enumerate() {
                assert!(sector == [1; SECTOR] || sector == [3; SECTOR], "{seed} {index}");
                counts[usize::from(sector == [3; SECTOR])] += 1;
            }
            assert!(after[8192..8704] == [2; 512] || after[8192..8704] == [3; 512], "{seed}");
        }
        assert!(counts[0] > 50 && counts[1] > 50, "{counts:?}");
    }

    #[test]
    fn a_disk_that_is_late_is_whole_after_a_cut_as_it_was_earlier() {
        let mut disk = disk(true);
        for byte in 0..20 {
            let is_stable = byte % 2 == 0;
            disk.write(0, &[byte; 4096], is_stable).unwrap();
            assert!(seen(&disk)[..4096] == [byte; 4096], "it is read");
            if !is_stable {
                disk.flush().unwrap();
            }
        }
        disk.write(0, &[20; 512], false).unwrap();
        disk.cut(&mut fastrand::Rng::with_seed(1)).unwrap();
        let last = u8::try_from(19 - FLUSHES_LATE).unwrap();
        assert!(seen(&disk)[..4096] == [last; 4096]);
    }

    #[test]
    fn requests_that_are_not_of_this_disk_are_refused() {
        let mut disk = disk(false);
        let mut payload = vec![0; 512];
        let request = |kind, at, bytes| Request { flags: 0, kind, cookie: [0; 8], at, bytes };
        assert_eq!(disk.answer(&request(WRITE, 65_024, 512), &mut payload), Ok(()));
        for wrong in [
            request(WRITE, 65_536, 512),
            request(WRITE, 1, 512),
            request(READ, 0, 511),
            request(READ, u64::MAX, 512),
            request(9, 0, 0),
        ] {
            assert_eq!(disk.answer(&wrong, &mut payload), Err(EINVAL), "{wrong:?}");
        }
    }
}
