"""One scalar of a YAML text, replaced in the span that the composer marks: nothing is written anew."""

from __future__ import annotations

import json
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from specdash.operations.edits import EditError, Path, at, literal, replaced, same, walk

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*")
_WORDS_OF_YAML_1_1 = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Plain text for this library and something else for PyYAML, which many servers read their files with."""
_NO_DOT = re.compile(r"(?P<whole>[+-]?\d+)(?P<power>[eE][+-]?\d+)")


def put(text: str, key: str, value: str) -> str:
    """The text with that key's value replaced. Raises ``EditError``."""
    tree = _load(text)
    path = walk(tree, key)
    root = _compose(text)
    node = _node(root, path)
    if not isinstance(node, ScalarNode):
        raise EditError(f"{key} is not a single value")
    if node.anchor or _uses(root, node) > 1:
        raise EditError(f"{key}: its value carries an anchor: other places share it")
    if node.style in ("|", ">"):
        raise EditError(f"{key}: a text block cannot be changed here")
    wanted = literal(value, at(tree, path))
    new = text[: node.start_mark.index] + _written(text, node, value, wanted) + text[node.end_mark.index :]
    if not same(_load(new), replaced(tree, path, wanted)):
        raise EditError(f"{key}: the change would touch more than this value")
    return new


def _written(text: str, node: ScalarNode, value: str, wanted: Any) -> str:
    if not isinstance(wanted, str):
        if isinstance(wanted, (dict, list)):
            raise EditError("only a single value can be set in YAML")
        return "null" if wanted is None else _number(value, wanted)
    plain = node.style is None and _PLAIN.fullmatch(wanted) and wanted.lower() not in _WORDS_OF_YAML_1_1
    written = wanted if plain else json.dumps(wanted, ensure_ascii=False)
    begin, end = node.start_mark.index, node.end_mark.index
    return f" {written}" if begin == end and text[begin - 1 : begin] == ":" else written


def _number(value: str, wanted: Any) -> str:
    """As it was written, but ``1e-05`` gets a dot: PyYAML would take it for a text."""
    written = value.strip()
    if (short := _NO_DOT.fullmatch(written)) is not None:
        written = f"{short['whole']}.0{short['power']}"
    return written if same(_load(written), wanted) else json.dumps(wanted)


def _load(text: str) -> Any:
    try:
        return _simple(YAML(typ="safe", pure=True).load(text))
    except YAMLError as error:
        raise EditError(f"not YAML: {' '.join(str(error).split())}") from None


def _simple(tree: Any) -> Any:
    """Keys as text, so that a path can name them."""
    if isinstance(tree, dict):
        return {str(name): _simple(value) for name, value in tree.items()}
    return [_simple(item) for item in tree] if isinstance(tree, list) else tree


def _compose(text: str) -> Node:
    root: Node = YAML(pure=True).compose(text)
    return root


def _node(node: Node, path: Path) -> Node:
    for name in path:
        if isinstance(node, MappingNode):
            node = [value for key, value in node.value if key.value == name][-1]
        elif isinstance(node, SequenceNode):
            node = node.value[int(name)]
    return node


def _uses(root: Node, wanted: Node) -> int:
    """How often a node stands in the tree: an alias is the same node once more."""
    count, todo = 0, [root]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        count += node is wanted
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, MappingNode):
            todo.extend(part for pair in node.value for part in pair)
        elif isinstance(node, SequenceNode):
            todo.extend(node.value)
    return count
