"""Corpora on which chains mix, and corpora of the same size on which they do not.

    python experiments/mixing.py --data FOLDER

Four chains with the default schedule and the default, overdispersed starts are judged twice: by the
label-free scalars that `fit.convergence()` looks at, and by all functionals of
`fit.functionals()`, with the same limits (R-hat of 1.01, 400 effective draws over all chains). Two
corpora are drawn from the program of LDA; "sharp" has ten topics of few words each, which catch one
plain chain of four. The others are samples of real corpora, such as 300 of the blog entries of KOS:
with three topics its chains mix, with more they do not. Tempered chains run beside plain ones that
take as long.

Seconds run from the call of `fit` to its return; compiling counts, and nothing is compiled before.
"""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from study.cells import Cell
from study.command import Study, parser_of, run_study
from study.curves import Curve, Panel, draw
from study.frames import DataFrame
from study.report import Table, head, write_report

__all__ = ["QUICK", "STANDARD", "Settings", "cells", "main", "report", "row"]

MAX_RHAT, MIN_ESS = 1.01, 400
MIN_DRAWS = 8  # of a small run
TEMPERED = ("barrier", "ladder", "round_trips")
TITLE = "Corpora on which chains mix"


class Fit(NamedTuple):
    """What is fitted to a corpus; hyperparameters called "prior" have the prior Gamma(1, 1)."""

    model: str
    parameters: Mapping[str, float | str]
    sweeps: tuple[int, int]  # warm-up and draws of the standard size; scans of tempered chains
    tempering: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}  # of the chains
    thinning: int = 1
    documents: int | None = None  # of the sample, where it is smaller than those of other fits
    corpus_seed: int = 0


SEQUENTIAL = {"schedule": "sequential"}


def _small(
    model: str, parameters: Mapping[str, Any], *, num_replicas: int, documents: int,
    scans: tuple[int, int] = (4000, 60000), sweeps: tuple[int, int] = (1000, 200000),
) -> tuple[Fit, Fit]:  # fmt: skip
    """Return tempered chains of a small sample, and plain ones that take about as long."""
    return (
        Fit(
            model, parameters, scans, {"num_replicas": num_replicas}, SEQUENTIAL, thinning=10,
            documents=documents,
        ),
        Fit(model, parameters, sweeps, thinning=100, documents=documents),
    )  # fmt: skip


LEARNED = {"alpha": "prior", "beta": "prior"}
TEN_TOPICS = {"num_topics": 10, "alpha": 0.1, "beta": 0.01}
SHARP_TOPICS = {"num_topics": 10, "alpha": 0.1, "beta": 0.02}
HDP = {"alpha": 1.0, "gamma": 1.0, "beta": 0.05}
SHARP: dict[str, Any] = {"documents": 150, "corpus_seed": 2}
FAR = {"num_replicas": 6, "end": {"alpha": 2.0, "beta": 8.0}}
FITS = {
    "synthetic": (
        Fit("LDA", {"num_topics": 5, **LEARNED}, (1000, 10000)),
        Fit("HDPLDA", {"alpha": 1.0, "gamma": 1.0, "beta": 0.1}, (3500, 4000)),
        Fit("HDPLDA", {"alpha": 1.0, "gamma": 1.0, "beta": 0.1}, (7000, 6000)),
    ),
    "sharp": (
        Fit("LDA", SHARP_TOPICS, (3000, 24000), FAR, SEQUENTIAL, thinning=4, **SHARP),
        Fit("LDA", SHARP_TOPICS, (1000, 60000), thinning=10, **SHARP),
    ),
    "kos": (
        Fit("LDA", {"num_topics": 3, **LEARNED}, (1000, 20000)),
        Fit("LDA", {"num_topics": 4, **LEARNED}, (1000, 20000)),
    ),
    "kos-many": (
        Fit("LDA", TEN_TOPICS, (1000, 20000)),
        Fit("HDPLDA", HDP, (1000, 4000)),
    ),
    "tempered": (
        *_small("LDA", TEN_TOPICS, num_replicas=14, documents=100),
        Fit("LDA", TEN_TOPICS, (2000, 24000), {"num_replicas": 24}, SEQUENTIAL, thinning=10),
        Fit("LDA", TEN_TOPICS, (1000, 300000), thinning=100),
    ),
    "hdp": (
        Fit("HDPLDA", HDP, (2000, 14000), {"num_replicas": 24}, SEQUENTIAL, 10, documents=100),
        *_small(
            "HDPLDA",
            HDP,
            num_replicas=24,
            documents=100,
            scans=(2000, 56000),
            sweeps=(1000, 400000),
        ),
    ),
    "authors": _small(
        "AuthorTopicModel",
        TEN_TOPICS,
        num_replicas=15,
        documents=150,
        scans=(2000, 20000),
        sweeps=(1000, 80000),
    ),
    "labels": _small("SupervisedLDA", TEN_TOPICS, num_replicas=13, documents=60),
}
"""By part. "kos-many" and those after it have the usual settings for topics that people read."""

