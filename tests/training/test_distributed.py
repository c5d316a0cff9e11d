"""Two processes with half a batch each have the gradient of one process with the whole batch."""

import os
import signal
import socket
import time
import traceback

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState

from sentloom.data.batches import Batches
from sentloom.training import Selection, train
from sentloom.training.gradients import add_gradients, average_gradients
from tests.training.small_runs import (
    CASES,
    WHOLE,
    build,
    data_for,
    far,
    gradients,
    journal,
    nudge,
    quick_first,
    settings,
    similarity,
    state,
    unequal,
    whole_loss,
)

LONGEST = 300  # seconds
CHUNKS = (None, 3)  # 3 of 4 rows leave a rest of 1


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def wait_for(children):
    """Their exit codes; those that wait for each other forever are killed."""
    codes, until = {}, time.monotonic() + LONGEST
    while len(codes) < len(children):
        for child in set(children) - codes.keys():
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
            ended, code = os.waitpid(child, os.WNOHANG)
            if ended:
                codes[child] = code
        time.sleep(0.01)
    return [codes[child] for child in children]


def in_two_processes(work, folder):
    """Fork twice from this warm process; each joins the group and leaves what `work` returns in a file."""
    port, children = str(free_port()), []
    for rank in range(2):
        child = os.fork()
        if child:
            children.append(child)
            continue
        try:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            for state in (AcceleratorState, PartialState, GradientState):
                state._reset_state()
            accelerator = Accelerator(cpu=True)
            assert (accelerator.num_processes, accelerator.process_index) == (2, rank)
            torch.save(work(accelerator), folder / f"{rank}.pt")
            accelerator.end_training()
        except BaseException:
            (folder / f"{rank}.txt").write_text(traceback.format_exc())
            os._exit(1)
        os._exit(0)
    codes = wait_for(children)
    faults = [path.read_text() for path in folder.glob("*.txt")]
    assert codes == [0, 0], "\n".join(faults)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.fixture
def pair_gradients(bert, tmp_path):
    """Losses, gradients and buffers of a case in two processes, for every chunk."""

    def of(case):
        def work(accelerator):
            torch.set_num_threads(1)
            results = {}
            for chunk in CHUNKS:
                method = nudge(build(case, bert, dropout=0.0))
                batch = Batches(data_for(case), 8, seed=5).batch(0)
                loss = add_gradients(method, batch, accelerator, chunk)
                average_gradients(method, accelerator)
                none = [name for name, p in method.named_parameters() if p.grad is None]
                buffers = {name: buffer.clone() for name, buffer in method.named_buffers()}
                results[chunk] = (loss, gradients(method), buffers, none)
            return results

        return in_two_processes(work, tmp_path)

    return of


@pytest.fixture
def pair_run(bert, tmp_path):
    """The folder of a run of two processes, and the final state of each."""

    def of(case):
        def work(accelerator):
            torch.set_num_threads(1)
            method = build(case, bert, dropout=0.0)
            made = settings(checkpoint_seconds=0, weight_decay=0.1)
            selection = Selection(similarity, every=2)
            folder = tmp_path / case
            train(method, data_for(case), made, seed=5, folder=folder, accelerator=accelerator, selection=selection)
            return state(method)

        return tmp_path / case, in_two_processes(work, tmp_path)

    return of


@pytest.mark.parametrize("case", quick_first(CASES, ("bootstrapped", "contrastive", "mlm", "cross-lingual")))
def test_the_gradient_is_that_of_the_joint_batch(case, pair_gradients, bert):
    method = nudge(build(case, bert, dropout=0.0))
    batch = Batches(data_for(case), 8, seed=5).batch(0)
    loss = whole_loss(method, batch)
    loss.backward()
    one, other = pair_gradients(case)
    for chunk in CHUNKS:
        for found, gradient, buffers, none in (one[chunk], other[chunk]):
            assert found == pytest.approx(loss.item(), rel=1e-5)
            assert far(gradient, gradients(method)) < 1e-5
            assert none == [name for name, p in method.named_parameters() if p.grad is None]
            for name, buffer in method.named_buffers():  # BatchNorm saw the rows of both
                torch.testing.assert_close(buffers[name], buffer, rtol=1e-5, atol=1e-6)
        assert torch.equal(one[chunk][1], other[chunk][1])


@pytest.mark.parametrize("case", quick_first(WHOLE, ("cross-lingual",)))
def test_a_whole_run_of_two_is_that_of_one(case, pair_run, bert, tmp_path):
    folder, (one, other) = pair_run(case)
    assert unequal(one, other) == []
    method = build(case, bert, dropout=0.0)
    selection = Selection(similarity, every=2)
    train(method, data_for(case), settings(weight_decay=0.1), seed=5, folder=tmp_path / "one", selection=selection)
    lines, expected = journal(folder), journal(tmp_path / "one")
    assert [set(line) for line in lines] == [set(line) for line in expected]  # written once
    for line, expected_line in zip(lines, expected, strict=True):
        for name in line.keys() & {"step", "loss", "gradient_norm", "masked", "mean_cosine"}:
            # Steps add up what rounding makes of two orders of summation; the gradients themselves are compared above.
            assert line[name] == pytest.approx(expected_line[name], rel=0.1, abs=1e-3), name
    saved = sorted(path.name for path in (folder / "checkpoints").glob("step-*"))
    assert saved == ["step-00000006", "step-00000007"]
    if case == "cross-lingual":
        check_queues(method, (one, other))


def check_queues(method, states_of_two):
    """The queue of two processes is that of one: the same rows, in the same places."""
    assert method.queue.count == 8 * 8  # rows of as many steps, round a queue of 21
    for states in states_of_two:
        assert torch.equal(states["queue.keys"], method.queue.keys)
        assert torch.equal(states["queue.count"], method.queue.count)
        torch.testing.assert_close(states["queue.vectors"], method.queue.vectors, rtol=1e-4, atol=1e-5)


def test_a_signal_to_one_of_them_stops_both_at_the_same_step(bert, tmp_path):
    def work(accelerator):
        count = 0

        def press():
            nonlocal count
            count += 1
            if count == 3 and accelerator.process_index == 1:
                signal.raise_signal(signal.SIGINT)

        method = build("simcse", bert)
        method.after_step = press
        with pytest.raises(KeyboardInterrupt):
            train(method, data_for("simcse"), settings(), seed=5, folder=tmp_path / "run", accelerator=accelerator)
        return count

    assert in_two_processes(work, tmp_path) == [3, 3]
    assert [path.name for path in (tmp_path / "run/checkpoints").iterdir()] == ["step-00000003"]
