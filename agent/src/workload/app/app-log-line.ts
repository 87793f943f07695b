import type { LogLevel, ParsedLogLine } from "../../engines/engine-driver.ts";
import { withoutColors } from "../log-text.ts";

const levels: ReadonlyMap<string, LogLevel> = new Map(
  Object.entries<LogLevel>({
    trace: "debug",
    debug: "debug",
    info: "info",
    notice: "info",
    warn: "warning",
    warning: "warning",
    err: "error",
    error: "error",
    fatal: "error",
    critical: "error",
    crit: "error",
    panic: "error",
    alert: "error",
    emergency: "error",
  }),
);

/** A time before the level, such as `2026-11-30 12:00:00,123 ` or `[12:00:00] `. */
const time = /^\[?[\d/-]*[T ]?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]+/;
/** The first word of a line: a level in upper case, in brackets, or before a colon. */
const firstWord = /^(?:\[([A-Za-z]+)\]|<([A-Za-z]+)>|([A-Z]+)(?=[\s:|-])|([A-Za-z]+):)/;
/** Name of an error that a runtime prints, such as `TypeError: x is not a function`. */
const errorName = /^(?:Uncaught )?[A-Z]\w*(?:Error|Exception): /;

/**
 * Parses a line of a release's log: the keeper's time, its mark of standard error, then what the program printed.
 * Undefined without a time.
 */
export function parseReleaseLine(line: string): ParsedLogLine | undefined {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)([ !])(.*)$/s.exec(line);
  if (match === null) return undefined;
  const [, stamp = "", mark, printed = ""] = match;
  const message = withoutColors(printed).replace(/\r+$/, "");
  return { time: new Date(stamp), level: levelOf(message, mark === "!" ? "warning" : "info"), message };
}

/**
 * Level that a program gave its line: the field `level` or `severity` of JSON, `level=` of logfmt, or the first word.
 * All other lines have the level of their stream: "warning" for standard error, "info" for standard output.
 */
export function levelOf(message: string, ofStream: LogLevel = "info"): LogLevel {
  if (message.startsWith("{")) {
    const [, name, number] = /"(?:level|severity)"\s*:\s*(?:"(\w+)"|(\d+))/i.exec(message) ?? [];
    return number === undefined ? levelNamed(name, ofStream) : levelNumbered(Number(number));
  }
  const [, field] = /(?:^|\s)(?:level|severity)="?(\w+)/i.exec(message) ?? [];
  if (field !== undefined) return levelNamed(field, ofStream);
  const text = message.replace(time, "");
  if (errorName.test(text)) return "error";
  const [, ...words] = firstWord.exec(text) ?? [];
  return levelNamed(
    words.find((word) => word !== undefined),
    ofStream,
  );
}

function levelNamed(name = "", otherwise: LogLevel): LogLevel {
  return levels.get(name.toLowerCase()) ?? otherwise;
}

/** Levels of bunyan and pino. */
function levelNumbered(number: number): LogLevel {
  if (number >= 50) return "error";
  if (number >= 40) return "warning";
  return number >= 30 ? "info" : "debug";
}
