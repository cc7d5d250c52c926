from __future__ import annotations

import gc
import json
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tpu_lab.compiler.events import BreakTold, Frame, GraphTold, RecompileTold, RegionTold
from tpu_lab.device import events
from tpu_lab.device.events import OpProgram
from tpu_lab.record import Run, codec
from tpu_lab.recording import recorder as recorder_module
from tpu_lab.recording.frames import CellText
from tpu_lab.recording.recorder import Recorder

from .fakes import F32, Buffer, FakeDevice

CELL = "/tmp/ipykernel_7/42.py"
OTHER = "/tmp/ipykernel_7/41.py"


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


@pytest.fixture(autouse=True)
def empty_slot() -> Iterator[None]:
    yield
    assert events.observer is None


def cell(text: str, device: FakeDevice, filename: str = CELL, **names: Any) -> Callable[[], None]:
    code = compile(text, filename, "exec")
    return lambda: exec(code, {"device": device, **names})


def lines(run: Run) -> list[tuple[int, int]]:
    """For each op the line of the cell and of the nearest user code; 0: none."""
    at = [
        (run.locations[op.cell_location].line if op.cell_location >= 0 else 0, run.locations[op.location].line if op.location >= 0 else 0)
        for op in run.ops
    ]
    return at


def test_ops_carry_what_the_device_told(device: FakeDevice) -> None:
    a, b = device.buffer(), device.buffer(512)
    with Recorder(mode="compile", name="mine", target="XLA:CPU") as recorder:
        out = device.run("aten.add.Tensor", [a, b])
        device.run("aten.relu_.default", [out], into=out, kind="host")
    run = recorder.run
    assert (run.mode, run.name, run.device, run.blocking) == ("compile", "mine", "tpu", True)
    first, second = run.ops
    program = run.programs[first.program]
    assert (program.op, program.kind, program.flops, program.bytes, program.kernels) == ("aten.add.Tensor", "xla", 128.0, 768, 1)
    assert program.inputs[0].shape == (8, 8) and program.outputs[0].dtype == "float32"
    assert run.programs[second.program].kind == "host"
    assert first.duration_ns == 1_000 and 0 <= first.start_ns <= second.start_ns
    assert [run.storages.nbytes[i] for i in first.reads] == [256, 512]
    assert second.reads == second.writes == first.writes
    assert run.totals.ops == 2 and run.totals.kernels == 2 and run.totals.wall_ns > 0
    assert run.storages.made_by == (-1, -1, 0)


def test_the_line_and_column_are_the_user_s(device: FakeDevice) -> None:
    with Recorder() as recorder:
        device.run("aten.a"), device.run("aten.b")
    run = recorder.run
    places = [run.locations[op.location] for op in run.ops]
    assert places[0].line == places[1].line
    text = run.sources[places[0].source].lines[0].text
    assert [text[p.column : p.end_column] for p in places] == ['device.run("aten.a")', 'device.run("aten.b")']
    assert places[0].function == "test_the_line_and_column_are_the_user_s"
    assert run.sources[places[0].source].name.endswith("test_recorder.py")
    assert run.sources[places[0].source].kind == "file"


def test_columns_count_characters(device: FakeDevice) -> None:
    text = "x = 'ééé'; device.run('aten.a')"
    with Recorder(cells={CELL: CellText(text=text)}) as recorder:
        cell(text, device)()
    place = recorder.run.locations[0]
    assert text[place.column : place.end_column] == "device.run('aten.a')"


def test_an_op_of_a_cell_has_the_cell_s_line_and_the_line_inside(device: FakeDevice) -> None:
    helper = "def helper():\n    device.run('aten.inner')\n"
    names: dict[str, Any] = {"device": device}
    exec(compile(helper, OTHER, "exec"), names)
    text = "%%tpu eager\ndevice.run('aten.outer')\nfor _ in range(2):\n    helper()\n"
    body = text.split("\n", 1)[1]
    cells = {CELL: CellText("cell 42", text, line_offset=1), OTHER: CellText("cell 41", helper, current=False)}
    with Recorder(cells=cells) as recorder:
        cell(body, device, helper=names["helper"])()
    run = recorder.run
    assert lines(run) == [(2, 2), (4, 2), (4, 2)]
    assert [(s.name, s.kind) for s in run.sources] == [("cell 42", "cell"), ("cell 41", "other_cell")]
    assert [line.text for line in run.sources[0].lines] == text.split("\n")[:-1]
    assert {(c.source, c.line): c.ops for c in run.lines} == {(0, 2): 1, (0, 4): 2, (1, 2): 2}
    assert run.locations[run.ops[1].location].function == "helper"


