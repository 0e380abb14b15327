//! Test 8: symbolic links are made, read and removed.

use super::check::{Ended, Expect};
use super::lines::Work;
use super::place::{Known, Place};
use super::site::{Site, make_file};
use super::tree::file_name;

/// Where the suite's links lead, with a number behind it.
const TARGET: &str = "/this/is/a/symlink";

pub(super) async fn run<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    let (place, sizes) = (site.place, site.sizes);
    site.start();
    for _ in 0..sizes.count {
        for number in 0..sizes.files {
            let (name, target) = (file_name(number), format!("{TARGET}{number}"));
            let made = site.must("symlink", &name, place.symlink(dir, &name, &target)).await?;
            site.attributes_of_reply("symlink", &name, Expect::SYMLINK, made.stat)?;
            site.stat(dir, &name, Expect::SYMLINK).await?;
            let read = site.must("readlink", &name, place.read_link(dir, &name)).await?;
            site.attributes_of_reply("readlink", &name, Expect::SYMLINK, read.stat)?;
            if read.value != target.as_bytes() {
                let seen = format!("{:?}", String::from_utf8_lossy(&read.value));
                return Err(site.failed(format!("readlink {name}"), format!("{target:?}"), seen));
            }
            site.must("remove", &name, place.remove(dir, &name)).await?;
        }
    }
    site.stop();
    let calls = u64::from(sizes.files) * u64::from(sizes.count) * 2;
    site.line(Work::Symlinks, [calls, u64::from(sizes.files), 0]);
    let name = file_name(0);
    site.gone(dir, &name, "after its removal").await?;
    make_file(site, dir, &name).await?;
    let (symlink, taken) = (place.symlink(dir, &name, TARGET), &[Known::Exist]);
    site.must_fail("symlink over", &name, symlink, taken, "EEXIST").await
}
