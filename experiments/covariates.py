"""Topics that depend on covariates: do intervals cover the truth, and how does a peer do.

    python experiments/covariates.py --data FOLDER

`coverage`: documents are drawn from the model, with a number x and a factor with a rare level, and
with coefficients that are drawn from their prior, or planted. The 90% intervals of `fit.effects`
and of `fit.predicted_shares` shall cover what is true. A corpus counts as one trial for a
coefficient of a topic. The effective number of draws of the coefficients says how fast they mix.

`peer`: `DirichletMultinomialRegression` and tomotopy's DMR, which optimises the coefficients, on
political blogs with the side and the month of each post. One state of one chain of either, after
more and more sweeps, predicts new posts of which the first 5 or 20 tokens are known. Seconds are
those of the processor, compilation left out.
"""

import argparse
import dataclasses
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from effects import matched
from study.files import read_json, write_csv, write_json
from study.machine import machine, versions

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"
TOPICS, WORDS, BETA = 4, 100, 0.1
INTERCEPT, VARIANCE = 0.25, 0.5  # prior variances
BASE = np.array([-1.5, -0.5, -0.5, 0.0])
OF_X = np.array([0.0, 0.6, -0.6, 0.0])  # x has mean 0 and standard deviation 1
OF_LEVEL = np.array([1.5, 0.0, -0.5, -0.5])
TERMS = ("intercept", "x", "late[True]")
SHARES = ("share, early", "share, late")  # expected at x = 0
Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    seed: int = 0
    num_corpora: int = 100
    num_docs: int = 200
    lengths: tuple[int, ...] = (30, 150)  # tokens per document
    rare: float = 0.15  # probability of the second level
    sweeps: tuple[int, int] = (300, 1000)  # warm-up and sampling
    keep_states: int = 200
    posts: tuple[int, int] = (2000, 500)  # to fit, to score
    topics: int = 20
    read: tuple[int, ...] = (5, 20)  # tokens of a new post
    ours: tuple[int, ...] = (25, 50, 100, 200, 400, 800)  # sweeps
    theirs: tuple[int, ...] = (50, 100, 200, 400, 800, 1600, 3200)
    seeds: int = 3


STANDARD = Settings("standard")
QUICK = Settings(
    "quick", num_corpora=2, num_docs=40, lengths=(20,), sweeps=(20, 20), keep_states=5,
    posts=(60, 20), topics=3, ours=(2, 4), theirs=(5,), seeds=1,
)  # fmt: skip


# ---- coverage


