"""Writes the golden renders and the README's table anew: python -m tests.deploy.regenerate

Look at `git diff` afterwards: what changed there changes in people's clusters.
"""

from tests.deploy import tables
from tests.deploy.rendering import CHART, GOLDEN, MONITORING, SETS, rendered, rendered_monitoring

if __name__ == "__main__":
    for stale in GOLDEN.glob("*.yaml"):
        stale.unlink()
    for name in SETS:
        (GOLDEN / f"{name}.yaml").write_text(rendered(name))
    (GOLDEN / "monitoring.yaml").write_text(rendered_monitoring())
    for chart in (CHART, MONITORING):
        tables.update(chart)