def test_a_cell_is_found_without_being_told(device: FakeDevice) -> None:
    import linecache

    text = "with Recorder() as recorder:\n    device.run('aten.a')\nresult.append(recorder.run)\n"
    linecache.cache[CELL] = (len(text), None, text.splitlines(True), CELL)
    result: list[Run] = []
    cell(text, device, Recorder=Recorder, result=result)()
    assert lines(result[0]) == [(2, 2)] and result[0].sources[0].kind == "cell"
    assert len(result[0].sources[0].lines) == 3


def test_ops_of_torch_and_of_this_package_belong_to_the_line_that_called_them(device: FakeDevice) -> None:
    import torch

    names: dict[str, Any] = {"device": device}
    exec(compile("def inner(): device.run('aten.a')\n", torch.__file__, "exec"), names)
    exec(compile("def through(): inner()\n", recorder_module.__file__, "exec"), names)
    with Recorder() as recorder:
        names["through"]()  # this line
    run = recorder.run
    assert [line.text.strip() for line in run.sources[0].lines] == ['names["through"]()  # this line']
    assert len(run.sources) == 1


def test_no_line_is_invented_for_an_op_without_user_frames(device: FakeDevice) -> None:
    code = compile("device.run('aten.a')", "<internal>", "exec")
    with Recorder() as recorder:
        worker = threading.Thread(target=exec, args=(code, {"device": device}))
        worker.start()
        worker.join()
    op = recorder.run.ops[0]
    assert (op.location, op.cell_location, op.thread) == (-1, -1, 1)


def test_programs_equal_in_all_parts_are_one(device: FakeDevice) -> None:
    with Recorder() as recorder:
        for _ in range(50):
            now = time.perf_counter_ns()
            recorder.op(OpProgram("aten.copy_", "copy", (F32,), (F32,)), now, now + 1, [], [device.buffer()])
    assert len(recorder.run.programs) == 1 and len(recorder.run.ops) == 50


def test_memory_follows_allocations_and_frees(device: FakeDevice) -> None:
    weight = device.buffer(1_000)
    with Recorder(live=[weight]) as recorder:
        a = device.run("aten.a", [weight], nbytes=5_000)
        b = device.run("aten.b", [a], nbytes=3_000, temp=2_000)
        device.free(a)
        device.run("aten.c", [b], nbytes=500)
        device.free(weight)
    memory, storages = recorder.run.memory, recorder.run.storages
    assert (memory.start_bytes, memory.peak_bytes, memory.peak_op, memory.end_bytes, memory.exact) == (1_000, 11_000, 1, 3_500, True)
    assert [(t.nbytes, t.op) for t in memory.largest] == [(5_000, "aten.a"), (3_000, "aten.b"), (1_000, "")]
    assert sum(line.nbytes for line in memory.lines) == 9_000
    assert [p.nbytes for p in memory.curve] == [6_000, 11_000, 4_500]
    assert (storages.born, storages.died) == ((-1, 0, 1, 2), (3, 2, -1, -1))


def test_buffers_nobody_announced_count_from_the_start(device: FakeDevice) -> None:
    old, forgotten = device.buffer(700), device.buffer(50)
    with Recorder() as recorder:
        device.run("aten.a", [old], nbytes=100)
        device.free(forgotten)
    memory = recorder.run.memory
    assert (memory.start_bytes, memory.peak_bytes, memory.end_bytes) == (750, 850, 800)


def test_a_buffer_that_grows_is_seen_at_the_next_op(device: FakeDevice) -> None:
    with Recorder() as recorder:
        out = device.run("aten.a", nbytes=100)
        out.nbytes = 900
        device.run("aten.resize_", [out], into=out)
    assert recorder.run.memory.peak_bytes == 900 and recorder.run.memory.end_bytes == 900


def test_unknown_scratch_memory_makes_the_peak_a_lower_bound(device: FakeDevice) -> None:
    with Recorder() as recorder:
        device.run("aten.a", temp=None)
    assert not recorder.run.memory.exact


