"""The command line. A command is a module or a folder here, with its options in a table (`command`, `commands`).

`main` is the entry, `app` lists the commands, `parse` reads the words by their tables. Commands share `access` and
`options` (which cluster, and as whom), `output`, `progress`, `streams` and `interrupt`.
"""
