import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { basename, join } from "node:path";
import type { StoredFigure } from "./figure.ts";

const checkout = join(import.meta.dirname, "..", "..", "..");

/** Figures of one benchmark by name. */
type Figures = Record<string, StoredFigure>;

interface Run {
  readonly path: string;
  /** Before each name in the file; empty unless several benchmarks share it. */
  readonly prefix: string;
  readonly about: Omit<StoredFigure, "value">;
  readonly before: Figures;
  readonly now: Map<string, StoredFigure>;
  /** Name of the last figure that is not indented. */
  heading: string;
}

let run: Run | undefined;

/**
 * Begins a run, whose figures replace those of the same names in `bench/figures/<benchmark>.json` when the process ends
 * without an error. `BENCH_FIGURES` names another directory, `BENCH_SHARED` a file for several benchmarks.
 */
export function beginRun(): { readonly commit: string; readonly load: number } {
  const [program = "", ...flags] = process.argv.slice(1);
  const benchmark = basename(program, ".ts");
  const { BENCH_FIGURES: directory = join(checkout, "bench", "figures"), BENCH_SHARED: shared } = process.env;
  const path = join(directory, `${shared ?? benchmark}.json`);
  const on = new Date().toISOString().slice(0, 10);
  const about = { commit: commitOf(), on, load: Math.round((loadavg()[0] ?? 0) * 10) / 10, flags };
  const prefix = shared === undefined ? "" : `${benchmark}: `;
  run = { path, prefix, about, before: read(path), now: new Map(), heading: "" };
  process.once("exit", (code) => {
    if (code === 0 && run !== undefined) write(run);
  });
  return about;
}

/** Keeps a figure of the run; the result is that of the last run with the same flags, undefined if there is none. */
export function storeFigure(printed: string, value: string): StoredFigure | undefined {
  if (run === undefined) return undefined;
  const isPart = printed.startsWith(" ");
  if (!isPart) run.heading = printed;
  const name = `${run.prefix}${isPart ? `${run.heading}; ${printed.trim()}` : printed}`;
  // Figures of one name have numbers.
  let key = name;
  for (let number = 2; run.now.has(key); number += 1) key = `${name} (${number})`;
  run.now.set(key, { value, ...run.about });
  const before = Object.hasOwn(run.before, key) ? run.before[key] : undefined;
  return before?.flags.join(" ") === run.about.flags.join(" ") ? before : undefined;
}

function commitOf(): string {
  const git = (...args: string[]) => execFileSync("git", ["-C", checkout, ...args], { encoding: "utf8" }).trim();
  try {
    return `${git("rev-parse", "--short=8", "HEAD")}${git("status", "--porcelain", "--", ".", ":!bench/figures") === "" ? "" : "+"}`;
  } catch {
    return "no commit";
  }
}

function read(path: string): Figures {
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Figures) : {};
}

/** Other benchmarks may have added to a shared file since this run began. */
function write({ path, now }: Run): void {
  mkdirSync(join(path, ".."), { recursive: true });
  const figures = Object.entries({ ...read(path), ...Object.fromEntries(now) }).sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(path, `${JSON.stringify(Object.fromEntries(figures), undefined, 2)}\n`);
}
