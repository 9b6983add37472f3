//! The `redis` crate against a server with the module: tests/redis/run.py starts one for each
//! protocol and names it in PETAL_REDIS_URL.

use redis::bloom::{
    BloomFilterDumpIterator, BloomFilterInfoType, BloomFilterInsertOptions,
    BloomFilterScalingOptions,
};
use redis::{Connection, TypedCommands as _};

fn connection() -> Connection {
    let url = std::env::var("PETAL_REDIS_URL").expect("PETAL_REDIS_URL names the server");
    let client = redis::Client::open(url).expect("a URL");
    client.get_connection().expect("a server")
}

#[test]
#[ignore = "needs a server: ./test redis"]
fn the_bloom_commands_work_unchanged() {
    let mut server = connection();
    server.bf_reserve("reserved", 0.01, 1000).unwrap();
    let refused = server.bf_reserve("reserved", 0.01, 1000).unwrap_err();
    assert!(refused.to_string().contains("item exists"), "{refused}");
    let grows = BloomFilterScalingOptions::ExpansionRate(4);
    server
        .bf_reserve_options("grows", 0.001, 50, grows)
        .unwrap();
    let fixed = BloomFilterScalingOptions::NonScaling;
    server
        .bf_reserve_options("fixed", 0.001, 50, fixed)
        .unwrap();

    assert!(server.bf_add("reserved", "a").unwrap());
    assert!(!server.bf_add("reserved", "a").unwrap());
    assert_eq!(
        server.bf_madd("reserved", &["a", "b"]).unwrap(),
        [false, true]
    );
    assert!(server.bf_exists("reserved", "b").unwrap());
    assert_eq!(
        server.bf_mexists("reserved", &["a", "x"]).unwrap(),
        [true, false]
    );
    assert_eq!(server.bf_card("reserved").unwrap(), 2);
    assert_eq!(server.bf_insert("made", &["a", "b"]).unwrap(), [true, true]);
    let options = BloomFilterInsertOptions::default()
        .capacity(70)
        .error_rate(0.001);
    server
        .bf_insert_options("made so", &["a"], options)
        .unwrap();
    assert_eq!(server.bf_info("reserved").unwrap().len(), 5);
    server
        .bf_info_type("made so", BloomFilterInfoType::Capacity)
        .unwrap();

    let chunks: Vec<_> = BloomFilterDumpIterator::new(&mut server, "reserved").collect();
    assert!(!chunks.is_empty());
    for chunk in chunks {
        server.bf_loadchunk("copy", chunk.unwrap()).unwrap();
    }
    assert_eq!(
        server.bf_mexists("copy", &["a", "b", "x"]).unwrap(),
        [true, true, false]
    );
}
