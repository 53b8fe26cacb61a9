//! Shrinks a history that shows a difference.

use super::history::Step;

/// Shrinks steps for which `fails` returns true. Calls it at most `runs` times.
///
/// Removes steps, in halves, quarters, and so on down to single ones; then splits bursts; then uses
/// fewer connections; then simplifies requests.
///
/// # Errors
/// The error of `fails`.
pub fn shrink(
    steps: Vec<Step>,
    runs: usize,
    fails: impl FnMut(&[Step]) -> Result<bool, String>,
) -> Result<Vec<Step>, String> {
    let mut shrinker = Shrinker {
        steps,
        runs_left: runs,
        fails,
    };
    loop {
        let before = (shrinker.size(), shrinker.conns());
        shrinker.remove_steps()?;
        shrinker.split_bursts()?;
        shrinker.rename()?;
        shrinker.simplify()?;
        if (shrinker.size(), shrinker.conns()) == before || shrinker.runs_left == 0 {
            return Ok(shrinker.steps);
        }
    }
}

struct Shrinker<F> {
    /// The smallest failing steps so far.
    steps: Vec<Step>,
    runs_left: usize,
    fails: F,
}

impl<F: FnMut(&[Step]) -> Result<bool, String>> Shrinker<F> {
    fn size(&self) -> usize {
        let texts = self.steps.iter().flat_map(Step::texts);
        texts.map(|text| text.len() + 1).sum()
    }

    fn conns(&self) -> usize {
        let mut names: Vec<_> = self.steps.iter().filter_map(Step::conn).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    }

    /// Keeps the candidate if it fails too, and returns whether it does.
    fn try_out(&mut self, candidate: Vec<Step>) -> Result<bool, String> {
        if self.runs_left == 0 {
            return Ok(false);
        }
        self.runs_left -= 1;
        let fails = (self.fails)(&candidate)?;
        if fails {
            self.steps = candidate;
        }
        Ok(fails)
    }

    fn remove_steps(&mut self) -> Result<(), String> {
        let mut length = self.steps.len() / 2;
        while length > 0 {
            // From the end: early steps rarely depend on late ones.
            let mut end = self.steps.len();
            while end > 0 {
                let start = end.saturating_sub(length);
                let candidate = [&self.steps[..start], &self.steps[end..]].concat();
                self.try_out(candidate)?;
                end = start;
            }
            length /= 2;
        }
        Ok(())
    }

    fn split_bursts(&mut self) -> Result<(), String> {
        for at in (0..self.steps.len()).rev() {
            if self.steps[at].0.len() < 2 {
                continue;
            }
            let singles = self.steps[at].0.iter().map(|line| Step(vec![line.clone()]));
            let mut candidate = self.steps.clone();
            candidate.splice(at..=at, singles);
            if self.try_out(candidate)? {
                continue;
            }
            for line in (0..self.steps[at].0.len()).rev() {
                let mut candidate = self.steps.clone();
                candidate[at].0.remove(line);
                self.try_out(candidate)?;
            }
        }
        Ok(())
    }

    /// Merges connections: gives the steps of one to another.
    fn rename(&mut self) -> Result<(), String> {
        let mut names: Vec<_> = self.steps.iter().filter_map(Step::conn).collect();
        names.sort_unstable();
        names.dedup();
        let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
        for from in names.iter().rev() {
            for to in names.iter().filter(|to| *to < from) {
                let lines = self.steps.iter().map(|step| {
                    let texts: Vec<_> = step.texts().map(|text| renamed(text, from, to)).collect();
                    Step::parse(&texts)
                });
                let candidate = lines.collect::<Result<Vec<_>, _>>()?;
                if self.try_out(candidate)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn simplify(&mut self) -> Result<(), String> {
        for at in 0..self.steps.len() {
            for line in 0..self.steps[at].0.len() {
                let mut from = 0;
                loop {
                    let simpler = simpler(&self.steps[at].0[line].text);
                    let Some(text) = simpler.get(from) else { break };
                    let mut candidate = self.steps.clone();
                    if let Ok(step) = Step::line(text) {
                        candidate[at].0[line] = step.0.into_iter().next().expect("one line");
                        if self.try_out(candidate)? {
                            continue;
                        }
                    }
                    from += 1;
                }
            }
        }
        Ok(())
    }
}

/// Returns a line with a connection renamed, also in `session=`.
fn renamed(text: &str, from: &str, to: &str) -> String {
    let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
    let is_verb = ["connect", "reconnect", "disconnect", "expire"].contains(&words[0].as_str());
    let session = format!("session={from}");
    for (at, word) in words.iter_mut().enumerate() {
        if at == usize::from(is_verb) && word == from {
            to.clone_into(word);
        } else if *word == session {
            *word = format!("session={to}");
        }
    }
    words.join(" ")
}

/// Returns simpler candidates for a line, some of them invalid. All are shorter, so that shrinking
/// ends.
fn simpler(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    // One operation of a multi removed.
    if let Some((head, rest)) = text.split_once("{ ")
        && let Some((body, tail)) = rest.rsplit_once('}')
    {
        let parts: Vec<_> = body.split(" ; ").map(str::trim).collect();
        for out in 0..parts.len() {
            let mut fewer = parts.clone();
            fewer.remove(out);
            let space = if fewer.is_empty() { "" } else { " " };
            all.push(format!("{head}{{ {}{space}}}{tail}", fewer.join(" ; ")));
        }
    }
    // One option removed.
    let words: Vec<_> = text.split(' ').collect();
    for out in 1..words.len() {
        let word = words[out];
        let is_option = [
            "acl=",
            "timeout=",
            "readonly=",
            "seen=",
            "data=",
            "exist=",
            "child=",
        ]
        .iter()
        .any(|option| word.starts_with(option));
        if is_option || ["watch", "persistent", "container", "null"].contains(&word) {
            let mut fewer = words.clone();
            fewer.remove(out);
            all.push(fewer.join(" "));
        }
    }
    // Simpler data.
    for (from, to) in [
        (
            "\"333333333333333333333333333333333333333333333333333333333333333333\"",
            "\"\"",
        ),
        ("\"\\xff\\x00\"", "\"\""),
        ("\"22\"", "\"\""),
        ("\"1\"", "\"\""),
        ("create2 ", "create "),
    ] {
        if text.contains(from) {
            all.push(text.replace(from, to));
        }
    }
    all.retain(|simpler| simpler.len() < text.len());
    all
}
