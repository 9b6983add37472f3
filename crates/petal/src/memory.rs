//! How much memory this process may use, and how much it has used.
//!
//! The limits of Linux are read where it keeps them: /proc/meminfo, the control groups of
//! the process and all their ancestors (versions 1 and 2), the resource limits. On other
//! systems only the resource limits count.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::error::{Error, Result};

/// What the process may use, and what says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Bytes.
    pub bytes: u64,
    /// Who limits it, for messages.
    pub by: &'static str,
}

/// Where no limit can be found out: what any machine of today has.
const UNKNOWN: Limit = Limit {
    bytes: 1 << 30,
    by: "a guess (no limit could be read)",
};

/// The least of the machine's memory, the limits of the control groups, and the limits of
/// the process on its address space and data (`ulimit -v`, `ulimit -d`).
#[must_use]
pub fn available() -> Limit {
    let read = |path: &Path| fs::read_to_string(path).ok();
    [
        ram(&read),
        cgroup(&read),
        resource(Resource::As),
        resource(Resource::Data),
    ]
    .into_iter()
    .flatten()
    .min_by_key(|limit| limit.bytes)
    .unwrap_or(UNKNOWN)
}

/// The most memory that was resident at once in the life of this process, in bytes, where
/// the system tells.
#[must_use]
pub fn peak_resident() -> Option<u64> {
    field(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// From now on the bits of large filters come from the program's global
/// allocator, as those of small ones do, and not from mappings of their own: for
/// a program that counts or limits what it allocates. There are then no pages
/// of 2 MiB, and fresh memory is only as lazy as the allocator's.
pub fn use_global_allocator() {
    crate::words::use_global_allocator();
}

/// Sizes below this are tried without asking for the limits first.
const SMALL: u64 = 64 << 20;

/// Refuses a size in bytes that this process may not use, before it is allocated.
///
/// # Errors
/// If the limit is smaller ([`Error::TooLarge`]).
pub fn check(bytes: u64) -> Result<()> {
    if bytes < SMALL {
        return Ok(());
    }
    let limit = available();
    if bytes > limit.bytes {
        return Err(Error::TooLarge {
            needed: bytes,
            available: Some(limit.bytes),
        });
    }
    Ok(())
}

/// Reads a file, or does not.
type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

fn ram(read: Read<'_>) -> Option<Limit> {
    let bytes = field(&read(Path::new("/proc/meminfo"))?, "MemTotal:")?;
    Some(Limit {
        bytes,
        by: "the memory of this machine",
    })
}

/// The value of a line like `MemTotal:   16316412 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let (value, unit) = line.trim().split_once(' ')?;
    if unit.trim() != "kB" {
        return None;
    }
    value.parse::<u64>().ok()?.checked_mul(1024)
}

fn resource(resource: Resource) -> Option<Limit> {
    let by = if resource == Resource::As {
        "ulimit -v"
    } else {
        "ulimit -d"
    };
    Some(Limit {
        bytes: getrlimit(resource).current?,
        by,
    })
}

/// The least memory limit of the process's control groups and their ancestors.
fn cgroup(read: Read<'_>) -> Option<Limit> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let mut least: Option<u64> = None;
    for mount in mounts.lines().filter_map(Mount::parse) {
        let Some(group) = groups.lines().find_map(|line| mount.group(line)) else {
            continue;
        };
        for dir in group
            .ancestors()
            .take_while(|dir| dir.starts_with(&mount.point))
        {
            for file in mount.files {
                // "max", and a missing file at the root, are no limit.
                let limit = read(&dir.join(file)).and_then(|text| text.trim().parse().ok());
                least = least.into_iter().chain(limit).min();
            }
        }
    }
    Some(Limit {
        bytes: least?,
        by: "the limit of the control group (container)",
    })
}

/// A mounted hierarchy of control groups that governs memory.
struct Mount {
    /// The group that is seen at `point`.
    root: PathBuf,
    point: PathBuf,
    unified: bool,
    /// The files of a group that limit memory.
    files: &'static [&'static str],
}

