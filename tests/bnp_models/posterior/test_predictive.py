"""Predictive draws and log likelihoods against exact answers, and as ArviZ reads them.

Nothing is sampled by a kernel: states of a finite model are drawn from its enumerated posterior,
and those of an infinite model are written down. Given a state, the probability of two words is a
sum of second moments of Dirichlet variables, in which it matters whether topics and mixtures are
drawn or averaged. The false-alarm rate of each test is that of `testing.statistics`, 1e-4.
"""

import itertools
import json
import warnings

import arviz as az
import jax
import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from numpyro.infer import Predictive

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base.likelihood import break_rest, word_likelihood
from bnp_models.data import arguments
from bnp_models.posterior import arviz_data, predictive
from bnp_models.testing.enumeration import log_dirichlet_multinomial
from bnp_models.testing.statistics import one_sample

DOCS, NUM_WORDS = [[0, 1], [2, 2], [1]], 3
AUTHORS = [["a", "b"], ["b"], ["c", "a"]]
CORPUS = bnp.Corpus.from_ids(DOCS, vocabulary=list("uvw"), doc_names=list("klm"))
WRITTEN = bnp.Corpus.from_ids(DOCS, vocabulary=list("uvw"), authors=AUTHORS)
PRIOR = dist.Gamma(1.0, 1.0)
PAIRS = [(0, 1), (0, 2), (2, 3), (1, 4)]  # tokens: of one document, or of two
NUM_DRAWS = 2000


def rows_of_documents(corpus):
    """The rows (documents or authors) that mix the topics of each document."""
    if corpus.author_ptr is None:
        return [[d] for d in range(corpus.num_docs)]
    return [list(x) for x in np.split(np.asarray(corpus.author_idx), corpus.author_ptr[1:-1])]


def make_fit(model, corpus, states):
    """A fit whose kept states are these, [chain, draw, ...] by name."""
    draws = states["z"].shape[:2]
    # a state was kept at every second draw
    recorded = {model.terms.count_variable: np.full(draws, 2)}
    recorded |= {name: states[name] for name in model.hyperparameters if name in states}
    recorded = {name: np.repeat(x, 2, axis=1) for name, x in recorded.items()}
    groups = {"posterior": recorded, "states": states}
    groups["sample_stats"] = {"lp": np.zeros((draws[0], 2 * draws[1]))}
    data = arviz_data.make_data(
        groups,
        dims=model.dims,
        coords=model.coords(corpus),
        group_coords={"states": {"draw": np.arange(1, 2 * draws[1], 2)}},
        attrs={"model": json.dumps(model.describe()), "data": corpus.digest},
    )
    return model.result_class()(model, corpus, data)


def probability(state, corpus, first, second, words):
    """The exact probability that tokens `first` and `second` are these words, given a state.

    Sums over pairs of topics, where the last one stands for all that no token uses.
    """
    z, word, doc = state["z"], np.asarray(corpus.word), np.asarray(corpus.doc)
    u = state.get("unused_weight", 0.0)
    num_topics = len(state["root_weights"]) if u else 2
    weights = state["alpha"] * np.append(state["root_weights"], u) if u else state["alpha"]
    weights = np.broadcast_to(weights, num_topics + (u > 0)).astype(float)
    row, rows = state.get("x", doc), rows_of_documents(corpus)
    num_rows = 1 + max(map(max, rows))
    of_row = np.array([
        weights + np.bincount(z[row == r], minlength=len(weights)) for r in range(num_rows)
    ])  # fmt: skip
    of_topic = state["beta"] + np.array(
        [np.bincount(word[z == k], minlength=corpus.num_words) for k in range(num_topics)]
    )
    beta, v, w = state["beta"], *words
    given = np.empty((len(weights), len(weights), 2))  # rows are the same, or differ
    mean = of_topic / of_topic.sum(axis=1, keepdims=True)
    mean = np.vstack([mean, np.full((int(u > 0), corpus.num_words), 1 / corpus.num_words)])

    def same_topic(b):
        return b[v] * (b[w] + (v == w)) / (b.sum() * (b.sum() + 1))

    given[:] = (mean[:, None, v] * mean[None, :, w])[..., None]
    for k, b in enumerate(of_topic):
        given[k, k] = same_topic(b)
    if u:
        new, apart = same_topic(np.full(corpus.num_words, beta)), mean[-1, v] * mean[-1, w]
        shared = 1 / (1 + state["gamma"])  # two draws from the rest of the root
        table = 1 / (1 + state["alpha"] * u)  # two tokens of one row at one table
        given[-1, -1] = [p * new + (1 - p) * apart for p in (table + (1 - table) * shared, shared)]
    total = 0.0
    choices = list(itertools.product(rows[doc[first]], rows[doc[second]]))
    for r, s in choices:
        a, b = of_row[r], of_row[s]
        if r == s:
            moments = (np.outer(a, a) + np.diag(a)) / (a.sum() * (a.sum() + 1))
        else:
            moments = np.outer(a, b) / (a.sum() * b.sum())
        total += (moments * given[:, :, int(r != s)]).sum()
    return total / len(choices)


