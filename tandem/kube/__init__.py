"""Tandem in a Kubernetes cluster: what its processes tell it, and what they ask of it."""
