//! The recorded samples: files, keys, answers.

use std::fs;
use std::path::{Path, PathBuf};

use petal_interop::{ForeignFilter, ForeignKey, ReadOptions};

/// What the lines of a list are as keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Text,
    Utf16,
    I32,
    I64,
}

impl Form {
    /// Calls with the key that a line is.
    pub(crate) fn key<T>(self, line: &str, call: impl FnOnce(ForeignKey<'_>) -> T) -> T {
        match self {
            Self::Text => call(ForeignKey::Text(line)),
            Self::Utf16 => {
                let units: Vec<u16> = line.encode_utf16().collect();
                call(ForeignKey::Utf16(&units))
            }
            Self::I32 => call(ForeignKey::I32(line.parse().unwrap())),
            Self::I64 => call(ForeignKey::I64(line.parse().unwrap())),
        }
    }

    /// The list of that form: `members.txt`, `members_int.txt`, `members_long.txt`.
    fn list(self, name: &str) -> String {
        match self {
            Self::Text | Self::Utf16 => format!("{name}.txt"),
            Self::I32 => format!("{name}_int.txt"),
            Self::I64 => format!("{name}_long.txt"),
        }
    }
}

/// A file of another system and who is in it.
pub(crate) struct Sample {
    pub(crate) system: &'static str,
    /// Its name up to `.positives.txt` in the list of answers.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) options: ReadOptions,
    pub(crate) form: Form,
    /// Which lines of the members were inserted.
    pub(crate) members: std::ops::Range<usize>,
}

impl Sample {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    pub(crate) fn open(&self) -> Box<dyn ForeignFilter> {
        petal_interop::open(&self.path, &self.options)
            .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }

    pub(crate) fn members(&self) -> Vec<String> {
        let all = lines(&folder(self.system).join(self.form.list("members")));
        all[self.members.clone()].to_vec()
    }

    pub(crate) fn nonmembers(&self) -> Vec<String> {
        lines(&folder(self.system).join(self.form.list("nonmembers")))
    }

    /// Those of the nonmembers that the real software finds.
    pub(crate) fn positives(&self) -> Vec<String> {
        lines(&folder(self.system).join(format!("{}.positives.txt", self.name)))
    }
}

pub(crate) fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

pub(crate) fn folder(system: &str) -> PathBuf {
    vectors().join("foreign").join(system)
}

pub(crate) fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// The rows of a table without its heading, split at tabs.
pub(crate) fn rows(path: &Path) -> Vec<Vec<String>> {
    let split = |line: &String| line.split('\t').map(str::to_owned).collect();
    lines(path).iter().skip(1).map(split).collect()
}

/// All samples of a folder with one of the extensions.
fn of(
    system: &'static str,
    extensions: &[&str],
    options: ReadOptions,
    form: impl Fn(&str) -> Form,
) -> Vec<Sample> {
    let mut found: Vec<Sample> = fs::read_dir(folder(system))
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            let extension = extensions.iter().find(|end| file.ends_with(*end))?;
            let name = file.strip_suffix(extension).unwrap().to_owned();
            Some(Sample {
                system,
                form: form(&name),
                members: match name.as_str() {
                    "join_a" => 0..100,
                    "join_b" => 100..200,
                    _ => 0..200,
                },
                options: options.clone(),
                name,
                path,
            })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Every sample there is.
pub(crate) fn samples() -> Vec<Sample> {
    let text = |_: &str| Form::Text;
    let of_name = |name: &str| {
        let has = |part| name.contains(part);
        match () {
            () if has("_int_") => Form::I32,
            () if has("_long_") => Form::I64,
            () if has("utf16") => Form::Utf16,
            () => Form::Text,
        }
    };
    let found = ReadOptions::new;
    [
        of("guava", &[".bin"], found(), of_name),
        of("dcso", &[".bloom", ".bloom.gz"], found(), text),
        of("flor", &[".bloom"], found(), text),
        of("poppy", &[".poppy"], found(), text)
            .into_iter()
            .filter(|sample| sample.name.starts_with("v1"))
            .collect(),
        of("bits-and-blooms", &[".bin", ".json"], found(), text),
    ]
    .into_iter()
    .flatten()
    .collect()
}
