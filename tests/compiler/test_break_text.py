from __future__ import annotations

import logging

from tpu_lab.compiler import break_text
from tpu_lab.compiler.events import Frame

PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0126.html"
ONE = f"""Unsupported Tensor.resize_() call
  Explanation: Dynamo currently does not support
    tracing `Tensor.resize_()`.
  Hint: Set `x`
    and `y`.
  Hint: This is likely to be a Dynamo bug. Please report an issue to PyTorch.

  Developer debug context: call_method resize_ (3,) {{}}

 For more details about this graph break, please visit: {PAGE}"""
WHERE = """
User code traceback:
  File "/home/me/net.py", line 9, in <module>
    c(x)
  File "/work/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 77, in forward
    return f(x)
  File "/home/me/net.py", line 4, in torch_dynamo_resume_in_f_at_3
    x.resize_(3)

Traceback (most recent call last):
  File "/work/venv/lib/python3.11/site-packages/torch/_dynamo/exc.py", line 7, in unimplemented
    raise Unsupported(msg)
"""


def test_a_message_is_taken_apart() -> None:
    told = break_text.parse(ONE)
    assert told.message == "Unsupported Tensor.resize_() call\ncall_method resize_ (3,) {}"
    assert (told.id, told.link) == ("GB0126", PAGE)
    assert told.explanation == "Dynamo currently does not support tracing `Tensor.resize_()`."
    assert told.hints == ("Set `x` and `y`.",)


def test_a_trace_adds_the_user_s_frames() -> None:
    told = break_text.from_trace("Graph break in user code at /home/me/net.py:4\nGraph Break Reason: words:\n\n" + ONE + "\n" + WHERE)
    assert told is not None and told.id == "GB0126" and not told.uncompiled
    assert told.stack == (Frame("/home/me/net.py", 9, "<module>"), Frame("/home/me/net.py", 4, "f"))
    assert told.frame == told.stack[-1]


def test_a_break_that_led_to_another_leaves_the_function_uncompiled() -> None:
    second = ONE.replace("Unsupported Tensor.resize_() call", "graph break in loop").replace("gb0126", "gb7000")
    text = f"Graph Break Reason: words:\n\n{ONE}\n\n*** While handling this graph break, another graph break occurred: ***\n\n{second}\n{WHERE}"
    told = break_text.from_trace(text)
    assert told is not None and (told.id, told.uncompiled, told.reason) == ("GB0126", True, "skipped")


def test_the_break_around_an_optimizer_s_step_is_pytorch_s_own() -> None:
    where = WHERE.replace("/home/me/net.py", "/x/torch/optim/optimizer.py")
    assert break_text.from_trace("Graph Break Reason: words:\n\n" + ONE + "\n" + where) is None


def test_words_without_a_form_are_the_message() -> None:
    assert break_text.parse("odd words\nmore").message == "odd words"
    assert break_text.parse("generic_jump TensorVariable()").id == "GB0170"
    assert break_text.resumed_at("torch_dynamo_resume_in_f_at_31") == 31 and break_text.resumed_at("f") == 0


def test_functions_of_the_standard_library_are_no_business_of_the_user_s() -> None:
    logger = WHERE.replace("/home/me/net.py", logging.__file__)
    assert break_text.from_trace("Graph Break Reason: words:\n\n" + ONE + "\n" + logger) is None
    head, _, tail = WHERE.partition("\nTraceback")
    debug = f'  File "{logging.__file__}", line 1476, in debug\n\nTraceback{tail}'
    by_jax = f'{head}  File "/x/site-packages/jax/_src/compiler.py", line 3, in g\n{debug}'
    assert break_text.from_trace("Graph Break Reason: words:\n\n" + ONE + "\n" + by_jax) is None
    told = break_text.from_trace("Graph Break Reason: words:\n\n" + ONE + "\n" + head + debug)
    assert told is not None and told.frame == Frame("/home/me/net.py", 4, "f")
