"""A corpus without any download: the docstrings of installed scientific Python packages."""

import importlib
import inspect
import re
import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = [
    "PLACES",
    "load_package_docs",
    "public_docstrings",
    "sentences",
]

PLACES: dict[str, tuple[str, ...]] = {
    package: tuple(paths.split())
    for package, paths in {
        "numpy": "linalg fft random polynomial ma lib.stride_tricks",
        "scipy": "cluster.hierarchy cluster.vq differentiate fft integrate interpolate io linalg "
        "ndimage optimize signal sparse sparse.csgraph sparse.linalg spatial spatial.distance "
        "spatial.transform special stats stats.contingency stats.qmc stats.sampling",
        "pandas": "api.types tseries.offsets DataFrame",
        "xarray": "Dataset",
        "jax": "numpy lax nn nn.initializers random scipy.linalg scipy.special scipy.stats "
        "tree_util sharding image profiler",
        "numpyro": "distributions distributions.constraints distributions.transforms infer "
        "infer.autoguide infer.reparam handlers diagnostics optim",
        "optax": "losses contrib projections schedules tree_utils",
        "sklearn": "base calibration cluster compose covariance cross_decomposition datasets "
        "decomposition discriminant_analysis dummy ensemble feature_extraction.image "
        "feature_extraction.text feature_selection gaussian_process gaussian_process.kernels "
        "impute inspection isotonic kernel_approximation kernel_ridge linear_model manifold "
        "metrics metrics.pairwise mixture model_selection multiclass multioutput naive_bayes "
        "neighbors neural_network pipeline preprocessing random_projection semi_supervised svm "
        "tree utils experimental.enable_halving_search_cv experimental.enable_iterative_imputer",
    }.items()
}
"""Modules and classes whose functions are read, by package; the package itself comes first."""

REPEATED = 5
"""Sentences in more documents than this are boilerplate."""

_JARGON = (
    "arg args argument arguments array arrays bool boolean callable default defaults does dtype "
    "example examples false float following int integer integers kwarg kwargs ndarray none note "
    "notes numpy optional parameter parameters passed provided return returned returns specified "
    "specifies specify str string tuple true uses aren couldn didn doesn don isn won"
).split()


def load_package_docs(
    packages: Sequence[str] = tuple(PLACES),
    *,
    min_tokens: int = 20,
    min_df: int = 5,
    max_df: float = 0.15,
) -> Corpus:
    """Make a corpus of the docstrings of scientific Python packages, without any download.

    A document is a public function or class, named in full; its group is its package. The texts are
    English prose about arrays, distributions, filters, clusters, data frames and so on. Code,
    signatures, types, formulas, citations and boilerplate are left out. The documents depend on the
    installed versions. Use the corpus for demonstrations and for tests that need some thousands of
    real documents, not for published numbers.

    Parameters
    ----------
    packages
        Keys of `PLACES`; packages that are not installed are skipped.
    min_tokens
        Shorter documents are dropped.
    min_df, max_df
        Keep words that occur in at least `min_df` documents and in at most a share `max_df` of
        them.

    Raises
    ------
    ValueError
        If a package is not in `PLACES`, or none of them is installed.
    """
    packages = arguments.texts("packages", packages, some=True)
    for package in packages:
        arguments.one_of("packages", package, PLACES)
    arguments.integer("min_tokens", min_tokens)
    for name, df in (("min_df", min_df), ("max_df", max_df)):
        arguments.count_or_share(name, df)
    found = public_docstrings({package: ("", *PLACES[package]) for package in packages})
    if not found:
        raise ValueError(f"none of {list(packages)} is installed; give others")
    texts = [sentences(docstring) for _, docstring in found.values()]
    documents = Counter(sentence for text in texts for sentence in set(text))
    corpus = Corpus.from_texts(
        [" ".join(s for s in text if documents[s] <= REPEATED) for text in texts],
        groups=[package for package, _ in found.values()],
        doc_names=list(found),
        token_pattern=r"(?u)\b[^\W\d_]{3,}\b",
        min_df=min_df,
        max_df=max_df,
    ).prune(stop_words=_JARGON)
    return corpus.select(corpus.doc_length >= min_tokens).prune(min_df=min_df)


