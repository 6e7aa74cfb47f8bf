"""Completion for bash, zsh and fish.

`ixion completion bash` prints a script that asks `ixion __complete SHELL WORDS...` for candidates. The words are those
of the command line up to the cursor; the last one is being completed. The answer has one candidate per line (for zsh
and fish with a tab and its explanation), or `:files`, which means the shell's own completion of file names. Candidates
come from the tables of the commands; names of topics and groups come from the cluster, if it answers within a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from ixion.cli.command import Argument, Command, Group, Option, UsageError

FILES: Final = ":files"
PATIENCE_S: Final = 1.0
SHELLS: Final = ("bash", "zsh", "fish")

BASH: Final = """# ixion completion for bash: eval "$(ixion completion bash)" in ~/.bashrc
_ixion() {
    local IFS=$'\\n' word="${COMP_WORDS[COMP_CWORD]}"
    # Words are cut at ':' and '='; what was before the cut is taken off the candidates.
    local line="${COMP_LINE:0:COMP_POINT}" words before
    IFS=$' \\t\\n' read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local found=($(ixion __complete bash "${words[@]:1}" 2>/dev/null))
    if [[ "${found[0]}" == ":files" ]]; then
        COMPREPLY=($(compgen -f -- "$word"))
        compopt -o filenames 2>/dev/null
        return
    fi
    before="${words[-1]%"$word"}"
    [[ "$word" == ":" || "$word" == "=" ]] && before="${words[-1]}"
    COMPREPLY=("${found[@]#"$before"}")
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
}
complete -F _ixion ixion
"""

ZSH: Final = """#compdef ixion
# ixion completion for zsh: eval "$(ixion completion zsh)" in ~/.zshrc, after compinit
_ixion() {
    local -a found values texts
    local each
    found=("${(@f)$(ixion __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ "${found[1]}" == ":files" ]]; then
        _files
        return
    fi
    for each in $found; do
        values+=("${each%%$'\\t'*}")
        texts+=("${each/$'\\t'/  -- }")
    done
    (( ${#values} )) && compadd -l -d texts -a values
}
compdef _ixion ixion
"""

FISH: Final = """# ixion completion for fish: ixion completion fish | source in ~/.config/fish/config.fish
function __ixion_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (ixion __complete fish $words[2..-1] 2>/dev/null)
    if test "$found" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c ixion -f -a '(__ixion_complete)'
"""

SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def print_script(shell: str | None) -> None:
    chosen = shell or os.path.basename(os.environ.get("SHELL", ""))
    if chosen not in SCRIPTS:
        raise UsageError(f"completion is for bash, zsh and fish, not for {chosen!r}")
    print(SCRIPTS[chosen], end="")


COMPLETION: Final = Command(
    "completion",
    "Print the completion script of a shell.",
    print_script,
    arguments=(
        Argument(
            "shell", "SHELL", "bash, zsh or fish (default: your $SHELL).", required=False, complete="bash|zsh|fish"
        ),
    ),
    details='bash: put eval "$(ixion completion bash)" into ~/.bashrc.\n'
    'zsh: put eval "$(ixion completion zsh)" into ~/.zshrc, after compinit.\n'
    "fish: put ixion completion fish | source into ~/.config/fish/config.fish.",
)


def complete(words: list[str]) -> None:
    """Print the candidates for the last of the words; the first is the shell."""
    shell, line = (words[0], words[1:]) if words else ("bash", [])
    for value, explanation in candidates(line or [""]):
        print(value if shell == "bash" or not explanation else f"{value}\t{explanation}")


def candidates(line: list[str]) -> list[tuple[str, str]]:
    *before, word = line
    from ixion.cli.app import COMMON, SECTIONS, find

    given, rest = split(before, COMMON)
    if given is not None:
        return option_values(given, word, before)
    if not rest:
        names = [(name, summary) for _, entries in SECTIONS for name, _, summary in entries]
        return matching(word, [*names, *flags(COMMON), ("--version", "Print the version.")])
    try:
        found = find(rest[0])
    except UsageError:
        return []
    rest = rest[1:]
    if isinstance(found, Group):
        given, rest = split(rest, COMMON)
        if given is not None:
            return option_values(given, word, before)
        if not rest:
            return matching(word, [*((each.name, each.summary) for each in found.commands), *flags(COMMON)])
        command = found.find(rest[0])
        if command is None:
            return []
        rest = rest[1:]
    else:
        command = found
    return of_command(command, rest, word, before)


def of_command(command: Command, rest: list[str], word: str, before: list[str]) -> list[tuple[str, str]]:
    given, places = split(rest, command.options, to_end=True)
    if given is not None:
        return option_values(given, word, before)
    flag, equals, value = word.partition("=")
    for option in command.options:
        if equals and flag in option.flags and option.metavar:
            return [(f"{flag}={found}", text) for found, text in option_values(option, value, before)]
    if word.startswith("-") and "--" not in rest:
        return matching(word, flags(command.options))
    for place, argument in enumerate(command.arguments):
        if argument.many or place == len(places):
            kind = argument.complete
            if kind.startswith("resource"):  # of the kind that the first word names
                kind = places[0] + kind.removeprefix("resource")
            return values_of(kind, word, before)
    return []


def split(words: list[str], options: Iterable[Option], *, to_end: bool = False) -> tuple[Option | None, list[str]]:
    """The option whose value comes next, if any, and the words that belong to no option."""
    by_flag = {flag: option for option in options for flag in (*option.flags, *option.hidden)}
    places: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        option = by_flag.get(word)
        if option is not None and option.metavar:
            if not left:
                return option, places
            left.pop(0)
        elif option is None and (not word.startswith("-") or len(word) < 2):
            places.append(word)
            if not to_end:
                return None, places + left
    return None, places


def flags(options: Iterable[Option]) -> list[tuple[str, str]]:
    names = [(flag, option.help) for option in options for flag in option.flags if flag.startswith("--")]
    names += [(option.negative, option.help) for option in options if option.negative]
    return [*names, ("--help", "Show the help page.")]


def matching(word: str, found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(value, text) for value, text in found if value.startswith(word) and (word or not value.startswith("-"))]


def option_values(option: Option, word: str, before: list[str]) -> list[tuple[str, str]]:
    return values_of(option.complete, word, before)


def values_of(kind: str, word: str, before: list[str]) -> list[tuple[str, str]]:
    if kind == "file":
        return [(FILES, "")]
    if kind in ("topic", "group", "broker", "logger"):
        return matching(word, [(name, "") for name in names_of(kind, before)])
    if kind == "help":
        from ixion.cli.app import SECTIONS
        from ixion.cli.help.topics import TOPICS

        commands = [(name, summary) for _, entries in SECTIONS for name, _, summary in entries]
        return matching(word, [*((name, page.title) for name, page in TOPICS.items()), *commands])
    if "setting" in kind:
        return matching(word, [(f"{name}{'' if 'name' in kind else '='}", "") for name in settings_of(kind)])
    return matching(word, [(value, "") for value in kind.split("|") if value])


def settings_of(kind: str) -> Iterable[str]:
    """The names of the settings of a topic, a group or a broker; loggers have other names."""
    if kind.startswith("topic"):
        from ixion.config.topic import TOPIC_SETTINGS

        return TOPIC_SETTINGS
    if kind.startswith("group"):
        from ixion.config.group import GROUP_SETTINGS

        return GROUP_SETTINGS
    if kind.startswith("logger"):
        return ()
    from ixion.config.table import BROKER_SETTINGS

    return BROKER_SETTINGS


def names_of(kind: str, before: list[str]) -> list[str]:
    """Names from the cluster of the command line or environment; none if it does not answer."""
    from ixion.cli.access import CLUSTER, read_access
    from ixion.cli.options import administer
    from ixion.cli.parse import default_of
    from ixion.language.model.errors import KafkaError

    given = {option.name: value for option in CLUSTER if (value := default_of(option))}
    by_flag = {flag: option for option in CLUSTER for flag in (*option.flags, *option.hidden)}
    for at, word in enumerate(before[:-1]):
        if word in by_flag:
            given[by_flag[word].name] = before[at + 1] if by_flag[word].metavar else True
    try:
        given["timeout"] = PATIENCE_S
        with administer(read_access(given, may_ask=False)) as admin:
            if kind == "group":
                from ixion.clients.admin.groups import list_groups

                return [group.group for group in admin.run(list_groups)]
            if kind in ("broker", "logger"):
                from ixion.clients.admin.routes import nodes

                found = [str(node) for node in admin.run(nodes)]
                return [*found, "default"] if kind == "broker" else found
            from ixion.clients.admin.topics import list_topics

            return [topic.name for topic in admin.run(list_topics)]
    except (KafkaError, UsageError, OSError):
        return []
