"""What the console reads of an answer is what the API says: every field of its types is one of the description."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ksana.api import queue, v2
from ksana.api.kit.openapi import describe

SOURCE = Path(__file__).parents[2] / "web" / "src"
TYPES = "".join(path.read_text() for path in [SOURCE / "lib" / "types.ts", *SOURCE.glob("pages/*/types.ts")])
VIEWS = {
    "Job": "JobView",
    "Run": "RunView",
    "Body": "BodyView",
    "Attempt": "AttemptView",
    "Fire": "FireView",
    "Words": "WordsView",
    "Preview": "PreviewView",
    "Outcomes": "JobOutcomes",
    "Attention": "AttentionView",
    "Overview": "OverviewView",
    "Mark": "MarkView",
    "Lane": "LaneView",
    "TimelineView": "TimelineView",
    "Heatmap": "HeatmapView",
    "Operation": "OperationView",
    "AuditEntry": "AuditView",
    "Change": "VersionChange",
    "JobVersion": "VersionView",
    "HistogramView": "HistogramView",
    "Segment": "SegmentView",
    "Callback": "CallbackView",
    "RunDiff": "DiffView",
    "Neighbours": "NeighboursView",
    "Similar": "SimilarView",
    "Spot": "NodeSpot",
    "Layout": "LayoutView",
    "Step": "StepView",
    "Grid": "GridView",
    "Queue": "QueueView",
    "QueueSettings": "QueueSettingsView",
    "Item": "ItemView",
    "DeadGroup": "GroupView",
    "GovernedObject": "ObjectView",
    "ObjectChange": "ObjectAuditView",
    "SystemView": "SystemView",
    "Setting": "Setting",
    "Alert": "AlertView",
}


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    found: dict[str, Any] = describe([v2.surface(), queue.surface()], title="", version="")["components"]["schemas"]
    return found


def fields_of(interface: str) -> set[str]:
    """The fields of a type of the console; those of objects within it stand deeper and are left out."""
    [body] = re.findall(rf"^export interface {interface} \{{\n(.*?)^\}}", TYPES, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"^  (\w+)\??:", body, re.MULTILINE))


@pytest.mark.parametrize("interface", VIEWS)
def test_every_field_the_console_reads_is_answered(interface: str, schemas: dict[str, Any]) -> None:
    answered = [
        set(schema["properties"])
        for name, schema in schemas.items()
        # Two views of one name are told apart by their modules.
        if name == VIEWS[interface] or name.endswith(f".{VIEWS[interface]}")
    ]
    assert any(fields_of(interface) <= fields for fields in answered), fields_of(interface)
