"""Every public parameter refuses malformed values: by a `ValueError` that says what to give.

The public interface is found by introspection: `bnp_models.__all__`, the methods of its classes,
and the functions of the modules that users read (all but `INTERNAL`). Each parameter has a kind, by
its name, and each kind a table of malformed values. A new public function joins by being public. A
parameter without a kind, or a required one without a valid value, fails the test.
"""

import argparse
import importlib
import inspect
import itertools
import pkgutil
import re
import types
import uuid
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jaxtyping
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin

import bnp_models as bnp
from bnp_models.baselines.lda_svm import fit_lda_svm
from bnp_models.baselines.variational import fit_program
from bnp_models.baselines.variational_medlda import fit_variational_medlda
from bnp_models.baselines.variational_slda import fit_variational_slda
from bnp_models.cli.command import main, make_parser
from bnp_models.estimators import GroupClassifier, TopicClassifier, TopicEstimator
from bnp_models.posterior import arviz_data, functionals
from bnp_models.results import document_tables, topic_tables
from bnp_models.scores import held_out, retrieval

ROOMS = ("scores", "plots", "posterior", "results", "data", "baselines", "estimators")
INTERNAL = {
    "baselines.label_classes": "of the baselines, whose results have its methods",
    "baselines.mean_field": "of the variational baselines",
    "baselines.variational": "of the variational baselines, whose results have its methods",
    "data.arguments": "the checks themselves",
    "data.checks": "checks of the constructors, which call them with what users gave",
    "data.covariates": "of the constructors, and of the readers and CorpusWriter as checks",
    "data.documents": "of the constructors, and of the readers and CorpusWriter as checks",
    "data.files": "called with paths that the readers checked",
    "data.storage": "of save and load, which check, and of fit and resume",
    "data.texts": "of Corpus.from_texts",
    "data.word_relations": "of Transform, which checks",
    "plots.fonts": "of the pictures",
    "plots.panels": "parts of the pictures",
    "plots.placing": "of the maps of topics",
    "plots.small_topics": "parts of the pictures and of TopicFit.text",
    "posterior.exchanges": "of diagnostics, plot_tempering and fit, with draws of a fit",
    "posterior.chain_drift": "of diagnostics and functionals, called with draws they checked",
    "posterior.representative": "of Fit, with states of its chains",
    "data.design": "of the effects and of topics over time, as checks",
    "results.factor_tables": "methods of FactorFit",
    "results.topic_draws": "what the tables and pictures of topics start from",
    "scores.held_out_score": "of held_out and empirical_likelihood",
    "base.row_annealing": "of held_out_rows, runs compiled programs on checked arrays",
}
"""Modules that users do not call, with the reason."""
INTERNAL_FUNCTIONS = {
    "data.text_files.as_written": "of the readers and the command, with a column of a file",
    "data.text_files.columns_as_covariates": "of the command, with columns of a file",
    "data.text_files.other_delimiter": "of the readers, with the columns of a file",
    "data.text_files.read_columns": "of the command, whose options give the path",
    "data.sources.check_counts": "of the models, which name their argument data",
    "data.sources.check_sources": "of the models, which name their argument data",
    "data.sources.with_features": "of the scores of rows, which check",
    "data.sources.Standardisation": "of GaussianFactorAnalysis, which makes it",
    "data.sources.standardisation": "of GaussianFactorAnalysis, which checks",
    "data.corpus.read_texts": "of Corpus.read_texts and SavedModel.read_texts",
    "data.package_docs.public_docstrings": "of load_package_docs, with its table of packages",
    "data.package_docs.sentences": "of load_package_docs",
    "data.corpus.make_corpus": "of the constructors and readers, which checked the parts",
    "posterior.alignment.by_share": "of align, which made the alignment",
    "posterior.alignment.pair": "of align and match",
    "posterior.alignment.reference_state": "of align",
    "data.corpus.as_corpus": "a check",
    "data.sources.as_sources": "a check",
    "posterior.alignment.as_alignment": "a check",
    "posterior.alignment.as_topic_states": "a check",
    "posterior.arviz_data.check_data": "a check",
    "posterior.factor_states.as_factor_states": "a check",
    "posterior.mixtures.check_mixtures": "a check",
    "posterior.arviz_data.rhat_nested": "of functionals, with groups that it made",
    "posterior.functionals.shared_topics": "of the functionals, which make the pairs",
    "posterior.diagnostics.rank_rhat": "of convergence and functionals, which check the draws",
    "posterior.alignment.number_slots": "of align and align_factors",
    "posterior.arviz_data.one_chain": "of Fit.of_chain, which checks the number",
    "posterior.arviz_data.with_group": "of stacking, which makes the group",
    "posterior.intervals.weighted_quantiles": "of the tables, with weights of stacking",
    "posterior.stacking.chain_weights": "of TopicFit, with draws of a fit",
    "posterior.stacking.weights_table": "of TopicFit.chain_weights, with draws of a fit",
    "posterior.stacking.weights_text": "of TopicFit.text",
    "posterior.stacking.with_weights": "of TopicFit.stacked, which makes the weights",
    "results.document_tables.as_documents": "of transform and match, as a check",
    "results.document_tables.document_theta": "of the tables, which check",
    "results.document_tables.new_documents": "of transform and others, as a check",
    "results.document_tables.unknown_text": "of transform and others, with their numbers",
    "results.document_tables.without_words": "of transform and others, with names of documents",
    "results.document_tables.over_words": "of match, which checks",
    "results.document_tables.shares_of_new": "of transform, which fold-in checks",
    "results.document_tables.topic_counts": "of the tables, which check",
    "results.topic_relations.largest_documents": "of representative_documents, which checks",
    "plots.heat_maps.heat_map": "part of the pictures",
    "plots.heat_maps.interval_name": "part of the pictures",
    "plots.heat_maps.wide": "part of the pictures",
    "results.topic_pictures.chosen_topics": "of the pictures, as a check",
    "results.topic_pictures.rows_of": "of the pictures, which check",
    "results.topic_pictures.number_labels": "of the pictures, which check",
    "results.topic_tables.checked_labels": "of TopicFit.with_labels, as a check",
    "results.topic_tables.counts_by_group": "of the tables, which check",
    "results.topic_tables.join_names": "of the tables, with words that they chose",
    "results.topic_tables.mean_shares": "of the tables, which check",
    "scores.labels.predict_means": "of SupervisedFit.predictions, with states of a fit",
    "posterior.factor_states.cosine": "of match and retrieve, on arrays that they checked",
    "posterior.mixtures.one_by_one": "of the scores and tables, with mixtures that they checked",
    "posterior.mixtures.author_states": "of AuthorFit.author_mixtures, with states of a fit",
    "posterior.mixtures.row_of": "of the scores, which check",
    "posterior.mixtures.mixture_states": "of TopicFit.mixtures, with states of a fit",
    "results.result.interval_columns": "of the tables, which made the values",
    "results.result.put_together": "of Fit.load",
    "results.folder.save_picture": "of save_run and of the command line",
    "results.folder.save_model": "of TopicFit.save_model",
    "scores.held_out.log_evidence": "of group_probabilities, which checks",
    "scores.held_out.word_scores": "of group_probabilities, which checks",
    "scores.held_out_rows.expected_shares": "one state of row_completion",
    "scores.held_out_rows.row_evidence": "one state of predict_rows",
    "scores.held_out_rows.thin": "one step of row_completion",
}
REFUSING = {
    f"OneVsRestFit.{name}"
    for name in ("functionals", "log_likelihood", "posterior_predictive", "prior_predictive")
} | {"TopicFit.plot_tempering", "FactorFit.plot_tempering"}
"""Methods that say to call that of the fit of one class, which is tried out; or which need a
tempered fit, as the function that they call does."""
CHECKED_BY_FIT = ("get_params", "set_params")
"""Methods of estimators that take anything, as scikit-learn asks; `fit` refuses it."""
ESTIMATORS = {
    "estimators.GroupClassifier": GroupClassifier,
    "estimators.TopicClassifier": TopicClassifier,
    "estimators.TopicEstimator": TopicEstimator,
}
"""Their parameters are tried out by a fit."""
MODEL_METHODS = ("__call__", "gibbs", "collapsed", "truncation_bound")
"""Methods of models that users call, those that the documentation shows; `fit` calls the rest."""

OBJECT = object()
NAN, INF = float("nan"), float("inf")


class Of(NamedTuple):
    """A value that is there once the fits are made, by its name in the context."""

    name: str


Table = dict[str, Any]


def count(minimum=1, *, none=False) -> Table:
    bad: Table = {
        "negative": -1, "fraction": 1.5, "whole float": 3.0, "nan": NAN, "inf": INF, "bool": True,
        "string": "3", "bytes": b"3", "list": [3], "dictionary": {}, "object": OBJECT,
        "huge": 10**30, "array": np.array([1, 2]), "complex": 1j,
    }  # fmt: skip
    bad |= {} if none else {"None": None}
    return bad | ({"too small": minimum - 1} if minimum > 0 else {})


def real(*outside, none=False, infinite=False) -> Table:
    bad: Table = {
        "nan": NAN, "-inf": -INF, "bool": True, "string": "0.5", "bytes": b"0.5", "list": [0.5],
        "object": OBJECT, "complex": 1j, "huge": 10**400, "array": np.array([0.5, 0.5]),
    }  # fmt: skip
    bad |= {f"outside: {value}": value for value in outside}
    bad |= {} if none else {"None": None}
    return bad | ({} if infinite else {"inf": INF})


def flag(*, none=False) -> Table:
    bad: Table = {
        "zero": 0, "one": 1, "string": "True", "empty": "", "list": [], "nan": NAN,
        "object": OBJECT, "array": np.array([True, False]),
    }  # fmt: skip
    return bad | ({} if none else {"None": None})


def choice(*, none=False) -> Table:
    bad: Table = {
        "unknown": "nonsense", "empty": "", "number": 1, "bytes": b"x", "list": ["x"],
        "dictionary": {"a": 1}, "bool": True, "object": OBJECT, "array": np.array(["x", "y"]),
    }  # fmt: skip
    return bad | ({} if none else {"None": None})


def text(*, none=False, empty=False) -> Table:
    bad: Table = {"number": 1, "bytes": b"x", "list": ["x"], "bool": True, "nan": NAN}
    bad |= {"object": OBJECT}
    return bad | ({} if none else {"None": None}) | ({} if empty else {"empty": ""})


def path(*, none=False) -> Table:
    return text(none=none) | {"NUL": "a\0b", "dictionary": {}}


def wrong(*left_out: str) -> Table:
    """Objects of other classes, for parameters that take an object."""
    bad: Table = {
        "None": None, "number": 3, "string": "abc", "bytes": b"abc", "list": [1, "a"], "empty": [],
        "dictionary": {"a": 1}, "object": OBJECT, "class": int, "array": np.ones(2), "nan": NAN,
        "bool": True,
    }  # fmt: skip
    return {label: value for label, value in bad.items() if label not in left_out}


