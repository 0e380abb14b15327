//! Archives: what `--collect` makes and sosreport leaves, packed with gzip or not.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::saved::{BYTES_MAX, ENTRIES_MAX};
use super::{Allowance, Files};

/// How an archive can be packed that is not read here.
const OTHERS: [(&[u8], &str); 3] = [
    (&[0xfd, b'7', b'z', b'X', b'Z'], "is packed with xz: unpack it first (tar xJf)"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "is packed with zstd: unpack it first (tar --zstd -xf)"),
    (b"BZh", "is packed with bzip2: unpack it first (tar xjf)"),
];

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether this is an archive, packed or not, by its beginning.
pub(super) fn is_archive(head: &[u8]) -> bool {
    is_gzip(head) || is_tar(head)
}

fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// Why this cannot be read, if it is an archive of another kind.
pub(super) fn other(head: &[u8]) -> Option<&'static str> {
    OTHERS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, why)| *why)
}

pub(super) fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&GZIP)
}

/// The files of an archive. Where it ends too early, those before are given, and that is noted.
pub(super) fn unpacked(name: &str, from: impl Read, is_packed: bool) -> Files {
    match is_packed {
        true => entries(name, GzDecoder::new(from)),
        false => entries(name, from),
    }
}

fn entries(name: &str, from: impl Read) -> Files {
    let (mut files, mut allowance) = (Files::default(), Allowance::default());
    let mut archive = tar::Archive::new(from.take(BYTES_MAX));
    let listed = match archive.entries() {
        Ok(listed) => listed,
        Err(cause) => {
            files.note(name, cause.to_string());
            return files;
        }
    };
    for (count, entry) in listed.enumerate() {
        let taken = entry.and_then(|mut entry| {
            let is_file = entry.header().entry_type().is_file();
            let path = entry.path()?.to_string_lossy().into_owned();
            let path = path.trim_start_matches("./").to_owned();
            if is_file && allowance.takes(&path, entry.size()) {
                let mut text = Vec::new();
                entry.read_to_end(&mut text)?;
                files.put(path, text);
            } else if is_file {
                files.note(path, format!("{} bytes are too many for counters", entry.size()));
            }
            Ok(())
        });
        if let Err(cause) = taken {
            files.note(name, format!("ends too early, or is broken: {cause}"));
            break;
        }
        if count >= ENTRIES_MAX {
            files.note(name, "has too many files; the rest is left out");
            break;
        }
    }
    files
}

/// Writes an archive of these files, packed with gzip.
///
/// # Errors
/// It cannot be written.
pub fn pack(files: &Files, seconds_since_1970: u64, out: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::default()));
    for (path, text) in files.all() {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(seconds_since_1970);
        archive.append_data(&mut header, format!("nfskit-doctor/{path}"), text)?;
    }
    archive.into_inner()?.finish()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_can_be_unpacked_and_half_of_it_in_part() {
        let mut files = Files::default();
        files.put("1/proc/uptime", "10.0 1\n");
        files.put("2/proc/uptime", "20.0 1\n");
        let mut packed = Vec::new();
        pack(&files, 7, &mut packed).unwrap();
        assert!(is_archive(&packed));
        let again = unpacked("a.tar.gz", &packed[..], true);
        assert_eq!(again.text("nfskit-doctor/2/proc/uptime"), Some(&b"20.0 1\n"[..]));
        assert!(again.notes.is_empty());
        for end in 2..packed.len() {
            let part = unpacked("a.tar.gz", &packed[..end], true);
            assert!(part.all().count() <= 2);
        }
        let half = unpacked("a.tar.gz", &packed[..packed.len() / 2], true);
        assert!(half.notes.iter().any(|note| note.path == "a.tar.gz"), "{half:?}");
        assert!(other(b"\xfd7zXZ\0").unwrap().contains("xJf") && other(&packed).is_none());
    }
}
