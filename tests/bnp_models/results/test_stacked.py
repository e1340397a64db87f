"""Fits with weights of chains; draws are made up, with two modes of one posterior."""

import dataclasses
import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.base.author_model import DIMS
from bnp_models.posterior.arviz_data import group, make_data
from bnp_models.posterior.stacking import with_weights

VOCABULARY = ["cat", "dog", "law", "vote", "moon", "sun"]
NUM_DRAWS = 3
FEW = {"num_sweeps": 6, "num_kept": 3}


def documents(seed, pairs, count=12, length=12):
    """Documents over the words of one pair each."""
    rng = np.random.default_rng(seed)
    docs = [rng.choice(pairs[d % len(pairs)], length).tolist() for d in range(count)]
    return bnp.Corpus.from_ids(docs, vocabulary=VOCABULARY, authors=[["ann"]] * count)


KINDS = [(0, 1), (2, 3), (4, 5)]
OTHER_KINDS = [(0, 2), (1, 4), (3, 5)]


@pytest.fixture(scope="module")
def corpus():
    """Documents of both kinds, so that either way to see them is a mode."""
    return documents(0, [*KINDS, *OTHER_KINDS], count=24)


def make_fit(corpus, homes, model):
    """Return a fit whose chain c assigns every word to its topic in `homes[c]`."""
    z = np.stack([np.array(home)[np.asarray(corpus.word)] for home in homes])
    z = np.repeat(z[:, None], NUM_DRAWS, axis=1).astype(np.uint8)
    for draw in range(NUM_DRAWS):
        z[:, draw, draw] = (z[:, draw, draw] + 1) % 3  # draws differ a little
    each = np.ones((len(homes), NUM_DRAWS))
    groups = {
        "posterior": {"num_topics_used": 3 * each},
        "sample_stats": {"lp": np.arange(each.size, dtype=float).reshape(each.shape)},
        "states": {"z": z, "x": 0 * z, "alpha": 0.1 * each, "beta": 0.1 * each},
    }
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest}
    return model.result_class()(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


HOMES = [[0, 0, 1, 1, 2, 2], [0, 1, 0, 2, 1, 2]]
LDA = bnp.LDA(3, alpha=0.1, beta=0.1)


@pytest.fixture(scope="module")
def fitted(corpus):
    return make_fit(corpus, HOMES, LDA)


@pytest.fixture(scope="module")
def stacked(fitted):
    return fitted.stacked(documents(1, KINDS), **FEW)


def given(fit, *weights):
    """Return the fit with these weights."""
    data = with_weights(fit.data, np.array(weights), np.full(len(weights), -1.0))
    return dataclasses.replace(fit, data=data)


class TestWeights:
    def test_documents_of_one_mode_give_its_chain_all(self, fitted, stacked):
        table = stacked.chain_weights()
        assert table.index.tolist() == [0, 1]
        assert table["weight"][0] > 0.95
        assert table["log_prob"][0] > table["log_prob"][1] + 0.1
        assert table.attrs == {"score": "document_completion", "num_docs": 12, "num_tokens": 72}
        other = fitted.stacked(documents(1, OTHER_KINDS), **FEW).chain_weights()
        assert other["weight"][1] > 0.95

    def test_documents_of_both_modes_give_back_their_shares(self, fitted):
        """Whole documents: one that a chain does not explain is far less probable there."""
        kinds = [*KINDS, *KINDS, *OTHER_KINDS]  # two to one
        new = documents(2, kinds, count=45, length=20)
        found = fitted.stacked(new, score="left_to_right", num_particles=4)
        np.testing.assert_allclose(found.chain_weights()["weight"], [2 / 3, 1 / 3], atol=0.02)

    def test_the_gain(self, fitted):
        """On the documents of the weights: no worse than equal weights, or than any chain."""
        new = documents(3, [*KINDS, *OTHER_KINDS[:1]], count=16)
        for score, how in (("document_completion", FEW), ("left_to_right", {"num_particles": 4})):
            found = fitted.stacked(new, score=score, **how)
            best = getattr(found, score)(new, **how)
            prior = 2 * 1e-4 / best.num_tokens  # what the prior may cost, see `stack`
            assert best.log_prob > getattr(fitted, score)(new, **how).log_prob
            assert best.log_prob > found.chain_weights()["log_prob"].max() - prior

    def test_halves_of_the_fitted_documents(self, corpus):
        """The first halves may be those that were fitted."""
        observed, heldout = corpus.halves(0)
        fit = make_fit(observed, HOMES, LDA)
        found = fit.stacked(observed, heldout=heldout, **FEW)
        score = bnp.scores.held_out.document_completion(fit.mixtures, observed, heldout, **FEW)
        by_chain = score.chain_log_prob.sum(axis=1) / score.num_tokens
        np.testing.assert_allclose(found.chain_weights()["log_prob"], by_chain)
        with pytest.raises(ValueError, match="heldout must be of documents that were not fitted"):
            fit.stacked(heldout, heldout=observed)
        with pytest.raises(ValueError, match="heldout must be None for score='left_to_right'"):
            fit.stacked(observed, heldout=heldout, score="left_to_right")

    def test_stacking_again_and_taking_weights_away(self, fitted, stacked):
        assert fitted.unstacked() is fitted
        plain = stacked.unstacked()
        pd.testing.assert_frame_equal(plain.topics(), fitted.topics())
        again = stacked.stacked(documents(1, KINDS), **FEW)
        pd.testing.assert_frame_equal(again.chain_weights(), stacked.chain_weights())
        with pytest.raises(ValueError, match=r"must have weights of its chains: .*fit\.stacked"):
            fitted.chain_weights()

    def test_the_order_of_chains_does_not_matter(self, corpus):
        fits = [make_fit(corpus, homes, LDA) for homes in (HOMES, HOMES[::-1])]
        new = documents(2, [*KINDS, *OTHER_KINDS[:1]], count=16)
        how = {"score": "left_to_right", "num_particles": 50}
        one, other = (fit.stacked(new, **how).chain_weights()["weight"] for fit in fits)
        np.testing.assert_allclose(one, other[::-1], atol=0.02)  # other random numbers

    def test_saved_and_loaded(self, stacked, corpus, tmp_path):
        found = bnp.Fit.load(stacked.save(tmp_path / "draws.nc"), corpus)
        table = found.chain_weights()
        pd.testing.assert_frame_equal(table, stacked.chain_weights())
        assert table.attrs == stacked.chain_weights().attrs
        json.dumps(table.attrs)
        pd.testing.assert_frame_equal(found.topics(), stacked.topics())

    def test_what_cannot_be_stacked(self, fitted, corpus):
        new = documents(1, KINDS)
        with pytest.raises(ValueError, match="num_chains must be 2 or more"):
            fitted.of_chain(1).stacked(new)
        with pytest.raises(ValueError, match=r"corpus must be of documents that were not fitted"):
            fitted.stacked(corpus)
        with pytest.raises(ValueError, match="observed has 3 words, the model has 6"):
            fitted.stacked(bnp.Corpus.from_ids([[0, 1], [2, 2]], num_words=3))
        with pytest.raises(ValueError, match="score must be one of"):
            fitted.stacked(new, score="npmi")
        with pytest.raises(ValueError, match="concentration must be a finite number above 1"):
            fitted.stacked(new, concentration=1)
        groups = {name: group(fitted.data, name) for name in ("posterior", "sample_stats")}
        bare = make_data({name: dict(found.data_vars) for name, found in groups.items()})
        with pytest.raises(ValueError, match="keep_states must be positive"):
            dataclasses.replace(fitted, data=bare).stacked(new)


class TestTables:
    @pytest.mark.parametrize("name", ["topics", "documents", "transform", "topic_words"])
    def test_equal_weights_change_no_mean(self, fitted, name):
        equal = given(fitted, 0.5, 0.5)
        one, other = (self.table(fit, name) for fit in (fitted, equal))
        left_out = {"lower", "upper"}  # quantiles of weighted states are not interpolated
        for column in set(one) - left_out:
            if one[column].dtype.kind == "f":
                np.testing.assert_allclose(one[column], other[column], atol=1e-12)
            else:
                assert one[column].tolist() == other[column].tolist()

    @staticmethod
    def table(fit, name):
        if name == "transform":
            return fit.transform(documents(5, KINDS, count=3), **FEW)
        if name == "topic_words":
            from bnp_models.results.topic_tables import topic_words

            return topic_words(fit.pooled())
        return getattr(fit, name)()

    def test_shares_are_weighted_means_over_chains(self, fitted):
        """Means of the states of each chain, made here, weighted."""
        weights = np.array([0.9, 0.1])
        found = given(fitted, *weights)
        states, alignment = fitted.topic_states, fitted.alignment
        chain = alignment.chain
        prevalence = alignment.shares()
        by_chain = np.stack([prevalence[chain == c].mean(axis=0) for c in (0, 1)])
        table = found.topics()
        np.testing.assert_allclose(table["prevalence"], weights @ by_chain)
        assert abs(table["prevalence"] - fitted.topics()["prevalence"]).max() > 0.001
        for low, high, shares in zip(table["lower"], table["upper"], prevalence.T, strict=True):
            assert {low, high} <= set(shares)  # values of states
        assert (table["upper"] <= by_chain[0].max() + 0.1).all()
        unmatched = 1 - (weights @ by_chain).sum()
        assert table.attrs["unmatched"] == pytest.approx(unmatched)
        plain = fitted.topics()
        for column in ("found", "other_chains", "similarity", "lowest_share", "highest_share"):
            assert table[column].tolist() == plain[column].tolist()
        assert table.attrs["uncommon"] == plain.attrs["uncommon"]
        from bnp_models.results.document_tables import document_shares
        from bnp_models.results.topic_draws import mean_topics

        def shares_of(part):
            z = states.z.reshape(2, NUM_DRAWS, -1)[part]
            doc = np.asarray(fitted.dataset.doc)
            number = alignment.number.reshape(2, NUM_DRAWS, -1)[part]
            theta = np.zeros((NUM_DRAWS, fitted.dataset.num_docs, alignment.num_topics))
            for s in range(NUM_DRAWS):
                counts = np.zeros((fitted.dataset.num_docs, 3))
                np.add.at(counts, (doc, z[s]), 1)
                mean = (counts + 0.1) / (counts.sum(1, keepdims=True) + 0.3)
                slots = np.flatnonzero(number[s] >= 0)
                theta[s][:, number[s, slots]] = mean[:, slots]
            return theta.mean(axis=0)

        expected = weights[0] * shares_of(0) + weights[1] * shares_of(1)
        shares = document_shares(found.topic_states, fitted.dataset, found.alignment)
        np.testing.assert_allclose(shares.mean, expected)
        rest = found.of_chain(0)
        np.testing.assert_array_equal(rest.topics(), fitted.of_chain(0).topics())
        words = mean_topics(found.topic_states, found.alignment)
        assert abs(words - mean_topics(states, alignment)).max() > 0.01

    def test_nearly_all_weight_on_a_chain(self, fitted):
        """Document shares and new documents are then those of that chain, in its numbers."""
        one = given(fitted, 1 - 1e-13, 1e-13)
        new = documents(5, KINDS, count=3)
        found, alone = one.transform(new, **FEW), fitted.of_chain(0).transform(new, **FEW)
        np.testing.assert_allclose(
            np.sort(found.to_numpy(), axis=1), np.sort(alone.to_numpy(), axis=1), atol=1e-6
        )

    def test_text_and_report(self, stacked, fitted):
        weight = stacked.chain_weights()["weight"]
        said = " ".join(stacked.text().split())
        assert f"weights by stacking (0: {weight[0]:.3f}, 1: {weight[1]:.3f})" in said
        assert "others, alike and there do not" in said
        assert "stacking" not in fitted.text()
        assert "stacking" not in stacked.of_chain(0).text()
        tables = stacked.summaries().tables
        pd.testing.assert_frame_equal(tables["chain_weights"], stacked.chain_weights())
        assert "chain_weights" not in fitted.summaries().tables
        plt.close("all")

    def test_command_line_report(self, stacked, tmp_path):
        from bnp_models.results.folder import load_run, save_run

        save_run(stacked, tmp_path)
        assert (tmp_path / "chain_weights.csv").is_file()
        found = load_run(tmp_path)
        pd.testing.assert_frame_equal(found.chain_weights(), stacked.chain_weights())


@pytest.fixture(scope="module")
def authors(corpus):
    return make_fit(corpus, HOMES, bnp.AuthorTopicModel(3, alpha=0.1, beta=0.1))


class TestAuthors:
    def test_known_authors(self, authors):
        new = documents(1, KINDS)
        found = authors.stacked(new, score="known_authors")
        assert found.chain_weights().attrs["score"] == "known_authors"
        best = found.known_authors(new).log_prob
        assert best >= authors.known_authors(new).log_prob - 1e-9
        (weight, _) = found.chain_weights()["weight"]
        assert 0 < weight < 1

    def test_tables_of_authors_refuse_weights(self, authors):
        found = given(authors, 0.7, 0.3)
        for call in (
            lambda fit: fit.author_topics(),
            lambda fit: fit.similar_authors("ann"),
            lambda fit: fit.infer_author(documents(1, KINDS)),
            lambda fit: fit.surprising_documents("ann"),
            lambda fit: fit.plot_author_topics("ann"),
        ):
            with pytest.raises(ValueError, match="fit has weights of its chains, which tables of"):
                call(found)
            call(found.of_chain(0))
            call(found.unstacked())
        plt.close("all")
