"""Which topics do several libraries find in the same texts, and do they find them again.

    python experiments/comparison.py --data FOLDER

Each function below is what one would write with that library to see ten words of each topic. Every
one runs with several seeds, each in a process of its own, and the ten words are judged alike. A
library that is not installed is not run, and the table says so.
"""

import argparse
import gzip
import importlib
import importlib.util
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from study.files import read_json, write_json
from study.machine import machine

__all__ = ["LIBRARIES", "found_again", "main", "read_texts", "report"]

RESULTS = Path(__file__).parent / "results"
GROUPS = (
    "comp.graphics", "rec.autos", "rec.sport.hockey", "sci.crypt", "sci.med", "sci.space",
    "soc.religion.christian", "talk.politics.mideast",
)  # fmt: skip
PER_GROUP = 300  # messages, the first ones
ALIKE = 5  # of ten words: then two topics count as the same one

Topics = list[list[str]]


def with_bnp_models(texts: Sequence[str], seed: int) -> Topics:
    """Four chains of LDA, from this library."""
    import bnp_models as bnp

    corpus = bnp.Corpus.from_texts(texts)
    fit = bnp.fit(bnp.LDA(10), corpus, num_warmup=200, num_samples=100, seed=seed)
    return [words.split(", ") for words in fit.topics()["words"]]


def with_tomotopy(texts: Sequence[str], seed: int) -> Topics:
    """One chain of LDA, by a sampler whose workers use counts that are out of date."""
    import tomotopy

    lda = tomotopy.LDAModel(k=10, seed=seed)
    for text in texts:
        lda.add_doc(text.split())
    lda.train(600)
    return [[word for word, _ in lda.get_topic_words(k, top_n=10)] for k in range(lda.k)]


def with_gensim(texts: Sequence[str], seed: int) -> Topics:
    """LDA by online variational inference."""
    from gensim.corpora import Dictionary
    from gensim.models import LdaModel

    documents = [text.split() for text in texts]
    words = Dictionary(documents)
    bags = [words.doc2bow(document) for document in documents]
    lda = LdaModel(
        bags, 10, words, passes=20, alpha="auto", eta="auto", random_state=seed, eval_every=None
    )
    found = lda.show_topics(10, num_words=10, formatted=False)
    return [[word for word, _ in topic] for _, topic in found]


def with_sklearn(texts: Sequence[str], seed: int) -> Topics:
    """LDA by variational inference."""
    from sklearn.decomposition import LatentDirichletAllocation
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(texts)
    lda = LatentDirichletAllocation(10, max_iter=50, random_state=seed).fit(counts)
    words = vectorizer.get_feature_names_out()
    return [words[np.argsort(-topic)[:10]].tolist() for topic in lda.components_]


def with_bertopic(texts: Sequence[str], seed: int) -> Topics:
    """Clusters of documents, embedded by tf-idf and SVD in place of a language model."""
    from bertopic import BERTopic
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from umap import UMAP

    embedding = make_pipeline(TfidfVectorizer(), TruncatedSVD(100, random_state=seed))
    umap = UMAP(15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed)
    model = BERTopic(embedding_model=embedding, umap_model=umap)
    model.fit_transform(texts)
    return [[word for word, _ in model.get_topic(k)] for k in range(10)]  # from the largest on


LIBRARIES: dict[str, tuple[Callable[[Sequence[str], int], Topics], str]] = {
    "bnp-models, LDA": (with_bnp_models, "bnp_models"),
    "tomotopy, LDA": (with_tomotopy, "tomotopy"),
    "gensim, LDA": (with_gensim, "gensim"),
    "scikit-learn, LDA": (with_sklearn, "sklearn"),
    "BERTopic": (with_bertopic, "bertopic"),
}
"""Name to function and the module that it needs."""


def read_texts(folder: str, groups: Sequence[str] = GROUPS) -> list[str]:
    """Return the first training messages of some newsgroups, as words between spaces.

    The words are those of three letters or more in at least ten messages and in at most a fifth of
    them, without scikit-learn's English stop words. So all libraries count the same words.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    with gzip.open(Path(folder) / "news20_text.jsonl.gz", "rt", encoding="utf-8") as lines:
        messages = [json.loads(line) for line in lines]
    texts = []
    for group in groups:
        own = [m["body"] for m in messages if m["split"] == "train" and m["group"] == group]
        texts += own[:PER_GROUP]
    vectorizer = CountVectorizer(
        stop_words="english", token_pattern=r"(?u)\b[^\W\d_]{3,}\b", min_df=10, max_df=0.2
    )
    known = vectorizer.fit(texts).vocabulary_
    words = map(vectorizer.build_analyzer(), texts)
    kept = (" ".join(word for word in text if word in known) for text in words)
    return [text for text in kept if text]


def found_again(runs: Sequence[Topics]) -> float:
    """Return the share of the first run's topics that are found in each of the other runs.

    Two topics are the same one if they share half of their ten words; a topic of another run stands
    for one topic at most. The mean is over which run is the first one.
    """
    from scipy.optimize import linear_sum_assignment

    def matched(one: Topics, other: Topics) -> set[int]:
        alike = np.array([[len({*a} & {*b}) for b in other] for a in one])
        rows, columns = linear_sum_assignment(-alike)
        return {int(r) for r, c in zip(rows, columns, strict=True) if alike[r, c] >= ALIKE}

    shares = []
    for i, one in enumerate(runs):
        others = [matched(one, other) for j, other in enumerate(runs) if j != i]
        shares.append(len(set.intersection(*others)) / len(one))
    return float(np.mean(shares))


def lines_of(function: Callable[[Sequence[str], int], Topics]) -> int:
    """Return the number of lines of a function, without its head, docstring and blank lines."""
    body = inspect.getsource(function).split('"""')[2]
    return len([line for line in body.splitlines() if line.strip()])


