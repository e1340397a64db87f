"""What the study of differential topic models measures, and the contestants.

That is scores, contrasts, mixing, and speed.
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist
import scipy.optimize
import xarray
from study.chains import OurChains, tokens_per_second
from study.scores import (
    about_fits,
    draws_of,
    rank_correlation,
    single_state_perplexity,
    unigram,
)
from study.timing import at_sweeps

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base.model import Model
from bnp_models.posterior import arviz_data
from bnp_models.posterior.mixtures import Mixtures, mixture_states, one_by_one
from bnp_models.scores.held_out import document_completion
from differential.data import Planted, Split, halves_of, of_group, transform_of
from differential.settings import (
    CCLDA,
    HALF,
    LDA,
    POOLED,
    PYP,
    PYP_POOLED,
    TI,
    TII,
    WORDNET,
    Settings,
    Sizes,
)

__all__ = [
    "METHODS", "SPLITS", "arcs_of", "contrasts_of", "fit_and_score", "fit_hybrid", "fits_of",
    "fits_of_split", "matched", "mixtures_of", "model_of", "of_samplers", "on_the_way",
    "planted_fit", "speeds", "table_megabytes", "unigram_scores",
]  # fmt: skip

SPLITS = ("tokens", "dictionary")
"""How the words of a test document are divided: at random, or by the number of the word type."""


# ---- contestants


DISCOUNT = 0.7  # the paper's
NUMBER = 0.1  # concentrations where an approximation needs numbers


def _vague() -> Any:
    """Return the prior of the concentrations of Dirichlet laws, which the paper optimises."""
    return dist.Gamma(1.0, 1.0)


def _differential(discount: float, transform: bnp.Transform | None) -> dict[str, Any]:
    return {"alpha": _vague(), "beta": _vague(), "transform": transform, "discount": discount}


def _plain(discount: float, transform: bnp.Transform | None) -> dict[str, Any]:
    return {"alpha": _vague(), "beta": _vague()}


def _pitman_yor(discount: float, transform: bnp.Transform | None) -> dict[str, Any]:
    return {"alpha": _vague(), "discount": discount}


def _cross(discount: float, transform: bnp.Transform | None) -> dict[str, Any]:
    words = {"beta": _vague(), "group_beta": _vague()}
    return {"alpha": _vague(), **words, "switch_common": 1.0, "switch_own": 1.0}


class Method(NamedTuple):
    """A model of `bnp_models`, how to configure it, and what it is fitted to."""

    model: str
    arguments: Callable[[float, Any], dict[str, Any]]  # by discount and transform
    transformed: str = ""  # see `transform_of`
    alone: bool = False  # one fit for each group
    differs: bool = False  # topics have versions in the groups


METHODS: Mapping[str, Method] = {
    TI: Method("DifferentialTopicModel", _differential, transformed="co", differs=True),
    WORDNET: Method("DifferentialTopicModel", _differential, transformed="wn", differs=True),
    HALF: Method("DifferentialTopicModel", _differential, transformed="half", differs=True),
    TII: Method("DifferentialTopicModel", _differential, differs=True),
    CCLDA: Method("CrossCollectionLDA", _cross, differs=True),
    PYP: Method("PitmanYorLDA", _pitman_yor, alone=True),
    LDA: Method("LDA", _plain, alone=True),
    PYP_POOLED: Method("PitmanYorLDA", _pitman_yor),
    POOLED: Method("LDA", _plain),
}


def model_of(
    name: str, num_topics: int, discount: float = DISCOUNT, transform: bnp.Transform | None = None
) -> Any:
    """Configure the model of a method; only a transformed one takes the transform."""
    method = METHODS[name]
    given = method.arguments(discount, transform if method.transformed else None)
    return getattr(bnp, method.model)(num_topics, **given)


def fits_of(
    method: str, corpus: bnp.Corpus, model: Model, sizes: Sizes, *, seed: int,
    start: int | None = None, **changed: Any,
) -> list[Any]:  # fmt: skip
    """Fit a model to all groups together, or to each by itself; return the fits.

    `start` is the number of topics at the start of the chains, None: all. Options that are
    `changed` win over the sizes.
    """
    alone = METHODS[method].alone
    options = {
        "num_warmup": sizes.num_warmup, "num_samples": sizes.num_samples,
        "num_chains": sizes.num_chains, "keep_states": sizes.keep_states,
        "schedule": sizes.schedule, **({} if start is None else {"init_topics": start}), **changed,
    }  # fmt: skip
    fits = []
    for part in [of_group(corpus, name) for name in corpus.group_names] if alone else [corpus]:
        found = bnp.fit(model, part, progress=False, seed=seed, **options)
        if found.posterior.sizes["draw"] < options["num_samples"]:
            raise KeyboardInterrupt  # `fit` returned what it had
        fits.append(found)
    return fits


def mixtures_of(fits: Sequence[Any], group_names: Sequence[str]) -> Sequence[Any]:
    """Return the kept states; fits of single groups become the rows of common states.

    So all methods are scored by the same functions, document by document.
    """
    if len(fits) == 1:
        return fits[0].mixtures
    states = []
    for rows in zip(*(fit.mixtures for fit in fits), strict=True):
        phi, weights = (np.concatenate([getattr(row, n) for row in rows], axis=1)
                        for n in ("phi", "weights"))  # fmt: skip
        first = rows[0]
        states.append(
            Mixtures(
                phi,
                DirichletLaw(weights),
                first.chain,
                first.draw,
                first.vocabulary,
                tuple(group_names),
            )
        )
    return states


# ---- what is measured


def fit_and_score(
    split: Split, method: str, *, topics: int, discount: float, sizes: Sizes, seed: int,
    start: int | None = None, about_topics: bool = False, arcs: Sequence[str] = ("", ""),
) -> dict[str, Any]:  # fmt: skip
    """Fit a method to training documents and score test documents by completion.

    Parameters
    ----------
    method
        One of `METHODS`.
    discount
        Of the Pitman-Yor processes; not used by models without any.
    sizes
        The settings: sweeps, chains, states, schedule, and the transformation matrix.
    seed
        Of chains, halves of documents, and scores.
    start
        Topics at the start of the chains; None: all.
    about_topics
        Keep how the versions of topics differ, where they do.
    arcs
        Two groups: TII's topics in these, with words and likeness, are kept for a picture.
    """
    fits = fits_of_split(split, method, topics, sizes, discount=discount, seed=seed, start=start)
    found = _scored(fits, split, seed)
    if about_topics and METHODS[method].differs:
        found["contrasts"] = contrasts_of(fits[0])
        if method == TII and start is None and set(arcs) <= set(split.train.group_names):
            found["arcs"] = arcs_of(fits[0], arcs)
    return found


def fit_hybrid(
    split: Split, *, topics: int, sizes: Sizes, seed: int, options: Mapping[str, Any],
    start: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Fit TII with numbers for the concentrations, exactly or by an approximation; score."""
    model = model_of(TII, topics)
    fits = fits_of(
        TII, split.train, dataclasses.replace(model, alpha=NUMBER, beta=NUMBER), sizes, seed=seed,
        start=start, **options,
    )  # fmt: skip
    return _scored(fits, split, seed)


