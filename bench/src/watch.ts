import { spawn } from "node:child_process";
import { join } from "node:path";
import { printHost } from "./support/host.ts";

// A short set of benchmarks in sequence, whose figures share one file. Each prints ratios to a peer of the same run and
// the figures before. The end repeats the lines of bars that are missed and of figures that got worse.
const runs = [
  ["rest-get", "--pairs", "2", "--seconds", "2"],
  ["provisioning", "--rounds", "3", "--at-once", "0", "--peers", "bare"],
  ["inference", "--rounds", "1", "--seconds", "1"],
  ["backups", "--scale", "7", "--rounds", "1", "--only", "full"],
  ["queue-claims", "--rows", "100000", "--claims", "200"],
] as const;

printHost();
const startedAt = performance.now();
const notable: string[] = [];
for (const [name, ...flags] of runs) {
  process.stdout.write(`\n${name}\n`);
  const lines = await linesOf(name, flags);
  notable.push(...lines.filter((line) => / missed|WORSE/.test(line)).map((line) => `${name}: ${line.trim()}`));
}
const tookS = ((performance.now() - startedAt) / 1_000).toFixed(0);
process.stdout.write(`\n${runs.length} benchmarks in ${tookS} s\n${notable.map((line) => `${line}\n`).join("")}`);

/** Runs a benchmark, whose output is passed on; throws if it fails. */
async function linesOf(name: string, flags: readonly string[]): Promise<string[]> {
  const program = join(import.meta.dirname, `${name}.ts`);
  const child = spawn(process.execPath, [...process.execArgv, program, ...flags], {
    env: { ...process.env, BENCH_SHARED: "watch" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    process.stdout.write(part);
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`${name} ended with ${String(code)}`);
  return text.split("\n");
}
