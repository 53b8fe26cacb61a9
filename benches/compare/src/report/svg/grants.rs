//! Who got it how often: one small picture a contestant, one bar a contender, the luckiest first.

use super::canvas::{Canvas, Look};
use crate::{
    report::markup::{element, text_element},
    stats::as_f64,
    table::{grouped, number},
};

/// How high the bars are, in pixels.
const HEIGHT: f64 = 72.0;

/// More contenders than this share bars.
const BARS_MAX: usize = 100;

/// Room for a bar above the fair share: a contender who gets more than this many times it is cut.
const FAIR_SHARES_MIN: f64 = 1.25;

/// One contestant's grants.
#[derive(Debug)]
pub struct Grants<'a> {
    /// The contestant.
    pub name: &'a str,
    /// How it looks.
    pub look: Look,
    /// By contender.
    pub grants: &'a [u64],
    /// Below the name.
    pub caption: String,
}

/// All the pictures: bars are measured in fair shares, so that fast and slow ones compare. `None`
/// if nobody got anything.
#[must_use]
pub fn grants(all: &[Grants<'_>]) -> Option<String> {
    let shares: Vec<_> = all.iter().map(|one| fair_shares(one.grants)).collect();
    shares.iter().flatten().next()?;
    let peak = shares
        .iter()
        .flatten()
        .copied()
        .fold(FAIR_SHARES_MIN, f64::max);
    let pictures = all.iter().zip(&shares);
    let pictures: String = pictures
        .filter(|(_, shares)| !shares.is_empty())
        .map(|(one, shares)| picture(one, shares, peak))
        .collect();
    Some(element("div", &[("class", "multiples")], &pictures))
}

/// Grants divided by their mean, the most first; neighbours are put together where there are too
/// many. Empty if there are none.
fn fair_shares(grants: &[u64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = grants.iter().copied().map(as_f64).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = sorted.iter().sum();
    if all <= 0.0 {
        return Vec::new();
    }
    let fair = all / as_f64(sorted.len() as u64);
    let together = sorted.len().div_ceil(BARS_MAX);
    let bars = sorted.chunks(together);
    bars.map(|part| part.iter().sum::<f64>() / as_f64(part.len() as u64) / fair)
        .collect()
}

fn picture(one: &Grants<'_>, shares: &[f64], peak: f64) -> String {
    let mut canvas = Canvas::new(HEIGHT + 2.0);
    let class = if one.look.is_ours { "bar ours" } else { "bar" };
    let width = 100.0 / as_f64(shares.len() as u64);
    let gap = if shares.len() > 40 { 0.0 } else { width * 0.15 };
    for (at, share) in shares.iter().enumerate() {
        let left = width * as_f64(at as u64);
        let height = share / peak * HEIGHT;
        let title = format!("{} of the fair share", number(*share));
        let across = (left + gap, left + width - gap);
        canvas.bar(across, (HEIGHT - height, height), class, &title);
    }
    let fair = HEIGHT - HEIGHT / peak;
    canvas.line((0.0, fair), (100.0, fair), "fair", "4 3");
    canvas.line((0.0, HEIGHT), (100.0, HEIGHT), "base", "");
    let class = if one.look.is_ours { "ours" } else { "" };
    let caption = text_element("b", &[("class", class)], one.name)
        + &text_element("span", &[("class", "muted")], &one.caption);
    let least = one.grants.iter().copied().min().unwrap_or(0);
    let most = one.grants.iter().copied().max().unwrap_or(0);
    let label = format!(
        "Grants per contender, {}: {} contenders, from {} to {}",
        one.name,
        one.grants.len(),
        grouped(as_f64(least)),
        grouped(as_f64(most)),
    );
    let inner = element("figcaption", &[], &caption) + &canvas.finish(&label);
    element("figure", &[], &inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_sorted_and_bounded_in_number() {
        assert_eq!(fair_shares(&[1, 3]), [1.5, 0.5]);
        assert!(fair_shares(&[0, 0]).is_empty());
        assert!(fair_shares(&[]).is_empty());
        let many: Vec<u64> = (0..1000).collect();
        assert_eq!(fair_shares(&many).len(), BARS_MAX);
    }
}
