import { readFileSync } from "node:fs";
import { join } from "node:path";
import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { expect, test } from "vitest";
import { sourceFiles } from "../../bin/source-files.js";

const checkout = join(import.meta.dirname, "../..");

/** Files with an entry for each engine: a new engine edits these, besides its own files. */
const registries = [
  "agent/src/engines/drivers.ts",
  "common/src/engine-catalog/engine-catalog.ts",
  "controller/src/insight/query-console/engines.ts",
  "controller/src/insight/query-stats/redactions.ts",
  "controller/src/services/engine/engines.ts",
  "image/src/catalog.ts",
  "cli/src/clients/engines.ts",
  "console/src/services/engines/engines.ts",
];

/** Other files that name an engine, each with the reason why a new engine does not change it. */
// biome-ignore format: a table, aligned so that it reads as one
const exceptions: Readonly<Record<string, string>> = {
  "common/src/errors/apps-errors.ts":                            "the key of an error of apps",
  "common/src/metrics/queue-metrics.ts":                          "queues are in databases of PostgreSQL alone",
  "controller/src/app/app/app-message.ts":                       "the kind of an attachment, which is named after its engine",
  "controller/src/app/app/attachments.ts":                       "apps attach only databases of PostgreSQL, and files services",
  "controller/src/app/auth/auth-api.ts":                         "the issuer stores users of apps only in PostgreSQL",
  "controller/src/services/contents/user/attached-login.ts":      "sessions of an app begin as the default user only in PostgreSQL",
  "issuer/src/store/database.ts":                                "the issuer stores users of apps only in PostgreSQL: settings of its sessions",
  "controller/src/services/resource-kind/database-spec.ts":       "an example in a description",
  "controller/src/bundles/pipeline/pipeline-api.ts":             "the name of a role of pipelines",
  "egress/src/create-egress.ts":                                  "default ports of schemes of URLs",
  "controller/src/services/service/service-event-definitions.ts": "examples of events",
  "image/src/platform-program.ts":                               "Debian installs each version of PostgreSQL in a separate directory",
  "image/src/recipes/sid.ts":                                    "an image with several engines",
  "image/src/recipes/trixie.ts":                                 "the same",
  "gateway/src/openapi/openapi.ts":                              "an example",
  "gateway/src/openapi/response-examples.ts":                    "examples",
  "local/src/history.ts":                                        "the platform's own history is a PostgreSQL",
  "local/src/platform.ts":                                       "the same",
  "local/src/software.ts":                                       "the same",
  "local/src/up.ts":                                             "an example of a command",
  "console/src/apps/hosted-view.ts":                              "the issuer stores users of apps only in PostgreSQL",
  "console/src/projects/plan-view.ts":                            "an example of a descriptor",
  "cli/src/nouns/projects.ts":                               "an example of a descriptor",
  "cli/src/nouns.ts":                                         "the noun of a language",
  "cli/src/nouns/services.ts":                               "examples of commands",
  "cli/src/program.ts":                                      "an example of a command",
};

/** Tests and benches, and code that is printed from protos and tables. */
const unchecked = [
  /^(testing|test|bench|docs|bin\/docs|proto)\//,
  /\.(test|conformance)\.(ts|js)$|-conformance\.ts$/,
  /^bin\/(suites|faults)\.js$/,
  /^gateway\/src\/openapi\/proto-comments\.ts$|^sdk\/src\/(responses|requests|methods|event-data)\.ts$/,
];

/** Without files, whose name is an ordinary word. */
const namedEngines = engineCatalog.filter(({ family }) => family === undefined);

/** True if the file's code names an engine and is not the engine's own. */
function namesEngine(path: string, text: string): boolean {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "");
  return namedEngines.some(({ engine, title }) => {
    // The title of an engine is prose.
    const withoutTitle = code.replaceAll(new RegExp(String.raw`(?<!\w)${title}(?!\w)`, "g"), "");
    return !isOwn(path, engine) && wordOf(engine).test(withoutTitle);
  });
}

/** The name at the beginning of a word, also within a name in camel case. */
function wordOf(engine: string): RegExp {
  const capitalized = engine.charAt(0).toUpperCase() + engine.slice(1);
  return new RegExp(`(?<![a-zA-Z])${engine}|${capitalized}|(?<![A-Z])${engine.toUpperCase()}`);
}

/** Names of engines with a front end on the first: the values of `database_type`, and the front ends' packages. */
const family = ["postgresql", "tsql", "tds", "mongodb", "opmsg"];

/**
 * True for a file or folder of the engine, such as `valkey/render.ts` and `common/src/engine-catalog/valkey.ts`, or of
 * its family.
 */
function isOwn(path: string, engine: string): boolean {
  const names = family.includes(engine) ? family : [engine];
  return path
    .split("/")
    .some((part) => names.some((name) => part === name || part.startsWith(`${name}-`) || part.startsWith(`${name}.`)));
}

const read = (path: string) => readFileSync(join(checkout, path), "utf8");

test("no file names an engine, except its own files and those that are listed", () => {
  const files = sourceFiles().filter(
    (path) => /\.(tsx?|js)$/.test(path) && !unchecked.some((pattern) => pattern.test(path)),
  );
  expect(files.length).toBeGreaterThan(1_000);
  const naming = files.filter((path) => namesEngine(path, read(path)));
  // An entry whose file names no engine any more is refused too.
  expect(naming.toSorted()).toEqual([...registries, ...Object.keys(exceptions)].toSorted());
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["a comparison",                     "controller/src/a.ts",          'if (databaseType === "valkey") return;',                  true],
  ["an import of an engine's module",  "agent/src/workload/engine/a.ts", 'import { render } from "../../engines/postgresql/render.ts";', true],
  ["part of a name",                   "common/src/a.ts",              "export const defaultPostgresqlPort = 5432;",              true],
  ["part of another word",             "common/src/a.ts",              "export const accountSql = targetsql();",                  false],
  ["another engine's file",            "agent/src/engines/valkey/a.ts", 'const other = "postgresql";',                            true],
  ["code after a comment",             "common/src/a.ts",              'call(); /* x */ call("valkey");',                         true],
  ["comments",                         "common/src/a.ts",              "// valkey and\n/** postgresql */\ncall();",                false],
  ["titles",                           "common/src/a.ts",              'const text = "PostgreSQL and Valkey";',                   false],
  ["its own folder",                   "agent/src/engines/valkey/a.ts", 'const own = "valkey";',                                  false],
  ["its own file",                     "common/src/valkey-sizing.ts",  'const own = "valkey";',                                   false],
  ["a file of its front end",          "tds/src/run/a.ts",             'const own = "postgresql" + "tsql";',                      false],
  ["another engine's name there",      "tds/src/run/a.ts",             'const other = "valkey";',                                 true],
])("%s is found, or allowed", (_, path, text, expected) => {
  expect(namesEngine(path, text)).toBe(expected);
});