impl Mount {
    /// Reads a line of mountinfo: `36 35 98:0 /root /point opts [tags] - type source opts`.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
        let mut fields = after.split(' ');
        let kind = fields.next()?;
        let options = fields.nth(1).unwrap_or("");
        match kind {
            // Past `high` the kernel slows the group down until it hardly moves.
            "cgroup2" => Some(Self {
                root,
                point,
                unified: true,
                files: &["memory.max", "memory.high"],
            }),
            "cgroup" if options.split(',').any(|option| option == "memory") => Some(Self {
                root,
                point,
                unified: false,
                files: &["memory.limit_in_bytes"],
            }),
            _ => None,
        }
    }

    /// Where this hierarchy shows the group that a line of /proc/self/cgroup names, as in
    /// `4:memory:/group` and `0::/group`, if the line is about this hierarchy.
    fn group(&self, line: &str) -> Option<PathBuf> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let ours = if self.unified {
            controllers.is_empty()
        } else {
            controllers
                .split(',')
                .any(|controller| controller == "memory")
        };
        if !ours {
            return None;
        }
        // A group outside of what is mounted here: the mount point is all that can be seen.
        let inside = Path::new(path)
            .strip_prefix(&self.root)
            .unwrap_or(Path::new(""));
        let visible = !inside
            .components()
            .any(|part| part == std::path::Component::ParentDir);
        Some(if visible {
            self.point.join(inside)
        } else {
            self.point.clone()
        })
    }
}

/// Undoes the octal escapes of mountinfo (space, tab, newline, backslash).
fn unescape(field: &str) -> PathBuf {
    let mut text = field.to_owned();
    for (escape, c) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        text = text.replace(escape, c);
    }
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn limit(files: &[(&str, &str)]) -> Option<u64> {
        let files: HashMap<PathBuf, String> = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
            .collect();
        cgroup(&|path| files.get(path).cloned()).map(|limit| limit.bytes)
    }

    const V2: &str = "30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
    const V1: &str = "33 32 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      34 32 0:30 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

    #[test]
    fn the_least_of_all_ancestors_counts() {
        let base = [
            ("/proc/self/cgroup", "0::/user/job\n"),
            ("/proc/self/mountinfo", V2),
        ];
        let with = |more: &[(&'static str, &'static str)]| limit(&[&base[..], more].concat());
        assert_eq!(with(&[]), None);
        assert_eq!(
            with(&[("/sys/fs/cgroup/user/job/memory.max", "max\n")]),
            None
        );
        let parent = ("/sys/fs/cgroup/user/memory.max", "5000\n");
        let own = ("/sys/fs/cgroup/user/job/memory.max", "9000\n");
        let high = ("/sys/fs/cgroup/user/job/memory.high", "4000\n");
        let other = ("/sys/fs/cgroup/other/memory.max", "1\n");
        let above = ("/sys/fs/memory.max", "2\n");
        assert_eq!(with(&[own, other, above]), Some(9000));
        assert_eq!(with(&[own, parent, other]), Some(5000));
        assert_eq!(with(&[own, parent, high]), Some(4000));
    }

    #[test]
    fn a_container_sees_its_group_as_the_root() {
        let files = [
            ("/proc/self/mountinfo", V1),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n"),
            (
                "/sys/fs/cgroup/memory/sub/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ];
        for (group, bytes) in [
            ("5:cpu:/x\n4:cpuset,memory:/docker/ab/sub\n", Some(7000)),
            ("4:memory:/docker/ab\n", Some(7000)),
            ("4:memory:/elsewhere\n", Some(7000)),
            ("4:memory:/docker/ab/../../x\n", Some(7000)),
            ("5:cpu:/x\n", None),
            ("nonsense\n\n::\n", None),
        ] {
            let all = [&[("/proc/self/cgroup", group)], &files[..]].concat();
            assert_eq!(limit(&all), bytes, "{group}");
        }
    }

    #[test]
    fn mount_points_may_hold_blanks() {
        let mount = Mount::parse("30 1 0:26 / /a\\040b\\134 rw - cgroup2 none rw").unwrap();
        assert_eq!(mount.point, Path::new("/a b\\"));
        assert!(Mount::parse("30 1 0:26 / / rw - ext4 none rw").is_none());
        assert!(Mount::parse("garbage").is_none());
    }

    #[test]
    fn fields_need_their_unit() {
        assert_eq!(
            field("MemFree: 1 kB\nMemTotal:       12 kB\n", "MemTotal:"),
            Some(12288)
        );
        assert_eq!(field("MemTotal: 12 MB\n", "MemTotal:"), None);
        assert_eq!(field("MemTotal: x kB\n", "MemTotal:"), None);
        assert_eq!(
            field("MemTotal: 99999999999999999999 kB\n", "MemTotal:"),
            None
        );
        assert_eq!(field("", "MemTotal:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_answers() {
        let limit = available();
        assert_ne!(limit, UNKNOWN);
        assert!(limit.bytes > 1 << 20, "{limit:?}");
        let before = peak_resident().unwrap();
        let mut block = vec![1u8; 64 << 20];
        block[12345] = 2;
        assert!(std::hint::black_box(&block)[12345] == 2);
        assert!(peak_resident().unwrap() >= before.max(64 << 20));
    }
}
