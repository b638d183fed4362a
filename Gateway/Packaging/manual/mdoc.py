"""Text in the language of manual pages, mdoc(7)."""

import re
import textwrap

# Requests and macros begin with one of these at the start of a line.
CONTROL = (".", "'")


def escaped(text):
    """Returns text in which no character has a meaning for mdoc."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = "".join(character if ord(character) < 128 else f"\\[u{ord(character):04X}]" for character in text)
    return "\\&" + text if text.startswith(CONTROL) else text


def argument(text):
    """Returns one argument of a macro. Punctuation, and words that are macros themselves, are only text in it."""
    text = escaped(text).replace('"', "\\(dq")
    if re.fullmatch(r"[A-Z][a-z]|[][().,:;|!?]|An|Aq|Ap", text):
        text = "\\&" + text
    return f'"{text}"' if " " in text or not text else text


def sentences(text):
    """Returns lines of text, one for each sentence. `code` becomes bold, and links of Markdown their text."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    lines = []
    for sentence in re.split(r"(?<=[A-Za-z0-9)`][.!?]) (?=[A-Z`#-])", text):
        parts = re.split(r"`([^`]*)`", sentence)
        line = "".join(f"\\fB{escaped(part)}\\fR" if index % 2 else escaped(part) for index, part in enumerate(parts))
        lines += textwrap.wrap(line, 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join("\\&" + line if line.startswith(CONTROL) else line for line in lines)


def heading(title, section, date, system):
    """Returns the first lines of a page."""
    return f".Dd {date:%B} {date.day}, {date.year}\n.Dt {title.upper()} {section}\n.Os {argument(system)}\n"
