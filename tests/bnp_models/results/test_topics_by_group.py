"""A model whose topics and weights differ by group: what reads them takes those of the document.

Nothing is sampled: the model is made up, and its topics in a group are those of LDA on the group.
"""

import dataclasses
import json
from typing import Any, ClassVar

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.base.token_model import DIMS, TokenModel
from bnp_models.base.topics import finite_topics
from bnp_models.posterior.alignment import align, pooled_topics
from bnp_models.posterior.arviz_data import make_data
from bnp_models.posterior.mixtures import OneRow, mixture_states
from bnp_models.results import document_tables, topic_draws, topic_tables
from bnp_models.scores.held_out import document_completion, document_topics, left_to_right

VOCABULARY = ("ball", "goal", "law", "vote", "said")
BETA = 0.1


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ByGroup(TokenModel):
    """LDA in each group, with the slots of the topics in common."""

    alpha: Any = (0.2, 1.5)

    hyperparameters: ClassVar[tuple[str, ...]] = ("alpha",)
    schedules: ClassVar[dict[str, tuple[str, ...]]] = {"sequential": ("sequential",)}
    recordable: ClassVar[tuple[str, ...]] = ()
    result: ClassVar[str] = "bnp_models:TopicFit"

    def topics_of(self, state, corpus):
        """Tally the tokens of each group."""
        group = np.asarray(corpus.group)[np.asarray(corpus.doc)]
        rows = [
            finite_topics(
                state["z"][group == g], np.asarray(corpus.word)[group == g],
                num_words=corpus.num_words, num_topics=2, alpha=alpha, beta=BETA,
            )
            for g, alpha in enumerate(self.alpha)
        ]  # fmt: skip
        return jax.tree.map(lambda *leaf: np.concatenate(leaf), *rows)

    def row_names(self, corpus):
        """Name the groups."""
        return corpus.group_names

    def __call__(self, data, *, observed=True):
        """Do nothing."""

    def gibbs(self, **options):
        """Do nothing."""

    def sampler(self, sampled_by_other_blocks, **options):
        """Do nothing."""


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    docs = [rng.choice(5, 12, p=np.roll([0.5, 0.3, 0.1, 0.05, 0.05], d % 3)) for d in range(12)]
    return bnp.Corpus.from_ids(
        docs, vocabulary=VOCABULARY, groups=["north" if d % 3 else "south" for d in range(12)]
    )


@pytest.fixture(scope="module")
def fitted(corpus):
    """Two chains of two states near one another, so that their topics can be aligned."""
    rng = np.random.default_rng(1)
    truth = (np.asarray(corpus.word) >= 2).astype(np.uint8)
    z = np.where(rng.random((2, 2, corpus.num_tokens)) < 0.1, 1 - truth, truth).astype(np.uint8)
    z[1] = 1 - z[1]  # chain 1 has the slots in the other order
    groups = {
        "posterior": {"num_topics_used": np.full((2, 2), 2)},
        "sample_stats": {"lp": np.array([[3.0, 1], [2, 0]])},
        "states": {"z": z},
    }
    model = ByGroup()
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest}
    return model.result_class()(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


@pytest.fixture(scope="module")
def new():
    """New documents, whose groups are numbered in another order than those of the fit."""
    rng = np.random.default_rng(2)
    docs = [rng.integers(0, 5, n).tolist() for n in (6, 9, 3, 7)]
    groups = ["south", "north", "north", "south"]
    return bnp.Corpus.from_ids(
        docs, vocabulary=VOCABULARY, groups=groups, group_names=["south", "north"]
    )


def rows_of(corpus, name):
    return np.asarray(corpus.group) == corpus.group_names.index(name)


def test_a_row_is_the_fit_of_its_group_alone(fitted, corpus):
    z = fitted.states["z"].to_numpy()
    for name, alpha in zip(corpus.group_names, fitted.model.alpha, strict=True):
        part = corpus.select(np.flatnonzero(rows_of(corpus, name)))
        inside = rows_of(corpus, name)[np.asarray(corpus.doc)]
        recorded = {"alpha": np.full((2, 2), alpha), "beta": np.full((2, 2), BETA), "draw": [0, 1]}
        alone = mixture_states(bnp.LDA(2), {"z": z[..., inside], **recorded}, part)
        for ours, theirs in zip(OneRow(fitted.mixtures, name), alone, strict=True):
            np.testing.assert_array_equal(ours.phi, theirs.phi)
            np.testing.assert_array_equal(ours.weights, theirs.weights)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["north", "south"])
