import { Command, type Option, type ParseOptionsResult } from "commander";
import type { CliDeps, Context, ContextOptions, GlobalFlags } from "./context.ts";

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

  /**
   * A flag that a verb has of its own is the verb's after it, also where every command has one of that name: commander alone would
   * give a parent all that it knows, wherever it stands.
   */
  override parseOptions(args: string[]): ParseOptionsResult {
    const { verb, at } = verbIn(this, args);
    const own =
      verb === this ? [] : this.options.filter(({ long }) => verb.options.some((other) => other.long === long));
    if (own.length === 0) return super.parseOptions(args);
    const head = super.parseOptions(args.slice(0, at));
    const all = this.options;
    try {
      (this as { options: readonly Option[] }).options = all.filter((option) => !own.includes(option));
      const rest = super.parseOptions(args.slice(at));
      return { operands: [...head.operands, ...rest.operands], unknown: [...head.unknown, ...rest.unknown] };
    } finally {
      (this as { options: readonly Option[] }).options = all;
    }
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
      const context = await openContext(rootOf(this).opts<GlobalFlags>(), this.deps, options);
      await work(context, ...(all.slice(0, -1) as Args));
    });
  }
}

/** The command that these arguments lead to, as far as it is known, and where what follows its name begins. */
function verbIn(parent: Command, args: readonly string[]): { readonly verb: Command; readonly at: number } {
  let verb = parent;
  let end = 0;
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (word === "--") break;
    // The value of a flag may read as a command.
    if (parent.options.some(({ long, required }) => required && long === word)) at += 1;
    const next = verb.commands.find((command) => command.name() === word);
    if (next === undefined) continue;
    verb = next;
    end = at + 1;
  }
  return { verb, at: end };
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}
