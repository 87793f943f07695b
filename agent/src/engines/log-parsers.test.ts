import { expect, test } from "vitest";
import type { ParsedLogLine } from "./engine-driver.ts";
import { parseLog as parseFiles } from "./files/log.ts";
import { parseLog4jLine } from "./log4j-line.ts";
import { parseLog as parseMysql } from "./mysql/log.ts";
import { parseLog as parsePostgresql } from "./postgresql/log.ts";
import { parseLog as parseValkey } from "./valkey/log.ts";

// Users choose parts of an engine's messages, such as a statement with an error.
const message = "10%\r20% a\u2028b\u2029c\u0085d";

test.each<[string, (line: string) => ParsedLogLine | undefined, string]>([
  ["files", parseFiles, "2026/11/29 09:05:37 WARNING: "],
  ["log4j", parseLog4jLine, "2026-11-28 21:07:52,186 WARN "],
  ["mysql", parseMysql, "2026-11-28T15:54:24.894452Z 0 [Warning] [MY-010931] [Server] "],
  ["postgresql", parsePostgresql, "1764318337.160 [42] WARNING:  "],
  ["valkey", parseValkey, "1:M 21 Nov 2026 09:05:37.160 # "],
])("a message of %s with separators of lines other than a newline keeps its head", (_, parse, head) => {
  expect(parse(`${head}${message}`)).toMatchObject({ level: "warning", message });
});
