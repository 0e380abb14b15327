//! Whether all that lies in a cache is what its checksums say.

use std::path::Path;

use cache::survey::{Blocks, Found, Looked};
use harness::exit::Failure;
use harness::output;
use perf::words::counted;

use super::exports::{origins, walk};

/// What was seen.
#[derive(Default)]
struct Verified {
    files: u64,
    directories: u64,
    blocks: u64,
    bytes: u64,
    /// Damaged files, with what is wrong.
    damaged: Vec<String>,
    /// Lists of pinned files that are damaged.
    pins: Vec<String>,
    /// Folders of which it is not known whose they are.
    identities: Vec<String>,
}

impl Verified {
    fn of(dir: &Path) -> Result<Self, Failure> {
        let mut verified = Self::default();
        for found in origins(dir)? {
            verified.texts(&found);
            walk(&found, Blocks::All, &mut |looked| verified.add(looked))?;
        }
        Ok(verified)
    }

    /// The small texts of an export's folder.
    fn texts(&mut self, found: &Found) {
        let path = found.path.display();
        if let Err(cause) = &found.identity {
            self.identities.push(format!("{path}: its identity is {cause}"));
        }
        if cache::pins::read(found.dir()).is_ok_and(|pins| !pins.is_whole) {
            self.pins.push(format!("{path}: its list of pinned files is damaged"));
        }
    }

    fn add(&mut self, Looked { name, header, catalog, wrong, .. }: Looked) {
        if catalog.is_some() {
            self.directories += 1;
            return;
        }
        self.files += 1;
        let wrong = match header {
            Ok(header) => {
                self.blocks += header.blocks().count() as u64;
                self.bytes += header.data_bytes();
                (!wrong.is_empty()).then(|| counted(wrong.len() as u64, "block"))
            }
            Err(error) => Some(error.to_string()),
        };
        self.damaged
            .extend(wrong.map(|wrong| format!("{}-{:x}: {wrong}", name.file, name.segment)));
    }

    /// The damaged files, the first of them named.
    fn damaged_files(&self) -> Option<String> {
        /// Of damaged files named.
        const NAMED_MAX: usize = 20;
        let named: Vec<&str> = self.damaged.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = match self.damaged.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (damaged, files, named) = (self.damaged.len(), self.files, named.join(", "));
        (damaged > 0)
            .then(|| format!("{damaged} of {files} local files are damaged: {named}{more}"))
    }
}

pub(super) fn run(dir: &Path) -> Result<(), Failure> {
    let verified = Verified::of(dir)?;
    let Verified { files, directories, blocks, bytes, pins, identities, .. } = &verified;
    let texts = pins.iter().chain(identities).cloned();
    let wrong: Vec<_> = texts.chain(verified.damaged_files()).collect();
    if wrong.is_empty() {
        return output::print(&format!(
            "whole: {}, {} of {bytes} bytes, directories: {directories}\n",
            counted(*files, "local file"),
            counted(*blocks, "block"),
        ));
    }
    let advice = match pins.is_empty() {
        true => "nothing need be done: what is damaged is missed, and replaced when it is used; \
                 look at the disk"
            .to_owned(),
        false => format!("nfskit cache unpin {}, and then pin them anew", dir.display()),
    };
    Err(Failure::check(wrong.join("; "), advice))
}