def test_documents_are_folded_in_and_scored_with_the_topics_of_their_group(fitted, new, name):
    """The same as if all documents were of the group: random numbers go by the document."""
    mixtures, alone = fitted.mixtures, OneRow(fitted.mixtures, name)
    mine = rows_of(new, name)
    other = OneRow(mixtures, "south" if name == "north" else "north")
    observed, heldout = new.halves(0)

    def fold_in(m):
        return np.stack(list(document_topics(m, new, num_sweeps=6, num_kept=3)), axis=1)

    def complete(m):
        how = {"num_sweeps": 6, "num_kept": 3}
        return document_completion(m, observed, heldout, **how).state_log_prob.T

    def evidence(m):
        return left_to_right(m, new, num_particles=3, resample=2).state_log_prob.T

    for score in (fold_in, complete, evidence):
        found = score(mixtures)
        np.testing.assert_allclose(found[mine], score(alone)[mine], rtol=2e-5)
        assert np.abs(found[mine] - score(other)[mine]).max() > 0.01


def test_weights_by_group_share_the_topics_of_all(fitted, new):
    """As in a three-level HDP; equal to repeating the topics for each group."""
    first = next(iter(fitted.mixtures))
    short = first._replace(phi=first.phi[:, :1])
    full = first._replace(phi=np.repeat(short.phi, 2, axis=1))
    halves = new.halves(0)
    for score in (
        lambda m: document_completion(m, *halves, num_sweeps=4, num_kept=2).doc_log_prob,
        lambda m: left_to_right(m, new, num_particles=3).doc_log_prob,
        lambda m: next(document_topics(m, new, num_sweeps=4, num_kept=2)),
    ):
        np.testing.assert_allclose(score(short), score(full), rtol=2e-5)


def test_the_average_over_groups_is_that_of_the_tokens(fitted, corpus):
    states = fitted.topic_states
    group = np.asarray(corpus.group)[np.asarray(corpus.doc)]
    for z, found, state in zip(states.z, pooled_topics(states), fitted.mixtures, strict=True):
        for k in range(2):
            share = np.bincount(group[z == k], minlength=2) / (z == k).sum()
            by_hand = share[0] * state.phi[0, 0, :, k] + share[1] * state.phi[0, 1, :, k]
            np.testing.assert_allclose(found[:, k], by_hand, rtol=1e-6)
    nobody = states._replace(z=np.zeros_like(states.z))  # what the average of no token is
    share = np.bincount(group) / len(group)
    first = next(iter(fitted.mixtures)).phi[0, :, :, 1]
    np.testing.assert_allclose(next(pooled_topics(nobody))[:, 1], share @ first, rtol=1e-6)
    with pytest.raises(ValueError, match=r"states\.token_row must say which row"):
        align(states._replace(token_row=None))


def test_tables_are_of_the_average_or_of_one_group(fitted, corpus, fit_of):
    states, alignment = fitted.topic_states, fitted.alignment
    assert alignment.num_topics == 2
    mean = topic_draws.mean_topics(states, alignment)
    parts = {g: topic_draws.mean_topics(states, alignment, group=g) for g in corpus.group_names}
    assert np.abs(parts["north"] - parts["south"]).max() > 0.1
    low, high = np.minimum(*parts.values()), np.maximum(*parts.values())
    assert ((low - 0.01 <= mean) & (mean <= high + 0.01)).all()
    words = topic_tables.topic_words(fit_of(states, corpus, alignment), num_words=5, group="south")
    for row in words.to_dict("records"):
        expected = parts["south"][VOCABULARY.index(row["word"]), row["topic"]]
        assert row["probability"] == pytest.approx(expected, rel=1e-5)
        assert row["lower"] <= row["probability"] <= row["upper"]
    south, pooled = fitted.topics(group="south"), fitted.topics()
    best = np.argsort(-parts["south"], axis=0)[:3]
    listed = [", ".join(VOCABULARY[v] for v in best[:, k]) for k in range(2)]
    assert [", ".join(text.split(", ")[:3]) for text in south["words"]] == listed
    expected = fitted.topic_prevalence_by_group().query("group == 'south'")
    for column in ("prevalence", "lower", "upper"):
        np.testing.assert_allclose(south[column], expected[column])
    assert not np.allclose(south["prevalence"], pooled["prevalence"])
    assert south.attrs == pooled.attrs
    assert not np.allclose(south["effective_words"], pooled["effective_words"])
    assert not np.allclose(fitted.npmi(top=2, group="south"), fitted.npmi(top=2, group="north"))
    assert len(fitted.plot_topic_words(group="north")) == 2
    plt.close("all")
    with pytest.raises(ValueError, match=r"group must be one of .* \(north, south\), got 'east'"):
        fitted.topics(group="east")


