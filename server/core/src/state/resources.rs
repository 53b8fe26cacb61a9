//! What is done to the resources that a test protects with locks, and whether it was safe.
//!
//! A holder enters a resource, writes to it, and leaves it. A holder that has not left was inside until its last act, and may be
//! inside still: its outcome is unknown. Two holders that are inside at the same time are safe only if their tokens differ, since
//! the resource refuses writes with the lower token.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    time::Duration,
};

/// The maximum number of resources of a universe.
const RESOURCES_MAX: usize = 1_000;

/// The maximum number of holders that are inside the resources of a universe.
const INSIDE_MAX: usize = 1_000;

/// The longest name of a resource or a holder. Unit: characters.
const NAME_CHARS_MAX: usize = 200;

/// Whether what was done to a resource was safe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ResourceVerdict {
    /// No two holders were inside at a time, or the resource has refused what came with the lower of their tokens.
    Safe,
    /// Two holders were inside at a time, without tokens that differ.
    Unsafe,
    /// No holder has entered, or a holder that has not left may have been inside when another one entered.
    Undecided,
}

impl ResourceVerdict {
    /// The names of all verdicts.
    pub const NAMES: &'static [&'static str] = &["safe", "unsafe", "undecided"];

    /// Returns its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Unsafe => "unsafe",
            Self::Undecided => "undecided",
        }
    }
}

impl fmt::Display for ResourceVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a resource could not be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceError(String);

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ResourceError {}

/// What was done to a resource, and whether it was safe.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ResourceReport {
    /// Its name.
    pub name: String,
    /// Whether it was safe.
    pub verdict: ResourceVerdict,
    /// The number of entries whose token it has accepted.
    pub entries: u64,
    /// The number of writes that it has accepted.
    pub writes: u64,
    /// How often it has refused a token, because it had seen a higher one.
    pub refused: u64,
    /// What decides the verdict, a line for each act, if it is not safe.
    pub reason: Vec<String>,
}

/// Prints the verdict, the numbers, and the reason on lines of its own.
impl fmt::Display for ResourceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            verdict,
            entries,
            writes,
            refused,
            reason,
        } = self;
        write!(
            f,
            "resource {name:?} is {verdict}: {entries} entered, {writes} written, {refused} refused"
        )?;
        reason
            .iter()
            .try_for_each(|line| write!(f, "\n  {}", line.escape_debug()))
    }
}

/// The resources of a universe, and who is inside.
#[derive(Debug, Default)]
pub struct Resources {
    resources: BTreeMap<String, Resource>,
    inside: BTreeMap<u64, Inside>,
    begun: u64,
}

#[derive(Debug, Default)]
struct Resource {
    entries: u64,
    writes: u64,
    refused: u64,
    /// The highest token.
    highest: Option<u64>,
    violation: Option<Vec<String>>,
}

/// A holder that has entered, and not left.
#[derive(Debug)]
struct Inside {
    resource: String,
    who: String,
    token: Option<u64>,
    at: Duration,
    /// Whether its token was too low: it is not inside.
    is_refused: bool,
    /// Who entered meanwhile, without a token that differs, and when.
    meanwhile: Option<(String, Duration)>,
}

fn check_name(what: &str, name: &str) -> Result<(), ResourceError> {
    match name.chars().count() {
        0 => Err(ResourceError(format!("{what}: empty; give a name"))),
        1..=NAME_CHARS_MAX => Ok(()),
        count => Err(ResourceError(format!(
            "{what}: {count} characters, more than the limit of {NAME_CHARS_MAX} characters"
        ))),
    }
}

impl Resources {
    /// Notes that a holder enters a resource, with the token of its lock if there is one. Returns the number of the entry.
    ///
    /// # Errors
    /// When a name is empty or too long, or there are too many resources or holders.
    pub fn enter(
        &mut self,
        name: &str,
        holder: Option<&str>,
        token: Option<u64>,
        now: Duration,
    ) -> Result<u64, ResourceError> {
        check_name("resource", name)?;
        holder.map_or(Ok(()), |holder| check_name("holder", holder))?;
        if self.inside.len() >= INSIDE_MAX {
            return Err(ResourceError(format!(
                "resource {name:?}: {INSIDE_MAX} holders are inside the resources, which is the limit; let them leave"
            )));
        }
        if !self.resources.contains_key(name) && self.resources.len() >= RESOURCES_MAX {
            return Err(ResourceError(format!(
                "resource {name:?}: there are {RESOURCES_MAX} resources, which is the limit"
            )));
        }
        let resource = self.resources.entry(name.to_owned()).or_default();
        self.begun += 1;
        let entry = self.begun;
        let mut who = holder.map_or_else(|| format!("holder {entry}"), str::to_owned);
        if let Some(token) = token {
            // Writing to a string cannot fail.
            let _ = write!(who, " with token {token}");
        }
        let is_refused = token.is_some() && token < resource.highest;
        if is_refused {
            resource.refused += 1;
        } else {
            resource.entries += 1;
            resource.highest = resource.highest.max(token);
            let others = self.inside.values_mut();
            for other in others.filter(|other| other.resource == name && !other.is_refused) {
                let is_told_apart =
                    token.is_some() && other.token.is_some() && token != other.token;
                if !is_told_apart && other.meanwhile.is_none() {
                    other.meanwhile = Some((who.clone(), now));
                }
            }
        }
        self.inside.insert(
            entry,
            Inside {
                resource: name.to_owned(),
                who,
                token,
                at: now,
                is_refused,
                meanwhile: None,
            },
        );
        Ok(entry)
    }

