"""Pictures of a run, as they are written to its folder and to its report."""

import io
from typing import Any

import numpy as np

from bnp_models.posterior.arviz_data import has_group

__all__ = ["png", "run_pictures"]


def run_pictures(fit: Any, drawn: dict[str, Any] | None = None) -> dict[str, Any]:
    """Draw how the chains ran, and what `fit.summaries()` draws.

    Parameters
    ----------
    fit
        What to draw.
    drawn
        Those of `summaries`, if they are there already.
    """
    pictures: dict[str, Any] = {"traces": fit.plot_traces()}
    if has_group(fit.data, "history"):  # not where `MCMC` drew
        pictures["history"] = fit.plot_history()
    if fit.posterior.sizes["chain"] > 1:
        pictures["ranks"] = fit.plot_ranks()
    return pictures | (fit.summaries().drawn if drawn is None else drawn)


def png(axes: Any) -> bytes:
    """Return the figure of some axes as a PNG file, and close it."""
    import matplotlib.pyplot as plt

    figure = np.asarray(axes, dtype=object).flat[0].figure
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    plt.close(figure)
    return content.getvalue()
