"""What the factor studies measure: each function fits, scores, and returns plain numbers."""

import json
import math
import time
from typing import Any

import factor_data
import numpy as np
import xarray
from jaxtyping import Float, Int
from scipy.special import gammaln
from study.scores import convergence, unigram

import bnp_models as bnp
from bnp_models.posterior import arviz_data
from bnp_models.posterior.factor_states import match
from bnp_models.results import factor_tables
from bnp_models.run.progress import Silent
from bnp_models.scores.held_out import document_completion, left_to_right
from bnp_models.scores.held_out_rows import predict_rows, row_completion, thin
from bnp_models.scores.retrieval import retrieve

__all__ = ["fit", "measure_features", "measure_gaussian", "measure_planted", "measure_section"]


class Clock(Silent):
    """A silent progress display that remembers when which sweep was done."""

    def __init__(self):
        self.sweeps: list[int] = []
        self.seconds: list[float] = []

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Note the time."""
        self.sweeps.append(sweep)
        self.seconds.append(time.perf_counter())

    def until(self, sweep: int) -> float:
        """Return the seconds from the first sweep, which waits for the compiler, to this one."""
        return float(np.interp(sweep, self.sweeps, self.seconds)) - self.seconds[0]


def fit(model: Any, data: Any, settings: Any, **options: Any) -> Any:
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


def about(found: Any) -> dict[str, Any]:
    """Describe how many factors or topics a fit has, and whether it converged."""
    posterior = found.posterior
    name = "num_factors_used" if "num_factors_used" in posterior else "num_topics_used"
    used = np.asarray(posterior[name])
    return {"factors_or_topics": float(used.mean()), "convergence": convergence(found)}


def measure_planted(
    a_phi: float, births: str, schedule: str, first: int, settings: Any
) -> dict[str, Any]:
    """Fit the planted factors from `first` factors, and see when and what is found."""
    made = factor_data.planted(settings.rows_per_source, seed=settings.seed)
    clock = Clock()
    sweeps = settings.sweeps if births == "exact" else settings.approximate_sweeps
    options = {"births": births, "schedule": schedule}
    options = {name: x for name, x in options.items() if x not in ("exact", "default")}
    found = fit(
        bnp.PoissonGammaFactorAnalysis(a_phi=a_phi), made.sources, settings, num_warmup=0,
        num_samples=sweeps, num_chains=settings.planted_chains,
        keep_states=2 * settings.keep_states, init_factors=first, progress=clock, **options,
    )  # fmt: skip
    counts = np.asarray(found.posterior["num_factors_used"])
    reached = [settled(chain, len(made.phi)) for chain in counts]
    half = sweeps // 2
    posterior = factor_tables.num_factors(counts[:, half:])
    states = factor_tables.states_of(found)
    states = states.take(states.draw >= half)
    table = factor_tables.recovery(states, made.phi, made.weights)
    shared = factor_tables.sharing(states, made.sources.source_names)
    mode = int(posterior["probability"].idxmax())
    return {
        "summary": f"{mode} factors, {int((table['found'] >= 0.5).sum())} of them planted",
        "sweeps": sweeps,
        "factors_in_use_by_chain": counts[:, :: max(sweeps // 100, 1)].tolist(),
        "sweeps_to_all": reached,
        "seconds_to_all": [None if sweep is None else clock.until(sweep + 1) for sweep in reached],
        "seconds_of_sweeps": clock.until(sweeps),
        "posterior": {str(k): p for k, p in posterior["probability"].items()},
        "recovery": json.loads(table.to_json(orient="records")),
        "shared": json.loads(shared.to_json(orient="records")),
        "images": images(states, made),
        **about(found),
        "convergence": of_half(found, half),
        "convergence_from_sweep": half,
    }


def of_half(found: Any, half: int) -> list[dict[str, Any]]:
    """Return R-hat of log density and number of factors after the first sweeps."""
    lp = np.asarray(arviz_data.group(found.data, "sample_stats")["lp"])
    traces = {"lp": lp, "num_factors_used": np.asarray(found.posterior["num_factors_used"])}
    traces = {n: (("chain", "draw"), x[:, half:].astype(float)) for n, x in traces.items()}
    hats = arviz_data.rhat(xarray.Dataset(traces))
    return [{"quantity": name, "rhat": number(hat)} for name, hat in hats.items()]


def number(value: Any) -> float | None:
    """Return a number as JSON takes it, None for NaN."""
    return None if np.isnan(value) else float(value)


def images(states: Any, made: factor_data.Planted) -> dict[str, Any]:
    """Return planted factors, and those in their place in the most probable state, from 0 to 1."""
    best = int(np.argmax(states.lp))
    phi = states.phi[best][states.z[best].any(axis=0)]
    partner = match(made.phi, phi).position
    phi = np.where(partner[:, None] >= 0, phi[partner], 0.0)
    shares = phi / np.maximum(phi.max(axis=1, keepdims=True), 1e-30)
    return {"planted": made.phi.astype(int).tolist(), "found": shares.round(2).tolist()}


def settled(counts: Any, wanted: int, span: int = 20) -> int | None:
    """Return the sweep at which a chain has so many factors, and as a rule in the next ones.

    To pass the number on the way to another one is not enough: it must be the median of `span`
    sweeps.
    """
    for sweep in range(len(counts) - span + 1):
        if counts[sweep] == wanted and np.median(counts[sweep : sweep + span]) == wanted:
            return sweep
    return None


def measure_section(
    sources: Any, auxiliary: str, size: int, run: int, method: str, settings: Any
) -> dict[str, Any]:
    """Fit the target section with, without or mixed with another one, and predict its test."""
    sizes = {"num_auxiliary": settings.num_auxiliary, "num_test": settings.num_test}
    rows = factor_data.section_rows(sources, auxiliary, size, run, **sizes)
    seed = settings.seed + run
    if method == "unigram":
        values = np.asarray(rows.test.values)
        rest = values - thin(values, settings.seed)
        score = unigram(np.asarray(rows.pooled.values).sum(axis=0), rest, settings.hdp_beta)
        perplexity = score["perplexity"]
        return {"summary": f"perplexity {perplexity:.1f}", "word_perplexity": perplexity}
    if method.startswith("HDP"):
        train = rows.alone if method == "HDP alone" else rows.pooled
        found = fit(
            bnp.HDPLDA(beta=settings.hdp_beta), factor_data.corpus_of(train), settings, seed=seed
        )
        score = predict_topics(found, rows.test, settings)
    else:
        kind, _, sparse = method.partition(" ")
        model = bnp.PoissonGammaFactorAnalysis(a_phi=settings.sparse_a_phi if sparse else 1.0)
        found = fit(model, getattr(rows, kind), settings, seed=seed)
        score = predict(found, rows.test.pooled() if kind == "pooled" else rows.test, settings)
    nats = score["nats_per_paper_given_its_length"]
    summary = f"{nats:.1f} nats, perplexity {score['word_perplexity']:.1f}"
    return {"summary": summary, **score, **about(found)}


def predict(found: Any, test: Any, settings: Any) -> dict[str, Any]:
    """Score the test rows as the paper does, and in two ways that other models can be held against.

    Scores are nats, the lower the better. `nats_per_paper_together` is the paper's log of the
    perplexity per document: -log p(test | training), all rows together. `nats_per_paper` is the
    mean of -log p of one row, `nats_per_paper_given_its_length` that of a row given its total, a
    bag of words, with the standard error over rows. `word_perplexity` is that of one half of the
    words given the other. Rows and states are kept, so that methods can be compared in pairs.
    """
    effort = {
        "num_temperatures": 5 if settings.size == "quick" else 200,
        "num_particles": 1 if settings.size == "quick" else 2,
        "seed": settings.seed,
    }
    score = predict_rows(found, test, **effort)
    totals = predict_rows(found, test, totals=True, **effort)
    sweeps = {"num_warmup": 2, "num_kept": 2} if settings.size == "quick" else {}
    bag = totals.row_log_prob - score.row_log_prob
    return {
        "nats_per_paper_together": -score.joint_log_prob,
        "nats_per_paper": -score.log_prob,
        **given_length(bag),
        "error_states": score.error_states,
        "row_log_prob": np.round(score.row_log_prob, 2).tolist(),
        "state_log_prob": np.round(score.state_log_prob, 1).tolist(),
        "word_perplexity": row_completion(found, test, **sweeps, seed=settings.seed),
    }


def predict_topics(found: Any, test: Any, settings: Any) -> dict[str, Any]:
    """Score the test rows as bags under a topic model, and halves of them; see `predict`.

    Left-to-right estimates of long documents are too low on average, so the score is too high, by
    tens of nats; `bias` is the part that the jackknife sees, in nats per row.
    """
    values = np.asarray(test.values)
    few = settings.size == "quick"
    whole = left_to_right(
        found.mixtures, factor_data.corpus_of(test), num_particles=2, resample=0 if few else 8,
        seed=settings.seed,
    )  # fmt: skip
    bag = -(whole.doc_log_prob + gammaln(values.sum(axis=1) + 1) - gammaln(values + 1).sum(axis=1))
    observed = thin(values, settings.seed)
    parts = (factor_data.corpus_of(test, part) for part in (observed, values - observed))
    sweeps = {"num_sweeps": 4, "num_kept": 2} if few else {"num_sweeps": 40, "num_kept": 20}
    half = document_completion(found.mixtures, *parts, **sweeps, seed=settings.seed)
    return {
        **given_length(bag),
        "state_log_prob": np.round(whole.state_log_prob, 1).tolist(),
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


def measure_features(images: factor_data.Images, components: int | None = None) -> dict[str, Any]:
    """Retrieve without a model, by all features or principal components of the training rows."""
    rows, queries = np.asarray(images.train.values), images.queries
    if components is not None:
        axes = np.linalg.svd(rows, full_matrices=False)[2][:components]
        rows, queries = rows @ axes.T, queries @ axes.T
    return retrieved([(queries, rows)], None, images)


def measure_gaussian(images: factor_data.Images, first: int, settings: Any) -> dict[str, Any]:
    """Retrieve by the factors of each kept state; queries are rows of no known source."""
    half = settings.digit_sweeps // 2
    sizes = {"num_warmup": half, "num_samples": half}
    found = fit(bnp.GaussianFactorAnalysis(), images.train, settings, init_factors=first, **sizes)
    states = factor_tables.states_of(found)
    kept = arviz_data.group(found.data, "states")
    ratio = np.asarray(kept["sigma2_n"].mean("source") / kept["sigma2_w"].mean("source")).ravel()
    draws = []
    for s, used in enumerate(states.sizes() > 0):
        scores = ridge(states.phi[s, used], images.queries, ratio[s])
        draws.append((scores, states.weights[s][:, used]))
    return retrieved(draws, states.chain, images) | about(found)


def ridge(
    phi: Float[np.ndarray, "K M"], x: Float[np.ndarray, "Q M"], ratio: float
) -> Float[np.ndarray, "Q K"]:
    """Estimate the weights of rows of no known source, all factors being in use."""
    gram = phi.astype(np.float64) @ phi.T + ratio * np.eye(len(phi))
    return np.linalg.solve(gram, phi.astype(np.float64) @ x.T).T


def retrieved(draws: Any, chain: Int[np.ndarray, " S"] | None, images: Any) -> dict[str, Any]:
    """Score the ranking of the training rows."""
    score = retrieve(draws, images.query_class, images.row_class, chain=chain)
    most = len(images.row_class)
    scope = score.scope([n for n in (1, 2, 5, 10, 20, 50, 100) if n <= most])
    return {
        "summary": str(score),
        "mean_average_precision": score.mean_average_precision,
        "error_over_queries": score.error_queries,
        "error_over_draws": number(score.error_draws),
        "error_over_chains": number(score.error_chains),
        "average_precision_of_each_query": np.round(score.average_precision, 4).tolist(),
        "precision_by_scope": {int(n): p for n, p in scope["precision"].items()},
    }
