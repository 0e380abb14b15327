//! Small files that users name: read to a bound, whatever the name leads to.

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The text of a file of at most so many bytes. Neither a device without an end nor a pipe without
/// a writer holds it up: what is no file is refused.
///
/// # Errors
/// It cannot be opened, is no file, is longer, or is no UTF-8.
pub fn text(path: &Path, bytes_max: u64) -> Result<String, Error> {
    // Opening a FIFO would wait for its writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "a device, pipe or socket, not a file"));
    }
    let mut text = String::new();
    // Its length may change meanwhile.
    file.take(bytes_max + 1).read_to_string(&mut text)?;
    match text.len() as u64 > bytes_max {
        true => Err(Error::new(ErrorKind::FileTooLarge, format!("more than {bytes_max} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_file_is_read_to_its_bound_and_what_is_no_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "12345").unwrap();
        assert_eq!(text(&at("file"), 5).unwrap(), "12345");
        let kind = |path: &Path| text(path, 4).unwrap_err().kind();
        assert_eq!(kind(&at("file")), ErrorKind::FileTooLarge);
        assert_eq!(kind(&at("absent")), ErrorKind::NotFound);
        assert_eq!(kind(folder.path()), ErrorKind::IsADirectory);
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, at("fifo"), FileType::Fifo, mode, 0).unwrap();
        for path in [&at("fifo"), Path::new("/dev/zero")] {
            assert_eq!(kind(path), ErrorKind::InvalidInput, "{}", path.display());
        }
    }
}
