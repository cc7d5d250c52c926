"""What to do about the kinds of graph break for which PyTorch has no hint of its own, by PyTorch's id.

Data: ids and kinds are those of `torch/_dynamo/graph_break_registry.json` in torch 2.13.0 (517 ids, read 2026-12-01; 100 of them without
any hint, 6 more without one at some of their places); the remedies are ours. `tests/record/test_break_remedies.py` fails for an id of
the installed torch that has neither a hint nor a remedy here.
"""

from __future__ import annotations

from .compile_reasons import BreakReason

_FOLLOW = "Move the call out of the compiled function, or copy what you need of it into a function of your own file, which is followed."
_RESIZE = "Make a new tensor instead of resizing: `x = x.new_empty(size)`, or resize before the compiled call."
_CONTAINER = "Convert to a list, tuple or dict of plain values before the compiled call and index that."
_CONTEXT = "Move what needs this mode out of the compiled function, or compile only the function inside it."
_STRICT = "Call it outside the strict region, or trace without strict mode."
_NESTED = "Compile with nested tensors of layout `torch.jagged`, or with a padded tensor and a mask."
_WEAK = "Give the class a `__weakref__` slot (drop `__slots__` or add it there), or make the object before the compiled call."
_COMPREHENSION = "Write the comprehension as a loop, or move what breaks the graph inside it out of it."
_AUTOGRAD_FUNCTION = "Make forward and backward static methods of the `torch.autograd.Function`, without wrappers or callable objects."
_AUTOGRAD_ENGINE = "Compile forward and loss; call `backward()` and register callbacks outside."
_ITERATOR = "Consume the iterator outside the compiled function and pass the list."
_HIGHER_ORDER = "Give it plain functions and tensors; call modules outside, or pass their parameters as arguments."
_OPERATOR = "Give the operator a fake kernel (`torch.library.register_fake`), or call it outside the compiled function."
_NUMPY = "Use the torch function of the same name, or call NumPy outside the compiled function."
_DATA = "Keep the value a tensor: `torch.where` for values, `torch.cond` for code; read it into Python after the compiled call."
_MUTATION = "Assign before the compiled call, or return the new value and assign it outside."
_HOOK = "Register and remove hooks outside the compiled function, and keep their handles there."
_CONSTANT = "Pass a Python number, string or tuple of them, not something computed from a tensor."
_ATTRIBUTE = "Read the attribute before the compiled call and pass the value."
_OPTIMIZER = "Write to the parameters before `step()` outside the compiled function, and call `step()` without a closure."
_DELEGATE = "Call the delegate outside the compiled function; Dynamo takes it only with a lowered module and positional tensors."

