import type { EngineFailure, LogLevel, ParsedLogLine } from "../engine-driver.ts";

const levels: ReadonlyMap<string, LogLevel> = new Map(
  Object.entries<LogLevel>({
    WARNING: "warning",
    ERROR: "error",
    FATAL: "error",
    PANIC: "error",
  }),
);

/** A line with our `log_line_prefix`, `%n [%p] `. */
export function parseLog(line: string): ParsedLogLine | undefined {
  const match = /^(\d+\.\d+) \[\d+\] ([A-Z]+\d?):  (.*)$/.exec(line);
  if (match === null) return undefined;
  const [, seconds, severity = "", message = ""] = match;
  const level = levels.get(severity) ?? (severity.startsWith("DEBUG") ? "debug" : "info");
  // What explains an error reads better with its word.
  const explains = ["DETAIL", "HINT", "CONTEXT"].includes(severity);
  return {
    time: new Date(Math.round(Number(seconds) * 1_000)),
    level,
    message: explains ? `${severity}: ${message}` : message,
  };
}

/** Pure: why the engine did not start, by the last lines that it printed. */
export function explainFailure(output: string): EngineFailure {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const worst = lines.filter((line) => /(FATAL|PANIC|ERROR|LOG): {2}/.test(line));
  const told = (pattern: RegExp) => worst.find((line) => pattern.test(line));
  const cases: [EngineFailure["cause"], RegExp][] = [
    ["disk_full", /No space left on device|could not (extend|write).*disk/i],
    ["port_busy", /Address already in use|could not bind/],
    ["memory", /could not map anonymous shared memory|Cannot allocate memory|out of memory/],
    [
      "configuration",
      /invalid value for parameter|unrecognized configuration parameter|is outside the valid range|must be (less|greater|set)|requires a numeric value|configuration file .* contains errors|invalid configuration parameter|could not access file/,
    ],
    [
      "data_damaged",
      /could not locate a valid checkpoint|invalid primary checkpoint|checksum|database files are incompatible|is not a valid data directory/,
    ],
  ];
  for (const [cause, pattern] of cases) {
    const line = told(pattern);
    if (line !== undefined) return { cause, message: wordsOf(line), parameter: parameterIn(worst) };
  }
  return {
    cause: "unknown",
    message: wordsOf(worst.findLast((line) => /FATAL|PANIC/.test(line)) ?? lines.at(-1) ?? ""),
    parameter: undefined,
  };
}

function wordsOf(line: string): string {
  return parseLog(line)?.message ?? line.replace(/^.*?(FATAL|PANIC|ERROR|LOG): {2}/, "").trim();
}

function parameterIn(lines: readonly string[]): string | undefined {
  for (const line of lines) {
    const name = /parameter "([^"]+)"/.exec(line)?.[1] ?? /^.*: {2}"?([a-z_.]+)"? must be/.exec(line)?.[1];
    if (name !== undefined) return name;
  }
  return undefined;
}
