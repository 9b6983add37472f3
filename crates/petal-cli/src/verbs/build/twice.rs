//! Keys that were given with two answers, by their lines.
//!
//! Owns the search for them: building knows only a digest, so the lists are read once more. It
//! makes an error of what it finds, and nothing else.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use petal::normalise::Normal;

use super::fill::Fill;
use super::fixed::ValueField;
use crate::input::Batch;
use crate::keys::KeyedLines;
use crate::walk::{Flow, Place};

/// Bytes of a line that a message shows.
const SHOWN: usize = 80;

/// What a digest has two of.
pub(super) enum Which {
    /// Values.
    Values(ValueField),
    /// Lists: that of the listed keys and the other.
    Lists,
}

/// A line with the digest.
struct Found {
    place: String,
    line: Vec<u8>,
    /// What it is to be answered with.
    answer: String,
}

impl Fill<'_> {
    /// The error that says in which lines a digest came with two answers.
    pub(super) fn given_twice(
        &mut self,
        digest: u64,
        answers: [String; 2],
        which: &Which,
    ) -> Result<anyhow::Error> {
        let mut found: Vec<Found> = Vec::new();
        let own = Arc::clone(&self.walk.files);
        let lists = match which {
            Which::Values(_) => vec![own.clone()],
            Which::Lists => vec![own.clone(), self.args.not_listed.as_slice().into()],
        };
        for (files, answer) in lists.into_iter().zip(&answers) {
            self.walk.files = files;
            self.walk.label = "build, looking for a key";
            if self.walk.is_repeatable() {
                self.look_for(digest, which, answer, &mut found)?;
            }
            self.walk.files = Arc::clone(&own);
        }
        let [one, other] = &answers;
        let [a, b] = found.as_slice() else {
            return Ok(anyhow!(
                "a line came as {one} and as {other} (its digest is {digest:016x}): nothing was \
                 written; put the lists into files, which can be read twice, to see which"
            ));
        };
        let show = |found: &Found| {
            let line = &found.line[..found.line.len().min(SHOWN)];
            let more = if line.len() < found.line.len() {
                "..."
            } else {
                ""
            };
            format!("\"{}{more}\"", line.escape_ascii())
        };
        let places = format!("{} and {}", a.place, b.place);
        if self.key_of(&a.line) == self.key_of(&b.line) {
            let shown = show(a);
            return Ok(anyhow!(
                "{places}: {shown} is given as {} and as {}: nothing was written; leave it where \
                 it belongs",
                a.answer,
                b.answer
            ));
        }
        Ok(anyhow!(
            "{places}: {} and {} are different keys with the same digest, one of them {}, the other \
             {}: nothing was written; with --secret-file they get other digests",
            show(a),
            show(b),
            a.answer,
            b.answer
        ))
    }

    /// Adds the first line of each answer that has the digest.
    fn look_for(
        &self,
        digest: u64,
        which: &Which,
        answer: &str,
        found: &mut Vec<Found>,
    ) -> Result<()> {
        let rules = self.intake.keys();
        self.walk.each(
            &rules,
            &mut |batch: &Batch, keyed: &mut KeyedLines, place: &Place| {
                for (i, &other) in keyed.digests().bits().iter().enumerate() {
                    if other != digest {
                        continue;
                    }
                    let at = keyed.line_of(i);
                    let line = rules.normalisation().trim(batch.get(at));
                    let answer = match which {
                        Which::Lists => answer.to_owned(),
                        Which::Values(field) => match field.of(line) {
                            Ok(value) => format!("the value {value}"),
                            Err(_) => continue,
                        },
                    };
                    if found.iter().any(|found| found.answer == answer) {
                        continue;
                    }
                    found.push(Found {
                        place: format!("{}:{}", place.name, place.line + at as u64),
                        line: line.to_vec(),
                        answer,
                    });
                    let wanted = match which {
                        Which::Lists => true,
                        Which::Values(_) => found.len() == 2,
                    };
                    if wanted {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::GoOn)
            },
        )
    }

    /// The bytes of a line's key.
    fn key_of(&self, line: &[u8]) -> Vec<u8> {
        let mut scratch = Vec::new();
        match self
            .intake
            .identity()
            .normalisation
            .apply(line, &mut scratch)
        {
            Normal::Key(key) | Normal::NotUrl(key) => key.to_vec(),
            Normal::Int(key) => key.to_le_bytes().to_vec(),
            // Not reached: the line has a digest.
            Normal::NoField | Normal::Bad(_) => Vec::new(),
        }
    }
}