_FIELDS = frozenset(
    "parameters,other parameters,returns,return,yields,receives,raises,warns,args,arguments,"
    "keyword args,keyword arguments,parameter,return value".split(",")
)
_SKIPPED = frozenset(  # code, names of other functions, citations
    "see also,examples,example,references,reference,citation,citations,methods,attributes,usage,"
    "example usage,call signature,call signatures,base class,see".split(",")
)
_PROSE = frozenset(["note", "notes", "warning", "warnings", "tip", "important", "attention"])
_RULE = re.compile(r"\s*([-=~^*#+_.])\1*([-=~^*#+_. ]*\1)?\s*")  # underlines and borders of tables
_ADMONITION = re.compile(rf"\.\. ({'|'.join(sorted(_PROSE))})::")
_SIGNATURE = re.compile(r"[\w.]+\(.*\)?\s*(->.*)?")
_SPHINX = re.compile(r":(param|parameter|arg|return|returns|raises|raise|rtype|type|ivar)\b[^:]*:")
_GOOGLE = re.compile(r"\*{0,2}[\w., *]+(\([^)]*\))?\s*:\s")
_LINK = re.compile(r"`([^`<]+?)\s*<[^>`]*>`_{1,2}|`([A-Za-z][a-z]*(?: [A-Za-z][a-z-]*)+)`_{0,2}")
_INLINE = re.compile(
    r":[\w:+-]+:`[^`]*`"  # cross references and formulas
    r"|``.*?``|`[^`]*`_{0,2}|\$[^$]*\$|\|[\w-]+\||\[[\w, ]+\]_|<[^<>\s][^<>]*>|https?://\S+"
    r"|[\"'][\w.-]*[\"']|\\\w+|\b(?:[\w.]+\([^()]*\)|\w+(?:\.\w+)+|[a-zA-Z0-9]*_\w*|\w+=\S+)"
)
_END = re.compile(r"(?<=[.!?:;])\s+")


def sentences(docstring: str) -> list[str]:
    """Return the sentences of a docstring, in order; a list item counts as a sentence."""
    lines = inspect.cleandoc(docstring).split("\n")
    while lines and (_SIGNATURE.fullmatch(lines[0].strip()) or not lines[0].strip()):
        del lines[0]
    paragraphs: list[list[str]] = [[]]
    section = ""  # of numpydoc: the last title with a rule below it
    google: int | None = None  # indent of a Google section, a title with a colon
    skip: int | None = None  # lines that are indented more than this are no prose
    doctest = False
    for line, below in zip(lines, [*lines, ""][1:], strict=True):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        doctest = bool(text) and (doctest or text.startswith(">>>"))
        if doctest or (text and skip is not None and indent > skip):
            continue
        skip = skip if not text else None
        title = text.strip("*").rstrip(":").strip("*").lower()
        if not text or _RULE.fullmatch(text):
            paragraphs.append([])
        elif below.strip() and _RULE.fullmatch(below.strip()):
            section = title
        elif text.strip("*").endswith(":") and title in _FIELDS | _SKIPPED | _PROSE:
            google = indent if title in _FIELDS else None
            skip = indent if title in _SKIPPED else None
        elif section in _SKIPPED:
            pass
        elif section in _FIELDS and indent == 0:
            paragraphs.append([])  # the line has a parameter's name and type
        elif text.startswith(".. ") and not _ADMONITION.match(text):
            skip = indent
        else:
            if text.endswith("::"):
                skip = indent
            google = None if google is None or indent <= google else google
            field = _SPHINX.match(text) or (google is not None and _GOOGLE.match(text))
            if field or text.startswith(("* ", "- ", ".. ")):
                paragraphs.append([])
            text = text[field.end() :] if field else _ADMONITION.sub("", text)
            paragraphs[-1].append(text)
    prose = "\n".join(" ".join(paragraph) for paragraph in paragraphs)
    prose = _LINK.sub(lambda match: match[1] or match[2], prose)
    prose = _INLINE.sub(" ", prose)
    found = (part for line in prose.split("\n") for part in _END.split(line))
    return [" ".join(sentence.split()) for sentence in found if sentence.strip()]


def public_docstrings(places: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Collect the docstrings of the public functions and classes of installed packages.

    Parameters
    ----------
    places
        Modules and classes to read, by package and relative to it; "" is the package itself. Places
        that do not exist are skipped.

    Returns
    -------
        Package and docstring by qualified name. An object that is found in several places is named
        by the first of them, in the order given.
    """
    found: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Import all before reading one: a package may write docstrings of another's objects.
        resolved = {
            (package, path): _resolve(package, path)
            for package, paths in places.items()
            for path in paths
        }
        for (package, path), place in resolved.items():
            keys = getattr(place, "__all__", None) or (dir(place) if place else ())
            for key in sorted(key for key in keys if not key.startswith("_")):
                thing = _attribute(place, key)
                docstring = getattr(thing, "__doc__", None)
                if not (callable(thing) and isinstance(docstring, str)):
                    continue
                if docstring not in seen and not _is_added(place, thing):
                    seen.add(docstring)
                    found[".".join(filter(None, (package, path, key)))] = package, docstring
    return found


def _resolve(package: str, path: str) -> Any:
    """Import a module, or take an attribute of the package; None if there is neither."""
    try:
        return importlib.import_module(f"{package}.{path}" if path else package)
    except ImportError:
        return _attribute(sys.modules.get(package), path)


def _is_added(place: object, thing: object) -> bool:
    """Tell whether the class `thing` was attached to the class `place` by another package."""
    if not (isinstance(place, type) and isinstance(thing, type)):
        return False
    return place.__module__.partition(".")[0] != thing.__module__.partition(".")[0]


def _attribute(place: object, key: str) -> Any:
    """Get an attribute; None if it is missing, or an optional part that can't be imported."""
    try:
        return getattr(place, key, None)
    except ImportError:
        return None
