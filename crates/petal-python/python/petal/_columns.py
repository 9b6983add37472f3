"""Which object is which kind of column.

`prepare` says how the extension reads a column, and how its answers become what the
caller's library calls a boolean column. Values are read by the extension, not here.
"""


def _library(keys):
    """The package that the type of an object comes from."""
    return type(keys).__module__.partition(".")[0]


def prepare(keys):
    """(layout, source, wrap): see `Prepared` in src/column.rs."""
    library = _library(keys)
    if library == "numpy":
        return _numpy(keys)
    if library == "pandas":
        return _pandas(keys)
    if library == "polars" and not hasattr(keys, "__arrow_c_stream__"):
        return _polars_expression(keys)
    if hasattr(keys, "__arrow_c_array__") or hasattr(keys, "__arrow_c_stream__"):
        return "arrow", keys, {"pyarrow": _to_pyarrow(keys), "polars": _to_polars(keys)}.get(library)
    if isinstance(keys, (str, bytes, bytearray)):
        raise TypeError(
            f"expected many keys, got one {type(keys).__name__}: use add or `in`, or put it into a list"
        )
    if isinstance(keys, memoryview):
        return "ints", keys, None
    # Lists and sets are read twice, if the type of their keys has to be found out; what can be
    # read but once is kept.
    return "objects", keys if hasattr(keys, "__len__") else list(keys), None


def _numpy(keys):
    import numpy

    if not isinstance(keys, numpy.ndarray) or keys.ndim != 1:
        shape = getattr(keys, "shape", None)
        raise ValueError(f"expected an array of one dimension, got one of shape {shape}: use ravel()")
    if isinstance(keys, numpy.ma.MaskedArray):
        return "objects", keys.tolist(), _to_masked
    kind = keys.dtype.kind
    if kind in "iu":
        native = keys.dtype.newbyteorder("=")
        return "ints", numpy.ascontiguousarray(keys, dtype=native), _to_numpy
    if kind == "S":
        keys = numpy.ascontiguousarray(keys)
        return "fixed", _units(keys, numpy.uint8), _to_numpy
    if kind == "U":
        keys = numpy.ascontiguousarray(keys, dtype=keys.dtype.newbyteorder("="))
        return "ucs4", _units(keys, numpy.uint32), _to_numpy
    if kind in "OT":
        return "objects", keys.tolist(), _to_numpy_or_masked
    raise TypeError(
        f"a column of keys holds text, bytes or integers, got an array of {keys.dtype}: "
        "convert it with astype in the one way that all writers and readers use"
    )


def _units(keys, unit):
    """The characters of an array of text, as (rows, width)."""
    width = keys.dtype.itemsize // unit().itemsize
    if keys.size == 0 or width == 0:
        import numpy

        return numpy.zeros((keys.size, width), dtype=unit)
    return keys.view(unit).reshape(keys.size, width)


def _pandas(keys):
    import pandas

    if not isinstance(keys, (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)):
        raise TypeError(f"expected one column, got {type(keys).__name__}: pass one of its columns")
    values = getattr(keys, "array", keys)
    if isinstance(values.dtype, pandas.CategoricalDtype):
        layout, source = "objects", [None if v is pandas.NA or v != v else v for v in values]
    elif isinstance(values.dtype, pandas.api.extensions.ExtensionDtype):
        missing = values.isna()
        layout = "objects"
        source = [None if gone else value for value, gone in zip(values, missing)]
        if hasattr(values, "__arrow_array__") and _has_pyarrow():
            import pyarrow

            layout, source = "arrow", pyarrow.array(values)
    else:
        array = keys.to_numpy()
        if array.dtype.kind == "O":
            layout = "objects"
            source = [None if gone else value for value, gone in zip(array, pandas.isna(array))]
        else:
            layout, source, _ = _numpy(array)

    def wrap(answers):
        import numpy

        missing = numpy.array([answer is None for answer in answers], dtype=bool)
        if answers.null_count:
            filled = numpy.array([answer is True for answer in answers], dtype=bool)
        else:
            filled = answers.to_numpy()
        result = pandas.arrays.BooleanArray(filled, missing)
        return pandas.Series(result, index=keys.index) if hasattr(keys, "index") else result

    return layout, source, wrap


def _has_pyarrow():
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _polars_expression(keys):
    import polars

    if isinstance(keys, polars.Expr):

        def ask(contains_many):
            return keys.map_batches(contains_many, return_dtype=polars.Boolean, is_elementwise=True)

        return "lazy", None, ask
    raise TypeError(f"expected a column or an expression, got {type(keys).__name__}: pass one of its columns")


def _to_numpy(answers):
    return answers.to_numpy()


def _to_masked(answers):
    import numpy

    return numpy.ma.array(
        [answer is True for answer in answers], mask=[answer is None for answer in answers], dtype=bool
    )


def _to_numpy_or_masked(answers):
    return _to_masked(answers) if answers.null_count else answers.to_numpy()


def _to_pyarrow(keys):
    def wrap(answers):
        import pyarrow

        array = pyarrow.array(answers)
        return pyarrow.chunked_array([array]) if isinstance(keys, pyarrow.ChunkedArray) else array

    return wrap


def _to_polars(keys):
    def wrap(answers):
        import polars

        return polars.Series(answers).alias(keys.name)

    return wrap


def to_numpy(packed, rows, nulls):
    """The array of answers that are bits of bytes, for `BooleanArray.to_numpy`."""
    import numpy

    if nulls:
        raise ValueError(
            f"{nulls} answers are null, for which numpy has no value: use to_pylist, or pyarrow.array of it"
        )
    bits = numpy.frombuffer(packed, dtype=numpy.uint8)
    return numpy.unpackbits(bits, bitorder="little", count=rows).view(bool)
