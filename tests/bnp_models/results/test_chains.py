"""What a fit shows where the chains have settled in different places; draws are made up.

It shows one chain. Each of its tables must be that of a fit which has no other chain, but for what
they say of the other chains.
"""

import functools
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

    Chain 1 has the state with the highest density, chain 0 the higher mean: it is shown.
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
        others = [name for name in OF_OTHERS if name in expected]
        found, expected = found.drop(columns=others), expected.drop(columns=others)
        found.attrs.pop("uncommon", None)
        expected.attrs.pop("uncommon", None)
        pd.testing.assert_frame_equal(found, expected)
        assert found.attrs == expected.attrs
    elif isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_array_equal(found, expected)


OF_OTHERS = ["other_chains", "similarity", "lowest_share", "highest_share"]
NEW = [[0, 1, 0], [4, 5]]
TABLES = {
    "topics": {},
    "documents": {"num_topics": 1},
    "topic_prevalence_by_group": {"by": np.arange(9) % 2, "names": ["even", "odd"]},
    "transform": {"corpus": bnp.Corpus.from_ids(NEW, vocabulary=VOCABULARY), "num_sweeps": 5,
                  "num_kept": 2},
    "npmi": {"top": 2},
    "author_topics": {"authors": ["ann"]},
}  # fmt: skip
OF_ALL_CHAINS = {
    "similar_authors": {"author": "ann"},
    "infer_author": {"corpus": bnp.Corpus.from_ids(NEW, vocabulary=VOCABULARY)},
    "surprising_documents": {"author": "ann"},
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_a_chain_is_that_of_a_fit_without_others(fitted, name):
    for chain in (0, 1):
        found = getattr(fitted.of_chain(chain), name)(**TABLES[name])
        same(found, getattr(alone(fitted, chain), name)(**TABLES[name]))
    same(getattr(fitted, name)(**TABLES[name]), getattr(alone(fitted, 0), name)(**TABLES[name]))


@pytest.mark.parametrize("name", OF_ALL_CHAINS)
def test_what_has_no_numbers_of_topics_is_of_all_chains(fitted, name):
    one, other, found = (
        getattr(fit, name)(**OF_ALL_CHAINS[name]) for fit in (*map(fitted.of_chain, (0, 1)), fitted)
    )
    same(one, getattr(alone(fitted, 0), name)(**OF_ALL_CHAINS[name]))
    assert not found.equals(one)
    assert not found.equals(other)


def test_the_chain_has_the_topics_that_it_uses_with_its_own_weights(fitted, corpus):
    """Over all chains a topic of one chain counts as zero in the other."""
    kinds = np.bincount(np.asarray(corpus.word) // 2) / corpus.num_tokens
    assert fitted.pooled().topics()["prevalence"].sum() < 0.9
    first, second = (fit.topics(num_words=2) for fit in (fitted, fitted.of_chain(1)))
    assert first["prevalence"].sum() == second["prevalence"].sum() == 1
    np.testing.assert_allclose(np.sort(first["prevalence"]), np.sort(kinds), atol=0.02)
    assert {frozenset(words.split(", ")) for words in first["words"]} == {
        frozenset(VOCABULARY[i : i + 2]) for i in (0, 2, 4)
    }
    assert second["prevalence"].iloc[0] == pytest.approx(kinds[1:].sum(), abs=0.02)


def test_columns_about_the_other_chains(fitted):
    """The topic of chain 1 for two kinds of words is the partner of one topic of chain 0."""
    table, other = fitted.topics(), fitted.of_chain(1).topics()
    assert table["other_chains"].tolist() in ([1, 1, 0], [1, 0, 1])
    assert other["other_chains"].tolist() == [1, 1]
    lost = table[table["other_chains"] == 0]
    assert lost[["similarity", "lowest_share", "highest_share"]].isna().to_numpy().all()
    assert table.attrs["uncommon"] == pytest.approx(lost["prevalence"].sum())
    kept = table.drop(index=lost.index)
    np.testing.assert_array_equal(kept["lowest_share"], kept["highest_share"])
    assert sorted(kept["lowest_share"]) == sorted(other["prevalence"])
    assert sorted(kept["similarity"]) == sorted(other["similarity"])


def test_the_text_says_which_chain_it_is(fitted):
    common = 1 - fitted.topics().attrs["uncommon"]
    text = fitted.text()
    head = text.split("\n\n")[0].replace("\n", " ")
    assert head.startswith(
        f"Chain 0, the one with the higher mean lp (2 in all). {common:.1%} of the tokens "
        "are in topics that every other chain has, too, at least roughly (alike says how nearly). "
        "Shares and intervals are within this chain."
    )
    assert "others  alike" in text
    assert "alike: how nearly it is the same there,\nfrom 0.5 (only roughly; less does not" in text
    assert fitted.summaries().text(None).startswith(head[:40])
    assert fitted.of_chain(1).text().startswith("Chain 1, one of the chains (2 in all). 100.0% of")
    assert alone(fitted, 1).text().startswith("Chain 1 alone, which is no summary of the posterior")
    assert "others  alike" not in alone(fitted, 1).text()
    plt.close("all")


def test_pooled(fitted):
    """The last kind of words has a topic in chain 0 only: the other one there is like chain 1's."""
    pooled = fitted.pooled()
    z = fitted.states["z"].to_numpy()
    lost = np.mean([pooled.alignment.number[s, row] < 0 for s, row in enumerate(z.reshape(6, -1))])
    assert 0.15 < lost < 0.2
    assert pooled.topics().attrs["uncommon"] == pytest.approx(lost)
    assert pooled.shown is pooled
    assert pooled.text().startswith(f"Average over 2 chains. {1 - lost:.1%} of the tokens are in")


def test_chains_that_agree_are_averaged(fitted):
    group = functools.partial(arviz_data.group, fitted.data)
    same_chain = {
        name: xarray.concat(
            [group(name).isel(chain=0).assign_coords(chain=c) for c in (0, 1)], "chain"
        )
        for name in arviz_data.groups(fitted.data)
    }
    container = arviz_data._container(same_chain, dict(fitted.data.attrs))
    fit = type(fitted)(fitted.model, fitted.dataset, container)
    assert fit.shown is fit
    assert fit.topics()["other_chains"].tolist() == [1, 1, 1]
    pd.testing.assert_frame_equal(fit.topics(), fit.pooled().topics())


def test_a_topic_is_common_if_every_chain_has_it_in_half_of_its_states(fitted):
    alignment = fitted.alignment
    rare = alignment.similarity.copy()
    rare[3:5, 0] = np.nan
    changed = alignment._replace(similarity=rare)
    assert changed.common().tolist() == [False, *alignment.common()[1:]]


def test_a_fit_of_one_chain(fitted):
    assert fitted.representative() == 0
    assert fitted.shown is fitted.of_chain(0)
    one = fitted.of_chain(1)
    assert one is fitted.of_chain(1)  # its alignment is made once
    assert one.of_chain(1) is one
    assert (one.representative(), one.shown) == (1, one)
    assert one.posterior["chain"].to_numpy().tolist() == [1]
    assert one.data.attrs == fitted.data.attrs
    assert [mixture.chain.item() for mixture in one.mixtures] == [1] * NUM_DRAWS
    for wrong in (2, -1, True):
        with pytest.raises(ValueError, match=r"chain must be one of \[0, 1\], got"):
            fitted.of_chain(wrong)


def test_labels_keep_what_a_chain_is_compared_with(fitted):
    one = fitted.of_chain(1).with_labels({0: "named"})
    pd.testing.assert_frame_equal(
        one.topics().drop(columns="label"), fitted.of_chain(1).topics(), check_dtype=False
    )
    assert "same_sign" in one.effects({"x": np.arange(9) % 3}, num_draws=1)
    assert one.text().startswith("Chain 1, one of the chains (2 in all)")
    pooled = fitted.pooled().with_labels({0: "named"})
    assert pooled.shown is pooled
    assert pooled.topics()["label"][0] == "named"
    assert "label" not in fitted.with_labels({0: "named"}).pooled().topics()


def test_a_chain_without_a_finite_density_is_left_out(fitted):
    """Its draws failed: the others are compared without it."""
    lp = arviz_data.group(fitted.data, "sample_stats")["lp"].to_numpy().copy()
    lp[0] = np.nan
    stats = arviz_data.group(fitted.data, "sample_stats")
    data = arviz_data.with_group(
        fitted.data, "sample_stats", stats.assign(lp=(("chain", "draw"), lp))
    )
    fit = type(fitted)(fitted.model, fitted.dataset, data)
    assert fit.representative() == 1
    same(fit.topics(), alone(fitted, 1).topics())
    assert fit.effects({"x": np.arange(9) % 3}, num_draws=1)["topic"].nunique() == 2
    with pytest.raises(ValueError, match=r"states\.lp must be finite in some state"):
        fit.of_chain(0).topics()
    data = arviz_data.with_group(data, "sample_stats", stats * np.nan)
    with pytest.raises(ValueError, match="lp must be finite in some kept state of some chain"):
        type(fitted)(fitted.model, fitted.dataset, data).topics()


def test_a_topic_that_one_alignment_does_not_find_is_not_averaged(fitted):
    """Means of chains are alike, but half of the states of a chain are not like the reference."""
    assert not fitted._agree()
    fit = fitted.pooled()
    vars(fit)["matches"] = fitted.matches._replace(
        partner={pair: np.zeros_like(x) for pair, x in fitted.matches.partner.items()}
    )
    assert fit.matches.agree()
    assert not fit._agree()  # the alignment of all states misses a large topic


def test_effects_in_the_other_chains(fitted):
    covariates = {"x": np.arange(9) % 3}
    table = fitted.effects(covariates, num_draws=2)
    assert table["other_chains"].tolist() == [
        n for n in fitted.topics()["other_chains"] for _ in "ab"
    ]
    of_other = fitted.of_chain(1).effects(covariates, num_draws=2)
    partner = fitted.matches.partners(0, 1)
    for row in table.itertuples():
        found = of_other[(of_other["topic"] == partner[row.topic]) & (of_other["term"] == row.term)]
        expected = found["effect"].tolist()
        if partner[row.topic] < 0:
            assert np.isnan([row.lowest_effect, row.highest_effect]).all()
            assert row.same_sign == 0
        else:
            assert [row.lowest_effect] == [row.highest_effect] == expected
            assert row.same_sign == (np.sign(expected[0]) == np.sign(row.effect))
    assert "same_sign" not in alone(fitted, 0).effects(covariates, num_draws=2)


def test_pictures(fitted):
    assert len(fitted.plot_topic_words()) == 3
    assert len(fitted.of_chain(1).plot_topic_words()) == 2
    within = "Chain 0: shares and intervals are within this chain."
    ax = fitted.plot_prevalence_by_group()
    assert ax.figure.get_supxlabel().replace("\n", " ").endswith(f"interval. {within}")
    _, ax = plt.subplots()
    fitted.plot_prevalence_by_group(ax=ax)  # a panel of the user says so below its labels
    assert ax.get_xlabel().replace("\n", " ").endswith(within)
    assert "within" not in fitted.pooled().plot_prevalence_by_group().figure.get_supxlabel()
    columns = fitted.plot_topic_similarity().get_xticklabels()
    assert [label.get_text() for label in columns] == ["chain 0\n(shown)", "chain 1"]
    one = fitted.of_chain(1)
    (said,) = one.plot_num_topics()[0].texts  # the number never changes in this chain
    assert "topics in use = 2" in said.get_text()
    assert len(fitted.plot_traces()[0, 0].get_lines()) == 2
    assert len(one.plot_traces()[0, 0].get_lines()) == 1
    legend = one.plot_author_topics("ann").get_legend()
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


@pytest.mark.parametrize("name", ["factors", "weights", "sharing", "impute"])
def test_the_factor_table_of_a_chain_is_that_of_a_fit_without_others(factors, name):
    for chain in (0, 1):
        found = getattr(factors.of_chain(chain), name)()
        same(found, getattr(alone(factors, chain), name)())


def test_factors_of_a_chain(factors):
    shown, other = factors.representative(), factors.of_chain(1)
    same(factors.factors(), alone(factors, shown).factors())
    assert factors.of_chain(0).factors()["other_chains"].tolist() == [1, 0]
    assert other.factors()["rows"].tolist() == [3]
    assert factors.pooled().factors()["rows"].tolist() == [3, 1.5]
    assert list(factors.num_factors()) == ["probability", "chain 0", "chain 1"]
    assert other.num_factors().to_dict() == {
        "probability": {2: 0.5, 3: 0.5}, "chain 1": {2: 0.5, 3: 0.5},
    }  # fmt: skip
    for c in (0, 1):
        one, of_chain = alone(factors, c), factors.of_chain(c)
        same(of_chain.effects().mean, one.effects().mean)
        same(of_chain.reconstruct().mean, one.reconstruct().mean)
        how = {"num_warmup": 2, "num_kept": 2}
        new = bnp.Sources.from_arrays([[[3.0, 0, 0, 4]]], names=["0"])
        same(of_chain.transform(new, **how), one.transform(new, **how))
    assert not np.array_equal(factors.reconstruct().mean, other.reconstruct().mean)
    assert len(other.plot_factors()) == 1
    assert other.plot_sharing().get_title(loc="left").startswith("Factors shared")
    assert len(other.plot_num_factors()[0].get_lines()) == 1
    plt.close("all")


def test_the_share_of_the_weights_in_no_common_factor(factors):
    assert factors.pooled().factors().attrs["uncommon"] == pytest.approx(1 / 3)
    assert factors.of_chain(0).factors().attrs["uncommon"] == pytest.approx(1 / 2)
    head = factors.pooled().text().split("\n\n")[0]
    assert head.startswith("Average over 2 chains. 66.7% of the weights that are not zero are in")


def test_a_state_without_factors_counts_as_none(factors):
    states = factors.factor_states
    empty = states._replace(z=states.z & (states.chain == 0)[:, None, None])
    alignment = bnp.posterior.factor_states.align_factors(empty)
    np.testing.assert_array_equal(alignment.shares(), [[0.5, 0.5]] * 2 + [[0, 0]] * 2)
    assert alignment.uncommon_share() == 1


def test_the_chain_that_is_shown_may_have_no_factor(factors, tmp_path):
    """Chain 1 has the higher mean density and no factor, chain 0 the highest state."""
    data = factors.data
    lp = np.array([[1.0, 4], [3.5, 3.9]])
    changes = {"sample_stats": {"lp": lp}}
    states = arviz_data.group(data, "states")
    empty = xarray.DataArray([1, 0], dims="chain")
    changes["states"] = {name: states[name] * empty for name in ("weights", "z")}
    for name, values in changes.items():
        group = arviz_data.group(data, name)
        of_group = {k: (group[k].dims, np.asarray(x)) for k, x in values.items()}
        data = arviz_data.with_group(data, name, group.assign(of_group))
    fit = type(factors)(factors.model, factors.dataset, data)
    assert fit.representative() == 1
    assert list(fit.summaries().tables) == ["num_factors", "functionals"]
    assert "No factor is in use" in fit.report(tmp_path / "page.html").read_text("utf-8")
    assert len(fit.of_chain(0).factors()) == 2
    plt.close("all")
