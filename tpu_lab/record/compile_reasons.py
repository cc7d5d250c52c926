"""Why torch.compile ended a graph, compiled again, left lines of a cell alone, and how changing sizes are served: closed lists, as in `reasons`."""

from __future__ import annotations

import re

from .reason_list import ReasonList


class BreakReason(ReasonList):
    """Why torch.compile ended a graph."""

    ITEM = (
        "item",
        "Python reads a value inside the graph",
        "Python must know the number to go on, so the program ends here and a second one starts.",
        "Keep it a tensor, or set `torch._dynamo.config.capture_scalar_outputs = True`.",
    )
    BRANCH = (
        "branch",
        "Python branches on a tensor's value",
        "Which branch runs is known only when the value is, so the program ends here and a second one starts.",
        "`torch.where(cond, a, b)` for values, `torch.cond(pred, f, g, (x,))` for code.",
    )
    DYNAMIC_SIZE = (
        "dynamic_size",
        "A result's size depends on values",
        "The graph needs every size when it is made; this one is known only when values are.",
        "`torch.where(mask, x, 0)` keeps the size, or set `torch._dynamo.config.capture_dynamic_output_shape_ops = True`.",
    )
    PRINT = (
        "print",
        "print() inside the graph",
        "Text goes out in the middle, so the program ends here and a second one starts.",
        "Print after the compiled call, or `torch._dynamo.config.reorderable_logging_functions.add(print)`.",
    )
    LOGGING = (
        "logging",
        "A logging call inside the graph",
        "A logger is Python that cannot be part of the program, so it ends here and a second one starts.",
        "Log after the compiled call, or `torch._dynamo.config.ignore_logging_functions.add(logging.Logger.info)`.",
    )
    NUMPY = (
        "numpy",
        "NumPy reads a tensor inside the graph",
        "A NumPy array needs the values on the host, so the program ends here.",
        "Use the torch function of the same name.",
    )
    BACKWARD = (
        "backward",
        "backward() inside the graph",
        "The compiler makes the backward program itself and cannot contain the call.",
        "Compile forward and loss; call `loss.backward()` outside.",
    )
    CALL = (
        "call",
        "A call the compiler cannot follow",
        "The function is written in C, or in a file the compiler skips, so it runs between two programs.",
        "Move the call out of the compiled function, or `torch.library.custom_op` for a kernel.",
    )
    DISABLED = (
        "disabled",
        "A function opted out of compiling",
        "It is marked with torch.compiler.disable, so it runs between two programs.",
        "Remove `@torch.compiler.disable`, or call the function outside.",
    )
    REQUESTED = (
        "requested",
        "A graph break that was asked for",
        "torch._dynamo.graph_break() ends the program here.",
        "Remove `torch._dynamo.graph_break()`.",
    )
    MUTATION = (
        "mutation",
        "A change the compiler cannot replay",
        "The object is changed in a way that cannot be repeated after the program.",
        "Return the new value instead of changing the object.",
    )
    SKIPPED = (
        "skipped",
        "The whole function runs uncompiled",
        "A break inside a loop or a with block leaves no place to start again, so nothing of the function is compiled.",
        "Move the loop body into a function and compile that.",
    )
    RAISED = (
        "raised",
        "An exception while tracing",
        "The function raised an exception that it does not catch itself, so there is no graph of it and it runs uncompiled.",
        "Check the values before the compiled call, or catch the exception inside the function.",
    )
    TOO_LONG = (
        "too_long",
        "Tracing was given up",
        "The trace passed its limit of operators or seconds, so the function runs op by op; functions it calls are compiled by themselves.",
        "Move the body of the longest loop into a function, so that it is traced once.",
    )
    BACKEND = (
        "backend",
        "The backend refused the graph",
        "Compiling the captured graph raised an error; the function runs uncompiled.",
        "Read the original message; `%%tpu eager` shows the op that fails.",
    )
    UNKNOWN = (
        "unknown",
        "torch.compile ended the graph",
        "The compiler gave a reason this version has no wording for.",
        "Read the original message; report it if it stays.",
    )

    @classmethod
    def from_dynamo(cls, text: str) -> BreakReason:
        """The reason behind a message of Dynamo (its first line, a `GBnnnn` id, or both)."""
        for pattern, member in _BREAK_PATTERNS:
            if pattern.search(text):
                return member
        return cls.UNKNOWN


