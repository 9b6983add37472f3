"""The classes, one key at a time."""

import copy
import math
import pickle
import sys
import threading

import petal
import pytest
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
BYTES_KEYS = st.one_of(TEXT, st.binary(max_size=20))
INTS = st.integers(-(2**63), 2**63 - 1)


def as_bytes(key):
    return key.encode() if isinstance(key, str) else key


def makers(keys):
    return [
        lambda: petal.BloomFilter(500, 1e-9, keys=keys),
        lambda: petal.ConcurrentBloomFilter(500, 1e-9, keys=keys),
        lambda: petal.CountingBloomFilter(500, 1e-9, keys=keys),
        lambda: petal.GrowableFilter(20, 1e-9, keys=keys),
        lambda: petal.WindowFilter(500, 1e-9, keys=keys),
    ]


@pytest.mark.parametrize("kind", range(5))
@given(added=st.lists(BYTES_KEYS, max_size=200), asked=st.lists(BYTES_KEYS, max_size=100))
def test_like_a_set_of_bytes(kind, added, asked):
    seen, truth = makers("bytes")[kind](), set()
    for key in added:
        assert seen.add(key) == (as_bytes(key) not in truth)
        truth.add(as_bytes(key))
    assert all(key in seen for key in added)
    # At an error of 1e-9 a false answer here is less likely than a broken machine.
    assert [key in seen for key in asked] == [as_bytes(key) in truth for key in asked]


@pytest.mark.parametrize("kind", range(5))
@given(added=st.lists(INTS, max_size=200), asked=st.lists(INTS, max_size=100))
def test_like_a_set_of_ints(kind, added, asked):
    seen, truth = makers("int")[kind](), set()
    for key in added:
        assert seen.add(key) == (key not in truth)
        truth.add(key)
    assert [key in seen for key in asked] == [key in truth for key in asked]


@given(keys=st.lists(BYTES_KEYS, max_size=200), asked=st.lists(BYTES_KEYS, max_size=100))
def test_static_filter_like_a_set(keys, asked):
    seen = petal.StaticFilter.from_keys(keys, 1e-9)
    truth = {as_bytes(key) for key in keys}
    assert seen.estimated_len == len(truth)
    assert all(key in seen for key in keys)
    assert [key in seen for key in asked] == [as_bytes(key) in truth for key in asked]


@given(one=st.lists(TEXT, max_size=100), other=st.lists(TEXT, max_size=100))
def test_operators_like_those_of_a_set(one, other):
    a, b = (petal.BloomFilter(500, 1e-9) for _ in range(2))
    a.update(one)
    b.update(other)
    union, common = a | b, a & b
    for key in {*one, *other}:
        assert key in union
        assert (key in common) >= (key in one and key in other)
    built = petal.BloomFilter(500, 1e-9)
    built.update(one, other)
    assert union == built and (a == b) == ({*one} == {*other})
    before = a.copy()
    a |= b
    assert a == union and before | b == a
    a &= before
    assert a == before
    a |= a
    a &= a
    assert a == before


def test_union_of_other_settings_is_refused():
    a = petal.BloomFilter(1000, 0.01)
    for other in (
        petal.BloomFilter(2000, 0.01),
        petal.BloomFilter(1000, 0.01, seed=1),
        petal.BloomFilter(1000, 0.01, keys="int"),
        petal.BloomFilter(1000, 0.01, normalise="line"),
        petal.CountingBloomFilter(1000, 0.01),
    ):
        with pytest.raises(petal.MismatchError, match="differs"):
            a | other
    with pytest.raises(TypeError):
        a | {"a"}
    with pytest.raises(petal.UnsupportedError):
        petal.GrowableFilter(10, 0.01) | petal.GrowableFilter(10, 0.01)
    assert a != {"a"} and a != petal.BloomFilter(1000, 0.01, seed=1)


@pytest.mark.parametrize("bad", [1.5, True, None, ["a"], ("a",), bytearray(b"a"), object()])
@pytest.mark.parametrize("keys", ["bytes", "int"])
def test_other_objects_are_no_keys(bad, keys):
    seen = petal.BloomFilter(10, 0.01, keys=keys)
    for ask in (seen.add, seen.__contains__):
        with pytest.raises(TypeError, match="a key is a str, bytes or int, got"):
            ask(bad)
    assert seen.fill == 0


def test_key_types_never_mix():
    with pytest.raises(TypeError, match='keys="int"'):
        petal.BloomFilter(10, 0.01).add(7)
    with pytest.raises(TypeError, match='keys="bytes"'):
        "7" in petal.BloomFilter(10, 0.01, keys="int")


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64 - 1, 10**30])
def test_large_ints_are_named_and_never_wrapped(value):
    seen = petal.BloomFilter(10, 0.01, keys="int")
    for ask in (seen.add, seen.__contains__, lambda k: seen.add_many([1, k])):
        with pytest.raises(OverflowError, match=str(value)):
            ask(value)
    assert seen.fill == 0


def test_text_without_utf8_is_refused():
    with pytest.raises(UnicodeEncodeError):
        petal.BloomFilter(10, 0.01).add("\ud800")


