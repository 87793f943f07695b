import { statSync } from "node:fs";
import { constants } from "node:os";
import { basename, dirname, isAbsolute } from "node:path";
import type { ComponentSpec } from "./keeper-protocol.ts";

/** A component's name: part of the name of a file of the keeper's own. */
const namePattern = /^[a-z][a-z0-9-]{0,31}$/;
const logPattern = /^[a-z][a-z0-9.-]{0,63}$/;
const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;
const mostWords = 1_000;
const mostSegments = 1_000;
const largestSegmentBytes = 1 << 30;

/** Throws unless this can be the name of a component. */
export function requireName(name: unknown): asserts name is string {
  require(typeof name === "string" && namePattern.test(name), "name", "is no name of a component");
}

/** Throws unless this is a signal that the system knows. */
export function requireSignal(signal: unknown): asserts signal is NodeJS.Signals {
  require(typeof signal === "string" && Object.hasOwn(constants.signals, signal), "signal", "is no signal");
}

/** Throws unless this is a time, or nothing. */
export function requireTime(untilMs: unknown): asserts untilMs is number | undefined {
  require(untilMs === undefined || Number.isFinite(untilMs), "untilMs", "is no time");
}

/**
 * What an agent asks to have run, judged before anything is done: names and paths that the keeper uses as root are of the
 * keeper's own making, the rest is for the program. Throws a sentence that names the field.
 */
export function requireSpec(spec: ComponentSpec, logDirectory: string): void {
  const { name, argv, env, cwd, input, log, stop, deadlineMs, untilMs } = spec;
  requireName(name);
  require(isList(argv) && argv.length > 0 && argv.length <= mostWords, "argv", "is no command line");
  require(argv.every(isWord), "argv", "is no command line");
  require(typeof env === "object" && env !== null, "env", "is no environment");
  const variables = Object.entries(env);
  require(variables.length <= mostWords, "env", "has too many variables");
  require(variables.every(([key, value]) => variablePattern.test(key) && isWord(value)), "env", "is no environment");
  require(isWord(cwd) && isAbsolute(cwd) && statSync(cwd).isDirectory(), "cwd", "is no directory");
  require(input === undefined || typeof input === "string", "input", "is no text");
  const isInside = isWord(log?.path) && dirname(log.path) === logDirectory && logPattern.test(basename(log.path));
  require(isInside, "log.path", "is not below the directory of logs");
  require(isCount(log.keep, mostSegments), "log.keep", "is out of range");
  require(isCount(log.maxBytes, largestSegmentBytes), "log.maxBytes", "is out of range");
  requireSignal(stop?.signal);
  require(Number.isFinite(stop.graceMs), "stop.graceMs", "is no time");
  require(deadlineMs === null || Number.isFinite(deadlineMs), "deadlineMs", "is no time");
  requireTime(untilMs);
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0");
}

function isCount(value: unknown, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most;
}

function require(holds: boolean, field: string, what: string): asserts holds {
  if (!holds) throw new Error(`${field} ${what}`);
}
