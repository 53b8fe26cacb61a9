//! Creates files and directories that only their owner may read, locks files, and detects replaced
//! ones.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    path::Path,
};

/// Makes a file that these options create private to the server's user: our files have data, and
/// digests of passwords.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Creates a file private to the server's user; truncates an existing one and makes it private.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let file = private(&mut options).open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Creates a directory and its missing parents, private to the server's user. Existing directories
/// keep their permissions.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// The identity of a file or directory, independent of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::from(&metadata))
    }

    fn from(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            Self {
                device: metadata.dev(),
                inode: metadata.ino(),
            }
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            Self {
                device: 0,
                inode: 0,
            }
        }
    }
}

/// Returns whether an open file still has this name; true if the system cannot say.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let Ok(metadata) = file.metadata() else {
        return true;
    };
    match Identity::of(path) {
        Ok(there) => there == Identity::from(&metadata),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Overwrites bytes of a file in place.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileExt as _;
        file.write_all_at(bytes, offset)
    }
    // Windows may write a part, and moves the position of the file, which nothing else uses.
    #[cfg(windows)]
    {
        use std::os::windows::fs::FileExt as _;
        let mut written = 0;
        while written < bytes.len() {
            match file.seek_write(&bytes[written..], offset + written as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => written += count,
            }
        }
        Ok(())
    }
}

/// Opens a directory, for locking it and for keeping its inode in use.
pub(crate) fn open_dir(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt as _;
        /// Without it Windows opens no directory.
        const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
        options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
    }
    options.open(path)
}

/// Syncs a directory: that makes the renames in it durable. Windows has no such call.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    open_dir(path)?.sync_all()?;
    #[cfg(windows)]
    let _ = path;
    Ok(())
}

/// Opens a file with these options and locks it. `None` if another process has locked it.
#[cfg(unix)]
pub(crate) fn open_locked(options: &mut OpenOptions, path: &Path) -> io::Result<Option<File>> {
    let file = options.open(path)?;
    Ok(try_lock(&file)?.then_some(file))
}

/// Opens a file that no other process can then open for writing, nor delete. `None` if another process
/// has opened it so.
#[cfg(windows)]
pub(crate) fn open_locked(options: &mut OpenOptions, path: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt as _;
    // Reading is allowed: the next server reads the note before it asks for the lock.
    const FILE_SHARE_READ: u32 = 1;
    const ERROR_SHARING_VIOLATION: i32 = 32;
    match options.share_mode(FILE_SHARE_READ).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Locks a file or directory. Returns false if another process has locked it.
#[cfg(unix)]
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    use rustix::{
        fs::{FlockOperation, flock},
        io::Errno,
    };
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Windows locks no directory.
#[cfg(windows)]
pub(crate) fn try_lock(_: &File) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}
