"""The engine-neutral core."""

import petal
import pyarrow as pa
import pytest
from petal import engine

KEYS = [f"key {i}" for i in range(10_000)]


def test_partial_merge_probe():
    spec = engine.Spec(20_000, 1e-6)
    shares = [KEYS[:3000], KEYS[2000:7000], KEYS[7000:], []]
    parts = [engine.partial([pa.array(s[:10], pa.string()), pa.array(s[10:], pa.string())], spec) for s in shares]
    merged = engine.merge(parts)
    assert petal.from_bytes(merged) == petal.from_bytes(engine.partial([KEYS], spec))
    # In any grouping and order, and with repeats, as tasks that are run again make them.
    tree = engine.merge([engine.merge([parts[2], parts[0]]), engine.merge([parts[3], parts[1], parts[2]])])
    assert petal.from_bytes(tree) == petal.from_bytes(merged)
    assert engine.probe(merged, pa.array(["key 5", None, "none"])).to_pylist() == [True, None, False]
    with pytest.raises(petal.MismatchError):
        engine.merge([])
    with pytest.raises(petal.MismatchError):
        engine.merge([merged, engine.partial([], engine.Spec(30_000, 1e-6))])


def test_plan_keeps_to_the_bytes_and_to_the_error():
    spec = engine.Spec(1_000_000, 0.001)
    assert spec.plan().parts == 1 and spec.plan().part_spec == spec
    for most in (10_000, 100_000, 1_000_000):
        plan = spec.plan(most)
        assert plan.bytes_per_part <= most
        assert plan.part_spec.filter().nbytes == plan.bytes_per_part
        assert plan.part_spec.items * plan.parts >= spec.items
        assert plan.parts * plan.bytes_per_part < 2 * spec.plan().bytes_per_part
    # A filter that memory could not hold in one piece.
    assert engine.Spec(10**12, 0.01, "int").plan(1 << 30).parts > 1000
    for bad in (0, 1):
        with pytest.raises(ValueError):
            spec.plan(bad)


def test_parts_are_even_and_the_same_for_every_type_of_column():
    parts = engine.part_of(pa.array(KEYS), 7).to_pylist()
    assert min(parts) == 0 and max(parts) == 6
    mean = len(KEYS) / 7
    assert all(abs(parts.count(p) - mean) < 5 * mean**0.5 for p in range(7))
    assert engine.part_of(pa.array([KEYS[0], None]), 7).to_pylist() == [parts[0], None]
    assert engine.part_of(pa.array(KEYS, pa.string_view()), 7).to_pylist() == parts
    ints = engine.part_of(pa.array([1, 2, None, 3], pa.int64()), 5).to_pylist()
    assert engine.part_of(pa.array([1, 2, None, 3], pa.uint8()), 5).to_pylist() == ints
    # Kept for ever: filters of earlier days are divided by it.
    assert (parts[:8], ints) == ([0, 0, 6, 2, 2, 6, 4, 2], [1, 1, None, 3])
