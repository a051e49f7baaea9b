"""Formulas of Fourier transforms and histograms."""

from __future__ import annotations

import math

from joulemap.trace.formula.registry import Call, Cost, Shape, formula


def _fourier(call: Call, shape: Shape, *, is_real: bool) -> Cost:
    dimensions = call.value(1, "dim")
    points = math.prod(shape[dimension] for dimension in dimensions)
    operations = 5.0 * math.prod(shape) * math.log2(max(points, 1))
    return Cost(kind="reduction", operation="fft", elementwise_count=math.ceil(operations / (2 if is_real else 1)))


@formula("_fft_c2c")
def complex_fourier(call: Call) -> Cost:
    """5 N log2 N for each transform of N points, in any number of dimensions; half of that from or to real numbers.

    Source: M. Frigo, S. G. Johnson, benchFFT, http://www.fftw.org/speed: 5 N log2 N, 2.5 N log2 N for real data.
    """
    return _fourier(call, call.shape(0), is_real=False)


@formula("_fft_r2c")
def fourier_of_real(call: Call) -> Cost:
    """2.5 N log2 N for each transform of N real points. Source: as `_fft_c2c`."""
    return _fourier(call, call.shape(0), is_real=True)


@formula("_fft_c2r")
def fourier_to_real(call: Call) -> Cost:
    """2.5 N log2 N for each transform to N real points. Source: as `_fft_c2c`."""
    return _fourier(call, call.output_shape, is_real=True)


@formula("histc", "histogram", "_histogramdd_from_bin_cts")
def histogram(call: Call) -> Cost:
    """Two comparisons with the bounds, subtraction, multiplication and one addition to a bin for each input."""
    return Cost(kind="reduction", operation="histogram", elementwise_count=5 * call.input_count)


@formula("_histogramdd_from_bin_tensors")
def searched_histogram(call: Call) -> Cost:
    """A binary search among the edges of each dimension, and one addition for each point."""
    *rows, width = call.shape(0)
    edges = call.value(1, "bins")
    searches = sum(math.ceil(math.log2(max(edge.numel(), 2))) for edge in edges)
    return Cost(kind="reduction", operation="histogram", elementwise_count=math.prod(rows) * (searches + min(width, 1)))


@formula("_histogramdd_bin_edges")
def histogram_edges(call: Call) -> Cost:
    """Smallest and largest of each dimension: two comparisons for each input."""
    return Cost(kind="reduction", operation="reduce", elementwise_count=2 * call.input_count)


@formula("isin")
def is_in(call: Call) -> Cost:
    """Comparisons of a joint sort of both sets: n log2 n."""
    counts = [math.prod(tuple(one.shape)) for one in call.args[:2] if hasattr(one, "shape")]
    total = sum(counts) + 2 - len(counts)
    return Cost(kind="reduction", operation="sort", elementwise_count=math.ceil(total * math.log2(max(total, 2))))


@formula("mode", "nanmedian")
def sorted_value(call: Call) -> Cost:
    """Comparisons of a sort along the dimension, by default of the whole input."""
    shape = call.shape(0)
    dimension = call.value(1, "dim")
    length = call.input_count if dimension is None or not shape else shape[dimension]
    comparisons = math.ceil(call.input_count * math.log2(max(length, 2)))
    return Cost(kind="reduction", operation="sort", elementwise_count=comparisons)
