"""The data of the factor studies and how they are divided; nothing here fits a model.

Gupta, Phung and Venkatesh, A slice sampler for restricted hierarchical beta process with
applications to shared subspace learning, UAI 2012, section 5. What the paper leaves open is chosen
here and said so.
"""

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.stats
from jaxtyping import Bool, Float, Int, Num
from scipy.special import gammaln, logsumexp
from study.splits import chosen, standardised

from bnp_models import Corpus, Sources
from bnp_models.base.row_annealing import PoissonRows
from bnp_models.data.readers import read_npz

__all__ = [
    "MASS", "Images", "Planted", "Section", "bundled", "class_images", "corpus_of", "digits",
    "exact_log_prob", "known_rows", "planted", "section_rows", "sections", "simulated",
    "tiny_images", "tiny_sections",
]  # fmt: skip

NUM_FEATURES = 100  # of planted factors
DENSITY = 0.2  # share of their entries that is 1
BACKGROUND = 0.1  # of the planted counts
MASS = 6.0  # of the counts drawn from the model: factors that a row uses on average


class Planted(NamedTuple):
    """Counts of two sources and the factors that they were drawn from."""

    sources: Sources
    phi: Float[np.ndarray, "R M"]
    weights: Float[np.ndarray, "N R"]  # 0 where a row does not use a factor


class Section(NamedTuple):
    """Training rows for one target and one auxiliary source, and test rows of the target."""

    hierarchical: Sources  # both sources, told apart
    alone: Sources  # the target only
    pooled: Sources  # both, as one source
    test: Sources


class Images(NamedTuple):
    """Training rows, whose classes are the sources, and queries."""

    train: Sources
    queries: Float[np.ndarray, "Q M"]
    query_class: tuple[str, ...]
    row_class: tuple[str, ...]


def planted(rows_per_source: int = 100, *, seed: int = 0) -> Planted:
    """Draw the synthetic study: 12 binary factors, 4 of one source, 4 of both, 4 of the other.

    Weights are Gamma(shape 1, scale 2) and counts Poisson, with the background of the paper. Not
    given there: which entries of a factor are 1, here each with probability 0.2; how many rows
    there are; and how many rows use a factor that their source may use, here every second one on
    average.
    """
    rng = np.random.default_rng(seed)
    phi = (rng.random((12, NUM_FEATURES)) < DENSITY).astype(float)
    allowed = np.zeros((2, 12), bool)
    allowed[0, :8] = allowed[1, 4:] = True
    source = np.repeat([0, 1], rows_per_source)
    z = allowed[source] & (rng.random((len(source), 12)) < 0.5)
    weights = np.where(z, rng.gamma(1.0, 2.0, z.shape), 0.0)
    counts = rng.poisson(BACKGROUND + weights @ phi)
    sources = Sources.from_arrays(np.split(counts, 2), names=["first", "second"])
    return Planted(sources, phi, weights)


def simulated(seed: int = 0) -> Sources:
    """Draw counts of two sources, "VP" and "auxiliary", from the hierarchical model itself.

    Its mass is `MASS`, its concentrations are 1, phi has shape and rate 1, and weights have shape 1
    and scale 2. On average no model of these counts predicts better than this one.
    """
    rng = np.random.default_rng([seed, 24])
    beta = np.cumprod(rng.beta(MASS, 1.0, 80))
    phi = rng.gamma(1.0, 1.0, (len(beta), NUM_FEATURES))
    made = []
    for rows in (140, 80):
        z = rng.random((rows, len(beta))) < rng.beta(beta, 1 - beta)
        made.append(rng.poisson(BACKGROUND + np.where(z, rng.gamma(1.0, 2.0, z.shape), 0.0) @ phi))
    return Sources.from_arrays(made, names=["VP", "auxiliary"])


def known_rows(
    factors: int, counts: int, rows: int, *, seed: int = 0
) -> tuple[PoissonRows, Int[np.ndarray, "N M"]]:
    """Draw rows of one source, and return the factors that they are drawn from, too.

    A row uses half of the factors, or `MASS` of them on average if there are more. Other laws are
    those of `simulated`, but factors and background are divided, so that a row has about `counts`
    counts.
    """
    rng = np.random.default_rng([seed, factors, counts])
    phi = rng.gamma(1.0, 1.0, (factors, NUM_FEATURES))
    use = min(0.5, MASS / factors)
    scale = counts / (BACKGROUND * NUM_FEATURES + use * 2.0 * phi.sum())
    z = rng.random((rows, factors)) < use
    weights = np.where(z, rng.gamma(1.0, 2.0, z.shape), 0.0)
    values = rng.poisson(scale * (BACKGROUND + weights @ phi)).astype(np.int32)
    one = np.ones(1, np.float32)
    return PoissonRows(
        (scale * phi).astype(np.float32), np.full((1, factors), use, np.float32),
        scale * BACKGROUND * one, a_w=one, b_w=one / 2,
    ), values  # fmt: skip


