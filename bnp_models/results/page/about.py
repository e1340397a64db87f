"""The part of the page about the run: model, data, sampler, versions, and how to read it again."""

import json
from pathlib import Path
from typing import Any

from bnp_models.results.page.markup import Html, Section, joined, paragraph, shortened, tag

__all__ = ["about_section", "data_text", "run_text"]

MAX_LENGTH = 3000  # of a model or an option in words


def data_text(fit: Any) -> str:
    """Say in a sentence how large the data are."""
    data = fit.dataset
    if hasattr(data, "num_docs"):
        sizes = [
            (data.num_docs, "documents"), (data.num_tokens, "tokens"), (data.num_words, "words"),
        ]  # fmt: skip
        sizes += [(len(data.group_names), "groups")] if data.group is not None else []
        sizes += [(len(data.author_names), "authors")] if data.author_idx is not None else []
        sizes += [(len(data.label_names), "labels")] if data.label_names else []
    else:
        sizes = [(data.num_rows, "rows"), (data.num_features, "features")]
        sizes += [(data.num_sources, "sources")]
    *first, last = [f"{size:,} {name}" for size, name in sizes]
    return f"{', '.join(first)} and {last}" if first else last


def run_text(fit: Any) -> str:
    """Say in a sentence how many chains and draws there are."""
    sizes, attrs = fit.posterior.sizes, fit.data.attrs
    text = f"{sizes['chain']} {'chain' if sizes['chain'] == 1 else 'chains'} "
    text += f"with {sizes['draw']:,} kept draws each"
    if "num_warmup" in attrs:
        text += f", after {int(attrs['num_warmup']):,} sweeps of warm-up"
    return text


def about_section(fit: Any, folder: Path | None) -> Section:
    """Describe the run, so that it can be repeated and read again.

    Parameters
    ----------
    fit
        What the page is about.
    folder
        The folder of the run, if the fit is in one.
    """
    attrs = fit.data.attrs
    rows: list[tuple[str, Any]] = [("model", tag("code", shortened(repr(fit.model), MAX_LENGTH)))]
    rows += [("data", data_text(fit)), ("chains", run_text(fit))]
    named = {"num_samples": "sweeps after the warm-up", "thinning": "sweeps per kept draw"}
    named |= {"keep_states": "full states kept per chain", "seed": "seed"}
    rows += [(said, str(attrs[name])) for name, said in named.items() if name in attrs]
    options = json.loads(attrs.get("options", "{}"))
    given = {name: value for name, value in options.items() if value not in (None, [], ())}
    if given:
        listed = ", ".join(f"{name}={value!r}" for name, value in given.items())
        rows.append(("sampler", tag("code", shortened(listed, MAX_LENGTH))))
    if "sampling_seconds" in attrs:  # not where `MCMC` drew
        seconds, compiling = float(attrs["sampling_seconds"]), float(attrs["compile_seconds"])
        rows.append(("time", f"{seconds:,.1f} s, of which compiling took {compiling:,.1f} s"))
    versions = json.loads(attrs.get("versions", "{}"))
    if versions:
        rows.append(("versions", ", ".join(f"{name} {value}" for name, value in versions.items())))
    if "data" in attrs:
        rows.append(("SHA-256 of the data", tag("code", attrs["data"])))
    listed = tag("dl", [joined(tag("dt", name), tag("dd", value)) for name, value in rows])
    return Section("about", "About this run", joined(listed, _reload(fit, folder)))


def _reload(fit: Any, folder: Path | None) -> Html:
    """Say how the fit is read again."""
    if folder is not None:
        code = f"import bnp_models as bnp\n\nfit = bnp.load({str(folder)!r})"
        said = "To go on with this fit, read it from the folder of the run:"
    else:
        file = fit.model.readers.file
        kind, data = type(fit).__name__, type(fit.dataset).__name__
        how = ""
        if getattr(fit.dataset, "is_mapped", False):
            file, how = file.removesuffix(".npz"), ", mapped=True"
        code = (
            "import bnp_models as bnp\n\n"
            f'fit.save("draws.nc")\nfit.dataset.save("{file}"{how})\n\n'
            f'data = bnp.{data}.load("{file}")\nfit = bnp.{kind}.load("draws.nc", data)'
        )
        said = "To go on with this fit another time, save its draws and its data:"
    return joined(
        tag("h3", "Read it again"), paragraph(said), tag("pre", tag("code", code), tabindex="0")
    )
