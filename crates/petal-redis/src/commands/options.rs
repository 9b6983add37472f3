//! The options that a Bloom filter is reserved with.
//!
//! Owns their syntax, the texts of their errors, which `BF.RESERVE` and
//! `BF.INSERT` have each their own of, and the form in which they go to replicas.

use petal::sizing::Collisions;

use crate::bloom::filter::{Body, Filter};
use crate::bloom::spec::{MAX_ERROR, Refused, Span, Spec};
use crate::config::{self, MAX_CAPACITY, MAX_EXPANSION};
use crate::engine::{Call, Failure, Outcome};
use crate::numbers;

use super::hashing::Hashing;

/// What a command says of the filter to make.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) spec: Spec,
    hashing: Hashing,
    pub(crate) create: bool,
    /// The first item.
    pub(crate) items: Option<usize>,
    /// Whether an option came that RedisBloom lacks.
    further: bool,
    nonscaling: bool,
}

impl Options {
    /// Of a command that says nothing.
    pub(crate) fn usual() -> Self {
        Self {
            spec: Spec::default_one(),
            hashing: Hashing::Usual,
            create: true,
            items: None,
            further: false,
            nonscaling: false,
        }
    }

    /// Of `BF.RESERVE key error capacity ...`.
    pub(crate) fn of_reserve(call: &Call<'_>) -> Outcome<Self> {
        if call.len() < 4 {
            return Err(Failure::Arity);
        }
        let mut options = Self::usual();
        let error = numbers::float(call.arg(2)).ok_or("ERR bad error rate")?;
        if !(error > 0.0 && error < 1.0) {
            return Err("ERR error rate must be in the range (0.000000, 1.000000)".into());
        }
        options.spec.error = error.min(MAX_ERROR);
        let capacity = numbers::int(call.arg(3)).ok_or("ERR bad capacity")?;
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(format!("ERR capacity must be in the range [1, {MAX_CAPACITY}]").into());
        }
        options.spec.capacity = capacity.cast_unsigned();
        let mut expansion = None;
        let mut at = 4;
        while at < call.len() {
            if call.is(at, "EXPANSION") {
                at += 1;
                if at == call.len() {
                    return Err("ERR no expansion".into());
                }
                let value = numbers::int(call.arg(at)).ok_or("ERR bad expansion")?;
                let value = factor(value).ok_or_else(|| {
                    format!("ERR expansion must be in the range [0, {MAX_EXPANSION}]")
                })?;
                expansion = Some(value);
            } else if !options.take(call, &mut at)? {
                return Err("ERR unknown argument received".into());
            }
            at += 1;
        }
        options.grow_by(expansion)?;
        options.check()?;
        Ok(options)
    }

    /// Of `BF.INSERT key ... ITEMS item ...`.
    pub(crate) fn of_insert(call: &Call<'_>) -> Outcome<Self> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let mut options = Self::usual();
        let mut expansion = None;
        let mut at = 2;
        while at < call.len() && options.items.is_none() {
            let value = call.arg(at + 1);
            let known = ["ERROR", "CAPACITY", "EXPANSION"];
            if known.iter().any(|word| call.is(at, word)) && at + 1 == call.len() {
                return Err(Failure::Arity);
            }
            if call.is(at, "ITEMS") {
                options.items = Some(at + 1);
            } else if call.is(at, "NOCREATE") {
                options.create = false;
            } else if call.is(at, "ERROR") {
                at += 1;
                let error = numbers::float(value).filter(|&error| error > 0.0 && error < 1.0);
                options.spec.error = error.ok_or("Bad error rate")?.min(MAX_ERROR);
            } else if call.is(at, "CAPACITY") {
                at += 1;
                let capacity =
                    numbers::int(value).filter(|value| (1..=MAX_CAPACITY).contains(value));
                options.spec.capacity = capacity.ok_or("Bad capacity")?.cast_unsigned();
            } else if call.is(at, "EXPANSION") {
                at += 1;
                expansion = Some(
                    numbers::int(value)
                        .and_then(factor)
                        .ok_or("Bad expansion")?,
                );
            } else if !options.take(call, &mut at)? {
                return Err("Unknown argument received".into());
            }
            at += 1;
        }
        // As RedisBloom has it, the last word here, and an error in `BF.RESERVE`.
        let expansion = expansion.filter(|_| !options.nonscaling);
        options.grow_by(expansion)?;
        options.check()?;
        // Without items the command only creates: known from valkey-bloom, so an error
        // for those who cannot want that.
        match options.items {
            Some(first) if first == call.len() => Err(Failure::Arity),
            None if !options.further => Err(Failure::Arity),
            _ => Ok(options),
        }
    }

    fn grow_by(&mut self, expansion: Option<u32>) -> Outcome {
        match (expansion, self.nonscaling) {
            (Some(factor), true) if factor > 0 => Err("Nonscaling filters cannot expand".into()),
            (_, true) => {
                self.spec.expansion = 0;
                Ok(())
            }
            (Some(factor), false) => {
                self.spec.expansion = factor;
                Ok(())
            }
            (None, false) => Ok(()),
        }
    }

    /// Takes an option that both commands have, and its value. False if it is none.
    fn take(&mut self, call: &Call<'_>, at: &mut usize) -> Outcome<bool> {
        if call.is(*at, "NONSCALING") {
            self.nonscaling = true;
            return Ok(true);
        }
        if self.hashing.take(call, *at)? {
            *at += 1;
            self.further = true;
            return Ok(true);
        }
        // How a merge in parts begins on replicas.
        if call.is(*at, "MERGING") && call.must_obey() {
            self.spec.merging = true;
            self.further = true;
            return Ok(true);
        }
        let known = ["TIGHTENING", "VALIDATESCALETO", "WINDOW"];
        let Some(word) = known.iter().find(|word| call.is(*at, word)) else {
            return Ok(false);
        };
        *at += 1;
        if *at == call.len() {
            return Err(Failure::Arity);
        }
        let value = call.arg(*at);
        self.further = true;
        match *word {
            "TIGHTENING" => {
                let ratio = numbers::float(value).ok_or("ERR bad tightening ratio")?;
                if !(ratio > 0.0 && ratio < 1.0) {
                    return Err("ERR (0 < tightening ratio range < 1)".into());
                }
                self.spec.tightening = ratio;
            }
            "VALIDATESCALETO" => {
                let keys = numbers::int(value).filter(|value| (1..=MAX_CAPACITY).contains(value));
                self.spec.scale_to = keys.ok_or("ERR bad capacity")?.cast_unsigned();
            }
            _ => self.spec.window = Some(span_of(value).ok_or("ERR bad window")?),
        }
        Ok(true)
    }

    /// Checks what options say together.
    fn check(&mut self) -> Outcome {
        let spec = &mut self.spec;
        if spec.window.is_some() {
            spec.expansion = 0;
        }
        if spec.scale_to == 0 {
            return Ok(());
        }
        if spec.window.is_some() {
            return Err("ERR cannot use WINDOW and VALIDATESCALETO options together".into());
        }
        if !spec.scales() {
            let text = "ERR cannot use NONSCALING and VALIDATESCALETO options together";
            return Err(text.into());
        }
        Ok(())
    }

    /// The filter, if it takes at most `most` bytes.
    pub(crate) fn build(self, most: u64) -> Outcome<Filter> {
        let hasher = self.hashing.hasher()?;
        if self.spec.scale_to > 0 {
            let degrades = "ERR provided VALIDATESCALETO causes false positive to degrade to 0";
            let bytes = self
                .spec
                .scaled_bytes(Collisions::Digest64)
                .map_err(|_| Failure::from(degrades))?;
            if bytes > most {
                let text =
                    "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit";
                return Err(text.into());
            }
        }
        Filter::reserve(self.spec, hasher, most).map_err(refused)
    }
}