@pytest.mark.parametrize("error", [0, 1, -1, math.nan, math.inf, 1e-13])
def test_impossible_errors_are_value_errors(error):
    with pytest.raises(ValueError, match="not possible"):
        petal.BloomFilter(10, error)


def test_arguments_that_contradict_each_other():
    for arguments in (
        dict(keys="float"),
        dict(normalise="html"),
        dict(keys="bytes", normalise="int"),
        dict(secret=b"short"),
        dict(secret=bytes(16), seed=1),
    ):
        with pytest.raises(ValueError, match="not possible|expected|exclude|leave|16 bytes"):
            petal.BloomFilter(10, 0.01, **arguments)
    with pytest.raises(ValueError, match="at least 1|not possible|1 to"):
        petal.BloomFilter(0, 0.01)
    with pytest.raises(OverflowError):
        petal.BloomFilter(-1, 0.01)
    with pytest.raises(TypeError, match="from_keys"):
        petal.StaticFilter(10, 0.01)


def test_what_memory_cannot_hold_is_a_memory_error():
    with pytest.raises(MemoryError, match="bytes of memory"):
        petal.BloomFilter(10**12, 1e-6, keys="int")
    with pytest.raises(MemoryError, match="bytes of memory"):
        petal.ConcurrentBloomFilter(10**12, 1e-6, keys="int")


def test_estimates():
    seen = petal.BloomFilter(10_000, 0.01)
    assert (seen.fill, seen.estimated_len, seen.estimated_fpr) == (0, 0, 0)
    seen.add_many([f"key {i}" for i in range(10_000)])
    assert 0 < seen.fill < 1
    # The estimate scatters by about 0.4 %; the error by less than its own tenth.
    assert abs(seen.estimated_len - 10_000) < 10_000 * 0.02
    assert 0.008 < seen.estimated_fpr < 0.012
    asked = 100_000
    false = seen.contains_many([f"other {i}" for i in range(asked)]).true_count()
    expected = seen.estimated_fpr * asked
    assert abs(false - expected) < 5 * expected**0.5
    assert (seen.items, seen.fpr, seen.keys, seen.kind) == (10_000, 0.01, "bytes", "bloom")
    assert seen.insertions <= 10_000
    assert (seen | seen.copy()).insertions is None


@pytest.mark.parametrize("kind", range(5))
def test_bytes_pickle_and_copies(kind, tmp_path):
    seen = makers("bytes")[kind]()
    seen.update(["a", "b"])
    seen.set_label("source", "a list")
    seen.save(tmp_path / "f")
    copies = [
        pickle.loads(pickle.dumps(seen)),
        copy.copy(seen),
        copy.deepcopy(seen),
        seen.copy(),
        type(seen).from_bytes(seen.to_bytes()),
        type(seen).open(tmp_path / "f"),
        type(seen).open(str(tmp_path / "f"), mapped=True),
    ]
    for other in copies:
        assert type(other) is type(seen)
        assert other == seen and "a" in other and "c" not in other
        assert other.labels == {"source": "a list"}
    copies[0].add("c")
    assert "c" not in seen and copies[0] != seen
    with pytest.raises(TypeError, match="hash"):
        hash(seen)


