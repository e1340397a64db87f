"""A corpus without any download: the docstrings of installed scientific Python packages."""

from collections import Counter
from collections.abc import Sequence

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.data.docstrings import public_docstrings, sentences

__all__ = ["PLACES", "load_package_docs"]

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
