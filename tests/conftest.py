"""Set up JAX and matplotlib before any test imports them.

A test that takes more than a few seconds is marked `@pytest.mark.slow`; `pytest -m "not slow"`
leaves it out, plain `pytest` runs everything. `JAX_PLATFORMS=cuda pytest` tests on a GPU.

`BNP_SECONDS=FOLDER` in the environment notes there where the seconds of each test go;
`python tests/seconds.py FOLDER` makes a table of them.

`BNP_EVIDENCE=SEED` leaves out two thirds of the slow tests and of those that compile as users do;
the seed chooses them. Slow tests of kernels have a rule of their own, see `tests/kernels`.
"""

import contextlib
import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

# Through the environment, so that the processes which tests start inherit it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")  # code that shards over devices has two to use
os.environ.setdefault("MPLBACKEND", "Agg")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script, under nohup
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest

BEGUN = time.perf_counter()
MARK = "no sweeps"
SHARE = 1 / 3  # of the slow tests, where others may be left out
KERNELS = Path(__file__).parent / "kernels"
spent = Counter()  # seconds of JAX in this process, by kind of work


class Nothing(NamedTuple):
    """The report of a sweep that is not made."""


def pytest_configure():
    if "BNP_SECONDS" in os.environ:
        import jax

        jax.monitoring.register_event_duration_secs_listener(count)


def pytest_collection_modifyitems(items):
    seed = os.environ.get("BNP_EVIDENCE")
    if seed is None:
        return
    for item in items:
        slow = item.get_closest_marker("slow") and KERNELS not in item.path.parents
        if not slow and not item.get_closest_marker("optimised"):
            continue
        # tests that share a fit are chosen together
        cls = getattr(item, "cls", None)
        name = cls.__name__ if cls else item.name.partition("[")[0]
        case = item.callspec.id if hasattr(item, "callspec") else ""
        if random.Random(f"{seed} {item.path.name} {name} {case}").random() >= SHARE:
            reason = f"a third of the slow tests runs, without this one (seed {seed})"
            item.add_marker(pytest.mark.skip(reason=reason))


def count(event, seconds, **_):
    spent[event.rpartition("/")[2]] += seconds


def pytest_collection_finish(session):
    if session.items:
        note("", "importing and collecting", time.perf_counter() - BEGUN)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    note(item.nodeid, call.when, call.duration)
    return (yield)


def note(test, when, seconds):
    if folder := os.environ.get("BNP_SECONDS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        line = json.dumps({"test": test, "when": when, "seconds": seconds, **spent})
        spent.clear()
        with (Path(folder) / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(line + "\n")


@pytest.fixture(autouse=True)
def room_for_programs():
    """Keep a long test session below the number of memory mappings that Linux grants."""
    from bnp_models.base.other_packages import make_room

    make_room()


@pytest.fixture(autouse=True, scope="module")
def room_for_arrays():
    """Give back what compiling took: test processes share the memory."""
    yield
    from bnp_models.base.other_packages import trim

    trim()


@pytest.fixture(scope="session")
def no_sweeps():
    """Make a context in which chains stay at their first states: no sweep is traced or compiled.

    For tests of what is done with a fit, to which any states will do. Draws that are made from a
    state, such as `phi`, still differ. The fits have no statistics of sweeps but `lp`.
    """
    from unittest import mock

    from bnp_models.base.gibbs import GibbsKernel

    for_fit, sampler = GibbsKernel.for_fit, GibbsKernel.sampler

    def marked(kernel, num_warmup):
        kernel = for_fit(kernel, num_warmup)
        kernel._ignore = kernel._ignore | {MARK}  # not equal to one that samples
        return kernel

    def still(kernel, sampled_by_other_blocks=()):
        found = sampler(kernel, sampled_by_other_blocks)
        if MARK in kernel._ignore:
            found.step = stay
        return found

    def stay(rng_key, state, data, turn, power):
        return state, Nothing()

    @contextlib.contextmanager
    def context():
        with (
            mock.patch.object(GibbsKernel, "for_fit", marked),
            mock.patch.object(GibbsKernel, "sampler", still),
        ):
            yield

    return context


@pytest.fixture(scope="session")
def made_up_factors():
    """Make a fit of a factor model without sampling: two chains of two states of given factors.

    The last state has the factors in other slots and, if asked for, turned round.
    """

    import numpy as np

    from bnp_models.base.factor_model import DIMS
    from bnp_models.posterior.arviz_data import make_data

    def make(model, sources, phi, weights, *, turned=False, **of_source):
        count, (num_factors, num_features) = sources.num_sources, phi.shape
        slots = num_factors + 1
        all_phi = np.zeros((2, 2, slots, num_features))
        all_weights = np.zeros((2, 2, sources.num_rows, slots))
        for c, d in np.ndindex(2, 2):
            last = (c, d) == (1, 1)
            place = np.arange(num_factors)[::-1] if last else np.r_[0, 2:slots]
            sign = -1 if turned and last else 1
            all_phi[c, d, place], all_weights[c, d][:, place] = sign * phi, sign * weights
        states = {"phi": all_phi, "weights": all_weights, "z": (all_weights != 0).astype(np.uint8)}
        states |= {"beta": np.full((2, 2, slots), 0.3), "alpha": np.ones((2, 2, count))}
        states |= {name: np.broadcast_to(x, (2, 2, count)) for name, x in of_source.items()}
        groups = {
            "posterior": {"num_factors_used": np.array([[2, 2], [2, 3]])},
            "sample_stats": {"lp": np.array([[1.0, 4], [2, 3]])},
            "states": states,
        }
        attrs = {"model": json.dumps(model.describe()), "data": sources.digest}
        data = make_data(groups, dims=DIMS, coords=sources.coords, attrs=attrs)
        return model.result_class()(model, sources, data)

    return make
