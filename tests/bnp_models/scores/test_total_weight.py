"""Sums of weights over all assignments of the tokens of a document, against enumeration."""

import itertools

import numpy as np
import pytest

from bnp_models.scores.total_weight import log_total_weight

WEIGHTS, JOINS = np.array([0.5, 0.0, 3.0, 40.0]), np.array([0.2, 0.0, 1e-3, 5e-12])


def total(length):
    found = 0.0
    for z in itertools.product([0, 2, 3], repeat=length):
        counts, product = np.zeros(4), 1.0
        for k in z:
            product *= counts[k] + WEIGHTS[k] if counts[k] else JOINS[k]
            counts[k] += 1
        found += product
    return found


def test_short_documents():
    length = np.array([0, 1, 2, 3, 4, 7])
    found = log_total_weight(WEIGHTS, JOINS, length)
    np.testing.assert_allclose(found, [np.log(total(n)) for n in length], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("strength", [0.3, 30.0])
def test_long_documents(strength):
    """Equal topics that are always on: the sum is a rising factorial."""
    length = np.array([5, 3000, 90, 2, 1700])
    weights = np.full(20, strength)
    found = log_total_weight(weights, weights, length)
    rising = [np.log(20 * strength + np.arange(n)).sum() for n in length]
    np.testing.assert_allclose(found, rising, rtol=1e-10)
