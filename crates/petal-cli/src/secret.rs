//! The secret of a keyed filter, as `--secret-file` brings it.
//!
//! What the secret is used for is the library's affair.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use petal::Secret;

use crate::os::display_name;

/// A secret file that cannot be used. Its contents are not part of any message.
#[derive(Debug)]
pub(crate) struct SecretError {
    name: String,
    fault: SecretFault,
}

#[derive(Debug)]
enum SecretFault {
    Read(io::Error),
    /// The bytes that came, at most one more than can be right.
    Length(usize),
    NewlineAfterRaw,
    HalfHex,
    NotHex {
        /// Counted from 1.
        position: usize,
    },
}

const FORM: &str = "expected 16 raw bytes or 32 hex digits, as from `openssl rand -hex 16`";

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret file {}: ", self.name)?;
        match &self.fault {
            SecretFault::Read(e) => write!(f, "cannot read: {e}"),
            SecretFault::Length(0) => write!(f, "is empty; {FORM}"),
            SecretFault::Length(n) if *n > MOST => write!(f, "is more than {MOST} bytes; {FORM}"),
            SecretFault::Length(n) => write!(f, "is {n} bytes; {FORM}"),
            SecretFault::NewlineAfterRaw => write!(
                f,
                "is 17 bytes with a line end, which might belong to the secret or not; {FORM}"
            ),
            SecretFault::HalfHex => {
                write!(f, "is 16 hex digits, only half of a secret; {FORM}")
            }
            SecretFault::NotHex { position } => {
                write!(f, "byte {position} is no hex digit; {FORM}")
            }
        }
    }
}

impl Error for SecretError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.fault {
            SecretFault::Read(e) => Some(e),
            _ => None,
        }
    }
}

/// Hex digits and a line end as Windows writes it.
const MOST: usize = 34;

/// Reads a secret: 16 raw bytes, or 32 hex digits in either case that a line end may follow.
///
/// The second value is a warning for the user, if the file may be read by others than its
/// owner. Errors: a file that cannot be read or holds something else; not more than 35 bytes
/// are read of it.
pub(crate) fn read_secret(path: &Path) -> Result<(Secret, Option<String>), SecretError> {
    let error = |fault| SecretError {
        name: display_name(path),
        fault,
    };
    let mut content = Vec::with_capacity(MOST + 1);
    let mut read = || -> io::Result<_> {
        let file = File::open(path)?;
        let facts = file.metadata()?;
        file.take(MOST as u64 + 1).read_to_end(&mut content)?;
        Ok(facts)
    };
    let facts = read().map_err(|e| error(SecretFault::Read(e)))?;
    let secret = parse(&content).map_err(error)?;
    let mode = facts.permissions().mode() & 0o7777;
    let warning = (facts.is_file() && mode & 0o044 != 0).then(|| {
        let name = display_name(path);
        format!(
            "secret file {name}: others than its owner may read it (mode {mode:03o}); \
             `chmod 600` it"
        )
    });
    Ok((secret, warning))
}

fn parse(content: &[u8]) -> Result<Secret, SecretFault> {
    if content.len() > MOST {
        return Err(SecretFault::Length(content.len()));
    }
    if let Ok(raw) = <[u8; 16]>::try_from(content) {
        // By chance this happens once in 10^17.
        if raw.iter().all(u8::is_ascii_hexdigit) {
            return Err(SecretFault::HalfHex);
        }
        return Ok(Secret::new(raw));
    }
    let line = content
        .strip_suffix(b"\n")
        .map_or(content, |l| l.strip_suffix(b"\r").unwrap_or(l));
    if line.len() == 16 && content.len() == 17 {
        return Err(SecretFault::NewlineAfterRaw);
    }
    if line.len() != 32 {
        return Err(SecretFault::Length(content.len()));
    }
    let mut secret = [0; 16];
    for (i, &digit) in line.iter().enumerate() {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return Err(SecretFault::NotHex { position: i + 1 }),
        };
        secret[i / 2] = secret[i / 2] << 4 | value;
    }
    Ok(Secret::new(secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const HEX: &[u8] = b"000102030405060708090a0B0c0D0e0F";

    #[test]
    fn raw_and_hex_are_read() {
        let bytes: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap());
        let line_ends: [&[u8]; 3] = [b"", b"\n", b"\r\n"];
        for end in line_ends {
            assert_eq!(parse(&[HEX, end].concat()).unwrap(), Secret::new(bytes));
        }
        assert_eq!(parse(&bytes).unwrap(), Secret::new(bytes));
        assert_eq!(
            parse(b"fifteen bytes..\n").unwrap(),
            Secret::new(*b"fifteen bytes..\n")
        );
    }

    #[test]
    fn anything_else_is_named() {
        let long = vec![b'a'; 200];
        let spaced = [b" ", HEX].concat();
        let twice = [HEX, b"\n\n"].concat();
        let mut wrong = HEX.to_vec();
        wrong[9] = b'g';
        let cases: [(&[u8], &str); 9] = [
            (b"", "is empty"),
            (b"abc", "is 3 bytes"),
            (b"0123456789abcdef", "only half of a secret"),
            (b"sixteen letters!\n", "17 bytes with a line end"),
            (&long, "is more than 34 bytes"),
            (&spaced, "is 33 bytes"),
            (&twice, "is 34 bytes"),
            (&wrong, "byte 10 is no hex digit"),
            (&HEX[..31], "is 31 bytes"),
        ];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        for (content, why) in cases {
            fs::write(&path, content).unwrap();
            let message = read_secret(&path).unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
            assert!(
                message.contains("secret: ") && message.contains("expected"),
                "{message}"
            );
            assert!(!message.contains("sixteen"), "{message}");
        }
    }

    #[test]
    fn files_that_cannot_be_read_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path(), &dir.path().join("missing")] {
            let message = read_secret(path).unwrap_err().to_string();
            assert!(message.contains("cannot read"), "{message}");
        }
        // Endless, so it must not be read to its end.
        let message = read_secret(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(message.contains("more than 34 bytes"), "{message}");
    }

    #[test]
    fn a_file_open_to_others_is_warned_of() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(&path, HEX).unwrap();
        for (mode, warns) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let (_, warning) = read_secret(&path).unwrap();
            assert_eq!(warning.is_some(), warns, "{mode:o}");
            if let Some(warning) = warning {
                assert!(warning.contains(&format!("{mode:03o}")), "{warning}");
            }
        }
    }

    #[test]
    fn debug_does_not_show_it() {
        let shown = format!("{:?}", parse(HEX).unwrap());
        assert_eq!(shown, "Secret(..)");
    }
}
