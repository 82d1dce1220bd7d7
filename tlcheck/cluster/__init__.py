"""Jobs and judging on the nodes of a Ray cluster, with the same results as on one machine.

`connection` opens a cluster, `crew` has jobs done there as `lower.crew` does on one machine, `judging` has snapshots
judged there, `placement` says which job a node gets next, `node` is what runs on a node,
and `folder` what of the user's travels there.
"""