def _scored(fits: Sequence[Any], split: Split, seed: int) -> dict[str, Any]:
    """Score test documents by the states of fits."""
    clock = time.perf_counter()
    mixtures = mixtures_of(fits, split.train.group_names)
    scores = {how: _completion(mixtures, split.test, how, seed) for how in SPLITS}
    return {
        "scores": scores,
        "perplexity": scores["tokens"]["perplexity"],
        **about_fits(*fits),
        "train_documents": split.train.num_docs,
        "train_tokens": split.train.num_tokens,
        "score_seconds": time.perf_counter() - clock,
    }


def fits_of_split(
    split: Split, method: str, topics: int, sizes: Sizes, *, discount: float = DISCOUNT,
    **options: Any,
) -> list[Any]:  # fmt: skip
    """Fit a method to the training documents; see `fits_of` for the options."""
    transform = None
    if kind := METHODS[method].transformed:
        transform = _transform_of(split, kind, sizes)
    model = model_of(method, topics, discount, transform)
    return fits_of(method, split.train, model, sizes, **options)


def _completion(
    mixtures: Sequence[Mixtures], test: bnp.Corpus, how: str, seed: int
) -> dict[str, Any]:
    """Score test documents; those of the split by tokens are kept one by one."""
    observed, heldout = halves_of(test, how, seed)
    score = document_completion(mixtures, observed, heldout, seed=seed)
    kept = {
        "log_prob": float(score.log_prob),
        "perplexity": float(score.perplexity),
        "single_state_perplexity": single_state_perplexity(score),
        "error_docs": None if math.isnan(score.error_docs) else float(score.error_docs),
        "error_chains": None if math.isnan(score.error_chains) else float(score.error_chains),
        "num_tokens": int(score.num_tokens),
        "draws": draws_of(score, len(score.chain_log_prob)),
    }
    if how == "tokens":
        kept["doc_log_prob"] = np.round(score.doc_log_prob, 1).tolist()
    return kept