    /// Notes that the holder of an entry writes. Returns whether the resource accepts that.
    ///
    /// # Errors
    /// When the entry is unknown.
    pub fn write(&mut self, entry: u64, now: Duration) -> Result<bool, ResourceError> {
        let inside = self.inside.get(&entry).ok_or_else(|| no_entry(entry))?;
        let Some(resource) = self.resources.get_mut(&inside.resource) else {
            return Ok(false);
        };
        if inside.is_refused || inside.token.is_some() && inside.token < resource.highest {
            resource.refused += 1;
            return Ok(false);
        }
        resource.writes += 1;
        resource.judge(inside, "wrote", now);
        Ok(true)
    }

    /// Notes that the holder of an entry leaves.
    ///
    /// # Errors
    /// When the entry is unknown.
    pub fn leave(&mut self, entry: u64, now: Duration) -> Result<(), ResourceError> {
        let inside = self.inside.remove(&entry).ok_or_else(|| no_entry(entry))?;
        if let Some(resource) = self.resources.get_mut(&inside.resource) {
            resource.judge(&inside, "left", now);
        }
        Ok(())
    }

    /// Forgets the resources. Numbers of entries are not used again, so that an entry of an earlier run cannot act.
    pub fn clear(&mut self) {
        self.resources.clear();
        self.inside.clear();
    }

    /// Notes that all holders have died.
    pub fn all_died(&mut self) {
        self.inside.clear();
    }

    /// Returns what was done to a resource; it is undecided if no holder has entered it.
    #[must_use]
    pub fn report(&self, name: &str) -> ResourceReport {
        let mut report = ResourceReport {
            name: name.to_owned(),
            verdict: ResourceVerdict::Undecided,
            entries: 0,
            writes: 0,
            refused: 0,
            reason: Vec::new(),
        };
        let Some(resource) = self.resources.get(name) else {
            report.reason.push("no holder has entered it".to_owned());
            return report;
        };
        (report.entries, report.writes, report.refused) =
            (resource.entries, resource.writes, resource.refused);
        let mut inside = self.inside.values().filter(|it| it.resource == name);
        let open = inside.find_map(|inside| Some((inside, inside.meanwhile.as_ref()?)));
        (report.verdict, report.reason) = match (&resource.violation, open) {
            (Some(reason), _) => (ResourceVerdict::Unsafe, reason.clone()),
            (None, Some((inside, (other, then)))) => (
                ResourceVerdict::Undecided,
                vec![
                    line(inside.at, &inside.who, "entered"),
                    line(*then, other, "entered"),
                    format!("           {} has not left", inside.who),
                ],
            ),
            (None, None) if resource.entries == 0 => (
                ResourceVerdict::Undecided,
                vec!["no holder has entered it".to_owned()],
            ),
            (None, None) => (ResourceVerdict::Safe, Vec::new()),
        };
        report
    }

    /// Returns what was done to each resource.
    #[must_use]
    pub fn reports(&self) -> Vec<ResourceReport> {
        self.resources
            .keys()
            .map(|name| self.report(name))
            .collect()
    }
}

impl Resource {
    /// A holder that acts is inside, so that one that entered meanwhile was inside at the same time.
    fn judge(&mut self, inside: &Inside, act: &str, now: Duration) {
        if let (None, Some((other, then))) = (&self.violation, &inside.meanwhile) {
            self.violation = Some(vec![
                line(inside.at, &inside.who, "entered"),
                line(*then, other, "entered"),
                line(now, &inside.who, act),
            ]);
        }
    }
}

fn no_entry(entry: u64) -> ResourceError {
    ResourceError(format!(
        "entry {entry}: unknown; its holder has left, or resource_enter has not returned it"
    ))
}

