"""The normal form of code that digests are taken of: what has the same one, and what has not."""

from __future__ import annotations

import pytest

from joulemap.system.code import normalize_code

SOURCE = '''"""Products of matrices."""

import math

LIMIT = 8
"""Largest count."""

NAMES = {"conv2d": "conv", "mm": "linear"}


def count(m: int, n: int = 4, *, scale: float = 1.0) -> float:
    """Return the products."""
    # a row at a time
    if m > LIMIT:
        raise ValueError(f"m is {m}, expected at most {LIMIT}")
    if n < 0:
        raise errors.UnknownNameError("count", NAMES["mm"], near=("conv2d", LIMIT))
    return m * n * scale + math.log(2)
'''


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Products of matrices.", "How many products there are."),
        ('"""Products of matrices."""\n\n', ""),
        ('"""Largest count."""\n', ""),
        ("Return the products.", "Return the count of products."),
        ("    # a row at a time\n", ""),
        ("    # a row at a time\n", "    # row by row\n\n"),
        ("LIMIT = 8", "LIMIT = (8)  # elements"),
        ("def count(m: int, n: int = 4, *,", "def count(\n    m: int,\n    n: int = 4,\n    *,"),
        ("m * n * scale + math.log(2)", "(\n        m * n * scale\n        + math.log(2)\n    )"),
        ('{"conv2d": "conv", "mm": "linear"}', "{\n    'conv2d': 'conv',\n    'mm': 'linear',\n}"),
        ("m is {m}, expected at most {LIMIT}", "at most {LIMIT:,} are taken, m is {m}"),
        ('f"m is {m}, expected at most {LIMIT}"', '"m is too large"'),
        ('"count", NAMES', '"number", NAMES'),
        ("LIMIT = 8", "LIMIT = 0x8"),
    ],
)
def test_words_and_layout_do_not_count(before: str, after: str) -> None:
    assert SOURCE.count(before) == 1
    assert normalize_code(SOURCE.replace(before, after)) == normalize_code(SOURCE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 8", "LIMIT = 9"),
        ("LIMIT = 8", "LIMIT = 8.0"),
        ("LIMIT = 8", "LIMIT = True"),
        ("LIMIT = 8", "LIMIT = -8"),
        ("LIMIT = 8", 'LIMIT = "8"'),
        ("m > LIMIT", "m >= LIMIT"),
        ("n: int = 4", "n: int = 5"),
        ("scale: float = 1.0", "scale: float = 2.0"),
        ("*, scale", "scale"),
        ('"conv2d": "conv"', '"conv3d": "conv"'),
        ('"conv2d": "conv"', '"conv2d": "matmul"'),
        ("m * n * scale", "m + n * scale"),
        ("m * n * scale", "m * n * n"),
        ("m * n * scale + math.log(2)", "m * n * (scale + math.log(2))"),
        ("math.log(2)", "math.log2(2)"),
        ("math.log(2)", "math.log(2, 2)"),
        ("    return m", "    return -m"),
        ("ValueError", "TypeError"),
        ("n < 0", "n < 1"),
        ('NAMES["mm"], near', "NAMES, near"),
        ('("conv2d", LIMIT)', '("conv2d",)'),
        ("        raise ValueError", "        m = 1\n        raise ValueError"),
        ("import math", "import cmath as math"),
        ("def count", "@cache\ndef count"),
    ],
)
def test_everything_that_computes_counts(before: str, after: str) -> None:
    assert SOURCE.count(before) == 1
    assert normalize_code(SOURCE.replace(before, after)) != normalize_code(SOURCE)


def test_a_text_counts_unless_an_error_says_it() -> None:
    assert normalize_code('note("as is")') != normalize_code('note("as was")')
    assert normalize_code('raise ModelError("as is")') == normalize_code('raise ModelError("as was")')
    assert normalize_code('wait.append(ModelError("as is"))') == normalize_code('wait.append(ModelError("as was"))')
    assert normalize_code('raise ModelError(3, "as is")') != normalize_code('raise ModelError(4, "as is")')
    assert normalize_code('"as is".join(x)') != normalize_code('"as was".join(x)')
    assert normalize_code('f"{x} as is"') != normalize_code('f"{x} as was"')
    assert normalize_code('f"{x:.3f}"') != normalize_code('f"{x:.4f}"')


def test_the_form_keeps_where_things_belong() -> None:
    assert normalize_code("if a:\n    b()\nc()") != normalize_code("if a:\n    b()\n    c()")
    assert normalize_code("f(*a, b=c)") != normalize_code("f(a, b=c)")
    assert normalize_code("{**a, b: c}") != normalize_code("{a: b, **c}")
    assert normalize_code("def f(a=1, *, b): ...") != normalize_code("def f(a, *, b=1): ...")


def test_the_form_of_a_line_is_the_same_for_every_python() -> None:
    # worked out by hand from the grammar in the documentation of `ast`
    assert normalize_code("-1  # b") == (
        "Module( body [ Expr( value UnaryOp( op USub( ) operand Constant( value 1 ) ) ) ] )"
    )
    assert normalize_code('"""Words."""') == "Module( body [ ] )"
    with pytest.raises(SyntaxError):
        normalize_code("a = ")


def test_what_only_a_type_checker_reads_does_not_count() -> None:
    plain = "import a.b\ndef f(x):\n    from c import d, e\n    return d(x)\n"
    for typed in (
        f"if TYPE_CHECKING:\n    from g import h\n{plain}",
        f"if typing.TYPE_CHECKING:\n    import g\n{plain}",
        "import a.b\ndef f(x):\n    if TYPE_CHECKING:\n        import g\n    else:\n        from c import d, e\n"
        "    return d(x)\n",
    ):
        assert normalize_code(typed) == normalize_code(plain)
    assert normalize_code(f"if CHECKING:\n    from g import h\n{plain}") != normalize_code(plain)
