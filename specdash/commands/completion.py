"""``specdash completion SHELL``: what a shell needs to complete commands, hosts and variants."""

from __future__ import annotations

import click


@click.command(short_help="What a shell needs to complete commands, hosts and variants.")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> None:
    """Print the script that makes SHELL complete specdash: commands, options, hosts, variants, themes.

    Hosts are the profile's and the aliases of ~/.ssh/config; nothing is connected to. The folder must
    be there (mkdir -p), and counts for shells that are started afterwards. bash (4.4 or newer) needs the
    package bash-completion for it; without it, source the file in ~/.bashrc. zsh looks into ~/.zfunc where
    ~/.zshrc says fpath=(~/.zfunc $fpath) before its compinit.

    \b
    Examples:
      specdash completion bash > ~/.local/share/bash-completion/completions/specdash
      specdash completion zsh > ~/.zfunc/_specdash
      specdash completion fish > ~/.config/fish/completions/specdash.fish
    """
    from click.shell_completion import get_completion_class

    from specdash.cli import COMPLETION, root

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(root, {}, "specdash", COMPLETION).source())