def report(run: dict) -> str:
    """Return the tables of a run, in Markdown."""
    rows = [
        "| | version | lines | processor seconds | coherence | found again |",
        "|---|---|--:|--:|--:|--:|",
    ]
    shown = []
    for name, (function, _) in LIBRARIES.items():
        if name not in run["measured"]:
            rows.append(f"| {name} | not run | {lines_of(function)} | | | |")
            continue
        one = run["measured"][name]
        low, high = min(one["seconds"]), max(one["seconds"])
        rows.append(
            f"| {name} | {one['version']} | {lines_of(function)} | {low:.0f} to {high:.0f} | "
            f"{np.mean(one['npmi']):.2f} | {100 * found_again(one['topics']):.0f}% |"
        )
        topics = [f"- {', '.join(topic[:8])}" for topic in one["topics"][0]]
        shown.append("\n".join([f"**{name}**", "", *topics]))
    head = (
        f"{run['documents']:,} messages of eight newsgroups, {run['tokens']:,} tokens of "
        f"{run['words']:,} words; {run['seeds']} seeds. {run['machine']['cpu']}, "
        f"{run['machine']['cores']} cores. Made by `{run['command']}`."
    )
    return "\n\n".join([head, "\n".join(rows), *shown]) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run each library with each seed, then write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", default=os.environ.get("BNP_DATA"))
    parser.add_argument("--output", type=Path, default=RESULTS / "comparison.json")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--libraries", default=";".join(LIBRARIES), help="names, by semicolons")
    parser.add_argument("--groups", default=",".join(GROUPS), help="newsgroups, by commas")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # a library, in the process of its own
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if not given.data:
        raise SystemExit("give the folder of the data: --data FOLDER, or BNP_DATA=FOLDER")
    texts = read_texts(given.data, given.groups.split(","))
    if given.one:
        begun = time.process_time()  # of all threads, whatever else the machine does
        topics = LIBRARIES[given.one][0](texts, given.seed)
        seconds = time.process_time() - begun
        print(json.dumps({"topics": topics, "seconds": seconds}))
        return 0
    shape = {
        "documents": len(texts), "tokens": sum(len(text.split()) for text in texts),
        "words": len({word for text in texts for word in text.split()}), "seeds": given.seeds,
    }  # fmt: skip
    run: dict = read_json(given.output) if given.output.exists() else {"measured": {}}
    if run["measured"] and any(run[name] != value for name, value in shape.items()):
        raise SystemExit(f"{given.output} is of other texts or seeds; remove it, or give --output")
    measured: dict[str, dict] = run["measured"]
    run |= {**shape, "machine": machine(), "command": command(argv)}
    for name in given.libraries.split(";"):
        module = LIBRARIES[name][1]
        if name in measured or importlib.util.find_spec(module) is None:
            continue
        made = []
        for seed in range(given.seeds):
            print(f"{name}, seed {seed}", flush=True)
            made.append(_alone(name, seed, given))
        measured[name] = {
            "version": importlib.import_module(module).__version__,
            "seconds": [round(one["seconds"], 1) for one in made],
            "topics": [one["topics"] for one in made],
            "npmi": [_npmi(one["topics"], texts) for one in made],
        }
        write_json(given.output, run)
    text = report(run)
    given.output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def command(argv: Sequence[str] | None) -> str:
    """Return the command, without the place of the data."""
    given = shlex.join(sys.argv[1:] if argv is None else argv)
    return re.sub(
        r"(--data|--output) (\S+)", r"\1 FOLDER", f"python experiments/comparison.py {given}"
    ).strip()


def _alone(name: str, seed: int, given: argparse.Namespace) -> dict:
    words = [sys.executable, __file__, "--data", given.data, "--groups", given.groups]
    words += ["--one", name, "--seed", str(seed)]
    env = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}  # seconds are those of a first run
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}, seed {seed}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _npmi(topics: Topics, texts: Sequence[str]) -> float:
    """Return the mean coherence of the topics, counted in the same texts."""
    import bnp_models as bnp
    from bnp_models.scores.coherence import npmi

    corpus = bnp.Corpus.from_texts(texts, stop_words=None)
    number = {word: v for v, word in enumerate(corpus.vocabulary)}
    words = [[number[w] for w in topic if w in number] for topic in topics]
    return float(np.mean(npmi([w for w in words if len(w) > 1], corpus)))


if __name__ == "__main__":
    sys.exit(main())
