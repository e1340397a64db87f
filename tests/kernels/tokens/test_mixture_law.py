"""Laws of the topic shares of a document, against enumeration of its topics."""

import itertools

import numpy as np
import pytest

from bnp_kernels.tokens.mixture_law import DirichletLaw, SwitchedLaw, expected_shares, of_docs

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
    found = SwitchedLaw(WEIGHTS, JOINS).log_total(length)
    np.testing.assert_allclose(found, [np.log(total(n)) for n in length], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("strength", [0.3, 30.0])
def test_long_documents(strength):
    """Equal topics that are always on: the sum is a rising factorial."""
    length = np.array([5, 3000, 90, 2, 1700])
    weights = np.full(20, strength)
    found = SwitchedLaw(weights, weights).log_total(length)
    rising = [np.log(20 * strength + np.arange(n)).sum() for n in length]
    np.testing.assert_allclose(found, rising, rtol=1e-10)
    np.testing.assert_allclose(DirichletLaw(weights).log_total(length), rising, rtol=1e-10)


@pytest.mark.parametrize("law", [DirichletLaw(WEIGHTS), SwitchedLaw(WEIGHTS, JOINS)])
def test_the_order_of_the_tokens_does_not_matter(law):
    def product(z):
        counts, p = np.zeros(4), 1.0
        for k in z:
            p *= law.weigh(counts)[k]
            counts[k] += 1
        return p

    z = [0, 2, 2, 3, 0]
    np.testing.assert_allclose([product(z[::-1]), product(sorted(z))], product(z), rtol=1e-12)


def test_documents_read_the_row_of_their_group():
    law = SwitchedLaw(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[0.5, 0.25]]))
    of_doc = of_docs(law, np.array([1, 0, 1]))
    assert [x.shape for x in of_doc] == [(3, 2), (1, 2)]
    shares, total = expected_shares(of_doc, np.array([[0, 1], [2, 0], [1, 1]]))
    np.testing.assert_allclose(total, [6.5, 3.25, 10])
    np.testing.assert_allclose(shares[:, 0], [0.5 / 6.5, 3 / 3.25, 0.4])
