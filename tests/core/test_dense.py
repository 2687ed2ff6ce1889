# SPDX-License-Identifier: GPL-3.0-or-later
"""Matrix products through scipy's BLAS, and the limit on its threads."""

import numpy as np
import pytest

from skinning_tools.core.dense import _openblas, one_blas_thread, product, self_product

RANDOM = np.random.default_rng()


@pytest.fixture(autouse=True)
def _same_numbers():
    """The limit is the same for each test, whichever tests ran before."""
    global RANDOM
    RANDOM = np.random.default_rng(5)


def laid_out(matrix, order):
    if order == "strided":
        wide = np.zeros((matrix.shape[0], 2 * matrix.shape[1]))
        wide[:, ::2] = matrix
        return wide[:, ::2]
    return np.array(matrix, order=order)


@pytest.mark.parametrize("first_order", ["C", "F", "strided"])
@pytest.mark.parametrize("second_order", ["C", "F", "strided"])
@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 4, 1), (6, 1, 6), (200, 30, 50)])
def test_product_of_any_layout(first_order, second_order, shape):
    first, second = RANDOM.normal(size=shape[:2]), RANDOM.normal(size=shape[1:])
    expected = np.einsum("ij,jk->ik", first, second)
    result = product(laid_out(first, first_order), laid_out(second, second_order))
    np.testing.assert_allclose(result, expected, atol=1e-12)
    assert result.flags.c_contiguous


def test_product_with_its_own_transpose():
    matrix = RANDOM.normal(size=(40, 9))
    np.testing.assert_allclose(product(matrix.T, matrix), np.einsum("ni,nj->ij", matrix, matrix), atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_self_product_of_any_layout(order):
    matrix = RANDOM.normal(size=(40, 9))
    expected = np.einsum("ni,nj->ij", matrix, matrix)
    np.testing.assert_allclose(self_product(laid_out(matrix, order)), expected, atol=1e-12)


def test_threads_are_limited_and_given_back():
    libraries = _openblas()
    assert libraries, "scipy's wheel brings an OpenBLAS; its name or functions have changed"
    get, limit = libraries[0]
    before = get()
    limit(2)
    try:
        with one_blas_thread() as limited:
            assert limited
            assert get() == 1
        assert get() == 2
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert get() == 2
        # Of two at once, the first to leave changes nothing.
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert get() == 1
        second.__exit__(None, None, None)
        assert get() == 2
    finally:
        limit(before)
