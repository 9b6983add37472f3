//! From the bytes of a page to the canonical URLs of the same site that it links to.

use anyhow::{Context, Result};
use petal::normalise::{Form, Normal, Normalisation};
use url::Url;

/// What canonical URLs are here; names of query parameters that say nothing about the page are
/// dropped. The filter's file records it.
pub(crate) fn normalisation(strip_params: &[String]) -> Result<Normalisation> {
    let strip_params = strip_params.to_vec();
    Ok(Normalisation::default().with_form(Form::Url { strip_params })?)
}

/// The canonical form of a URL, if it is one.
pub(crate) fn canonical(normalisation: &Normalisation, url: &str) -> Option<String> {
    let mut scratch = Vec::new();
    match normalisation.apply(url.as_bytes(), &mut scratch) {
        Normal::Key(key) => std::str::from_utf8(key).ok().map(str::to_owned),
        _ => None,
    }
}

/// The site that is crawled: scheme, host and port.
#[derive(Debug)]
pub(crate) struct Site {
    start: Url,
}

impl Site {
    pub(crate) fn new(start: &str) -> Result<Self> {
        let start = Url::parse(start).with_context(|| format!("{start}: expected a URL"))?;
        Ok(Self { start })
    }

    /// A link of a page as an absolute URL, if it stays on the site.
    pub(crate) fn resolve(&self, page: &Url, link: &str) -> Option<Url> {
        let url = page.join(link.trim()).ok()?;
        (url.origin() == self.start.origin()).then_some(url)
    }
}

/// The values of all `href` attributes. No more than that of HTML is understood: what a script makes
/// is not found, and what stands in a comment is.
pub(crate) fn links(page: &str) -> impl Iterator<Item = String> + '_ {
    page.match_indices("href=").filter_map(|(at, name)| {
        let value = &page[at + name.len()..];
        let quote = value.chars().next()?;
        let link = match quote {
            '"' | '\'' => value[1..].split(quote).next()?,
            _ => value
                .split(|c: char| c.is_whitespace() || c == '>')
                .next()?,
        };
        Some(link.replace("&amp;", "&"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_however_they_are_quoted() {
        let page = "<a href=\"/a?x=1&amp;y=2\">a</a><A href='b'><a href=c>d</a><a href=";
        let found: Vec<_> = links(page).collect();
        assert_eq!(found, ["/a?x=1&y=2", "b", "c"]);
    }

    #[test]
    fn every_spelling_is_one_url() {
        let normalisation = normalisation(&["sid".to_owned()]).unwrap();
        let site = Site::new("http://example.org:8080/").unwrap();
        let page = Url::parse("http://example.org:8080/page/7").unwrap();
        for link in [
            "9",
            "/page/9#part",
            "HTTP://EXAMPLE.org:8080/page/9",
            "//example.org:8080/x/../page/9",
            "/p%61ge/9?sid=abc",
            "../page/./9",
        ] {
            let url = site.resolve(&page, link).unwrap();
            let url = canonical(&normalisation, url.as_str());
            assert_eq!(
                url.as_deref(),
                Some("http://example.org:8080/page/9"),
                "{link}"
            );
        }
        for link in [
            "http://example.org/page/9",
            "https://example.org:8080/",
            "mailto:a@b.c",
        ] {
            assert!(site.resolve(&page, link).is_none(), "{link}");
        }
    }
}
