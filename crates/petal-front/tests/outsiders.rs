//! Writers that go past the front.

use petal_front::{Batch, Front, Opened, RedbStore, SqliteStore, Store};
use redb::TableDefinition;
use rusqlite::Connection;

use crate::engines::{Place, check_all, small};

fn with_one_key<S: crate::engines::Engine>(place: &Place) {
    let front = place.front::<S>(small());
    let mut batch = Batch::new();
    batch.put("key", "value");
    front.write(&batch).unwrap();
    front.save().unwrap();
}

#[test]
fn what_sql_wrote_is_caught_up_with() {
    let place = Place::new();
    with_one_key::<SqliteStore>(&place);
    let sql = Connection::open(place.store()).unwrap();
    sql.execute("INSERT INTO keys VALUES (x'61', x'00'), (x'62', x'00')", [])
        .unwrap();
    sql.execute("INSERT OR REPLACE INTO keys VALUES (x'63', x'00')", [])
        .unwrap();
    sql.execute("UPDATE keys SET key = x'64' WHERE key = x'62'", [])
        .unwrap();
    drop(sql);
    let front = place.front::<SqliteStore>(small());
    assert_eq!(front.status().opened, Opened::CaughtUp { keys: 4 });
    assert_eq!(check_all(&front), 4);
    assert!(front.get("d").unwrap().is_some());
}

#[test]
fn nobody_else_writes_to_sqlite_meanwhile() {
    let place = Place::new();
    let front = place.front::<SqliteStore>(small());
    let sql = Connection::open(place.store()).unwrap();
    sql.busy_timeout(std::time::Duration::ZERO).unwrap();
    let error = sql
        .execute("INSERT INTO keys VALUES (x'61', x'00')", [])
        .unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
    drop(front);
}

#[test]
fn a_log_without_its_triggers_is_not_trusted() {
    let place = Place::new();
    with_one_key::<SqliteStore>(&place);
    let kept = std::fs::read(place.filter()).unwrap();
    for gone in [
        "DROP TRIGGER keys_petal_insert",
        "DROP TRIGGER keys_petal_insert; CREATE TRIGGER keys_petal_insert AFTER INSERT ON keys BEGIN SELECT 1; END",
        "DROP TABLE keys_petal_log; DROP TRIGGER keys_petal_insert; DROP TRIGGER keys_petal_update",
    ] {
        std::fs::write(place.filter(), &kept).unwrap();
        let sql = Connection::open(place.store()).unwrap();
        sql.execute_batch(gone).unwrap();
        sql.execute("INSERT INTO keys VALUES (randomblob(16), x'00')", [])
            .unwrap();
        drop(sql);
        let front = place.front::<SqliteStore>(small());
        assert!(
            matches!(front.status().opened, Opened::Rebuilt { .. }),
            "{gone}"
        );
        check_all(&front);
    }
    // And the new ones work.
    let sql = Connection::open(place.store()).unwrap();
    sql.execute("INSERT INTO keys VALUES (x'65', x'00')", [])
        .unwrap();
    drop(sql);
    let front = place.front::<SqliteStore>(small());
    assert_eq!(front.status().opened, Opened::CaughtUp { keys: 1 });
    check_all(&front);
}

#[test]
fn sql_through_the_front_is_caught_up_with() {
    let place = Place::new();
    let front = place.front::<SqliteStore>(small());
    let changed = front
        .change(|store| {
            store.with_connection(|sql| {
                sql.execute("INSERT INTO keys VALUES (x'61', x'00'), (x'62', x'00')", [])
            })
        })
        .unwrap();
    assert_eq!(changed.unwrap(), 2);
    assert_eq!(check_all(&front), 2);
    assert_eq!(front.get("c").unwrap(), None);
    assert!(!front.may_contain("c"));
    drop(front);
    check_all(&place.front::<SqliteStore>(small()));
}

fn write_past(store: &RedbStore, key: &str) {
    let table: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");
    let transaction = store.database().begin_write().unwrap();
    let value: &[u8] = b"x";
    transaction
        .open_table(table)
        .unwrap()
        .insert(key.as_bytes(), value)
        .unwrap();
    transaction.commit().unwrap();
}

#[test]
fn keys_that_went_past_a_redb_front_are_noticed_at_the_next_open() {
    let place = Place::new();
    with_one_key::<RedbStore>(&place);
    let old = std::fs::read(place.filter()).unwrap();
    let store = <RedbStore as crate::engines::Engine>::open(&place.store());
    write_past(&store, "past");
    // The front's own writes must not cover it up.
    let mut batch = Batch::new();
    batch.put("own", "");
    store.apply(batch.changes(), None).unwrap();
    drop(store);
    let front = place.front::<RedbStore>(small());
    assert!(matches!(
        front.status().opened,
        Opened::Rebuilt { keys: 3, .. }
    ));
    assert_eq!(check_all(&front), 3);
    drop(front);
    // Nor is the log that lacks a key used with an old file.
    std::fs::write(place.filter(), old).unwrap();
    let front = place.front::<RedbStore>(small());
    assert!(matches!(
        front.status().opened,
        Opened::Rebuilt { keys: 3, .. }
    ));
}

#[test]
fn a_redb_store_that_was_changed_through_the_front_is_read_anew() {
    let place = Place::new();
    let front: Front<RedbStore> = place.front(small());
    front.change(|store| write_past(store, "past")).unwrap();
    assert!(front.get("past").unwrap().is_some());
    assert!(!front.may_contain("absent"));
}

#[test]
fn a_change_that_panics_makes_nothing_absent() {
    let place = Place::new();
    let front: Front<RedbStore> = place.front(small());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        front.change(|store| {
            write_past(store, "past");
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert!(front.get("past").unwrap().is_some());
    assert!(front.may_contain("absent"), "nothing is known to be absent");
    assert!(front.save().is_err());
    front.rebuild().unwrap();
    assert!(!front.may_contain("absent"));
    assert_eq!(check_all(&front), 1);
}

#[test]
fn a_table_that_was_there_before_gets_a_filter() {
    let place = Place::new();
    let sql = Connection::open(place.store()).unwrap();
    sql.execute_batch(
        "CREATE TABLE keys (key BLOB PRIMARY KEY, value BLOB); INSERT INTO keys VALUES (x'61', x'00')",
    )
    .unwrap();
    drop(sql);
    let front = place.front::<SqliteStore>(small());
    assert_eq!(check_all(&front), 1);

    let place = Place::new();
    let database = redb::Database::create(place.store()).unwrap();
    let table: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");
    let transaction = database.begin_write().unwrap();
    let (key, value): (&[u8], &[u8]) = (b"a", b"x");
    transaction
        .open_table(table)
        .unwrap()
        .insert(key, value)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let front = place.front::<RedbStore>(small());
    assert_eq!(check_all(&front), 1);
}