def exact_log_prob(
    values: Int[np.ndarray, "N M"], state: PoissonRows, points: int = 1000
) -> Float[np.ndarray, " N"]:
    """Return log probabilities of rows of two factors, by sums over a grid of weights.

    The grid ends at a weight that one in 10^8 exceeds.
    """
    w = np.linspace(0.0, -np.log(1e-8) / state.b_w[0], points)
    mass = scipy.stats.gamma.pdf(w, state.a_w[0], scale=1 / state.b_w[0]) * (w[1] - w[0])
    mass[[0, -1]] /= 2  # the trapezoid rule
    unused, used = (np.zeros(1), np.zeros(1)), (w, np.log(mass))
    first, second = state.phi.astype(float)
    parts = []
    for z in itertools.product([False, True], repeat=2):
        log_prior = np.log(np.where(z, state.pi[0], 1 - state.pi[0])).sum()
        (firsts, of_first), (seconds, of_second) = (used if on else unused for on in z)
        for weight, log_mass in zip(firsts, of_first, strict=True):
            rate = state.background[0] + weight * first + seconds[:, None] * second
            log_likelihood = values @ np.log(rate).T - rate.sum(axis=1)
            parts.append(log_prior + log_mass + logsumexp(log_likelihood + of_second, axis=1))
    return logsumexp(parts, axis=0) - gammaln(values + 1).sum(axis=1)


def sections(folder: str | Path, max_words: int | None = None) -> Sources:
    """Read the nine sections of NIPS 1988 to 1999 as sources, their papers in a random order.

    Words that occur 50 to 4,000 times in these years (5,071 of them; of these the `max_words` most
    frequent ones) leave about 1,000 tokens a paper, which is what the paper reports; the order of
    the papers is the one that comes with the collection.
    """
    path = Path(folder) / "nips12.npz"
    corpus = read_npz(path, group="group", label="year", name="docname")
    with np.load(path, allow_pickle=False) as file:
        order = file["perm"]
    corpus = corpus.select(order[np.asarray(corpus.label)[order] >= 1988])
    corpus = corpus.prune(min_count=50, max_count=4000, max_words=max_words)
    papers = np.asarray(corpus.group) != corpus.group_names.index("MISC")
    return Sources.from_corpus(corpus.select(papers))


def section_rows(
    sources: Sources, auxiliary: str | None, num_target: int, run: int, *, num_auxiliary: int,
    num_test: int, target: str = "VP",
) -> Section:  # fmt: skip
    """Divide the papers of a target and an auxiliary section for one run.

    The first `num_test` rows of the target are the test, the same in every run. The rest is put in
    an order by the run, of which the first `num_target` are fitted: those of a smaller training set
    are in each larger one. Without an auxiliary section there is the target only. Too few rows
    raise a `ValueError`.
    """
    targets = sources.select([target])
    rest = max(targets.num_rows - num_test, 0)
    ours = num_test + chosen(rest, num_target, (run, 1), "num_target")
    test = targets.select_rows(range(num_test))
    if auxiliary is None:
        alone = targets.select_rows(ours)
        return Section(alone, alone, alone, test)
    other = sources.select([auxiliary])
    theirs = chosen(other.num_rows, num_auxiliary, (run, 2), "num_auxiliary")
    rows = np.concatenate([ours, targets.num_rows + theirs])
    both = sources.select([target, auxiliary]).select_rows(rows)
    return Section(both, both.select([target]), both.pooled(), test)


def corpus_of(sources: Sources, values: Int[np.ndarray, "N M"] | None = None) -> Corpus:
    """Turn rows of counts, perhaps others than those of the sources, into documents in groups."""
    values = np.asarray(sources.values) if values is None else values
    groups = [sources.source_names[j] for j in np.asarray(sources.source)]
    return Corpus.from_counts(
        scipy.sparse.csr_array(values), vocabulary=sources.feature_names, groups=groups
    )


def class_images(
    x: Num[np.ndarray, "N M"],
    group: Int[np.ndarray, " N"],
    is_test: Bool[np.ndarray, " N"],
    class_names: tuple[str, ...],
) -> Images:
    """Divide labelled rows into training sources, one per class, and queries.

    Columns are standardised on the training part: how the paper scales its features is not said.
    """
    train, queries = standardised(x[~is_test], x[is_test])
    by_class = {class_names[g]: train[group[~is_test] == g] for g in np.unique(group[~is_test])}
    sources = Sources.from_arrays(list(by_class.values()), names=list(by_class))
    query_class = tuple(class_names[g] for g in group[is_test])
    row_class = tuple(name for name, rows in by_class.items() for _ in rows)
    return Images(sources, queries, query_class, row_class)


def digits(folder: str | Path) -> Images:
    """Read handwritten digits in six kinds of features, 60% for training."""
    with np.load(Path(folder) / "mfeat.npz", allow_pickle=False) as z:
        return class_images(z["x"], z["group"], z["split"] == 1, tuple(z["group_names"].tolist()))


def bundled(seed: int = 0) -> Images:
    """Read the digits of 8 x 8 pixels that come with scikit-learn, 60% for training."""
    from sklearn.datasets import load_digits

    x, group = map(np.asarray, load_digits(return_X_y=True))
    is_test = np.random.default_rng(seed).random(len(x)) >= 0.6
    return class_images(x, group, is_test, tuple(str(c) for c in range(10)))


def tiny_sections(seed: int = 0) -> Sources:
    """Draw three small sections over 30 words, to try the protocol with."""
    rng = np.random.default_rng(seed)
    phi = rng.gamma(0.3, 1.0, (6, 30))
    uses = np.array([[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])
    weights = rng.gamma(1.0, 2.0, (3, 20, 6)) * uses[:, None, :]
    counts = rng.poisson(0.1 + weights @ phi)
    return Sources.from_arrays(list(counts), names=["VP", "near", "far"])


def tiny_images(seed: int = 0) -> Images:
    """Draw three classes of rows in a space of ten features, to try the protocol with."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(3), 12)
    x = rng.normal(size=(3, 10))[group] + 0.5 * rng.normal(size=(36, 10))
    return class_images(x, group, np.arange(36) % 4 == 0, ("a", "b", "c"))
