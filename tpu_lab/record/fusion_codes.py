"""What the bare places in the compiler's sources mean that its fusion log gives as reasons, per version of libtpu.

Where the compiler itself writes a line of text at that place (its verbose log, read 2026-12-01 over the programs of `benchmarks/fusion`), those are
its words. The others have no text anywhere; what stands here for them, in brackets, is what was common to all pairs they were given for.
"""

from __future__ import annotations

import re

VERSION = "libtpu 0.0.42.1"
_CODE = re.compile(r"(\w+\.cc:\d+)")
CODES: dict[str, str] = {
    "instruction_fusion.cc:671": "operand can not be duplicated",
    "tpu_instruction_fusion.cc:4067": "producer is tuple",
    "tpu_instruction_fusion.cc:4086": "(the producer is a matmul kernel with other users, and the consumer is a matmul kernel)",
    "tpu_instruction_fusion.cc:4102": "(both are matmul kernels)",
    "tpu_instruction_fusion.cc:4151": "producer is duplicated and expensive",
    "tpu_instruction_fusion.cc:4262": "producer is duplicated and expensive",
    "tpu_instruction_fusion.cc:4328": "producer produces an effective scalar and does not have a fusible DUS user reachable through consumer",
    "tpu_instruction_fusion.cc:4343": "output fusion is disabled",
    "tpu_instruction_fusion.cc:4347": "(the consumer is a matmul kernel)",
    "tpu_instruction_fusion.cc:4358": "output fusion is disabled",
    "tpu_instruction_fusion.cc:4392": "(the producer is a matmul kernel)",
    "tpu_instruction_fusion.cc:4396": "(the producer is a matmul kernel)",
    "tpu_instruction_fusion.cc:4409": "should not fuse with elementwise",
    "tpu_instruction_fusion.cc:4484": "considering fusing a producer into a scatter",
    "tpu_instruction_fusion.cc:4489": "producer is not compatible for loop fusion",
    "tpu_instruction_fusion.cc:4551": "(only a bitcast stands between the producer and a gather)",
    "tpu_instruction_fusion.cc:4568": "(the consumer does no element-wise work: a window or an output of the program)",
    "tpu_instruction_fusion.cc:4582": "not fusing with several outputs: this pass makes only those",
    "tpu_instruction_fusion.cc:4595": "not fusing with several outputs: not in this pass",
    "tpu_instruction_fusion.cc:4611": "producer has one user",
    "tpu_instruction_fusion.cc:4658": "not fusing",
}


def in_words(code: str) -> str:
    """What a place in the compiler's sources means; empty if this table does not know it."""
    return CODES.get(code, "")


def code_places(words: str) -> tuple[str, ...]:
    """The places in the compiler's sources that a reason names (`tpu_instruction_fusion.cc:4409`), one for each half."""
    return tuple(_CODE.findall(words))
