import type { ZipEntry } from "./zip-file.ts";

/** A plugin, according to its descriptor. */
export interface PluginDescriptor {
  readonly name: string;
  readonly version: string;
  /** Name of its directory below the engine's directory of plugins. */
  readonly folder: string;
  /** Modules and plugins whose classes it uses. */
  readonly extends: readonly string[];
}

/** The engine that a plugin is for: its version, and the names of the modules and plugins that it already has. */
export interface PluginHost {
  readonly version: string;
  readonly has: ReadonlySet<string>;
}

/** The error of a plugin that the engine would refuse, or that an image does not take; the message has the reason. */
export class PluginFault extends Error {
  override readonly name = "PluginFault";
}

/** The file of a zip that makes it a plugin. */
const descriptorName = "plugin-descriptor.properties";
/** Maximum size of a descriptor, in bytes. */
export const descriptorMaxBytes = 65_536;
/** Maximum number of files in a plugin. */
export const entriesMax = 10_000;
/** Maximum of all their bytes. */
const unpackedMaxBytes = 2 * 1024 ** 3;
const nameMaxBytes = 255;

/** The descriptor among the entries of a plugin's zip. Throws PluginFault for a zip that images do not unpack. */
export function checkEntries(entries: readonly ZipEntry[]): ZipEntry {
  if (entries.length > entriesMax) throw new PluginFault(`it has more than ${entriesMax} files`);
  const names = new Set<string>();
  for (const { name, method, isEncrypted, isSpecial } of entries) {
    const label = JSON.stringify(name.slice(0, nameMaxBytes));
    if (!isContained(name)) throw new PluginFault(`the path ${label} in it does not stay in the plugin's directory`);
    if (isSpecial) throw new PluginFault(`${label} in it is neither a file nor a directory`);
    if (isEncrypted) throw new PluginFault(`${label} in it is encrypted`);
    if (method !== 0 && method !== 8) throw new PluginFault(`${label} in it is packed by a method other than deflate`);
    if (names.has(name)) throw new PluginFault(`${label} is in it twice`);
    names.add(name);
  }
  const bytes = entries.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (bytes > unpackedMaxBytes)
    throw new PluginFault(`it has ${bytes} bytes when it is unpacked; the limit is ${unpackedMaxBytes}`);
  const descriptor = entries.find(({ name }) => name === descriptorName);
  if (descriptor === undefined)
    throw new PluginFault(
      `it has no ${descriptorName}: use the zip that opensearch-plugin installs, not one that contains it`,
    );
  return descriptor;
}

function isContained(name: string): boolean {
  if (name === "" || Buffer.byteLength(name) > nameMaxBytes || /[\\\p{Cc}]/u.test(name)) return false;
  const parts = (name.endsWith("/") ? name.slice(0, -1) : name).split("/");
  return parts.every((part) => part !== "" && part !== "." && part !== "..");
}

const required = ["name", "description", "version", "java.version", "classname"] as const;
const versions = ["opensearch.version", "dependencies"] as const;
const optional = ["custom.foldername", "extended.plugins", "has.native.controller"] as const;

/**
 * Parses a descriptor for this version of the engine. Throws PluginFault for one that the engine would refuse, since
 * the engine then does not start.
 */
export function parseDescriptor(text: string, version: string): PluginDescriptor {
  const values = parseProperties(text);
  const valueOf = (key: string) => values.get(key)?.trim() ?? "";
  const missing = required.find((key) => !values.has(key));
  if (missing !== undefined) throw new PluginFault(`its descriptor has no ${missing}`);
  const unknown = [...values.keys()].find((key) => ![...required, ...versions, ...optional].some((one) => one === key));
  if (unknown !== undefined)
    throw new PluginFault(`its descriptor has ${unknown}, which OpenSearch ${version} does not know`);
  const name = valueOf("name");
  const folder = valueOf("custom.foldername") || name;
  for (const each of [name, folder])
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(each))
      throw new PluginFault(`its name ${JSON.stringify(each.slice(0, 64))} is no name of a directory`);
  requireVersion(valueOf("opensearch.version"), valueOf("dependencies"), version);
  if (valueOf("has.native.controller") === "true")
    throw new PluginFault("it has a native controller, which images do not run");
  return { name, version: valueOf("version"), folder, extends: extensionsIn(valueOf("extended.plugins")) };
}

