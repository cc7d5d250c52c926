from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import torch

from tpu_lab import errors
from tpu_lab.record import reasons
from tpu_lab.record.reasons import BreakReason, FallbackReason, FindingKind, RecompileReason, RegionReason, SizeReason, SyncReason

log = logging.getLogger("tests.record")
LISTS = [SyncReason, FallbackReason, BreakReason, RecompileReason, RegionReason, SizeReason, FindingKind]


@pytest.mark.parametrize("names", LISTS)
def test_each_list_is_closed_and_complete(names: type[reasons.ReasonList]) -> None:
    ids = [member.id for member in names]
    assert len(set(ids)) == len(ids) and "unknown" in ids
    for member in names:
        assert member.title and not member.title.endswith(".") and len(member.title) <= 60
        assert member.sentence.endswith(".") and "!" not in member.sentence
        assert member.remedy or names is FindingKind
        assert names.of(member.id) is member
    assert names.of("something new").id == "unknown"


def test_the_device_protocol_s_sync_reasons_are_known() -> None:
    for id in ("item", "cpu", "synchronize", "data_dependent_size", "print", "index_check"):
        assert SyncReason.of(id).id == id


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no lowering for this overload", FallbackReason.NO_LOWERING),
        ("no lowering and no decomposition", FallbackReason.NO_LOWERING),
        ("dtype complex32 is not lowered", FallbackReason.DTYPE),
        ("a sparse operand", FallbackReason.LAYOUT),
        ("requested", FallbackReason.REQUESTED),
        ("the moon", FallbackReason.UNKNOWN),
    ],
)
def test_fallback_reasons_are_read_from_the_device_s_words(text: str, reason: FallbackReason) -> None:
    assert FallbackReason.from_text(text) is reason


def graph_breaks(function: object, *args: object) -> list[str]:
    """The reasons Dynamo itself gives for its breaks."""
    torch._dynamo.reset()
    explained = torch._dynamo.explain(function)(*args)  # type: ignore[arg-type]
    torch._dynamo.reset()
    return [broken.reason for broken in explained.break_reasons]


def by_item(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def by_branch(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.sum() > 0 else x - 1


def by_size(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0] * 2


def by_print(x: torch.Tensor) -> torch.Tensor:
    x = x * 2
    print("half way")
    return x + 1


def by_request(x: torch.Tensor) -> torch.Tensor:
    x = x * 2
    torch._dynamo.graph_break()
    return x + 1


@torch.compiler.disable
def opted_out(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def by_disabled(x: torch.Tensor) -> torch.Tensor:
    return opted_out(x * 2) + 1


def by_logging(x: torch.Tensor) -> torch.Tensor:
    x = x * 2
    log.info("half way")
    return x + 1


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (by_item, BreakReason.ITEM),
        (by_branch, BreakReason.BRANCH),
        (by_size, BreakReason.DYNAMIC_SIZE),
        (by_print, BreakReason.PRINT),
        (by_request, BreakReason.REQUESTED),
        (by_disabled, BreakReason.DISABLED),
        (by_logging, BreakReason.LOGGING),
    ],
)
def test_reasons_are_read_from_dynamo_s_own_words(function: object, reason: BreakReason) -> None:
    found = graph_breaks(function, torch.ones(4))
    assert found and all(BreakReason.from_dynamo(text) is reason for text in found), found


def test_most_of_dynamo_s_registry_that_notebooks_meet_has_a_wording() -> None:
    registry = json.loads((Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json").read_text())
    unknown = {id for id, entries in registry.items() if BreakReason.from_dynamo(f"{entries[0]['Gb_type']} {id}") is BreakReason.UNKNOWN}
    common = {
        "GB0025",
        "GB0033",
        "GB0034",
        "GB0036",
        "GB0059",
        "GB0098",
        "GB0105",
        "GB0109",
        "GB0123",
        "GB0124",
        "GB0147",
        "GB0170",
        "GB0219",
        "GB0291",
    }
    assert common <= set(registry) and not common & unknown


def recompile_reasons(change: object) -> list[str]:
    """The failed guards Dynamo reports when `change` is called twice with other arguments."""
    torch._dynamo.reset()
    heard: list[str] = []

    def hook(*args: object) -> None:
        heard.append(str(args[-1]))

    compiled = torch.compile(lambda x, n=0: x * 2 + n, backend="eager", dynamic=False)
    for call in change:  # type: ignore[attr-defined]
        compiled(*call)
    from torch._dynamo import utils

    found = [metrics.recompile_reason for metrics in utils.get_compilation_metrics() if metrics.recompile_reason]
    torch._dynamo.reset()
    return found


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([(torch.ones(4),), (torch.ones(5),)], RecompileReason.SHAPE),
        ([(torch.ones(4),), (torch.ones(4, 1),)], RecompileReason.RANK),
        ([(torch.ones(4),), (torch.ones(4, dtype=torch.float64),)], RecompileReason.DTYPE),
        ([(torch.ones(4, 5),), (torch.ones(5, 4).t(),)], RecompileReason.STRIDE),
        ([(torch.ones(4),), (torch.ones(4, requires_grad=True),)], RecompileReason.REQUIRES_GRAD),
        ([(torch.ones(4), 1), (torch.ones(4), 2)], RecompileReason.VALUE),
    ],
)
def test_recompile_reasons_are_read_from_dynamo_s_own_guards(calls: list[tuple[object, ...]], reason: RecompileReason) -> None:
    from torch._dynamo import utils

    utils.clear_compilation_metrics()
    found = recompile_reasons(calls)
    assert found and RecompileReason.from_guard(found[-1]) is reason, found


def test_the_settings_the_remedies_name_exist() -> None:
    import torch._dynamo.config as config

    words = " ".join(member.remedy for names in (BreakReason, RecompileReason) for member in names)
    for name in (
        "capture_scalar_outputs",
        "capture_dynamic_output_shape_ops",
        "reorderable_logging_functions",
        "ignore_logging_functions",
        "recompile_limit",
    ):
        assert name in words and hasattr(config, name)
    assert callable(torch._dynamo.mark_dynamic) and callable(torch.cond)


def test_errors_have_ids_of_their_own_and_python_s_types() -> None:
    kinds = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.TpuLabError)]
    assert len({kind.id for kind in kinds}) == len(kinds) > 6
    assert issubclass(errors.OptionError, ValueError) and issubclass(errors.MissingPackageError, ImportError)
    assert issubclass(errors.OperatorNotSupportedError, NotImplementedError) and issubclass(errors.RunNotFoundError, LookupError)


def test_an_error_says_what_was_asked_what_is_accepted_and_what_next() -> None:
    import pickle

    error = errors.OptionError("mode 'fast' does not exist", accepted=errors.one_of(["eager", "compile", "cpu"]), remedy="%%tpu eager")
    assert str(error) == "mode 'fast' does not exist. Accepted: eager, compile or cpu. Next: %%tpu eager [TE101]"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.OptionError and str(again) == str(error)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a or b"),
        (["a", "b", "c"], "a, b or c"),
        ([str(i) for i in range(14)], "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more"),
    ],
)
def test_accepted_names_read_as_a_sentence(names: list[str], text: str) -> None:
    assert errors.one_of(names) == text
