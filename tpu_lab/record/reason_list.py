"""What a closed list of reasons is."""

from __future__ import annotations

from enum import Enum
from typing import Self


class ReasonList(Enum):
    """A closed list. A member's value is its id; `title` is at most 60 characters, `remedy` is code or an instruction to paste from."""

    title: str
    sentence: str
    remedy: str

    def __new__(cls, id: str, title: str, sentence: str, remedy: str) -> Self:
        member = object.__new__(cls)
        member._value_ = id
        member.title, member.sentence, member.remedy = title, sentence, remedy
        return member

    @property
    def id(self) -> str:
        """The stable id, e.g. `item`."""
        return str(self._value_)

    @classmethod
    def of(cls, id: str) -> Self:
        """The member with this id; `unknown` for an id that is not in the list."""
        members = {member.id: member for member in cls}
        return members.get(id) or members["unknown"]
