import { Command } from "commander";
import type { CliDeps, Context, ContextOptions } from "./context.ts";
import { globalFlagsOf, ownFlagsOf } from "./global-flags.ts";
import { UsageError } from "./exit-code.ts";

/** Names that verbs have in other tools. */
export const verbAliases: ReadonlyMap<string, readonly string[]> = new Map([
  ["list", ["ls"]],
  ["delete", ["rm"]],
  ["remove", ["rm"]],
  ["get", ["show", "info"]],
  ["show", ["info"]],
]);

/** A command with examples in its help and an action that gets the context of its run. */
export class CliCommand extends Command {
  readonly deps: CliDeps;
  /** Example command lines. */
  readonly examples: string[] = [];
  /** Checks of flags that depend on others; each throws UsageError. */
  private readonly flagRules: (() => void)[] = [];

  constructor(deps: CliDeps, name?: string) {
    super(name);
    this.deps = deps;
    this.addHelpText("after", () =>
      this.examples.length === 0 ? "" : `\nExamples:\n${this.examples.map((line) => `  ${line}\n`).join("")}`,
    );
  }

  override createCommand(name?: string): CliCommand {
    const command = new CliCommand(this.deps, name);
    // Nouns have no aliases: `get` is a verb of each.
    return this.parent === null ? command : command.aliases(verbAliases.get(name ?? "") ?? []);
  }

  /** Adds an example command line, without the word holdfast. */
  example(line: string): this {
    this.examples.push(`holdfast ${line}`);
    return this;
  }

  /** Refuses a flag without one of the others, because it would have no effect. */
  needs(flag: string, ...others: string[]): this {
    this.flagRules.push(() => {
      if (this.isGiven(flag) && !others.some((each) => this.isGiven(each)))
        throw new UsageError(`${flag} has no effect without ${others.join(" or ")}`);
    });
    return this;
  }

  /** Refuses a flag together with one of the others, because they would replace its effect. */
  excludes(flag: string, ...others: string[]): this {
    this.flagRules.push(() => {
      const conflicting = this.isGiven(flag) ? others.find((each) => this.isGiven(each)) : undefined;
      if (conflicting !== undefined) throw new UsageError(`${flag} cannot be used with ${conflicting}`);
    });
    return this;
  }

  /** Throws UsageError if a flag has no effect beside the others. */
  checkFlags(): void {
    for (const check of this.flagRules) check();
  }

  /** True if the command line has the flag, in the form `--flag` or `--no-flag`. */
  private isGiven(long: string): boolean {
    const option = this.options.find((each) => each.long === long);
    if (option === undefined) throw new Error(`${this.name()} has no flag ${long}`);
    const name = option.attributeName();
    if (this.getOptionValueSource(name) !== "cli") return false;
    return (this.getOptionValue(name) === false) === option.negate;
  }

  /** Sets the action, which gets the context, the arguments and the flags. */
  does<Args extends unknown[]>(
    work: (context: Context, ...args: Args) => Promise<void>,
    options: ContextOptions = {},
  ): this {
    return this.action(async (...all) => {
      this.checkFlags();
      // Loaded here, because help needs no context and the module takes long to load.
      const { openContext } = await import("./context.ts");
      const context = await openContext(globalFlagsOf(this), this.deps, options);
      // Commander passes the arguments, the flags and the command.
      await work(context, ...([...all.slice(0, -2), ownFlagsOf(this)] as Args));
    });
  }
}
