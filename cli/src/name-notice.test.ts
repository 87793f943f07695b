import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { partial } from "@holdfast/testing/partial.ts";
import type { Context } from "./context.ts";
import { noteUnresolvedName } from "./name-notice.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-notice-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Notes for a name, with a getent that ends with the exit code. */
async function notesFor(code: number | undefined, dataDirectory: string | undefined): Promise<string[]> {
  const notes: string[] = [];
  const shell = '#!/bin/sh\n[ "$1 $2" = "ahosts orders.test" ] && [ -z "$HOLDFAST_TOKEN" ]';
  if (code !== undefined) writeFileSync(join(directory, "getent"), `${shell} && exit ${code}\n`, { mode: 0o755 });
  await noteUnresolvedName(
    partial<Context>({
      settings: { dataDirectory },
      environment: { PATH: directory, HOLDFAST_TOKEN: "secret" },
      program: "./bin/holdfast.js",
      note: (text) => void notes.push(text),
    }),
    "orders.test",
  );
  return notes;
}

test("a name of the local installation that does not resolve gets one line with the command", async () => {
  expect(await notesFor(2, "/data")).toEqual([
    "orders.test does not resolve on this host yet; as root: ./bin/holdfast.js dns install",
  ]);
});

test.each([
  ["resolves", 0, "/data"],
  ["is of another host's installation", 2, undefined],
  ["cannot be looked up here", undefined, "/data"],
])("nothing is said of a name that %s", async (_, code, dataDirectory) => {
  expect(await notesFor(code, dataDirectory)).toEqual([]);
});
