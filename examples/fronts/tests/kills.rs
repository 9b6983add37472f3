//! Fronts that are killed. `./test fronts` kills five hundred.

use std::process::Command;

#[test]
fn no_key_is_wrongly_absent_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_front_trials"))
        .args(["kills", "--count", "24", "--folder"])
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let rows = said.lines().filter(|line| line.ends_with("| 0 | 0 |"));
    assert_eq!(rows.count(), 2, "{said}");
}