_BREAK_PATTERNS: tuple[tuple[re.Pattern[str], BreakReason], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"logging\.Logger|LoggingLogger|GB0291\b", BreakReason.LOGGING),
        (r"reorder a debugging function|builtin.{0,12}print|GB0296\b", BreakReason.PRINT),
        (r"generic_jump|Data.dependent (branching|assertion)|guard_scalar branch|GB(0034|0035|0170|0360)\b", BreakReason.BRANCH),
        (r"Dynamic shape operator|data-dependent output shape|GB(0036|0037|0246)\b", BreakReason.DYNAMIC_SIZE),
        (r"Tensor\.item\(\)|Tensor\.tolist\(\)|Data dependent operator|GB(0033|0109|0124)\b", BreakReason.ITEM),
        (r"Tensor\.numpy\(\)|numpy|ndarray|GB(0105|0106|0231|0232|0293|0294)\b", BreakReason.NUMPY),
        (r"backward\(\)|autograd\.grad|_ImperativeEngine|GB(0123|1042|7054|9186)\b", BreakReason.BACKWARD),
        (r"torch\.compiler\.disable|GB(0098|0099)\b", BreakReason.DISABLED),
        (r"torch\._dynamo\.graph_break|GB0025\b", BreakReason.REQUESTED),
        (r"Observed exception|GB0088\b", BreakReason.RAISED),
        (r"graph break in loop|skip_frame|should not compile partial graph|GB(7000|4297|0096)\b", BreakReason.SKIPPED),
        (r"Backend compiler exception|GB0219\b", BreakReason.BACKEND),
        (r"mutat|side effect|GB(0056|0072|0097)\b", BreakReason.MUTATION),
        (r"marked as skipped|implemented in C|not implemented in python|GB(000[5789]|0177)\b", BreakReason.CALL),
        (r"Unsupported function call|builtin operator|GB(0059|014[78])\b", BreakReason.CALL),
    )
)


class RecompileReason(ReasonList):
    """Which part of a program's key differed from every program made before."""

    SHAPE = (
        "shape",
        "Compiled again: a size changed",
        "The key differs in one part, a tensor's size; a program serves one size.",
        "Pad to one size, or `torch._dynamo.mark_dynamic(x, 0)` with the dimension that changes.",
    )
    RANK = (
        "rank",
        "Compiled again: another number of dimensions",
        "The key differs in one part, a tensor's number of dimensions.",
        "Pass tensors of one rank: `x.unsqueeze(0)`.",
    )
    STRIDE = (
        "stride",
        "Compiled again: another memory layout",
        "The key differs in one part, a tensor's strides.",
        "Make the layout the same each time: `x.contiguous()`.",
    )
    DTYPE = (
        "dtype",
        "Compiled again: a dtype changed",
        "The key differs in one part, a tensor's dtype.",
        "Cast before the call: `x.to(torch.float32)`.",
    )
    DEVICE = (
        "device",
        "Compiled again: a device changed",
        "The key differs in one part, a tensor's device.",
        "Move inputs before the call: `x.to('tpu')`.",
    )
    REQUIRES_GRAD = (
        "requires_grad",
        "Compiled again: requires_grad changed",
        "Programs with and without gradients differ.",
        "Call under `torch.no_grad()` always, or never.",
    )
    GRAD_MODE = (
        "grad_mode",
        "Compiled again: grad mode changed",
        "Programs with and without gradients differ.",
        "Keep evaluation in its own compiled function.",
    )
    VALUE = (
        "value",
        "Compiled again: a Python number changed",
        "The number is part of the program, so another number is another program.",
        "Pass it as a tensor: `torch.tensor(lr)`.",
    )
    TYPE = (
        "type",
        "Compiled again: an argument's type changed",
        "The key differs in one part, the type of a Python object.",
        "Pass arguments of one type.",
    )
    OBJECT = (
        "object",
        "Compiled again: another object in the same place",
        "The key names the object (a module, function or attribute) and it is another one now.",
        "Create modules and functions once, outside the loop.",
    )
    LENGTH = (
        "length",
        "Compiled again: a list or dict changed its length",
        "Containers are unrolled, so their length is part of the program.",
        "Keep the container's length fixed.",
    )
    OPERATOR = (
        "operator",
        "Another program: another operator",
        "The cluster goes on with another operator than the one that has a program.",
        "Branches on Python values make clusters of their own; each that comes back is compiled.",
    )
    STATIC = (
        "static",
        "Another program: an argument that is part of it",
        "The operator is the same, and an argument such as a dimension or a flag differs.",
        "Keep dimensions and flags the same in each turn of the loop.",
    )
    WIRING = (
        "wiring",
        "Another program: other operands",
        "The operators are the same, and one of them reads another tensor than before.",
        "Use the same tensors in each turn of the loop.",
    )
    LIVENESS = (
        "liveness",
        "Another program: other results alive",
        "The calls are the same, and another set of their results is still held by Python.",
        "Hold on to the same results in each turn; collect `loss.detach()` in one tensor.",
    )
    LIMIT = (
        "limit",
        "No longer compiled: too many versions",
        "The function reached the limit of programs kept, so it runs uncompiled from here.",
        "Remove the cause of the recompiles above; `torch._dynamo.config.recompile_limit` raises the limit.",
    )
    UNKNOWN = (
        "unknown",
        "Compiled again",
        "The compiler gave a reason this version has no wording for.",
        "Read the original message; report it if it stays.",
    )

    @classmethod
    def from_guard(cls, text: str) -> RecompileReason:
        """The reason behind the text of a failed Dynamo guard."""
        for pattern, member in _GUARD_PATTERNS:
            if pattern.search(text):
                return member
        return cls.UNKNOWN


