//! Access lists as text.

use minikeeper_protocol::{Acl, AclList, Perms, Ustring};

/// The letters of the permissions, in the order in which they are written.
const LETTERS: [(char, Perms); 5] = [
    ('c', Perms::CREATE),
    ('d', Perms::DELETE),
    ('r', Perms::READ),
    ('w', Perms::WRITE),
    ('a', Perms::ADMIN),
];

/// Parses an entry of the form `SCHEME:ID:PERMISSIONS`. Permissions are letters, or a number for
/// values without letters.
pub fn acl(entry: &str) -> Option<Acl> {
    let (scheme, rest) = entry.split_once(':')?;
    let (id, perms) = rest.rsplit_once(':')?;
    let letter = |letter| {
        let found = LETTERS.iter().find(|(known, _)| *known == letter);
        found.map(|(_, perms)| perms.0)
    };
    let perms = match perms.parse() {
        Ok(number) => number,
        Err(_) if perms.is_empty() => return None,
        Err(_) => perms
            .chars()
            .try_fold(0, |perms, name| Some(perms | letter(name)?))?,
    };
    (!scheme.is_empty()).then(|| Acl {
        perms: Perms(perms),
        scheme: Some(scheme.into()),
        id: Some(id.into()),
    })
}

/// Formats the entries of a list.
pub fn text_of(list: &AclList) -> Vec<String> {
    list.entries().map(|entry| entry_text(&entry)).collect()
}

fn entry_text(entry: &Acl) -> String {
    String::from_utf8_lossy(&entry_bytes(entry)).into_owned()
}

/// Formats an entry in ZooKeeper's notation, with the bytes that a client has sent.
pub(crate) fn entry_bytes(entry: &Acl) -> Vec<u8> {
    let perms = entry.perms.0;
    let perms = if perms == 0 || perms & !Perms::ALL.0 != 0 {
        perms.to_string()
    } else {
        let is_set = |(_, bit): &&(char, Perms)| perms & bit.0 != 0;
        let letters = LETTERS.iter().filter(is_set);
        letters.map(|(letter, _)| letter).collect()
    };
    let bytes = |part: &Option<Ustring>| {
        let part = part.as_ref().map(|part| part.as_bytes().to_vec());
        part.unwrap_or_default()
    };
    [bytes(&entry.scheme), bytes(&entry.id), perms.into_bytes()].join(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_written() {
        for text in [
            "world:anyone:cdrwa",
            "digest:alice:HASH=:r",
            "ip:127.0.0.1:cd",
            "ip:::1:a",
            "world:anyone:0",
            "x509:CN=a:64",
            "sasl::r",
        ] {
            let entry = acl(text).unwrap();
            assert_eq!(entry_text(&entry), text);
        }
        assert_eq!(acl("world:anyone:31"), acl("world:anyone:acdrw"));
        for text in [
            "",
            "world",
            "world:anyone",
            "world:anyone:",
            "world:anyone:x",
            ":anyone:r",
            "world:anyone:1x",
        ] {
            assert_eq!(acl(text), None, "{text}");
        }
    }
}
