"""Ctrl-C during a run."""

import signal
import threading

import pytest

from bnp_models.run.interrupt import Interrupt, Stopped, in_thread


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


class TestInThread:
    def test_returns_and_raises_what_the_work_does(self):
        assert in_thread(threading.current_thread, lambda: False) is not threading.main_thread()
        with pytest.raises(ZeroDivisionError):
            in_thread(lambda: 1 // 0, lambda: False)

    def test_an_interrupt_ends_the_wait_but_not_the_work(self):
        end = threading.Event()
        with Interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(Stopped):
                in_thread(end.wait, lambda: interrupt.pending)
        end.set()