def names(*, none=True, length=True) -> Table:
    bad: Table = {
        "string": "ab", "bytes": b"ab", "number": 3, "numbers": [1, 2], "dictionary": {"a": 1},
        "Nones": [None, None], "object": OBJECT, "bool": True, "nan": NAN,
    }  # fmt: skip
    bad |= {"wrong length": ["only"], "empty": []} if length else {}
    return bad | ({} if none else {"None": None})


def numbers_below(*, none=True) -> Table:
    bad: Table = {
        "string": "01", "bytes": b"01", "number": 0, "strings": ["0"], "negative": [-1],
        "too large": [10**6], "fractions": [0.5], "whole floats": [1.0], "nan": [NAN],
        "empty": [], "Nones": [None], "nested": [[0]], "object": OBJECT,
    }  # fmt: skip
    return bad | ({} if none else {"None": None})


def numeric(*, none=False) -> Table:
    """Arrays that are no numbers of the right shape."""
    bad: Table = {
        "string": "ab", "strings": [["a", "b"]], "ragged": [[1], [1, 2]],
        "number": 3, "dictionary": {"a": 1}, "object": OBJECT, "bytes": b"ab", "empty": [],
        "objects": [[OBJECT]], "too many axes": np.ones((2,) * 7),
    }  # fmt: skip
    return bad | ({} if none else {"None": None})


SEED = count(0) | {"too many bits": 2**40}
SEED.pop("too small", None)
DF: Table = {
    "negative": -1, "negative share": -0.5, "share above one": 1.5, "nan": NAN, "inf": INF,
    "bool": True, "string": "2", "bytes": b"2", "None": None, "list": [1], "object": OBJECT,
}  # fmt: skip
CORPUS = wrong() | {"documents": [[0, 1]], "class Corpus": bnp.Corpus, "sources": Of("sources")}
SOURCES = wrong() | {"rows": [[0.5, 1.0]], "class Sources": bnp.Sources, "corpus": Of("corpus")}
AXES: Table = {"number": 3, "string": "axes", "dictionary": {}, "numbers": [1, 2], "object": OBJECT}
PER_DOCUMENT = wrong("None", "class", "nan", "bool") | {"fractions": [0.5, 1.5, 2.5, 3.5]}
POSITIVE = real(0, -1) | {"empty": [], "Normal": dist.Normal(0, 1), "dictionary": {}}
del POSITIVE["list"], POSITIVE["array"]  # several values are for the model to judge

COVARIATES: Table = wrong() | {
    "short": {"x": [1, 2]}, "constant": {"x": [1, 1, 1, 1]},
    "objects": {"x": [OBJECT] * 4}, "repeated": {"x": [1, 2, 3, 5], "y": [2, 4, 6, 10]},
}  # fmt: skip
BESIDE_DOCUMENTS: Table = wrong("None") | {
    "short": {"x": [1, 2]}, "objects": {"x": [OBJECT] * 4}, "infinite": {"x": [INF] * 4},
}  # fmt: skip
COVARIATES_OR_NONE = {label: value for label, value in COVARIATES.items() if label != "None"}
FORMULA = wrong("None", "dictionary") | {"a response": "x ~ x"}
PREVALENCE = wrong("None", "class") | {"text": {0: "a", 1: "b"}, "too large": {0: 2.0, 1: 0.5}}

KINDS: dict[str, Table] = {
    # counts
    **{
        name: count(1)
        for name in (
            "num_columns", "num_features", "num_kept", "num_pairs", "num_particles",
            "num_samples", "num_chains", "num_sweeps", "num_temperatures", "num_words",
            "batch_size", "num_steps", "thinning", "max_topics", "max_factors", "num_topics",
            "sweeps_per_swap",
        )
    },
    **{name: count(0) for name in ("keep_states", "min_count", "min_tokens", "num_documents")},
    **{
        name: count(1, none=True)
        for name in ("init_topics", "limit", "max_features", "max_words", "num_rows",
                     "num_parallel", "window", "num_docs", "num_draws", "num_replicas")
    },
    "against": choice(),
    "approximation": choice(none=True),
    "bins": count(2, none=True),
    "chain": count(0) | {"unknown": 10**6},
    "init_factors": count(0, none=True),
    "max_count": count(0, none=True),
    "num_items": count(2),
    "folds": count(2) | {"more than documents": 10**6},
    "measure": choice(),
    "term": choice(none=True),
    "prior": choice(none=True),
    "resample": {label: x for label, x in count(0).items() if label != "bool"},
    "theta_from": choice(),
    "topic": count(0, none=True) | {"too large": 10**6},
    "num_warmup": count(1),
    "top": count(1),
    "seed": SEED,
    "split_seed": SEED,
    "random_state": {x: value for x, value in SEED.items() if x != "None"} | {"generator": int},
    # real numbers
    "c": real(0, -1),
    "checkpoint_seconds": real(-1, infinite=True),
    "concentration": real(1, 0.5, -1),
    "ell": real(0, -1),
    "eta_variance": real(0, -1),
    "intercept_variance": real(0, -1),
    "interval": real(0, 1, -0.5, 1.5),
    "learning_rate": real(0, -1),
    "max_df": DF,
    "min_df": DF,
    "max_rhat": real(1, 0.5, infinite=True),
    "min_ess_per_chain": real(-1),
    "min_share": real(0, 1.5),
    "min_similarity": real(0, 1.5),
    "relevance": real(-0.1, 1.1),
    "frex_weight": real(-0.1, 1.1),
    "min_correlation": real(-0.1, 1.0),
    "start_temperature": real(0.9, 2.1),
    "svm_c": real(0, -1, none=True),
    "threshold": real(-0.1, 1.1),
    "test_size": DF | {"zero": 0, "all": 10**6, "share of one": 1.0, "huge": 10**30},
    # hyperparameters
    **{
        name: POSITIVE
        for name in ("a_lambda", "a_phi", "a_w", "alpha", "b_lambda", "b_phi", "b_w", "beta",
                     "coefficient_variance",
                     "gamma", "group_alpha", "sigma2_n", "sigma2_phi", "sigma2_w", "tau")
    },
    # flags
    **{
        name: flag()
        for name in ("allow_missing", "centre", "include_self", "keep_texts", "known", "lowercase",
                     "mapped", "missing",
                     "normalise", "observed", "relevant", "scale", "stratify", "totals", "unknown")
    },
    # words from a list
    **{
        name: choice()
        for name in ("combine", "method", "metric", "on_interrupt", "schedule",
                     "score")
    },
    "by": choice(none=True),
    "format": choice(none=True),
    "kind": choice(none=True),
    "var_name": choice(none=True),
    # strings
    "author": choice(),
    "author_separator": text(),
    "delimiter": text(none=True) | {"two characters": ",;", "a line": "\n"},
    "encoding": text() | {"unknown": "utf8x", "no text": "rot13", "NUL": "a\0"},
    "group": text(none=True) | {"unknown": "nonsense"},
    "name": text(),
    "token_pattern": text() | {"unfinished": "(", "two groups": "(a)(b)", "star": "*"},
    # files and folders
    **{name: path() for name in ("draws", "folder", "path")},
    "checkpoint": path(none=True),
    "store": path(none=True),
    "reading": wrong("None", "dictionary") | {"no JSON": {"split": {1, 2}}},
    "tempering": wrong("None") | {"other names": {"end": {"colour": 2.0}}},
    "end": wrong("None", "dictionary", "empty")
    | {"below one": {"alpha": 0.5}, "text": {"alpha": "2"}, "nan": {"alpha": NAN}},
    # objects
    "alignment": wrong("None"),
    "ax": AXES,
    "axes": AXES | {"wrong number": Of("three_axes")},
    "corpus": CORPUS,
    "observed_half": CORPUS,
    "heldout": CORPUS,
    "reference": {label: value for label, value in CORPUS.items() if label != "None"},
    "data": wrong(),
    "covariates": COVARIATES,
    "query": wrong("list") | {"unknown": "nonsense", "numbers": [1, 2]},
    "time": wrong("array")
    | {"short": [1, 2], "infinite": [1, 2, 3, np.inf], "constant": [1] * 4},
    "effects": wrong(),
    "fit": wrong() | {"corpus": Of("corpus")},
    "fitted": wrong(),
    "frame": wrong(),
    "mcmc": wrong(),
    "mixture": wrong(),
    "mixtures": wrong(),
    "model": wrong() | {"class LDA": bnp.LDA},
    "progress": wrong("bool"),
    "queries": SOURCES,
    "rows": SOURCES,
    "words": wrong() | {"other columns": pd.DataFrame({"a": [1]})},
    "shares": wrong(),
    "sources": SOURCES,
    "states": wrong(),
    "table": wrong() | {"other columns": pd.DataFrame({"a": [1]}), "no columns": pd.DataFrame()},
    "terms": wrong(),
    "test": SOURCES,
    "vectorizer": wrong("None"),
    "program": wrong("None", "class"),
    # collections
    "attrs": wrong("None", "dictionary"),
    "author2doc": wrong("None", "dictionary") | {"no documents": {"a": 3}, "out": {"a": [99]}},
    "authors": PER_DOCUMENT,
    "candidates": names(length=False) | {"unknown": ["nobody"], "empty": []},
    "coords": wrong("None", "dictionary"),
    "devices": wrong("None", "class"),
    "dims": wrong("None", "dictionary"),
    "extra": wrong("None", "dictionary", "empty") | {"no shape of draws": {"x": [1.0]}},
    "factors": numbers_below(),
    "feature_names": names(),
    "group_coords": wrong("None", "dictionary"),
    "group_dims": wrong("None", "dictionary"),
    "groups": PER_DOCUMENT,
    "id2word": wrong("None", "dictionary"),
    "ignore": {label: x for label, x in names(length=False).items() if label != "dictionary"},
    "labels": PER_DOCUMENT | {"nan": [NAN] * 4},
    "packages": names(none=False, length=False) | {"unknown": ["nonsense"], "empty": []},
    **{
        name: names(none=False, length=False) | {"unknown": ["nonsense"]}
        for name in ("record", "optimise")
    },
    "sizes": numbers_below(none=False) | {"zero": [0]},
    "source_names": names(),
    "stop_words": wrong("None", "empty", "list") | {"numbers": [1, 2], "a language": "german"},
    "suffixes": names(length=False) | {"empty": []},
    "titles": names(),
    "topics": numbers_below(),
    "var_names": names(length=False) | {"unknown": ["nonsense"], "empty": []},
    "empty_documents": choice(),
    "fit_options": wrong("None", "dictionary") | {"own": {"seed": 1}, "number": {1: 2}},
    "doc_names": names(),
    "row_names": names(),
    "names": names(),
    "group_names": names(),
    "author_names": names(),
    "label_names": names(),
    "global_vocabulary": names() | {"twice": ["a"] * 4},
    "vocabulary": names() | {"twice": ["a"] * 6, "set": {"a", "b", "c", "d", "e", "f"}},
    # arrays
    "X": {  # scikit-learn checks the rest
        "fractions": [[0.5, 1, 2]] * 4,
        "negative": [[1, -1, 2]] * 4,
    },
    "y": {},  # scikit-learn checks it, in its own words
    **{
        name: numeric()
        for name in ("arrays", "counts", "doc", "docs", "log_prob", "lp", "mean", "other",
                     "phi", "relevant_rows", "sd", "similarity", "theta", "weights", "word",
                     "word_ids", "z")
    },
    **{name: numeric(none=True) for name in ("author_idx", "author_ptr", "label")},
    "shape": numeric(none=True) | {"wrong product": (1, 1), "negative": (-2, -3)},
}  # fmt: skip
"""Malformed values of a parameter, by its name."""

