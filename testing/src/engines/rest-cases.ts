import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { lookUp } from "@holdfast/common/look-up.ts";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { parseAllDocuments } from "yaml";
import { oneAtATime } from "../controller/claim.ts";
import { missingProgram, runHostProgram } from "../servers/host-program.ts";

/**
 * OpenSearch's own cases of its REST API: files of YAML, each with calls and what their answers have. They are fetched
 * from Maven Central once, with the descriptions of the API by which a call becomes a request.
 */
export interface RestCases {
  readonly files: readonly RestFile[];
  readonly apis: ReadonlyMap<string, Api>;
}

export interface RestFile {
  /** Path without its extension, such as `bulk/10_basic`. */
  readonly name: string;
  readonly setup: readonly Step[];
  readonly cases: readonly { readonly title: string; readonly steps: readonly Step[] }[];
  readonly teardown: readonly Step[];
}

/** One call or assertion: a map with one key. */
export type Step = Readonly<Record<string, unknown>>;

interface Api {
  readonly url: {
    readonly paths: readonly {
      readonly path: string;
      readonly methods: readonly string[];
      readonly parts?: Readonly<Record<string, unknown>>;
    }[];
  };
  readonly params?: Readonly<Record<string, unknown>>;
}

/** The newest cases of this line in Maven Central. */
const version = "2.19.0";
const artifact = `org.opensearch:rest-api-spec:${version}:jar`;
const unpack = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack";

/** The cases, or the reason why this host cannot have them. */
export async function restCases(): Promise<RestCases | string> {
  const missing = await missingProgram("mvn", "java");
  if (missing !== undefined) return missing;
  const cached = join(cacheDirectory(process.env), "judges", `opensearch-rest-api-spec-${version}`);
  const failed = await oneAtATime("opensearch-rest-api-spec", () => fetchOnce(cached)).catch(String);
  if (failed !== undefined) return failed;
  const specification = join(cached, "rest-api-spec");
  return {
    files: filesBelow(join(specification, "test"), ".yml").map((path) => fileOf(specification, path)),
    apis: new Map(filesBelow(join(specification, "api"), ".json").flatMap(apisIn)),
  };
}

async function fetchOnce(directory: string): Promise<undefined> {
  if (existsSync(directory)) return;
  await mkdir(dirname(directory), { recursive: true });
  const making = await mkdtemp(`${directory}.`);
  const output = join(making, "unpacked");
  const markers = join(making, "markers");
  await runHostProgram(
    "mvn",
    "-q",
    "-B",
    unpack,
    `-Dartifact=${artifact}`,
    `-DoutputDirectory=${output}`,
    `-DmarkersDirectory=${markers}`,
  );
  await rename(output, directory);
  await rm(making, { recursive: true });
}

function filesBelow(directory: string, extension: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(extension))
    .sort()
    .map((path) => join(directory, path));
}

function apisIn(path: string): [string, Api][] {
  const described = JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<string, Api>>;
  return Object.entries(described).filter(([, { url }]) => url !== undefined);
}

function fileOf(specification: string, path: string): RestFile {
  const documents = parseAllDocuments(readFileSync(path, "utf8"), { uniqueKeys: false });
  if ("empty" in documents) throw new Error(`${path} has no case`);
  const parts = documents.flatMap((document) =>
    Object.entries((document.toJS({ maxAliasCount: -1 }) ?? {}) as Readonly<Record<string, readonly Step[] | null>>),
  );
  const stepsOf = (title: string) => parts.filter(([name]) => name === title).flatMap(([, steps]) => steps ?? []);
  return {
    name: relative(join(specification, "test"), path).replace(/\.yml$/, ""),
    setup: stepsOf("setup"),
    cases: parts
      .filter(([name]) => name !== "setup" && name !== "teardown")
      .map(([title, steps]) => ({ title, steps: steps ?? [] })),
    teardown: stepsOf("teardown"),
  };
}

/** A request for a call with these arguments. Throws if no path of the API fits them. */
export function requestOf(
  api: Api,
  args: Readonly<Record<string, unknown>>,
): { readonly method: string; readonly path: string } {
  const fits = api.url.paths
    .map(({ path, methods, parts = {} }) => ({ path, methods, names: Object.keys(parts) }))
    .filter(({ names }) => names.every((name) => lookUp(args, name) !== undefined))
    .toSorted((a, b) => b.names.length - a.names.length)[0];
  if (fits === undefined) throw new Error("an argument is missing");
  const path = fits.names.reduce((text, name) => text.replace(`{${name}}`, encoded(lookUp(args, name))), fits.path);
  const query = Object.entries(args)
    .filter(([name]) => name !== "body" && name !== "ignore" && !fits.names.includes(name))
    .map(([name, value]) => `${name}=${encoded(value)}`)
    .join("&");
  const withBody = args["body"] !== undefined && fits.methods.includes("POST");
  const method = withBody ? "POST" : (fits.methods[0] ?? "GET");
  return { method, path: query === "" ? path : `${path}?${query}` };
}

const encoded = (value: unknown): string =>
  (Array.isArray(value) ? value : [value]).map((each) => encodeURIComponent(String(each))).join(",");
