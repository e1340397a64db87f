"""`TopicFit`: the draws of a topic model, with tables, scores and pictures one call away."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import pandas as pd

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior import arviz_data
from bnp_models.posterior.stacking import stack, weights_table, weights_text, with_weights
from bnp_models.results import (
    document_tables,
    functional_tables,
    topic_effects,
    topic_pictures,
    topic_relations,
    topic_tables,
)
from bnp_models.results.result import Delegated, Summaries
from bnp_models.results.topic_draws import LABELS, PARTS, TopicDraws, mean_topics
from bnp_models.scores import coherence as coherences
from bnp_models.scores import held_out

if TYPE_CHECKING:
    from bnp_models.scores.held_out import HeldOutScore

__all__ = ["TopicFit"]

AnyTopicFit = TypeVar("AnyTopicFit", bound="TopicFit")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TopicFit(TopicDraws):
    """What `fit` returns for a topic model.

    Tables of topics number them by one alignment of the kept states of the chain that is shown, see
    `Fit`. Where topics differ by group, new documents must have one of the groups that were fitted.

    Attributes
    ----------
    model
        The model that was fitted.
    dataset
        The `Corpus` it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    offers: ClassVar[str] = (
        "topics(), documents(), transform(corpus), scores and pictures of topics"
    )
    default_scores: ClassVar[tuple[str, ...]] = ("document_completion", "npmi")
    counted: ClassVar[str] = "tokens"
    stacking_scores: ClassVar[tuple[str, ...]] = ("document_completion", "left_to_right")
    """Those that `stacked` can maximise."""
    kept_by_topic: ClassVar[str] = ""
    """What else its tables have of each topic, if that keeps topics from being merged."""

    # tables
    topics = topic_tables.topics
    topic_words = topic_tables.topic_words
    topic_labels = topic_tables.topic_labels
    topic_prevalence_by_group = topic_tables.topic_prevalence_by_group
    topic_correlation = topic_relations.topic_correlation
    topic_map = topic_relations.topic_map
    find_topics = topic_relations.find_topics
    representative_documents = topic_relations.representative_documents
    effects = topic_effects.effects
    expected_shares = topic_effects.expected_shares
    topics_over_time = topic_effects.topics_over_time
    documents = document_tables.documents
    document_topics = document_tables.document_topics
    functionals = functional_tables.topic_functionals

    # pictures
    plot_num_topics = Delegated("plots.chain_plots:plot_number", "data", terms="model.terms")
    plot_topic_words = topic_pictures.plot_topic_words
    plot_prevalence_by_group = topic_pictures.plot_prevalence_by_group
    plot_topic_similarity = topic_pictures.plot_topic_similarity
    plot_topic_correlation = topic_pictures.plot_topic_correlation
    plot_topic_map = topic_pictures.plot_topic_map
    plot_effects = topic_pictures.plot_effects
    plot_topics_over_time = topic_pictures.plot_topics_over_time
    pyldavis = topic_pictures.pyldavis

    # scores of new documents, and what the fit says of them
    left_to_right = Delegated("scores.held_out:left_to_right", "mixtures")
    empirical_likelihood = Delegated("scores.empirical_likelihood:empirical_likelihood", "mixtures")

    def transform(
        self,
        corpus: Corpus | str | Sequence[str],
        *,
        covariates: pd.DataFrame | Mapping[str, Any] | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Infer the topic shares of new documents, averaged over the kept states.

        Parameters
        ----------
        corpus
            New documents: texts (one string per document, or a single string), which are read as
            those of the fit were; or a `Corpus` over the same vocabulary, such as
            `fit.dataset.read_texts(texts)`. Where topics differ by group it must be a corpus with
            groups: `fit.dataset.read_texts(texts, groups=groups)`.
        covariates
            Those of the texts, a row for each, for a model with covariates. A corpus has its own.
        num_sweeps, num_kept
            Fold-in sweeps per state, and how many of the last ones are averaged.
        seed
            Seed of the fold-in.

        Returns
        -------
        Table of documents by topics, numbered as in `topics`. Rows sum to at most one; the rest
        belongs to topics without a number.
        """
        fit = self.shown
        return document_tables.shares_of_new(
            corpus, self.dataset.read_texts, fit.mixtures, fit.topic_states, fit.alignment,
            row_names=self.model.row_names(self.dataset), covariates=covariates,
            num_sweeps=num_sweeps, num_kept=num_kept, seed=seed,
        )  # fmt: skip

    def document_completion(
        self,
        corpus: Corpus,
        *,
        split_seed: int = 0,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> HeldOutScore:
        """Score one random half of each new document given the other half.

        Parameters
        ----------
        corpus
            New documents over the same vocabulary.
        split_seed
            Seed of the halves.
        num_sweeps, num_kept, seed
            See `held_out.document_completion`.
        """
        split_seed = arguments.seed("split_seed", split_seed)
        observed, heldout = as_corpus("corpus", corpus).halves(split_seed)
        return held_out.document_completion(
            self.mixtures, observed, heldout, num_sweeps=num_sweeps, num_kept=num_kept, seed=seed
        )

    def npmi(
        self,
        reference: Corpus | None = None,
        *,
        top: int = 10,
        group: str | None = None,
        window: int | None = None,
    ) -> np.ndarray:
        """Score the coherence of each topic on a reference corpus, by default the one fitted.

        The topics are those of `topics()`.

        Parameters
        ----------
        reference
            Corpus that the words are counted in, by default the one fitted. Words are matched by
            name. Its vocabulary must have the first words of each topic.
        top
            First words of each topic that are used.
        group
            Group whose topics to score, where these differ by group.
        window
            See `coherence.npmi`.
        """
        options = {"reference": reference, "top": top, "group": group, "window": window}
        return self.coherence("npmi", **options).to_numpy()

    def coherence(
        self,
        measure: str = "npmi",
        *,
        top: int = 10,
        reference: Corpus | None = None,
        group: str | None = None,
        window: int | None = None,
    ) -> pd.Series:
        """Score the coherence of each topic by one of several measures.

        Parameters
        ----------
        measure
            "npmi", or one of gensim's: "c_v", "u_mass", "c_uci"; see `coherence.coherence`.
        top
            First words of each topic that are used.
        reference
            Corpus that the words are counted in, by default the one fitted. Words are matched by
            name. Its vocabulary must have the first words of each topic.
        group
            Group whose topics to score, where these differ by group.
        window
            See `coherence.coherence`.

        Returns
        -------
        Values by topic, under the name of the measure.

        Raises
        ------
        ValueError
            If the reference lacks a word of a topic, or an option is out of its domain.
        ImportError
            If the measure is gensim's and gensim is not installed.
        """
        arguments.one_of("measure", measure, coherences.MEASURES)
        top = arguments.integer("top", top, 2)
        fit = self.shown
        phi = mean_topics(fit.topic_states, fit.alignment, group=group)
        values = coherences.coherence(
            _words(self.dataset, topic_tables.first_words(phi, top).T),
            self.dataset if reference is None else reference,
            measure=measure, top=top, window=window,
        )  # fmt: skip
        return pd.Series(values, pd.RangeIndex(len(values), name="topic"), name=measure)

    def stacked(
        self: AnyTopicFit,
        corpus: Corpus,
        *,
        heldout: Corpus | None = None,
        score: str = "document_completion",
        concentration: float | int = 1.0001,
        **options: Any,
    ) -> AnyTopicFit:
        """Return this fit with weights of its chains that predict new documents best together.

        For chains that do not agree, see `stacking`. It makes nothing converge. Chains of one model
        that ran alike often get nearly equal weights, and then it gains nothing. What follows the
        weights: held-out scores, and the shares, words and intervals of tables of topics where they
        are averages over chains (`pooled`). What does not: the numbers of the topics, how many
        chains have a topic, `convergence`, traces, and draws (`posterior_predictive`,
        `log_likelihood`), which are those of each chain. Tables of authors refuse them.
        `of_chain` gives a chain alone, `unstacked` takes the weights away.

        Parameters
        ----------
        corpus
            Documents that were not fitted; score the result on yet other ones, for the weights are
            chosen on these. With `heldout`: the halves of documents that the chains may see.
        heldout
            The other halves of the documents of `corpus`, in the same order. They must not have
            been fitted; those of `corpus` may have been.
        score
            What the weights make as large as possible, one of `stacking_scores`: the method of
            this name scores new documents.
        concentration
            Of the prior of the weights, see `stacking.stack`.
        **options
            Options of the score, such as `split_seed`, `seed`, `num_sweeps`.

        Raises
        ------
        ValueError
            If the fit has one chain or no states, the documents are those that were fitted or do
            not suit the model, or an option is out of its domain.
        """
        as_corpus("corpus", corpus)
        arguments.one_of("score", score, self.stacking_scores)
        arguments.finite_number("concentration", concentration, above=1)
        if self.posterior.sizes["chain"] < 2:
            raise ValueError("num_chains must be 2 or more when fitting: one chain has no weight")
        if heldout is None:
            name, scored = "corpus", corpus
        else:
            name, scored = "heldout", as_corpus("heldout", heldout)
        if scored == self.dataset:
            raise ValueError(f"{name} must be of documents that were not fitted, got fit.dataset")
        fit = self.unstacked()
        if heldout is None:
            found = getattr(fit, score)(corpus, **options)
        elif score == "document_completion":
            found = held_out.document_completion(fit.mixtures, corpus, heldout, **options)
        else:
            raise ValueError(
                f"heldout must be None for score={score!r}, which reads whole documents"
            )
        weights = stack(found.chain_log_prob, concentration=concentration)
        log_prob = found.chain_log_prob.sum(axis=1) / found.num_tokens
        about = {"score": score, "num_docs": scored.num_docs, "num_tokens": found.num_tokens}
        return fit._with_data(with_weights(fit.data, weights, log_prob, about))

    def unstacked(self: AnyTopicFit) -> AnyTopicFit:
        """Return this fit without weights of its chains, all states counting alike."""
        return self._with_data(with_weights(self.data, None)) if self._is_stacked() else self

    def chain_weights(self) -> pd.DataFrame:
        """Return the weights that `stacked` found, one row per chain.

        Columns: `weight`, and `log_prob`, the score of the chain alone in nats per token. `attrs`
        says which score it was, of how many documents and tokens.

        Raises
        ------
        ValueError
            If the fit has no weights.
        """
        return weights_table(self.data)

    def with_labels(
        self: AnyTopicFit,
        labels: Mapping[int, str] | pd.Series | Callable[[list[str], list[str]], str],
    ) -> AnyTopicFit:
        """Return this fit with names of topics, which its tables, pictures and files show.

        The labels belong to the numbers that the topics of this fit have. Other chains
        (`of_chain`) have topics with other numbers, and no labels of this one.

        Parameters
        ----------
        labels
            Label of each topic that shall have one, by its number. They replace all earlier ones;
            `{}` takes labels away. Or a function, which may ask a language model: for each topic it
            gets its ten first words and its three representative documents (texts, if the corpus
            keeps them, else names), and returns the label.

        Raises
        ------
        ValueError
            If there is no topic of a number, or a label is no text. Errors of the function pass
            through, with a note that names the topic.

        Examples
        --------
        `fit = fit.with_labels({0: "finance", 3: "law"})`

        `fit = fit.with_labels(lambda words, documents: " and ".join(words[:2]))`
        """
        shown = self.shown
        if callable(labels):
            named: object = _named_by(labels, shown)
        else:
            named = labels
        kept = topic_tables.checked_labels(named, shown.alignment.num_topics)
        return self._noted(labels=kept)

    def merge_topics(self: AnyTopicFit, groups: Sequence[Sequence[int]]) -> AnyTopicFit:
        """Return this fit with topics put together, for its tables and pictures.

        The shares of a merged topic are the sums of those of its parts, and its words are the
        average of theirs, weighted by tokens, in each state. Topics are numbered again by their
        share; `topics().attrs["parts"]` and the text of the fit say which numbers they had. A
        merged topic has the labels of its parts, joined by " + ". Another chain has a merged topic
        if it has all parts.

        This is for display. The draws (`data`), `convergence()`, the number of topics that was
        drawn, scores of new documents and the other chains (`of_chain`) are those of the topics as
        drawn.

        Parameters
        ----------
        groups
            Numbers of the topics of each merged topic, two or more, as in `topics()`. Their order
            is that of the labels and numbers in the name of the merged topic. Topics in no group
            stay as they are.

        Raises
        ------
        ValueError
            If there is no topic of a number, a group has fewer than two, a number comes twice, or
            the tables of the fit have values of each topic that can't be put together.

        Examples
        --------
        `fit = fit.merge_topics([[0, 3], [5, 7]])`
        """
        if self.kept_by_topic:
            raise ValueError(
                f"groups can't be merged in a {type(self).__name__}: it has {self.kept_by_topic}, "
                "which can't be put together. drop_topics leaves topics out"
            )
        count = self.shown.alignment.num_topics
        merged = [
            arguments.indices(f"groups[{i}]", group, count)
            for i, group in enumerate(arguments.sequence("groups", groups, "lists of topics"))
        ]
        if not merged or min(map(len, merged)) < 2:
            raise ValueError(
                "groups must be lists of two topics or more, such as [[0, 3]], got "
                f"{arguments.short_repr(groups)}"
            )
        flat = [k for group in merged for k in group]
        if twice := [k for k in flat if flat.count(k) > 1]:
            raise ValueError(
                f"groups must have each topic once at most, got topic {twice[0]} twice in "
                f"{arguments.short_repr(groups)}: write it once, with all topics that it is merged "
                "with in the same list"
            )
        return self._with_topics(merged + [[k] for k in range(count) if k not in flat])

    def drop_topics(self: AnyTopicFit, topics: Sequence[int]) -> AnyTopicFit:
        """Return this fit with topics left out of its tables and pictures.

        The shares of the other topics stay as they are, so they sum to less than one. All else is
        as in `merge_topics`: the other topics are numbered again, and keep their labels; draws,
        `convergence()` and scores are those of all topics.

        Parameters
        ----------
        topics
            Numbers of the topics to leave out, as in `topics()`.

        Raises
        ------
        ValueError
            If there is no topic of a number, a number comes twice, or no topic would be left.
        """
        count = self.shown.alignment.num_topics
        dropped = arguments.indices("topics", topics, count)
        if twice := [k for k in dropped if dropped.count(k) > 1]:
            raise ValueError(
                f"topics must have each number once, got {twice[0]} twice in "
                f"{arguments.short_repr(topics)}: leave one of them out"
            )
        if len(dropped) == count:
            raise ValueError(
                f"topics must leave at least one of the {count} topics, got all of them in "
                f"{arguments.short_repr(topics)}: take out those that are to stay"
            )
        return self._with_topics([[k] for k in range(count) if k not in dropped])

    def _with_topics(self: AnyTopicFit, groups: list[list[int]]) -> AnyTopicFit:
        """Return this fit with topics that consist of these, the largest one first."""
        shown, own = self.shown, self.shown._own_labels
        share = shown.alignment.shares().mean(axis=0)
        groups = sorted(groups, key=lambda group: -share[group].sum())
        joined = [" + ".join(dict.fromkeys(own[k] for k in g if k in own)) for g in groups]
        parts = shown._topic_parts or [[k] for k in range(len(share))]
        notes: dict[str, Any] = {
            "parts": [[p for k in group for p in parts[k]] for group in groups]
        }
        if own:  # or there may be labels of other chains
            notes["labels"] = {r: label for r, label in enumerate(joined) if label}
        return self._noted(**notes)

    def _noted(self: AnyTopicFit, **notes: Any) -> AnyTopicFit:
        """Return this fit with `labels` or `parts` of the topics that it shows."""
        data = arviz_data.with_group(self.data, LABELS, None)  # a copy
        chains = self.shown._chain_numbers()
        for name, note in notes.items():
            attribute = {"labels": LABELS, "parts": PARTS}[name]
            data.attrs[attribute] = json.dumps({"chains": chains, name: note})
            if not note:
                del data.attrs[attribute]
        fit = self._with_data(data)
        _keep_made(self._drawn, fit)
        for chain, one in self._of_chain.items():
            _keep_made(one, fit.of_chain(chain))
        return fit

    def to_topicwizard(self) -> dict[str, Any]:
        """Return the data that topicwizard shows, for `topicwizard.visualize(topic_data=...)`.

        They are plain lists and arrays; topicwizard itself is not needed. Topics keep their
        numbers, and have their labels or first words as names.

        Returns
        -------
        `corpus` (texts if the corpus keeps them, else the words of each document), `vocab`,
        `document_term_matrix` (sparse), `document_topic_matrix` and `topic_term_matrix` (posterior
        means), `document_representation` (the shares again), `topic_names`, and `transform` of new
        texts; None where these need groups.
        """
        corpus, shown = self.dataset, self.shown
        texts = corpus.texts
        if texts is None:
            texts = [" ".join(corpus.words(d)) for d in range(corpus.num_docs)]
        shares = self.document_topics().to_numpy()
        needs_group = self.model.row_names(corpus) is not None
        return {
            "corpus": list(texts),
            "vocab": np.array(corpus.vocabulary),
            "document_term_matrix": corpus.to_counts(),
            "document_topic_matrix": shares,
            "topic_term_matrix": mean_topics(shown.topic_states, shown.alignment).T,
            "document_representation": shares,
            "topic_names": [f"{k}: {label}" for k, label in self.topic_labels().items()],
            "transform": None if needs_group else lambda texts: self.transform(texts).to_numpy(),
        }

    def save_model(self, path: str | os.PathLike[str]) -> Path:
        """Write what new documents need of a topic model to one light file, whole or not at all.

        These are the topics of the kept states, the words, and how texts were cut into words. The
        documents that were fitted are not in the file. `bnp_models.load(path)` returns a
        `SavedModel`, whose `transform` gives the same table as that of this fit.

        Parameters
        ----------
        path
            The file; its name should end in `.npz`.

        Raises
        ------
        ValueError
            If no states were kept, or topics are merged or left out.
        """
        from bnp_models.results.folder import save_model

        return save_model(self, path)

    def text(
        self,
        *,
        num_words: int = 10,
        limit: int | None = None,
        relevant: bool = False,
    ) -> str:
        """Return the topics as text, a line for each.

        Parameters
        ----------
        num_words
            Words per topic.
        limit
            Only so many topics, the largest ones.
        relevant
            Show words that are rare in other topics.
        """
        arguments.optional(arguments.integer, "limit", limit, 1)
        arguments.flag("relevant", relevant)
        table = self.topics(num_words=num_words)
        if relevant:
            table["words"] = table["relevant_words"]
        return self._text_of(table, limit)

    def summaries(self) -> Summaries:
        """Return tables, text and pictures of topics; without kept states, only `num_topics`."""
        drawn: dict[str, Any] = {}
        if self.model.terms.count_variable in self.posterior:
            drawn["num_topics"] = self.plot_num_topics()
        if not self.has_states:
            return Summaries({}, None, drawn)
        table = self.topics()
        drawn["topic_words"] = self.plot_topic_words()
        drawn["topic_similarity"] = self.plot_topic_similarity()
        if self.dataset.group is not None:
            drawn["topics_by_group"] = self.plot_prevalence_by_group()
        text = functools.partial(self._text_of, table)
        tables = {"topics": table, "documents": self.documents()}
        if self._is_stacked():
            tables["chain_weights"] = self.chain_weights()
        return self._with_functionals(Summaries(tables, text, drawn))

    def match(self, data: Corpus) -> tuple[Corpus, list[str]]:
        """Return new documents over the words of the fit, and notes about them for the user."""
        fitted: Corpus = self.dataset
        corpus = document_tables.as_documents("data", data, fitted.read_texts)
        return document_tables.over_words(corpus, fitted.vocabulary, fitted.digest)

    def evaluate(self, score: str, data: Corpus, *, seed: int = 0, num_words: int = 10) -> str:
        """Compute one of `model.scores` of new documents and return it as a line of text."""
        arguments.one_of("score", score, self.model.scores)
        as_corpus("data", data)
        arguments.seed("seed", seed)
        num_words = arguments.integer("num_words", num_words, 2)
        if score == "npmi":
            said = self._npmi_text(data, num_words)
        else:
            split = {"split_seed": seed} if score == "document_completion" else {}
            said = getattr(self, score)(data, seed=seed, **split)
        return f"{score.replace('_', ' ')}: {said}"

    def _text_of(self, table: pd.DataFrame, num_rows: int | None) -> str:
        """Lay out the table of topics below a line about the chains."""
        from bnp_models.report.text import topics_text

        text = topics_text(table, num_others=self.shown.alignment.num_others, num_rows=num_rows)
        shown, said = self.shown, self.shown._chains_text()
        if self._is_stacked():
            said += f"\n{weights_text(self.chain_weights(), pooled=shown._whole is shown)}"
        return f"{said}\n\n{text}"

    def _npmi_text(self, corpus: Corpus, num_words: int) -> str:
        """Return the coherence of the topics as text; the standard error is that of their mean."""
        values = self.npmi(corpus, top=num_words)
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return (
            f"{np.mean(values):.3f} on average over {len(values)} topics (standard error "
            f"{error:.2g}), lowest {np.min(values):.3f}, highest {np.max(values):.3f}; first "
            f"{num_words} words, in the same of {corpus.num_docs} documents"
        )


def _words(corpus: Corpus, numbers: np.ndarray) -> list[list[str]]:
    """Return the words that have these numbers in a corpus."""
    return [[corpus.vocabulary[v] for v in row] for row in numbers]


def _named_by(name: Callable[[list[str], list[str]], str], fit: TopicFit) -> dict[int, object]:
    """Call a function with the words and the representative documents of each topic."""
    words = topic_tables.topic_words(fit).groupby("topic")["word"].agg(list).to_dict()
    shares = document_tables.document_shares(fit.topic_states, fit.dataset, fit.alignment)
    labels: dict[int, object] = {}
    for k in range(fit.alignment.num_topics):
        table = topic_relations.largest_documents(shares, fit.dataset, k)
        documents = table["text" if "text" in table else "name"].tolist()
        try:
            labels[k] = name(words.get(k, []), documents)
        except Exception as error:
            error.add_note(f"while the function gave a label to topic {k}")
            raise
    return labels


def _keep_made(old: TopicDraws, new: TopicDraws) -> None:
    """Give a fit of the same states what was made from them."""
    made = ("mixtures", "topic_states", "_numbered", "alignment", "matches")
    vars(new).update({name: vars(old)[name] for name in made if name in vars(old)})
