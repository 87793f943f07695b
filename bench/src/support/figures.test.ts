import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { compared, figuresOf, type StoredFigure, verdictOf } from "./figure.ts";

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

const verdict = (value: string, bar: string) => verdictOf(figuresOf(value), bar);

test("a printed value has its numbers with their units", () => {
  const of = (value: string) => figuresOf(value).map(({ number, unit }) => `${number} ${unit}`.trim());
  expect(of("4.74x (1.89x - 7.22x)")).toEqual(["4.74 x", "1.89 x", "7.22 x"]);
  expect(of("18,798/s, 39 us CPU each")).toEqual(["18798 /s", "39 us"]);
  expect(of("208 MB/s, 6.20 CPU-s/GB")).toEqual(["208 MB/s", "6.2 CPU-s/GB"]);
  expect(of("same bytes, 401 without")).toEqual(["401"]);
});

test("what was not read is no figure: not a number, or nothing of a quantity", () => {
  const isRead = (value: string) => figuresOf(value).every((figure) => figure.isRead);
  for (const value of ["NaN ms", "Infinityx", "0 MiB", "208 MB/s, 0.00 CPU-s/GB", "undefined MB"])
    expect([value, isRead(value)]).toEqual([value, false]);
  for (const value of ["0", "0.00%", "0.02 ms", "same bytes"]) expect([value, isRead(value)]).toEqual([value, true]);
});

test("a bar is met or missed if it has the figure's unit", () => {
  expect(verdict("0.43x (0.40x - 0.50x)", ">= 1.2x")).toBe(" missed");
  expect(verdict("1.20x", ">= 1.2x")).toBe(" met");
  expect(verdict("120 ms / 522 ms", "<= 150 ms p95")).toBe(" missed");
  expect(verdict("3.1 s of 12", "< 5 s")).toBe(" met");
  expect(verdict("800 ms", "<= 1 s")).toBe("");
  expect(verdict("1 ms / 2 ms", "<= 3 s / 4 s")).toBe("");
});

test("a figure is compared with the one before in the direction of its bar", () => {
  const before: StoredFigure = { value: "5.00x", commit: "1a2b3c4d", on: "2026-11-30", load: 0.1, flags: [] };
  expect(compared(figuresOf("3.05x"), before, ">= 5x")).toBe("before 5.00x at 1a2b3c4d, WORSE");
  expect(compared(figuresOf("4.50x"), before, ">= 5x")).toBe("before 5.00x at 1a2b3c4d");
  expect(compared(figuresOf("6.50x"), before, "<= 5x")).toContain("WORSE");
  expect(compared(figuresOf("9.00x"), before, "")).not.toContain("WORSE");
});

/** A benchmark that prints these figures; its flags, and the directory of its figures. */
function bench(figures: readonly (readonly [string, string])[]) {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-figures-"));
  directories.push(directory);
  const module = (name: string) => JSON.stringify(join(import.meta.dirname, name));
  const program = join(directory, "sample.ts");
  const prints = figures.map(([name, value]) => `print(${JSON.stringify(name)}, ${JSON.stringify(value)});`);
  const imports = `import { printHost } from ${module("host.ts")};\nimport { print } from ${module("figures.ts")};\n`;
  writeFileSync(program, `${imports}printHost();\n${prints.join("\n")}\n`);
  const env = { ...process.env, BENCH_FIGURES: directory };
  return {
    run: (...flags: string[]) => execFileSync(process.execPath, [program, ...flags], { env, encoding: "utf8" }),
    fails: () => spawnSync(process.execPath, [program], { env, encoding: "utf8" }),
    stored: () => JSON.parse(readFileSync(join(directory, "sample.json"), "utf8")) as Record<string, StoredFigure>,
  };
}

test("a run keeps its figures with its commit and flags; the next with these flags prints them", () => {
  const { run, stored } = bench([
    ["a", "1.00x"],
    ["  ratio", "2.00x"],
    ["b", "3.00x"],
    ["  ratio", "4.00x"],
    ["  ratio", "5.00x"],
  ]);
  const first = run("--pairs", "2");
  expect(first).toMatch(/^commit; node; load before +[0-9a-f]{8}\+?; v/m);
  expect(first).not.toContain("before 1.00x");
  const values = Object.entries(stored()).map(([name, { value }]) => `${name}: ${value}`);
  expect(values).toEqual(["a: 1.00x", "a; ratio: 2.00x", "b: 3.00x", "b; ratio: 4.00x", "b; ratio (2): 5.00x"]);
  expect(stored()["a"]).toMatchObject({ flags: ["--pairs", "2"], commit: expect.stringMatching(/^[0-9a-f]{8}\+?$/) });
  expect(run("--pairs", "3")).not.toContain("before 1.00x");
  expect(run("--pairs", "3")).toMatch(/^a +1\.00x {3}before 1\.00x at [0-9a-f]{8}\+?$/m);
});

test("a run with a figure that was not read fails and keeps nothing", () => {
  const { fails, stored } = bench([
    ["a", "1.00x"],
    ["memory of the component", "0 MiB"],
  ]);
  const { status, stderr } = fails();
  expect(status).toBe(1);
  expect(stderr).toContain("the figure was not read: memory of the component: 0 MiB");
  expect(stored).toThrow("ENOENT");
});
