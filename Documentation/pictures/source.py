# SPDX-License-Identifier: GPL-2.0
"""What the pictures are about, read from the source. What is not found there is an error."""

import os
import re

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
UAPI = "uapi/linux/timerwheel.h"

# What an expression of a constant may contain besides numbers and other constants.
KNOWN = {"NSEC_PER_USEC": 1000, "NSEC_PER_SEC": 1000000000,
         "BIT": lambda n: 1 << n, "BIT_ULL": lambda n: 1 << n}


class Missing(Exception):
    """The source does not say (any more) what a picture shows."""


def read(file):
    """A file of the tree."""
    with open(os.path.join(TOP, file), encoding="utf-8") as stream:
        return stream.read()


def constant(file, name):
    """The value of a #define."""
    found = re.search(rf"^#define {name}[ \t]+(.+?)[ \t]*(?:/\*.*)?$", read(file), re.M)
    if not found:
        raise Missing(f"{file} does not define {name}")
    expression = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)U?L{0,2}\b", r"\1", found[1])
    names = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"0x\w+", "", expression)))
    if names - set(KNOWN) or re.search(r"[^\w\s()*+<-]", expression):
        raise Missing(f"{file}: cannot tell the value of {name}: {found[1]}")
    return eval(expression, {"__builtins__": {}}, KNOWN)  # pylint: disable=eval-used


def says(file, text):
    """See that a formula which a picture shows is still there, however it is wrapped."""
    if re.sub(r"\s+", " ", text) not in re.sub(r"\s+", " ", read(file)):
        raise Missing(f"{file} does not say any more: {text}")


def has(*files):
    """See that files exist."""
    for file in files:
        if not os.path.isfile(os.path.join(TOP, file)):
            raise Missing(f"there is no {file} any more")


def states():
    """The states of a timer, from enum tw_state."""
    found = re.search(r"^enum tw_state \{(.*?)\}", read("module/timer.h"), re.M | re.S)
    if not found:
        raise Missing("module/timer.h has no enum tw_state")
    return re.findall(r"\bTW_(\w+)", found[1])


def transitions():
    """Those from state to state that the table in Documentation/design/states.md has: {(from, to), ...}."""
    known = set(states())
    pairs = set()
    for left, right in re.findall(r"^\| ([A-Z]+) \| ([A-Z, ]+) \|", read("Documentation/design/states.md"), re.M):
        pairs |= {(left, one) for one in right.split(", ")}
    if not pairs or {one for pair in pairs for one in pair} - known:
        raise Missing("Documentation/design/states.md has no table of a timer's states that could be read")
    return pairs


def members(name):
    """Of a structure that programs see: [(member, offset, bytes), ...]; all is aligned."""
    text = re.sub(r"/\*.*?\*/", "", read(UAPI), flags=re.S)
    found = re.search(rf"^struct {name} \{{(.*?)^\}}", text, re.M | re.S)
    if not found:
        raise Missing(f"{UAPI} has no struct {name}")
    offset, result = 0, []
    for bits, member, count in re.findall(r"__(?:aligned_)?[us](\d+) (\w+)(?:\[(\d+)\])?;", found[1]):
        size = int(bits) // 8 * int(count or 1)
        result.append((member, offset, size))
        offset += size
    return result
