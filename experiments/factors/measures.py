"""What the factor studies measure: each function fits, scores, and returns plain numbers."""

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import xarray
from jaxtyping import Float, Int
from scipy.special import gammaln
from study.scores import convergence, mean_of, unigram
from study.timing import Seen

import bnp_models as bnp
from bnp_models import Sources
from bnp_models.base.model import Model
from bnp_models.posterior import arviz_data
from bnp_models.posterior.factor_states import FactorStates, match
from bnp_models.results import factor_tables
from bnp_models.scores.held_out import document_completion, left_to_right
from bnp_models.scores.held_out_rows import (
    METHODS,
    RowScore,
    predict_rows,
    row_completion,
    row_evidence,
    thin,
)
from bnp_models.scores.retrieval import retrieve
from factors import data
from factors.settings import Settings

__all__ = [
    "SCOPES", "fit", "measure_estimates", "measure_features", "measure_gaussian", "measure_planted",
    "measure_sampler", "measure_section",
]  # fmt: skip

SCOPES = (1, 2, 5, 10, 20, 50, 100)
REDRAWS = 64  # topics of earlier words that a particle redraws before each word


def fit(model: Model, data: bnp.Sources | bnp.Corpus, settings: Settings, **options: Any) -> Any:
    """Fit one of our models; the options win over the settings."""
    sizes = {
        "num_warmup": settings.num_warmup,
        "num_samples": settings.num_samples,
        "num_chains": settings.num_chains,
        "keep_states": settings.keep_states,
        "seed": settings.seed,
        "progress": False,
    }
    return bnp.fit(model, data, **(sizes | options))


def about(found: bnp.Fit) -> dict[str, Any]:
    """Describe how many factors or topics a fit has, and whether it converged."""
    posterior = found.posterior
    name = "num_factors_used" if "num_factors_used" in posterior else "num_topics_used"
    used = np.asarray(posterior[name])
    return {"factors_or_topics": float(used.mean()), "convergence": convergence(found)}


class _BegunSampler(bnp.PoissonGammaFactorAnalysis.sampler_type):
    """The usual sampler with another first state: the planted factors of its model."""

    def init(self, rng_key: Any, data: Any, argument: Any) -> Any:
        """Return the first state of a chain."""
        state, made = super().init(rng_key, data, argument), self.model.planted
        k = len(made.phi)
        z = state.z.at[:].set(False).at[:k].set(made.weights.T > 0)
        # zero is no value of a gamma variable: a sparse prior would have infinite density there
        phi = state.phi.at[:].set(0.0).at[:k].set(np.maximum(made.phi, 1e-3))
        weights = state.weights.at[:].set(0.0).at[:k].set(made.weights.T)
        beta = state.beta.at[:k].set(np.linspace(0.5, 0.3, k))
        return state._replace(z=z, phi=phi, weights=weights, beta=beta)


class Begun(bnp.PoissonGammaFactorAnalysis):
    """The model, with chains that begin at the planted factors; `begun` makes one."""

    planted: ClassVar[Any] = None
    sampler_type = _BegunSampler


def begun(made: data.Planted, **options: Any) -> Begun:
    """Return the model whose chains begin at the planted factors."""
    model = Begun(**options)
    object.__setattr__(model, "planted", made)
    return model


