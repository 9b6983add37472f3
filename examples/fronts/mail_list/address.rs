//! From the text of an address to the names that may be on a list.

use std::fmt;

use url::Host;

/// A mail address, or a domain alone, under all names that a list may have it: itself, its domain,
/// and the domains above, down to two labels. The last label alone is not asked: no list has
/// `com`, and each further question is a further chance of a false answer.
///
/// Names are in lower case, without a dot at the end, and in Punycode; a name of another alphabet
/// is there in its own letters as well, since lists have both. The part before the `@` is in lower
/// case, too: hardly any server tells `Joe@` from `joe@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// From the address itself to the domain of two labels.
    names: Vec<String>,
}

/// The longest address that SMTP carries, and some more.
const MAX_BYTES: usize = 400;

/// Why a text is no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAnAddress;

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an address such as name@example.org, or a domain")
    }
}

impl std::error::Error for NotAnAddress {}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, NotAnAddress> {
        let text = text.trim();
        if text.len() > MAX_BYTES || text.contains(|c: char| c.is_control()) {
            return Err(NotAnAddress);
        }
        let (local, domain) = match text.rsplit_once('@') {
            Some(("", _)) => return Err(NotAnAddress),
            Some((local, domain)) => (Some(local), domain),
            None => (None, text),
        };
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        let (domain, has_parents) = match Host::parse(domain) {
            Ok(Host::Domain(name)) if !name.split('.').any(str::is_empty) => (name, true),
            Ok(address @ (Host::Ipv4(_) | Host::Ipv6(_))) => (address.to_string(), false),
            _ => return Err(NotAnAddress),
        };
        let mut names = Vec::new();
        if let Some(local) = local {
            add(&mut names, &(local.to_lowercase() + "@"), &domain);
        }
        add(&mut names, "", &domain);
        for (dot, _) in domain.match_indices('.') {
            let above = &domain[dot + 1..];
            if has_parents && above.contains('.') {
                add(&mut names, "", above);
            }
        }
        Ok(Self { names })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The address itself, in Punycode.
    pub(crate) fn as_str(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }
}

/// A name in Punycode, and in its own letters if these are others.
fn add(names: &mut Vec<String>, local: &str, domain: &str) {
    names.push(format!("{local}{domain}"));
    if domain.contains("xn--") {
        let (own, valid) = idna::domain_to_unicode(domain);
        if valid.is_ok() && own != domain {
            names.push(format!("{local}{own}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let address = Address::parse(text).unwrap();
        address.names().map(str::to_owned).collect()
    }

    #[test]
    fn an_address_is_asked_with_its_domains() {
        assert_eq!(
            names("Joe+x@A.B.Example.COM."),
            [
                "joe+x@a.b.example.com",
                "a.b.example.com",
                "b.example.com",
                "example.com"
            ]
        );
        assert_eq!(names("example.com"), ["example.com"]);
        assert_eq!(names("joe@localhost"), ["joe@localhost", "localhost"]);
        assert_eq!(
            names("\"a@b\"@example.com"),
            ["\"a@b\"@example.com", "example.com"]
        );
    }

    #[test]
    fn names_of_other_alphabets_are_asked_in_both_forms() {
        for text in ["x@Bücher.example", "x@xn--bcher-kva.example"] {
            assert_eq!(
                names(text),
                [
                    "x@xn--bcher-kva.example",
                    "x@bücher.example",
                    "xn--bcher-kva.example",
                    "bücher.example"
                ]
            );
        }
    }

    #[test]
    fn numeric_addresses_have_no_parents() {
        assert_eq!(names("x@192.0.2.1"), ["x@192.0.2.1", "192.0.2.1"]);
        assert_eq!(
            names("x@[2001:db8::1]"),
            ["x@[2001:db8::1]", "[2001:db8::1]"]
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("{}@example.com", "a".repeat(MAX_BYTES));
        for text in [
            "",
            "@",
            "@example.com",
            "joe@",
            "joe@a..b",
            "joe@.b",
            "a b@c d",
            "a\n@b.c",
            &long,
        ] {
            assert_eq!(Address::parse(text), Err(NotAnAddress), "{text}");
        }
    }
}
