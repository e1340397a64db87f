"""Pictures, tables, reports, scores and files of the smallest fits of every model.

Each works, or is refused by a message that says what is missing.
"""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

import bnp_models as bnp
from bnp_models.results.folder import save_run
from bnp_models.results.result import Delegated

NAMES = ("$a_{$", "$b^$", r"c\frac{$", "_$d$ to $", r"\$e", "$$")
HOW = {"num_warmup": 0, "num_samples": 2, "keep_states": 2, "num_chains": 1, "progress": False}
READS = {
    "AuthorTopicModel": "authors", "NonparametricAuthorTopicModel": "authors",
    "CrossCollectionLDA": "groups", "DifferentialTopicModel": "groups", "MultiTaskHDPLDA": "groups",
    "SparseTransferTopicModel": "groups", "MedLDA": "labels", "SupervisedLDA": "labels",
    "DirichletMultinomialRegression": "covariates",
}  # fmt: skip
FINITE = (
    "AuthorTopicModel", "CrossCollectionLDA", "DifferentialTopicModel",
    "DirichletMultinomialRegression", "LDA", "MedLDA", "PitmanYorLDA", "SupervisedLDA",
)  # fmt: skip
TWO = ("CrossCollectionLDA", "MultiTaskHDPLDA", "SparseTransferTopicModel", "MedLDA",
       "SupervisedLDA", "DirichletMultinomialRegression")  # fmt: skip
"""Models that need two groups, classes or values of a covariate."""
ONE_DRAW = {"num_samples": 1, "keep_states": 1}
SIZES = {
    "one topic": (1, [[0, 1, 0, 2]], {}),
    "one document": (3, [[0, 1, 0, 2]], {}),
    "one token": (1, [[0]], ONE_DRAW),
    "one word": (3, [[0, 0], [0], [0]], {"num_chains": 2, **ONE_DRAW}),
}
REFUSED = {
    "chain_weights": "fit must have weights of its chains",
    "coherence|npmi|evaluate npmi": "give more words, or make top smaller",
    "functionals|plot_functionals|plot_ranks": "must have two chains or more",
    ".*prevalence_by_group": "corpus must have groups",
    "plot_topic_correlation": "topics must be two or more",
    "plot_tempering": "must be of a tempered run",
    "pyldavis": "needs pyLDAvis",
    "effects": "covariates has 2 terms",
    "(effects)": "covariates must be given, for the corpus has none",
    "topics_over_time": "time must have two values or more",
    "document_completion|evaluate .*completion": "no document has two tokens",
    "document_completion": "are part of this model: use left_to_right",
    ".*": "without any factor; there is nothing to align",
    "(plot_)?contrast.*|plot_distances|group_probabilities": "must have two groups or more",
    "plot_distances": "table must have a topic of two groups or more",
    "impute": "have no missing entries",
    "plot_calibration": "bins must be an integer of at most",
}
"""What may be refused, and how."""


def data_of(name, docs):
    """Return documents or rows, with the names that the model reads."""
    if "Factor" in name:
        rows = np.zeros((len(docs), 3), int if "Poisson" in name else float)
        rows[0, :2] = 1
        return bnp.Sources.from_arrays([rows], names=NAMES[:1], feature_names=NAMES[:3])
    if name in TWO and len(docs) == 1:
        docs = docs * 2
    kinds = {
        "groups": [NAMES[d % 2] for d in range(len(docs))],
        "labels": [NAMES[d % 2] for d in range(len(docs))],
        "covariates": {"$y_{$": range(len(docs))},
        "authors": [[NAMES[d % 2], NAMES[2]][: d + 1] for d in range(len(docs))],
    }
    kind = READS.get(name)
    return bnp.Corpus.from_ids(
        docs, vocabulary=NAMES[: max(map(max, docs)) + 1],
        doc_names=[f"{NAMES[0]} {d}" for d in range(len(docs))],
        **({kind: kinds[kind]} if kind else {}),
    )  # fmt: skip


def calls(fit):
    """Return everything that a fit has which needs no argument, by name."""
    found = {}
    for name in dir(type(fit)):
        member = inspect.getattr_static(type(fit), name)
        if name.startswith("_") or not (
            inspect.isfunction(member) or isinstance(member, Delegated)
        ):
            continue
        needed = [
            x for x in inspect.signature(getattr(fit, name)).parameters.values()
            if x.default is x.empty and x.kind not in (x.VAR_KEYWORD, x.VAR_POSITIONAL)
        ]  # fmt: skip
        if not needed:
            found[name] = getattr(fit, name)
    return found


def check(fit, tmp_path):
    """Call everything, and return what was refused."""
    refused = {}
    (folder := tmp_path / "run").mkdir()
    data, count = fit.dataset, getattr(fit.dataset, "num_docs", 0)
    every = calls(fit) | {
        "save": lambda: bnp.Fit.load(fit.save(tmp_path / "draws.nc"), data),
        "report": lambda: fit.report(tmp_path / "page.html"),
        "of_chain": lambda: fit.of_chain(0).text(),
        "pooled": lambda: fit.pooled().text(),
        "save_run": lambda: (save_run(fit, folder), bnp.load(folder)),
    }
    if count:
        every |= {
            "effects": lambda: fit.plot_effects({"$x_{$": np.arange(count)}),
            "topics_over_time": lambda: fit.plot_topics_over_time(np.arange(count)),
            "find_topics": lambda: fit.find_topics([data.vocabulary[0]]),
            "representative_documents": lambda: fit.representative_documents(0),
            "transform": lambda: fit.transform(data),
            "document_completion": lambda: fit.document_completion(data),
            "save_model": lambda: bnp.load(fit.save_model(tmp_path / "model.npz")).topics(),
            "with_labels": lambda: fit.with_labels({0: "$l_{$"}).plot_topic_words(),
        }
    for score in fit.model.scores:
        every[f"evaluate {score}"] = lambda score=score: fit.evaluate(score, data, num_words=2)
    if getattr(data, "author_names", ()):
        every["plot_author_topics"] = lambda: fit.plot_author_topics(data.author_names[0])
        every["infer_author"] = lambda: fit.infer_author(data)
        every["surprising"] = lambda: fit.surprising_documents(data.author_names[0])
    if hasattr(fit, "predict"):
        every["predict"] = lambda: fit.predict(data)
    if getattr(fit.model, "has_probabilities", False):
        every["plot_calibration"] = lambda: fit.plot_calibration(data)
    if hasattr(fit, "group_probabilities"):
        every["group_probabilities"] = lambda: fit.group_probabilities(data)
    for name, call in every.items():
        try:
            found = call()
        except (ValueError, ImportError) as error:
            refused[name] = str(error)
        else:
            first = np.asarray(found, object).ravel()[:1].tolist()
            if first and isinstance(first[0], Axes):
                first[0].figure.canvas.draw()
        finally:
            plt.close("all")
    return refused


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "name", [x if x == "LDA" else pytest.param(x, marks=pytest.mark.slow) for x in bnp.MODELS]
)
@pytest.mark.filterwarnings("ignore")
def test_smallest_fits(name, size, no_sweeps, tmp_path):
    num_topics, docs, options = SIZES[size]
    model = getattr(bnp, name)(*([num_topics] if name in FINITE else []))
    with no_sweeps():
        fit = bnp.fit(model, data_of(name, docs), **(HOW | options))
    for call, said in check(fit, tmp_path).items():
        known = [text for names, text in REFUSED.items() if re.fullmatch(names, call)]
        assert any(text in said for text in known), f"{call}: {said}"
