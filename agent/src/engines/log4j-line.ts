import type { LogLevel, ParsedLogLine } from "./engine-driver.ts";

const levels: ReadonlyMap<string, LogLevel> = new Map(
  Object.entries<LogLevel>({
    TRACE: "debug",
    DEBUG: "debug",
    INFO: "info",
    WARN: "warning",
    ERROR: "error",
    FATAL: "error",
  }),
);

/**
 * Parses a line of Log4j with the pattern `%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m%n`, such as
 * `2026-11-28 21:07:52,186 INFO Kafka Server started`; the process runs with TZ=UTC.
 */
export function parseLog4jLine(line: string): ParsedLogLine | undefined {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3}) ([A-Z]+) (.*)$/s.exec(line);
  if (match === null) return undefined;
  const [, day = "", time = "", ms = "", mark = "", message = ""] = match;
  return { time: new Date(`${day}T${time}.${ms}Z`), level: levels.get(mark) ?? "info", message };
}
