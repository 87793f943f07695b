import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { editSource, parseModules } from "./go-program.ts";

const output = `/build/gosh: go1.26.8
\tpath\tmvdan.cc/sh/v3/cmd/gosh
\tmod\tmvdan.cc/sh/v3\tv3.10.0\th1:own=
\tdep\tgolang.org/x/sys\tv0.26.0\th1:sys=
\tdep\texample.com/old\tv1.0.0
\t=>\texample.com/fork\tv1.0.1\th1:fork=
\tdep\tgolang.org/x/term\tv0.25.0\th1:term=
\tbuild\t-compiler=gc
`;

test("a program has its modules and the standard library; a replacement counts for what it replaces", () => {
  expect(parseModules(output)).toEqual([
    { name: "std", version: "1.26.8" },
    { name: "golang.org/x/sys", version: "v0.26.0", sum: "h1:sys=" },
    { name: "example.com/fork", version: "v1.0.1", sum: "h1:fork=" },
    { name: "golang.org/x/term", version: "v0.25.0", sum: "h1:term=" },
  ]);
  expect(parseModules("not a Go program")).toEqual([]);
});

test("a source is edited where a text is once, and a changed file says so", async () => {
  const source = mkdtempSync(join(tmpdir(), "holdfast-source-"));
  const read = () => readFileSync(join(source, "a.go"), "utf8");
  try {
    writeFileSync(join(source, "a.go"), "package a\nvar one = 1\nvar two = 1\n");
    const edit = (before: string, after: string) => editSource(source, [{ file: "a.go", before, after }]);
    await edit("one = 1", "one = $1");
    expect(read()).toBe("// This file was changed for Holdfast.\npackage a\nvar one = $1\nvar two = 1\n");
    await expect(edit("var", "const")).rejects.toThrow("a.go has this text 2 times instead of once: var");
    await expect(edit("three", "3")).rejects.toThrow("0 times");
  } finally {
    rmSync(source, { recursive: true });
  }
});
