//! Test 3: the way up and down.

use super::check::{Ended, Expect};
use super::lines::Work;
use super::place::{Above, Place};
use super::site::Site;

pub(super) async fn run<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    let place = site.place;
    let own = site.must("stat", ".", place.stat_dir(dir)).await?;
    site.compare(|| "stat .".to_owned(), Expect::DIR, &own)?;
    let above = Expect { fileid: site.above, ..Expect::DIR };
    site.start();
    for _ in 0..site.sizes.count {
        let found = site.must("getcwd", ".", place.path_of(dir)).await?;
        let Above { path, parent } = found;
        site.attributes_of_reply("lookup", "..", above, parent)?;
        let seen = site.must("stat", "of the path", place.stat_path(&path)).await?;
        site.compare(|| "stat of the path".to_owned(), Expect::all(&own), &seen)?;
    }
    site.stop();
    site.line(Work::LookedUp, [2 * u64::from(site.sizes.count), 0, 0]);
    site.gone(dir, "no.such.name", "a name that nobody has").await
}
