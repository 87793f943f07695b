import { dirname, join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { testImage } from "@holdfast/testing/engines/test-image.ts";
import { loadCore } from "./peer-process.ts";

export interface Load {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/**
 * GET requests over persistent connections, from the other core. Throws when any status was not 200. A file of
 * Authorization headers, a line each, is used in rotation.
 */
export function load(
  url: string,
  headers: Readonly<Record<string, string>>,
  connections: number,
  seconds: number,
  authorizations?: string,
): Promise<Load> {
  const script = authorizations === undefined ? undefined : { name: "keys.lua", file: authorizations };
  return run(url, headers, connections, seconds, script);
}

/** Load of POSTs with the contents of a file, with the same result. */
export function loadPosts(
  url: string,
  headers: Readonly<Record<string, string>>,
  connections: number,
  seconds: number,
  file: string,
): Promise<Load> {
  return run(url, headers, connections, seconds, { name: "post.lua", file });
}

async function run(
  url: string,
  headers: Readonly<Record<string, string>>,
  connections: number,
  seconds: number,
  fixture: { readonly name: string; readonly file: string } | undefined,
): Promise<Load> {
  const script = fixture === undefined ? [] : ["-s", join(import.meta.dirname, fixture.name)];
  const flags = ["-t1", `-c${connections}`, `-d${seconds}s`, "--latency", ...script];
  const named = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const image = await testImage("load");
  if (typeof image === "string") throw new Error(`wrk is not available: ${image}`);
  const fixtureWords = fixture === undefined ? [] : ["--", fixture.file];
  const files = fixture === undefined ? [] : [import.meta.dirname, dirname(fixture.file)];
  const { command, args } = image.command(["/usr/bin/wrk", ...flags, ...named, url, ...fixtureWords], files);
  const { stdout } = await runProgram("taskset", ["--cpu-list", String(loadCore), command, ...args]);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`not every answer was right:\n${stdout}`);
  const find = (pattern: RegExp) => pattern.exec(stdout) ?? [];
  const [, requests] = find(/(\d+) requests in/);
  const [, perSecond] = find(/Requests\/sec:\s+([\d.]+)/);
  return {
    requests: Number(requests),
    perSecond: Number(perSecond),
    p50Ms: msOf(find(/50%\s+([\d.]+)(us|ms|s)/)),
    p99Ms: msOf(find(/99%\s+([\d.]+)(us|ms|s)/)),
  };
}

function msOf([, value, unit]: readonly (string | undefined)[]): number {
  return Number(value) * (unit === "us" ? 0.001 : unit === "s" ? 1_000 : 1);
}
