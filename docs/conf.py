"""Settings of the documentation: `make docs` builds it.

The source folder is the root of the repository, so that the README and the notebooks are read where
they are, and their links work in the pages as they do in the repository. The build fails if a
public name has no entry in `api.md` or no docstring.
"""

import os
import re
import sys
from pathlib import Path

from sphinx.errors import ExtensionError

import bnp_models

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import claims  # noqa: E402
import public_names  # noqa: E402

SMOKE = bool(os.environ.get("BNP_SMOKE"))  # few draws, as in the notebooks

API = ROOT / "docs" / "api.md"
LISTED = public_names.entries(API.read_text())

project = "bnp-models"
author = "The bnp-models developers"
version = release = bnp_models.__version__

root_doc = "docs/index"
_READ = ("README.md", "docs", "notebooks")
exclude_patterns = [path.name for path in ROOT.iterdir() if path.name not in _READ]
exclude_patterns += ["docs/README.md"]
exclude_patterns += [f"docs/_{folder}" for folder in ("build", "html", "static", "templates")]
exclude_patterns += ["**/.ipynb_checkpoints"]

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

# Outputs of notebooks are kept: a notebook runs again only if its code has changed.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "docs" / "_build" / ("smoke" if SMOKE else "full"))
nb_execution_timeout = 1200  # seconds for a cell
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_output_stderr = "remove"  # progress bars
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"  # parameters are described in the docstrings
autodoc_member_order = "bysource"
default_role = "code"  # of `names` in docstrings
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # the templates list them
numpydoc_xref_param_type = False

templates_path = [str(ROOT / "docs" / "_templates")]
html_theme = "furo"
html_title = f"bnp-models {release}"
html_extra_path = ["_html"]  # index.html at the top, which leads to docs/index.html
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_show_sourcelink = False


def read_formulas(app, what, name, obj, options, lines):
    """Turn the formulas of a docstring, between dollar signs, into those of reStructuredText."""
    text = re.sub(
        r"^( *)\$\$(.+?)\$\$",
        lambda found: f"{found[1]}.. math:: {' '.join(found[2].split())}\n",
        "\n".join(lines),
        flags=re.DOTALL | re.MULTILINE,
    )
    lines[:] = re.sub(r"\$([^$]+)\$", r":math:`\1`", text).split("\n")


def name_priors(app, what, name, obj, options, signature, returned):
    """Write a default that is a distribution by its name, without its place in memory."""
    prior = r"<numpyro\.distributions\.[\w.]*?(\w+) object at [^>]*>"
    return (re.sub(prior, r"\1(...)", signature), returned) if signature else None


def check_names(app):
    """Stop the build if `api.md` leaves something out."""
    page = API.read_text()
    if wrong := [*public_names.problems(page), *public_names.undescribed(page)]:
        raise ExtensionError("the API is not complete:\n" + "\n".join(wrong))


def describe_parameters(app, what, name, obj, options, lines):
    """Describe parameters that a method passes on, as the function does that takes them."""
    if what in ("function", "method") and lines:
        owner = public_names.owner(name)
        text = public_names.linked(public_names.described(obj, owner), LISTED)
        lines[:] = public_names.joined(text).split("\n")


def insert_claims(app, page, source):
    """Put the tables of claims where the page has their marks."""
    if page == "docs/claims":
        source[0] = claims.fill_in(source[0], ROOT / "experiments" / "results")


def unlink_folders(app, page, source):
    """Write links to what has no page here (folders, studies) as plain text."""
    source[0] = re.sub(r"\[([^\]]+)\]\((?:notebooks|experiments/[^)]*)\)", r"\1", source[0])


def setup(app):
    """Read formulas before numpydoc reads the docstring, and descriptions before the formulas."""
    app.connect("builder-inited", check_names)
    app.connect("source-read", unlink_folders)
    app.connect("source-read", insert_claims)
    app.connect("autodoc-process-docstring", describe_parameters, priority=300)
    app.connect("autodoc-process-signature", name_priors)
    app.connect("autodoc-process-docstring", read_formulas, priority=400)