FIT_OF_GROUPS = wrong() | {"corpus": Of("corpus"), "of another model": Of("topic_fit")}
FIT_OF_AUTHORS = wrong() | {"corpus": Of("corpus"), "of a factor model": Of("factor_fit")}
FIT_OF_TOPICS = wrong() | {"corpus": Of("corpus"), "of a factor model": Of("factor_fit")}
FIT_OF_FACTORS = wrong() | {"corpus": Of("corpus"), "of a topic model": Of("topic_fit")}
FIELD = text(none=True, empty=True) | {"unknown": "nonsense"}
NUMBER_OF_ONE = {label: x for label, x in count(0).items() if label != "bool"} | {"out": 99}

KINDS_AT: dict[str, Table] = {
    "to_fit.data": wrong("None"),
    **{f"{kind}.report.title": text(none=True, empty=True) for kind in ("TopicFit", "FactorFit")},
    **{f"{kind}.report.effects": text(none=True, empty=True) for kind in ("TopicFit", "FactorFit")},
    **{
        f"{kind}.report.time": wrong("None", "list", "array") for kind in ("TopicFit", "FactorFit")
    },
    **{
        f"{name}.{parameter}": kind
        for name in ("PitmanYorLDA", "DifferentialTopicModel")
        for parameter, kind in (("concentration", POSITIVE), ("discount", real(1, 1.5, -0.1)))
    },
    "DifferentialTopicModel.transform": wrong("None") | {"matrix": np.eye(2)},
    "posterior.predictive.prior_predictive.num_draws": count(1),
    "results.contrast_tables.associations.word": text(empty=True)
    | {"unknown": "nonsense", "empty": ""},
    "CorpusWriter.add.authors": wrong("None") | {"twice": ["a", "a"]},
    "CorpusWriter.add.covariates": wrong("None", "dictionary")
    | {"object inside": {"x": OBJECT}, "inf": {"x": INF}},
    "CorpusWriter.add.group": wrong("None", "number", "string") | {"fraction": 1.5, "no text": ""},
    "CorpusWriter.add.label": wrong("None", "number", "string", "bool")
    | {"inf": INF, "no text": ""},
    "DirichletMultinomialRegression.collapsed.coefficients": wrong("None"),
    "CorpusWriter.add.name": text(none=True, empty=True),
    "CorpusWriter.finish.num_words": count(1, none=True),
    "Corpus.document.d": NUMBER_OF_ONE,
    "Corpus.words.d": NUMBER_OF_ONE,
    "Corpus.authors.d": NUMBER_OF_ONE,
    "Corpus.from_arrays.num_words": count(1, none=True),
    "Corpus.from_ids.num_words": count(1, none=True),
    "Corpus.from_arrays.group": numeric(none=True),
    **{
        f"Corpus.{name}.covariates": BESIDE_DOCUMENTS
        for name in ("from_texts", "from_ids", "from_counts", "from_arrays")
    },
    "Corpus.from_dataframe.text": text() | {"list": [1], "unknown": ["nonsense"]},
    "Corpus.from_dataframe.covariates": FIELD | {"list": [1], "unknown": ["nonsense"]},
    **{
        f"Corpus.from_dataframe.{name}": FIELD
        for name in ("groups", "authors", "labels", "doc_names")
    },
    **{
        f"{name}.texts": wrong("list") | {"a number inside": ["a", 1], "None inside": [None]}
        for name in ("Corpus.read_texts", "SavedModel.read_texts")
    },
    "Corpus.from_texts.texts": wrong("list") | {"a number inside": ["a", 1], "None inside": [None]},
    "Corpus.prune.stop_words": wrong("empty", "list") | {"numbers": [1, 2]},
    "Corpus.select.docs": numbers_below(none=False) | {"short mask": [True]},
    "Corpus.with_vocabulary.vocabulary": names(none=False, length=False) | {"set": {"a", "b"}},
    "FactorFit.evaluate.data": SOURCES,
    "FactorFit.load.data": SOURCES,
    "FactorFit.match.data": SOURCES,
    "FactorFit.retrieve.query_class": wrong("bool") | {"unknown": ["nonsense"] * 4},
    "FactorFit.retrieve.row_class": wrong("None", "bool"),
    "FactorFit.reconstruct.rows": numbers_below() | {"mask": [True]},
    "Sources.from_frame.source": {"unknown": "nonsense", "list": ["a"], "None": None, "number": 3},
    "Sources.matrix.source": choice(),
    "Sources.positions_of.source_names": names(none=False, length=False),
    "Sources.select.source_names": names(none=False, length=False) | {"empty": []},
    "Sources.select_rows.rows": numbers_below(none=False) | {"short mask": [True]},
    "Sources.from_frame.names": names(),
    "TopicFit.evaluate.data": CORPUS,
    "baselines.lda_svm.fit_lda_svm.keep_states": count(1),
    "baselines.lda_svm.fit_lda_svm.num_warmup": count(0),
    "results.functional_tables.topic_functionals.test": {
        label: x for label, x in CORPUS.items() if label != "None"
    },
    **{
        f"{name}.plot_functionals.functionals": wrong("None") for name in ("TopicFit", "FactorFit")
    },
    "TopicFit.load.data": CORPUS,
    "TopicFit.merge_topics.groups": wrong() | {
        "numbers": [0, 1], "one number": [[0]], "twice": [[0, 0]], "too large": [[0, 99]],
    },
    "TopicFit.drop_topics.topics": numbers_below(none=False) | {"twice": [0, 0]},
    **{
        f"{name}.match.data": {label: x for label, x in CORPUS.items() if label != "string"}
        for name in ("TopicFit", "SavedModel")
    },
    "scores.held_out_rows.row_completion.num_warmup": count(1),
    "TopicFit.npmi.top": count(2),
    "TopicFit.stacked.heldout": {label: x for label, x in CORPUS.items() if label != "None"},
    "results.topic_tables.topic_prevalence_by_group.names": names(),
    "data.text_files.read_ldac.vocabulary": names(length=False) | {"set": {"a", "b"}},
    "data.text_files.read_uci.vocabulary": names(length=False) | {"set": {"a", "b"}},
    "data.readers.from_gensim.bow": wrong() | {"no pairs": [[1, 2]], "empty": []},
    "data.readers.read_npz.group": FIELD,
    "data.readers.read_npz.label": FIELD,
    "data.readers.read_npz.name": FIELD,
    "data.readers.read_npz.split": {"list": [1], "fraction": 1.5, "unknown": "nonsense"},
    "data.readers.read_table.row": FIELD,
    "data.readers.read_table.source": FIELD,
    **{
        f"data.text_files.{reader}.{name}": FIELD
        for reader in ("read_csv", "read_jsonl")
        for name in ("group", "authors", "label", "name")
    },
    "Transform.from_cooccurrence.association": choice(),
    "Transform.from_cooccurrence.weights": choice(),
    "Transform.from_cooccurrence.window": count(2, none=True),
    "Transform.from_description.description": wrong("dictionary") | {"incomplete": {"a": 1}},
    "Transform.from_matrix.matrix": numeric() | {"sums": [[0.5]], "negative": [[-1.0]]},
    "Transform.from_vectors.vectors": numeric() | {"nan": [[NAN]]},
    "Transform.from_vectors.vocabulary": names(),
    "Transform.from_wordnet.folder": path(none=True),
    "Transform.from_wordnet.vocabulary": names(none=False, length=False) | {"empty": []},
    "Transform.identity.num_words": count(1, none=True),
    "Transform.neighbours.word": choice() | {"unknown number": 10**6, "negative": -1},
    "data.text_files.read_jsonl.tokens": FIELD,
    **{
        f"data.text_files.{reader}.{name}": FIELD | {"list": [1], "unknown": ["nonsense"]}
        for reader in ("read_csv", "read_jsonl")
        for name in ("text", "covariates")
    },
    "data.readers.read_npz.covariates": FIELD | {"list": [1], "unknown": ["nonsense"]},
    "data.text_files.read_folder.groups": flag(none=True),
    "fit.num_warmup": count(0),
    **{f"{name}.num_warmup": count(0) for name in ESTIMATORS},
    "load_package_docs.min_df": DF,
    "load_package_docs.max_df": DF,
    "plots.heat_maps.plot_prevalence_by_group.labels": names(),
    "plots.heat_maps.plot_topic_similarity.labels": names(),
    "posterior.arviz_data.group.name": choice(),
    "posterior.arviz_data.has_group.name": text(),
    "posterior.arviz_data.make_data.groups": wrong(),
    "posterior.arviz_data.ess.draws": wrong(),
    "posterior.arviz_data.mcse.draws": wrong(),
    "posterior.arviz_data.rhat.draws": wrong(),
    "posterior.factor_states.factor_states.z": numeric(none=True),
    "posterior.factor_states.factor_states.lp": numeric(none=True),
    "posterior.factor_states.factor_states.mean": numeric(none=True),
    "posterior.factor_states.factor_states.source": numeric(none=True),
    "posterior.factor_states.factor_states.background": numeric(none=True),
    "posterior.factor_states.factor_states.chain": numeric(none=True),
    "posterior.factor_states.factor_states.draw": numeric(none=True),
    "plots.chain_plots.plot_functionals.functionals": wrong(),
    "posterior.functionals.functionals.values": wrong(),
    "posterior.functionals.functionals.num_states": count(1, none=True),
    "results.functional_tables.factor_functionals.fit": FIT_OF_FACTORS,
    "results.functional_tables.topic_functionals.fit": FIT_OF_TOPICS,
    "posterior.mixtures.MixtureStates.state.index": NUMBER_OF_ONE | {"below": -99},
    "posterior.mixtures.check_words.name": text(),
    "posterior.mixtures.document_rows.name": text(),
    "posterior.alignment.topic_states.token_row": numeric(none=True),
    "posterior.factor_states.FactorStates.take.which": numbers_below(none=False),
    "choose_num_topics.num_topics": numbers_below(none=False)
    | {"zero": [0], "number": 2, "too large": [10**30]},
    "choose_num_topics.top": count(2) | {"more than words": 10**6},
    "results.topic_effects.effects.num_draws": count(1),
    "results.topic_effects.effects.formula": FORMULA,
    "CovariateFit.effects.formula": FORMULA,
    "CovariateFit.predicted_shares.covariates": wrong() | {"objects": {"x": [OBJECT]}},
    "DirichletMultinomialRegression.formula": text(none=True),
    "TopicFit.transform.covariates": COVARIATES_OR_NONE,
    "SavedModel.transform.covariates": COVARIATES_OR_NONE,
    "CovariateFit.effects.covariates": COVARIATES_OR_NONE,
    "CovariateFit.effects.num_draws": count(1),
    "results.topic_effects.effects.covariates": COVARIATES_OR_NONE,
    "results.topic_effects.expected_shares.at": wrong("None", "empty"),
    "results.topic_effects.expected_shares.by": names(none=False, length=False) | {"empty": []},
    "results.topic_effects.expected_shares.covariates": COVARIATES_OR_NONE,
    "results.topic_effects.expected_shares.formula": FORMULA,
    "results.topic_effects.expected_shares.num_draws": count(1),
    "results.topic_effects.expected_shares.num_points": count(2),
    "results.topic_pictures.plot_effects.by": names(length=False) | {"empty": []},
    "results.topic_pictures.plot_effects.covariates": COVARIATES_OR_NONE,
    "results.topic_effects.topics_over_time.bins": wrong("None", "array", "number")
    | {"decreasing": [2, 1]},
    **{
        f"{place}.{name}.by": choice()
        for place, name in (
            ("results.topic_tables", "topic_words"),
            ("results.topic_tables", "word_scores"), ("results.topic_tables", "topic_labels"),
        )
    },
    "results.topic_relations.representative_documents.topic": count(0) | {"too large": 10**6},
    "results.topic_pictures.plot_topics_over_time.bins": wrong("None", "array", "number")
    | {"decreasing": [2, 1]},
    "TopicFit.coherence.top": count(2),
    "results.topic_pictures.plot_effects.effects": wrong("dictionary", "string"),
    "results.topic_tables.first_words.scores": numeric(),
    "scores.coherence.coherence.top": count(2),
    "scores.coherence.coherence.topics": wrong() | {"too few words": [[0]]},
    "plots.relation_plots.plot_topic_correlation.prevalence": PREVALENCE,
    **{
        f"plots.{name}.labels": names()
        for name in ("relation_plots.plot_topic_correlation", "relation_plots.plot_topic_map",
                     "topic_plots.plot_effects", "topic_plots.plot_expected_shares",
                     "topic_plots.plot_topics_over_time")
    },
    "resume.checkpoint": path(),
    "results.author_tables.author_topics.authors": names(length=False) | {"unknown": ["nobody"]},
    "results.topic_tables.topic_prevalence_by_group.by": numeric(none=True),
    "scores.coherence.npmi.top": count(2),
    "scores.coherence.npmi.topics": wrong() | {"too few words": [[0]], "unknown": [list("qrs")]},
    "scores.held_out.document_completion.observed": CORPUS,
    **{
        f"{place}.bins": count(1)
        for place in ("scores.labels.calibration", "SupervisedFit.calibration",
                      "SupervisedFit.plot_calibration", "OneVsRestFit.calibration",
                      "OneVsRestFit.plot_calibration")
    },
    "OneVsRestFit.of_class.label": text(),
    **{
        f"{fit}.{name}.label": text(none=fit == "SupervisedFit")
        for fit in ("SupervisedFit", "OneVsRestFit")
        for name in ("calibration", "plot_calibration")
    },
    "scores.labels.calibration.probability": numeric(),
    "scores.labels.calibration.label": numeric(),
    "scores.retrieval.average_precision.relevant": numeric(),
    "scores.retrieval.precision_at.relevant": numeric(),
    "scores.retrieval.retrieve.chain": wrong("None", "array", "bool"),
    "scores.retrieval.retrieve.draws": wrong(),
    "scores.retrieval.retrieve.query_class": wrong("bool") | {"unknown": ["nonsense"] * 2},
    "scores.retrieval.retrieve.row_class": wrong("bool"),
    "scores.empirical_likelihood.empirical_likelihood.num_draws": count(20)
    | {"no whole blocks": 50},
    **{
        f"results.author_tables.{name}.fit": FIT_OF_AUTHORS
        for name in ("author_topics", "infer_author", "plot_author_topics", "similar_authors",
                     "surprising_documents")
    },
    **{
        f"results.contrast_tables.{name}.fit": FIT_OF_GROUPS
        for name in ("contrast", "contrast_words", "group_probabilities", "plot_contrast",
                     "plot_distances")
    },
    "results.contrast_tables.associations.fit": FIT_OF_GROUPS,
    **{
        f"results.group_tables.{name}.fit": FIT_OF_GROUPS
        for name in (
            "compare_alone", "corpus_of", "own_topics", "plot_sharing", "shared_topics", "sharing"
        )
    },
    "results.group_tables.compare_alone.group": choice(),
    "results.group_tables.compare_alone.alone": wrong(),
    **{
        f"{place}.group": choice()
        for place in ("results.group_tables.own_topics", "results.group_tables.corpus_of")
    },
    **{
        f"{place}.{name}": table
        for place in ("results.group_tables.own_topics", "results.group_tables.shared_topics")
        for name, table in {"probability": real(0, 1.5), "weak": real(-0.1, 1.1)}.items()
    },
    **{
        f"scores.held_out_rows.{name}.fit": FIT_OF_FACTORS
        for name in ("expected_weights", "new_rows", "predict_rows", "row_completion")
    },
    **{
        f"{name}.alpha": POSITIVE | {"wrong length": (1.0,) * 7, "negative inside": (1.0, -1.0)}
        for name in ("LDA", "AuthorTopicModel", "baselines.lda_svm.fit_lda_svm")
    },
}  # fmt: skip
"""Malformed values where the name of the parameter does not tell, by function and parameter."""


