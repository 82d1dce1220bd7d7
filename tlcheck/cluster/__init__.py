"""Jobs and judging on the nodes of a Ray cluster, with the same results as on one machine.

`connection` opens a cluster, whose `nodes` an `executor` has do jobs, as `lower.executor` does on one machine, and
`judging` has judge snapshots. `placement` says which job a node gets next, `node` is what runs on a node, and `folder`
what of the user's travels there. It is imported when somebody asks for a cluster, and only then; everybody else knows
`lower.machines`.
"""
