"""Columns: lists, numpy, pyarrow, pandas, polars, and Arrow's interface itself."""

import numpy as np
import pandas as pd
import petal
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
ROWS = st.lists(st.none() | TEXT, max_size=80)

TEXT_COLUMNS = {
    "string": lambda rows: pa.array(rows, pa.string()),
    "large": lambda rows: pa.array(rows, pa.large_string()),
    "view": lambda rows: pa.array(rows, pa.string_view()),
    "binary": lambda rows: pa.array([None if r is None else r.encode() for r in rows], pa.binary()),
    "large binary": lambda rows: pa.array([None if r is None else r.encode() for r in rows], pa.large_binary()),
    "binary view": lambda rows: pa.array([None if r is None else r.encode() for r in rows], pa.binary_view()),
    "dictionary": lambda rows: pa.array(rows, pa.string()).dictionary_encode(),
    "chunks": lambda rows: pa.chunked_array([rows[:3], rows[3:]], pa.string()),
    "slice": lambda rows: pa.array(["x", None, *rows, "y"], pa.string())[2:-1],
    "polars": lambda rows: pl.Series("k", rows, dtype=pl.String),
    "polars categories": lambda rows: pl.Series("k", rows, dtype=pl.Categorical),
    "polars binary": lambda rows: pl.Series("k", [None if r is None else r.encode() for r in rows], dtype=pl.Binary),
    "pandas": lambda rows: pd.Series(rows, dtype="string"),
    "pandas objects": lambda rows: pd.Series(rows, dtype=object),
    "pandas categories": lambda rows: pd.Series(rows, dtype="string").astype("category"),
    "numpy objects": lambda rows: np.array([*rows, None], dtype=object)[:-1],
    "list": lambda rows: rows,
    "tuple": tuple,
    "iterator": iter,
}


def rows_of(answers):
    """Answers of any library as a list of True, False and None."""
    if isinstance(answers, np.ma.MaskedArray):
        return [None if gone else bool(a) for a, gone in zip(answers.data, np.ma.getmaskarray(answers))]
    if isinstance(answers, pd.Series):
        return [None if answer is pd.NA else bool(answer) for answer in answers]
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(answers, method):
            return getattr(answers, method)()
    raise AssertionError(type(answers))


@pytest.mark.parametrize("column", TEXT_COLUMNS)
@given(added=ROWS, asked=ROWS)
def test_text_columns_like_a_set(column, added, asked):
    make = TEXT_COLUMNS[column]
    seen, truth, expected = petal.BloomFilter(500, 1e-9), set(), []
    for row in added:
        expected.append(None if row is None else row not in truth)
        truth.add(row)
    truth.discard(None)
    assert rows_of(seen.add_many(make(added))) == expected
    answers = seen.contains_many(make(asked))
    assert rows_of(answers) == [None if row is None else row in truth for row in asked]
    one_by_one = petal.BloomFilter(500, 1e-9)
    for key in truth:
        one_by_one.add(key)
    assert seen == one_by_one


def test_answers_are_of_the_library_that_the_keys_came_from():
    seen = petal.BloomFilter(10, 0.01)
    seen.add("a")
    ask = seen.contains_many
    assert isinstance(ask(pa.array(["a"])), pa.BooleanArray)
    assert isinstance(ask(pa.chunked_array([["a"]])), pa.ChunkedArray)
    polars = ask(pl.Series("name", ["a", None]))
    assert polars.name == "name" and polars.dtype == pl.Boolean
    assert ask(np.array(["a"])).dtype == np.bool_
    pandas = ask(pd.Series(["a", None], index=[7, 8]))
    assert pandas.dtype == "boolean" and list(pandas.index) == [7, 8]
    own = ask(["a", "b", None])
    assert type(own) is petal.BooleanArray and own == [True, False, None]
    assert pa.array(own).to_pylist() == list(own) == own.to_pylist() == [True, False, None]
    assert (len(own), own[0], own[-1], own.null_count, own.true_count()) == (3, True, None, 1, 1)
    with pytest.raises(IndexError):
        own[3]
    with pytest.raises(ValueError, match="null"):
        own.to_numpy()
    assert np.asarray(ask(["a", "b"])).tolist() == [True, False]


WIDTHS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@given(st.lists(st.integers(-(2**63), 2**64 - 1), max_size=30))
def test_every_width_of_integers_is_the_same_key(values):
    for width in WIDTHS:
        info = np.iinfo(width)
        fits = [v for v in values if info.min <= v <= min(info.max, 2**63 - 1)]
        one_by_one = petal.BloomFilter(100, 1e-9, keys="int")
        for value in fits:
            one_by_one.add(value)
        for column in (
            np.array(fits, dtype=width),
            np.array(fits, dtype=np.dtype(width).newbyteorder()),
            np.repeat(np.array(fits, dtype=width), 2)[::2],
            pa.array(fits, getattr(pa, width)()),
            pa.array(fits, getattr(pa, width)()).dictionary_encode(),
            pl.Series(fits, dtype=getattr(pl, width.replace("int", "Int").replace("uI", "UI"))),
            pd.Series(fits, dtype=width),
            pd.Series(fits, dtype=width.replace("int", "Int").replace("uI", "UI")),
            [np.dtype(width).type(v) for v in fits],
        ):
            many = petal.BloomFilter(100, 1e-9, keys="int")
            many.add_many(column)
            assert many == one_by_one, (width, type(column))


