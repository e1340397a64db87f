"""How often intervals of effects cover the truth.

    python experiments/effects.py

Made-up corpora have documents whose expected topic shares are known linear functions of a number
x and of a factor with a rare level, or have no effect at all. A topic is rare where the factor has
its first level, so that shares vary much more at the other one. The topics have words of their own.
Each corpus is fitted by LDA, whose topics are matched with the true ones by their words. The 90%
intervals of `fit.effects` and `fit.expected_shares` shall cover the coefficients of the population,
and the difference between the levels. A corpus counts as one trial for a coefficient of a topic.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from study.files import write_csv, write_json
from study.machine import machine, versions

__all__ = ["main", "matched"]

RESULTS = Path(__file__).parent / "results"
NUM_TOPICS, WORDS_EACH, SHARED = 4, 20, 20
OWN = 0.8  # probability of a topic's own words
BASE = np.array([0.05, 0.25, 0.3, 0.4])
OF_X = np.array([0.0, 0.2, -0.2, 0.0])  # x is between -0.5 and 0.5
OF_LEVEL = np.array([0.3, 0.0, -0.1, -0.2])


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    seed: int = 0
    num_corpora: int = 100
    num_docs: int = 200
    lengths: tuple[int, ...] = (30, 150)  # tokens per document
    rare: float = 0.15  # probability of the second level
    spread: float = 4.0  # documents' shares are Dirichlet draws; the sum of their parameters
    sweeps: tuple[int, int] = (100, 100)  # warm-up and sampling
    keep_states: int = 20


STANDARD = Settings("standard")
QUICK = Settings("quick", num_corpora=2, num_docs=40, lengths=(20,), sweeps=(20, 10), keep_states=5)


def simulated(settings: Settings, length: int, size: float, seed: int) -> tuple[Any, Any, Any]:
    """Return a corpus, its covariates, and the true word probabilities [K, V]."""
    import bnp_models as bnp

    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.5, 0.5, settings.num_docs)
    late = rng.random(settings.num_docs) < settings.rare
    late[:2] = False, True
    mean = BASE + size * (x[:, None] * OF_X + late[:, None] * OF_LEVEL)
    theta = np.array([rng.dirichlet(settings.spread * row) for row in mean])
    own = np.kron(np.eye(NUM_TOPICS), np.full(WORDS_EACH, OWN / WORDS_EACH))
    phi = np.hstack([own, np.full((NUM_TOPICS, SHARED), (1 - OWN) / SHARED)])
    docs = [rng.choice(phi.shape[1], length, p=share @ phi) for share in theta]
    corpus = bnp.Corpus.from_ids(docs, num_words=phi.shape[1])
    return corpus, {"x": x, "late": late}, phi


def measure(settings: Settings, length: int, size: float) -> list[dict[str, Any]]:
    """Return for each coefficient how often intervals cover it and exclude zero."""
    import bnp_models as bnp

    truth = {
        "x": size * OF_X,
        "late[True]": size * OF_LEVEL,
        "difference": size * OF_LEVEL,
    }
    found: dict[str, list[np.ndarray]] = {name: [] for name in truth}
    for number in range(settings.num_corpora):
        seed = settings.seed + number
        corpus, covariates, phi = simulated(settings, length, size, seed)
        fit = bnp.fit(
            bnp.LDA(NUM_TOPICS, alpha=0.5, beta=0.1), corpus, num_warmup=settings.sweeps[0],
            num_samples=settings.sweeps[1], num_chains=1, keep_states=settings.keep_states,
            seed=seed, progress=False,
        )  # fmt: skip
        order = matched(fit, phi, WORDS_EACH)
        table = fit.effects(covariates, seed=seed)
        for term in ("x", "late[True]"):
            part = table[table["term"] == term].set_index("topic").loc[order]
            found[term].append(part[["effect", "lower", "upper"]].to_numpy())
        table = fit.expected_shares(covariates, by="late", seed=seed)
        part = table[table["late"].astype(bool)].set_index("topic").loc[order]
        columns = ["difference", "difference_lower", "difference_upper"]
        found["difference"].append(part[columns].to_numpy())
    rows = []
    for name, values in truth.items():
        mean, lower, upper = np.moveaxis(np.stack(found[name]), 2, 0)  # [corpora, K] each
        for k, true in enumerate(values):
            covers = (lower[:, k] < true) & (true < upper[:, k])
            rows.append(
                {
                    "tokens per document": length,
                    "effects": "planted" if size else "none",
                    "coefficient": name,
                    "topic": k,
                    "true": float(true),
                    "mean": float(mean[:, k].mean()),
                    "sd": float(mean[:, k].std()),
                    "width": float((upper[:, k] - lower[:, k]).mean()),
                    "covered": int(covers.sum()),
                    "excludes zero": int(((lower[:, k] > 0) | (upper[:, k] < 0)).sum()),
                    "of": settings.num_corpora,
                }
            )
    return rows


def matched(fit: Any, phi: np.ndarray, num_words: int) -> list[int]:
    """Return the number of the fitted topic that is each true one, by its most probable words."""
    words = fit.topic_words(num_words=num_words)
    alike = np.zeros((len(phi), len(phi)))
    for topic, part in words.groupby("topic"):
        ids = [fit.dataset.vocabulary.index(word) for word in part["word"]]
        alike[:, topic] = phi[:, ids] @ part["probability"]
    return alike.argmax(axis=1).tolist()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write a JSON file and a table."""
    parser = argparse.ArgumentParser(description="How often intervals of effects cover the truth.")
    parser.add_argument("--output", type=Path, help="the JSON file; the CSV file goes beside it")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    parser.add_argument("--seed", type=int, default=0, help="of the first corpus")
    options = parser.parse_args(argv)
    settings = dataclasses.replace(QUICK if options.quick else STANDARD, seed=options.seed)
    output = options.output or RESULTS / f"effects_{settings.size}.json"
    today, begun, rows = date.today().isoformat(), time.perf_counter(), []
    for length in settings.lengths:
        for size in (0.0, 1.0):
            rows += measure(settings, length, size)
            part = rows[-3 * NUM_TOPICS :]
            covered, of = (sum(row[name] for row in part) for name in ("covered", "of"))
            name = part[0]["effects"]
            print(f"{length} tokens, effects {name}: {covered} of {of} covered", flush=True)
    given = " --quick" if options.quick else ""
    given += f" --seed {options.seed}" if options.seed else ""
    about = {
        "command": f"python experiments/effects.py{given}",
        "begun": today,
        "settings": json.loads(json.dumps(dataclasses.asdict(settings))),
        "machine": machine(),
        "versions": versions([Path(__file__)]),
        "seconds": round(time.perf_counter() - begun, 1),
        "rows": rows,
    }
    write_json(output, about)
    write_csv(output.with_suffix(".csv"), rows)
    print(f"written: {output}, {output.with_suffix('.csv')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