DATA: dict[str, str] = dict.fromkeys(("kos", "kos-many", "tempered", "hdp"), "kos.npz") | {
    "authors": "mlabs.npz",
    "labels": "poliblog5k.npz",
}
LABELS = {"poliblog5k": "rating"}  # of the documents of a file, which have others beside them


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    cores: int = 2
    seed: int = 0  # of chains
    corpus_seed: int = 0
    num_chains: int = 4
    keep_states: int = 1000  # per chain, for functionals
    documents: int = 300
    words: int = 300  # of the real corpus: the most frequent ones in at most 30% of documents
    drawn_words: int = 100  # of the corpus that is drawn from the model
    drawn_length: int = 30
    shorter: int = 1  # divides the numbers of sweeps


STANDARD = Settings("standard")
QUICK = Settings(
    "quick", cores=1, num_chains=2, keep_states=10, documents=30, words=50, drawn_words=20,
    drawn_length=8, shorter=500,
)  # fmt: skip


def drawn_from_lda(
    settings: Settings, num_topics: int = 5, alpha: float = 0.2, beta: float = 0.1
) -> Any:
    """Draw a corpus from the program of LDA.

    Authors and labels, for models that need them, have nothing to do with the words.
    """
    import jax
    from numpyro.infer import Predictive

    import bnp_models as bnp

    length, num_words = settings.drawn_length, settings.drawn_words
    template = bnp.Corpus.from_ids([[0] * length] * settings.documents, num_words=num_words)
    program = Predictive(bnp.LDA(num_topics, alpha=alpha, beta=beta), num_samples=1)
    words = program(jax.random.key(settings.corpus_seed), template, observed=False)["w"][0]
    documents = np.asarray(words).reshape(settings.documents, length).tolist()
    number = range(settings.documents)
    return bnp.Corpus.from_ids(
        documents, num_words=num_words, authors=[[f"author {i % 5}"] for i in number],
        labels=[i % 2 for i in number],
    )  # fmt: skip


def sample_of(path: Path, settings: Settings) -> Any:
    """Return some documents of a corpus, with its most frequent words."""
    chosen = _documents_of(path, settings, 0, settings.documents)
    sample = chosen.prune(min_df=5, max_df=0.3)
    count = np.bincount(np.asarray(sample.word), minlength=sample.num_words)
    frequent = np.sort(np.argsort(-count, kind="stable")[: settings.words])
    return sample.with_vocabulary([sample.vocabulary[v] for v in frequent])


def others_of(path: Path, settings: Settings, sample: Any, number: int) -> Any:
    """Return documents of the corpus that are not in its sample, with the words of the sample."""
    others = _documents_of(path, settings, settings.documents, number)
    return others.with_vocabulary(sample.vocabulary)


def _documents_of(path: Path, settings: Settings, first: int, number: int) -> Any:
    """Return some documents of a corpus that is shuffled, from one on, in their old order.

    Authors of none of them are left out: each sweep would draw their topic shares.
    """
    import bnp_models as bnp
    from bnp_models.data.readers import read_npz

    corpus = read_npz(path, label=LABELS.get(path.stem))
    order = np.random.default_rng(settings.corpus_seed).permutation(corpus.num_docs)
    chosen = corpus.select(np.sort(order[first : first + number]))
    if not chosen.num_authors:
        return chosen
    return bnp.Corpus.from_counts(
        chosen.to_counts(), vocabulary=chosen.vocabulary, doc_names=chosen.doc_names,
        authors=[chosen.authors(d) for d in range(chosen.num_docs)],
    )  # fmt: skip


def model_of(fit: Fit) -> Any:
    """Return the model of a fit."""
    import numpyro.distributions as dist

    import bnp_models as bnp

    given = {n: dist.Gamma(1.0, 1.0) if x == "prior" else x for n, x in fit.parameters.items()}
    return getattr(bnp, fit.model)(**given)


