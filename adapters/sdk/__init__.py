"""AgentCompass: know how good an AI agent really is."""

from __future__ import annotations
