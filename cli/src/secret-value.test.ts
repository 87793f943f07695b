import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { partial } from "@holdfast/testing/partial.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { UsageError } from "./exit-code.ts";
import { readSecrets } from "./secret-value.ts";
import { createTerminal } from "./terminal.ts";

const pem = "-----BEGIN PRIVATE KEY-----\nMIIE\nvQIB\n-----END PRIVATE KEY-----";
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "secret-value-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

function fileWith(bytes: string | Buffer): string {
  const path = join(directory, "value");
  writeFileSync(path, bytes);
  return path;
}

/** The secrets of a command whose standard input is this text. */
function read(ask: readonly string[], files: Readonly<Record<string, string>>, input = "") {
  const terminal = createTerminal(Readable.from([Buffer.from(input)]) as ReadStream, partial<WriteStream>({}));
  return readSecrets({ terminal }, { ask, files, titleOf: (name) => `Value of ${name}` });
}

test.each([
  ["a key with all its lines", `${pem}\n`, pem],
  ["line breaks of Windows at its end alone removed", "a\r\nb\r\n\r\n", "a\r\nb"],
  ["spaces and blank first lines kept", "\n a \n", "\n a "],
  ["a text without a line break", "a", "a"],
])("a secret from a file, and from standard input, is %s", async (_, text, value) => {
  expect(await read([], { KEY: fileWith(text) })).toEqual({ KEY: value });
  expect(await read([], { KEY: "-" }, text)).toEqual({ KEY: value });
});

test("secrets of files and of lines are read by one command", async () => {
  expect(await read(["A", "B"], { KEY: fileWith(pem) }, "1\n2\n")).toEqual({ KEY: pem, A: "1", B: "2" });
});

test.each([
  ["several lines as an answer", ["KEY"], {}, `${pem}\n`, "use --from-file KEY=FILE, or KEY=-"],
  ["no value", ["KEY"], {}, "\n", "KEY has no value"],
  ["an empty input", [], { KEY: "-" }, "\n", "KEY has no value"],
  ["a file and a request", ["KEY"], { KEY: "-" }, "", "its value is not requested"],
  ["two secrets of standard input", [], { KEY: "-", A: "-" }, "", "one secret"],
  ["a secret and lines of standard input", ["A"], { KEY: "-" }, "", "one secret"],
  ["a file that does not exist", [], { KEY: "/absent" }, "", "/absent: the file does not exist"],
  ["a directory", [], { KEY: "/tmp" }, "", "/tmp: EISDIR"],
] as const)("%s is refused", async (_, ask, files, input, message) => {
  const refused = read(ask, files, input);
  await expect(refused).rejects.toThrow(UsageError);
  await expect(refused).rejects.toThrow(message);
});

test("bytes that are no text are refused, before anything is sent", async () => {
  await expect(read([], { KEY: fileWith(Buffer.from([0x30, 0x82, 0xff])) })).rejects.toThrow("is not text in UTF-8");
});
