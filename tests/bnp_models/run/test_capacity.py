"""Numbers of slots: at the start, after an overflow, and for the rest of a run."""

import pytest

import bnp_models as bnp
from bnp_models.run import capacity


@pytest.fixture
def of_size(monkeypatch):
    """Make a model that finds so many tokens in any data."""

    def make(model, num_tokens):
        monkeypatch.setattr(type(model), "num_items", lambda self, data: num_tokens)
        return model

    return make


@pytest.mark.parametrize(
    ("num_tokens", "slots"), [(31, 128), (12_500, 128), (200_000, 256), (2_300_000, 480)]
)
@pytest.mark.parametrize("model", [bnp.HDPLDA(), bnp.NonparametricAuthorTopicModel(beta=0.1)])
def test_default_start_grows_with_the_corpus(of_size, model, num_tokens, slots):
    assert capacity.first(of_size(model, num_tokens), None) == slots


def test_chosen_start(of_size):
    assert capacity.first(of_size(bnp.HDPLDA(max_topics=7), 10**6), None) == 7
    assert capacity.first(of_size(bnp.GaussianFactorAnalysis(), 10**6), None) == 64


def test_growth_is_for_the_rest_of_the_run():
    sizes = [capacity.larger(128, 140, sweep, 400) for sweep in (0, 5, 50, 200, 399)]
    assert sizes == [352, 352, 288, 192, 192]
    assert all(size % capacity.MARGIN == 0 for size in sizes)


def test_growth_is_never_small():
    assert capacity.larger(1024, 30, 1000, 1000) == 1536
    assert capacity.larger(1, 1, 0, 10) == capacity.MARGIN


def test_need_by_the_end():
    assert capacity.wanted_by_end(160, 50, 400) == 320  # eight times as many sweeps
    assert capacity.wanted_by_end(160, 400, 400) == 160


def test_multiples():
    assert [capacity.at_least(n) for n in (1, 16, 16.5, 17)] == [16, 16, 32, 32]
