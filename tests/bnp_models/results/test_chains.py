"""Tables of one chain, where the chains have settled in different places; draws are made up.

Each table of one chain must be that of a fit which has no other chain.
"""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray

import bnp_models as bnp
from bnp_models.base.author_model import DIMS
from bnp_models.posterior import arviz_data
from bnp_models.posterior.arviz_data import make_data

VOCABULARY = ["cat", "dog", "law", "vote", "moon", "sun"]
NUM_DRAWS = 3


@pytest.fixture(scope="module")
def corpus():
    """Documents about one kind of words each, by one author or two."""
    rng = np.random.default_rng(0)
    docs = [(2 * (d % 3) + rng.integers(0, 2, 10)).tolist() for d in range(9)]
    return bnp.Corpus.from_ids(
        docs,
        vocabulary=VOCABULARY,
        groups=["new" if d < 4 else "old" for d in range(9)],
        authors=[["ann"] if d % 3 else ["ann", "bob"] for d in range(9)],
    )


@pytest.fixture(scope="module")
def fitted(corpus):
    """Chain 0 has a topic for each kind of words, chain 1 has one topic for two of them.

    Chain 1 has the state with the highest density, chain 0 the higher mean.
    """
    kind = np.asarray(corpus.word) // 2
    z = np.stack([kind, np.array([3, 1, 1])[kind]])
    z = np.repeat(z[:, None], NUM_DRAWS, axis=1).astype(np.uint8)
    z[:, 0, 0] = [2, 1]  # draws differ a little
    x = np.zeros_like(z)
    x[:, :, 5:10] = 1
    each = np.ones((2, NUM_DRAWS))
    groups = {
        "posterior": {"num_topics_used": np.array([[3] * NUM_DRAWS, [2] * NUM_DRAWS])},
        "sample_stats": {"lp": np.array([[5.0, 6, 7], [1, 2, 9]])},
        "states": {"z": z, "x": x, "alpha": 0.3 * each, "beta": 0.1 * each},
    }
    model = bnp.AuthorTopicModel(4, alpha=0.3, beta=0.1)
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest}
    return bnp.AuthorFit(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


def alone(fit, chain):
    """Return a fit that never had another chain than one."""
    return type(fit)(fit.model, fit.dataset, fit.data.isel(chain=[chain]))


def same(found, expected):
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
        assert found.attrs == expected.attrs
    elif isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_array_equal(found, expected)


NEW = [[0, 1, 0], [4, 5]]
TABLES = {
    "topics": {},
    "documents": {"num_topics": 1},
    "topic_prevalence_by_group": {"by": np.arange(9) % 2, "names": ["even", "odd"]},
    "transform": {"corpus": bnp.Corpus.from_ids(NEW, vocabulary=VOCABULARY), "num_sweeps": 5,
                  "num_kept": 2},
    "npmi": {"top": 2},
    "text": {"num_words": 3},
    "author_topics": {"authors": ["ann"]},
    "similar_authors": {"author": "ann"},
    "infer_author": {"corpus": bnp.Corpus.from_ids(NEW, vocabulary=VOCABULARY)},
    "surprising_documents": {"author": "ann"},
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_a_chain_is_that_of_a_fit_without_others(fitted, name):
    for chain in (0, 1):
        found = getattr(fitted, name)(**TABLES[name], chain=chain)
        same(found, getattr(alone(fitted, chain), name)(**TABLES[name]))


def test_a_chain_shows_the_topics_that_it_uses_with_its_own_weights(fitted, corpus):
    """Over all chains a topic of one chain counts as zero in the other."""
    kinds = np.bincount(np.asarray(corpus.word) // 2) / corpus.num_tokens
    assert fitted.topics()["prevalence"].sum() < 0.9
    first, second = (fitted.topics(num_words=2, chain=c) for c in (0, 1))
    assert first["prevalence"].sum() == second["prevalence"].sum() == 1
    np.testing.assert_allclose(np.sort(first["prevalence"]), np.sort(kinds), atol=0.02)
    assert {frozenset(words.split(", ")) for words in first["words"]} == {
        frozenset(VOCABULARY[i : i + 2]) for i in (0, 2, 4)
    }
    assert second["prevalence"].iloc[0] == pytest.approx(kinds[1:].sum(), abs=0.02)


def test_the_share_that_no_common_topic_explains(fitted):
    """The last kind of words has a topic in chain 0 only: the other one there is like chain 1's."""
    z = fitted.states["z"].to_numpy()
    alignment = fitted.alignment
    lost = np.mean([alignment.number[s, row] < 0 for s, row in enumerate(z.reshape(6, -1))])
    assert 0.15 < lost < 0.2
    table = fitted.topics()
    assert table.attrs["uncommon"] == pytest.approx(lost)
    head = fitted.text().split("\n\n")[0].replace("\n", " ")
    assert head.startswith(f"{lost:.1%} of the tokens are in topics that some of the chains do")
    assert "chain=0 (on the command line --chain 0) is the one with the highest mean lp" in head
    assert fitted.summaries().text(None).startswith(head[:40])
    plt.close("all")


def test_a_topic_is_common_if_every_chain_has_it_in_half_of_its_states(fitted):
    alignment = fitted.alignment
    rare = alignment.similarity.copy()
    rare[3:5, 0] = np.nan
    changed = alignment._replace(similarity=rare)
    assert changed.common().tolist() == [False, *alignment.common()[1:]]


def test_best_chain(fitted):
    assert fitted.best_chain() == 0
    assert fitted.of_chain(1).best_chain() == 1
    lp = arviz_data.group(fitted.data, "sample_stats")["lp"].to_numpy()
    for values, expected in (([np.nan, 8, 8], 1), (np.full((2, 3), -np.inf), None)):
        changed = np.where([[True], [False]], values, lp) if expected == 1 else values
        groups = {"posterior": {"a": lp}, "sample_stats": {"lp": changed}}
        fit = type(fitted)(fitted.model, fitted.dataset, make_data(groups))
        if expected is None:
            with pytest.raises(ValueError, match="lp must be finite in some chain"):
                fit.best_chain()
        else:
            assert fit.best_chain() == expected


def test_a_fit_of_one_chain(fitted):
    assert fitted.of_chain(None) is fitted
    one = fitted.of_chain(1)
    assert one is fitted.of_chain(1)  # its alignment is made once
    assert one.of_chain(1) is one
    assert one.posterior["chain"].to_numpy().tolist() == [1]
    assert one.data.attrs == fitted.data.attrs
    assert [mixture.chain.item() for mixture in one.mixtures] == [1] * NUM_DRAWS
    for wrong in (2, -1, True):
        with pytest.raises(
            ValueError, match=r"chain must be one of \[0, 1\], or None for all, got"
        ):
            fitted.topics(chain=wrong)


def test_pictures_of_a_chain(fitted):
    assert len(fitted.plot_topic_words(chain=0)) == 3
    assert len(fitted.plot_prevalence_by_group(chain=0).get_yticklabels()) == 3
    columns = fitted.plot_topic_similarity(chain=1).get_xticklabels()
    assert [label.get_text() for label in columns] == ["chain 1\n(reference)"]
    (said,) = fitted.plot_num_topics(chain=1)[0].texts  # the number never changes in this chain
    assert "topics in use = 2" in said.get_text()
    assert len(fitted.plot_traces(chain=1)[0, 0].get_lines()) == 1
    legend = fitted.plot_author_topics("ann", chain=1).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["chain 1"]
    plt.close("all")


@pytest.fixture(scope="module")
def factors(made_up_factors):
    """Chain 0 has two factors, chain 1 only the first of them."""
    phi = np.array([[3.0, 0, 0, 4], [0, 2, 0, 0]])
    weights = np.array([[2.0, 0], [1, 0], [1, 3], [0, 5], [0, 4]])
    values = np.where(np.arange(20).reshape(5, 4) == 9, np.nan, weights @ phi)
    sources = bnp.Sources.from_arrays([values[:3], values[3:]], allow_missing=True)
    parts = [
        made_up_factors(
            bnp.GaussianFactorAnalysis(), sources, phi, w, sigma2_w=[4.0, 9], sigma2_n=[1e-4, 1e-4]
        )
        for w in (weights, weights * [1, 0])
    ]
    names = arviz_data.groups(parts[0].data)
    found = {
        name: xarray.concat(
            [arviz_data.group(fit.data, name).isel(chain=[c]) for c, fit in enumerate(parts)],
            "chain",
        )
        for name in names
    }
    return bnp.FactorFit(
        parts[0].model, sources, arviz_data._container(found, dict(parts[0].data.attrs))
    )


FACTOR_TABLES = ("factors", "weights", "sharing", "impute", "text")


@pytest.mark.parametrize("name", FACTOR_TABLES)
def test_the_factor_table_of_a_chain_is_that_of_a_fit_without_others(factors, name):
    for chain in (0, 1):
        same(getattr(factors, name)(chain=chain), getattr(alone(factors, chain), name)())


def test_factors_of_a_chain(factors):
    assert len(factors.factors(chain=0)) == 2
    assert factors.factors(chain=1)["rows"].tolist() == [3]
    assert factors.factors()["rows"].tolist() == [3, 1.5]
    assert factors.num_factors(chain=1).to_dict() == {
        "probability": {2: 0.5, 3: 0.5}, "chain 1": {2: 0.5, 3: 0.5},
    }  # fmt: skip
    for c in (0, 1):
        one = alone(factors, c)
        same(factors.effects(chain=c).mean, one.effects().mean)
        same(factors.reconstruct(chain=c).mean, one.reconstruct().mean)
        how = {"num_warmup": 2, "num_kept": 2}
        new = bnp.Sources.from_arrays([[[3.0, 0, 0, 4]]], names=["0"])
        same(factors.transform(new, chain=c, **how), one.transform(new, **how))
    assert len(factors.plot_factors(chain=1)) == 1
    assert factors.plot_sharing(chain=1).get_title(loc="left").startswith("Factors shared")
    assert len(factors.plot_num_factors(chain=1)[0].get_lines()) == 1
    plt.close("all")


def test_the_share_of_the_weights_in_no_common_factor(factors):
    assert factors.factors().attrs["uncommon"] == pytest.approx(1 / 3)
    head = factors.text().split("\n\n")[0]
    assert head.startswith("33.3% of the weights that are not zero are in factors that some")


def test_a_state_without_factors_counts_as_none(factors):
    states = factors.factor_states
    empty = states._replace(z=states.z & (states.chain == 0)[:, None, None])
    alignment = bnp.posterior.factor_states.align_factors(empty)
    np.testing.assert_array_equal(alignment.shares(), [[0.5, 0.5]] * 2 + [[0, 0]] * 2)
    assert alignment.uncommon_share() == 1
