// The checks of `npm run check`. Each throws with its findings, or returns the number of files that it read: a tool
// that reads no files finds no fault.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { checkCommentNames } from "./comment-names.js";
import { contractFiles, withImage } from "./contract-image.js";
import { checkImportOrder } from "./import-order.js";
import { checkGlossary, checkLinks } from "./links.js";
import { forbiddenIn, phraseFaultOf, spelling } from "./lint/words.js";
import { checkQuarantine } from "./quarantine.js";
import { checkout } from "./set-up.js";
import { sourceFiles } from "./source-files.js";
import { checkTemplates } from "./templates.js";

/** Name and check; `tools.run` runs an installed command and returns its output, or throws with it. */
export const checks = [
  ["buf lint", lintProtos],
  ["buf breaking", guardContract],
  ["generated code", compareGenerated],
  ["printed pages", comparePages],
  ["links of pages", checkLinks],
  ["paths of the glossary", checkGlossary],
  ["tsc", checkTypes],
  ["own keys", checkOwnKeys],
  ["import order", checkImportOrder],
  ["oxlint", lintCode],
  ["oxlint rules are alive", lintPlanted],
  ["biome format", checkFormat],
  ["spelling", checkSpelling],
  ["phrases", checkPhrases],
  ["names in comments", checkCommentNames],
  ["knip", findDeadCode],
  ["quarantine", checkQuarantine],
  ["released templates", checkTemplates],
];

async function lintProtos(tools) {
  await tools.run("buf", ["lint"]);
  return lines(await tools.run("buf", ["ls-files"])).length;
}

async function guardContract(tools) {
  return withImage(tools, async (image, findBreaks) => {
    await findBreaks().catch((error) => {
      throw new Error(`${error.message}\nThis breaks the contract; docs/reference/api-stability.md says what to do.`);
    });
    return contractFiles(image).size;
  });
}

async function compareGenerated(tools) {
  const regenerated = mkdtempSync(join(checkout, "node_modules", ".generated-"));
  try {
    await tools.run("buf", ["generate", "--output", regenerated]);
    const expected = filesBelow(join(regenerated, "proto", "gen"));
    const present = filesBelow(join(checkout, "proto", "gen"));
    const names = new Set([...expected.keys(), ...present.keys()]);
    const different = [...names].filter((name) => expected.get(name) !== present.get(name));
    if (different.length > 0) throw new Error(`run "npm run generate"; not current: ${different.join(", ")}`);
    return expected.size;
  } finally {
    rmSync(regenerated, { recursive: true, force: true });
  }
}

async function comparePages(tools) {
  return printedCount(await tools.run("node", ["bin/docs/print.ts", "--check"]));
}

async function checkTypes(tools) {
  await tools.run("tsc", ["-p", "."]);
  // For browsers: other libraries, and JSX.
  await tools.run("tsc", ["-p", "console"]);
  const output = await tools.run("tsc", ["-p", ".", "--listFilesOnly"]);
  return lines(output).filter((file) => file.startsWith(checkout) && !file.includes("node_modules")).length;
}

/** Runs in a separate process, since the compiler is installed by the set-up only. */
async function checkOwnKeys(tools) {
  return printedCount(await tools.run("node", ["bin/own-keys.js"]));
}

async function lintCode(tools) {
  return count(await tools.run("oxlint", ["--type-aware", "."]), /on (\d+) files/);
}

/**
 * Plants faults that the lint has to find: rules of types, cycles and folders depend on how files are read, and can
 * break.
 */
