"""Ctrl-C during a run."""

import signal
import threading

import pytest

from bnp_models.run.interrupt import Interrupt


def test_the_first_is_noted_the_second_raises():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt:  # noqa: PT012
        assert not interrupt.pending
        signal.raise_signal(signal.SIGINT)
        assert interrupt.pending
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert not interrupt.pending
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_have_no_signals():
    found = []

    def run():
        with Interrupt() as interrupt:
            found.append(interrupt.pending)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False]
