import type { EngineFailure, LogLevel, ParsedLogLine } from "../engine-driver.ts";

const levels: ReadonlyMap<string, LogLevel> = new Map(
  Object.entries<LogLevel>({ ".": "debug", "-": "debug", "*": "info", "#": "warning" }),
);

/** Parses a line such as `1:M 21 Nov 2026 09:05:37.160 * Ready to accept connections`; the process runs with TZ=UTC. */
export function parseLog(line: string): ParsedLogLine | undefined {
  const match = /^\d+:[A-Z] (\d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2}\.\d{3}) ([.\-*#]) (.*)$/s.exec(line);
  if (match === null) return undefined;
  const [, time = "", mark = "", message = ""] = match;
  return { time: new Date(`${time} UTC`), level: levels.get(mark) ?? "info", message };
}

/** Cause of a failed start of the engine or its front, by the last lines that they printed. */
export function explainFailure(output: string): EngineFailure {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const cases: [EngineFailure["cause"], RegExp][] = [
    ["disk_full", /No space left on device/],
    ["port_busy", /[Aa]ddress already in use|cannot bind/],
    ["memory", /Out Of Memory|Cannot allocate memory|Can't allocate/],
    ["configuration", /FATAL CONFIG FILE ERROR|Bad directive|argument must be|Fatal errors found in configuration/],
    ["data_damaged", /Bad file format reading the append only file|Unexpected end of file|Wrong signature|checksum/i],
  ];
  for (const [cause, pattern] of cases) {
    const at = lines.findIndex((line) => pattern.test(line));
    if (at < 0) continue;
    if (cause !== "configuration") return { cause, message: messageOf(lines[at] ?? ""), parameter: undefined };
    // The line of the file and the reason follow.
    const message = lines
      .slice(at, at + 4)
      .map(messageOf)
      .join(" ");
    return { cause, message, parameter: />>> '([^\s"']+)/.exec(message)?.[1] };
  }
  return { cause: "unknown", message: messageOf(lines.at(-1) ?? ""), parameter: undefined };
}

function messageOf(line: string): string {
  return parseLog(line)?.message ?? line.trim();
}
