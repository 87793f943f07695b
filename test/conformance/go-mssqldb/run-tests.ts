import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { TestTds } from "@holdfast/testing/servers/tds-front-end.ts";

/** Outcomes of the driver's tests by their names; those of subtests are in their test's. */
export interface TestOutcomes {
  readonly passed: readonly string[];
  readonly skipped: readonly string[];
  /** Names with the last lines of the output. */
  readonly failed: ReadonlyMap<string, string>;
}

interface TestEvent {
  readonly Action: string;
  readonly Test?: string;
  readonly Output?: string;
}

const outputLines = 15;

/**
 * Runs the tests of a checkout of go-mssqldb on a front end; `certificate` is the file of its authority. Tests of
 * `skip` would end the run.
 */
export async function runGoTests(
  checkout: string,
  tds: TestTds,
  certificate: string,
  skip: readonly string[],
): Promise<TestOutcomes> {
  const url = new URL(`sqlserver://localhost:${tds.server.port}`);
  url.username = tds.user;
  url.password = tds.password;
  url.searchParams.set("database", "defaultdb");
  url.searchParams.set("encrypt", "true");
  const child = spawn("go", ["test", "-json", "-count=1", "-timeout=30m", `-skip=^(${skip.join("|")})$`, "."], {
    cwd: checkout,
    // Some tests connect by an address without the parameter `certificate`: the authority is one of the system's.
    env: { ...process.env, SQLSERVER_DSN: url.href, SSL_CERT_FILE: certificate },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const outputs = new Map<string, string[]>();
  const passed: string[] = [];
  const skipped: string[] = [];
  const failed = new Map<string, string>();
  for await (const line of createInterface(child.stdout)) {
    const { Action: action, Test: name, Output: output } = JSON.parse(line) as TestEvent;
    if (name === undefined || name.includes("/")) continue;
    if (action === "output") outputs.set(name, [...(outputs.get(name) ?? []), output ?? ""].slice(-outputLines));
    else if (action === "pass") passed.push(name);
    else if (action === "skip") skipped.push(name);
    else if (action === "fail") failed.set(name, outputs.get(name)?.join("") ?? "");
  }
  await ended;
  return { passed, skipped, failed };
}