# What is passed on: method -> function that takes its `**options`, or the options it writes out
PASSED_ON: dict[str, Any] = {
    "baselines.variational_medlda.fit_variational_medlda": fit_program,
    "baselines.variational_slda.fit_variational_slda": fit_program,
    "Corpus.read_texts": bnp.Corpus.from_texts,
    "Corpus.from_dataframe": bnp.Corpus.from_texts,
    "SavedModel.read_texts": bnp.Corpus.from_texts,
    "choose_num_topics": bnp.fit,
    "TopicFit.document_completion": held_out.document_completion,
    "TopicFit.stacked": held_out.document_completion,
    "TopicFit.npmi": "scores.coherence.npmi",
    **{
        f"{fit}.{name}": f"{fit}.predictions"
        for fit in ("SupervisedFit", "OneVsRestFit")
        for name in ("predict", "predict_proba", "score", "calibration", "plot_calibration")
    },
    "OneVsRestFit.topics": topic_tables.topics,
    "SupervisedFit.topic_weights": topic_tables.topics,
    "OneVsRestFit.topic_weights": "SupervisedFit.topic_weights",
    "FactorFit.plot_sharing": "plots.factor_plots.plot_sharing",
    "FactorFit.plot_factors": "plots.factor_plots.plot_factors",
    "fit": bnp.LDA.gibbs,
    "resume": bnp.fit,
    "data.text_files.read_ldac": bnp.Corpus.from_counts,
    "data.text_files.read_uci": bnp.Corpus.from_counts,
    "data.readers.from_gensim": bnp.Corpus.from_counts,
    "read_corpus": "data.text_files.read_lines",
    "data.readers.read_sources": "data.readers.read_table",
    "data.text_files.read_csv": bnp.Corpus.from_texts,
    "data.text_files.read_folder": bnp.Corpus.from_texts,
    "data.text_files.read_jsonl": bnp.Corpus.from_texts,
    "data.text_files.read_lines": bnp.Corpus.from_texts,
}
NOT_PASSED_ON = {
    "choose_num_topics.checkpoint": "many fits have no one folder",
    "choose_num_topics.checkpoint_seconds": "many fits have no one folder",
    "choose_num_topics.reading": "the corpus is divided",
    "choose_num_topics.record": "only scores are returned",
    "FactorFit.*.terms": "those of the model",
    **{
        f"{kind}.read_texts.{name}": "decided by the corpus that was fitted"
        for kind in ("Corpus", "SavedModel")
        for name in (
            "vocabulary", "vectorizer", "stop_words", "lowercase", "token_pattern", "min_df",
            "max_df", "max_features", "store",
        )
    },
    "fit.program": "for blocks of numpyro.infer.Gibbs, which fit does not run",
    "fit.ignore": "for blocks of numpyro.infer.Gibbs, which fit does not run",
    "data.text_files.read_csv.groups": "read from the column group",
    "data.text_files.read_csv.labels": "read from the column label",
    "data.text_files.read_csv.doc_names": "read from the column name",
    "data.text_files.read_jsonl.groups": "read from the field group",
    "data.text_files.read_jsonl.labels": "read from the field label",
    "data.text_files.read_jsonl.doc_names": "read from the field name",
    "data.text_files.read_folder.doc_names": "the paths of the files",
    **{
        f"resume.{name}": "those of the run"
        for name in ("num_warmup", "num_samples", "num_chains", "thinning", "seed", "record",
                     "keep_states", "checkpoint", "reading")
    },
}  # fmt: skip


def functions_of(room: str) -> Iterator[tuple[str, Any]]:
    """Yield the public functions of the modules of a room, and the methods of their classes."""
    package = importlib.import_module(f"bnp_models.{room}")
    modules = pkgutil.iter_modules(getattr(package, "__path__", ()))
    for place in [f"{room}.{info.name}" for info in modules] or [room]:
        if place in INTERNAL:
            continue
        module = importlib.import_module(f"bnp_models.{place}")
        for name in module.__all__:
            thing = getattr(module, name)
            if name in bnp.__all__ or getattr(thing, "__module__", "") != module.__name__:
                continue
            if f"{place}.{name}" in INTERNAL_FUNCTIONS:
                continue
            if inspect.isclass(thing):
                if f"{place}.{name}" in ESTIMATORS:
                    yield f"{place}.{name}", thing
                for method in methods_of(thing):
                    yield f"{place}.{name}.{method}", getattr(thing, method)
            elif callable(thing):
                yield f"{place}.{name}", thing


def place_of(function: Any) -> str:
    """Return the module of a function, from the top of the library."""
    return function.__module__.removeprefix("bnp_models.")


