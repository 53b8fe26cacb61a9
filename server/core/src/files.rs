//! Opens files that users name.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

/// The size limit of a file with settings, a certificate or a key. Unit: bytes.
pub const SETTINGS_BYTES_MAX: u64 = 16 << 20;

/// The size limit of a file with znodes. Unit: bytes.
pub const SEED_BYTES_MAX: u64 = 1 << 30;

/// Reads JSON in which no object has a key twice.
///
/// # Errors
/// When the text is not JSON, or an object has a key twice. The error names line and column.
#[cfg(feature = "seed-files")]
pub fn parse_json(text: &[u8]) -> Result<serde_json::Value, serde_json::Error> {
    crate::trees::files::json::parse(text)
}

/// Opens a file for reading. Refuses anything but a regular file: a pipe or a device may never yield a
/// byte, or never end.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Checks before opening, since opening a device can have an effect.
    check_regular(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // The file may have been replaced since, and opening a pipe would wait for a writer.
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        options.custom_flags(nonblocking);
    }
    let file = options.open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file.
///
/// # Errors
/// When it cannot be read, is not a regular file, or has more than `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(path)?;
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("the file exceeds the limit of {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}

/// Reads a regular file as text.
///
/// # Errors
/// Those of [`read`], and when the file is not UTF-8.
pub fn read_to_string(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let text = format!("not a text in UTF-8: the byte at offset {at} is invalid");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let text = format!("{}, not a regular file", kind(metadata));
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

fn kind(metadata: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a named pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_block_device() || kind.is_char_device() {
            return "a device";
        }
    }
    if metadata.is_dir() {
        "a directory"
    } else {
        "a special file"
    }
}