def simulated(
    settings: Settings, length: int, planted: bool, seed: int
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a corpus with its covariates, word probabilities [K, V] and coefficients [F, K].

    The prior is that of the coefficients of standardised columns.
    """
    import bnp_models as bnp

    rng = np.random.default_rng(seed)
    x = rng.normal(size=settings.num_docs)
    late = rng.random(settings.num_docs) < settings.rare
    late[:2] = False, True
    columns = np.stack([np.ones(settings.num_docs), x, late], axis=1)
    if planted:
        coefficients = np.stack([BASE, OF_X, OF_LEVEL])
    else:
        scale = np.concatenate([[1.0], columns[:, 1:].std(axis=0)])
        spread = np.sqrt([INTERCEPT, VARIANCE, VARIANCE]) / scale
        coefficients = rng.normal(size=(len(TERMS), TOPICS)) * spread[:, None]
        coefficients[0] -= columns[:, 1:].mean(axis=0) @ coefficients[1:]
    theta = np.array([rng.dirichlet(row) for row in np.exp(columns @ coefficients)])
    phi = rng.dirichlet(np.full(WORDS, BETA), TOPICS)
    docs = [rng.choice(WORDS, length, p=share @ phi) for share in theta]
    corpus = bnp.Corpus.from_ids(docs, num_words=WORDS, covariates={"x": x, "late": late})
    return corpus, phi, coefficients


def coverage(settings: Settings, length: int, planted: bool) -> list[Row]:
    """Return for each coefficient how often intervals cover it and exclude zero."""
    import arviz

    import bnp_models as bnp

    asked = {"x": [0.0, 0.0], "late": [False, True]}
    found: dict[str, list[np.ndarray]] = {name: [] for name in (*TERMS, *SHARES)}
    effective, accepted = [], []
    known = {"coefficient_variance": VARIANCE, "intercept_variance": INTERCEPT}
    prior = {} if planted else known
    model = bnp.DirichletMultinomialRegression(TOPICS, "~ x + late", beta=BETA, **prior)
    for number in range(settings.num_corpora):
        seed = settings.seed + number
        corpus, phi, coefficients = simulated(settings, length, planted, seed)
        weights = np.exp(np.stack([coefficients[0], coefficients[0] + coefficients[2]]))
        shares = weights / weights.sum(axis=1, keepdims=True)
        truth = dict(zip(found, (*coefficients, *shares), strict=True))
        fit = bnp.fit(
            model, corpus, num_warmup=settings.sweeps[0], num_samples=settings.sweeps[1],
            num_chains=1, keep_states=settings.keep_states, seed=seed, progress=False,
        )  # fmt: skip
        order = matched(fit, phi, WORDS)
        if len({*order}) < TOPICS:
            print(f"corpus {number}: topics are not those that were planted", flush=True)
            continue
        table = fit.effects(num_draws=1)
        for term in TERMS:
            part = table[table["term"] == term].set_index("topic").loc[order]
            columns = ["coefficient", "coefficient_lower", "coefficient_upper"]
            found[term].append(np.c_[truth[term], part[columns]])
        table = fit.predicted_shares(asked)
        for name, late in zip(SHARES, (False, True), strict=True):
            part = table[table["late"].astype(bool) == late].set_index("topic").loc[order]
            found[name].append(np.c_[truth[name], part[["share", "lower", "upper"]]])
        draws = np.asarray(fit.data["posterior"]["coefficients"])[0]  # [draw, term, topic]
        of_each = [
            [arviz.ess(np.asarray(x)[None]) for x in row] for row in np.moveaxis(draws, 0, -1)
        ]
        effective.append(np.array(of_each, float) / len(draws))
        accepted.append(float(fit.data["sample_stats"]["num_accepted"].mean()) / TOPICS)
    rows = []
    for name, values in found.items():
        true, mean, lower, upper = np.moveaxis(np.stack(values), 2, 0)  # [corpora, K] each
        covers = (lower < true) & (true < upper)
        for k in range(TOPICS):
            row = {
                "tokens per document": length,
                "coefficients": "planted" if planted else "from the prior",
                "quantity": name,
                "topic": k,
                "true": float(true[:, k].mean()),
                "mean": float(mean[:, k].mean()),
                "sd of errors": float((mean - true)[:, k].std()),
                "width": float((upper - lower)[:, k].mean()),
                "covered": int(covers[:, k].sum()),
                "of": len(values),
            }
            if name in TERMS:
                of_term = np.stack(effective)[:, TERMS.index(name), k]
                row["effective draws per sweep"] = float(np.median(of_term))
                row["proposals accepted"] = float(np.mean(accepted))
            rows.append(row)
    return rows


def covered(settings: Settings, length: int) -> list[Row]:
    """Return the rows of both kinds of coefficients."""
    rows = []
    for planted in (False, True):
        new = coverage(settings, length, planted)
        inside, of = (sum(row[name] for row in new) for name in ("covered", "of"))
        print(f"{length} tokens, {new[0]['coefficients']}: {inside} of {of}", flush=True)
        rows += new
    return rows


# ---- beside tomotopy


class Posts:
    """Posts to fit, and posts to score in two parts, with side and month."""

    def __init__(self, settings: Settings, folder: Path):
        import bnp_models as bnp

        known = np.load(folder / "poliblog5k.npz", allow_pickle=False)
        every = bnp.read_corpus(folder / "poliblog5k.npz")
        self.vocabulary = every.vocabulary
        docs = np.split(np.asarray(every.word), np.cumsum(np.asarray(every.doc_length))[:-1])
        side = known["rating_names"][known["rating"]].astype(str)
        month = np.char.add("month ", (1 + known["day"] // 31).astype(str))
        order = np.random.default_rng(settings.seed).permutation(len(docs))
        fitted, scored = order[: settings.posts[0]], order[settings.posts[0] :][: settings.posts[1]]
        self.train = self._corpus([docs[d] for d in fitted], side[fitted], month[fitted])
        rng = np.random.default_rng(settings.seed)
        mixed = [rng.permutation(docs[d]) for d in scored]
        self.halves = {
            count: [
                self._corpus(part, side[scored], month[scored])
                for part in ([words[:count] for words in mixed], [words[count:] for words in mixed])
            ]
            for count in settings.read
        }

    def _corpus(self, docs: Sequence[np.ndarray], side: np.ndarray, month: np.ndarray) -> Any:
        import bnp_models as bnp

        groups = [f"{s}, {m}" for s, m in zip(side, month, strict=True)]
        covariates = {"side": side, "month": month}
        return bnp.Corpus.from_ids(
            docs, vocabulary=self.vocabulary, covariates=covariates, groups=groups
        )

    def scores(self, mixtures: Any) -> Row:
        """Return log probabilities per token of the rest of each new post, in nats."""
        from bnp_models.scores.held_out import document_completion

        return {
            f"after {count} tokens": float(document_completion(mixtures, *halves).log_prob)
            for count, halves in self.halves.items()
        }


def by_us(settings: Settings, posts: Posts, seed: int) -> Iterator[Row]:
    """Run one chain on and on."""
    import jax
    from study.chains import OurChains

    import bnp_models as bnp
    from bnp_models.posterior.mixtures import mixture_states

    model = bnp.DirichletMultinomialRegression(
        settings.topics, "~ side + month", coefficient_variance=1.0, beta=0.01
    )
    keys = jax.random.split(jax.random.key(seed), 1)
    chains = OurChains(model, posts.train, keys, num_samples=settings.ours[-1])
    chains.advance(1)  # compiles
    seconds, done = 0.0, 1
    for sweeps in settings.ours:
        begun = time.process_time()
        chains.advance(sweeps - done)
        seconds, done = seconds + time.process_time() - begun, sweeps
        mixtures = mixture_states(model, chains.states(), posts.train)
        yield {"sweeps": sweeps, "seconds": seconds} | posts.scores(mixtures)


def by_tomotopy(settings: Settings, posts: Posts, seed: int) -> Iterator[Row]:
    """Train one model on and on."""
    import tomotopy

    from bnp_kernels.tokens.mixture_law import DirichletLaw
    from bnp_models.posterior.mixtures import Mixtures

    corpus = posts.train
    peer = tomotopy.DMRModel(k=settings.topics, eta=0.01, sigma=1.0, seed=seed)
    covariates = corpus.covariates
    for d, (side, month) in enumerate(zip(covariates["side"], covariates["month"], strict=True)):
        words = [str(v) for v in corpus.document(d)]
        peer.add_doc(words, multi_metadata=[side, month])
    names = list(itertools.product(*({*covariates[name]} for name in ("side", "month"))))
    seconds, done = 0.0, 0
    for sweeps in settings.theirs:
        begun = time.process_time()
        peer.train(sweeps - done, workers=1)
        seconds, done = seconds + time.process_time() - begun, sweeps
        place = np.array([int(word) for word in peer.used_vocabs])
        phi = np.zeros((len(posts.vocabulary), peer.k))
        phi[place] = np.stack([peer.get_topic_word_dist(k) for k in range(peer.k)], axis=1)
        phi = (phi + 1e-9) / (phi + 1e-9).sum(axis=0)  # words that no fitted post has
        weights = [peer.get_topic_prior(multi_metadata=list(one)) for one in names]
        mixtures = Mixtures(
            phi[None, None].astype(np.float32), DirichletLaw(np.array(weights, np.float32)[None]),
            np.zeros(1, int), np.zeros(1, int), posts.vocabulary,
            tuple(", ".join(one) for one in names),
        )  # fmt: skip
        yield {"sweeps": sweeps, "seconds": seconds} | posts.scores(mixtures)


def peer(settings: Settings, folder: Path) -> list[Row]:
    """Return scores and seconds of both after more and more sweeps."""
    posts, rows = Posts(settings, folder), []
    samplers: dict[str, Callable[..., Iterator[Row]]] = {"ours": by_us, "tomotopy": by_tomotopy}
    for seed in range(settings.seeds):
        for name, sampler in samplers.items():
            for row in sampler(settings, posts, settings.seed + seed):
                print(name, row, flush=True)
                rows.append({"sampler": name, "seed": seed} | row)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write a JSON file and a table for each part."""
    parser = argparse.ArgumentParser(description="Topics that depend on covariates.")
    default = os.environ.get("BNP_DATA")
    parser.add_argument("--data", type=Path, default=default, help="folder with poliblog5k.npz")
    parser.add_argument("--parts", default="coverage,peer", help="some of coverage,peer")
    parser.add_argument("--output", type=Path, help="the JSON file; CSV files go beside it")
    lengths = ",".join(map(str, STANDARD.lengths))
    parser.add_argument("--lengths", default=lengths, help="tokens per document in coverage")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    parser.add_argument("--seed", type=int, default=0, help="of the first corpus")
    options = parser.parse_args(argv)
    settings = dataclasses.replace(QUICK if options.quick else STANDARD, seed=options.seed)
    output = options.output or RESULTS / f"covariates_{settings.size}.json"
    asked = options.parts.split(",")
    if unknown := {*asked} - {"coverage", "peer"}:
        parser.error(f"--parts must be some of coverage,peer, got {sorted(unknown)[0]}")
    if "peer" in asked and options.data is None:
        parser.error("--data must be the folder with poliblog5k.npz, or leave out part peer")
    if not options.quick:
        lengths = tuple(int(length) for length in options.lengths.split(","))
        settings = dataclasses.replace(settings, lengths=lengths)
    parts: dict[str, Callable[[], list[Row]]] = {}  # by how they are asked for
    if "coverage" in asked:
        for length in settings.lengths:
            parts[f"coverage --lengths {length}"] = partial(covered, settings, length)
    if "peer" in asked:
        parts["peer"] = partial(peer, settings, options.data)
    for arguments, measure in parts.items():
        part = arguments.replace(" --lengths ", "_")
        begun = time.perf_counter()
        rows = measure()
        found = read_json(output)["runs"] if output.exists() else []
        run = {
            "part": part,
            "command": f"python experiments/covariates.py --data FOLDER --parts {arguments}"
            + " --quick" * options.quick
            + f" --seed {options.seed}" * bool(options.seed),
            "begun": date.today().isoformat(),
            "settings": json.loads(json.dumps(dataclasses.asdict(settings))),
            "machine": machine(),
            "versions": versions([Path(__file__)]),
            "seconds": round(time.perf_counter() - begun, 1),
            "rows": rows,
        }
        others = [other for other in found if other["part"] != part]
        write_json(output, {"runs": [*others, run]})
        table = output.with_name(f"{output.stem}_{part}.csv")
        write_csv(table, rows)
        print(f"written: {output}, {table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
