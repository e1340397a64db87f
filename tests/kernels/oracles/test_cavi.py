"""The reference never falls and reaches the known optima of a corpus, below its log evidence."""

import numpy as np
import pytest

from oracles.cavi import cavi

OPTIMA = {  # c: log evidence by enumeration, best optimum, others
    0.0: (-8.227316, -10.276, (-10.362, -11.857)),
    1.0: (-10.706179, -13.020, (-13.048, -14.034, -14.213)),
    4.0: (-14.487378, -16.416, (-16.832, -18.782, -19.753)),
}


@pytest.mark.parametrize("c", OPTIMA)
def test_known_optima(c):
    evidence, best, others = OPTIMA[c]
    found = cavi(
        [[0, 0, 1], [1, 2], [2]], [1, 0, 1], num_words=3, num_topics=2, alpha=0.5, beta=0.25,
        eta_variance=4.0, c=c, num_starts=120, num_iterations=400,
    )  # fmt: skip
    assert np.diff(found.elbo, axis=0).min() > -1e-10
    assert found.elbo.max() < evidence
    end = found.elbo[-1]
    assert end.max() == pytest.approx(best, abs=6e-4)
    for optimum in others:
        assert np.abs(end - optimum).min() < 6e-4


def test_without_labels_eta_keeps_its_prior():
    found = cavi(
        [[0, 1], [1]], [1, 0], num_words=2, num_topics=2, alpha=0.5, beta=0.5, eta_variance=3.0,
        c=0.0, num_starts=2, num_iterations=20,
    )  # fmt: skip
    np.testing.assert_allclose(found.mean, 0, atol=1e-12)
    np.testing.assert_allclose(found.covariance, [3 * np.eye(2)] * 2)
