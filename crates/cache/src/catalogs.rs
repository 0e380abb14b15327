//! Catalogs of a cache: reading and keeping them.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use crate::catalog::{Catalog, HEAD_BYTES};
use crate::counts::Cause;
use crate::header::Geometry;
use crate::keeper::{Keeper, drop_segment};
use crate::key::{Key, Name, Token};
use crate::limits::Filled;
use crate::medium::Stored;
use crate::shared::{Event, Shared};

/// Where the catalog of a directory lies.
pub(crate) fn name_of(key: &Key) -> Name {
    Name { file: key.hash(), segment: 0 }
}

impl Shared {
    /// What is known of a directory in this state; it may block on a disk.
    pub(crate) fn catalog(&self, key: &Key, token: &Token) -> Result<Catalog, Cause> {
        let name = name_of(key);
        if self.is_missing(&name) {
            return Err(self.why_missing(&name));
        }
        let bytes = match self.catalog_bytes(name) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(self.why_missing(&name)),
            Err(error) => return Err(self.failed(&error)),
        };
        match Catalog::decode(&bytes) {
            Ok(catalog) if catalog.key != *key => Err(Cause::Cold),
            Ok(catalog) if catalog.token != *token => Err(Cause::Changed),
            Ok(catalog) => {
                self.evictor.lock().used(&name, 0, 1);
                Ok(catalog)
            }
            // A power failure leaves files without their content.
            Err(_) if bytes.iter().all(|byte| *byte == 0) => Err(Cause::Cold),
            Err(error) => {
                self.gone.lock().put(name, Cause::Damaged);
                self.tell(Event::Damaged { name, what: error.to_string() });
                Err(Cause::Damaged)
            }
        }
    }

    fn catalog_bytes(&self, name: Name) -> io::Result<Option<Vec<u8>>> {
        let Some(stored) = self.medium.open(name)? else { return Ok(None) };
        catalog_bytes(&*stored).map(Some)
    }
}

/// All of a catalog; of what is none, its beginning.
pub(crate) fn catalog_bytes(stored: &dyn Stored) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEAD_BYTES];
    let count = stored.read(0, &mut bytes, false)?;
    let len = Catalog::len_of(&bytes[..count]).unwrap_or(count);
    bytes.resize(len, 0);
    if let Some(rest) = bytes.get_mut(HEAD_BYTES..) {
        let count = HEAD_BYTES + stored.read(HEAD_BYTES as u64, rest, false)?;
        bytes.truncate(count);
    }
    Ok(bytes)
}

impl Keeper {
    /// Keeps a catalog, in place of what was there.
    pub(crate) fn keep_catalog(&mut self, shared: &Shared, name: Name, bytes: &Bytes) {
        let disk_bytes = Geometry::disk_bytes(bytes.len() as u64);
        let more = Filled { bytes: disk_bytes, files: 1 };
        if self.is_at_rest() || !self.make_room(shared, more) {
            // What is there is of before.
            return drop_segment(shared, name, Cause::Changed);
        }
        shared.closed(&name);
        let done = shared.medium.make(name).and_then(|stored| stored.write(0, bytes));
        if self.took(shared, done) {
            shared.evictor.lock().stored(name, disk_bytes);
            shared.counts.stored_catalogs.fetch_add(1, Relaxed);
        } else {
            drop_segment(shared, name, Cause::Failed);
        }
    }
}
