//! The mail list while it is asked and exchanged.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use petal::{BloomFilter, CascadeFilter, Overwrite};

use crate::program::Server;

fn save_cascade(path: &Path, denied: &[&str]) {
    let customers: Vec<_> = (0..500).map(|i| format!("customer{i}.example")).collect();
    let filter = CascadeFilter::from_keys(denied, &customers, 1e-9).unwrap();
    filter.save(path, Overwrite::Replace).unwrap();
}

async fn ask(client: &reqwest::Client, url: &str, address: &str) -> String {
    let reply = client
        .get(format!("{url}/check?address={address}"))
        .send()
        .await
        .unwrap();
    assert_eq!(reply.status(), 200);
    reply.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_dropped_while_lists_are_exchanged() {
    const SWAPS: u64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let deny = folder.path().join("deny.petal");
    save_cascade(&deny, &["always.example", "even.example"]);
    let server = Server::start(
        Command::new(env!("CARGO_BIN_EXE_mail_list"))
            .arg(&deny)
            .args(["--listen", "127.0.0.1:0"]),
    );
    let url = server.url.as_str();
    let done = AtomicBool::new(false);
    let [answered, even, odd] = [const { AtomicU64::new(0) }; 3];
    let client = reqwest::Client::new();
    let load = async || {
        while !done.load(Ordering::Relaxed) {
            assert_eq!(
                ask(&client, url, "x@mx.always.example").await,
                "block always.example\n"
            );
            assert_eq!(ask(&client, url, "x@customer7.example").await, "pass\n");
            match ask(&client, url, "x@even.example").await.as_str() {
                "block even.example\n" => &even,
                "pass\n" => &odd,
                other => panic!("{other}"),
            }
            .fetch_add(1, Ordering::Relaxed);
            answered.fetch_add(3, Ordering::Relaxed);
        }
    };
    let swap = async {
        for number in 0..SWAPS {
            match number % 2 {
                0 => save_cascade(&deny, &["always.example"]),
                _ => save_cascade(&deny, &["always.example", "even.example"]),
            }
            if number % 4 == 3 {
                let pid = server.id().to_string();
                assert!(
                    Command::new("kill")
                        .args(["-HUP", &pid])
                        .status()
                        .unwrap()
                        .success()
                );
            } else {
                let reply = client.post(format!("{url}/reload")).send().await.unwrap();
                assert_eq!(reply.status(), 200);
            }
            let before = answered.load(Ordering::Relaxed);
            while answered.load(Ordering::Relaxed) < before + 20 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(swap, load(), load(), load(), load());
    // Both lists were in force, and every request had its answer from one of them.
    assert!(even.load(Ordering::Relaxed) > 0 && odd.load(Ordering::Relaxed) > 0);
    assert!(answered.load(Ordering::Relaxed) >= 20 * SWAPS);
}

#[tokio::test]
async fn lists_that_cannot_be_read_leave_the_old_ones_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let (deny, allow) = (
        folder.path().join("deny.petal"),
        folder.path().join("allow.txt"),
    );
    let mut filter = BloomFilter::new(10, 1e-9).unwrap();
    filter.insert("bad.example").unwrap();
    filter.save(&deny, Overwrite::Refuse).unwrap();
    std::fs::write(&allow, "good.bad.example\n").unwrap();
    let server = Server::start(
        Command::new(env!("CARGO_BIN_EXE_mail_list"))
            .arg(&deny)
            .arg("--allow")
            .arg(&allow)
            .args(["--listen", "127.0.0.1:0"]),
    );
    let client = reqwest::Client::new();
    let url = server.url.as_str();
    let lines = client
        .post(format!("{url}/check"))
        .body("x@bad.example\nx@good.bad.example\nx@other.example\n@\n");
    let lines = lines.send().await.unwrap().text().await.unwrap();
    assert_eq!(
        lines,
        "block bad.example\npass good.bad.example\npass\n\
         bad expected an address such as name@example.org, or a domain\n"
    );
    let reply = client
        .get(format!("{url}/check?address=@"))
        .send()
        .await
        .unwrap();
    assert_eq!(reply.status(), 400);

    for (damaged, said) in [(&allow, "line 1"), (&deny, "deny.petal")] {
        let good = std::fs::read(damaged).unwrap();
        std::fs::write(damaged, "not this\n").unwrap();
        let reply = client.post(format!("{url}/reload")).send().await.unwrap();
        assert_eq!(reply.status(), 422);
        let text = reply.text().await.unwrap();
        assert!(
            text.starts_with("the old lists stay") && text.contains(said),
            "{text}"
        );
        assert_eq!(
            ask(&client, url, "x@bad.example").await,
            "block bad.example\n"
        );
        std::fs::write(damaged, good).unwrap();
    }
    let reply = client.post(format!("{url}/reload")).send().await.unwrap();
    assert_eq!(reply.status(), 200);
}
