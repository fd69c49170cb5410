"""YAML, of which only plain values are read, and in which no key may be there twice."""

from __future__ import annotations

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses what PyYAML would let the last one win."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
            if name is not None and name in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} is there twice", problem_mark=key.start_mark)
            seen.add(name)
        return node


def parse(text: str) -> Any:
    """Return the value of the YAML document *text*.

    Raises:
        ValueError: it is none; the message says where.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506  (a safe loader)
    except (yaml.YAMLError, RecursionError) as exc:
        raise ValueError(" ".join(str(exc).split())) from None
