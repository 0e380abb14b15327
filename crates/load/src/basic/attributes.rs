//! Test 4: modes are set, and read.

use super::check::{Ended, Expect};
use super::lines::Work;
use super::place::Place;
use super::site::{Site, make_file};
use super::tree::file_name;

/// What is set, in turn.
const MODES: [u32; 2] = [0, 0o666];

pub(super) async fn run<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    let (place, sizes) = (site.place, site.sizes);
    for number in 0..sizes.files {
        make_file(site, dir, &file_name(number)).await?;
    }
    site.start();
    for _ in 0..sizes.count {
        for number in 0..sizes.files {
            let name = file_name(number);
            for mode in MODES {
                let expect = Expect { mode: Some(mode), ..Expect::EMPTY };
                let set = place.set_mode(dir, &name, mode);
                let set = site.must("chmod", &name, set).await?;
                site.attributes_of_reply("chmod", &name, expect, set.stat)?;
                site.stat(dir, &name, expect).await?;
            }
        }
    }
    site.stop();
    let calls = u64::from(sizes.files) * u64::from(sizes.count) * 2;
    site.line(Work::Attributes, [calls, u64::from(sizes.files), 0]);
    Ok(())
}