REMEDIES: dict[str, str] = {
    "GB0007": _FOLLOW,
    "GB0008": _FOLLOW,
    "GB0009": _FOLLOW,
    "GB0013": _HOOK,
    "GB0016": _NESTED,
    "GB0017": "Mark the function with `torch.compiler.nested_compile_region` instead of calling `invoke_subgraph`.",
    "GB0019": "Keep the Function's `ctx` inside its forward and backward; return tensors only.",
    "GB0022": "Import at the top of the file, before the compiled call.",
    "GB0023": "Compare plain Python values: convert the operand before the compiled call.",
    "GB0024": _ITERATOR,
    "GB0030": "Remove the `comptime.graph_break()` call.",
    "GB0033": _DATA,
    "GB0035": "Compute the condition before the compiled call, or have `__bool__` return a Python bool that needs no tensor.",
    "GB0039": "Remove the cause of the recompiles listed for this function; `torch._dynamo.config.recompile_limit` raises the limit.",
    "GB0043": "Tag the operator `torch.Tag.pt2_compliant_tag` once it passes `torch.library.opcheck`.",
    "GB0044": _NESTED,
    "GB0048": "Do not ask for a tensor's `id()` inside the compiled function; compare names or indices.",
    "GB0049": "Call one overload by name: `torch.ops.ns.op.default(...)`.",
    "GB0052": "Move the longest loop or deepest call into functions of their own; fewer breaks restart the analysis less often.",
    "GB0053": "Wrap with `FSDP(..., use_orig_params=True)`.",
    "GB0055": "Pass tensors, numbers and plain containers of them to the operator.",
    "GB0064": "Run the line with `%%tpu eager`: the operator's own error names the argument.",
    "GB0065": "Remove what breaks the graph in the called function, or call it outside the compiled one.",
    "GB0067": "Return what the function changes instead of writing to outer variables, lists or attributes.",
    "GB0068": _STRICT,
    "GB0071": "Call the method on the object (`obj.method(x)`), not through a stored bound method.",
    "GB0073": _HIGHER_ORDER,
    "GB0074": _HIGHER_ORDER,
    "GB0081": "Check that the attribute exists: the same line fails without `torch.compile`.",
    "GB0086": _CONSTANT,
    "GB0087": _OPERATOR,
    "GB0094": _ITERATOR,
    "GB0096": _MUTATION,
    "GB0100": _HOOK,
    "GB0101": _HOOK,
    "GB0104": "Do not read `grad_fn` inside the compiled function; inspect the graph outside.",
    "GB0108": "Call `retain_grad()` outside, on a tensor the compiled function returns.",
    "GB0112": "Check the arguments: the same call raises TypeError without `torch.compile`.",
    "GB0117": "Check the number and kind of arguments of this method call; pass them by position.",
    "GB0120": _ITERATOR,
    "GB0125": "Set `requires_grad` before the compiled call.",
    "GB0126": _RESIZE,
    "GB0127": _RESIZE,
    "GB0129": _RESIZE,
    "GB0130": _RESIZE,
    "GB0131": "Set items and attributes on an object of your own class, or outside the compiled function.",
    "GB0141": "Do not ask for a tensor's `id()` inside the compiled function; compare names or indices.",
    "GB0148": "Read the reason in the message; then move the call out of the compiled function, or remove what marks it.",
    "GB0149": _CONTEXT,
    "GB0151": "Inspect signatures before the compiled call and pass what you learnt.",
    "GB0153": "Index the module with a Python integer or string.",
    "GB0156": "Write the method in terms of torch operators, or call it outside the compiled function.",
    "GB0157": _NUMPY,
    "GB0158": _NUMPY,
    "GB0159": _NUMPY,
    "GB0165": _AUTOGRAD_ENGINE,
    "GB0166": _AUTOGRAD_ENGINE,
    "GB0170": _DATA,
    "GB0173": "Export forward only, without compiled autograd.",
    "GB0176": "Do not ask for a tensor's `id()` inside the compiled function; compare names or indices.",
    "GB0180": "Call `dataclasses.fields` before the compiled call and pass the names.",
    "GB0185": "Convert before the compiled call: `torch.from_numpy(array)`.",
    "GB0189": "Read the module's attribute before you change it, or change it outside the compiled function.",
    "GB0192": "Shorten what `itertools.cycle` goes through, or index with `i % len(items)`.",
    "GB0200": "PyTorch's own tests raise this; update torch if you see it.",
    "GB0202": _CONSTANT,
    "GB0208": "Call the function outside the compiled one, and pass its result in.",
    "GB0218": "Index with a Python integer, or with `torch.index_select`.",
    "GB0271": "Change the class attribute before the compiled call, and do not read its `__dict__` inside.",
    "GB0272": _WEAK,
    "GB0276": _WEAK,
    "GB0283": _WEAK,
    "GB0301": _HIGHER_ORDER,
    "GB0302": _HIGHER_ORDER,
    "GB0327": _DELEGATE,
    "GB0332": "Compute what the block uses from outside before it, and pass it as an argument of a function.",
    "GB0334": "Compute what the block uses from outside before it, and pass it as an argument of a function.",
    "GB0346": _AUTOGRAD_FUNCTION,
    "GB0348": _AUTOGRAD_FUNCTION,
    "GB0349": "Return tensors and numbers from every branch, in the same structure.",
    "GB0352": _AUTOGRAD_FUNCTION,
    "GB0355": "Return one tensor from the function; use `has_aux=True` for anything besides.",
    "GB0358": _OPTIMIZER,
    "GB0360": "Pass a Python number, or mark the dimension: `torch._dynamo.mark_dynamic(x, 0)`.",
    "GB0361": "Launch the Triton kernel outside the compiled function, or through `torch.library.triton_op`.",
    "GB0781": _CONTAINER,
    "GB1380": _STRICT,
    "GB1501": "Use `torch.nn.Embedding(..., sparse=False)`, so that gradients are dense.",
    "GB1739": _ATTRIBUTE,
    "GB2669": _COMPREHENSION,
    "GB3343": "Build `torch.distributed.P2POp` objects outside the compiled function.",
    "GB3383": "Make the pydantic object before the compiled call, or use a plain dataclass.",
    "GB4240": _CONTAINER,
    "GB5458": "Read the class attribute before the compiled call: its metaclass runs code that is not traced.",
    "GB5696": _COMPREHENSION,
    "GB5904": _CONTAINER,
    "GB5976": "Compare shapes or names instead of `data_ptr()`, or compare before the compiled call.",
    "GB6017": _DELEGATE,
    "GB6276": _COMPREHENSION,
    "GB7230": "Give `iter()` the object to go through: the same line fails without `torch.compile`.",
    "GB7425": _COMPREHENSION,
    "GB7444": "Write the hook without asking for strides or contiguity, or register it outside the compiled function.",
    "GB8656": _ATTRIBUTE,
    "GB8887": "Make a new tuple with `_replace(name=value)`; a named tuple cannot be written to.",
    "GB9741": _CONTEXT,
    "GB9898": _COMPREHENSION,
}

_STANDING = (
    "It may be possible to write Dynamo tracing rules",
    "Your code may result in an error when running in eager",
    "This is likely to be a Dynamo bug",
    "This graph break is fundamental",
    "This graph break may be difficult to debug",
    "Please report an issue",
    "Please open an issue",
    "report an issue",
)
"""How the hints begin that say nothing about this code: they stand under hundreds of ids."""


def useful(hints: tuple[str, ...]) -> tuple[str, ...]:
    """PyTorch's hints without its standing phrases."""
    return tuple(hint for hint in hints if hint.strip() and not hint.strip().startswith(_STANDING))


def remedy_for(id: str, hints: tuple[str, ...], reason: BreakReason) -> str:
    """What to do about a break: ours for a narrow reason, ours for the id, PyTorch's first useful hint, ours for a wide reason."""
    given = useful(hints)
    if reason in _NARROW:
        return reason.remedy
    return REMEDIES.get(id) or (given[0].strip() if given else reason.remedy)


_NARROW = (
    BreakReason.ITEM,
    BreakReason.BRANCH,
    BreakReason.DYNAMIC_SIZE,
    BreakReason.PRINT,
    BreakReason.LOGGING,
    BreakReason.BACKWARD,
    BreakReason.DISABLED,
    BreakReason.REQUESTED,
    BreakReason.TOO_LONG,
)
"""Reasons of one kind of code each, whose remedy says what to write instead."""
