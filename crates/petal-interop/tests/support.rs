//! The recorded samples: files, keys, answers.

use std::fs;
use std::path::{Path, PathBuf};

use petal_interop::{ForeignFilter, ForeignKey, Format, RbloomHash, ReadOptions};

/// What the lines of a list are as keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Text,
    Utf16,
    I32,
    I64,
    F32,
    F64,
    Fixed8,
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
            // The columns hold what was made of an integer: the remainder, and
            // its big-endian bytes.
            Self::F32 => {
                let small = line.parse::<i32>().unwrap().rem_euclid(100_003);
                call(ForeignKey::F32(small as f32))
            }
            Self::F64 => {
                let eighths = f64::from(line.parse::<i32>().unwrap()) * 0.125;
                call(ForeignKey::F64(eighths))
            }
            Self::Fixed8 => {
                let bytes = line.parse::<i64>().unwrap().to_be_bytes();
                call(ForeignKey::Bytes(&bytes))
            }
        }
    }

    /// The list of that form: `members.txt`, `members_int.txt`, `members_long.txt`.
    pub(crate) fn list(self, name: &str) -> String {
        match self {
            Self::Text | Self::Utf16 => format!("{name}.txt"),
            Self::I32 | Self::F32 | Self::F64 => format!("{name}_int.txt"),
            Self::I64 | Self::Fixed8 => format!("{name}_long.txt"),
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

    /// Whether the file says whose it is.
    pub(crate) fn tells(&self) -> bool {
        self.system != "rbloom"
    }

    /// n and p from a name such as `..._n200_p0.03...`.
    pub(crate) fn n_and_p(&self) -> Option<(u64, f64)> {
        let part = |letter: char| {
            self.name
                .split('_')
                .filter_map(|part| part.strip_prefix(letter))
                .find(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        Some((part('n')?.parse().ok()?, part('p')?.parse().ok()?))
    }

    pub(crate) fn members(&self) -> Vec<String> {
        let all = lines(&folder(self.system).join(self.form.list("members")));
        let mut members = all[self.members.clone()].to_vec();
        if self.name.starts_with("counting") {
            // Some were removed again.
            let removed: Vec<_> = [0, 3, 6, 9].map(|i| all[i].clone()).into();
            members.retain(|member| !removed.contains(member));
        }
        members
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
                    "join_b" | "pyarrow_2rg_zstd_rg1_s" => 100..200,
                    "pyarrow_2rg_zstd_rg0_s" => 0..100,
                    "store_digest" => 0..150,
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

/// Every sample there is, but for the filters inside of .parquet files.
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
    let of_column = |name: &str| match name.rsplit('_').next() {
        Some("i32") => Form::I32,
        Some("i64") => Form::I64,
        Some("f32") => Form::F32,
        Some("fixed8") => Form::Fixed8,
        _ => Form::Text,
    };
    let found = ReadOptions::new;
    let rbloom = |hash| found().format(Format::Rbloom).rbloom_hash(hash);
    let mut all: Vec<Sample> = [
        of("guava", &[".bin"], found(), of_name),
        of("spark", &[".bin"], found(), of_name),
        of("dcso", &[".bloom", ".bloom.gz"], found(), text),
        of("flor", &[".bloom"], found(), text),
        of("poppy", &[".poppy"], found(), text),
        of("bits-and-blooms", &[".bin", ".json"], found(), text),
        of("redisbloom", &[".scandump"], found(), text),
        of("npm-bloom-filters", &[".json"], found(), text),
        of(
            "pyprobables",
            &[".blm", ".hex", ".cbm", ".ebf"],
            found(),
            text,
        ),
        of("pybloom_live", &[".bloom", ".bloom.gz"], found(), text),
        of("rbloom", &[".bloom"], rbloom(RbloomHash::Xxh64), text),
        of("parquet", &[".bloom"], found(), of_column),
        of("squid", &[".bin"], found(), text),
    ]
    .into_iter()
    .flatten()
    .collect();
    for sample in &mut all {
        if sample.system == "rbloom" && sample.name.starts_with("sha256") {
            sample.options = rbloom(RbloomHash::Sha256);
        }
    }
    all
}
