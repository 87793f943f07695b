import type { EngineFailure } from "../engine-driver.ts";
import { parseLog4jLine } from "../log4j-line.ts";

const causes: readonly [EngineFailure["cause"], RegExp][] = [
  ["disk_full", /No space left on device/],
  ["port_busy", /BindHttpException|BindTransportException|Address already in use|cannot bind/],
  ["memory", /OutOfMemoryError|Cannot allocate memory|There is insufficient memory/],
  ["configuration", /IllegalArgumentException|SettingsException|Failed to parse value|unknown setting/],
  ["data_damaged", /CorruptIndexException|CorruptStateException|TranslogCorruptedException|checksum failed/],
];

/** Cause of a failed start of the engine or its front, by the last lines that they printed. */
export function explainFailure(output: string): EngineFailure {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  for (const [cause, pattern] of causes) {
    const line = lines.find((each) => pattern.test(each));
    if (line === undefined) continue;
    const parameter = cause === "configuration" ? /setting \[([a-z][a-z._]+)\]/.exec(line)?.[1] : undefined;
    return { cause, message: messageOf(line), parameter };
  }
  const error = lines.findLast((line) => parseLog4jLine(line)?.level === "error") ?? lines.at(-1) ?? "";
  return { cause: "unknown", message: messageOf(error), parameter: undefined };
}

function messageOf(line: string): string {
  const message = parseLog4jLine(line)?.message ?? line.trim();
  // An exception is printed with the name of its class.
  return message.replace(/^(?:[a-z]\w*\.)+[A-Z]\w*: /, "");
}
