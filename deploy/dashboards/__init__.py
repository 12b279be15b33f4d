"""Grafana's dashboards as Python: `python -m deploy.dashboards` writes the chart's JSON."""