def methods_of(cls: type) -> list[str]:
    """List the public methods of a class that take something; those of tuples are Python's.

    Methods that are functions of a public module are tested as such.
    """
    return [
        name
        for name, member in inspect.getmembers(cls, callable)
        if not name.startswith("_")
        and not hasattr(tuple, name)
        and name not in CHECKED_BY_FIT
        and isinstance(member, types.FunctionType | types.MethodType)
        and ("." in member.__qualname__ or place_of(member) in INTERNAL)
        and not member.__module__.startswith("sklearn.")
        and len(inspect.signature(member).parameters) > isinstance(member, types.FunctionType)
        and not (name == "perplexity" and issubclass(cls, ClassifierMixin))  # they refuse it
    ]


def public() -> dict[str, Any]:
    """Return the public functions by their names from the top of the library."""
    found: dict[str, Any] = {}
    for name in bnp.__all__:
        thing = getattr(bnp, name)
        if name in bnp.MODELS:
            found[name] = thing
            found |= {f"{name}.{m}": getattr(thing, m) for m in MODEL_METHODS if hasattr(thing, m)}
        elif name == "Fit":
            continue  # its methods are those of the other fits
        elif inspect.isclass(thing):
            more = name in (
                "AuthorFit", "CovariateFit", "GroupFit", "SupervisedFit", "OneVsRestFit",
            )  # fmt: skip
            inherited = methods_of(bnp.TopicFit) if more else []
            inherited = methods_of(bnp.GroupFit) if name == "ContrastFit" else inherited
            own = [method for method in methods_of(thing) if method not in inherited]
            found |= {f"{name}.{method}": getattr(thing, method) for method in own}
            found = {place: method for place, method in found.items() if place not in REFUSING}
        elif callable(thing):
            found[name] = thing
    for room in ROOMS:
        found |= dict(functions_of(room))
    return found


PUBLIC = public()


def resolve(thing: Any) -> Any:
    """Return a function, given it or its name in `PUBLIC`."""
    return PUBLIC[thing] if isinstance(thing, str) else thing


def parameters_of(name: str) -> dict[str, bool]:
    """Return the parameters of a public function, and whether they are required."""
    found: dict[str, bool] = {}
    passed = None
    function = PUBLIC[name]
    bound = "." not in getattr(function, "__qualname__", ".") and place_of(function) in INTERNAL
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == ("fit" if bound else "self"):
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            passed = resolve(PASSED_ON.get(name))
        else:
            found[parameter.name] = parameter.default is parameter.empty
    if passed is not None:
        for parameter in inspect.signature(passed).parameters.values():
            owner, _, _ = name.rpartition(".")
            left_out = {f"{name}.{parameter.name}", f"{owner}.*.{parameter.name}"} & set(
                NOT_PASSED_ON
            )
            if parameter.kind is parameter.KEYWORD_ONLY and not left_out:
                found.setdefault(parameter.name, False)
    return found


def kind_of(name: str, parameter: str) -> Table | None:
    """Return the malformed values of a parameter, None if nothing is known about it."""
    passed = PASSED_ON.get(name)
    inner = passed if isinstance(passed, str) else None
    if passed is not None and inner is None:
        inner = next((n for n, f in PUBLIC.items() if f == passed), None)
    for at in (name, inner):
        if f"{at}.{parameter}" in KINDS_AT:
            return KINDS_AT[f"{at}.{parameter}"]
    if name.partition(".")[0] in bnp.MODELS and parameter == "data":
        return SOURCES
    return KINDS[parameter] if parameter in KINDS else kind_by_annotation(name, parameter)


def kind_by_annotation(name: str, parameter: str) -> Table | None:
    """Return malformed values of a field or an option of a new model, which need no entry here."""
    model = bnp.MODELS.get(name.partition(".")[0])
    if model is None:
        return None
    field = inspect.signature(PUBLIC[name]).parameters[parameter]
    kind = field.annotation
    if kind is Any and (parameter in model.hyperparameters or isinstance(field.default, float)):
        return POSITIVE
    known = {int: count(1), int | None: count(1, none=True), str: choice(), bool: flag()}
    return known.get(kind)


def inputs_of(name: str) -> list[tuple[str, str]]:
    """List the malformed inputs of a public function: parameter and what is wrong."""
    return [
        (parameter, label)
        for parameter in parameters_of(name)
        for label in kind_of(name, parameter) or {}
        if reason_to_accept(name, parameter, label) is None
    ]


ACCEPTED: dict[tuple[str, str, str], str] = {
    ("*", "labels", "fractions"): "labels are any numbers",
    ("CorpusWriter.add", "word_ids", "empty"): "a document without words",
    ("TopicFit.transform", "corpus", "string"): "one text, without known words",
    ("results.author_tables.infer_author", "corpus", "string"): "one text, without known words",
    ("results.contrast_tables.group_probabilities", "corpus", "string"): "one text",
    ("SavedModel.transform", "corpus", "string"): "one text, without known words",
    **{
        (f"{fit}.{name}", "corpus", "string"): "one text, without known words"
        for fit in ("SupervisedFit", "OneVsRestFit")
        for name in ("predict", "predict_proba", "predictions")
    },
    ("Corpus.from_ids", "docs", "ragged"): "documents have different lengths",
    ("Transform.neighbours", "word", "number"): "the number of a word",
    ("data.text_files.read_ldac", "vocabulary", "string"): "the path of a file",
    ("data.text_files.read_uci", "vocabulary", "string"): "the path of a file",
    ("fit DifferentialTopicModel", "discount", "0"): "topics are then Dirichlet draws",
    ("fit PitmanYorLDA", "discount", "0"): "topics are then Dirichlet draws",
    ("fit GaussianFactorAnalysis", "centre", "0"): "no",
    ("fit GaussianFactorAnalysis", "scale", "0"): "no",
    ("posterior.intervals.beta_interval", "mean", "empty"): "no interval is asked for",
    ("posterior.mixtures.MixtureStates.state", "index", "negative"): "counts from the end",
    **{
        (name, parameter, "bool"): "scikit-learn takes True as the integer 1"
        for name in ESTIMATORS
        for parameter in ("num_sweeps", "num_kept", "num_particles", "random_state")
    },
}
"""Values of the tables that are legitimate somewhere: function, parameter (or *), label; why."""


def reason_to_accept(name: str, parameter: str, label: str) -> str | None:
    """Say why a value of a table is no malformed input here, None if it is one."""
    for key in itertools.product((name, "*"), (parameter, "*"), (label, "*")):
        if key in ACCEPTED:
            return ACCEPTED[key]
    return None


# --- what is called ---------------------------------------------------------------------------


class Context:
    """Tiny data, one fit of each family, and what their functions take.

    Only the chains of LDA, which has a checkpoint, make sweeps.
    """

    def __init__(self, folder, no_sweeps):
        self.folder = folder
        texts = ["cat dog cat", "moon sun moon", "dog cat bird", "sun star moon sun"]
        self.texts, self.people = texts, [["ann"], ["bob"], ["ann", "bob"], ["bob"]]
        self.corpus = bnp.Corpus.from_texts(
            texts, groups=["a", "b", "a", "b"], authors=self.people, labels=[0, 1, 0, 1],
            covariates={"x": [1.0, 2.0, 4.0, 3.0]},
        )  # fmt: skip
        rng = np.random.default_rng(0)
        self.sources = bnp.Sources.from_arrays(
            [rng.poisson(2.0, (4, 3)), rng.poisson(2.0, (3, 3))], names=["s", "t"]
        )
        how = {"num_warmup": 2, "num_samples": 4, "num_chains": 2, "keep_states": 2}
        how |= {"progress": False, "schedule": "sequential"}
        self.how = how
        self.model = bnp.LDA(2)
        self.checkpoint = folder / "checkpoint"
        self.topic_fit = bnp.fit(self.model, self.corpus, checkpoint=self.checkpoint, **how)
        with no_sweeps():
            self.fit_families(how)
            self.fit_estimators()
        self.slda_fit = fit_variational_slda(self.corpus, 2, num_steps=1)
        self.medlda_fit = fit_variational_medlda(self.corpus, 2, num_steps=1)
        self.svm_fit = fit_lda_svm(self.corpus, 2, num_warmup=1, num_samples=1)
        for name in ("topic_fit", "author_fit", "factor_fit"):
            getattr(self, name).save(folder / f"{name}.nc")
        self.data = self.topic_fit.data
        self.states, self.alignment = self.topic_fit.topic_states, self.topic_fit.alignment
        self.mixtures = self.topic_fit.mixtures
        self.shares = document_tables.document_shares(self.states, self.corpus, self.alignment)
        self.factor_states = self.factor_fit.factor_states
        scores, classes = rng.random((2, 3)), np.array(["x", "y"])
        self.retrieved = retrieval.retrieve([(scores, scores)], classes, classes)
        self.draws = arviz_data.group(self.data, "posterior")[["num_topics_used"]].astype(float)
        self.write_files()

    def fit_families(self, how):
        """Fit a model of each kind of result; nothing depends on what the chains find."""
        self.author_fit = bnp.fit(bnp.AuthorTopicModel(2), self.corpus, **how)
        rooted = {**how, "init_topics": 2}
        self.group_fit = bnp.fit(bnp.MultiTaskHDPLDA(max_topics=32), self.corpus, **rooted)
        identity = np.eye(self.corpus.num_words)
        self.transform = bnp.Transform.from_matrix(
            {"a": identity, "b": identity}, vocabulary=self.corpus.vocabulary
        )
        differential = bnp.DifferentialTopicModel(2, transform=self.transform)
        self.contrast_fit = bnp.fit(differential, self.corpus, **how)
        self.supervised_fit = bnp.fit(bnp.SupervisedLDA(2), self.corpus, **how)
        model = bnp.DirichletMultinomialRegression(2)
        self.covariate_fit = bnp.fit(model, self.corpus, **how)
        many = bnp.SupervisedLDA(2, response="one-vs-rest")
        self.one_vs_rest_fit = bnp.fit(many, self.corpus, **how)
        self.factor_model = bnp.PoissonGammaFactorAnalysis(tau=1.0, max_factors=8)
        self.factor_fit = bnp.fit(self.factor_model, self.sources, init_factors=3, **how)

    def fit_estimators(self):
        """Fit the estimators."""
        self.counts, how = [[2, 1, 0], [0, 1, 2], [3, 0, 0], [0, 0, 2]], {"num_chains": 1}
        how |= {"num_warmup": 1, "num_samples": 1, "num_sweeps": 1, "num_kept": 1}
        models = {TopicEstimator: self.model, GroupClassifier: bnp.CrossCollectionLDA(2)}
        self.estimators = {
            name: estimator(models.get(estimator, bnp.SupervisedLDA(2)), **how).fit(
                self.counts, [0, 1, 0, 1]
            )
            for name, estimator in ESTIMATORS.items()
        }

    def write_files(self):
        """Write the corpus in every format."""
        (self.folder / "texts.csv").write_text(
            "text,group,authors,label,name\n"
            + "".join(f"{text},g,ann,1,n{i}\n" for i, text in enumerate(self.texts))
        )
        (self.folder / "texts.jsonl").write_text(
            "".join(
                f'{{"text": "{text}", "group": "g", "authors": ["ann"], "label": 1}}\n'
                for text in self.texts
            )
        )
        (self.folder / "texts.txt").write_text("\n".join(self.texts) + "\n")
        (self.folder / "texts").mkdir()
        for i, text in enumerate(self.texts):
            (self.folder / "texts" / f"{i}.txt").write_text(text)
        (self.folder / "words.txt").write_text("a\nb\n")
        (self.folder / "docword.tiny.txt").write_text("4\n2\n4\n1 1 2\n2 2 1\n3 1 1\n4 2 1\n")
        (self.folder / "tiny.ldac").write_text("1 0:2\n1 1:1\n1 0:1\n1 1:3\n")
        (self.folder / "rows.csv").write_text("kind,x,y\ns,1,2\nt,3,4\n")
        self.corpus.save(self.folder / "corpus.npz")
        (self.folder / "columns.csv").write_text("topic,label,x\n0,a,1\n1,b,2\n,,2\n,,5\n")
        self.corpus.save(self.folder / "mapped", mapped=True)
        self.sources.save(self.folder / "sources.npz")
        np.savez(self.folder / "counts.npz", doc=[0, 1], word=[0, 1], count=[1, 2], group=[0, 1])
        runs = {"run": self.topic_fit, "factor_run": self.factor_fit, "author_run": self.author_fit}
        for name, fit in runs.items():
            (self.folder / name).mkdir()
            fit.save(self.folder / name / "draws.nc")
            fit.dataset.save(self.folder / name / fit.model.readers.file)
        self.run = self.folder / "run"
        self.saved_model = bnp.load(self.topic_fit.save_model(self.folder / "model.npz"))

    def writer(self, method):
        """Return a new writer of a corpus; before it is finished it has some documents."""
        writer = bnp.CorpusWriter(self.folder / uuid.uuid4().hex).__enter__()
        for d in range(4 if method == "finish" else 0):
            writer.add([0, 1, 2], group="ab"[d % 2], authors=self.people[d], label="xy"[d % 2])
        return writer

    def three_axes(self):
        """Return more panels than any picture here has, or fewer."""
        return plt.subplots(1, 7)[1]


