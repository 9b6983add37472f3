//! `petal completions` and `petal man`: what is generated from the flags.

use crate::support::Folder;

const VERBS: [&str; 20] = [
    "dedup",
    "common",
    "except",
    "build",
    "add",
    "remove",
    "check",
    "merge",
    "shrink",
    "pack",
    "unpack",
    "delta",
    "apply-delta",
    "info",
    "verify",
    "plan",
    "convert",
    "lab",
    "completions",
    "man",
];

#[test]
fn every_shell_completes_every_verb() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder
            .petal(&format!("completions {shell}"))
            .ends_with(0)
            .stdout;
        let script = String::from_utf8(script).unwrap();
        for verb in VERBS {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
        assert!(script.contains("skip-bad"), "{shell}");
    }
    folder.petal("completions tcsh").refused(&["tcsh", "bash"]);
}

#[test]
fn the_man_page_has_every_verb_and_help_names_them() {
    let folder = Folder::new();
    let page = String::from_utf8(folder.petal("man").ends_with(0).stdout).unwrap();
    let help = String::from_utf8(folder.petal("--help").ends_with(0).stdout).unwrap();
    assert!(page.contains(".TH petal 1"));
    for verb in VERBS {
        assert!(page.contains(&format!(".SH \"PETAL {}\"", verb.to_uppercase())));
        assert!(help.contains(verb));
        let help = folder.petal(&format!("{verb} --help")).ends_with(0).stdout;
        let help = String::from_utf8(help).unwrap();
        assert!(help.starts_with("Example"), "{verb}: {help}");
    }
}

#[test]
fn unknown_verbs_and_flags_are_refused() {
    let folder = Folder::new();
    folder.petal("").ends_with(2);
    folder.petal("dedupe").refused(&["dedupe", "dedup"]);
    folder.petal("plan --colour").refused(&["--colour"]);
}
