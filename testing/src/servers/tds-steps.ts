import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "vitest";
import type { TestTds } from "./tds-front-end.ts";

const execute = promisify(execFile);
const programMs = 180_000;

/** A step of a program, with its value or its error. */
interface Step {
  readonly name: string;
  readonly value?: unknown;
  readonly error?: string;
}

/** The front end and the file of its certificate, as the programs of mappers read them. */
export function targetOf({ server, user, password }: TestTds, ca: string): string {
  return JSON.stringify({ host: "localhost", port: server.port, user, password, database: "defaultdb", ca });
}

/** Runs a program that prints its steps, and expects that those of `limits`, and no others, fail. */
export async function expectSteps(
  [program, ...argv]: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
  count: number,
  limits: Readonly<Record<string, string>>,
): Promise<Map<string, unknown>> {
  const { stdout } = await execute(program, argv, {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    timeout: programMs,
    maxBuffer: 16 << 20,
  });
  const steps = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Step);
  const failed = steps.filter(({ error }) => error !== undefined);
  expect(
    failed.filter(({ name }) => !Object.hasOwn(limits, name)),
    "steps that failed",
  ).toEqual([]);
  expect(failed.map(({ name }) => name).sort()).toEqual(Object.keys(limits).sort());
  expect(steps.length).toBe(count);
  return new Map(steps.map(({ name, value }) => [name, value]));
}
