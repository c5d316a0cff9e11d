"""The Ray engine on a small cluster of this machine: the rows of the local one, also when a worker is killed."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch

from sentloom.errors import InputError
from sentloom.writing.filters import Filtering
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, synthesize
from tests.writing.ledgers import derived, raw_texts, rows_of
from tests.writing.small_synthesizers import build_small_t5

FAULT = "3. kill -9 in synthesis and filtering"

pytestmark = pytest.mark.long  # Ray alone takes ten seconds to start
SAMPLING, LOOSE = Sampling(length=6), Filtering(threshold=0, finished=False)
LOCAL, QUICK = Execution(block=2), {"show_progress": False}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_small_t5(tmp_path_factory.mktemp("models") / "t5")


@pytest.fixture(scope="module")
def ray():
    found = pytest.importorskip("ray", reason="Ray is not installed: pip install 'sentloom[ray]'")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield found
    found.shutdown()


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """The ledger of the local engine, with one thread as a worker has."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("whole") / "ledger"
    synthesize(raw_texts(40), model, folder, SAMPLING, LOOSE, LOCAL, **QUICK)
    torch.set_num_threads(before)
    return folder


def workers_of(process):
    """The ids of the Ray actors below a process: of this run, not of another."""
    if not Path(f"/proc/{process}/task").exists():
        return []
    children = [
        int(child) for task in Path(f"/proc/{process}/task").iterdir() for child in read(task / "children").split()
    ]
    own = [child for child in children if "MapWorker" in read(Path(f"/proc/{child}/cmdline"))]
    return own + [found for child in children for found in workers_of(child)]


def read(path):
    try:
        return path.read_text()
    except OSError:  # it has just ended
        return ""


def kill_a_worker(folder):
    """Wait until some blocks are there, then kill -9 one actor's process."""
    while len(list((folder / "blocks").glob("[0-9]*"))) < 3:
        time.sleep(0.005)
    busy = [worker for worker in workers_of(os.getpid()) if "__init__" not in read(Path(f"/proc/{worker}/cmdline"))]
    os.kill(busy[0], signal.SIGKILL)
    return busy[0]


def test_two_workers_one_of_them_killed_make_the_rows_of_one_process(ray, model, whole, tmp_path):
    folder, killed = tmp_path / "ledger", []
    killer = threading.Thread(target=lambda: killed.append(kill_a_worker(folder)), daemon=True)
    killer.start()
    synthesize(raw_texts(40), model, folder, SAMPLING, LOOSE, Execution(engine="ray", workers=2, block=2), **QUICK)
    killer.join(10)
    assert len(killed) == 1
    assert rows_of(folder) == rows_of(whole)
    assert derived(folder) == derived(whole)


def test_ray_goes_on_where_the_local_engine_stopped(ray, model, whole, tmp_path):
    synthesize(raw_texts(40), model, tmp_path, SAMPLING, LOOSE, LOCAL, rows=37, **QUICK)
    synthesize(raw_texts(40), model, tmp_path, SAMPLING, LOOSE, Execution(engine="ray", workers=1, block=2), **QUICK)
    assert rows_of(tmp_path) == rows_of(whole)


def test_more_workers_than_cores_are_refused(ray, model, tmp_path):
    with pytest.raises(InputError, match="there are 99 workers for"):
        synthesize(
            raw_texts(4), model, tmp_path, SAMPLING, LOOSE, Execution(engine="ray", workers=99, block=2), **QUICK
        )