def required_fields(model: type) -> dict[str, Any]:
    """Return values of the fields that a model has no default of."""
    fields = inspect.signature(model).parameters.values()
    return {p.name: 2 if p.annotation is int else 1.0 for p in fields if p.default is p.empty}


def program(function):
    """Return a NumPyro program that runs by itself."""

    def run(**arguments):
        return numpyro.handlers.seed(function, rng_seed=0)(**arguments)

    return run


def target(context: Context, name: str) -> Any:
    """Return what to call for a public function: methods are bound to an object of the context."""
    first, _, method = name.rpartition(".")
    if name in ESTIMATORS:
        return lambda **given: ESTIMATORS[name](**given).fit(context.counts, [0, 1, 0, 1])
    if first == "CorpusWriter":
        return getattr(context.writer(method), method)
    objects = {
        **context.estimators,
        "Corpus": context.corpus,
        "Sources": context.sources,
        "TopicFit": context.topic_fit,
        "AuthorFit": context.author_fit,
        "GroupFit": context.group_fit,
        "ContrastFit": context.contrast_fit,
        "CovariateFit": context.covariate_fit,
        "SupervisedFit": context.supervised_fit,
        "OneVsRestFit": context.one_vs_rest_fit,
        "FactorFit": context.factor_fit,
        "Transform": context.transform,
        "baselines.lda_svm.LDASVM": context.svm_fit,
        "baselines.variational_medlda.VariationalMedLDA": context.medlda_fit,
        "baselines.variational_slda.VariationalSLDA": context.slda_fit,
        "SavedModel": context.saved_model,
        "posterior.alignment.Alignment": context.alignment,
        "posterior.factor_states.FactorStates": context.factor_states,
        "posterior.mixtures.MixtureStates": context.mixtures,
        "scores.retrieval.Retrieval": context.retrieved,
    }
    if first in objects:
        return getattr(objects[first], method)
    if first in bnp.MODELS:
        model = bnp.MODELS[first]
        bound = getattr(model(**required_fields(model)), method)
        return program(bound) if method in ("__call__", "collapsed") else bound
    return PUBLIC[name]


def tempered_data() -> Any:
    """Return the statistics of a tempered run: two chains, three draws, two replicas."""
    stats = {
        "rung": np.tile(np.arange(2), (2, 3, 1)),
        "swap_acceptance": np.full((2, 3, 1), 0.5),
        "round_trips": np.zeros((2, 3), int),
    }
    return arviz_data.make_data({"posterior": {"x": np.zeros((2, 3))}, "sample_stats": stats})