_GUARD_PATTERNS: tuple[tuple[re.Pattern[str], RecompileReason], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"recompile_limit|cache_size_limit|recompile limit", RecompileReason.LIMIT),
        (r"rank mismatch|\.ndim\b|\bdim\(\)", RecompileReason.RANK),
        (r"stride mismatch|\.stride\(", RecompileReason.STRIDE),
        (r"dtype mismatch|\.dtype\b", RecompileReason.DTYPE),
        (r"device mismatch|device index mismatch|\.device\b", RecompileReason.DEVICE),
        (r"requires_grad", RecompileReason.REQUIRES_GRAD),
        (r"grad_mode|GLOBAL_STATE changed", RecompileReason.GRAD_MODE),
        (r"size mismatch|\.size\(\)|\.shape\b|symbolic shape", RecompileReason.SHAPE),
        (r"len\(|length", RecompileReason.LENGTH),
        (r"type\(|isinstance|__check_type_id|class match", RecompileReason.TYPE),
        (r"__check_obj_id|___check_obj_id| is (?!None)", RecompileReason.OBJECT),
        (r"==|!=", RecompileReason.VALUE),
    )
)


class SizeReason(ReasonList):
    """How a graph serves sizes that change."""

    STATIC = (
        "static",
        "One size",
        "Every size is part of the graph; another size is another graph.",
        "`torch._dynamo.mark_dynamic(x, 0)` for a dimension that changes.",
    )
    PADDED = (
        "padded",
        "One program for a range of sizes",
        "The inputs are padded to the next size of a bucket and the results cut: no operator of the graph mixes rows along that dimension.",
        "`options={'buckets': [...]}` chooses the sizes.",
    )
    EXACT = (
        "exact",
        "One program for each size",
        "Nobody asked for padding, or it is not proven to leave this graph's values alone; each size that comes has its own program.",
        "`options={'buckets': 'power_of_two'}` pads where it is safe; else pad the inputs yourself where your model has a mask.",
    )
    UNKNOWN = (
        "unknown",
        "Sizes",
        "The recorder gave a word this version has no wording for.",
        "Read the original word; report it if it stays.",
    )


class RegionReason(ReasonList):
    """Why lines of a cell in compile mode run as plain Python."""

    STATEMENT = (
        "statement",
        "A statement Dynamo cannot take",
        "Imports, definitions, prints, `await`, `del` and the heads of loops run as they stand, in their place.",
        "Nothing needs to change; what lies around it is compiled.",
    )
    ITEM = (
        "item",
        "Reads a value into Python",
        "Python must know the number, so the line runs between two compiled parts.",
        "Keep the value on the device: `total += loss.detach()`.",
    )
    BACKWARD = (
        "backward",
        "backward() runs by itself",
        "Autograd calls the compiled backward programs.",
        "Nothing needs to change.",
    )
    CALL = (
        "call",
        "Calls code outside PyTorch",
        "The compiler does not follow the call, so the line runs between two compiled parts.",
        "Move the call before or after the lines that compute.",
    )
    SET_UP = (
        "set_up",
        "Makes or arranges modules, optimizers, loaders",
        "There is nothing to compile in it.",
        "Nothing needs to change.",
    )
    BOOKKEEPING = (
        "bookkeeping",
        "Changes a Python list or dict",
        "Its length would become part of the program.",
        "Nothing needs to change.",
    )
    NO_TENSORS = (
        "no_tensors",
        "Computes with no tensor",
        "There is nothing to compile in it.",
        "Nothing needs to change.",
    )
    UNKNOWN = (
        "unknown",
        "Runs as plain Python",
        "The recorder gave a word this version has no wording for.",
        "Read the original word; report it if it stays.",
    )
