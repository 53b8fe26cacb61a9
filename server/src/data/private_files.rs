//! Files and directories that only their owner may read, their locks, and which file has a name.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    path::Path,
};

/// A file that is made is only for the server's user: it has data, and digests of passwords.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Makes a file for the server's user alone, or empties one that is there and makes it so.
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

/// Makes a directory, and those above it that are missing, for the server's user alone; those that
/// are there stay as they are.
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

/// Whether an open file still has this name. True if the system does not tell.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let Ok(metadata) = file.metadata() else {
        return true;
    };
    match Identity::of(path) {
        Ok(there) => there == Identity::from(&metadata),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Writes over what is there.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileExt as _;
        file.write_all_at(bytes, offset)
    }
    #[cfg(not(unix))]
    {
        let _ = (file, bytes, offset);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Locks a file or directory; false if another process has locked it.
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

#[cfg(not(unix))]
pub(crate) fn try_lock(_: &File) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}