def valid(context: Context) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return valid values of required parameters, by name and by function and name."""
    folder, corpus, sources = context.folder, context.corpus, context.sources
    fit, factor_fit = context.topic_fit, context.factor_fit
    by_name = {
        "alignment": context.alignment,
        "author": "ann",
        "corpus": corpus,
        "data": context.data,
        "d": 0,
        "docs": [0, 1],
        "doc": np.asarray(corpus.doc),
        "draws": context.draws,
        "fit": context.author_fit,
        "folder": context.run,
        "frame": pd.DataFrame({"kind": ["s", "t"], "x": [1, 2]}),
        "groups": {"posterior": {"x": np.zeros((2, 3))}},
        "heldout": corpus,
        "interval": 0.9,
        "known": True,
        "mcmc": None,
        "mixture": context.mixtures[0],
        "mixtures": context.mixtures,
        "model": context.model,
        "num_items": 5,
        "covariates": {"x": [1.0, 2.0, 4.0, 3.0]},
        "query": "cat dog",
        "folds": 2,
        "time": [2000, 2001, 2003, 2004],
        "topic": 0,
        "labels": {0: "pets"},
        "num_pairs": 3,
        "num_topics": 2,
        "observed": corpus,
        "path": folder / "corpus.npz",
        "queries": sources,
        "reference": corpus,
        "relevant": np.eye(2, dtype=bool),
        "rows": sources,
        "score": "document_completion",
        "shares": context.shares,
        "similarity": np.eye(2),
        "source": "s",
        "source_names": ["s"],
        "sources": sources,
        "states": context.states,
        "test": sources,
        "topics": [[0, 1, 2]],
        "chain": 0,
        "vocabulary": ["a", "cat"],
        "weights": np.asarray(context.factor_states.weights),
        "word": np.asarray(corpus.word),
    }
    files = {
        "text_files.read_ldac": "tiny.ldac", "text_files.read_uci": "docword.tiny.txt",
        "text_files.read_vocabulary": "words.txt",
        "readers.guess_format": "texts.txt", "readers.read_npz": "counts.npz",
        "readers.read_mapped": "mapped",
        "readers.guess_source_format": "rows.csv",
        "readers.read_sources": "rows.csv", "readers.read_table": "rows.csv",
        "text_files.read_csv": "texts.csv", "text_files.read_folder": "texts",
        "text_files.read_jsonl": "texts.jsonl", "text_files.read_lines": "texts.txt",
    }  # fmt: skip
    at = {f"data.{reader}.path": folder / name for reader, name in files.items()}
    at |= {"read_corpus.path": folder / "texts.txt"}
    at |= {f"{kind}.save.path": folder / "written" for kind in ("Corpus", "Sources", "TopicFit")}
    at |= {
        f"scores.held_out_rows.{name}.fit": factor_fit
        for name in ("expected_weights", "new_rows", "predict_rows", "row_completion")
    }
    at |= {
        f"posterior.factor_states.{name}.states": context.factor_states
        for name in ("align_factors",)
    }
    similar = np.full((3, 2), 1 / 3)
    at |= {
        "CorpusWriter.add.word_ids": [0, 1],
        "CorpusWriter.finish.num_words": 3,
        "Corpus.from_counts.counts": [[1, 0, 2], [0, 1, 1], [1, 1, 1], [2, 0, 0]],
        "Corpus.from_ids.docs": [[0, 1], [1, 2], [0, 2], [2]],
        "Corpus.from_ids.num_words": 3,
        "Corpus.from_arrays.num_words": corpus.num_words,
        "Corpus.from_texts.texts": context.texts,
        "Corpus.from_dataframe.frame": pd.DataFrame({"text": context.texts}),
        "FactorFit.load.draws": folder / "factor_fit.nc",
        "FactorFit.load.data": sources,
        "FactorFit.evaluate.data": sources,
        "FactorFit.evaluate.score": "predict",
        "FactorFit.match.data": sources,
        "FactorFit.save.path": folder / "written",
        "FactorFit.retrieve.query_class": list("ssssttt"),
        "Transform.from_description.description": context.transform.describe(),
        "Transform.from_matrix.matrix": np.eye(4),
        "Transform.from_vectors.vectors": np.eye(4),
        "Transform.identity.num_words": 4,
        "Transform.neighbours.word": "cat",
        "Transform.to_sparse.group": "a",
        "Sources.from_arrays.arrays": [[[1, 2], [3, 4]], [[5, 6]]],
        "Sources.from_frame.source": "kind",
        "Sources.load.path": folder / "sources.npz",
        "Sources.select_rows.rows": [0, 1],
        "TopicFit.load.draws": folder / "topic_fit.nc",
        "TopicFit.load.data": corpus,
        "TopicFit.merge_topics.groups": [[0, 1]],
        "TopicFit.drop_topics.topics": [0],
        "TopicFit.evaluate.data": corpus,
        "TopicFit.match.data": corpus,
        "SavedModel.match.data": corpus,
        "load.path": folder / "model.npz",
        **{f"{name}.read_texts.texts": context.texts for name in ("Corpus", "SavedModel")},
        "TopicFit.save_model.path": folder / "written",
        **{f"{kind}.report.path": folder / "written.html" for kind in ("TopicFit", "FactorFit")},
        "TopicFit.stacked.corpus": bnp.Corpus.from_texts(
            ["cat dog sun", "moon bird"], vocabulary=corpus.vocabulary
        ),
        "baselines.sklearn_lda.sklearn_mixture.fitted": types.SimpleNamespace(
            components_=np.ones((2, 3)), doc_topic_prior_=0.5
        ),
        "data.readers.from_gensim.bow": [[(0, 1)], [(1, 2)], [(0, 1)], [(1, 1)]],
        "fit.data": corpus,
        "plots.factor_plots.plot_factors.effects": factor_fit.effects(),
        "plots.factor_plots.plot_sharing.table": factor_fit.sharing(),
        "plots.chain_plots.plot_functionals.functionals": fit.functionals(),
        "plots.tempering_plots.plot_tempering.data": tempered_data(),
        "posterior.functionals.functionals.values": {
            "x": functionals.Values(["a"], np.arange(8.0).reshape(2, 4, 1))
        },
        "results.functional_tables.factor_functionals.fit": factor_fit,
        "plots.topic_plots.plot_prevalence.table": fit.topics(),
        "plots.heat_maps.plot_prevalence_by_group.table": fit.topic_prevalence_by_group(),
        "plots.topic_plots.plot_topic_words.table": fit.topic_words(),
        "plots.topic_plots.short_labels.table": fit.topics(),
        "plots.relation_plots.plot_topic_correlation.table": fit.topic_correlation(),
        "plots.relation_plots.plot_topic_map.table": fit.topic_map(),
        "plots.topic_plots.plot_effects.table": fit.effects({"x": [1.0, 2.0, 4.0, 3.0]}),
        "results.topic_effects.expected_shares.by": "x",
        "plots.topic_plots.plot_expected_shares.table": fit.expected_shares(by="x"),
        "plots.topic_plots.plot_topics_over_time.table": fit.topics_over_time([1, 2, 3, 4]),
        "results.topic_pictures.plot_effects.effects": {"x": [1.0, 2.0, 4.0, 3.0]},
        "TopicFit.coherence.top": 3,
        "scores.coherence.coherence.top": 3,
        "results.topic_tables.word_scores.phi": np.full((corpus.num_words, 2), 0.1),
        "results.topic_tables.first_words.scores": np.ones((3, 2)),
        "choose_num_topics.num_topics": [2],
        "posterior.alignment.Alignment.of_topics.topics": [0],
        "choose_num_topics.top": 2,
        **{f"choose_num_topics.{name}": x for name, x in context.how.items()},
        "posterior.alignment.similarity.phi": similar,
        "posterior.alignment.similarity.other": similar,
        "posterior.alignment.topic_states.mixtures": context.mixtures,
        "posterior.arviz_data.group.name": "posterior",
        "posterior.arviz_data.has_group.name": "posterior",
        "posterior.arviz_data.load.path": folder / "topic_fit.nc",
        "posterior.arviz_data.save.path": folder / "written",
        "posterior.factor_states.FactorStates.take.which": [0],
        "posterior.factor_states.factor_states.phi": np.ones((2, 2, 3, 4)),
        "posterior.factor_states.factor_states.weights": np.ones((2, 2, 5, 3)),
        "posterior.factor_states.match.phi": np.eye(3),
        "posterior.factor_states.match.other": np.eye(3),
        **{
            f"posterior.predictive.{name}.{argument}": value
            for name in ("log_likelihood", "posterior_predictive", "prior_predictive")
            for argument, value in (("data", corpus), ("draws", context.data))
        },
        "posterior.intervals.beta_interval.mean": np.full(2, 0.5),
        "posterior.intervals.beta_interval.sd": np.full(2, 0.1),
        "posterior.mixtures.MixtureStates.state.index": 0,
        "posterior.stacking.stack.log_prob": np.log([[0.5, 0.2], [0.1, 0.4]]),
        "results.folder.load_run.folder": context.run,
        "results.folder.save_run.fit": fit,
        "results.result.read_draws.path": folder / "topic_fit.nc",
        "resume.checkpoint": context.checkpoint,
        "scores.held_out.document_completion.observed": corpus,
        "scores.retrieval.retrieve.draws": [(np.eye(2), np.eye(2))],
        "scores.retrieval.retrieve.query_class": ["x", "y"],
        "scores.retrieval.retrieve.row_class": ["x", "y"],
        "scores.held_out.known_authors.mixtures": list(context.author_fit.author_mixtures()),
        "scores.labels.calibration.probability": np.array([0.2, 0.9]),
        "scores.labels.calibration.label": np.array([0, 1]),
        "scores.labels.calibration.bins": 1,
        **{
            f"{name}.{method}.bins": 2
            for name in ("SupervisedFit", "OneVsRestFit")
            for method in ("calibration", "plot_calibration")
        },
        "Corpus.with_labels.labels": [0, 1, 1, 0],
        **{
            f"results.group_tables.{name}.fit": context.group_fit
            for name in (
                "compare_alone",
                "corpus_of",
                "own_topics",
                "plot_sharing",
                "shared_topics",
                "sharing",
            )
        },
        **{
            f"{place}.{name}": value
            for place in (
                "results.group_tables.compare_alone",
                "results.group_tables.own_topics",
                "results.group_tables.corpus_of",
            )
            for name, value in {"group": "a", "alone": context.group_fit}.items()
        },
        **{
            f"results.contrast_tables.{name}.{parameter}": value
            for name in (
                "contrast",
                "contrast_words",
                "group_probabilities",
                "plot_contrast",
                "plot_distances",
            )
            for parameter, value in {"fit": context.contrast_fit, "min_tokens": 1}.items()
        },
        "results.contrast_tables.plot_distances.min_tokens": 1,
        "results.contrast_tables.associations.fit": context.contrast_fit,
        "results.contrast_tables.associations.word": context.corpus.vocabulary[0],
        "plots.contrast_plots.plot_contrast.table": context.contrast_fit.contrast(min_tokens=1),
        "plots.contrast_plots.plot_contrast.words": context.contrast_fit.contrast_words(
            min_tokens=1
        ),
        "plots.contrast_plots.plot_distances.table": context.contrast_fit.contrast(min_tokens=1),
        "plots.heat_maps.plot_sharing.table": context.group_fit.sharing(),
        "OneVsRestFit.of_class.label": "1",
        "OneVsRestFit.calibration.label": "1",
        "OneVsRestFit.plot_calibration.label": "1",
        "plots.topic_plots.plot_calibration.table": context.supervised_fit.calibration(
            corpus, bins=2
        ),
        "plots.topic_plots.plot_calibration.name": "1",
        "scores.coherence.npmi.top": 3,
        "load_package_docs.packages": ["optax"],
        **{
            f"baselines.{place}.num_steps": 1
            for place in (
                "variational_slda.fit_variational_slda",
                "variational_medlda.fit_variational_medlda",
            )
        },
        "baselines.lda_svm.fit_lda_svm.num_warmup": 1,
        "baselines.lda_svm.fit_lda_svm.num_samples": 1,
    }
    at |= {f"fit.{name}": value for name, value in context.how.items()}
    for name, estimator in context.estimators.items():
        at |= {f"{name}.{parameter}": x for parameter, x in estimator.get_params(False).items()}
        at |= {f"{name}.fit.y": [0, 1, 0, 1]}
        at |= {f"{name}.{method}.X": context.counts for method in methods_of(ESTIMATORS[name])}
    at |= {
        "resume.progress": False,
        "TopicFit.npmi.top": 3,
        "data.readers.read_sources.source": "kind",
        "data.readers.read_table.source": "kind",
        "scores.retrieval.Retrieval.scope.sizes": [1],
    }
    return by_name, at


NEEDED = {  # optional parameters that others need
    "Corpus.from_ids": ("num_words",),
    "Corpus.from_arrays": ("num_words",),
    "CorpusWriter.finish": ("num_words",),
    "fit": ("num_warmup", "num_samples", "num_chains", "keep_states", "progress", "schedule"),
    "baselines.lda_svm.fit_lda_svm": ("num_warmup", "num_samples"),
    "baselines.variational_medlda.fit_variational_medlda": ("num_steps",),
    "baselines.variational_slda.fit_variational_slda": ("num_steps",),
    "load_package_docs": ("packages",),
    **{
        name: ("num_warmup", "num_samples", "num_chains", "num_sweeps", "num_kept")
        for name in ESTIMATORS
    },
    **{f"{name}.fit": ("y",) for name in ESTIMATORS},
    "Transform.identity": ("num_words",),
    "Transform.to_sparse": ("group",),
    "resume": ("progress",),
    "scores.coherence.npmi": ("top",),
    "scores.coherence.coherence": ("top",),
    "TopicFit.coherence": ("top",),
    "choose_num_topics": ("top", "num_warmup", "num_samples", "num_chains", "progress", "schedule"),
    "TopicFit.npmi": ("top",),
    **{f"{kind}.report": ("path",) for kind in ("TopicFit", "FactorFit")},
    "SupervisedFit.calibration": ("bins",),
    "SupervisedFit.plot_calibration": ("bins",),
    "results.contrast_tables.plot_distances": ("min_tokens",),
    "OneVsRestFit.calibration": ("bins", "label"),
    "OneVsRestFit.plot_calibration": ("bins", "label"),
    "scores.labels.calibration": ("bins",),
    "data.readers.read_sources": ("source",),
    "data.readers.read_table": ("source",),
    "scores.retrieval.Retrieval.scope": ("sizes",),
}
BESIDE: dict[str, dict[str, Any]] = {  # parameters that go together with another one
    "group_names": {"groups": ["a", "b", "a", "b"], "group": [0, 1, 0, 1]},
    "author_names": {
        "authors": [["ann"], ["bob"], ["ann", "bob"], ["bob"]],
        "author_idx": [0, 1, 0, 1],
        "author_ptr": [0, 1, 2, 3, 4],
    },
    "label_names": {"labels": ["x", "y", "x", "y"], "label": [0, 1, 0, 1]},
    "names": {"by": np.array([0, 1, 0, 1])},
    "author_ptr": {"author_idx": [0, 1, 0, 1]},
    "author_idx": {"author_ptr": [0, 1, 2, 3, 4]},
}
FIELDS_ARE_NAMES = (
    "data.text_files.read_csv", "data.text_files.read_jsonl", "data.text_files.read_folder",
    "Corpus.from_dataframe",
)  # fmt: skip


def arguments_of(context: Context, name: str, parameter: str) -> dict[str, Any]:
    """Return valid arguments for what a function needs when one parameter is tried out."""
    by_name, at = context.valid
    needed = parameters_of(name)
    if name in bnp.MODELS:
        return required_fields(PUBLIC[name])
    model = bnp.MODELS.get(name.partition(".")[0])
    if model is not None and model.readers.data_type is bnp.Sources:
        by_name = by_name | {"data": context.sources}
    found = {
        p: at.get(f"{name}.{p}", by_name.get(p))
        for p, required in needed.items()
        if required or p in NEEDED.get(name, ())
    }
    for other, value in BESIDE.get(parameter, {}).items():
        if other in needed and name not in FIELDS_ARE_NAMES:
            found[other] = value
    return found


class Outcome(NamedTuple):
    input: str
    verdict: str  # refused, raw, silent, unclear
    text: str


ADVICE = re.compile(
    r"\b(must|give|pass|use|make|leave|choose|select|build|call|number|order|record|write|keep|"
    r"raise|add|name|drop|take|declare|needs?|fill|restore|found|finish|see|read)\b"
)


def is_shown(value: Any, parameter: str, message: str) -> bool:
    """Say whether a message shows a value, its type, its size or what is wrong with it."""
    if f"not in {parameter};" in message or f"{parameter} is given but" in message:
        return True  # another argument is at fault, or missing
    shown = [repr(value)[:20], str(value)[:20], type(value).__name__]
    if isinstance(value, np.ndarray):
        shown += [str(value.shape), str(value.dtype), *map(repr, value.ravel().tolist()[:3])]
        shown += [str(len(value))] if value.ndim else []
    if isinstance(value, list | tuple | dict | set | str | bytes):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        inside = [x for part in parts for x in (part if isinstance(part, list | dict) else [part])]
        shown += [*map(repr, inside), str(len(value)), "empty", "ragged", "dtype"]
    if value is None:
        shown += ["missing"]
    if isinstance(value, type):
        shown += [value.__name__]
    return any(" ".join(part.split()) in " ".join(message.split()) for part in shown)


def try_out(context: Context, name: str, parameter: str, label: str) -> Outcome:
    """Call a function with one malformed value and judge what happens."""
    value = (kind_of(name, parameter) or {})[label]
    if isinstance(value, Of):
        value = getattr(context, value.name)
        value = value() if callable(value) and not isinstance(value, type) else value
    called = target(context, name)
    arguments = arguments_of(context, name, parameter) | {parameter: value}
    about = f"{name}({parameter}: {label})"
    lowered = []
    context.lowered = lowered
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = called(**arguments)
            if isinstance(found, Iterator):
                list(found)
    except ValueError as error:
        message = str(error)
        if lowered:
            return Outcome(about, "compiled", f"{lowered[:3]} before: {message}")
        lacks = [] if parameter in message else ["no name"]
        lacks += [] if is_shown(value, parameter, message) else ["no value"]
        lacks += [] if ADVICE.search(message) else ["no fix"]
        return Outcome(about, "unclear" if lacks else "refused", f"{', '.join(lacks)}: {message}")
    except Exception as error:
        return Outcome(about, "raw", f"{type(error).__name__}: {error}")
    finally:
        context.lowered = []
        plt.close("all")
    return Outcome(about, "silent", f"returned {type(found).__name__}")


@pytest.fixture(scope="module")
def context(tmp_path_factory, no_sweeps):
    """Fits and files; jaxtyping's checks of annotations, which users do not have, are off."""
    jaxtyping.config.update("jaxtyping_disable", True)
    made = Context(tmp_path_factory.mktemp("malformed"), no_sweeps)
    made.valid = valid(made)
    made.lowered = []
    listening = True

    def listen(event, seconds, **about):
        if listening and "jaxpr_to_mlir" in event:
            made.lowered.append(about.get("fun_name", "?"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield made
    listening = False
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_malformed_values_are_refused(context, name):
    outcomes = [try_out(context, name, *malformed) for malformed in inputs_of(name)]
    wrong = [outcome for outcome in outcomes if outcome.verdict != "refused"]
    assert not wrong, "\n".join(f"{o.verdict}: {o.input}: {o.text[:300]}" for o in wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_valid_values_are_taken(context, name):
    """What the malformed values are tried out beside is valid."""
    if name in (
        "to_fit",
        "FactorFit.impute",
        "Transform.from_wordnet",
        "results.topic_pictures.pyldavis",
    ):
        return  # a run of MCMC, data with gaps, NLTK or pyLDAvis are needed: tested elsewhere
    found = target(context, name)(**arguments_of(context, name, ""))
    if isinstance(found, Iterator):
        list(found)
    plt.close("all")


# --- the command line -------------------------------------------------------------------------

WHOLE = ("abc", "1.5", "", "nan", "-1", "12.5", "9" * 30, "True")
CHOICE = ("nonsense", "")
PATHS = ("", "a\0b")
VALUES: dict[str, tuple[str, ...]] = {
    "format": CHOICE,
    "read": ("nonsense", "nonsense=1", "=1", ""),
    "output": PATHS,
    "checkpoint": PATHS,
    "run": ("", "missing"),
    "data": ("", "missing"),
    "record": CHOICE,
    "score": CHOICE,
    "schedule": CHOICE,
    "sampler": CHOICE,
    "approximation": CHOICE,
    "moves": CHOICE,
    "checkpoint_seconds": ("abc", "", "nan", "-1"),
    "start_temperature": ("abc", "", "nan", "0.5", "3"),
    "known": ("abc", "", "2"),
    "interval": ("abc", "", "nan", "-1", "1.5"),
    "author": ("nobody at all",),
    "title": (),
    "effects": ("", "~ nonsense"),
    "time": ("", "nonsense"),
    "what": CHOICE,
    "formula": ("", "nonsense", "x ~ x", "~ x +"),
    "by": CHOICE,
    "column": CHOICE,
    "bins": CHOICE,
    "covariates": ("", "missing"),
    "labels": ("", "missing"),
    **{
        name: WHOLE
        for name in ("num_topics", "max_topics", "max_factors", "init_topics", "init_factors",
                     "num_parallel")
    },
}  # fmt: skip
"""Malformed texts of the options that are no integers by their type, nor hyperparameters."""
HYPERPARAMETER = (
    "abc", "-1", "0", "nan", "1e400", "", "Normal(0, 1)", "Gamma(-1, 1)", "Gamm(1, 1)",
    "__import__('os')", "[1", "0.1, -1",
)  # fmt: skip


def parsers(parser=None, names=()):
    """Yield the commands of the command line with their parsers."""
    parser = make_parser() if parser is None else parser
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for action in inner:
        for name, one in action.choices.items():
            yield from parsers(one, (*names, name))
    if not inner:
        yield " ".join(names), parser


PARSERS = dict(parsers())


def texts_of(command: str, action: argparse.Action) -> tuple[str, ...] | None:
    """Return malformed texts of an argument of a command, None if its kind is not known."""
    if action.nargs == 0:
        return ()  # a switch takes no value
    if action.dest in VALUES:
        return VALUES[action.dest]
    if action.type is int:
        return WHOLE
    model = bnp.MODELS.get(command.split()[-1])
    fields = inspect.signature(model).parameters if model is not None else ()
    return HYPERPARAMETER if action.dest in fields else None


def command_line(context: Context, command: str) -> list[str]:
    """Return arguments with which a command would run."""
    folder = context.folder
    if command.startswith(("fit", "choose")):
        model = bnp.MODELS[command.split()[-1]]
        factors = model.readers.data_type is bnp.Sources
        data = folder / ("sources.npz" if factors else "corpus.npz")
        fields = required_fields(model).items()
        required = [f"--{name.replace('_', '-')}={value}" for name, value in fields]
        if command.startswith("choose"):
            required += ["--folds=2", "--top=2"]
        return [
            *command.split(),
            str(data),
            f"--output={folder / 'out'}",
            "--no-progress",
            *required,
        ]
    other = {"factors": "factor_run", "authors": "author_run", "plot": "author_run"}
    run = folder / other.get(command, "run")
    columns = folder / "columns.csv"
    return {
        "effects": ["effects", str(run), "--formula=~ x", f"--covariates={columns}"],
        "time": ["time", str(run), "--column=x", f"--covariates={columns}"],
        "label": ["label", str(run), str(columns)],
        "transform": ["transform", str(run), str(folder / "corpus.npz")],
        "resume": ["resume", str(context.checkpoint), f"--output={folder / 'out'}"],
        "evaluate": ["evaluate", str(run), str(folder / "corpus.npz")],
        "demo": ["demo", "--quick"],
        "models": ["models"],
    }.get(command, [command, str(run)])


SECOND = {("evaluate", "data"), ("transform", "data"), ("label", "labels")}


def with_text(arguments: list[str], action: argparse.Action, text: str, command: str) -> list[str]:
    """Replace an argument of a command line."""
    if action.option_strings:
        return [*arguments, f"{action.option_strings[-1]}={text}"]
    first = len(command.split())
    place = first + (1 if (command, action.dest) in SECOND else 0)
    return [*arguments[:place], text, *arguments[place + 1 :]]


class TestCommandLine:
    def test_every_argument_has_a_kind(self):
        unknown = [
            f"{command}: {action.dest}"
            for command, parser in PARSERS.items()
            for action in parser._actions
            if texts_of(command, action) is None
        ]
        assert unknown == []

    @pytest.mark.slow
    @pytest.mark.parametrize("command", sorted(PARSERS))
    def test_malformed_texts_are_refused(self, context, command, capfd, monkeypatch):
        monkeypatch.chdir(context.folder)
        wrong = []
        for action in PARSERS[command]._actions:
            for text in texts_of(command, action) or ():
                if (command.replace("choose", "fit"), action.dest, text) in ACCEPTED:
                    continue
                arguments = with_text(command_line(context, command), action, text, command)
                status = main(arguments)
                said = " ".join(capfd.readouterr().err.split())
                about = f"{arguments[-1]!r}" if action.option_strings else f"{action.dest}={text!r}"
                names = {action.dest, action.dest.replace("_", "-")}
                shown = text if text else "''"
                clear = any(name in said.lower() for name in names) or "missing" in text
                parts = {shown[:20], repr(shown)[:20], shown.split("(")[0], shown.split(", ")[-1]}
                clear = clear and any(part in said for part in parts)
                if status != 2 or "Traceback" in said or not clear:
                    wrong.append(f"{status}: {about}: {said[-300:]}")
        assert not wrong, "\n".join(wrong)


class TestTables:
    def test_every_parameter_has_a_kind(self):
        unknown = [
            f"{name}.{parameter}"
            for name in PUBLIC
            for parameter in parameters_of(name)
            if kind_of(name, parameter) is None
        ]
        assert unknown == []

    def test_tables_name_what_exists(self):
        places = {f"{name}.{parameter}" for name in PUBLIC for parameter in parameters_of(name)}
        assert [place for place in KINDS_AT if place not in places] == []
        assert [name for name in PASSED_ON if name not in PUBLIC] == []
        for place in INTERNAL:
            importlib.import_module(f"bnp_models.{place}")
        for place in INTERNAL_FUNCTIONS:
            module, _, name = place.rpartition(".")
            assert name in importlib.import_module(f"bnp_models.{module}").__all__

    def test_options_that_are_passed_on_are_known(self):
        taking = [
            name
            for name, function in PUBLIC.items()
            if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
        ]
        given = [name for name in taking if name.endswith(".collapsed")]  # hyperparameters
        assert set(taking) <= {*PASSED_ON, *given}

    @pytest.mark.parametrize("name", sorted(PASSED_ON))
    def test_options_that_are_written_out_are_those_of_the_function(self, name):
        """A method that passes options on has all of them, with the same defaults."""
        own = inspect.signature(PUBLIC[name]).parameters
        if any(p.kind is p.VAR_KEYWORD for p in own.values()):
            return
        owner = name.rpartition(".")[0]
        for option in inspect.signature(resolve(PASSED_ON[name])).parameters.values():
            not_passed_on = {f"{name}.{option.name}", f"{owner}.*.{option.name}"} & {*NOT_PASSED_ON}
            if option.kind is option.KEYWORD_ONLY and not not_passed_on:
                assert option.name in own
                assert own[option.name].default == option.default

    def test_there_are_more_than_a_thousand_inputs(self):
        assert sum(len(inputs_of(name)) for name in PUBLIC) > 1000
