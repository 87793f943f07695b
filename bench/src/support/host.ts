import { readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { beginRun } from "./stored-figures.ts";

/** Begins a run and prints its commit and hardware; the load before it shows other work on the machine. */
export function printHost(): void {
  const [cpu] = cpus();
  const { commit, load } = beginRun();
  const lines = [
    ["machine", `${cpus().length} x ${cpu?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB`],
    ["commit; node; load before", `${commit}; ${process.version}; ${load}`],
  ];
  for (const [name = "", value = ""] of lines) process.stdout.write(`${name.padEnd(58)} ${value.padStart(22)}\n`);
}

/** User and system time of processes, in milliseconds, with their waited-for children. */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A tick is 10 ms on every Linux that Node runs on.
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0) * 10;
}

export interface Memory {
  readonly rssMb: number;
  readonly pssMb: number;
  readonly privateMb: number;
}

/** Memory of a process: PSS divides shared pages among their processes. */
export function memoryOf(pid: number): Memory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(rollup)?.[1] ?? 0) / 1_024;
  return { rssMb: mb("Rss"), pssMb: mb("Pss"), privateMb: mb("Private_Clean") + mb("Private_Dirty") };
}