def unigram_scores(split: Split, seed: int, beta: float = 0.1) -> dict[str, Any]:
    """Score test documents by one word distribution; also keep how many tokens are predicted."""
    counts = np.bincount(np.asarray(split.train.word), minlength=split.train.num_words)
    scores = {}
    for how in SPLITS:
        heldout = halves_of(split.test, how, seed)[1]
        scores[how] = unigram(counts, heldout.to_counts(), beta)
        scores[how]["num_tokens"] = heldout.num_tokens
        if how == "tokens":
            scores[how]["doc_tokens"] = np.asarray(heldout.doc_length).tolist()
        docs = scores[how].pop("doc_log_prob")
        if how == "tokens":
            scores[how]["doc_log_prob"] = np.round(docs, 1).tolist()
    return {"scores": scores, "perplexity": scores["tokens"]["perplexity"]}


def contrasts_of(fit: bnp.ContrastFit) -> dict[str, Any]:
    """Return how alike the versions of each topic are, and whether versions find one another.

    `likeness` is the model's own quantity (b_k in a differential topic model), None where it has
    none; `distance` is the mean Hellinger distance between the versions of two groups.
    """
    table = fit.contrast(num_words=5)
    likeness = table["likeness"].tolist() if "likeness" in table else None
    return {
        "likeness": likeness,
        "distance": [None if math.isnan(x) else float(x) for x in table["distance"]],
        "common": table["common"].tolist(),
        "matched": matched([m.phi[0] for m in one_by_one(fit.mixtures)]),
    }


def arcs_of(fit: bnp.ContrastFit, names: Sequence[str], num_words: int = 6) -> dict[str, Any]:
    """Return the topics of two groups in the last state: words, shares, and how alike they are.

    `likeness` [K, K] is the Bhattacharyya coefficient of a topic of the first group and one of the
    second (1: the same).
    """
    *_, state = one_by_one(fit.mixtures)
    rows = [fit.dataset.group_names.index(name) for name in names]
    phi = np.asarray(state.phi[0], np.float64)[rows]  # [2, V, K]
    root = np.sqrt(phi)
    words = [
        [[fit.dataset.vocabulary[v] for v in np.argsort(-of)[:num_words]] for of in group.T]
        for group in phi
    ]
    return {
        "groups": list(names), "words": words,
        "likeness": np.round(root[0].T @ root[1], 3).tolist(),
    }  # fmt: skip


def matched(versions: Sequence[np.ndarray]) -> float:
    """Return the share of topics whose versions in two groups are matched to one another.

    For each pair of groups the topics of one are matched with those of the other so that the sum of
    Hellinger distances is least. The mean over pairs and states; 1 is a perfect alignment.
    """
    found = []
    for phi in versions:  # [G, V, K]
        root = np.sqrt(np.asarray(phi, np.float64))
        for a, b in itertools.combinations(range(len(root)), 2):
            rows, columns = scipy.optimize.linear_sum_assignment(-(root[a].T @ root[b]))
            found.append(float((rows == columns).mean()))
    return float(np.mean(found))


def planted_fit(
    made: Planted, *, discount: float, sizes: Sizes, seed: int, start: int | None
) -> Any:
    """Fit to made-up groups; match fitted topics to the true ones and compare concentrations."""
    topics = len(made.concentration)
    model = model_of(TII, topics, discount)
    (fit,) = fits_of(TII, made.corpus, model, sizes, seed=seed, start=start)
    by_chain = []
    for chain in range(sizes.num_chains):
        likeness, shared = [], []
        states = fit.of_chain(chain).mixtures
        for s in range(len(states)):
            state = states.state(s)
            both = np.zeros((topics, topics))
            np.add.at(both, (made.topic, np.asarray(state["z"])), 1)
            rows, columns = scipy.optimize.linear_sum_assignment(-both)
            alike = fit.model.likeness_of(state, made.corpus)
            if alike is None:
                raise ValueError(f"{type(fit.model).__name__} has no likeness of versions")
            likeness.append(np.asarray(alike, float)[columns])
            shared.append(both[rows, columns].sum() / len(made.topic))
        mean = np.exp(np.mean(np.log(np.maximum(likeness, 1e-9)), axis=0))
        rank = rank_correlation(made.concentration, mean)
        draws = [round(rank_correlation(made.concentration, b), 3) for b in likeness]
        by_chain.append({
            "rank_correlation": rank, "likeness": mean.tolist(), "draws": draws,
            "tokens_in_their_topic": float(np.mean(shared)),
        })  # fmt: skip
    return {
        "concentration": made.concentration.tolist(),
        "chains": by_chain,
        **about_fits(fit),
        "summary": f"rank correlation {[round(x['rank_correlation'], 2) for x in by_chain]}",
    }


