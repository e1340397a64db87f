"""The picture of a tempered run."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnp_models.plots.tempering_plots import plot_tempering
from bnp_models.posterior.arviz_data import make_data


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def made_up(chains=2, draws=50, replicas=6):
    rng = np.random.default_rng(0)
    stats = {
        "rung": rng.permuted(np.tile(np.arange(replicas), (chains, draws, 1)), axis=-1),
        "swap_acceptance": rng.uniform(0.2, 0.9, (chains, draws, replicas - 1)),
        "round_trips": np.tile(np.arange(draws), (chains, 1)),
    }
    groups = {"posterior": {"x": np.zeros((chains, draws))}, "sample_stats": stats}
    return make_data(groups), stats


def test_acceptance_barrier_and_ways(tmp_path):
    data, stats = made_up()
    first, second, third = plot_tempering(data)
    mean = stats["swap_acceptance"].mean(axis=1)
    for line, expected in zip(first.get_lines(), mean, strict=True):
        np.testing.assert_allclose(line.get_ydata(), expected)
    for line, expected in zip(second.get_lines(), (1 - mean) * 5, strict=True):  # steps of 1/5
        np.testing.assert_allclose(line.get_ydata(), expected)
    barrier = ", ".join(f"{x:.1f}" for x in (1 - mean).sum(axis=1))
    assert second.get_title("left") == f"Barrier: {barrier}"
    assert len(third.get_lines()) == 6 + 4  # all, and some in colour
    assert "round trips: 49, 49" in third.get_xlabel()
    first.figure.savefig(tmp_path / "tempering.png")


def test_other_runs_are_refused():
    with pytest.raises(ValueError, match="must be of a tempered run"):
        plot_tempering(make_data({"posterior": {"x": np.zeros((1, 4))}}))
