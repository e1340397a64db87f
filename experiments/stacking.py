"""What weights of chains by stacking are worth on held-out documents.

    python experiments/stacking.py --data FOLDER

Chains of LDA and of the HDP on real text do not agree. A user can count all of them alike, choose
one, or weight them by stacking (Yao, Vehtari and Gelman, JMLR 23, 2022). Documents are split into
three parts: the chains are fitted to the first, weights and the best chain are chosen on the
second, and document completion of the third compares the choices. Errors are over the documents of
the third part, for these chains.
"""

import argparse
import dataclasses
import json
import math
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from study.files import read_json, write_csv, write_json
from study.machine import machine, versions
from study.scores import documents_error

if TYPE_CHECKING:
    from bnp_models import Corpus
    from bnp_models.base.model import Model

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    seed: int = 0
    num_topics: int = 50
    num_chains: int = 6
    sweeps: tuple[int, int] = (300, 200)  # of LDA, warm-up and sampling
    sweeps_hdp: tuple[int, int] = (120, 80)  # a sweep of the HDP takes longer
    keep_states: int = 10  # per chain
    share_to_weight: float = 0.2  # of the documents; as many are left for the comparison


STANDARD = Settings("standard")
QUICK = Settings(
    "quick", num_topics=3, num_chains=2, sweeps=(4, 4), sweeps_hdp=(4, 4), keep_states=2
)


def corpora(settings: Settings, folder: str | None) -> Iterator[tuple[str, Any]]:
    """Yield the names of the corpora and the corpora; simulated documents with `--quick`."""
    import bnp_models as bnp
    from bnp_models.data.readers import read_npz
    from bnp_models.data.text_files import read_jsonl

    if settings.size == "quick":
        rng = np.random.default_rng(settings.seed)
        topics = rng.dirichlet(np.full(20, 0.2), 3)
        shares = rng.dirichlet(np.full(3, 0.3), 40)
        docs = [rng.choice(20, 12, p=share @ topics) for share in shares]
        yield "simulated", bnp.Corpus.from_ids(docs, num_words=20)
        return
    if folder is None:
        raise SystemExit("give the folder of the data: --data FOLDER, or BNP_DATA=FOLDER")
    yield "mlabs", read_npz(Path(folder) / "mlabs.npz")
    abstracts = Path(folder) / "nips12_abstracts.jsonl.gz"
    corpus = read_jsonl(abstracts, text="abstract", stop_words="english")
    yield "nips12 abstracts", corpus.prune(min_count=5)


def compare(
    model: "Model", sweeps: tuple[int, int], corpus: "Corpus", settings: Settings
) -> dict[str, Any]:
    """Fit a model, and score every choice of chains."""
    import bnp_models as bnp
    from bnp_models.posterior.stacking import stack

    share = settings.share_to_weight
    rest, test = corpus.train_test_split(share, seed=settings.seed)
    train, second = rest.train_test_split(share / (1 - share), seed=settings.seed + 1)
    begun = time.perf_counter()
    fit = bnp.fit(
        model,
        train,
        num_warmup=sweeps[0],
        num_samples=sweeps[1],
        num_chains=settings.num_chains,
        keep_states=settings.keep_states,
        seed=settings.seed,
        progress=False,
    )
    fitted = time.perf_counter()
    stacked = fit.stacked(second)
    table = stacked.chain_weights()
    weighed = time.perf_counter()
    choosing, score = fit.document_completion(second), fit.document_completion(test)
    chains, one = len(table), np.eye(len(table))
    lp = fit.data["sample_stats"]["lp"].mean("draw").to_numpy()
    doc = [np.bincount(c.halves(0)[1].doc, minlength=c.num_docs) for c in (second, test)]
    by_document = _by_document(choosing.chain_log_prob, second)
    weights = {
        "equal weights": np.full(chains, 1 / chains),
        "best chain by lp": one[int(lp.argmax())],
        "best chain by score": one[int(table["log_prob"].argmax())],
        "stacked": table["weight"].to_numpy(),
        "stacked by document": stack(by_document),
    }
    records = {
        name: _by_document([np.log(w @ np.exp(score.chain_log_prob))], test)[0]
        for name, w in weights.items()
    }
    alone = [_perplexity(of, doc[1]) for of in _by_document(score.chain_log_prob, test)]
    rows = []
    for name, w in weights.items():
        gain = records[name] - records["equal weights"]
        per_token = float(gain.sum() / doc[1].sum())
        rows.append(
            {
                "choice": name,
                "perplexity": _perplexity(records[name], doc[1]),
                "gain_over_equal": per_token,  # nats
                "error": documents_error(gain, per_token, doc[1]),
                "effective_chains": float(1 / (w**2).sum()),
                "largest_weight": float(w.max()),
            }
        )
    return {
        "versions": versions([Path(__file__)]),
        "documents": [train.num_docs, second.num_docs, test.num_docs],
        "fitted_tokens": train.num_tokens,
        "scored_tokens": [int(d.sum()) for d in doc],
        "seconds_to_fit": round(fitted - begun, 1),
        "seconds_to_stack": round(weighed - fitted, 1),
        "lp": fit.data["sample_stats"]["lp"].mean("draw").to_numpy().round(1).tolist(),
        "perplexity_of_chains": alone,
        "weights": {name: np.round(w, 5).tolist() for name, w in weights.items()},
        "rows": rows,
    }


