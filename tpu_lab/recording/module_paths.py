"""Which `torch.nn.Module` runs: a stack per thread, kept by a global pair of forward hooks while a recorder is on.

torch.compile does not see the hooks: recording changes neither graphs nor guards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.nn.modules import module as torch_module

from ..record.source import ModulePath
from .raw import NOWHERE, Places


class ThreadStack:
    """What a recorder knows of one thread: the modules it is in, and the place its innermost module was called from.

    `anchor` is the frame that runs the innermost module's call. Frames above it stand still while the module runs, so a walk
    up the stack may end there and take `places` from here.
    """

    __slots__ = ("anchor", "calls", "index", "module", "places")

    def __init__(self, index: int) -> None:
        self.index = index
        self.module = -1
        self.anchor: FrameType | None = None
        self.places: Places = NOWHERE
        self.calls: list[tuple[torch.nn.Module, int, FrameType | None, Places]] = []


class ModuleNames:
    """Gives every module met a path from the outermost module it was called through. A name is looked up once per parent."""

    def __init__(self) -> None:
        self.paths: list[ModulePath] = []
        self._known: WeakKeyDictionary[torch.nn.Module, dict[int, int]] = WeakKeyDictionary()
        self._roots: dict[str, int] = {}

    def index(self, module: torch.nn.Module, parent: torch.nn.Module | None, parent_index: int) -> int:
        """Index in `paths` of a module called from within `parent` (-1, None: from outside any module)."""
        known = self._known.get(module)
        if known is None:
            known = self._known[module] = {}
        found = known.get(parent_index)
        if found is None:
            found = known[parent_index] = len(self.paths)
            self.paths.append(ModulePath(self._path(module, parent, parent_index), type(module).__name__))
        return found

    def _path(self, module: torch.nn.Module, parent: torch.nn.Module | None, parent_index: int) -> str:
        kind = type(module).__name__
        if parent is None:
            count = self._roots[kind] = self._roots.get(kind, 0) + 1
            return kind if count == 1 else f"{kind}#{count}"
        base = self.paths[parent_index].path
        for name, child in parent.named_modules():
            if child is module and name:
                return f"{base}.{name}"
        return f"{base}.<{kind}>"  # held outside the module tree, e.g. in a plain list


class ModuleHooks:
    """Installs the hooks; `locate` finds the user's place above a frame, `thread` the calling thread's stack."""

    def __init__(self, names: ModuleNames, thread: Callable[[], ThreadStack], locate: Callable[[FrameType | None, ThreadStack], Places]) -> None:
        self._names, self._thread, self._locate = names, thread, locate
        self._handles: list[Any] = []
        self._dynamo: Any = None

    def install(self) -> None:
        """From now on forward calls of all modules are seen."""
        self._show()
        self._tell_dynamo()

    def remove(self) -> None:
        """Takes the hooks away."""
        self._hide()
        if self._dynamo is not None:
            self._dynamo.remove_start_callback(self._hide)
            self._dynamo.remove_end_callback(self._show)
            self._dynamo = None

    def _show(self, _: Any = None) -> None:
        if not self._handles:
            self._handles = [
                torch_module.register_module_forward_pre_hook(self._enter),
                torch_module.register_module_forward_hook(self._leave, always_call=True),
            ]

    def _hide(self, _: Any = None) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _tell_dynamo(self) -> None:
        """Has the hooks out of the way whenever Dynamo compiles.

        Traced, they would become part of the program's guards, and the next recording would compile again.
        """
        loaded = sys.modules.get("torch._dynamo.callback")
        if loaded is not None and self._dynamo is None:
            self._dynamo = loaded.callback_handler
            self._dynamo.register_start_callback(self._hide)
            self._dynamo.register_end_callback(self._show)

    def _enter(self, module: torch.nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if self._dynamo is None:
            self._tell_dynamo()  # it may have been imported within the block
        stack = self._thread()
        caller = sys._getframe(1)
        places = self._locate(caller, stack)
        stack.calls.append((module, stack.module, stack.anchor, stack.places))
        parent = stack.calls[-2][0] if len(stack.calls) > 1 else None
        stack.module = self._names.index(module, parent, stack.module)
        stack.anchor, stack.places = caller, places

    def _leave(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        if torch.compiler.is_compiling():
            return
        stack = self._thread()
        if not any(call[0] is module for call in stack.calls):
            return  # entered before the recording began
        while stack.calls:
            entered, stack.module, stack.anchor, stack.places = stack.calls.pop()
            if entered is module:
                return


# Where Dynamo traces the hooks after all (it was imported in the middle of the block), a call into a file of this package would break
# the user's graph, as Dynamo passes over them. Under a file name of their own the hooks are traced, and vanish.
for _hook in (ModuleHooks._enter, ModuleHooks._leave):
    _hook.__code__ = _hook.__code__.replace(co_filename="<tpu_lab module hooks>")
