import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openReads } from "./own-keys.js";

const holder = "interface Holder { readonly status: { readonly leases: Readonly<Record<string, number>> } }";

/** Sources, and the read that is found in each. */
const cases = [
  ["a variable", "const t: Record<string, number> = {};\nexport const e = (w: string) => t[w];", "t[w]"],
  ["a parameter", "export const e = (t: { readonly [key: string]: number }, w: string) => t[w];", "t[w]"],
  ["a property", `${holder}\nexport const e = (h: Holder, w: string) => h.status.leases[w];`, "h.status.leases[w]"],
  [
    "an optional property",
    `${holder}\nexport const e = (h: Holder | undefined, w: string) => h?.status.leases[w];`,
    "h?.status.leases[w]",
  ],
  [
    "a property of a call",
    `${holder}\nexport const e = (h: () => Holder, w: string) => h().status.leases[w];`,
    "h().status.leases[w]",
  ],
  [
    "a property that was taken out",
    `${holder}\nexport function e({ status: { leases } }: Holder, w: string) {\n  return leases[w];\n}`,
    "leases[w]",
  ],
  [
    "a result without a declared type",
    "const tableOf = (names: string[]) => Object.fromEntries(names.map((n) => [n, 1] as const));\n" +
      "export const e = (w: string) => tableOf([])[w];",
    "tableOf([])[w]",
  ],
  [
    "a type by another name",
    "type Words = Partial<Record<string, 1>>;\nexport const e = (t: Words, w: string) => t[w];",
    "t[w]",
  ],
  ["an index with `in`", "const t = { a: 1 };\nexport const e = (w: string) => w in t;", "w in t"],
  [
    "a key that is cast to the closed ones",
    "const t = { a: 1 };\nexport const e = (w: string) => t[w as keyof typeof t];",
    "t[w as keyof typeof t]",
  ],
  ["a sum", "export const e = (t: Record<string, number>, w: string) => {\n  t[w]! += 1;\n};", "t[w]"],

  ["a literal key", `${holder}\nexport const e = (h: Holder) => h.status.leases["a"];`],
  ["a key that is written", "export const e = (t: Record<string, number>, w: string) => {\n  t[w] = 1;\n};"],
  ["a key that is deleted", "export const e = (t: Record<string, number>, w: string) => {\n  delete t[w];\n};"],
  ["closed keys", "export const e = (t: Record<string, number>, w: 'a' | 'b') => t[w];"],
  ["an array", "export const e = (t: readonly number[], n: number) => t[n];"],
  [
    "a guard",
    `${holder}\nexport const e = (h: Holder, w: string) => (Object.hasOwn(h.status.leases, w) ? h.status.leases[w] : 0);`,
  ],
  [
    "a guard of what is cast afterwards",
    "export const e = (o: object, w: string) => (Object.hasOwn(o, w) ? (o as Record<string, number>)[w] : 0);",
  ],
];

const directory = mkdtempSync(join(tmpdir(), "holdfast-own-keys-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const fileOf = (index) => `case-${index}.ts`;

let found;
beforeAll(() => {
  const compilerOptions = { strict: true, module: "nodenext", target: "es2024", types: [] };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  for (const [index, [, text]] of cases.entries()) writeFileSync(join(directory, fileOf(index)), `${text}\n`);
  found = openReads(
    directory,
    cases.map((_, index) => fileOf(index)),
  );
});

test.each(cases.map(([name, , ...reads], index) => [name, `${fileOf(index)}:`, reads]))("%s", (_, file, reads) => {
  const own = found.filter((line) => line.startsWith(file));
  expect(own.map((line) => line.replace(/^\S+ /, ""))).toEqual(reads);
});

test("a file outside of the project is an error", () => {
  expect(() => openReads(directory, ["absent.ts"])).toThrow("absent.ts is not part of tsconfig.json");
});
