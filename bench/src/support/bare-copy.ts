import { readFileSync, readlinkSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { costOf } from "./cost.ts";

const program = "/usr/lib/postgresql/17/bin/pg_basebackup";

/** Milliseconds that pg_basebackup takes to copy an engine's data to the same disk, within the engine's machine. */
export async function bareCopy(engine: number): Promise<number> {
  const data = readlinkSync(`/proc/${engine}/cwd`);
  const [, , , port, socketDirectory] = readFileSync(`/proc/${engine}/root${data}/postmaster.pid`, "utf8").split("\n");
  const copy = join(dirname(data), "bench-copy");
  const options = [`--pgdata=${copy}`, "--checkpoint=fast", `--host=${socketDirectory}`, `--port=${port}`];
  const enter = ["--target", String(engine), "--mount", "--pid", "--"];
  try {
    return (await costOf({ command: "nsenter", args: [...enter, program, ...options, "--username=holdfast"] })).wallMs;
  } finally {
    rmSync(`/proc/${engine}/root${copy}`, { recursive: true, force: true });
  }
}
