import type { EngineFailure, LogLevel, ParsedLogLine } from "../engine-driver.ts";

const levels: ReadonlyMap<string, LogLevel> = new Map(
  Object.entries<LogLevel>({ system: "info", note: "info", warning: "warning", error: "error" }),
);

/**
 * Parses a line such as `2026-11-28T15:54:24.894452Z 0 [System] [MY-010931] [Server] /usr/sbin/mysqld: ready for
 * connections.`
 */
export function parseLog(line: string): ParsedLogLine | undefined {
  const match = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) \d+ \[(\w+)\] (?:\[MY-\d+\] )?(?:\[\w+\] )?(.*)$/s.exec(line);
  if (match === null) return undefined;
  const [, time = "", label = "", message = ""] = match;
  return { time: new Date(time), level: levels.get(label.toLowerCase()) ?? "info", message };
}

/** Causes by the engine's lines of severity ERROR; the first that matches counts. */
const causes: readonly (readonly [EngineFailure["cause"], RegExp])[] = [
  ["disk_full", /No space left on device|OS errno 28|errno: 28|Disk is full/],
  ["port_busy", /[Aa]ddress already in use|cannot bind/],
  ["memory", /Cannot allocate memory|Out of memory|errno: 12\b/],
  [
    "configuration",
    /unknown (variable|option)|Error while setting value|option .*(requires|cannot|value)|Wrong value|ambiguous option|Found option without preceding group|Invalid .* (value|setting)|is too small for the innodb_/i,
  ],
  [
    "data_damaged",
    /corrupt|checksum|Cannot open .*(redo log|DD tablespace)|Failed to read header of the redo log|returned OS error 71\b|Could not find any file associated with the tablespace|not in a format/i,
  ],
];

/** Errors that MySQL prints after every failed start of InnoDB, and that name no cause. */
const consequence =
  /Plugin initialization aborted|Failed to initialize DD Storage Engine|Data Dictionary initialization failed|Aborting$/;

/** Cause of a failed start of the engine or its front, by the last lines that they printed. */
export function explainFailure(output: string): EngineFailure {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const all = lines.filter((line) => /\[Error\]|\[ALERT\]|^mysqld: /i.test(line));
  const errors = all.filter((line) => !consequence.test(line));
  for (const [cause, pattern] of causes) {
    const line = errors.find((each) => pattern.test(each));
    if (line !== undefined) return { cause, message: messageIn(line), parameter: parameterIn(line) };
  }
  return { cause: "unknown", message: messageIn(errors[0] ?? all[0] ?? lines.at(-1) ?? ""), parameter: undefined };
}

function messageIn(line: string): string {
  return parseLog(line)?.message ?? line.trim();
}

function parameterIn(line: string): string | undefined {
  const found =
    /(?:variable|option) '-{0,2}([a-z][\w-]+)/.exec(line)?.[1] ?? /setting value '.*' to '([\w-]+)'/.exec(line)?.[1];
  return found?.replaceAll("-", "_");
}
