"""Grafana's own published schema, as its compiler sees our dashboards."""

import subprocess

from tests.deploy.dashboards.reading import FOLDER, NAMES
from tests.deploy.rendering import CHECKOUT, NEEDS_TOOLS

_CHECK = CHECKOUT / "tests/deploy/dashboards/check.ts"
_FLAGS = "--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution node"

_MISSPELT = {
    '"graphTooltip"': '"graphTooltips"',
    '"type": "stat"': '"type": "stats"',
    '"colorMode": "background"': '"colorMode": "backgrounds"',
    '"drawStyle": "line"': '"drawStyle": "lines"',
    '"legendFormat"': '"legend"',
    '"iconColor"': '"color"',
}


def _complaints(folder, texts):
    """What the compiler says about each of the texts, by name."""
    found = subprocess.run(
        [CHECKOUT / "scripts/grafana-schema"], stdout=subprocess.PIPE, text=True, check=True
    )
    modules = f"{found.stdout.strip()}/node_modules"
    # Node's programs are there where the system has none.
    with_node = ["sh", "-c", 'PATH="$0:$PATH" exec "$@"', f"{found.stdout.strip()}/venv/bin"]
    (folder / "node_modules").symlink_to(modules)
    for name, text in texts.items():
        made = f"{_CHECK.read_text()}\nexport const it: Checked = {text};"
        (folder / f"{name}.ts").write_text(made)
    done = subprocess.run(
        [*with_node, f"{modules}/.bin/tsc", *_FLAGS.split(), *(f"{name}.ts" for name in texts)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    lines = (done.stdout + done.stderr).splitlines()
    return {name: [line for line in lines if line.startswith(f"{name}.ts")] for name in texts}


@NEEDS_TOOLS
def test_grafanas_schema_knows_every_field(tmp_path):
    texts = {name: (FOLDER / f"{name}.json").read_text() for name in NAMES}
    assert _complaints(tmp_path, texts) == {name: [] for name in NAMES}


@NEEDS_TOOLS
def test_grafanas_schema_finds_what_is_misspelt(tmp_path):
    text = (FOLDER / "tandem-run.json").read_text()
    assert all(right in text for right in _MISSPELT)
    texts = {
        f"wrong{number}": text.replace(right, wrong, 1)
        for number, (right, wrong) in enumerate(_MISSPELT.items())
    }
    assert all(_complaints(tmp_path, texts).values())
