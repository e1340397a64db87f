"""Hinge losses of labels: the losses, their augmentation, and the quadratic form given scales."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from bnp_kernels.processes import hinge_regression, label_regression
from bnp_kernels.processes.hinge_regression import Margins

SLOPE, OFFSET = 1.5, 3.0  # of a label 1: c = 1.5 and a margin of 2


@pytest.mark.parametrize("score", [-40.0, -1.0, 1.9, 2.0, 2.1, 40.0])
def test_losses(score):
    for sign in (-1, 1):
        found = hinge_regression.log_hinge(jnp.float32(score), sign * SLOPE, OFFSET)
        np.testing.assert_allclose(found, -2 * 1.5 * max(0, 2 - sign * score), rtol=1e-6)


def test_losses_of_a_token_are_those_of_the_document_with_it():
    eta, n_d = jnp.array([0.5, -2.0, 3.0]), jnp.array([2, 0, 1])
    found = hinge_regression.log_hinge_of_token(n_d.astype(jnp.float32), (SLOPE, OFFSET, 4), eta)
    for k in range(3):
        with_token = (n_d + (jnp.arange(3) == k))[None]
        score = label_regression.scores(with_token, jnp.array([4]), eta)
        expected = hinge_regression.log_hinge(score, SLOPE, OFFSET)
        np.testing.assert_allclose(found[k], expected[0], rtol=1e-5)


@pytest.mark.parametrize("score", [-2.0, 1.0, 3.5])
def test_integral_over_the_scale(score):
    """The integral over the scale of what `quadratic` returns is the loss, up to a constant."""
    u = OFFSET - SLOPE * score

    def density(scale):
        margins = Margins(jnp.array([SLOPE]), jnp.array([OFFSET]))
        weight, linear, rest = hinge_regression.quadratic(jnp.array([scale]), margins, 1.0, 1)
        assert rest == 0
        exponent = float(linear[0]) * score - float(weight[0]) * score**2 / 2
        exponent -= (scale + OFFSET) ** 2 / (2 * scale)  # of score 0
        return np.exp(exponent) / np.sqrt(2 * np.pi * scale)

    found = sum(quad(density, *ends, epsrel=1e-6)[0] for ends in ((1e-3, 1), (1, 10), (10, 60)))
    np.testing.assert_allclose(found, np.exp(-2 * max(0, u)), rtol=1e-3)


def test_law_of_the_scales():
    """The mean is 1 + |u| and the variance 2 + |u|."""
    number = 20_000
    for sign, score in ((1, -1.0), (1, 2.0), (-1, -3.0)):
        margins = Margins(jnp.full(number, sign * SLOPE), jnp.full(number, OFFSET))
        drawn = hinge_regression.draw_scales(jax.random.key(0), jnp.full(number, score), margins)
        m = abs(OFFSET - sign * SLOPE * score)
        assert abs(np.mean(drawn) - 1 - m) < 5 * ((2 + m) / number) ** 0.5


def test_large_weights_are_divided():
    """Bounded by what other documents and the prior say; the score that they ask for is right."""
    slope = jnp.array([2.0, -2.0, 2.0])
    margins = Margins(slope, jnp.array([3.0, 3.0, 3.0]))
    for variance, usual in ((4.0, 4.25), (0.5, 6.0)):
        scale = jnp.array([1e-30, 1e-4, 0.5])
        weight, linear, rest = hinge_regression.quadratic(scale, margins, variance, 3)
        np.testing.assert_allclose(weight, (1e3 * usual, 1e3 * usual, 8), rtol=1e-5)
        np.testing.assert_allclose(linear / weight, (1.5, -1.50005, 1.75), rtol=1e-5)
        np.testing.assert_allclose(rest, (1, 1 - usual / 40, 0), rtol=1e-5)


def test_both_parts_make_the_log_likelihood():
    slope, offset, scale = (jnp.array([x]) for x in (-2.0, 3.0, 1e-4))
    margins, scores = Margins(slope, offset), np.array([-1.4, -1.5, -1.52])
    weight, linear, rest = (float(x[0]) for x in hinge_regression.quadratic(scale, margins, 4.0, 2))
    assert 0.5 < rest < 1
    left_out = [
        hinge_regression.log_rest(jnp.array([x]), scale, margins, jnp.array([rest]))[0]
        for x in scores
    ]
    found = linear * scores - weight * scores**2 / 2 + np.array(left_out)
    expected = -((1e-4 + 3 + 2 * scores) ** 2) / 2e-4
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-3)
    without = hinge_regression.log_rest(jnp.array([-1e30]), scale, margins, jnp.array([0.0]))
    assert without == 0
