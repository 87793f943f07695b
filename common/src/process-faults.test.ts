import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

/** Starts a process of this role, which prints "serving" after the statements had turns of the event loop. */
async function run(role: string, statements: string): Promise<{ lines: string[]; code: number }> {
  const program = `
    import { watchProcessFaults } from ${JSON.stringify(join(import.meta.dirname, "process-faults.ts"))};
    const logFault = (message, { error, repeated }) => console.log(message + ": " + error.message + " " + repeated);
    let nowMs = 0;
    const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
    watchProcessFaults({ role: ${JSON.stringify(role)}, logFault, monotonicMs: () => nowMs });
    ${statements}
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    console.log("serving");`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return { lines: output.split("\n").filter((line) => line !== ""), code };
}

const rejects = 'for (let i = 0; i < 3; i++) Promise.reject(new Error("left alone"));';
const throws = 'setImmediate(() => { throw new Error("in a callback"); });';
const rejected = "promise rejected without a handler: left alone 0";

test("a server and a supervisor survive an unhandled rejection and log it once", async () => {
  for (const role of ["server", "supervisor"])
    expect(await run(role, rejects)).toEqual({ lines: [rejected, "serving"], code: 0 });
});

test("a repeated fault is logged after a minute with the number of repetitions", async () => {
  const statements = `
    const fault = new Error("the same");
    for (let minute = 0; minute < 3; minute++) {
      for (let i = 0; i < 2; i++) Promise.reject(fault);
      nowMs += 60_000;
      await nextTurn();
    }`;
  const { lines } = await run("server", statements);
  expect(lines).toEqual([
    "promise rejected without a handler: the same 0",
    "promise rejected without a handler: the same 1",
    "promise rejected without a handler: the same 1",
    "serving",
  ]);
});

test("an uncaught exception ends a server but not a supervisor", async () => {
  const line = "exception not caught: in a callback 0";
  expect(await run("server", throws)).toEqual({ lines: [line], code: 1 });
  expect(await run("supervisor", throws)).toEqual({ lines: [line, "serving"], code: 0 });
});

test("a job ends after either fault, since its result may be incomplete", async () => {
  expect(await run("job", rejects)).toEqual({ lines: [rejected], code: 1 });
  expect(await run("job", throws)).toMatchObject({ code: 1 });
});

test("a program whose start fails exits in any role", async () => {
  for (const role of ["server", "supervisor", "job"])
    expect(await run(role, 'await Promise.reject(new Error("no start"));'), role).toEqual({
      lines: ["exception not caught: no start 0"],
      code: 1,
    });
});
