"""Processes that judge parts of a study beside each other."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")  # small matrices: one each is fastest


class _InThisProcess(Executor):
    """Does the work in this process, when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def workers(processes: int) -> Iterator[Executor]:
    """Open a pool of processes of one thread each; with one, all work is done in this process.

    Changes the environment while it is open. An exception in the block ends the processes at once.
    """
    if processes == 1:
        yield _InThisProcess()
        return
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # for the processes that are started now
    try:
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
        try:
            yield pool
        except BaseException:  # Ctrl-C, too: nobody waits for what is still to be done
            with suppress(RuntimeError):  # of a pool that was just being started
                pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        pool.shutdown()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
