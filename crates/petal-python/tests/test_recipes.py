"""Recipes of docs/python.md that need nothing but a package."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import petal
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from petal import engine

SPEC = engine.Spec(10_000, 1e-6)


def one(path):
    batches = parquet.ParquetFile(path).iter_batches(columns=["url"], batch_size=100)
    return engine.partial((batch.column(0) for batch in batches), SPEC)


def test_processes(tmp_path):
    paths = [tmp_path / f"{part}.parquet" for part in range(3)]
    for part, path in enumerate(paths):
        parquet.write_table(pa.table({"url": [f"{part} {i}" for i in range(1000)]}), path)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        seen = petal.from_bytes(engine.merge(pool.map(one, paths)))
    assert all(f"{part} {i}" in seen for part in range(3) for i in range(1000))
    assert "3 0" not in seen


def test_duckdb():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    seen = petal.BloomFilter(1000, 1e-6)
    for batch in connection.sql("SELECT 'u' || range AS url FROM range(100)").to_arrow_reader(50):
        seen.add_many(batch.column(0))
    connection.create_function("seen", seen.contains_many, ["VARCHAR"], "BOOLEAN", type="arrow")
    new = connection.sql("SELECT url FROM (SELECT 'u' || range AS url FROM range(105)) WHERE NOT seen(url)")
    assert sorted(new.fetchall()) == [(f"u{i}",) for i in range(100, 105)]
