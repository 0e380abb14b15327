//! Test 9: the state of the file system is requested.

use super::check::Ended;
use super::lines::Work;
use super::place::Place;
use super::site::Site;

pub(super) async fn run<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    let place = site.place;
    site.start();
    for _ in 0..site.sizes.count {
        let space = site.must("statfs", ".", place.space(dir)).await?;
        if space.free > space.total {
            let expected = format!("at most {} bytes free, as there are", space.total);
            return Err(site.failed("statfs .", expected, space.free.to_string()));
        }
        if space.available > space.free {
            let expected = format!("at most {} bytes for us, as are free", space.free);
            return Err(site.failed("statfs .", expected, space.available.to_string()));
        }
    }
    site.stop();
    site.line(Work::Statfs, [u64::from(site.sizes.count), 0, 0]);
    Ok(())
}
