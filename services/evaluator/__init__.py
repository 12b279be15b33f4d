"""The evaluator process: watches the run store and scores every committed checkpoint."""
