import type { ComponentSpec } from "./keeper-protocol.ts";

/**
 * Variable that carries the component's environment past the programs that set up its sandbox, which must not be
 * influenced by that environment.
 */
const carrier = "HOLDFAST_COMPONENT";
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Command line of the component, run as its user: a shell sets environment and working directory, then execs the
 * program. Until the user is switched, every program runs with `outerEnvironment`.
 */
export function innerCommand(argv: readonly string[]): string[] {
  return ["/bin/sh", "-c", `eval "$${carrier}" && exec "$@"`, "sh", ...argv];
}

/** Environment of the programs that run before the user is switched; the agent controls nothing in it. */
export function outerEnvironment({ env, cwd }: Pick<ComponentSpec, "env" | "cwd">): Record<string, string> {
  const variables = Object.entries({ PATH: defaultPath, ...env });
  const exports = variables.map(([name, value]) => `export ${name}=${quoted(value)}`);
  const script = [`unset ${carrier}`, `cd ${quoted(cwd)} || exit 126`, "unset PWD OLDPWD", ...exports].join("\n");
  return { PATH: defaultPath, [carrier]: script };
}

/** Quotes a string for the shell, which then expands no part of it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}
