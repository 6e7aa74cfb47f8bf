"""`ixion help`: shows the page of a command, or a short page about a topic that many commands share."""

from __future__ import annotations

from typing import Final

from ixion.cli.command import Argument, Command, Group, UsageError, nearest


def show(words: list[str]) -> None:
    from ixion.cli.app import COMMANDS, common_to, find, print_root
    from ixion.cli.help.pages import command_page, group_page
    from ixion.cli.help.topics import TOPICS

    if not words:
        print_root()
        print("\n".join(f"  ixion help {name:<12} {page.title}" for name, page in TOPICS.items()))
        return
    if words[0] not in TOPICS and words[0] not in COMMANDS:
        hint = nearest(words[0], [*COMMANDS, *TOPICS]) or f"; there is help about commands and {', '.join(TOPICS)}"
        raise UsageError(f"there is no help about {words[0]!r}{hint}")
    found = find(words[0]) if words[0] in COMMANDS else None
    most = 2 if isinstance(found, Group) else 1
    if len(words) > most:
        raise UsageError(f"{words[most]!r} is one word too many")
    if found is None:
        page = TOPICS[words[0]]
        print(f"{page.title}\n\n{page.text}")
        return
    if isinstance(found, Group) and len(words) > 1:
        command = found.find(words[1])
        if command is None:
            names = [each.name for each in found.commands]
            raise UsageError(f"there is no command {words[1]!r}{nearest(words[1], names)}")
        print(command_page(f"ixion {found.name} {command.name}", command))
    elif isinstance(found, Group):
        print(group_page(f"ixion {found.name}", found, common_to(found)))
    else:
        print(command_page(f"ixion {found.name}", found))


HELP_COMMAND: Final = Command(
    "help",
    "Explain a command, or one of: formats, offsets, settings, connection, environment, exit-codes.",
    show,
    arguments=(Argument("words", "TOPIC", required=False, many=True, complete="help"),),
)
