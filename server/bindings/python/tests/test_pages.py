"""The programs in the pages that are no tests, as `.ci/docs.py blocks python` has written them to the folder MINIKEEPER_PAGES."""

import os
import pathlib
import subprocess
import sys

import pytest

PATIENCE_S = 60
PROGRAMS = sorted(pathlib.Path(os.environ.get("MINIKEEPER_PAGES", "no-pages")).glob("[!t]*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program_runs(minikeeper_server, tmp_path, program):
    here = tmp_path / program.name
    # The page's own server has the default port.
    here.write_text(program.read_text().replace("127.0.0.1:2181", minikeeper_server.connect_string))
    ran = subprocess.run([sys.executable, here], timeout=PATIENCE_S, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    output = program.with_name(program.name + ".out")
    if output.exists():
        assert ran.stdout == output.read_text()
