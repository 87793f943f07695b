import { Command } from "commander";
import type { CliDeps, Context, ContextOptions } from "./context.ts";
import { givenFlags } from "./flags-of-all.ts";

/** A command of `holdfast`: with examples below its help, and with work that gets the context of its run. */
export class CliCommand extends Command {
  readonly deps: CliDeps;
  /** Lines as they are typed. */
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

  /** A line to learn from, without the word holdfast. */
  example(line: string): this {
    this.examples.push(`holdfast ${line}`);
    return this;
  }

  /** What the command does with its arguments and, after them, its flags. */
  does<Args extends unknown[]>(
    work: (context: Context, ...args: Args) => Promise<void>,
    options: ContextOptions = {},
  ): this {
    return this.action(async (...all) => {
      // Help needs no context, and loading that module takes as long as starting Node.
      const { openContext } = await import("./context.ts");
      const context = await openContext(givenFlags(this), this.deps, options);
      await work(context, ...(all.slice(0, -1) as Args));
    });
  }
}
