import { Command } from "commander";
import type { CliDeps, Context, ContextOptions } from "./context.ts";
import { globalFlagsOf, ownFlagsOf } from "./global-flags.ts";

/** A command with examples in its help and an action that gets the context of its run. */
export class CliCommand extends Command {
  readonly deps: CliDeps;
  /** Example command lines. */
  readonly examples: string[] = [];

  constructor(deps: CliDeps, name?: string) {
    super(name);
    this.deps = deps;
    this.addHelpText("after", () =>
      this.examples.length === 0 ? "" : `\nExamples:\n${this.examples.map((line) => `  ${line}\n`).join("")}`,
    );
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(this.deps, name);
  }

  /** Adds an example command line, without the word holdfast. */
  example(line: string): this {
    this.examples.push(`holdfast ${line}`);
    return this;
  }

  /** Sets the action, which gets the context, the arguments and the flags. */
  does<Args extends unknown[]>(
    work: (context: Context, ...args: Args) => Promise<void>,
    options: ContextOptions = {},
  ): this {
    return this.action(async (...all) => {
      // Loaded here, because help needs no context and the module takes long to load.
      const { openContext } = await import("./context.ts");
      const context = await openContext(globalFlagsOf(this), this.deps, options);
      // Commander passes the arguments, the flags and the command.
      await work(context, ...([...all.slice(0, -2), ownFlagsOf(this)] as Args));
    });
  }
}