def test_files(tmp_path):
    path = tmp_path / "f.petal"
    seen = petal.BloomFilter(100, 0.01)
    seen.add("a")
    seen.save(path)
    with pytest.raises(FileExistsError, match="not replaced"):
        seen.save(path)
    seen.save(path, overwrite=True)
    mapped = petal.open(path, mapped=True)
    assert type(mapped) is petal.BloomFilter and "a" in mapped
    with pytest.raises(petal.PetalError, match="read-only"):
        mapped.add("b")
    with pytest.raises(petal.MismatchError, match="kind bloom"):
        petal.StaticFilter.open(path)
    with pytest.raises(FileNotFoundError, match="cannot open"):
        petal.open(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        petal.open(tmp_path)
    data = bytearray(seen.to_bytes())
    assert data == path.read_bytes()
    data[-100] ^= 1
    with pytest.raises(petal.FileFormatError, match="checksum|invalid"):
        petal.from_bytes(data)
    for cut in range(0, len(data), 37):
        with pytest.raises(petal.FileFormatError):
            petal.from_bytes(bytes(data[:cut]))
    assert issubclass(petal.FileFormatError, ValueError)


def test_keyed_filters():
    secret = bytes(range(16))
    seen = petal.BloomFilter(100, 0.01, secret=secret)
    seen.add("a")
    again = petal.from_bytes(seen.to_bytes(), secret=secret)
    assert "a" in again and again == seen.copy()
    with pytest.raises(petal.MismatchError, match="give the secret"):
        petal.from_bytes(seen.to_bytes())
    with pytest.raises(petal.MismatchError, match="another secret"):
        petal.from_bytes(seen.to_bytes(), secret=bytes(16))
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(seen)
    assert bytes(secret) not in seen.to_bytes()


def test_recorded_normalisation_is_applied():
    urls = petal.BloomFilter(100, 1e-6, normalise="url")
    urls.add("HTTP://Example.org:80/a/../b#x")
    assert "http://example.org/b" in urls
    again = petal.from_bytes(urls.to_bytes())
    assert "http://EXAMPLE.org/b" in again
    assert again.contains_many(["http://EXAMPLE.org/b", None]).to_pylist() == [True, None]
    numbers = petal.BloomFilter(100, 1e-6, normalise="int")
    numbers.add("007")
    assert numbers.keys == "int" and 7 in numbers and "+7" in numbers
    assert numbers.contains_many(["07", "8"]).to_pylist() == [True, False]
    with pytest.raises(petal.PetalError, match="not a decimal integer"):
        numbers.add("seven")


def test_counting():
    seen = petal.CountingBloomFilter(100, 0.001)
    assert seen.add("a") and not seen.add("a")
    assert seen.count("a") == 2 and seen.count("b") == 0
    assert seen.to_bloom().kind == "bloom" and "a" in seen.to_bloom()
    assert seen.remove("a") and "a" in seen and seen.remove("a") and "a" not in seen
    assert not seen.remove("a")
    seen.update(["a", "b"])
    assert seen.remove_many(["a", None, "c"]).to_pylist() == [True, None, False]
    assert "b" in seen and "a" not in seen
    minimal = petal.CountingBloomFilter(100, 0.01, counter_bits=16, minimal=True)
    minimal.update(["x"] * 1000)
    assert minimal.count("x") == 1000
    with pytest.raises(petal.PetalError, match="minimal increase"):
        minimal.remove("x")
    with pytest.raises(ValueError, match="4, 8 or 16"):
        petal.CountingBloomFilter(100, 0.01, counter_bits=5)


def test_growable():
    seen = petal.GrowableFilter(100, 0.01)
    seen.add_many([str(i) for i in range(10_000)])
    assert seen.stages > 1 and all(str(i) in seen for i in range(10_000))
    assert seen.estimated_fpr <= 0.01 * 1.5  # scatters around what is promised
    assert (seen.items, seen.fpr) == (None, 0.01)
    assert petal.GrowableFilter(100, 0.01, ceiling=10_000).stages == 1


def test_window():
    seen = petal.WindowFilter(1000, 1e-6, ticks=60)
    seen.advance(1000)
    assert seen.add("a") and seen.age("a") == 0 and seen.age("b") is None
    seen.advance(1059)
    assert "a" in seen and seen.now == 1059
    seen.advance(1200)
    assert "a" not in seen
    last = petal.WindowFilter(14, 1e-6)
    for i in range(100):
        last.add(str(i))
    assert all(str(i) in last for i in range(86, 100)) and "50" not in last
    with pytest.raises(ValueError, match="ticks"):
        petal.WindowFilter(10, 0.01, overload="refuse")
    full = petal.WindowFilter(14, 0.01, ticks=60, overload="refuse")
    with pytest.raises(petal.PetalError, match="full"):
        for i in range(1000):
            full.add(str(i))


def test_from_keys_counts_distinct_keys():
    seen = petal.BloomFilter.from_keys(["a", "b", "a", None], 0.01)
    assert seen.items == 2 and seen.insertions == 2 and "a" in seen
    assert petal.BloomFilter.from_keys([1, 2, 3]).keys == "int"
    assert petal.BloomFilter.from_keys([]).keys == "bytes"
    assert petal.BloomFilter.from_keys(iter(["a", "a"])).items == 1
    assert petal.BloomFilter.from_keys(["b", "a"], 0.01) == petal.BloomFilter.from_keys(["a", "b"], 0.01)
    with pytest.raises(TypeError, match="str or bytes|got int"):
        petal.BloomFilter.from_keys(["a", 1])


@pytest.mark.parametrize("maker", [petal.BloomFilter, petal.ConcurrentBloomFilter])
def test_threads_lose_nothing_and_nobody_waits_for_ever(maker):
    """Bulk calls without the interpreter's lock, single ones, and unions of two filters both ways."""
    one, other = maker(40_000, 1e-6), maker(40_000, 1e-6)
    keys = [[f"{t} {i}" for i in range(5000)] for t in range(4)]
    failures = []

    def work(mine, into, against):
        try:
            for start in range(0, 5000, 500):
                into.add_many(mine[start : start + 250])
                for key in mine[start + 250 : start + 500]:
                    into.add(key)
                into |= against
                into.contains_many(mine)
        except BaseException as failure:
            failures.append(failure)

    pairs = [(one, other), (other, one), (one, other), (other, one)]
    threads = [threading.Thread(target=work, args=(k, *p)) for k, p in zip(keys, pairs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    both = one | other
    assert all(key in both for some in keys for key in some)


def test_calls_leak_no_references():
    seen = petal.BloomFilter(1000, 0.01)
    key, number = "a key of its own", object()
    before = sys.getrefcount(key), sys.getrefcount(number), sys.getrefcount(seen)
    for call in (seen.add, seen.__contains__):
        for _ in range(100):
            call(key)
            try:
                call(number)
            except TypeError:
                pass
    del call
    assert (sys.getrefcount(key), sys.getrefcount(number), sys.getrefcount(seen)) == before