def enumerate_states(corpus, alphas, betas):
    """All states of two topics and their posterior probabilities; values of `alphas`, `betas` are
    equally probable.
    """
    doc, word = np.asarray(corpus.doc), np.asarray(corpus.word)
    rows = rows_of_documents(corpus)
    choices = itertools.product(*(rows[d] for d in doc))
    states, log_p = [], []
    for x, z in itertools.product(choices, itertools.product(range(2), repeat=len(doc))):
        x, z = np.array(x), np.array(z)
        for alpha, beta in itertools.product(alphas, betas):
            by_row = [np.bincount(z[x == r], minlength=2) for r in range(x.max() + 1)]
            by_topic = [np.bincount(word[z == k], minlength=corpus.num_words) for k in range(2)]
            density = log_dirichlet_multinomial(np.array(by_row), np.array(alpha)).sum()
            density += log_dirichlet_multinomial(np.array(by_topic), np.array(beta)).sum()
            states.append({"z": z, "x": x, "alpha": np.array(alpha), "beta": np.array(beta)})
            log_p.append(density)
    p = np.exp(np.array(log_p) - np.max(log_p))
    return states, p / p.sum()


def stack(states, shape):
    """States by name, [chain, draw, ...]."""
    return {
        n: np.stack([s[n] for s in states]).reshape(*shape, *states[0][n].shape) for n in states[0]
    }


