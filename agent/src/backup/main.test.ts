import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** Reports the handler of a stop, just before it is there. */
const reporter = `data:text/javascript,process.on("newListener", (name) => name === "SIGTERM" && process.send(name))`;

test("a component without a job yet ends when it is stopped", async () => {
  const program = join(import.meta.dirname, "main.ts");
  const component = spawn(process.execPath, ["--import", reporter, program], {
    // Its standard input remains open, so it waits for its job.
    stdio: ["pipe", "ignore", "inherit", "ipc"],
  });
  try {
    const exited = once(component, "exit");
    await once(component, "message");
    component.kill("SIGTERM");
    expect(await exited).toEqual([1, null]);
  } finally {
    component.kill("SIGKILL");
  }
});

test("a component whose machine has no memory left is ended before the engine", async () => {
  const program = join(import.meta.dirname, "main.ts");
  const component = spawn(process.execPath, [program], { stdio: ["pipe", "ignore", "inherit"] });
  try {
    const score = () => readFile(`/proc/${component.pid}/oom_score_adj`, "utf8");
    await waitUntil("the component has its score", async () => (await score()) === "1000\n");
  } finally {
    component.kill("SIGKILL");
  }
});
