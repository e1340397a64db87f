"""`TopicFit`: the draws of a topic model, with tables, diagnostics and pictures one call away."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from bnp_models.base.token_model import TokenModel
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.results.result import Summaries
from bnp_models.results.topic_pictures import TopicPictures

if TYPE_CHECKING:
    import pandas as pd

    from bnp_models.posterior.functionals import Functionals
    from bnp_models.scores.held_out import HeldOutScore

__all__ = ["TopicFit", "match_words"]

AnyTopicFit = TypeVar("AnyTopicFit", bound="TopicFit")


@dataclasses.dataclass(frozen=True, eq=False)
class TopicFit(TopicPictures):
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

    model: TokenModel

    offers: ClassVar[str] = (
        "topics(), documents(), transform(corpus), scores and pictures of topics"
    )
    command: ClassVar[str] = "topics"
    default_scores: ClassVar[tuple[str, ...]] = ("document_completion", "npmi")
    counted: ClassVar[str] = "tokens"
    stacking_scores: ClassVar[tuple[str, ...]] = ("document_completion", "left_to_right")
    """Those that `stacked` can maximise."""

    def transform(
        self,
        corpus: Corpus | str | Sequence[str],
        *,
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
        num_sweeps, num_kept
            Fold-in sweeps per state, and how many of the last ones are averaged.
        seed
            Seed of the fold-in.

        Returns
        -------
        Table of documents by topics, numbered as in `topics`. Rows sum to at most one; the rest
        belongs to topics without a number.
        """
        from bnp_models.results.new_documents import shares_of_new

        fit = self.shown
        how = {"num_sweeps": num_sweeps, "num_kept": num_kept, "seed": seed}
        return shares_of_new(
            corpus, self.dataset.read_texts, fit.mixtures, fit.topic_states, fit.alignment,
            row_names=self.model.row_names(self.dataset), **how,
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
        from bnp_models.scores.held_out import document_completion

        split_seed = arguments.seed("split_seed", split_seed)
        observed, heldout = as_corpus("corpus", corpus).halves(split_seed)
        return document_completion(
            self.mixtures, observed, heldout, num_sweeps=num_sweeps, num_kept=num_kept, seed=seed
        )

    def left_to_right(
        self,
        corpus: Corpus,
        *,
        num_particles: int = 20,
        resample: bool | int = False,
        combine: str = "mean_of_products",
        seed: int = 0,
    ) -> HeldOutScore:
        """Score whole new documents, see `held_out.left_to_right`."""
        from bnp_models.scores.held_out import left_to_right

        return left_to_right(
            self.mixtures,
            corpus,
            num_particles=num_particles,
            resample=resample,
            combine=combine,
            seed=seed,
        )

    def empirical_likelihood(
        self, corpus: Corpus, *, num_draws: int = 1000, seed: int = 0
    ) -> HeldOutScore:
        """Score whole short documents by draws from the prior.

        See `empirical_likelihood.empirical_likelihood`.
        """
        from bnp_models.scores.empirical_likelihood import empirical_likelihood

        return empirical_likelihood(self.mixtures, corpus, num_draws=num_draws, seed=seed)

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
        from bnp_models.posterior.stacking import stack, with_weights
        from bnp_models.scores import held_out

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
        from bnp_models.posterior.stacking import chain_weights, with_weights

        if chain_weights(self.data) is None:
            return self
        return self._with_data(with_weights(self.data, None))

    def chain_weights(self) -> pd.DataFrame:
        """Return the weights that `stacked` found, one row per chain.

        Columns: `weight`, and `log_prob`, the score of the chain alone in nats per token. `attrs`
        says which score it was, of how many documents and tokens.

        Raises
        ------
        ValueError
            If the fit has no weights.
        """
        from bnp_models.posterior.stacking import weights_table

        return weights_table(self.data)

    def functionals(
        self,
        test: Corpus | None = None,
        *,
        num_pairs: int = 200,
        max_rhat: float | int = 1.05,
        split_seed: int = 0,
        seed: int = 0,
    ) -> Functionals:
        """Compare the chains by functionals that labels do not change.

        These are the label-free scalars, the probability that documents, words or groups share a
        topic, and, given new documents `test`, their scores. See
        `functional_tables.topic_functionals`.
        """
        from bnp_models.results.functional_tables import topic_functionals

        return topic_functionals(
            self, test, num_pairs=num_pairs, max_rhat=max_rhat, split_seed=split_seed, seed=seed
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
            Corpus that the words are counted in, by default the one fitted.
        top
            First words of each topic that are used.
        group
            Group whose topics to score, where these differ by group.
        window
            See `coherence.npmi`.
        """
        from bnp_models.scores.coherence import npmi

        words = self._first_words(top, group)
        return npmi(words, self.dataset if reference is None else reference, top=top, window=window)

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
            Corpus that the words are counted in, by default the one fitted.
        group
            Group whose topics to score, where these differ by group.
        window
            See `coherence.coherence`.

        Returns
        -------
        Values by topic, under the name of the measure.

        Raises
        ------
        ImportError
            If the measure is gensim's and gensim is not installed.
        """
        import pandas as pd

        from bnp_models.scores.coherence import MEASURES, coherence

        arguments.one_of("measure", measure, MEASURES)
        words = self._first_words(top, group)
        reference = self.dataset if reference is None else reference
        values = coherence(words, reference, measure=measure, top=top, window=window)
        return pd.Series(values, pd.RangeIndex(len(values), name="topic"), name=measure)

    def _first_words(self, top: int, group: str | None) -> np.ndarray:
        """Return the most probable words of each topic, [R, top]."""
        from bnp_models.results.topic_tables import mean_topics

        top = arguments.integer("top", top, 2)
        fit = self.shown
        phi = mean_topics(fit.topic_states, fit.alignment, group=group)
        return np.argsort(-phi, axis=0, kind="stable")[:top].T

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
        return match_words(self.dataset, data)

    def evaluate(self, score: str, data: Corpus, *, seed: int = 0, num_words: int = 10) -> str:
        """Compute one of `model.scores` of new documents and return it as a line of text."""
        arguments.one_of("score", score, self.model.scores)
        as_corpus("data", data)
        arguments.seed("seed", seed)
        num_words = arguments.integer("num_words", num_words, 2)
        say = {
            "document_completion": lambda: self.document_completion(
                data, split_seed=seed, seed=seed
            ),
            "left_to_right": lambda: self.left_to_right(data, seed=seed),
            "empirical_likelihood": lambda: self.empirical_likelihood(data, seed=seed),
            "npmi": lambda: self._npmi_text(data, num_words),
        }
        return f"{score.replace('_', ' ')}: {say[score]()}"

    def _text_of(self, table: pd.DataFrame, num_rows: int | None) -> str:
        """Lay out the table of topics below a line about the chains."""
        from bnp_models.report.text import topics_text

        text = topics_text(table, num_others=self.shown.alignment.num_others, num_rows=num_rows)
        said = self.shown._chains_text()
        if self._is_stacked():
            from bnp_models.posterior.stacking import weights_text

            said += f"\n{weights_text(self.chain_weights(), pooled=self.shown is self)}"
        return f"{said}\n\n{text}"

    def _is_stacked(self) -> bool:
        from bnp_models.posterior.stacking import chain_weights

        return chain_weights(self.data) is not None

    def _npmi_text(self, corpus: Corpus, num_words: int) -> str:
        """Return the coherence of the topics as text; the standard error is that of their mean."""
        values = self.npmi(corpus, top=num_words)
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return (
            f"{np.mean(values):.3f} on average over {len(values)} topics (standard error "
            f"{error:.2g}), lowest {np.min(values):.3f}, highest {np.max(values):.3f}; first "
            f"{num_words} words, in the same of {corpus.num_docs} documents"
        )


def match_words(fitted: Corpus, data: Any) -> tuple[Corpus, list[str]]:
    """Return new documents over the words of the corpus that was fitted, and notes about them."""
    from bnp_models.results.new_documents import as_documents, over_words

    corpus = as_documents("data", data, fitted.read_texts)
    return over_words(corpus, fitted.vocabulary, fitted.digest)
