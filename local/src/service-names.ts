import { execFile } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { existsSync, mkdirSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readText, replaceFileSync } from "./files.ts";
import { readResolverFacts, type ResolverMethod, resolverMethods, type ServedNames } from "./resolver-methods.ts";
import { UserError } from "./user-error.ts";

/** The host whose programs are to resolve the names. */
export interface NamesHost {
  /** Root directory of the host's files: `/`, or a directory of a test. */
  readonly root: string;
  /** Output of a command; undefined if it is absent or fails. */
  run(command: string, args: readonly string[]): Promise<string | undefined>;
  /** True if the server is authoritative for the domain. */
  serves(server: { readonly host: string; readonly port: number }, domain: string): Promise<boolean>;
  print(line: string): void;
}

export function thisHost(print: (line: string) => void): NamesHost {
  return {
    root: "/",
    run: (command, args) =>
      new Promise((resolve) => {
        execFile(command, [...args], { timeout: 30_000, encoding: "utf8" }, (error, stdout) =>
          resolve(error === null ? stdout : undefined),
        );
      }),
    async serves({ host, port }, domain) {
      const resolver = new Resolver({ timeout: 2_000, tries: 2 });
      resolver.setServers([`${host.includes(":") ? `[${host}]` : host}:${port}`]);
      return resolver.resolveSoa(domain).then(
        () => true,
        () => false,
      );
    },
    print,
  };
}

/**
 * Has the host's resolver query the DNS server of an installation for its domain, by the first method that works. The
 * owner is the data directory. Repeating it is harmless; throws a UserError if no method works.
 */
export async function installNames(host: NamesHost, owner: string, names: ServedNames): Promise<void> {
  const { domain } = names;
  if (!(await host.serves(names.server, domain)))
    throw new UserError(`the DNS server of ${owner} does not respond; start the installation first: npm start`);
  await uninstallNames(host, owner);
  const facts = await readResolverFacts(host.root, host.run);
  for (const method of resolverMethods) {
    if (!method.isPossible(facts, names) || isTaken(host, method, owner)) continue;
    await apply(host, method, owner, (text) => withBlock(text, owner, method.lines(names), method.position));
    if (await resolves(host, domain)) {
      host.print(`names below ${domain} resolve on this host, by ${method.title} (/${method.file})`);
      if (method.notice !== undefined) host.print(method.notice);
      return;
    }
    await apply(host, method, owner, (text) => withoutBlock(text, owner));
  }
  throw new UserError(
    `no method has names below ${domain} resolve on this host, which is as before; point your resolver at ` +
      `${names.server.host}:${names.server.port} for that domain`,
  );
}

/** Removes all that installNames wrote for the owner; returns the titles of the methods. */
export async function uninstallNames(host: NamesHost, owner: string): Promise<string[]> {
  const installed = methodsOf(host, owner);
  for (const method of installed) await apply(host, method, owner, (text) => withoutBlock(text, owner));
  return installed.map(({ title }) => title);
}

/** Methods that are installed for the owner. */
export function methodsOf({ root }: Pick<NamesHost, "root">, owner: string): ResolverMethod[] {
  return resolverMethods.filter(({ file }) => ownersOf(readText(join(root, file)) ?? "").includes(owner));
}

/** True if programs of this host resolve the domain: the name of its name server, which always exists. */
export async function resolves({ run }: Pick<NamesHost, "run">, domain: string): Promise<boolean> {
  return (await run("getent", ["ahosts", `ns1.${domain}`])) !== undefined;
}

/** True if another installation has a method that serves one installation only. */
function isTaken({ root }: NamesHost, { file, servesSeveral }: ResolverMethod, owner: string): boolean {
  if (servesSeveral === true) return false;
  return ownersOf(readText(join(root, file)) ?? "").some((other) => other !== owner && existsSync(other));
}

async function apply(
  { root, run }: NamesHost,
  { file, isShared, reload }: ResolverMethod,
  owner: string,
  edit: (text: string) => string,
): Promise<void> {
  const path = join(root, file);
  const before = readText(path) ?? "";
  // Lines of installations whose directories were removed by hand.
  const abandoned = ownersOf(before).filter((other) => other !== owner && !existsSync(other));
  const after = edit(abandoned.reduce(withoutBlock, before));
  if (after === before) return;
  if (after.trim() === "" && !isShared) rmSync(path, { force: true });
  else replace(path, after);
  if (reload !== undefined) await run(reload[0], reload.slice(1));
}

/** Replaces a file, also one that is a symbolic link or a mount, such as resolv.conf of a container. */
function replace(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const file = existsSync(path) ? realpathSync(path) : path;
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : 0o644;
  try {
    replaceFileSync(file, text, mode);
  } catch (error) {
    if (!hasCode(error, "EBUSY")) throw error;
    writeFileSync(file, text);
  }
}

/**
 * Lines of one owner in a file that others write too, such as /etc/hosts: between `# holdfast begin OWNER` and
 * `# holdfast end OWNER`. The owner is the data directory of an installation.
 */
function withBlock(text: string, owner: string, lines: readonly string[], position: "first" | "last"): string {
  const others = withoutBlock(text, owner);
  const block = `${[beginOf(owner), ...lines, endOf(owner)].join("\n")}\n`;
  if (position === "first") return `${block}${others}`;
  return `${others}${others === "" || others.endsWith("\n") ? "" : "\n"}${block}`;
}

/** The text without the owner's lines; if the end mark is absent, only the begin mark is removed. */
function withoutBlock(text: string, owner: string): string {
  const lines = text.split("\n");
  const begin = lines.indexOf(beginOf(owner));
  if (begin < 0) return text;
  const end = lines.indexOf(endOf(owner), begin);
  lines.splice(begin, end < 0 ? 1 : end - begin + 1);
  return withoutBlock(lines.join("\n"), owner);
}

/** Owners that have lines in the text. */
function ownersOf(text: string): string[] {
  return text.split("\n").flatMap((line) => (line.startsWith(beginOf("")) ? [line.slice(beginOf("").length)] : []));
}

const beginOf = (owner: string) => `# holdfast begin ${owner}`;
const endOf = (owner: string) => `# holdfast end ${owner}`;