async function lintPlanted(tools) {
  // In another directory, so that no other check or editor reads it.
  const directory = mkdtempSync(join(tmpdir(), "holdfast-planted-"));
  const planted = {
    "tsconfig.json": readFileSync(join(checkout, "tsconfig.base.json"), "utf8").replace('["node"]', "[]"),
    "a.ts": 'import { b } from "./b.ts";\nexport const a = async (): Promise<number> => b;\na();\n',
    "b.ts": 'import { a } from "./a.ts";\nexport const b = 1;\nexport const c = a;\n',
    "c.ts": 'export function f(x: "p" | "q"): void {\n  switch (x) {\n    case "p":\n      break;\n  }\n}\n',
    "f.ts":
      "const f = async (): Promise<void> => undefined;\nexport const g = (): void => {\n  void f();\n  f();\n};\n",
    "controller/src/fleet/d.ts": 'import { Pool } from "pg";\nexport const pool = new Pool();\n',
    "agent/src/e.ts": 'import { Client } from "pg";\nexport const client = new Client();\n',
  };
  try {
    for (const [name, text] of Object.entries(planted)) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), text);
    }
    const config = join(checkout, ".oxlintrc.json");
    const output = await tools.run("oxlint", ["--type-aware", "-c", config, directory]).catch((error) => error.message);
    const imports = ["history/ alone the history's", "platform-client.ts and the issuer's"];
    const expected = ["no-cycle", "switch-exhaustiveness-check", "no-floating-promises", "no-void-call", ...imports];
    const silent = expected.filter((rule) => !output.includes(rule));
    if (silent.length > 0)
      throw new Error(`oxlint did not find the planted faults of ${silent.join(", ")}:\n${output}`);
    return expected.length;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function checkFormat(tools) {
  return count(await tools.run("biome", ["format", "."]), /Checked (\d+) files/);
}

/** Requires the spelling of the API in all texts, and refuses forbidden words in file names. */
async function checkSpelling() {
  const files = sourceFiles();
  const badNames = files.filter((file) => forbiddenIn(basename(file)) !== undefined);
  if (badNames.length > 0) throw new Error(`forbidden words in names of files: ${badNames.join(", ")}`);
  // Concatenated, so that this file does not match itself.
  const misspelling = new RegExp(["catalog" + "ue", "enrol" + "ment", spelling.source].join("|"), "i");
  const texts = files.filter((file) => /\.(tsx?|js|css|html|md|proto|sql|sh|py|json)$/.test(file));
  // The digest of the guest files is an image's name, and the contract is not edited. The list contains all forbidden
  // words.
  const exempt = ["image/guest/", "proto/contract/", "bin/lint/forbidden-words.json"];
  const checked = texts.filter((file) => !exempt.some((path) => file.startsWith(path)));
  const wrong = checked.filter((file) => misspelling.test(readFileSync(join(checkout, file), "utf8")));
  if (wrong.length > 0) throw new Error(`another spelling is in ${wrong.join(", ")}: bin/lint/forbidden-words.json`);
  return checked.length;
}

/**
 * Files and folders without the check of phrases. The change log quotes older releases, other projects wrote
 * `proto/vendor`, and a changed comment of a build script or guest file would rename the images of all hosts.
 */
const withoutPhraseCheck = [
  "CHANGELOG.md",
  "proto/vendor/",
  "image/guest/",
  "image/make-image.sh",
  "image/add-artifacts.sh",
];

/** Vague phrases in files that oxlint does not read. */
async function checkPhrases() {
  const files = sourceFiles().filter(
    (file) => /\.(md|proto|sql|sh|py)$/.test(file) && !withoutPhraseCheck.some((path) => file.startsWith(path)),
  );
  const wrong = files.flatMap((file) =>
    readFileSync(join(checkout, file), "utf8")
      .split("\n")
      .flatMap((line, index) => {
        const fault = phraseFaultOf(line);
        return fault === undefined ? [] : [`${file}:${index + 1}: ${fault}`];
      }),
  );
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
  return files.length;
}

async function findDeadCode(tools) {
  const reporters = ["--reporter", "symbols", "--reporter", join(checkout, "bin", "knip-count.js")];
  return count(await tools.run("knip", ["--no-progress", ...reporters]), /read (\d+) files/);
}

function lines(text) {
  return text.split("\n").filter((line) => line !== "");
}

/** The number of files, which a program of ours prints as a line; warnings of Node.js may stand around it. */
function printedCount(output) {
  const [line] = /^\d+/m.exec(output) ?? [];
  if (line === undefined) throw new Error(`The check printed no number of files: ${output.trim()}`);
  return Number(line);
}

function count(output, pattern) {
  return Number(pattern.exec(output)?.[1] ?? 0);
}

function filesBelow(directory) {
  const names = readdirSync(directory, { recursive: true }).filter((name) => name.endsWith(".ts"));
  return new Map(names.map((name) => [name, readFileSync(join(directory, name), "utf8")]));
}
