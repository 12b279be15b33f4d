"""The run store: where a trainer and evaluators meet, and nothing is lost, torn or doubled.

A run is one folder of small objects. Every fact is one object, nearly all are created once and
never changed, and what can be computed from others is only a projection of them. The modules:

- `objects`, `local`, `gcs`, `opening`: the store itself, create-only and replace-if-unchanged.
- `names`, `records`, `writing`, `retrying`: how objects are called, encoded and put.
- `runs`, `attempts`, `claims`, `lines`: who trains, and which checkpoints count.
- `commits`, `fetching`, `state_file`: writing and reading a checkpoint; `adopted`: those of others.
- `ledger`, `tries`, `bests`: what became of each checkpoint in each evaluation set.
- `watching`, `heartbeats`, `leases`: who lives, and who reads.
- `policies`, `pins`, `retention`, `retiring`: what is kept, and how the rest goes; `collecting`:
  when the trainer has gone.
- `auditing`: whether everything is as it should be.
"""
