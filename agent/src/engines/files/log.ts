import type { EngineFailure, ParsedLogLine } from "../engine-driver.ts";

/** Parses a line such as `2026/11/29 09:05:37 WARNING: message`; the process runs with TZ=UTC. */
export function parseLog(line: string): ParsedLogLine | undefined {
  const match =
    /^(\d{4})\/(\d\d)\/(\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? (?:\[?(DEBUG|INFO|WARN|WARNING|ERROR)\]?:? )?(.*)$/s.exec(
      line,
    );
  if (match === null) return undefined;
  const [, year = "", month = "", day = "", time = "", mark = "", message = ""] = match;
  const level = mark === "" ? "info" : mark.startsWith("WARN") ? "warning" : mark.toLowerCase();
  return {
    time: new Date(`${year}-${month}-${day}T${time}Z`),
    level: level === "debug" || level === "warning" || level === "error" ? level : "info",
    message,
  };
}

const causes: readonly [EngineFailure["cause"], RegExp][] = [
  ["disk_full", /[Nn]o space left on device/],
  ["port_busy", /address already in use|cannot bind/],
  ["memory", /out of memory|cannot allocate memory/],
  ["data_damaged", /xattr|structure needs cleaning|input\/output error/],
];

/** Cause of a failed start of a server or of the front, by the last lines that they printed. */
export function explainFailure(output: string): EngineFailure {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  for (const [cause, pattern] of causes) {
    const line = lines.find((each) => pattern.test(each));
    if (line !== undefined) return { cause, message: messageOf(line), parameter: undefined };
  }
  return { cause: "unknown", message: messageOf(lines.at(-1) ?? ""), parameter: undefined };
}

function messageOf(line: string): string {
  return parseLog(line)?.message ?? line.trim();
}
