import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import forbidden from "./lint/forbidden-words.json" with { type: "json" };
import { checkout } from "./set-up.js";

const handlers =
  'import type { Call } from "@holdfast/common/call.ts";\ninterface Unit { commit(s: unknown): number; audit(c: unknown): number }';

const sleep = 'import { setTimeout as sleep } from "node:timers/promises";\n\n';

/** Sources, and our rules that find something in each. */
const cases = [
  [
    "a commit of a call",
    `${handlers}\nexport const e = (unit: Unit, call: Call) => unit.commit(call.signal);`,
    "audited",
  ],
  [
    "an audit entry of a call",
    `${handlers}\nexport const e = (unit: Unit, call: Call) => unit.audit(call);`,
    "audited",
  ],
  [
    "a retry of a call",
    `${handlers}\ndeclare const retryConflict: (c: Call) => number;\nexport const e = (call: Call) => retryConflict(call);`,
    "audited",
  ],
  ["a commit without a call", "export const e = (unit: { commit(): number }) => unit.commit();"],

  ["an element of styles", "export const e = () => <style>{'a { color: red }'}</style>;", "no-inline-style"],
  [
    "markup of a component",
    "export const e = (a: string) => <p dangerouslySetInnerHTML={{ __html: a }} />;",
    "no-inline-style",
  ],
  [
    "markup of an element",
    "export const e = (a: { innerHTML: string }) => {\n  a.innerHTML = '<p>';\n};",
    "no-inline-style",
  ],
  [
    "an attribute of style",
    'export const e = (a: Element) => a.setAttribute("style", "color: red");',
    "no-inline-style",
  ],
  ["a created element of styles", 'export const e = () => document.createElement("style");', "no-inline-style"],
  ["a property of style", "export const e = (width: number) => <p style={{ width }} />;"],
  ["another attribute", 'export const e = (a: Element) => a.setAttribute("title", "style");'],

  ["a statement that waits for a time", `export const a = "SELECT pg_${"sleep"}(60)";`, "no-sql-sleep"],
  [
    "a template with such a statement",
    `export const a = (b: string) => \`SELECT ${"SLEEP"}(1) FROM \${b}\`;`,
    "no-sql-sleep",
  ],
  ["a statement that waits for a lock", 'export const a = "SELECT pg_advisory_lock(1)";'],

  ["a test that waits for a time", `${sleep}await sleep(50);`, "no-clock-wait"],
  [
    "a test that waits for a timer",
    `${sleep}await sleep(0);\nawait new Promise((go) => setTimeout(go, 50));`,
    "no-clock-wait",
  ],
  [
    "a chained wait in a test",
    `${sleep}export const e = async (a: string) => {\n  if (a === "") await sleep(600, undefined, { ref: false });\n};`,
    "no-clock-wait",
  ],
  ["a test that gives the reason of a wait", `${sleep}// Time alone ends the lease.\nawait sleep(50);`],
  [
    "a test that waits for fake time",
    `${sleep}declare const vi: { useFakeTimers(): void };\nvi.useFakeTimers();\nawait sleep(50);`,
  ],
  [
    "a test that waits for its own function",
    "declare const sleep: (ms: number) => Promise<void>; // timers\n\nawait sleep(1);\nexport {};",
  ],

  ["a statement", "declare const f: () => Promise<void>;\nexport const e = () => {\n  void f();\n};", "no-void-call"],
  ["an arrow", "declare const f: () => Promise<void>;\nexport const e = () => void f();", "no-void-call"],
  [
    "an argument",
    "declare const f: () => Promise<void>;\nexport const e = () => setTimeout(() => void f(), 1);",
    "no-void-call",
  ],
  ["a promise", "export const e = (p: Promise<void>) => void p;", "no-void-call"],
  [
    "a condition",
    "declare const f: () => Promise<void>;\nexport const e = (a: boolean) => void (a && f());",
    "no-void-call",
  ],
  ["a new promise", "export const e = () => void new Promise(() => 1);", "no-void-call"],
  ["an awaited value", "export const e = async (p: Promise<number>) => void (await p);"],
  ["an assignment", "let a = 0;\nexport const e = () => void (a = 1);\nexport const g = () => a;"],

  ["a word at the beginning of a name", "export const toldWithinMs = 1;", "names"],
  ["a word in the middle of a name", "export const last_asked_at = 1;", "names"],
  ["a word in the name of a property", "export interface A {\n  readonly heldUntil: number;\n}", "names"],
  ["a word of capital letters in a name", "export class DNSWorld {}", "names"],
  // In two parts, so that the check of spelling does not match this file.
  ["a British spelling in a name", `export const ${"neighbo"}${"urhood"} = 1;`, "names"],
  ["a word inside another word", "export const outreached = 1;"],
  ["a line comment without a noun", "// Who is silent wakes nobody.\nexport const a = 1;", "comments"],
  ["a docstring without a noun", "/** What it is. */\nexport const a = 1;", "comments"],
  ["a docstring of several lines", "/**\n * So many of them.\n */\nexport const a = 1;", "comments"],
  ["a British spelling in a comment", "// A list of colours.\nexport const a = 1;", "comments"],
  ["a comment of more than 120 columns", `// ${"long ".repeat(24)}\nexport const a = 1;`, "comments"],
  ["an address of more than 120 columns", `// https://example.org/${"long-".repeat(24)}\nexport const a = 1;`],
  ["the second line of a comment", "// A sentence that continues with the word\n// What.\nexport const a = 1;"],
  ["a docstring that begins with a preposition", "/** Of each member. */\nexport const a = 1;", "comments"],
  ["a line comment that begins with a preposition", "// For each member.\nexport const a = 1;"],
  ["a vague phrase in a comment", `// A retry ${"at"} once.\nexport const a = 1;`, "comments"],
  ["a vague phrase over two lines", `/**\n * A retry ${"at"}\n * once.\n */\nexport const a = 1;`, "comments"],
  ...forbidden.types.flatMap((type) => [
    [
      `a line comment that reads like the type ${type}`,
      `// Port to listen on; 0: ${type} free port.\nexport const a = 1;`,
      "comments",
    ],
    [
      `a docstring that reads like the type ${type}`,
      `/** \`json\`: ${type} other value. */\nexport const a = 1;`,
      "comments",
    ],
  ]),
  ["a vague phrase in a message", `export const a = "the task ${"goes"} on";`, "texts"],
  ["a vague phrase in a template", `export const a = (b: string) => \`the task ${"goes"} on with \${b}\`;`, "texts"],
  ["a program's comment without a noun", "export const a = `\n// Who is silent wakes nobody.\nrun();\n`;", "texts"],
  ["a statement's comment without a noun", "export const a = `SELECT 1\n  -- What it is.\n`;", "texts"],
  ["the second line of a program's comment", "export const a = `\n// A sentence with the word\n// What.\n`;"],
  ["a forbidden name in a common table expression", "export const a = `WITH told AS (SELECT 1) SELECT 1`;", "texts"],
  ["a forbidden alias of a table", "export const a = `SELECT 1 FROM t AS ours`;", "texts"],
  ["the same words in a text that is no statement", "export const a = `as told AS (they) AS ours`;"],
  ["a forbidden word in a state", 'export type A = "purging" | "severed_gone";', "values"],
  ["a stored value", 'export type A = "begun" | "failed";'],
  ["a class with another name", 'export class A extends Error {\n  override readonly name = "B";\n}', "values"],
  ["a class with its name", 'export class A extends Error {\n  override readonly name = "A";\n}'],
  ["a single word", `export const a = "${"any"}${"ew"}";`],
];

