"""The quick tests first: whole calls through real models run when everything else has passed."""

SLOW_FOLDERS = ("engines", "end_to_end")


def pytest_collection_modifyitems(items):
    """Sorts by folder; the order inside a folder stays."""

    def rank(item):
        folders = item.path.parts
        return max((place + 1 for place, name in enumerate(SLOW_FOLDERS) if name in folders), default=0)

    items.sort(key=rank)
