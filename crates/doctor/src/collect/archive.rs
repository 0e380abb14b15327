//! Archives: what `--collect` makes and sosreport leaves, packed with gzip, xz or zstd, or not.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

use super::saved::{BYTES_MAX, ENTRIES_MAX, canonical};
use super::{Allowance, Files};

/// How an archive is packed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Packing {
    Gzip,
    None,
    Xz,
    Zstd,
}

/// How an archive can be packed that is not read here.
const OTHERS: [(&[u8], &str); 1] = [(b"BZh", "is packed with bzip2: unpack it first (tar xjf)")];

const PACKED: [(&[u8], Packing); 3] = [
    (&[0x1f, 0x8b], Packing::Gzip),
    (&[0xfd, b'7', b'z', b'X', b'Z'], Packing::Xz),
    (&[0x28, 0xb5, 0x2f, 0xfd], Packing::Zstd),
];

/// Memory of xz, KiB: its largest preset asks for 65 MiB.
const XZ_KIB_MAX: u32 = 128 << 10;

/// How this archive is packed, by its beginning; none where it is no archive.
pub(super) fn packing(head: &[u8]) -> Option<Packing> {
    let is_tar = head.get(257..262) == Some(b"ustar");
    let packed = PACKED.iter().find(|(magic, _)| head.starts_with(magic));
    packed.map(|(_, packing)| *packing).or_else(|| is_tar.then_some(Packing::None))
}

/// Why this cannot be read, if it is an archive of another kind.
pub(super) fn other(head: &[u8]) -> Option<&'static str> {
    OTHERS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, why)| *why)
}

/// The files of an archive. Where it ends too early, those before are given, and that is noted.
pub(super) fn unpacked(name: &str, from: impl Read, packing: Packing) -> Files {
    match packing {
        Packing::Gzip => entries(name, GzDecoder::new(from)),
        Packing::None => entries(name, from),
        Packing::Xz => entries(name, XzReader::new_mem_limit(from, true, XZ_KIB_MAX)),
        Packing::Zstd => match StreamingDecoder::new(from) {
            Ok(decoder) => entries(name, decoder),
            Err(cause) => {
                let mut files = Files::default();
                files.note(name, format!("is no zstd: {cause}"));
                files
            }
        },
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
        let taken = entry.and_then(|entry| take(&mut files, &mut allowance, entry));
        let ends = match taken {
            Err(cause) => format!("ends too early, or is broken: {cause}"),
            Ok(()) if count >= ENTRIES_MAX => "has too many files; the rest is left out".to_owned(),
            Ok(()) => continue,
        };
        files.note(name, ends);
        break;
    }
    files
}

fn take(
    files: &mut Files,
    allowance: &mut Allowance,
    mut entry: tar::Entry<'_, impl Read>,
) -> io::Result<()> {
    if !entry.header().entry_type().is_file() {
        return Ok(());
    }
    let path = entry.path()?.to_string_lossy().into_owned();
    let path = canonical(path.trim_start_matches("./"));
    if !allowance.takes(&path, entry.size()) {
        files.note(path, format!("{} bytes are too many for counters", entry.size()));
        return Ok(());
    }
    let mut text = Vec::new();
    entry.read_to_end(&mut text)?;
    files.put_once(path, text);
    Ok(())
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
        assert_eq!(packing(&packed), Some(Packing::Gzip));
        let again = unpacked("a.tar.gz", &packed[..], Packing::Gzip);
        assert_eq!(again.text("nfskit-doctor/2/proc/uptime"), Some(&b"20.0 1\n"[..]));
        assert!(again.notes.is_empty());
        for end in 2..packed.len() {
            let part = unpacked("a.tar.gz", &packed[..end], Packing::Gzip);
            assert!(part.all().count() <= 2);
        }
        let half = unpacked("a.tar.gz", &packed[..packed.len() / 2], Packing::Gzip);
        assert!(half.notes.iter().any(|note| note.path == "a.tar.gz"), "{half:?}");
        assert!(other(b"BZh9").unwrap().contains("xjf") && other(&packed).is_none());
    }

    /// An archive as sosreport makes one by default, and the same packed with zstd.
    const XZ: &[u8] = include_bytes!("testdata/sosreport.tar.xz");
    const ZSTD: &[u8] = include_bytes!("testdata/sosreport.tar.zst");

    #[test]
    fn a_sosreport_has_its_files_where_links_of_proc_lead() {
        for (packed, kind) in [(XZ, Packing::Xz), (ZSTD, Packing::Zstd)] {
            assert_eq!(packing(packed), Some(kind));
            let files = unpacked("s", packed, kind);
            let root = "sosreport-host-2026-11-25-abcdefg";
            for path in ["proc/self/mountstats", "proc/net/rpc/nfs", "proc/net/snmp"] {
                assert!(files.text(&format!("{root}/{path}")).is_some(), "{path}: {files:?}");
            }
            assert!(files.notes.is_empty(), "{:?}", files.notes);
            let evidence = crate::Evidence::of(files);
            assert_eq!(evidence.last.mounts.len(), 1);
            assert!(evidence.last.protocols.is_some() && evidence.last.client.is_some());
            for end in 0..packed.len() {
                unpacked("s", &packed[..end], kind);
            }
        }
    }

    #[test]
    fn what_wants_too_much_memory_is_refused() {
        // LZMA2's dictionary of 4 GiB, in the header of the first block; its check is anything.
        let mut wide = XZ.to_vec();
        let at = wide.windows(2).position(|two| two == [0x21, 0x01]).unwrap();
        wide[at + 2] = 40;
        let files = unpacked("s", &wide[..], Packing::Xz);
        assert!(files.is_empty() && !files.notes.is_empty(), "{files:?}");
    }
}
