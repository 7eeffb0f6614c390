"""The server against its own schema: schemathesis asks what the schema allows, and much that it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apps.server.conftest import TOKEN, Service

pytestmark = [pytest.mark.process, pytest.mark.slow]
PROGRAM = Path(sys.executable).with_name("schemathesis")


@pytest.mark.skipif(not PROGRAM.exists(), reason="needs schemathesis: pip install 'strays[dev]'")
@pytest.mark.parametrize("token", [None, TOKEN])
def test_no_request_breaks_the_promises_of_the_schema(
    token: str | None, start: Callable[..., Service], tmp_path: Path
) -> None:
    service = start(listens=True, token=token)
    header = ["--header", f"Authorization: Bearer {token}"] if token else []
    command = [PROGRAM, "run", f"{service.base}/openapi.json", "--checks", "all", "--max-examples", "30", "--seed", "1"]
    done = subprocess.run(
        [*map(str, command), *header],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stdout[-4000:]
    statuses = [line["status"] for line in service.requests()]
    assert len(statuses) > 100
    assert max(statuses) < 500
