//! Test 5: a file is written, verified, and read.

use bytes::Bytes;

use super::CALL_BYTES;
use super::check::{Ended, Expect};
use super::lines::Work;
use super::place::{Kind, Place};
use super::site::Site;

/// The suite's name.
pub(super) const NAME: &str = "bigfile";

pub(super) async fn run<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    let (count, bytes) = (site.sizes.count, site.plan.file_bytes);
    let data = pattern();
    site.start();
    for _ in 0..count {
        write(site, dir, &data, bytes).await?;
    }
    site.stop();
    site.line(Work::Wrote, [bytes, u64::from(count), 0]);
    read(site, dir, bytes, Some(&data)).await?;
    site.start();
    for _ in 0..count {
        read(site, dir, bytes, None).await?;
    }
    site.stop();
    site.line(Work::Read, [bytes, u64::from(count), 0]);
    let place = site.place;
    site.must("remove", NAME, place.remove(dir, NAME)).await?;
    site.gone(dir, NAME, "after its removal").await
}

/// The content of each call: the numbers from 0 on, as integers of 4 bytes.
fn pattern() -> Bytes {
    (0..CALL_BYTES / 4).flat_map(u32::to_ne_bytes).collect()
}

async fn write<P: Place>(
    site: &mut Site<'_, P>,
    dir: &P::Dir,
    data: &Bytes,
    bytes: u64,
) -> Result<(), Ended> {
    let place = site.place;
    let made = site.must("create", NAME, place.create(dir, NAME)).await?;
    site.attributes_of_reply("create", NAME, Expect::EMPTY, made.stat)?;
    let mut file = made.value;
    site.stat(dir, NAME, Expect::EMPTY).await?;
    let mut at = 0;
    while at < bytes {
        let piece = data.slice(..data.len().min(usize::try_from(bytes - at).unwrap_or(usize::MAX)));
        let written = place.write(&mut file, at, &piece);
        let written = site.must("write to", NAME, written).await?;
        at += piece.len() as u64;
        let expect = Expect { size: Some(at), ..Expect::EMPTY };
        site.attributes_of_reply("write to", NAME, expect, written.stat)?;
    }
    site.must("close", NAME, place.close(file)).await?;
    site.stat(dir, NAME, Expect { size: Some(bytes), ..Expect::EMPTY }).await?;
    Ok(())
}

/// Reads the file; with `expect` compares each byte, and looks beyond the end.
async fn read<P: Place>(
    site: &mut Site<'_, P>,
    dir: &P::Dir,
    bytes: u64,
    expect: Option<&Bytes>,
) -> Result<(), Ended> {
    let place = site.place;
    let whole = Expect { kind: Some(Kind::File), size: Some(bytes), ..Expect::default() };
    let opened = site.must("open", NAME, place.open(dir, NAME)).await?;
    site.attributes_of_reply("lookup", NAME, whole, opened.stat)?;
    let file = opened.value;
    let mut at = 0;
    while at < bytes {
        let count = u64::from(CALL_BYTES).min(bytes - at);
        let requested = u32::try_from(count).unwrap_or(CALL_BYTES);
        let got = site.must("read of", NAME, place.read(&file, at, requested)).await?;
        site.attributes_of_reply("read of", NAME, whole, got.stat)?;
        let step = || format!("read of {NAME} at {at}");
        if got.value.len() as u64 != count {
            let seen = format!("{} bytes", got.value.len());
            return Err(site.failed(step(), format!("{count} bytes"), seen));
        }
        let differ = expect.and_then(|expect| {
            let pairs = got.value.iter().zip(expect);
            pairs.enumerate().find(|(_, (got, expect))| got != expect)
        });
        if let Some((place, (got, expect))) = differ {
            let expected = format!("byte {:#04x} at {}", expect, at + place as u64);
            return Err(site.failed(step(), expected, format!("{got:#04x}")));
        }
        at += count;
    }
    if expect.is_some() {
        let beyond = site.must("read of", NAME, place.read(&file, bytes, CALL_BYTES)).await?;
        if !beyond.value.is_empty() {
            let step = format!("read of {NAME} at its end, {bytes}");
            return Err(site.failed(step, "nothing", format!("{} bytes", beyond.value.len())));
        }
    }
    site.must("close", NAME, place.close(file)).await
}
