//! The lists: a filter of what is blocked, and exactly what never is.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use petal::normalise::Normal;
use petal::{AnyFilter, Contains, KeyType};

use crate::address::Address;

/// Where the lists are.
#[derive(Debug, Clone, Args)]
pub(crate) struct Sources {
    /// The filter of domains and addresses that are blocked, as `petal build` makes it.
    deny: PathBuf,
    /// Domains and addresses that are never blocked, one a line; exact.
    #[arg(long)]
    allow: Option<PathBuf>,
}

/// What is asked.
#[derive(Debug)]
pub(crate) struct Lists {
    deny: AnyFilter,
    allow: HashSet<Box<str>>,
}

/// What becomes of an address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    /// This name of it is on the list.
    Block(&'a str),
    /// This name of it is in the allow list.
    Allowed(&'a str),
    /// No name of it is on the list.
    Pass,
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(name) => write!(f, "block {name}"),
            Self::Allowed(name) => write!(f, "pass {name}"),
            Self::Pass => f.write_str("pass"),
        }
    }
}

impl Lists {
    /// Reads the lists and verifies the filter's checksums.
    pub(crate) fn open(sources: &Sources) -> Result<Self> {
        let deny = AnyFilter::open(&sources.deny, None)
            .with_context(|| format!("{}", sources.deny.display()))?;
        if deny.about().identity().key_type != KeyType::Bytes {
            bail!(
                "{}: a filter of integers, expected one of names: build it without --as",
                sources.deny.display()
            );
        }
        let allow = sources.allow.as_deref().map(read_allow).transpose()?;
        Ok(Self {
            deny,
            allow: allow.unwrap_or_default(),
        })
    }

    /// The allow list is asked first, for every name: no false answer of the filter blocks what is
    /// below an allowed domain.
    pub(crate) fn verdict<'a>(&self, address: &'a Address) -> Verdict<'a> {
        if let Some(name) = address.names().find(|name| self.allow.contains(*name)) {
            return Verdict::Allowed(name);
        }
        match address.names().find(|name| self.denies(name)) {
            Some(name) => Verdict::Block(name),
            None => Verdict::Pass,
        }
    }

    /// With the normalisation that the filter records.
    fn denies(&self, name: &str) -> bool {
        let mut scratch = Vec::new();
        let normalisation = &self.deny.about().identity().normalisation;
        match normalisation.apply(name.as_bytes(), &mut scratch) {
            Normal::Key(key) | Normal::NotUrl(key) => {
                self.deny.contains_bytes(key).unwrap_or(false)
            }
            Normal::Int(_) | Normal::NoField | Normal::Bad(_) => false,
        }
    }
}

impl fmt::Display for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {:.0} names, {} bytes, error {:.3e} a name; {} names allowed",
            self.deny.kind(),
            self.deny.estimated_len(),
            self.deny.bytes(),
            self.deny.error_now(),
            self.allow.len()
        )
    }
}

fn read_allow(path: &Path) -> Result<HashSet<Box<str>>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let mut allow = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // All or nothing: a customer who is left out would be blocked.
        let name = Address::parse(line).with_context(|| {
            format!(
                "{}: line {}: {}",
                path.display(),
                index + 1,
                line.escape_debug()
            )
        })?;
        allow.insert(name.as_str().into());
    }
    Ok(allow)
}

#[cfg(test)]
mod tests {
    use petal::{BloomFilter, CascadeFilter, Overwrite};

    use super::*;

    fn opened(deny: &[&str], allow: &str) -> Lists {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources {
            deny: folder.path().join("deny.petal"),
            allow: Some(folder.path().join("allow.txt")),
        };
        let mut filter = BloomFilter::new(100, 1e-9).unwrap();
        for name in deny {
            filter.insert(*name).unwrap();
        }
        filter.save(&sources.deny, Overwrite::Refuse).unwrap();
        std::fs::write(folder.path().join("allow.txt"), allow).unwrap();
        Lists::open(&sources).unwrap()
    }

    fn verdict(lists: &Lists, address: &str) -> String {
        lists.verdict(&Address::parse(address).unwrap()).to_string()
    }

    #[test]
    fn parents_block_and_allowed_names_never_do() {
        let lists = opened(
            &["mailinator.com", "joe@gmail.com", "provider.example", "com"],
            "# ours\nGmail.com\n\ncustomer.provider.example\nboss@mailinator.com\n",
        );
        for (address, expected) in [
            ("x@mailinator.com", "block mailinator.com"),
            ("x@A.Mailinator.COM", "block mailinator.com"),
            ("boss@mailinator.com", "pass boss@mailinator.com"),
            ("joe@gmail.com", "pass gmail.com"),
            ("x@mx.gmail.com", "pass gmail.com"),
            ("x@provider.example", "block provider.example"),
            (
                "x@customer.provider.example",
                "pass customer.provider.example",
            ),
            (
                "x@sub.customer.provider.example",
                "pass customer.provider.example",
            ),
            ("x@example.com", "pass"),
            ("x@notmailinator.com", "pass"),
        ] {
            assert_eq!(verdict(&lists, address), expected, "{address}");
        }
    }

    #[test]
    fn a_bad_line_in_the_allow_list_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("allow.txt");
        std::fs::write(&path, "good.example\nbad one\n").unwrap();
        let error = format!("{:#}", read_allow(&path).unwrap_err());
        assert!(
            error.contains("line 2: bad one: expected an address"),
            "{error}"
        );
    }

    #[test]
    fn customers_of_a_cascade_pass_without_an_allow_list() {
        let denied: Vec<_> = (0..1000).map(|i| format!("bad{i}.example")).collect();
        let customers: Vec<_> = (0..1000).map(|i| format!("good{i}.example")).collect();
        // An error so large that a plain filter would block every tenth customer.
        let filter = CascadeFilter::from_keys(&denied, &customers, 0.1).unwrap();
        let lists = Lists {
            deny: AnyFilter::Cascade(filter.into_inner()),
            allow: HashSet::new(),
        };
        for name in &denied {
            assert_eq!(verdict(&lists, name), format!("block {name}"));
        }
        for name in &customers {
            assert_eq!(verdict(&lists, name), "pass");
        }
    }
}