def test_documents_of_topics_are_those_of_the_group(fitted, corpus):
    mine = np.flatnonzero(np.asarray(corpus.group) == corpus.group_names.index("south"))
    table = fitted.topics(group="south", num_documents=12, min_share=0.5)
    share = fitted.document_topics().to_numpy()
    for k, named in enumerate(table["representative"]):
        assert named == ", ".join(str(d) for d in mine[np.argsort(-share[mine, k], kind="stable")])
    doc, states = np.asarray(corpus.doc), fitted.topic_states
    held = np.zeros(2)
    for z, number in zip(states.z, fitted.alignment.number, strict=True):
        for k in range(2):
            counts = np.bincount(doc[number[z] == k], minlength=12)
            held[k] += np.mean(counts[mine] >= 0.5 * np.asarray(corpus.doc_length)[mine])
    np.testing.assert_allclose(table["documents"], held / len(states.z))


def test_shares_of_documents_have_the_prior_of_their_group(fitted, corpus):
    found = document_tables.document_shares(fitted.topic_states, corpus, fitted.alignment).mean
    doc, length = np.asarray(corpus.doc), np.asarray(corpus.doc_length)
    alpha = np.array(fitted.model.alpha)[np.asarray(corpus.group)]
    expected = np.zeros((12, 2))
    for z, number in zip(fitted.topic_states.z, fitted.alignment.number, strict=True):
        counts = np.stack([np.bincount(doc[z == k], minlength=12) for k in range(2)], axis=1)
        expected[:, number] += (counts + alpha[:, None]) / (length + 2 * alpha)[:, None] / 4
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_new_documents_through_the_fit(fitted, new):
    shares = fitted.transform(new, num_sweeps=6, num_kept=3)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    without = bnp.Corpus.from_ids([[0, 1]], vocabulary=VOCABULARY)
    unknown = bnp.Corpus.from_ids([[0, 1]], vocabulary=VOCABULARY, groups=["east"])
    calls = {
        fitted.transform: "corpus",
        fitted.left_to_right: "corpus",
        fitted.empirical_likelihood: "corpus",
        fitted.document_completion: "observed",
    }
    for call, name in calls.items():
        with pytest.raises(ValueError, match=f"{name} must have groups"):
            call(without)
        with pytest.raises(ValueError, match=f"{name} has the group 'east', which"):
            call(unknown)


def test_the_fit_is_read_again_as_what_the_model_names(fitted, corpus, tmp_path):
    again = bnp.Fit.load(fitted.save(tmp_path / "draws.nc"), corpus)
    assert type(again) is bnp.TopicFit
    assert again.topics().equals(fitted.topics())


def test_group_and_chain_together(fitted):
    for chain in (0, 1):
        alone = type(fitted)(fitted.model, fitted.dataset, fitted.data.isel(chain=[chain]))
        others = ["other_chains", "similarity", "lowest_share", "highest_share"]
        found, expected, of_all = (
            fit.topics(group="south").drop(columns=others)
            for fit in (fitted.of_chain(chain), alone, fitted.pooled())
        )
        assert found.equals(expected)
        assert not found.equals(of_all)
        scores = fitted.of_chain(chain).npmi(group="south", top=2)
        np.testing.assert_array_equal(scores, alone.npmi(group="south", top=2))
        assert len(fitted.of_chain(chain).plot_topic_words(group="south")) == 2
    plt.close("all")