def test_rare_events_carry_line_cost_and_reason(device: FakeDevice) -> None:
    text = "device.run('aten.a')\nsay.sync('item', 4, now(), now() + 7_000)\n"
    text += "say.fallback('aten.x', 'no lowering for this overload', 10, 20, now(), now() + 5_000)\n"
    with Recorder(cells={CELL: CellText(text=text)}) as recorder:
        program = device.program("aten.b")
        recorder.compiled(program, 0.25, "disk")
        cell(text, device, say=recorder, now=time.perf_counter_ns)()
        now = time.perf_counter_ns()
        recorder.op(program, now, now + 1, [], [])
        for _ in range(3):
            recorder.graph_break(BreakTold("Unsupported Tensor.item() call with capture_scalar_outputs=False", Frame(CELL, 2)))
        branch = BreakTold("Data-dependent branching", Frame(CELL, 3), "branch", "GB0170", stack=(Frame(CELL, 3),), graphs=1, graph_ns=9)
        recorder.graph_break(branch)
        recorder.recompile(RecompileTold("tensor 'x' size mismatch", Frame(CELL, 1, "step"), 500_000_000, old="4", new="5", version=2, limit=8))
        recorder.recompile(RecompileTold("odd", Frame("/somewhere/net.py", 3, "step")))
        recorder.graph(GraphTold("graph 0", Frame(CELL, 1, "step"), 4, 7, 3, 1, "static", branch))
        recorder.region(RegionTold(CELL, 3, 3, "item"))
        recorder.region(RegionTold(CELL, 1, 2))
    run = recorder.run
    assert (run.syncs[0].reason, run.syncs[0].nbytes, run.syncs[0].op) == ("item", 4, 0)
    assert run.locations[run.syncs[0].cell_location].line == 2
    assert (run.fallbacks[0].op, run.fallbacks[0].reason, run.fallbacks[0].bytes_out) == ("aten.x", "no_lowering", 10)
    assert [(b.reason, b.count, run.locations[b.cell_location].line) for b in run.graph_breaks] == [("item", 3, 2), ("branch", 1, 3)]
    assert [(r.reason, r.function, r.duration_ns) for r in run.recompiles] == [("shape", "step", 500_000_000), ("unknown", "step", 0)]
    found = run.graph_breaks[1]
    assert (found.id, found.graphs, found.graph_ns, found.syncs, found.stack) == ("GB0170", 1, 9, 0, (found.location,))
    assert found.remedy.startswith("`torch.where(") and run.graph_breaks[0].sync_ns >= 7_000
    assert (run.recompiles[0].old, run.recompiles[0].new, run.recompiles[0].version) == ("4", "5", 2)
    assert [(g.name, g.runs, g.ended_by, run.locations[g.location].line) for g in run.graphs] == [("graph 0", 3, 1, 1)]
    assert [(r.first_line, r.last_line, r.compiled, r.reason) for r in run.regions] == [(1, 2, True, ""), (3, 3, False, "item")]
    assert run.recompiles[0].cell_location >= 0 and run.recompiles[1].cell_location == -1
    assert run.sources[run.locations[run.recompiles[1].location].source].name == "somewhere/net.py"
    totals = run.totals
    assert (totals.syncs, totals.fallbacks, totals.graph_breaks, totals.recompiles, totals.builds, totals.build_ns) == (1, 1, 4, 2, 1, 250_000_000)
    built = run.programs[run.ops[1].program]
    assert (built.build_ns, built.cache) == (250_000_000, "disk")


def test_the_machinery_around_a_cell_has_no_place_and_waits_for_nobody(device: FakeDevice) -> None:
    text = "say.sync('item', 4, 0, 1)\n"
    with Recorder(cells={CELL: CellText(text=text)}) as recorder:
        cell(text, device, say=recorder)()
        recorder.sync("synchronize", 0, 0, 1)  # as the notebook does to take the time
        device.run("aten.a")
    run = recorder.run
    assert [sync.reason for sync in run.syncs] == ["item"] and run.totals.syncs == 1
    assert (run.ops[0].location, run.ops[0].cell_location) == (-1, -1)
    with Recorder() as recorder:
        recorder.sync("synchronize", 0, 0, 1)  # the block is the user's own
    assert recorder.run.totals.syncs == 1


