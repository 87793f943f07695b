import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";

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