def _by_document(log_prob: Sequence[np.ndarray] | np.ndarray, corpus: "Corpus") -> Any:
    """Add up the tokens of each document that document completion scored."""
    doc = np.asarray(corpus.halves(0)[1].doc)
    return np.stack([np.bincount(doc, row, minlength=corpus.num_docs) for row in log_prob])


def _perplexity(log_prob: np.ndarray, tokens: np.ndarray) -> float:
    return math.exp(-float(log_prob.sum() / tokens.sum()))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write a JSON file and a table."""
    parser = argparse.ArgumentParser(description="What stacking of chains is worth.")
    parser.add_argument("--data", default=os.environ.get("BNP_DATA"), help="default: $BNP_DATA")
    parser.add_argument("--output", type=Path, help="the JSON file; the CSV file goes beside it")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    parser.add_argument("--seed", type=int, default=0, help="of splits and chains")
    options = parser.parse_args(argv)
    settings = dataclasses.replace(QUICK if options.quick else STANDARD, seed=options.seed)
    output = options.output or RESULTS / f"stacking_{settings.size}.json"
    import bnp_models as bnp

    given = " --quick" if options.quick else " --data FOLDER"
    given += f" --seed {shlex.quote(str(options.seed))}" if options.seed else ""
    found: dict[str, Any] = {
        "command": f"python experiments/stacking.py{given}",
        "settings": json.loads(json.dumps(dataclasses.asdict(settings))),
        "machine": machine(),
        "measured": {},
    }
    if output.exists() and (old := read_json(output))["settings"] == found["settings"]:
        found = old  # go on where the same command was interrupted
    models = (
        (bnp.LDA(settings.num_topics), settings.sweeps),
        (bnp.HDPLDA(beta=0.05), settings.sweeps_hdp),
    )
    every = list(corpora(settings, options.data))
    for model, sweeps in models:
        for data, corpus in every:
            name = f"{data}, {type(model).__name__}"
            if name not in found["measured"]:
                found["measured"][name] = compare(model, sweeps, corpus, settings)
            say(name, found["measured"][name])
            write_json(output, found)
    rows = [
        {"data and model": name, **row}
        for name, measured in found["measured"].items()
        for row in measured["rows"]
    ]
    write_csv(output.with_suffix(".csv"), rows)
    print(f"written: {output}, {output.with_suffix('.csv')}")
    return 0


def say(name: str, measured: dict[str, Any]) -> None:
    """Print what was measured of one model and corpus."""
    print(
        f"{name}: {measured['fitted_tokens']} tokens fitted in {measured['seconds_to_fit']} s, "
        f"stacked in {measured['seconds_to_stack']} s"
    )
    for row in measured["rows"]:
        print(
            f"  {row['choice']:<20} perplexity {row['perplexity']:8.2f}, gain over equal weights "
            f"{row['gain_over_equal']:+.5f} ({row['error']:.5f}) nats per token, "
            f"{row['effective_chains']:.2f} chains",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
