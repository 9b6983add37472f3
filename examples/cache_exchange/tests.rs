use hyper::HeaderMap;
use petal::Contains;

use super::*;
use crate::digest::{Answer, DELTA, Held, Published};
use crate::http::Reply;

const SMALL: Options = Options {
    caches: 3,
    objects: 1500,
    universe: 20_000,
    requests: 700,
    rounds: 5,
    error: 0.02,
    positions: None,
    seed: 7,
};

#[test]
fn digests_find_what_peers_have_at_the_error_of_the_formula() {
    for positions in [None, Some(2)] {
        let options = Options { positions, ..SMALL };
        let tally = run(&options).unwrap();
        assert_eq!(tally.failed, 0, "{tally:?}");
        assert_eq!(tally.requests, 3 * 700 * 6);
        assert_eq!(
            tally.requests,
            tally.own_hits + tally.remote_hits + tally.from_origin
        );
        // A good part of the misses that somebody could answer.
        assert!(tally.remote_hits > tally.requests / 20, "{tally:?}");
        let (got, expected) = (tally.false_hits as f64, tally.expected);
        assert!(expected > 50.0, "{tally:?}");
        assert!((got - expected).abs() <= 5.0 * expected.sqrt(), "{tally:?}");

        // Each pair of caches: the whole digest once, and four deltas.
        assert_eq!((tally.wholes, tally.deltas), (6, 24), "{tally:?}");
        let sent = tally.whole_bytes + tally.delta_bytes;
        assert!(sent < tally.packed_bytes && tally.packed_bytes < tally.raw_bytes);

        let mut text = Vec::new();
        report(&options, &tally, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("6 whole") && text.contains("24 deltas"),
            "{text}"
        );
    }
}

#[test]
fn a_run_can_be_repeated() {
    let options = Options {
        requests: 100,
        ..SMALL
    };
    assert_eq!(run(&options).unwrap(), run(&options).unwrap());
}

fn shape() -> Shape {
    Shape {
        promise: Promise {
            items: 1000,
            error: 0.01,
        },
        positions: None,
    }
}

fn objects(range: std::ops::Range<u32>) -> impl Iterator<Item = Arc<str>> {
    range.map(|i| format!("/object/{i}").into())
}

/// As it comes over the network.
fn reply(answer: Answer) -> Reply {
    let mut headers = HeaderMap::new();
    let (status, tag, body) = match answer {
        Answer::Same => (StatusCode::NOT_MODIFIED, String::new(), Bytes::new()),
        Answer::Whole(tag, body) => (StatusCode::OK, tag, body),
        Answer::Delta(tag, body) => {
            headers.insert("im", DELTA.parse().unwrap());
            (StatusCode::IM_USED, tag, body)
        }
    };
    headers.insert("etag", tag.parse().unwrap());
    Reply {
        status,
        headers,
        body,
    }
}

/// One exchange; whether what came is a delta.
fn refresh(held: &mut Option<Arc<Held>>, published: &Published) -> bool {
    let tag = held.as_ref().map(|held| held.tag.clone());
    let answer = published.answer(tag.as_deref()).unwrap().unwrap();
    let is_delta = matches!(answer, Answer::Delta(..));
    *held = Held::updated(held.take(), &reply(answer)).unwrap();
    is_delta
}

fn same(held: &Option<Arc<Held>>, published: &Published) -> bool {
    let held = &held.as_ref().unwrap().filter;
    held.to_bytes().unwrap() == published.newest().to_bytes().unwrap()
}

#[test]
fn who_has_missed_digests_gets_one_delta_or_the_whole() {
    let mut published = Published::new(shape(), 1);
    assert!(published.answer(None).unwrap().is_none());
    published.publish(objects(0..900)).unwrap();
    let mut held = None;
    assert!(!refresh(&mut held, &published));
    for missed in 1..=3 {
        for i in 0..missed {
            published.publish(objects(i * 20..900 + i * 30)).unwrap();
        }
        assert!(refresh(&mut held, &published), "{missed}");
        assert!(same(&held, &published), "{missed}");
        // Nothing new.
        let tag = held.as_ref().map(|held| held.tag.clone());
        let answer = published.answer(tag.as_deref()).unwrap().unwrap();
        assert!(matches!(answer, Answer::Same));
    }
    for i in 0..10 {
        published.publish(objects(i..900)).unwrap();
    }
    assert!(!refresh(&mut held, &published));
    assert!(same(&held, &published));
    // Everything has changed: the whole is shorter.
    published.publish(objects(5000..5900)).unwrap();
    assert!(!refresh(&mut held, &published));
    assert!(same(&held, &published));
}

#[test]
fn a_cache_that_has_begun_anew_is_not_taken_for_its_old_self() {
    let mut before = Published::new(shape(), 1);
    before.publish(objects(0..900)).unwrap();
    let mut held = None;
    refresh(&mut held, &before);
    let mut after = Published::new(shape(), 2);
    after.publish(objects(100..800)).unwrap();
    assert!(!refresh(&mut held, &after));
    assert!(same(&held, &after));
}

#[test]
fn damaged_digests_and_deltas_for_another_base_are_refused() {
    let mut published = Published::new(shape(), 1);
    published.publish(objects(0..900)).unwrap();
    let mut held = None;
    refresh(&mut held, &published);
    let whole = published.answer(None).unwrap().unwrap();
    let mut damaged = reply(whole);
    let mut body = damaged.body.to_vec();
    body[200] ^= 1;
    damaged.body = body.into();
    assert!(Held::updated(None, &damaged).is_err());

    published.publish(objects(10..910)).unwrap();
    let tag = held.as_ref().map(|held| held.tag.clone());
    let delta = published.answer(tag.as_deref()).unwrap().unwrap();
    let delta = reply(delta);
    assert_eq!(delta.status, StatusCode::IM_USED);
    assert!(Held::updated(None, &delta).is_err());
    let mut other = Published::new(shape(), 1);
    other.publish(objects(5..905)).unwrap();
    let mut theirs = None;
    refresh(&mut theirs, &other);
    assert!(Held::updated(theirs, &delta).is_err());
    let next = Held::updated(held, &delta).unwrap().unwrap();
    assert_eq!(Contains::about(&next.filter).generation(), 2);
}

#[test]
fn a_peer_that_is_gone_costs_its_share_and_no_answer() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // A port that nobody listens on any more.
        let gone = {
            let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
            listener.local_addr().unwrap()
        };
        let cache = Arc::new(Cache::new(serve(origin).await.unwrap(), 10, shape(), 1));
        cache.meet([gone]);
        cache.publish().unwrap();
        cache.refresh(&[cache.sizes()]).await;
        assert_eq!(cache.tally().failed, 1);
        let answering = cache.clone();
        let address = serve(move |request| answering.clone().handle(request))
            .await
            .unwrap();
        let reply = Link::to(address).get("/object/1", &[]).await.unwrap();
        assert_eq!(reply.body, body_of("/object/1"));
        assert_eq!(cache.tally().from_origin, 1);
    });
}

#[test]
fn flags_are_checked() {
    let parse = |line: &str| Options::parse(line.split_whitespace().map(str::to_owned));
    assert_eq!(parse("--caches 9 --positions 3").unwrap().caches, 9);
    assert_eq!(parse("--positions 3").unwrap().positions, Some(3));
    for bad in [
        "--caches",
        "--caches 1",
        "--positions 0",
        "--objects 5",
        "--rounds 0",
        "--x 1",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}
