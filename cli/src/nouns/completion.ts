import { Argument } from "commander";
import type { CliCommand } from "../command.ts";
import { completionScripts, type Shell, shells } from "../completion/shells.ts";

export function addCompletion(completion: CliCommand): void {
  completion
    .description("print a script for your shell that completes commands, flags and names of existing objects")
    .addArgument(new Argument("<shell>", "shell").choices(shells))
    .addHelpText(
      "after",
      `
To enable it in each new shell:
  bash  echo 'source <(holdfast completion bash)' >> ~/.bashrc
  zsh   echo 'source <(holdfast completion zsh)' >> ~/.zshrc    # after compinit
  fish  holdfast completion fish > ~/.config/fish/completions/holdfast.fish`,
    )
    .example("completion bash")
    .does(async ({ output }, shell: Shell) => output.print(completionScripts[shell].trimEnd()));
}