def finite(model, corpus, alphas, betas):
    """A fit with draws from the exact posterior, and a function of exact means."""
    states, p = enumerate_states(corpus, alphas, betas)
    if corpus.author_ptr is None:
        states = [{n: x for n, x in state.items() if n != "x"} for state in states]
    drawn = np.random.default_rng(0).choice(len(states), NUM_DRAWS, p=p)
    fit = make_fit(model, corpus, stack([states[s] for s in drawn], (2, NUM_DRAWS // 2)))
    return fit, lambda of_state: p @ np.array([of_state(state) for state in states])


def rooted(model, corpus):
    """A fit whose states are all the same one, with much weight on topics not in use."""
    state = {
        "z": np.array([0, 1, 1, 1, 0]), "alpha": np.array(6.0), "gamma": np.array(0.8),
        "beta": np.array(0.1), "root_weights": np.array([0.2, 0.1], np.float32),
        "unused_weight": np.array(0.7, np.float32),
    }  # fmt: skip
    if corpus.author_ptr is not None:
        state["x"] = np.array([0, 1, 1, 1, 2])
    fit = make_fit(model, corpus, stack([state] * NUM_DRAWS, (2, NUM_DRAWS // 2)))
    return fit, lambda of_state: of_state(state)


CASES = {
    "LDA, fixed": lambda: finite(bnp.LDA(2, alpha=0.7, beta=0.3), CORPUS, [0.7], [0.3]),
    "LDA, sampled": lambda: finite(
        bnp.LDA(2, alpha=PRIOR, beta=PRIOR), CORPUS, [0.2, 2.0], [0.1, 1.5]
    ),
    "LDA, asymmetric": lambda: finite(
        bnp.LDA(2, alpha=(0.3, 1.5), beta=0.3), CORPUS, [(0.3, 1.5)], [0.3]
    ),
    "authors": lambda: finite(
        bnp.AuthorTopicModel(2, alpha=PRIOR, beta=0.3), WRITTEN, [0.2, 2.0], [0.3]
    ),
    "HDP": lambda: rooted(bnp.HDPLDA(), CORPUS),
    "authors of an HDP": lambda: rooted(bnp.NonparametricAuthorTopicModel(), WRITTEN),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def exact(request):
    return request.param()


@pytest.fixture(scope="module")
def probabilities(exact):
    """The exact probability of all pairs of words at `PAIRS`, [pair, word, word]."""
    fit, mean = exact
    found = np.empty((len(PAIRS), NUM_WORDS, NUM_WORDS))
    for at in np.ndindex(found.shape):
        pair, words = PAIRS[at[0]], at[1:]
        found[at] = mean(lambda state, a=(*pair, words): probability(state, fit.dataset, *a))
    np.testing.assert_allclose(found.sum(axis=(1, 2)), 1)
    return found


def test_words_have_their_exact_probabilities(exact, probabilities):
    w = exact[0].posterior_predictive(300)["posterior_predictive"]["w"].to_numpy()
    one_hot = np.eye(NUM_WORDS)[w.reshape(600, -1)]
    draws = np.stack([one_hot[:, t, :, None] * one_hot[:, u, None] for t, u in PAIRS], axis=1)
    one_sample("words", {"pairs": draws}, {"pairs": probabilities}).check()


def test_topics_and_mixtures_have_their_exact_moments(exact, probabilities):
    """As the test above, without the noise of drawing words."""
    fit, rng = exact[0], np.random.default_rng(0)
    states = fit.states.stack(state=("chain", "draw")).transpose("state", ...)
    arrays = {n: x.to_numpy() for n, x in states.data_vars.items()}
    doc, draws = np.asarray(fit.dataset.doc), []
    for s in range(NUM_DRAWS):
        state = {n: np.asarray(x[s]) for n, x in arrays.items()}
        phi, theta = fit.model.draw_mixtures(rng, state, fit.dataset)
        of_doc = fit.model.doc_mixtures(theta, fit.dataset) @ phi
        draws.append([np.outer(of_doc[doc[t]], of_doc[doc[u]]) for t, u in PAIRS])
    one_sample("mixtures", {"pairs": np.array(draws)}, {"pairs": probabilities}).check()


def test_likelihood_of_words():
    phi, theta = np.array([[0.5, 0.5, 0], [0.1, 0.2, 0.7]]), np.array([[1, 0], [0.4, 0.6], [0, 1]])
    law = word_likelihood(phi, theta, np.array([0, 0, 1]), np.array([1, 0, 2]))
    np.testing.assert_allclose(law.log_likelihood(), [np.log(0.25), np.log(0.42), 0])
    np.testing.assert_array_equal(law.has_data, [True, True, False])
    w = np.stack([law.replicate(np.random.default_rng(s)) for s in range(50)])
    assert w.dtype == np.int8
    assert set(w[:, 0]) == {0, 1}
    assert set(w[:, 2]) == {0, 1, 2}


def test_documents_read_the_weights_of_their_group(monkeypatch):
    corpus = bnp.Corpus.from_ids(
        [[0], [0, 1], [1]], num_words=2, groups=list("bab"), group_names=list("ab")
    )
    model, rng = bnp.LDA(2), np.random.default_rng(0)
    state = {"z": np.array([0, 1, 0, 1]), "alpha": np.array(1.0), "beta": np.array(1.0)}
    topics = model.topics_of(state, corpus)
    weights = np.array([[1e6, 1e6], [3e6, 1e6]], np.float32)
    monkeypatch.setattr(bnp.LDA, "topics_of", lambda *_: topics._replace(law=DirichletLaw(weights)))
    monkeypatch.setattr(bnp.LDA, "row_names", lambda *_: ("b", "a"))
    _, theta = model.draw_mixtures(rng, state, corpus)
    np.testing.assert_allclose(theta[:, 0], [0.5, 0.75, 0.5], atol=0.01)
    by_group = topics._replace(phi=np.repeat(topics.phi, 2, axis=0))
    monkeypatch.setattr(bnp.LDA, "topics_of", lambda *_: by_group)
    with pytest.raises(ValueError, match="topics of LDA differ by group"):
        model.draw_mixtures(rng, state, corpus)


def test_the_rest_of_the_root_is_cut_off_late():
    rng = np.random.default_rng(0)
    assert len(break_rest(rng, 1.0, 0.0)) == 1
    for gamma in (0.1, 30.0):
        shares = break_rest(rng, gamma, 1e3)
        assert shares.sum() == pytest.approx(1.0)
        assert 0 <= shares[-1] <= 1e-7
        assert (shares[:-1] > 0).all()


SOURCES = {
    "counts": bnp.Sources.from_arrays(
        [[[1.0, np.nan, 0.0], [4, 2, 1]], [[0, 0, 9], [np.nan] * 3]],
        kind="counts", allow_missing=True, row_names=list("abcd"),
    ),
    "reals": bnp.Sources.from_arrays([[[0.1, -1.0], [2.0, 0.3]], [[0.4, 1.4]]]),
}  # fmt: skip


def factor_fit(made_up_factors, kind):
    rng, data = np.random.default_rng(0), SOURCES[kind]
    phi = rng.gamma(1.0, size=(2, data.num_features))
    weights = (
        rng.gamma(1.0, size=(data.num_rows, 2)) * [[1, 0], [1, 1], [0, 1], [0, 0]][: data.num_rows]
    )
    if kind == "counts":
        model = bnp.PoissonGammaFactorAnalysis()
        return made_up_factors(model, data, phi, weights, background=[0.3, 2.0], b_w=[1.0, 1.0])
    model = bnp.GaussianFactorAnalysis(sigma2_phi=1.0)
    noise = {"sigma2_n": [0.5, 2.0], "sigma2_w": [1.0, 1.0]}
    return made_up_factors(model, data, phi, weights, **noise)


def exact_law(fit, kind):
    state = {n: x[0, 0].to_numpy() for n, x in fit.states.data_vars.items()}
    source, signal = np.asarray(fit.dataset.source), state["weights"] @ state["phi"]
    if kind == "counts":
        return scipy.stats.poisson(state["background"][source][:, None] + signal), state
    signal = signal + np.asarray(fit.dataset.values).mean(axis=0)  # the model centres the data
    return scipy.stats.norm(signal, np.sqrt(state["sigma2_n"][source])[:, None]), state


@pytest.mark.parametrize("kind", SOURCES)
def test_rows_have_the_law_of_their_state(made_up_factors, kind):
    fit = factor_fit(made_up_factors, kind)
    law, state = exact_law(fit, kind)
    observed = fit.dataset.observed
    there = np.ones(np.shape(fit.dataset.values), bool) if observed is None else observed
    drawn_law = fit.model.likelihood_given_state(np.random.default_rng(0), state, fit.dataset)
    rng = np.random.default_rng(1)
    x = np.stack([drawn_law.replicate(rng) for _ in range(1000)])
    assert (np.isnan(x) == ~there).all()
    draws = {"mean": x[:, there], "variance": (x - law.mean())[:, there] ** 2}
    report = one_sample("rows", draws, {"mean": law.mean()[there], "variance": law.var()[there]})
    report.check()

    log_p = law.logpmf if kind == "counts" else law.logpdf
    expected = np.where(there, log_p(np.asarray(fit.dataset.values)), 0).sum(axis=1)
    found = fit.log_likelihood().log_likelihood["x"]
    assert found.dims == ("chain", "draw", "row")
    np.testing.assert_allclose(found[0, 0], expected[there.any(axis=1)], rtol=1e-5)
    if kind == "counts":
        assert list(found["row"].to_numpy()) == list("abc")  # nothing of row d is observed


def topic_fit(num_draws):
    """Two chains of states of LDA, of a corpus with an empty document."""
    corpus = bnp.Corpus.from_ids(
        [[0, 1, 2], [], [3, 3]], vocabulary=list("uvwx"), doc_names=list("klm")
    )
    z = np.random.default_rng(0).integers(0, 2, (2, num_draws, 5)).astype(np.uint8)
    alpha = np.linspace(0.5, 1.5, 2 * num_draws).reshape(2, -1)
    return make_fit(
        bnp.LDA(2, alpha=PRIOR, beta=0.3), corpus, {"z": z, "alpha": alpha, "beta": 0 * alpha + 0.3}
    )


@pytest.fixture(scope="module")
def few():
    return topic_fit(8)


def test_groups_and_labels(few):
    found = few.posterior_predictive(3)
    assert set(arviz_data.groups(found)) == {
        "posterior", "posterior_predictive", "observed_data", "constant_data",
    }  # fmt: skip
    w = found.posterior_predictive["w"]
    assert w.dims == ("chain", "draw", "token")
    np.testing.assert_array_equal(w["draw"], [5, 9, 15])
    np.testing.assert_array_equal(found.posterior["draw"], w["draw"])
    assert found.observed_data["w"].dims == ("token",)
    np.testing.assert_array_equal(found.observed_data["w"], few.dataset.word)
    np.testing.assert_array_equal(found.posterior["alpha"], few.states["alpha"][:, [2, 4, 7]])
    values = few.log_likelihood(3).log_likelihood["w"]
    assert list(values["doc"].to_numpy()) == ["k", "m"]  # document l is empty
    np.testing.assert_array_equal(values["draw"], w["draw"])


def test_draws_are_those_of_the_seed_and_state(few):
    def words(*args, **options):
        return few.posterior_predictive(*args, **options).posterior_predictive["w"].to_numpy()

    everything = words()
    assert everything.shape == (2, 8, 5)
    np.testing.assert_array_equal(words(3), everything[:, [2, 4, 7]])
    np.testing.assert_array_equal(words(seed=0), everything)
    assert (words(seed=1) != everything).any()
    assert (everything[0] != everything[1]).any()
    every = few.log_likelihood().log_likelihood["w"]
    # likelihoods are those of the parameters that made the words
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(1, 4)))
    state = {n: np.asarray(x[1, 4]) for n, x in few.states.data_vars.items()}
    law = few.model.likelihood_given_state(rng, state, few.dataset)
    np.testing.assert_array_equal(law.replicate(rng), everything[1, 4])
    np.testing.assert_array_equal(law.log_likelihood()[[0, 2]], every[1, 4])
    np.testing.assert_array_equal(few.log_likelihood(3).log_likelihood["w"], every[:, [2, 4, 7]])


@pytest.mark.slow
def test_a_fit_that_was_saved_draws_the_same(few, tmp_path):
    loaded = bnp.TopicFit.load(few.save(tmp_path / "draws.nc"), few.dataset)
    for method in ("posterior_predictive", "log_likelihood", "prior_predictive"):
        ours, theirs = (getattr(fit, method)(4) for fit in (few, loaded))
        group = arviz_data.groups(ours)
        for name in group:
            assert arviz_data.group(ours, name).identical(arviz_data.group(theirs, name)), name
        path = arviz_data.save(ours, tmp_path / f"{method}.nc")
        assert arviz_data.groups(arviz_data.load(path)) == group


@pytest.mark.slow
def test_prior_draws(few):
    found = few.prior_predictive(6, record=("theta",), seed=3)
    assert found.prior["alpha"].shape == (1, 6)
    assert found.prior["theta"].dims == ("chain", "draw", "doc", "topic")
    w = found.prior_predictive["w"].to_numpy()
    assert w.shape == (1, 6, 5)
    assert (w[0] != np.asarray(few.dataset.word)).any(axis=1).all()
    expected = Predictive(few.model, num_samples=6)(jax.random.key(3), few.dataset, observed=False)
    np.testing.assert_array_equal(w[0], expected["w"])
    np.testing.assert_array_equal(found.prior["alpha"][0], expected["alpha"])


def many_states(fit):
    """The states of a factor model again and again, with other weights each time."""
    states = {n: np.tile(x, (1, 10) + (1,) * (x.ndim - 2)) for n, x in fit.states.items()}
    shape = states["weights"].shape
    states["weights"] = states["weights"] * np.random.default_rng(0).uniform(0.8, 1.2, shape)
    return make_fit(fit.model, fit.dataset, states)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["topics", *SOURCES])
def test_arviz_reads_them(made_up_factors, kind):
    fit = topic_fit(20) if kind == "topics" else many_states(factor_fit(made_up_factors, kind))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # large Pareto k, counts, missing entries
        found = az.loo(fit.log_likelihood(), pointwise=True)
        if hasattr(az, "plot_ppc"):  # ArviZ 0.x
            az.plot_ppc(fit.posterior_predictive())
            az.plot_ppc(fit.prior_predictive(3), group="prior")
        else:
            az.plot_ppc_dist(fit.posterior_predictive())
            az.plot_ppc_dist(fit.prior_predictive(3), group="prior_predictive")
    plt.close("all")
    values = found.elpd_i if hasattr(found, "elpd_i") else found["loo_i"]
    assert values.dims == (fit.model.unit,)
    assert np.isfinite(values).all()


def test_refusals(few, toy, monkeypatch):
    with pytest.raises(ValueError, match=r"num_draws must be at most 8.*keep_states=9"):
        few.posterior_predictive(9)
    with pytest.raises(ValueError, match="num_draws must be an integer of at least 1, got 0"):
        few.log_likelihood(0)
    with pytest.raises(ValueError, match="seed must be an integer of at least 0"):
        few.posterior_predictive(seed=-1)
    with pytest.raises(ValueError, match="record must name sites of the program of LDA, got 'tau'"):
        few.prior_predictive(record=("tau",))
    with pytest.raises(ValueError, match=r"Toy has no predictive draws.*draw_mixtures"):
        predictive.posterior_predictive(toy(), few.dataset, few.data)
    stateless = few.model.result_class()(
        few.model, few.dataset, arviz_data.make_data({"posterior": {}})
    )
    with pytest.raises(ValueError, match="keep_states must be positive"):
        stateless.posterior_predictive()
    monkeypatch.setattr(arguments, "free_memory", lambda: 45)  # bytes; a draw takes 2 chains x 5
    with pytest.raises(ValueError, match=r"num_draws is 8 for posterior_predictive.*num_draws=4"):
        few.posterior_predictive()
    assert few.posterior_predictive(4).posterior_predictive["w"].shape == (2, 4, 5)
    monkeypatch.setattr(arguments, "free_memory", lambda: 4)
    with pytest.raises(ValueError, match="take fewer documents or rows"):
        few.prior_predictive(1)