function requireVersion(exact: string, dependencies: string, version: string): void {
  if ((exact === "") === (dependencies === ""))
    throw new PluginFault("its descriptor needs either opensearch.version or dependencies");
  const remedy = `use its zip for OpenSearch ${version}`;
  if (exact !== "") {
    if (exact !== version) throw new PluginFault(`it is for OpenSearch ${exact}: ${remedy}`);
    return;
  }
  const range = /^\{\s*"?opensearch"?\s*:\s*"([^"]*)"\s*\}$/.exec(dependencies)?.[1]?.trim();
  if (range === undefined) throw new PluginFault('its dependencies are not {opensearch: "RANGE"}');
  if (!isInRange(version, range)) throw new PluginFault(`it is for OpenSearch ${range}: ${remedy}`);
}

/** True for a version in a range as the engine writes it: `2.19.4`, `=2.19.4`, `~2.19.0` (minor), `^2.0.0` (major). */
function isInRange(version: string, range: string): boolean {
  const [, operator = "", from = ""] = /^([=~^]?)(\d+\.\d+\.\d+)$/.exec(range) ?? [];
  if (from === "") return false;
  if (operator === "" || operator === "=") return version === from;
  const [have, least] = [version, from].map((each) => each.split(".").map(Number)) as [number[], number[]];
  const fixed = operator === "~" || least[0] === 0 ? 2 : 1;
  if (have.slice(0, fixed).join() !== least.slice(0, fixed).join()) return false;
  const at = have.findIndex((part, index) => part !== least[index]);
  return at === -1 || (have[at] ?? 0) > (least[at] ?? 0);
}

/** Names of the plugins that it needs; those that the descriptor calls optional are left out. */
function extensionsIn(text: string): string[] {
  return text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "" && !/;\s*optional=true$/.test(each))
    .map((each) => each.split(";")[0]?.trim() ?? "");
}

/** The format of Java's property files, with the escapes that descriptors have. */
function parseProperties(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.replaceAll(/\\\r?\n[ \t]*/g, "").split(/\r?\n/)) {
    const [, key = "", value = ""] = /^\s*([^\s=:#!][^\s=:]*)\s*[=:]?\s*(.*)$/.exec(line) ?? [];
    if (key !== "") values.set(key, value.replaceAll(/\\(.)/g, "$1"));
  }
  return values;
}

/**
 * Checks plugins with each other and with the engine, by the names of their files. Throws PluginFault for a name that
 * is taken, and for one without the plugins that it extends.
 */
export function checkTogether(
  plugins: readonly { readonly file: string; readonly descriptor: PluginDescriptor }[],
  { has }: PluginHost,
): void {
  const files = new Map<string, string>();
  for (const { file, descriptor } of plugins)
    for (const name of new Set([descriptor.name, descriptor.folder])) {
      if (has.has(name)) throw new PluginFault(`${file}: the image already has ${name}: remove the file`);
      const other = files.get(name);
      if (other !== undefined) throw new PluginFault(`${file}: ${other} has ${name}, too: remove one of the files`);
      files.set(name, file);
    }
  const names = new Set([...has, ...plugins.map(({ descriptor }) => descriptor.name)]);
  for (const { file, descriptor } of plugins) {
    const missing = descriptor.extends.find((each) => !names.has(each));
    if (missing !== undefined)
      throw new PluginFault(`${file}: it needs the plugin ${missing}: add its zip to the same directory`);
  }
}
