import { mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { expect, test } from "vitest";
import { linkTo } from "./link-to.ts";

test("a link replaces nothing, another link, and the file of an engine whose restore was interrupted", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-link-"));
  const path = join(directory, "opensearch.yml");
  let runs = 0;
  const deps = {
    runAsEngine: async ([program = "", ...args]: readonly string[]) => {
      runs += 1;
      return (await runProgram(program, args)).stdout;
    },
  };
  const signal = AbortSignal.timeout(60_000);
  const before = [
    () => undefined,
    () => symlinkSync("/elsewhere", path),
    () => writeFileSync(path, "network.host: 127.0.0.1\n"),
  ];
  for (const prepare of before) {
    rmSync(path, { force: true });
    prepare();
    await linkTo(deps, path, "/target", signal);
    expect(readlinkSync(path)).toBe("/target");
  }
  await linkTo(deps, path, "/target", signal);
  expect(runs).toBe(before.length);
  rmSync(directory, { recursive: true });
});