def of_samplers(
    split: Split, sampler: str, *, topics: int, discount: float, sizes: Sizes, seed: int,
    start: int | None, marks: Sequence[int],
) -> dict[str, Any]:  # fmt: skip
    """Run sequential chains of TII by one sampler and score their states on the way."""
    model = model_of(TII, topics, discount)
    keys = jax.random.split(jax.random.key(seed), sizes.num_chains)
    chains = OurChains(
        model, split.train, keys, num_samples=max(marks), schedule="sequential", sampler=sampler,
        record=True, **({} if start is None else {"init_topics": start}),
    )  # fmt: skip
    found = on_the_way(chains, split.test, marks, seed)
    lp = np.concatenate(chains.trace["lp"], axis=1)
    later = lp[:, lp.shape[1] // 2 :]
    if later.shape[1] >= 8:
        draws = xarray.Dataset({"lp": (("chain", "draw"), later)})
        found["effective_draws"] = float(arviz_data.ess(draws)["lp"])
        found["seconds_of_draws"] = found["seconds"][-1] * later.shape[1] / lp.shape[1]
    return {**found, "compile_seconds": chains.compile_seconds, "num_chains": sizes.num_chains}


def on_the_way(
    chains: OurChains, test: bnp.Corpus, marks: Sequence[int], seed: int
) -> dict[str, Any]:
    """Score single states after some numbers of sweeps, the clock stopped meanwhile."""
    observed, heldout = test.halves(seed)

    def look() -> dict[str, Any]:
        states = mixture_states(chains.model, chains.states(), chains.corpus)
        score = document_completion(states, observed, heldout, seed=seed)
        per_chain = score.state_log_prob.sum(axis=1) / score.num_tokens
        return {"chain_log_prob": np.round(per_chain, 5).tolist()}

    found = at_sweeps(chains, look, marks)
    last, clock = math.exp(-float(np.mean(found["chain_log_prob"][-1]))), found["seconds"][-1]
    return {**found, "summary": f"{marks[-1]} sweeps in {clock:.1f} s; perplexity {last:.1f}"}


def speeds(corpora: Mapping[str, Any], methods: Sequence[str], *, s: Settings) -> dict[str, Any]:
    """Return tokens per second of whole sweeps of all chains, in turns, by schedule."""
    found: dict[str, Any] = {}
    for schedule, corpus in corpora.items():
        cases = [
            (name, model, schedule, chains, options)
            for name, (model, options) in _timed(corpus, methods, schedule, s).items()
            for chains in (s.speed_chains if schedule == "parallel" else (1,))
        ]
        found |= tokens_per_second(corpus, cases, s, slots=s.speed_topics)
    return {"systems": found}


def _timed(
    corpus: bnp.Corpus, methods: Sequence[str], schedule: str, s: Settings
) -> dict[str, Any]:
    """Return models and their options by a name; those with samplers have one for each."""
    transform = _transform(corpus, methods, s)
    made = {}
    for name in methods:
        model = model_of(name, s.speed_topics, transform=transform)
        if schedule == "parallel" or name != TII:
            made[name] = model, {}
        else:
            made |= {f"{name} ({x})": (model, {"sampler": x}) for x in s.speed_samplers}
    return made


def _transform(corpus: bnp.Corpus, methods: Sequence[str], s: Settings) -> Any:
    """Return the words that are connected with each word, None if no method uses them."""
    if not any(METHODS[name].transformed for name in methods):
        return None
    return _transform_of(Split(corpus, corpus, corpus, ordered=False), "co", s.perplexity)


def _transform_of(split: Split, kind: str, sizes: Sizes) -> bnp.Transform:
    names = "window", "top", "association"
    return transform_of(split, kind, **{name: getattr(sizes, name) for name in names})


def table_megabytes(corpus: bnp.Corpus, method: str, *, s: Settings) -> dict[str, Any]:
    """Return the size of the table of Stirling ratios after some sweeps, for each chain.

    It has a row for every number of tokens that a word may have, and a column for every number of
    tables there is room for.
    """
    transform = _transform(corpus, [method], s)
    model = model_of(method, s.speed_topics, transform=transform)
    keys = jax.random.split(jax.random.key(s.seed), 1)
    chains = OurChains(model, corpus, keys, num_samples=1000, schedule=s.speed_schedules[0])
    chains.advance(s.table_sweeps)
    rows, columns = chains.table_shape()
    size = 4 * rows * columns / 1e6
    return {
        "tokens": corpus.num_tokens, "rows": rows, "columns": columns, "megabytes": size,
        "sweeps": s.table_sweeps, "summary": f"{rows} by {columns}, {size:.1f} MB",
    }  # fmt: skip