const directory = mkdtempSync(join(tmpdir(), "holdfast-lint-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
/** A component needs the ending of its syntax, a test that of tests. */
const endingOf = (text) => (text.includes("timers") ? "test.ts" : /<\/|\/>/.test(text) ? "tsx" : "ts");
const fileOf = (index) => `case-${index}.${endingOf(cases[index][1])}`;

/** Our rules that found something, by file. */
const found = new Map();
beforeAll(async () => {
  for (const [index, [, text]] of cases.entries()) writeFileSync(join(directory, fileOf(index)), `${text}\n`);
  const oxlint = join(checkout, "node_modules", ".bin", "oxlint");
  const args = ["-c", join(checkout, ".oxlintrc.json"), "-f", "json", directory];
  // Its exit status is 1, as it finds faults.
  const { stdout } = await promisify(execFile)(oxlint, args).catch((error) => error);
  for (const { filename, code } of JSON.parse(stdout).diagnostics) {
    const [, rule] = /^holdfast\((.*)\)$/.exec(code) ?? [];
    const file = filename.split("/").at(-1);
    if (rule !== undefined) found.set(file, [...(found.get(file) ?? []), rule]);
  }
}, 60_000);

test.each(cases.map(([name, , ...rules], index) => [name, fileOf(index), rules]))("%s", (_, file, rules) => {
  expect([...new Set(found.get(file))]).toEqual(rules);
});