fn line(at: Duration, who: &str, act: &str) -> String {
    format!("{:>8.3} s {who} {act}", at.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_millis(5);

    fn enter(resources: &mut Resources, who: &str, token: Option<u64>) -> u64 {
        resources.enter("r", Some(who), token, NOW).unwrap()
    }

    #[test]
    fn one_after_the_other_is_safe_and_nobody_is_undecided() {
        let mut resources = Resources::default();
        assert_eq!(resources.report("r").verdict, ResourceVerdict::Undecided);
        for who in ["a", "b"] {
            let entry = enter(&mut resources, who, None);
            assert!(resources.write(entry, NOW).unwrap());
            resources.leave(entry, NOW).unwrap();
            assert!(resources.leave(entry, NOW).is_err());
        }
        let report = resources.report("r");
        assert_eq!(
            (report.verdict, report.entries, report.writes),
            (ResourceVerdict::Safe, 2, 2)
        );
    }

    #[test]
    fn two_at_a_time_are_unsafe_once_the_first_one_acts() {
        for act in ["write", "leave"] {
            let mut resources = Resources::default();
            let first = enter(&mut resources, "a", None);
            let second = resources.enter("r", Some("b"), None, 2 * NOW).unwrap();
            resources.leave(second, NOW).unwrap();
            assert_eq!(resources.report("r").verdict, ResourceVerdict::Undecided);
            match act {
                "write" => assert!(resources.write(first, 3 * NOW).unwrap()),
                _ => resources.leave(first, 3 * NOW).unwrap(),
            }
            let report = resources.report("r");
            assert_eq!(report.verdict, ResourceVerdict::Unsafe);
            let act = if act == "write" { "wrote" } else { "left" };
            let reason = [
                "   0.005 s a entered",
                "   0.010 s b entered",
                &format!("   0.015 s a {act}"),
            ];
            assert_eq!(report.reason, reason);
        }
    }

    #[test]
    fn who_has_died_is_not_inside() {
        let mut resources = Resources::default();
        enter(&mut resources, "a", None);
        resources.all_died();
        let second = enter(&mut resources, "b", None);
        resources.leave(second, NOW).unwrap();
        assert_eq!(resources.report("r").verdict, ResourceVerdict::Safe);
    }

    #[test]
    fn lower_tokens_are_refused_which_is_safe() {
        let mut resources = Resources::default();
        let first = enter(&mut resources, "a", Some(1));
        let second = enter(&mut resources, "b", Some(2));
        assert!(resources.write(second, NOW).unwrap());
        assert!(!resources.write(first, NOW).unwrap());
        let late = enter(&mut resources, "c", Some(1));
        assert!(!resources.write(late, NOW).unwrap());
        for entry in [first, second, late] {
            resources.leave(entry, NOW).unwrap();
        }
        let report = resources.report("r");
        assert_eq!(
            (report.verdict, report.refused, report.entries),
            (ResourceVerdict::Safe, 3, 2)
        );
    }

    #[test]
    fn equal_tokens_do_not_tell_two_holders_apart() {
        let mut resources = Resources::default();
        let first = enter(&mut resources, "a", Some(7));
        enter(&mut resources, "b", Some(7));
        assert!(resources.write(first, NOW).unwrap());
        assert_eq!(resources.report("r").verdict, ResourceVerdict::Unsafe);
    }

    #[test]
    fn entry_from_before_cannot_act() {
        let mut resources = Resources::default();
        let before = enter(&mut resources, "a", None);
        resources.clear();
        let now = enter(&mut resources, "b", None);
        assert!(resources.leave(before, NOW).is_err() && resources.leave(now, NOW).is_ok());
    }

    #[test]
    fn names_resources_and_holders_have_limits() {
        let mut resources = Resources::default();
        let refused = |resources: &mut Resources, name: &str, who: Option<&str>| {
            resources
                .enter(name, who, None, NOW)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused(&mut resources, "", None),
            "resource: empty; give a name"
        );
        assert_eq!(
            refused(&mut resources, "r", Some(&"x".repeat(201))),
            "holder: 201 characters, more than the limit of 200 characters"
        );
        for number in 0..RESOURCES_MAX {
            let entry = resources
                .enter(&number.to_string(), None, None, NOW)
                .unwrap();
            resources.leave(entry, NOW).unwrap();
        }
        assert!(refused(&mut resources, "r", None).contains("which is the limit"));
        for _ in 0..INSIDE_MAX {
            resources.enter("1", None, None, NOW).unwrap();
        }
        assert!(refused(&mut resources, "1", None).ends_with("which is the limit; let them leave"));
    }
}
