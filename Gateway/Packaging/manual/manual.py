#!/usr/bin/env python3
"""Writes the manual page of a program from its own help, or the page of the gateway's configuration file.

    manual.py program PROGRAM SECTIONS        what PROGRAM --experimental-dump-help says, then the file SECTIONS
    manual.py configuration PROGRAM SECTIONS  the table of settings in Docs/Gateway.md, then the file SECTIONS

The page is written to standard output. SECTIONS is in mdoc(7). The date is that of SOURCE_DATE_EPOCH, or today.
"""

import collections
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

from mdoc import argument, escaped, heading, sentences

ROOT = pathlib.Path(__file__).resolve().parents[3]
# An option that at least so many commands have is described once for all of them.
COMMON = 3


def date():
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) if seconds else datetime.date.today()


def help_of(program):
    output = subprocess.run([program, "--experimental-dump-help"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(output)["command"]


def version_of(program):
    return subprocess.run([program, "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def visible(items):
    return [item for item in items or [] if item.get("shouldDisplay", True)]


def names(option):
    """The names of an option, short ones first, with their hyphens."""
    texts = [("-" if name["kind"] == "short" else "--") + name["name"] for name in option.get("names", [])]
    return sorted(texts, key=lambda text: text.startswith("--"))


def options(command):
    """The options of a command without --help and --version, which all commands have."""
    listed = [item for item in visible(command.get("arguments")) if item["kind"] != "positional"]
    return [option for option in listed if not {"--help", "--version"} & set(names(option))]


def identity(option):
    """Options with the same identity are the same one in several commands."""
    return (tuple(names(option)), option.get("valueName"), option.get("abstract"))


def flags(option):
    """The names of an option as arguments of a macro, with its value."""
    texts = [f"Fl {escaped(name[1:])}" for name in names(option)]
    value = f" Ar {argument(option['valueName'])}" if option["kind"] == "option" else ""
    return " , ".join(text + value for text in texts)


def description(item):
    """What an option or an argument is for, and its default unless the text has it."""
    text = item.get("abstract", "")
    default = item.get("defaultValue")
    if default and "default" not in text:
        text += f" (default: {default})"
    values = item.get("allValues")
    if values:
        text += " One of " + ", ".join(f"`{value}`" for value in values) + "."
    return sentences(text)


def tagged(tags):
    """A list of tags, each with a text."""
    if not tags:
        return ""
    return ".Bl -tag -width Ds\n" + "".join(f".It {tag}\n{text}\n" for tag, text in tags) + ".El\n"


def synopsis(program, command, common):
    """The lines of a command's synopsis."""
    lines = [f".Nm {program}"] + [f".Cm {argument(word)}" for word in words(command)[1:]]
    own = [option for option in options(command) if identity(option) not in common]
    if len(own) < len(options(command)):
        lines.append(".Op Ar common option ...")
    for option in own:
        lines.append(f".Op {flags(option).split(' , ')[-1]}")
    for item in visible(command.get("arguments")):
        if item["kind"] == "positional":
            text = f"Ar {argument(item['valueName'])}" + (" ..." if item.get("isRepeating") else "")
            lines.append(f".Op {text}" if item.get("isOptional") else f".{text}")
    return "\n".join(lines)


def words(command):
    return command.get("superCommands", []) + [command["commandName"]]


def leaves(command):
    """The commands below a command that do something, without `help`."""
    children = [child for child in visible(command.get("subcommands")) if child["commandName"] != "help"]
    return [leaf for child in children for leaf in leaves(child)] if children else [command]


def command_section(command, common):
    text = f".Ss {' '.join(argument(word) for word in words(command))}\n"
    text += sentences(command.get("abstract", "")) + "\n"
    if command.get("discussion"):
        text += discussion(command["discussion"])
    own = options(command)
    tags = [
        (f"Ar {argument(item['valueName'])}", description(item))
        for item in visible(command.get("arguments"))
        if item["kind"] == "positional"
    ]
    tags += [(flags(option), description(option)) for option in own if identity(option) not in common]
    text += tagged(tags)
    shared = [names(option)[-1] for option in own if identity(option) in common]
    if shared and len(shared) == len(common):
        text += ".Pp\nIt has all common options.\n"
    elif shared:
        text += ".Pp\nCommon options: " + ",\n".join(escaped(name) for name in shared) + ".\n"
    return text


def discussion(text):
    """Paragraphs; lines that are indented stay as they are."""
    result = ""
    for paragraph in re.split(r"\n\s*\n", text):
        result += ".Pp\n"
        loose = ""
        literal = []
        for line in paragraph.splitlines():
            if line.startswith("  "):
                literal.append(line.strip())
            else:
                loose += " " + line
        if loose.strip():
            result += sentences(loose) + "\n"
        if literal:
            result += ".Bd -literal -offset indent -compact\n" + "\n".join(map(escaped, literal)) + "\n.Ed\n"
    return result


def program_page(program, sections):
    command = help_of(program)
    name = command["commandName"]
    commands = leaves(command)
    count = collections.Counter(identity(option) for leaf in commands for option in options(leaf))
    common = {key for key, number in count.items() if number >= COMMON}
    page = heading(name, 1, date(), f"swift-ble {version_of(program)}")
    page += f".Sh NAME\n.Nm {name}\n.Nd {escaped(command['abstract'].rstrip('.'))}\n.Sh SYNOPSIS\n"
    page += "\n".join(synopsis(name, leaf, common) for leaf in commands)
    page += f"\n.Nm {name}\n.Fl \\-help | Fl \\-version\n.Sh DESCRIPTION\n{sentences(command['abstract'])}\n"
    page += discussion(command.get("discussion", "")).rstrip() + "\n"
    page += ".Pp\n.Nm\n.Cm help Ar command\ndescribes a command.\n"
    page += ".Sh COMMANDS\n" + "".join(command_section(leaf, common) for leaf in commands)
    described = {}
    for leaf in commands:
        for option in options(leaf):
            if identity(option) in common:
                described.setdefault(identity(option), (flags(option), description(option)))
    if described:
        page += ".Sh COMMON OPTIONS\n" + tagged(list(described.values()))
    return page + pathlib.Path(sections).read_text()


def settings_table():
    """The rows of the table of settings: key, option, variable, default."""
    text = (ROOT / "Docs/Gateway.md").read_text()
    section = text.split("\n## Configuration\n", 1)[1].split("\n## ", 1)[0]
    rows = [re.split(r"\s*\|\s*", line.strip())[1:-1] for line in section.splitlines() if line[:1] == "|"]
    if not rows or rows[0] != ["key in the file", "option", "variable", "default"]:
        sys.exit("manual.py: Docs/Gateway.md has no table with the columns of settings")
    return rows[2:]


def configuration_page(program, sections):
    """The page of the file: its keys, with what the help says about the option of each."""
    command = help_of(program)
    abstracts = {
        name: re.sub(r" \(default[^)]*\)", "", option["abstract"]).rstrip(".").replace("; may be repeated", "") + "."
        for leaf in leaves(command)
        for option in options(leaf)
        for name in names(option)
    }
    meanings = json.loads(pathlib.Path(__file__).with_name("settings.json").read_text())
    tags = []
    for key, option, variable, default in settings_table():
        key, kind = re.fullmatch(r"`(\w+)`(.*)", key).groups()
        flag = re.search(r"--[a-z-]+", option)
        text = [meanings.pop(key, None) or (abstracts[flag.group()] if flag else "")]
        # Links lead nowhere here.
        default = re.sub(r"[;,]? see \[[^]]*\]\([^)]*\)[^;|]*", "", default)
        text.append(f"Default: {default}.")
        text.append("Variable: " + variable + ".")
        if flag:
            text.append("Option: " + option + ".")
        if kind:
            text.insert(0, kind.strip(": ").capitalize() + ".")
        tags.append((f"Cm {key}", sentences(" ".join(text))))
    if meanings:
        sys.exit(f"manual.py: settings.json describes settings that there are not: {', '.join(meanings)}")
    page = heading("ble-gateway.json", 5, date(), f"swift-ble {version_of(program)}")
    before, after = pathlib.Path(sections).read_text().split(".\\\" SETTINGS\n")
    return page + before + tagged(tags) + after


def main():
    kinds = {"program": program_page, "configuration": configuration_page}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    sys.stdout.write(kinds[sys.argv[1]](sys.argv[2], sys.argv[3]))


main()