def measure_planted(
    a_phi: float, seed: int, first: int | None, settings: Settings
) -> dict[str, Any]:
    """Fit planted factors from `first` factors, or from the true ones (None).

    The second half of the sweeps is the posterior. Log density and number of factors are kept by
    chain, so that chains of different starts can be held against each other.
    """
    made = data.planted(settings.rows_per_source, seed=seed)
    if first is None:
        model, options = begun(made, a_phi=a_phi), {"init_factors": len(made.phi)}
    else:
        model, options = bnp.PoissonGammaFactorAnalysis(a_phi=a_phi), {"init_factors": first}
    found = fit(
        model, made.sources, settings, num_warmup=0, num_samples=settings.planted_sweeps,
        num_chains=settings.planted_chains, keep_states=settings.planted_states, **options,
    )  # fmt: skip
    half = settings.planted_sweeps // 2
    lp, counts = traces(found)
    second = found
    for name in ("posterior", "states"):
        draws = arviz_data.group(found.data, name).sel(draw=slice(half, None))
        second = dataclasses.replace(second, data=arviz_data.with_group(second.data, name, draws))
    late = second.factor_states
    table: Any = factor_tables.recovery(late, made.phi, made.weights)
    shared = second.sharing()
    probability: Any = second.num_factors()["probability"]
    several, step = int((table["found"] >= 0.5).sum()), max(half // 50, 1)
    return {
        "summary": f"{int(probability.idxmax())} factors, {several} of them planted",
        "sweeps": settings.planted_sweeps,
        "factors_in_use_by_chain": counts[:, :: 2 * step].tolist(),
        "lp_of_second_half_by_chain": lp[:, half::step].round().astype(int).tolist(),
        "sweeps_to_all": arrivals(found.factor_states, made.phi),
        "posterior": {str(k): p for k, p in probability.items()},
        "factors_or_topics": float(counts[:, half:].mean()),
        "recovery": json.loads(table.round(4).to_json(orient="records") or "[]"),
        "shared": json.loads(shared.to_json(orient="records")),
        **({"images": images(late, made)} if seed == settings.data_seeds[0] else {}),
        "convergence": rhats({"lp": lp[:, half:], "num_factors_used": counts[:, half:]}),
    }


def measure_sampler(
    a_phi: float, seed: int, options: dict[str, str], settings: Settings
) -> dict[str, Any]:
    """Find planted factors from one factor by one chain, row by row.

    Times are those of the sweeps, without compiling.
    """
    made = data.planted(settings.rows_per_source, seed=seed)
    seen, sweeps = Seen(), settings.sampler_sweeps
    found = fit(
        bnp.PoissonGammaFactorAnalysis(a_phi=a_phi), made.sources, settings, num_warmup=0,
        num_samples=sweeps, num_chains=1, keep_states=settings.sampler_states, init_factors=1,
        schedule="sequential", seed=settings.seed + seed, progress=seen, **options,
    )  # fmt: skip
    (lp,), (counts,) = traces(found)
    (reached,) = arrivals(found.factor_states, made.phi)
    ends, seconds = np.transpose([(line["sweeps"], line["seconds"]) for line in seen.lines])

    def until(sweep: int) -> float:  # from the first stretch, which waits for the compiler
        return float(np.interp(sweep, ends, seconds) - seconds[0])

    step = max(sweeps // 100, 1)
    return {
        "summary": f"{'never' if reached is None else f'{reached} sweeps'}",
        "sweeps": sweeps,
        "seconds_of_sweeps": until(sweeps),
        "sweeps_to_all": reached,
        "seconds_to_all": None if reached is None else until(reached),
        "factors_in_use": counts[::step].tolist(),
        "lp": lp[::step].round().astype(int).tolist(),
        "factors_or_topics": float(counts[sweeps // 2 :].mean()),
    }


def measure_estimates(factors: int, counts: int, settings: Settings) -> dict[str, Any]:
    """Estimate the probability of rows whose factors are known, in each way.

    The truth is a sum over a grid, or with more than two factors annealing at many temperatures,
    which is at most a little too low. `gap` is what an estimate is too high, in nats per row.
    """
    state, values = data.known_rows(factors, counts, settings.estimate_rows, seed=settings.seed)
    source = np.zeros(len(values), np.int32)

    def estimated(method: str, temperatures: int) -> Float[np.ndarray, " N"]:
        rng = np.random.default_rng([settings.seed, temperatures])
        how = {"method": method, "num_temperatures": temperatures, "num_particles": 2}
        return row_evidence(rng, values, state, source, **how)

    if factors == 2:
        truth = data.exact_log_prob(values, state)
    else:
        truth = estimated("ais", settings.reference_temperatures)
    gaps = {
        f"{method}, {n}": mean_of((estimated(method, n) - truth).tolist())
        for method in METHODS
        for n in settings.estimate_temperatures
    }
    return {
        "summary": ", ".join(f"{name}: {gap.value:+.2f}" for name, gap in gaps.items()),
        "mean_counts": float(values.sum(axis=1).mean()),
        "nats_per_row": -float(truth.mean()),
        "gap": {name: gap.value for name, gap in gaps.items()},
        "error_of_gap": {name: gap.error for name, gap in gaps.items()},
    }


def traces(found: bnp.FactorFit) -> tuple[Float[np.ndarray, "C D"], Int[np.ndarray, "C D"]]:
    """Return log densities and numbers of factors in use, by chain."""
    lp = np.asarray(arviz_data.group(found.data, "sample_stats")["lp"], float)
    return lp, np.asarray(found.posterior["num_factors_used"])


def arrivals(states: FactorStates, phi: Float[np.ndarray, "R M"]) -> list[int | None]:
    """Return for each chain after how many sweeps a kept state first has all planted factors.

    A factor is there if one in use has a cosine of at least 0.9 with it.
    """
    whole = np.array([
        (match(phi, state[used]).similarity >= 0.9).all() if used.any() else False
        for state, used in zip(states.phi, states.sizes() > 0, strict=True)
    ])  # fmt: skip
    found = []
    for chain in np.unique(states.chain):
        there = states.draw[(states.chain == chain) & whole]
        found.append(int(there.min()) + 1 if there.size else None)
    return found


def rhats(by_name: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Return R-hat of traces [C, D], as `study.scores.convergence` has them."""
    of_name = {name: (("chain", "draw"), x.astype(float)) for name, x in by_name.items()}
    hats = arviz_data.rhat(xarray.Dataset(of_name))
    return [{"quantity": name, "rhat": number_of(float(hat))} for name, hat in hats.items()]


def number_of(value: float) -> float | None:
    """Return a number as JSON takes it, None for NaN."""
    return None if np.isnan(value) else float(value)


def images(states: FactorStates, made: data.Planted) -> dict[str, Any]:
    """Return planted factors, and those in their place in the most probable state.

    Entries of these are tenths of the largest one of the factor.
    """
    best = int(np.argmax(states.lp))
    phi = states.phi[best][states.z[best].any(axis=0)]
    partner = match(made.phi, phi).position
    phi = np.where(partner[:, None] >= 0, phi[partner], 0.0)
    shares = phi / np.maximum(phi.max(axis=1, keepdims=True), 1e-30)
    return {
        "planted": made.phi.astype(int).tolist(),
        "found": (10 * shares).round().astype(int).tolist(),
    }


def measure_section(sources: Sources, wanted: Any, settings: Settings) -> dict[str, Any]:
    """Fit the target with, without or mixed with another source, and predict its test rows.

    `wanted` is a `factors.Fit`.
    """
    rows = data.section_rows(
        sources, wanted.auxiliary, wanted.size, wanted.run, num_auxiliary=settings.num_auxiliary,
        num_test=settings.num_test,
    )  # fmt: skip
    if wanted.part == "sections":
        warmup, samples = settings.section_sweeps
        settings = dataclasses.replace(
            settings, num_warmup=warmup, num_samples=samples,
            num_temperatures=settings.section_temperatures,
        )  # fmt: skip
    method, options = wanted.method, {"seed": settings.seed + wanted.run}
    if wanted.first is not None:
        options["init_factors"] = wanted.first
    kind, _, sparse = method.partition(" ")
    topics = {"HDP alone": rows.alone, "HDP pooled": rows.pooled,
              "HDP, three levels": rows.hierarchical}  # fmt: skip
    if method == "unigram":
        values = np.asarray(rows.test.values)
        rest = values - thin(values, settings.seed)
        score = unigram(np.asarray(rows.pooled.values).sum(axis=0), rest, settings.hdp_beta)
        perplexity = score["perplexity"]
        return {"summary": f"perplexity {perplexity:.1f}", "word_perplexity": perplexity}
    if method in topics:
        made = bnp.MultiTaskHDPLDA if method == "HDP, three levels" else bnp.HDPLDA
        train = data.corpus_of(topics[method])
        found = fit(made(beta=settings.hdp_beta), train, settings, **options)
        score = predict_topics(found, rows.test, settings)
        nats = score["nats_per_paper_given_its_length"]
    elif kind == "Gaussian,":
        exact = sparse.startswith("exact")
        half = settings.gaussian_sweeps[0 if exact else 1] // 2
        options |= {"num_warmup": half, "num_samples": half}
        options |= {} if exact else {"approximation": "births", "schedule": "sequential"}
        reals = [as_reals(x) for x in (rows.hierarchical, rows.test)]
        found = fit(bnp.GaussianFactorAnalysis(), reals[0], settings, **options)
        score = of_rows(predict_rows(found, reals[1], **effort(settings)))
        nats = score["nats_per_paper_together"]
    else:
        named = {"": 1.0, "sparse": settings.sparse_a_phi}
        a_phi = named[sparse] if sparse in named else float(sparse.removeprefix("a_phi "))
        prior: dict[str, Any] = {"a_phi": a_phi}
        prior |= {"tau": data.MASS} if wanted.part == "simulated" else {}
        model = bnp.PoissonGammaFactorAnalysis(**prior)
        found = fit(model, getattr(rows, kind), settings, **options)
        score = predict(found, rows.test.pooled() if kind == "pooled" else rows.test, settings)
        nats = score["nats_per_paper_together"]
    return {"summary": f"{nats:.1f} nats", **score, **about(found)}


def as_reals(counts: Sources) -> Any:
    """Return sources of counts as sources of real numbers."""
    values = [np.asarray(counts.select([name]).values, np.float32) for name in counts.source_names]
    return Sources.from_arrays(values, names=counts.source_names)


def effort(settings: Settings) -> dict[str, Any]:
    """Return how long rows are annealed."""
    particles = 1 if settings.size == "quick" else 2
    return {
        "num_temperatures": settings.num_temperatures, "num_particles": particles,
        "seed": settings.seed,
    }  # fmt: skip


def of_rows(score: RowScore) -> dict[str, Any]:
    """Return the score of rows as JSON takes it; nats, the lower the better.

    `nats_per_paper_together` is the paper's log of the perplexity per document: -log p(test |
    training), all rows together. `nats_per_paper` is the mean of -log p of one row.
    """
    return {
        "nats_per_paper_together": -score.joint_log_prob,
        "nats_per_paper": -score.log_prob,
        "error_states": number_of(score.error_states),
        "row_log_prob": np.round(score.row_log_prob, 2).tolist(),
    }


def predict(found: bnp.FactorFit, test: Sources, settings: Settings) -> dict[str, Any]:
    """Score the test rows as the paper does, and in two ways that other models can be held against.

    `nats_per_paper_given_its_length` is that of a row given its total, a bag of words, with the
    standard error over rows. `nats_per_paper_by_eq32` is the paper's estimate, which counts a row
    twice. `word_perplexity` is that of one half of the words given the other.
    """
    score = predict_rows(found, test, **effort(settings))
    twice = predict_rows(found, test, method="eq32", **effort(settings))
    totals = predict_rows(found, test, totals=True, **effort(settings))
    sweeps = {"num_warmup": 2, "num_kept": 2} if settings.size == "quick" else {}
    return {
        **of_rows(score),
        "nats_per_paper_by_eq32": -twice.joint_log_prob,
        **given_length(totals.row_log_prob - score.row_log_prob),
        "word_perplexity": row_completion(found, test, **sweeps, seed=settings.seed),
    }


def predict_topics(found: bnp.TopicFit, test: Sources, settings: Settings) -> dict[str, Any]:
    """Score the test rows as bags under a topic model, and halves of them; see `predict`.

    Left-to-right estimates of long documents are too low on average, so the score is too high:
    by 6 nats for rows of 700 words, against four times as many redraws. `bias` is the part that
    the jackknife sees, in nats per row.
    """
    values = np.asarray(test.values)
    few = settings.size == "quick"
    whole = left_to_right(
        found.mixtures, data.corpus_of(test), num_particles=settings.num_particles,
        resample=0 if few else REDRAWS, seed=settings.seed,
    )  # fmt: skip
    bag = -(whole.doc_log_prob + gammaln(values.sum(axis=1) + 1) - gammaln(values + 1).sum(axis=1))
    observed = thin(values, settings.seed)
    parts = (data.corpus_of(test, part) for part in (observed, values - observed))
    sweeps = {"num_sweeps": 4, "num_kept": 2} if few else {"num_sweeps": 40, "num_kept": 20}
    half = document_completion(found.mixtures, *parts, **sweeps, seed=settings.seed)
    return {
        **given_length(bag),
        "bias": whole.bias_particles * whole.num_tokens / len(bag),
        "word_perplexity": half.perplexity,
    }


def given_length(bag: Float[np.ndarray, " N"]) -> dict[str, Any]:
    """Return the score of bags of words: its mean, its error over rows, and every row."""
    return {
        "nats_per_paper_given_its_length": float(bag.mean()),
        "error_over_papers": float(bag.std(ddof=1) / math.sqrt(len(bag))),
        "nats_of_each_paper_given_its_length": np.round(bag, 2).tolist(),
    }


def measure_features(
    images: data.Images, components: tuple[int, ...] | None, settings: Settings
) -> dict[str, Any]:
    """Retrieve without a model: by all features, or by principal components of the training rows.

    How many components there are is chosen on training rows alone: every fourth one is a query, and
    the others are what it retrieves.
    """
    rows, queries = np.asarray(images.train.values), images.queries
    if components is None:
        return retrieved([(queries, rows)], None, images.query_class, images.row_class)
    classes = np.asarray(images.row_class)
    asks = np.arange(len(rows)) % 4 == 0
    scores = {}
    for k in components:
        axes = principal(rows[~asks], k)
        pair = (rows[asks] @ axes.T, rows[~asks] @ axes.T)
        made = retrieve([pair], classes[asks], classes[~asks])
        scores[k] = made.mean_average_precision
    best = max(scores, key=lambda k: scores[k])
    axes = principal(rows, best)
    pair = (queries @ axes.T, rows @ axes.T)
    return {
        "components": best,
        "score_on_training_rows": {str(k): x for k, x in scores.items()},
        **retrieved([pair], None, images.query_class, images.row_class),
    }


def principal(rows: Float[np.ndarray, "N M"], k: int) -> Float[np.ndarray, "k M"]:
    """Return the directions of the first principal components."""
    return np.linalg.svd(rows, full_matrices=False)[2][:k]


def measure_gaussian(
    images: data.Images, first: int, number: int, settings: Settings
) -> dict[str, Any]:
    """Retrieve by the factors of each kept state; queries are rows of no known source.

    `rebuilt` compares what weights and factors make of the features, and not the weights.
    `number` is 0 for exact births and 1 for approximate ones.
    """
    half = settings.image_sweeps[number] // 2
    options = {"approximation": "births", "schedule": "sequential"} if number else {}
    found = fit(
        bnp.GaussianFactorAnalysis(), images.train, settings, init_factors=first, num_warmup=half,
        num_samples=half, num_chains=settings.image_chains, **options,
    )  # fmt: skip
    states = found.factor_states
    kept = arviz_data.group(found.data, "states")
    ratio = np.asarray(kept["sigma2_n"].mean("source") / kept["sigma2_w"].mean("source")).ravel()
    draws, rebuilt = [], []
    for s, used in enumerate(states.sizes() > 0):
        phi, weights = states.phi[s, used], states.weights[s][:, used]
        scores = ridge(phi, images.queries, ratio[s])
        draws.append((scores, weights))
        rebuilt.append((scores @ phi, weights @ phi))
    lp, counts = traces(found)
    step = max(half // 50, 1)
    classes = images.query_class, images.row_class
    by_weights, by_features = (retrieved(x, states.chain, *classes) for x in (draws, rebuilt))
    said = f"{by_weights.pop('summary')}; rebuilt: {by_features.pop('summary')}"
    return {
        "summary": said,
        **by_weights,
        "rebuilt": by_features,
        "sweeps": 2 * half,
        "factors_in_use_by_chain": counts[:, ::step].tolist(),
        "lp_of_second_half_by_chain": lp[:, ::step].round().astype(int).tolist(),
        **about(found),
    }


def ridge(
    phi: Float[np.ndarray, "K M"], x: Float[np.ndarray, "Q M"], ratio: float
) -> Float[np.ndarray, "Q K"]:
    """Estimate the weights of rows of no known source, all factors being in use."""
    gram = phi.astype(np.float64) @ phi.T + ratio * np.eye(len(phi))
    return np.linalg.solve(gram, phi.astype(np.float64) @ x.T).T


def retrieved(
    draws: Sequence[tuple[np.ndarray, np.ndarray]],
    chain: Int[np.ndarray, " S"] | None,
    query_class: Sequence[str],
    row_class: Sequence[str],
) -> dict[str, Any]:
    """Score the ranking of the training rows, and keep what pairs of methods are compared by.

    `draws` has the mean average precision of each state by itself, where there are chains.
    """
    score = retrieve(draws, query_class, row_class, chain=chain)
    of_states = score.draw_mean_average_precision
    by_chain = {} if chain is None else {"draws": of_states.reshape(len(set(chain)), -1).tolist()}
    scopes = [n for n in SCOPES if n <= len(row_class)]
    of_query = np.round(score.precision[:, np.array(scopes) - 1] * np.array(scopes)).astype(int)
    return {
        "summary": str(score),
        "mean_average_precision": score.mean_average_precision,
        "error_over_queries": score.error_queries,
        "error_over_draws": number_of(score.error_draws),
        "error_over_chains": number_of(score.error_chains),
        **by_chain,
        "average_precision_of_each_query": np.round(score.average_precision, 4).tolist(),
        "relevant_of_each_query_by_scope": {
            str(n): of_query[:, i].tolist() for i, n in enumerate(scopes)
        },
    }
