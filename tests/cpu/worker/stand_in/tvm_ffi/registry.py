"""No native function is registered."""


def list_global_func_names() -> list[str]:
    return []