def test_unsigned_values_that_no_key_can_be_are_named():
    value = 2**63 + 5
    for column in (
        np.array([1, value], dtype="uint64"),
        pa.array([1, None, value], pa.uint64()),
        pa.array([1, value], pa.uint64()).dictionary_encode(),
        pa.chunked_array([[1], [value]], pa.uint64()),
        pl.Series([1, value], dtype=pl.UInt64),
        pd.Series([1, value], dtype="uint64"),
        [1, value],
    ):
        seen = petal.BloomFilter(10, 0.01, keys="int")
        with pytest.raises(OverflowError, match=str(value)):
            seen.add_many(column)
        with pytest.raises(OverflowError, match=str(value)):
            seen.contains_many(column)
        assert seen.fill == 0, "nothing of a refused column is added"


@pytest.mark.parametrize("keys", ["bytes", "int"])
@pytest.mark.parametrize(
    "column",
    [
        np.array([1.5]),
        np.array([True]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([[1]]),
        pa.array([1.5]).dictionary_encode(),
        pa.table({"a": [1]}),
        pa.record_batch({"a": [1]}),
        pl.Series([1.5]),
        pl.DataFrame({"a": [1]}),
        pd.Series([1.5]),
        pd.Series([True]),
        pd.DataFrame({"a": [1]}),
        [1.5],
        [True],
        "a text",
        b"bytes",
        7,
    ],
    ids=repr,
)
def test_columns_of_other_things_are_refused(column, keys):
    seen = petal.BloomFilter(10, 0.01, keys=keys)
    for ask in (seen.add_many, seen.contains_many):
        with pytest.raises(TypeError):
            ask(column)
    assert seen.fill == 0


def test_columns_of_the_other_type_are_refused():
    with pytest.raises(TypeError, match="int keys"):
        petal.BloomFilter(10, 0.01, keys="int").add_many(pa.array(["a"]))
    with pytest.raises(TypeError, match="bytes keys"):
        petal.BloomFilter(10, 0.01).add_many(pa.array([1]))
    with pytest.raises(TypeError, match="bytes keys"):
        petal.BloomFilter(10, 0.01).add_many(np.array([1]))
    with pytest.raises(ValueError, match="one dimension"):
        petal.BloomFilter(10, 0.01, keys="int").add_many(np.array([[1]]))


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8), max_size=30))
def test_numpy_text_of_a_fixed_width(rows):
    rows = [row.rstrip("\0") for row in rows]
    expected = petal.BloomFilter(100, 1e-9)
    expected.update(rows)
    for column in (
        np.array(rows, dtype="U8"),
        np.array(rows, dtype=">U8"),
        np.array([row.encode() for row in rows], dtype="S40"),
    ):
        many = petal.BloomFilter(100, 1e-9)
        many.add_many(column)
        assert many == expected


def test_all_null_and_empty_columns():
    seen = petal.BloomFilter(10, 0.01)
    assert seen.add_many(pa.nulls(3)).to_pylist() == [None] * 3
    assert seen.add_many(pa.array([], pa.string())).to_pylist() == []
    assert seen.add_many([]) == [] and seen.add_many(np.array([], dtype="U3")).tolist() == []
    assert seen.add_many(pa.chunked_array([], pa.string())).to_pylist() == []
    assert seen.fill == 0


@pytest.mark.parametrize("rows", [63, 64, 65, 2**16 - 1, 2**16, 2**16 + 1, 200_000])
def test_long_columns(rows):
    keys = [str(i % (rows // 2 + 1)) if i % 7 else None for i in range(rows)]
    truth, expected = set(), []
    for key in keys:
        expected.append(None if key is None else key not in truth)
        truth.add(key)
    for column in (pa.array(keys), keys, pa.array(keys).dictionary_encode()):
        seen = petal.BloomFilter(rows, 1e-9)
        assert rows_of(seen.add_many(column)) == expected


def test_a_dictionary_may_have_nulls_among_its_values():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["a", None, "c"]))
    seen = petal.BloomFilter(10, 1e-6)
    assert seen.add_many(column).to_pylist() == [True, None, None, True]
    assert "a" in seen and "c" in seen


def test_polars_expressions_are_lazy_and_stream():
    seen = petal.BloomFilter(1000, 1e-9)
    seen.update(["a", "b"])
    frame = pl.LazyFrame({"k": ["a", "x", None, "b"]})
    kept = frame.filter(seen.contains_many(pl.col("k")))
    assert isinstance(kept, pl.LazyFrame)
    assert kept.collect()["k"].to_list() == ["a", "b"]
    assert kept.collect(engine="streaming")["k"].to_list() == ["a", "b"]
    seen.add("x")  # asked when it is collected, not before
    asked = frame.select(seen.contains_many(pl.col("k").str.to_lowercase()).alias("seen"))
    assert asked.collect()["seen"].to_list() == [True, True, None, True]
    with pytest.raises(TypeError, match="collect"):
        seen.add_many(pl.col("k"))


def test_capsules_are_used_once():
    class Once:
        def __init__(self):
            self.pair = pa.array(["a"]).__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.pair

    seen, column = petal.BloomFilter(10, 0.01), Once()
    assert seen.add_many(column) == [True]
    with pytest.raises(ValueError, match="used before"):
        seen.add_many(column)

    class Wrong:
        def __arrow_c_array__(self, requested_schema=None):
            return pa.array(["a"]).__arrow_c_array__()[::-1]

    with pytest.raises(ValueError):
        seen.add_many(Wrong())


@pytest.mark.parametrize("cls", [petal.BloomFilter, petal.StaticFilter])
def test_from_keys_of_columns(cls):
    for column in (["a", "b", None], pa.array(["a", "b", None]), np.array(["a", "b"]), pl.Series(["a", "b"])):
        assert "a" in cls.from_keys(column, 1e-6)
    for column in ([3, 4], np.array([3, 4], dtype="uint8"), pa.array([3, None]), pl.Series([3])):
        filter = cls.from_keys(column, 1e-6)
        assert filter.keys == "int" and 3 in filter
