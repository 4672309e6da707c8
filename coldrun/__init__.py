"""An evaluation pipeline that cannot fool its owner.

The folders `cli`, `flows`, `tasks` and `warehouse` lie at the top of the repository. They are
installed below this package, where the links in this folder put them, so that no other package's
`tasks` or `cli` can take their place.
"""
