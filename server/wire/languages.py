"""Language tags of callers (BCP-47) and the codes that models go by (ISO 639-1)."""

_MODEL_CODES = {
    "cmn": "zh",  # Mandarin, as the Google APIs name it
    "fil": "tl",
    "in": "id",  # withdrawn ISO 639-1 codes that are still in use
    "iw": "he",
    "ji": "yi",
    "nb": "no",
}


def language_subtag(tag: str) -> str:
    """The model's code of a BCP-47 tag: "en-US" and "en" are "en"."""
    primary = tag.strip().replace("_", "-").split("-", 1)[0].lower()
    return _MODEL_CODES.get(primary, primary)