def cells(settings: Settings, folder: str | None, output: Path) -> Iterator[Cell]:
    """Return a cell per fit. Where it was interrupted, a fit goes on from a folder beside the file.

    The seconds of a fit that went on are those of all its sessions.
    """
    for part, fits in FITS.items():
        file = Path(folder) / DATA[part] if folder and part in DATA else None
        drawn = part if part == "sharp" else "synthetic"
        data = drawn if file is None else file.stem
        for fit in fits:
            sweeps = fit.sweeps[0] // settings.shorter, fit.sweeps[1] // settings.shorter
            detail = {**fit.parameters, "num_warmup": sweeps[0], "num_samples": sweeps[1]}
            detail |= {**fit.tempering, **fit.options}
            detail |= {f"end_{name}": factor for name, factor in detail.pop("end", {}).items()}
            if fit.documents:
                detail["documents"] = fit.documents
            thinning = min(fit.thinning, max(1, sweeps[1] // MIN_DRAWS))
            if thinning > 1:
                detail["thinning"] = thinning
            cell = Cell(part, fit.model, dict, data, detail, chain_seed=settings.seed)
            run = output.with_suffix("") / re.sub(r"[^\w.=-]+", "_", cell.key)
            about = fit.parameters if part == "sharp" else {}
            measure = partial(_measure, settings, file or about, fit, sweeps, thinning, run)
            yield dataclasses.replace(cell, measure=measure)


def _measure(
    settings: Settings, source: Path | Mapping[str, Any], fit: Fit, sweeps: tuple[int, int],
    thinning: int, run: Path,
) -> dict[str, Any]:  # fmt: skip
    """Fit, and judge all chains by scalars and by functionals.

    `source` is the file of a real corpus, or the hyperparameters of a drawn one.
    """
    import bnp_models as bnp

    documents = min(fit.documents or settings.documents, settings.documents)
    settings = dataclasses.replace(settings, documents=documents, corpus_seed=fit.corpus_seed)
    real = isinstance(source, Path)
    corpus = sample_of(source, settings) if real else drawn_from_lda(settings, **source)
    tempering = bnp.Tempering(**fit.tempering) if fit.tempering else None
    options: dict[str, Any] = {} if tempering is None else {"tempering": tempering}
    run.parent.mkdir(exist_ok=True)
    made = bnp.fit(
        model_of(fit), corpus, num_warmup=sweeps[0], num_samples=sweeps[1],
        num_chains=settings.num_chains, thinning=thinning,
        keep_states=min(settings.keep_states, sweeps[1] // thinning), seed=settings.seed,
        checkpoint=run, progress=False, **fit.options, **options,
    )  # fmt: skip
    seconds = float(made.data["history"]["seconds"][-1])
    found = made.convergence(max_rhat=MAX_RHAT, min_ess_per_chain=MIN_ESS / settings.num_chains)
    agreed = made.functionals(max_rhat=MAX_RHAT).table.drop(index="scalars", level="kind")
    lp = made.data["sample_stats"]["lp"].transpose("chain", "draw").to_numpy()
    shown = np.unique(np.linspace(0, lp.shape[1] - 1, 200).astype(int))
    result = {
        "documents": corpus.num_docs,
        "tokens": corpus.num_tokens,
        "words": corpus.num_words,
        "seconds": round(seconds, 1),
        "compile_seconds": round(float(made.data.attrs["compile_seconds"]), 1),
        "verdict": found.verdict,
        "scalars": _records(found.table, "rhat", "ess_bulk", "ess_tail", "mean"),
        "functionals": _records(agreed, "rhat", "ess"),
        "kept_states": made.states.sizes["draw"],
        **{name: json.loads(made.data.attrs[name]) for name in TEMPERED if name in made.data.attrs},
        "lp_sweeps": ((shown + 1) * thinning).tolist(),
        "lp": np.round(lp[:, shown].astype(float), 1).tolist(),
    }
    shutil.rmtree(run)
    with contextlib.suppress(OSError):  # there are runs of other processes
        run.parent.rmdir()
    return {**result, "summary": found.summary}


def _records(table: DataFrame, *columns: str) -> dict[str, list[Any]]:
    """Return the quantities of a table that vary, as JSON takes them: lists by column."""
    table = table.loc[table["verdict"] != "constant"]
    names = [" ".join(x) if isinstance(x, tuple) else str(x) for x in table.index]
    values = {c: [float(f"{x:.5g}") for x in table[c]] for c in columns}
    return {"name": names, **values}


def row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of the table of scalars: the largest R-hat, the smallest ESS, and whose."""
    scalars = record["scalars"]
    return {
        "corpus": record["data"],
        **{name: record[name] for name in ("documents", "tokens", "words")},
        "model": model_words(record),
        "sweeps": sweep_words(record),
        "seconds": record["seconds"],
        "seconds_compiling": record["compile_seconds"],
        "scalars": ", ".join(scalars["name"]),
        **_worst(scalars, np.minimum(scalars["ess_bulk"], scalars["ess_tail"])),
        "round_trips": ", ".join(map(str, record.get("round_trips", []))),
        "barrier": ", ".join(f"{x:.1f}" for x in record.get("barrier", [])),
        "verdict": record["verdict"],
    }


def functional_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of the table of functionals: how many pass, and the worst of them."""
    found = record["functionals"]
    rhat, ess = np.array(found["rhat"]), np.array(found["ess"])
    return {
        "corpus": record["data"],
        "documents": record["documents"],
        "model": model_words(record),
        "sweeps": sweep_words(record),
        "kept_states": record["kept_states"],
        "functionals": len(rhat),
        "pass_both_limits": int(((rhat <= MAX_RHAT) & (ess >= MIN_ESS)).sum()),
        "median_Rhat": f"{np.median(rhat):.4f}",
        **_worst(found, ess),
    }


def _worst(found: Mapping[str, Sequence[Any]], ess: np.ndarray) -> dict[str, Any]:
    far, few = int(np.argmax(found["rhat"])), int(ess.argmin())
    return {
        "largest_Rhat": f"{found['rhat'][far]:.4f}", "of": found["name"][far],
        "smallest_ESS": round(float(ess[few])), "ESS_of": found["name"][few],
    }  # fmt: skip


def model_words(record: Mapping[str, Any]) -> str:
    """Say the model and its hyperparameters."""
    names = ("num_topics", "alpha", "gamma", "beta")
    given = [f"{'K' if n == 'num_topics' else n} {record[n]}" for n in names if n in record]
    tempered = ", tempered" if "round_trips" in record else ""
    return f"{record['method']}, {', '.join(given)}{tempered}"


def sweep_words(record: Mapping[str, Any]) -> str:
    """Say the numbers of sweeps of the warm-up and afterwards, or of scans of replicas."""
    numbers = f"{record['num_warmup']} + {record['num_samples']}"
    replicas = record.get("num_replicas")
    return numbers if replicas is None else f"{numbers} scans of {replicas} replicas"


def report(run: dict[str, Any], output: Path) -> str:
    """Write the table and the picture of the log joint density; return the report."""
    records = list(run["cells"].values())
    panels = []
    for r in records:
        chains = enumerate(r["lp"])
        curves = [Curve(f"chain {c}", r["lp_sweeps"], lp, markers=False) for c, lp in chains]
        title = f"{r['documents']} documents of {r['data']}:\n{model_words(r)}"
        panels.append(Panel(title, "sweep after the warm-up", "log joint density", curves))
    draw(panels, output.with_suffix(".png"))
    made = run["settings"]
    about = (
        f"{made['num_chains']} chains, the default schedule (but tempered chains sweep "
        f"sequentially) and starts. Limits: R-hat at most {MAX_RHAT}, and at least {MIN_ESS} "
        "effective draws of all chains together. Seconds run "
        "from the call of `fit` to its return: compiling counts, without a cache."
    )
    scalars = (
        "What `fit.convergence()` judges. The effective sample size is the smaller one of bulk and "
        "tail. A hyperparameter is fixed where it has a number; the others have a Gamma(1, 1) "
        "prior."
    )
    functionals = (
        "What `fit.functionals()` judges by its kept states: the probability that two documents, "
        "or two words, share a topic, and the shares of aligned topics. The effective sample size "
        "is that of the bulk. Of several hundred functionals the largest R-hat is an extreme."
    )
    tables = [
        Table("Scalars", "scalars", [row(r) for r in records], scalars),
        Table("Functionals", "functionals", [functional_row(r) for r in records], functionals),
    ]
    return write_report(output, head(run, TITLE, about), tables)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    study = Study(
        name="mixing",
        title=f"{TITLE}, and the time it takes.",
        settings={"standard": STANDARD, "full": STANDARD, "quick": QUICK},
        parts=tuple(FITS),
        prepare=_prepare,
        report=report,
        modules=[Path(__file__)],
        data_files=DATA,
    )
    return run_study(study, parser_of(study).parse_args(argv))


def _prepare(
    settings: Settings, folder: str | None, output: Path
) -> tuple[dict[str, Any], list[Cell]]:
    """Return the head of the run and its cells; from here on nothing compiled is loaded."""
    if settings.size != "quick":
        os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # read when JAX is imported
    return {}, list(cells(settings, folder, output))


if __name__ == "__main__":
    sys.exit(main())
