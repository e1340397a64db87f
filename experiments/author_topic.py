"""Held-out perplexity of LDA, the author-topic model and their nonparametric forms, with gensim's.

    python experiments/author_topic.py --data FOLDER

What Bleier's note leaves open: which of them predicts best, and does inferring the number of topics
cost anything? A tenth of the documents is split into halves; the first halves are fitted together
with all other documents, the second ones are predicted, by LDA and the HDP from the words of the
first half, by the author-topic models from the authors alone. Every fit is written to the JSON file
as soon as it is done, and the same command goes on where an interrupted one stopped.
"""

import argparse
import csv
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
COLOURS = {
    "LDA": "#0072B2", "HDPLDA": "#56B4E9", "AuthorTopicModel": "#D55E00",
    "NonparametricAuthorTopicModel": "#E69F00", "gensim AuthorTopicModel": "#999999",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Settings:
    """Size of a run; `FULL` took what the documentation of the results says."""

    size: str
    max_docs: int | None = 400
    min_count: int = 10  # rarer words are dropped
    topics: tuple[int, ...] = (25, 50, 100)
    beta: float = 0.01
    num_warmup: int = 150
    num_samples: int = 100
    num_chains: int = 4
    keep_states: int = 5  # per chain
    gensim_passes: tuple[int, ...] = (1, 4)
    seed: int = 0


STANDARD = Settings("standard")
FULL = Settings(
    "full", max_docs=None, topics=(25, 50, 100, 200, 400), num_warmup=1000, num_samples=1000,
    keep_states=10, gensim_passes=(1, 5, 20),
)  # fmt: skip
QUICK = Settings(
    "quick", topics=(3,), num_warmup=4, num_samples=4, num_chains=2, keep_states=2,
    gensim_passes=(1,),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Fit what is not fitted yet, then report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore[reportOptionalMemberAccess]
    data = os.environ.get("BNP_DATA") or None
    parser.add_argument("--data", default=data, help="folder with nips12.npz; default: $BNP_DATA")
    parser.add_argument("--output", help="the JSON file; the table and the picture go beside it")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a small simulated corpus, in seconds")
    size.add_argument("--full", action="store_true", help="all documents, for many hours")
    arguments = parser.parse_args(argv)
    settings = QUICK if arguments.quick else FULL if arguments.full else STANDARD
    if not arguments.quick and not arguments.data:
        parser.error("--data FOLDER is needed: the folder with nips12.npz")
    output = Path(arguments.output or RESULTS / f"author_topic_{settings.size}.json")
    corpora = split(load(settings, arguments.data), settings.seed)
    train = corpora[0]
    run = open_run(output, settings, train.digest)
    print(f"{train!r}; results go to {output}", flush=True)
    for name, measure in plan(settings, corpora):
        if name in run["fits"]:
            continue
        print(f"{name} ...", end=" ", flush=True)
        found = measure()
        run["fits"][name] = found
        write(output, json.dumps(run, indent=1))
        error = f" +- {found['error']:.1f}" if found.get("error") is not None else ""
        print(f"perplexity {found['perplexity']:.1f}{error} in {found['seconds']:.0f} s")
    report(run, output)
    return 0


def load(settings: Settings, folder: str | None) -> Any:
    """Read the papers of NIPS, or simulate some for a quick look."""
    import bnp_models as bnp

    rng = np.random.default_rng(settings.seed)
    if settings.size == "quick":
        phi = rng.dirichlet(np.full(30, 0.1), 3)
        theta = rng.dirichlet(np.full(3, 0.2), 12)
        authors = [sorted(rng.choice(12, rng.integers(1, 4), replace=False)) for _ in range(60)]
        docs = [
            [int(rng.choice(30, p=phi[rng.choice(3, p=theta[rng.choice(a)])])) for _ in range(25)]
            for a in authors
        ]
        names = [[f"author {j}" for j in a] for a in authors]
        return bnp.Corpus.from_ids(docs, num_words=30, authors=names)
    from bnp_models.readers import read_npz

    assert folder is not None
    corpus = read_npz(Path(folder) / "nips12.npz")
    if settings.max_docs is not None and settings.max_docs < corpus.num_docs:
        corpus = corpus.select(np.sort(rng.permutation(corpus.num_docs)[: settings.max_docs]))
    return corpus.prune(min_count=settings.min_count)


def split(corpus: Any, seed: int) -> tuple[Any, Any, Any]:
    """Return what is fitted, and the two halves of the test documents."""
    import bnp_models as bnp

    train, test = corpus.train_test_split(0.1, seed=seed)
    observed, heldout = test.halves(seed)
    docs = [part.document(d).tolist() for part in (train, observed) for d in range(part.num_docs)]
    authors = [part.authors(d) for part in (train, observed) for d in range(part.num_docs)]
    together = bnp.Corpus.from_ids(
        docs, vocabulary=corpus.vocabulary, authors=authors, author_names=corpus.author_names,
        doc_names=[*train.doc_names, *observed.doc_names],
    )  # fmt: skip
    return together, observed, heldout


def plan(settings: Settings, corpora: Any) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Return what is fitted, by name."""
    import numpyro.distributions as dist

    import bnp_models as bnp

    quick = settings.size == "quick"  # most of its time goes into compiling
    prior = 1.0 if quick else dist.Gamma(1.0, 1.0)
    options = {"schedule": "sequential"} if quick else {}
    for k in settings.topics:
        for model in (bnp.LDA, bnp.AuthorTopicModel):
            made = model(k, alpha=prior, beta=settings.beta)
            yield f"{model.__name__}/{k}", lambda m=made: fit(m, settings, corpora, **options)
        for passes in settings.gensim_passes if find_spec("gensim") else ():
            name = f"gensim AuthorTopicModel, {passes} passes/{k}"
            yield name, lambda k=k, p=passes: fit_gensim(k, p, settings, corpora)
    for model in (bnp.HDPLDA, bnp.NonparametricAuthorTopicModel):
        made = model(alpha=prior, gamma=prior, beta=settings.beta)
        start = {"init_topics": max(settings.topics), **options}
        yield f"{model.__name__}/inferred", lambda m=made, s=start: fit(m, settings, corpora, **s)


def fit(model: Any, settings: Settings, corpora: Any, **options: Any) -> dict[str, Any]:
    """Fit one of our models; its score, its convergence and the speed of its sampler."""
    import bnp_models as bnp
    from bnp_models import arviz_data
    from bnp_models.evaluation import known_authors

    train, observed, heldout = corpora
    start = time.perf_counter()
    found = bnp.fit(
        model, train, num_warmup=settings.num_warmup, num_samples=settings.num_samples,
        num_chains=settings.num_chains, keep_states=settings.keep_states, seed=settings.seed,
        progress=False, **options,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    if hasattr(model, "author_mixtures"):
        states = arviz_data.group(found.data, "states")
        score = known_authors(model.author_mixtures(states, train), heldout)
    else:
        from bnp_models.evaluation import document_completion

        score = document_completion(found.mixtures, observed, heldout)
    sweeps = settings.num_warmup + settings.num_samples
    table = found.convergence().table
    return {
        "perplexity": score.perplexity,
        "error": score.perplexity * score.error_docs,
        "error_chains": score.perplexity * score.error_chains,
        "seconds": seconds,
        "tokens_per_second": settings.num_chains * sweeps * train.num_tokens / seconds,
        "topics": float(np.mean(found.posterior["num_topics_used"])),
        "convergence": json.loads(table.reset_index().to_json(orient="records")),
    }


def fit_gensim(k: int, passes: int, settings: Settings, corpora: Any) -> dict[str, Any]:
    """Fit gensim's variational author-topic model and predict with its point estimates."""
    from gensim.models import AuthorTopicModel

    train, _, heldout = corpora
    bags = [
        list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in train.to_counts()
    ]
    author2doc: dict[str, list[int]] = {}
    for d in range(train.num_docs):
        for author in train.authors(d):
            author2doc.setdefault(author, []).append(d)
    start = time.perf_counter()
    model = AuthorTopicModel(
        bags, num_topics=k, id2word=dict(enumerate(train.vocabulary)), author2doc=author2doc,
        passes=passes, eta=settings.beta, alpha="auto", random_state=settings.seed,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    phi = np.asarray(model.get_topics(), np.float64)
    known = {a: np.array(model.state.gamma[i]) for a, i in model.author2id.items()}
    log_prob = 0.0
    for d in range(heldout.num_docs):
        shares = [known[a] / known[a].sum() for a in heldout.authors(d) if a in known]
        theta = np.mean(shares, axis=0)
        log_prob += np.log((theta @ phi)[heldout.document(d)]).sum()
    perplexity = float(np.exp(-log_prob / heldout.num_tokens))
    return {"perplexity": perplexity, "seconds": seconds, "topics": k}


def open_run(output: Path, settings: Settings, digest: str) -> dict[str, Any]:
    """Read what is there of the same run, or begin one."""
    head = {"settings": json.loads(json.dumps(dataclasses.asdict(settings))), "data": digest}
    if not output.exists():
        output.parent.mkdir(parents=True, exist_ok=True)
        return {**head, "fits": {}}
    run = json.loads(output.read_text())
    if any(run.get(name) != value for name, value in head.items()):
        sys.exit(f"{output} holds a run of other settings or data: give another --output")
    return run


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_suffix(f"{path.suffix}.part")
    part.write_text(text)
    os.replace(part, path)


def report(run: dict[str, Any], output: Path) -> None:
    """Print the table, and write it and the picture beside the JSON file."""
    columns = ("perplexity", "error", "topics", "seconds", "tokens_per_second")
    with output.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("model", "topics asked for", *columns, "worst R-hat"))
        for name, found in run["fits"].items():
            values = [f"{found[c]:.6g}" if found.get(c) is not None else "" for c in columns]
            hats = [row.get("rhat") for row in found.get("convergence", ())]
            worst = max((h for h in hats if h is not None), default=None)
            row = [*name.split("/"), *values, "" if worst is None else f"{worst:.3f}"]
            writer.writerow(row)
            print(" | ".join(row))
    draw(run, output.with_suffix(".png"))


def draw(run: dict[str, Any], path: Path) -> None:
    """Draw perplexity against the number of topics."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    curves: dict[str, list[dict[str, Any]]] = {}
    for name, found in run["fits"].items():
        curves.setdefault(name.split("/")[0], []).append(found)
    for name, points in curves.items():
        x = [point["topics"] for point in points]
        y = [point["perplexity"] for point in points]
        error = [point.get("error") or 0.0 for point in points]
        one = len(points) == 1
        ax.errorbar(
            x, y, yerr=error, label=name, marker="D" if one else "o", capsize=2,
            ls="" if one else "-", color=COLOURS[name.split(",")[0]],
        )  # fmt: skip
    ax.set_xlabel("topics in use")
    ax.set_ylabel("perplexity of the second halves of test documents")
    ax.legend(fontsize="small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
