"""Say what calls and attributes mean: tile operators in tile/, instructions of threads in thread/."""