def test_an_exception_is_recorded_once_and_not_kept(device: FakeDevice) -> None:
    class Big(Exception):
        pass

    text = "device.run('aten.a')\nfail()\n"
    seen: list[weakref.ref[Big]] = []

    def fail() -> None:
        error = Big("bad tensor([1., 2.])")
        seen.append(weakref.ref(error))
        assert events.observer is not None
        events.observer.failed("aten.b", error)
        raise error

    recorder = Recorder(cells={CELL: CellText(text=text)})
    try:
        with recorder:
            cell(text, device, fail=fail)()
    except Big:
        pass
    gc.collect()
    assert seen[0]() is None
    run = recorder.run
    assert len(run.failures) == run.totals.failures == 1
    failure = run.failures[0]
    assert (failure.op, failure.kind, failure.message, failure.after_op) == ("aten.b", "Big", "bad tensor(…)", 0)
    assert run.locations[failure.cell_location].line == 2


def test_an_exception_of_the_cell_itself_has_its_line(device: FakeDevice) -> None:
    text = "device.run('aten.a')\n1 / 0\n"
    recorder = Recorder(cells={CELL: CellText(text=text)})
    with pytest.raises(ZeroDivisionError), recorder:
        cell(text, device)()
    failure = recorder.run.failures[0]
    assert (failure.op, failure.kind) == ("", "ZeroDivisionError")
    assert recorder.run.locations[failure.cell_location].line == 2


def test_over_the_limit_only_totals_are_kept(device: FakeDevice) -> None:
    with Recorder(max_ops=10) as recorder:
        for _ in range(25):
            device.run("aten.a")
    run = recorder.run
    assert (len(run.ops), run.ops_dropped, run.totals.ops) == (10, 15, 25)
    assert not run.memory.exact and not run.totals.kernels_exact


def test_events_of_several_threads_do_not_mix(device: FakeDevice) -> None:
    def work(n: int) -> None:
        for _ in range(300):
            device.free(device.run(f"aten.t{n}", nbytes=n))

    with Recorder() as recorder:
        workers = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    run = recorder.run
    assert len(run.ops) == 1_200 and run.memory.end_bytes == 0
    for op in run.ops:
        assert run.programs[op.program].op == f"aten.t{run.storages.nbytes[op.writes[0]]}"
    by_program = {run.programs[op.program].op: op.thread for op in run.ops}
    assert all(by_program[run.programs[op.program].op] == op.thread for op in run.ops)


def test_the_observer_before_comes_back_also_after_an_exception(device: FakeDevice) -> None:
    with Recorder() as outer:
        with pytest.raises(ValueError, match="inner"), Recorder():
            raise ValueError("inner")
        assert events.observer is outer
    assert events.observer is None


def test_recording_holds_no_buffers_and_no_frames(device: FakeDevice) -> None:
    class Held(Buffer):
        pass

    kept = Recorder()

    def work() -> weakref.ref[Held]:
        mine = Held(5, 64)
        with kept:
            device.run("aten.a", [mine], into=mine)
        return weakref.ref(mine)

    assert work()() is None
    assert len(kept.run.ops) == 1


def test_the_event_list_costs_the_garbage_collector_nothing(device: FakeDevice) -> None:
    with Recorder() as recorder:
        for _ in range(100):
            device.run("aten.a")
        assert not any(gc.is_tracked(item) for item in recorder.events)


def test_a_record_holds_no_environment_and_no_home(device: FakeDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from tpu_lab.record import privacy

    monkeypatch.setenv("HOME", str(tmp_path / "carol"))
    monkeypatch.setenv("MY_SECRET_TOKEN", "s3cr3t-value")
    privacy._homes.cache_clear()
    text = f"open_ = '{tmp_path}/carol/data.pt'\ndevice.run('aten.a')\n"
    path = f"{tmp_path}/carol/proj/net.py"
    names: dict[str, Any] = {"device": device}
    exec(compile("def inner():\n    device.run('aten.b')\n    raise OSError(device_path)\n", path, "exec"), names)
    names["device_path"] = path
    recorder = Recorder(name=f"{tmp_path}/carol", cells={CELL: CellText(text=text)})
    with pytest.raises(OSError), recorder:
        cell(text, device)()
        names["inner"]()
    saved = codec.dumps(recorder.run)
    privacy._homes.cache_clear()
    assert "carol" not in saved and "s3cr3t" not in saved and "MY_SECRET" not in saved
    assert "proj/net.py" in saved
    assert json.loads(saved)["sources"][0]["lines"][0]["text"] == "open_ = '…/data.pt'"