/// How a filter that is not made is refused.
pub(crate) fn refused(why: Refused) -> Failure {
    match why {
        Refused::Limit { needed } => format!(
            "ERR Insufficient memory to create filter: it would take {needed} bytes, \
             filter-max-bytes is {}",
            config::max_bytes()
        )
        .into(),
        Refused::Library(error @ petal::Error::TooLarge { .. }) => {
            format!("ERR Insufficient memory to create filter: {error}").into()
        }
        Refused::Library(error) => format!("ERR could not create filter: {error}").into(),
    }
}

fn factor(value: i64) -> Option<u32> {
    u32::try_from(value)
        .ok()
        .filter(|&value| i64::from(value) <= MAX_EXPANSION)
}

/// What a window forgets by: `KEYS`, or a time such as `500ms`, `60s`, `5m`, `24h`, `7d`.
fn span_of(value: &[u8]) -> Option<Span> {
    if value.eq_ignore_ascii_case(b"KEYS") {
        return Some(Span::Keys);
    }
    let text = std::str::from_utf8(value).ok()?;
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let milliseconds = text[..digits].parse::<u64>().ok()?.checked_mul(unit)?;
    (milliseconds > 0).then_some(Span::Time(milliseconds))
}

/// The arguments of `BF.INSERT` behind the key that make the same filter anywhere.
pub(crate) fn creation_of(filter: &Filter) -> Vec<Vec<u8>> {
    let spec = &filter.spec;
    let mut args = Vec::new();
    let mut put = |name: &str, value: Option<String>| {
        args.push(name.as_bytes().to_vec());
        args.extend(value.map(String::into_bytes));
    };
    put("CAPACITY", Some(spec.capacity.to_string()));
    put("ERROR", Some(format!("{:?}", spec.error)));
    match (spec.window, spec.expansion) {
        (Some(Span::Keys), _) => put("WINDOW", Some("KEYS".to_owned())),
        (Some(Span::Time(milliseconds)), _) => put("WINDOW", Some(format!("{milliseconds}ms"))),
        (None, 0) => put("NONSCALING", None),
        (None, factor) => put("EXPANSION", Some(factor.to_string())),
    }
    put("TIGHTENING", Some(format!("{:?}", spec.tightening)));
    if spec.scale_to > 0 {
        put("VALIDATESCALETO", Some(spec.scale_to.to_string()));
    }
    if let Body::Own(own) = &filter.body {
        let (name, value) = Hashing::replicated(own);
        put(name, Some(value));
    }
    if spec.merging {
        put("MERGING", None);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_units() {
        assert_eq!(span_of(b"keys"), Some(Span::Keys));
        assert_eq!(span_of(b"1500ms"), Some(Span::Time(1500)));
        assert_eq!(span_of(b"2d"), Some(Span::Time(172_800_000)));
        for wrong in [
            &b""[..],
            b"60",
            b"s",
            b"0s",
            b"-1s",
            b"1w",
            b"99999999999999999999s",
            b"\xff",
        ] {
            assert_eq!(span_of(wrong), None);
        }
    }
}
