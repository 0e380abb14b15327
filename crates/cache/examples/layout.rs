//! What an index of blocks costs in a database, and what it costs to have none:
//! `layout DIR FILES [BLOCKS [GIB]]` makes so many small files in a cache and reads them again in a
//! second process's place, then files with holes that are so large together, then puts so many rows
//! into redb.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use cache::{Cache, Key, Limits, Origin, Time, Token};
use redb::{Database, TableDefinition};
use rustix::time::{ClockId, clock_gettime};

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("blocks");
const FILE_BYTES: u64 = 4000;
const BATCH: u64 = 10_000;

/// A file with holes: a page of data in each MiB.
const SPARSE_BYTES: u64 = 1 << 30;
const STRIDE: u64 = 1 << 20;
const PAGE: usize = 4096;

fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn rss_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    (pages.unwrap_or(0) * 4096) >> 20
}

fn key(number: u64) -> Key {
    Key::new(&[number.to_be_bytes(), [7; 8], [8; 8], [9; 8]].concat()).expect("32 bytes")
}

fn token() -> Token {
    let time = Time { seconds: 1, nanos: 1 };
    Token { size: FILE_BYTES, mtime: time, ctime: time, fileid: 1, change: 0 }
}

fn open(dir: &Path) -> Cache {
    let origin = Origin { name: "nfs://layout/x".to_owned(), root: vec![1] };
    let limits = Limits { bytes_max: 1 << 40, files_max: 100_000_000, ..Limits::default() };
    Cache::open(dir, &origin, 65_536, limits, Box::new(|event| println!("{event:?}")))
        .expect("a directory")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().expect("DIR FILES [BLOCKS]");
    let mut number = || arguments.next().and_then(|number| number.parse::<u64>().ok());
    let (files, blocks) = (number().unwrap_or(10_000), number().unwrap_or(0));
    let gib = number().unwrap_or(0);
    let dir = Path::new(&dir);
    if files > 0 {
        without_index(&dir.join("cache"), files);
    }
    if gib > 0 {
        sparse(&dir.join("sparse"), gib);
    }
    if blocks > 0 {
        with_index(&dir.join("index.redb"), blocks);
    }
}

fn without_index(dir: &Path, files: u64) {
    let began = now();
    let cache = open(dir);
    let data = Bytes::from(vec![1; usize::try_from(FILE_BYTES).unwrap_or(0)]);
    for number in 0..files {
        cache.store(&key(number), &token(), 0, data.clone());
        if number % 1000 == 0 {
            cache.settle();
        }
    }
    cache.settle();
    drop(cache);
    println!("{files} files stored in {:.2?}", now() - began);
    let began = now();
    let cache = open(dir);
    let opened = now() - began;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let read = |number| runtime.block_on(cache.read(&key(number), &token(), 0, 1 << 20)).is_ok();
    let is_hit = read(files / 2);
    let first = now() - began;
    while !cache.is_counted() {
        std::thread::yield_now();
    }
    println!(
        "opened in {opened:.2?}, first read (hit: {is_hit}) after {first:.2?}, counted after \
         {:.2?}, {} MiB resident",
        now() - began,
        rss_mib()
    );
    let began = now();
    let hits = (0..files).step_by(7).filter(|number| read(number * 7919 % files)).count();
    println!("{hits} random reads in {:.2?}", now() - began);
}

/// What a MiB of a file with holes has.
fn stripe(file: u64, at: u64) -> Vec<u8> {
    let mut data = vec![0; usize::try_from(STRIDE).unwrap_or(0)];
    data[..PAGE].fill(u8::try_from((file + at / STRIDE) % 255).unwrap_or(0) + 1);
    data
}

fn sparse(dir: &Path, gib: u64) {
    let began = now();
    let cache = open(dir);
    let token = Token { size: SPARSE_BYTES, ..token() };
    for file in 0..gib * (1 << 30) / SPARSE_BYTES {
        for at in (0..SPARSE_BYTES).step_by(usize::try_from(STRIDE).unwrap_or(1)) {
            cache.store(&key(file), &token, at, stripe(file, at).into());
            // What comes faster than the disk takes it is not stored.
            if at % (16 * STRIDE) == 0 {
                cache.settle();
            }
        }
    }
    cache.settle();
    let statistics = cache.statistics();
    println!(
        "{} GiB with holes stored in {:.2?}, {} MiB not; {} MiB in {} files, {} MiB resident",
        statistics.stored_bytes >> 30,
        now() - began,
        statistics.unstored_bytes >> 20,
        statistics.filled.bytes >> 20,
        statistics.filled.files,
        rss_mib()
    );
    drop(cache);
    let began = now();
    let cache = open(dir);
    let opened = now() - began;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let count = u32::try_from(STRIDE).unwrap_or(0);
    let is_right = |file: u64, at: u64| {
        let read = runtime.block_on(cache.read(&key(file), &token, at, count));
        read.is_ok_and(|read| read == stripe(file, at))
    };
    let is_hit = is_right(0, 0);
    let first = now() - began;
    while !cache.is_counted() {
        std::thread::yield_now();
    }
    let statistics = cache.statistics();
    println!(
        "opened in {opened:.2?}, first read (right: {is_hit}) after {first:.2?}, counted after \
         {:.2?}: {} MiB in {} files, {} MiB resident",
        now() - began,
        statistics.filled.bytes >> 20,
        statistics.filled.files,
        rss_mib()
    );
    let began = now();
    let stripes = gib * (1 << 30) / STRIDE;
    let places = (0..stripes).step_by(7).map(|number| number * 7919 % stripes * STRIDE);
    let (mut reads, mut right) = (0, 0);
    for place in places {
        reads += 1;
        right += u64::from(is_right(place / SPARSE_BYTES, place % SPARSE_BYTES));
    }
    println!("{right} of {reads} random reads of a MiB right in {:.2?}", now() - began);
}

fn with_index(path: &Path, blocks: u64) {
    let began = now();
    let database = Database::create(path).expect("a database");
    for first in (0..blocks).step_by(usize::try_from(BATCH).unwrap_or(1)) {
        let transaction = database.begin_write().expect("a transaction");
        {
            let mut table = transaction.open_table(ROWS).expect("a table");
            for number in first..(first + BATCH).min(blocks) {
                // As blocks come: those of a file together, files in no order.
                let file = (number / 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let row = [&file.to_be_bytes()[..], &number.to_be_bytes()[4..]].concat();
                table.insert(&row[..], &[0; 16][..]).expect("room");
            }
        }
        transaction.commit().expect("a disk");
    }
    println!("{blocks} rows in {:.2?}", now() - began);
    drop(database);
    let began = now();
    let database = Database::create(path).expect("a database");
    println!("opened in {:.2?}", now() - began);
    let began = now();
    let transaction = database.begin_read().expect("a transaction");
    let table = transaction.open_table(ROWS).expect("a table");
    let looks = blocks / 100;
    for number in (0..looks).map(|look| look * 7919 % blocks) {
        let file = (number / 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let row = [&file.to_be_bytes()[..], &number.to_be_bytes()[4..]].concat();
        assert!(table.get(&row[..]).expect("a disk").is_some());
    }
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    println!(
        "{looks} random rows in {:.2?}; {} MiB on the disk, {} MiB resident",
        now() - began,
        bytes >> 20,
        rss_mib()
    );
}
