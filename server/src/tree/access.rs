//! Access lists as text.

use minikeeper_protocol::{Acl, AclList, Perms};

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
pub(crate) fn acl(entry: &str) -> Option<Acl> {
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
pub(crate) fn text_of(list: &AclList) -> Vec<String> {
    list.entries().map(|entry| entry_text(&entry)).collect()
}

fn entry_text(entry: &Acl) -> String {
    let text = |part: &Option<minikeeper_protocol::Ustring>| {
        part.as_ref()
            .map(|part| part.to_str_lossy().into_owned())
            .unwrap_or_default()
    };
    let (scheme, id) = (text(&entry.scheme), text(&entry.id));
    let perms = entry.perms.0;
    if perms == 0 || perms & !Perms::ALL.0 != 0 {
        return format!("{scheme}:{id}:{perms}");
    }
    let letters: String = LETTERS
        .iter()
        .filter(|(_, bit)| perms & bit.0 != 0)
        .map(|(letter, _)| letter)
        .collect();
    format!("{scheme}:{id}:{letters}")
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
