import { statSync } from "node:fs";
import { constants } from "node:os";
import { basename, dirname, isAbsolute } from "node:path";
import type { ComponentSpec } from "./keeper-protocol.ts";

/** A component's name is part of the name of a file of the keeper. */
const namePattern = /^[a-z][a-z0-9-]{0,31}$/;
const logPattern = /^[a-z][a-z0-9.-]{0,63}$/;
const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;
const maxArguments = 1_000;
const maxSegments = 1_000;
const maxSegmentBytes = 1 << 30;

/** Throws unless this can be the name of a component. */
export function requireName(name: unknown): asserts name is string {
  require(typeof name === "string" && namePattern.test(name), "name", "is not a component name");
}

/** Throws unless the system has this signal. */
export function requireSignal(signal: unknown): asserts signal is NodeJS.Signals {
  require(typeof signal === "string" && Object.hasOwn(constants.signals, signal), "signal", "is not a signal");
}

/** Returns the deadline of an extension, null for none; throws for a request without either. */
export function requireDeadline({ leftMs, untilMs }: { leftMs?: unknown; untilMs?: unknown }): number | null {
  if (untilMs === undefined && leftMs === null) return null;
  require(isTime(untilMs), "untilMs", "is not a time");
  return untilMs;
}

/**
 * Validates a component before anything is done for it. The keeper is root, so the names and paths that it uses itself
 * are restricted; all other fields are only passed to the program. Throws an error that names the field.
 */
export function requireSpec(spec: ComponentSpec, logDirectory: string): void {
  const { name, argv, env, cwd, input, log, stop, deadlineMs, untilMs, role } = spec;
  requireName(name);
  require(isList(argv) && argv.length > 0 && argv.length <= maxArguments, "argv", "is not a command line");
  require(argv.every(isArgument), "argv", "is not a command line");
  require(typeof env === "object" && env !== null, "env", "is not an environment");
  const variables = Object.entries(env);
  require(variables.length <= maxArguments, "env", "has too many variables");
  require(variables.every(
    ([key, value]) => variablePattern.test(key) && isArgument(value),
  ), "env", "is not an environment");
  require(isArgument(cwd) && isAbsolute(cwd) && statSync(cwd).isDirectory(), "cwd", "is not a directory");
  require(input === undefined || typeof input === "string", "input", "is not a string");
  const isInside = isArgument(log?.path) && dirname(log.path) === logDirectory && logPattern.test(basename(log.path));
  require(isInside, "log.path", "is not below the directory of logs");
  require(isCount(log.keep, maxSegments), "log.keep", "is out of range");
  require(isCount(log.maxBytes, maxSegmentBytes), "log.maxBytes", "is out of range");
  require(log.stamped === undefined || typeof log.stamped === "boolean", "log.stamped", "is not a boolean");
  require(log.marksErrors === undefined || typeof log.marksErrors === "boolean", "log.marksErrors", "is not a boolean");
  require(role === undefined || role === "container" || role === "front", "role", "is not a role");
  requireSignal(stop?.signal);
  require(Number.isFinite(stop.graceMs), "stop.graceMs", "is not a time");
  require(deadlineMs === null, "deadlineMs", "is not null");
  require(untilMs === undefined || isTime(untilMs), "untilMs", "is not a time");
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isArgument(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0");
}

function isTime(value: unknown): value is number {
  return Number.isFinite(value);
}

function isCount(value: unknown, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max;
}

function require(condition: boolean, field: string, problem: string): asserts condition {
  if (!condition) throw new Error(`${field} ${problem}`);
}
