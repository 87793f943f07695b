import type { EngineFailure, LogLevel, ParsedLogLine } from "../engine-driver.ts";

const levels: ReadonlyMap<string, LogLevel> = new Map(
  Object.entries<LogLevel>({
    WARNING: "warning",
    ERROR: "error",
    FATAL: "error",
    PANIC: "error",
  }),
);

/** Parses a line with the `log_line_prefix` of `%n [%p] `, such as `1764318337.160 [42] LOG:  checkpoint complete`. */
export function parseLog(line: string): ParsedLogLine | undefined {
  const match = /^(\d+\.\d+) \[\d+\] ([A-Z]+\d?):  (.*)$/s.exec(line);
  if (match === null) return undefined;
  const [, seconds, severity = "", message = ""] = match;
  const level = levels.get(severity) ?? (severity.startsWith("DEBUG") ? "debug" : "info");
  // Lines that explain an error keep their label.
  const isDetail = ["DETAIL", "HINT", "CONTEXT"].includes(severity);
  return {
    time: new Date(Math.round(Number(seconds) * 1_000)),
    level,
    message: isDetail ? `${severity}: ${message}` : message,
  };
}

/** Cause of a failed start, by the last lines that the engine printed. */
export function explainFailure(output: string): EngineFailure {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const severe = lines.filter((line) => /(FATAL|PANIC|ERROR|LOG): {2}/.test(line));
  const find = (pattern: RegExp) => severe.find((line) => pattern.test(line));
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
    const line = find(pattern);
    if (line !== undefined) return { cause, message: messageOf(line), parameter: parameterIn(severe) };
  }
  return {
    cause: "unknown",
    message: messageOf(severe.findLast((line) => /FATAL|PANIC/.test(line)) ?? lines.at(-1) ?? ""),
    parameter: undefined,
  };
}

function messageOf(line: string): string {
  return parseLog(line)?.message ?? line.replace(/^.*?(FATAL|PANIC|ERROR|LOG): {2}/, "").trim();
}

function parameterIn(lines: readonly string[]): string | undefined {
  for (const line of lines) {
    const name = /parameter "([^"]+)"/.exec(line)?.[1] ?? /^.*: {2}"?([a-z_.]+)"? must be/.exec(line)?.[1];
    if (name !== undefined) return name;
  }
  return undefined;
}
