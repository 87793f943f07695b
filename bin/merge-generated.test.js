import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { configureMerge, driver } from "./merge-generated.js";
import { checkout } from "./set-up.js";
import { sourceFiles } from "./source-files.js";

const page = "docs/reference/events.md";
const head = ["# Events", "", "introduction"];

let root;
const git = (...args) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
    cwd: root,
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: root, GIT_CONFIG_NOSYSTEM: "1" },
    stdio: ["ignore", "pipe", "ignore"],
  });
const write = (lines) => {
  mkdirSync(dirname(join(root, page)), { recursive: true });
  writeFileSync(join(root, page), `${lines.join("\n")}\n`);
};
const commit = (lines) => {
  write(lines);
  git("add", "-A");
  git("commit", "-q", "-m", "a change");
};

describe.skipIf(spawnSync("git", ["--version"]).status !== 0)("merges of generated files", () => {
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "holdfast-merge-"));
    git("init", "-q", "-b", "main");
    copyFileSync(join(checkout, ".gitattributes"), join(root, ".gitattributes"));
    commit([...head, "| last |", "", "end"]);
    git("switch", "-q", "-c", "mysql");
    commit(["# Events", "", "introduction of mysql", "| last |", "| mysql |", "", "end"]);
    git("switch", "-q", "main");
    commit([...head, "| last |", "| kafka |", "", "end"]);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  test("without its configuration, two branches with additions to a page conflict", () => {
    expect(() => git("merge", "-q", "mysql")).toThrow();
  });

  test("with it they merge: lines that do not conflict of both, those that do of the current branch", () => {
    configureMerge(root);
    configureMerge(root);
    git("merge", "-q", "-m", "merge", "mysql");
    expect(readFileSync(join(root, page), "utf8").split("\n").slice(0, 5)).toEqual([
      "# Events",
      "",
      "introduction of mysql",
      "| last |",
      "| kafka |",
    ]);
    expect(git("status", "--porcelain")).toBe("");
  });

  test("a rebase needs no hand either, and an outdated command is replaced", () => {
    git("config", `merge.${driver}.driver`, "false");
    configureMerge(root);
    git("switch", "-q", "mysql");
    git("rebase", "-q", "main");
    expect(readFileSync(join(root, page), "utf8")).not.toMatch(/^[<=>]{7}/m);
  });

  test("a directory without git is left alone", () => {
    rmSync(join(root, ".git"), { recursive: true });
    configureMerge(root);
    expect(() => readFileSync(join(root, ".git", "config"))).toThrow();
  });

  test("every printed file is merged so, and no other", () => {
    const printed = [
      ...sourceFiles("proto/gen"),
      ...["cli", "events", "metrics", "settings", "states"].flatMap((name) => sourceFiles(`docs/reference/${name}`)),
      ...["cli", "errors", "events", "metrics", "settings", "states"].map((name) => `docs/reference/${name}.md`),
      "docs/development/adr/README.md",
      ...["methods", "requests", "responses"].map((name) => `sdk/src/${name}.ts`),
      "gateway/src/openapi/proto-comments.ts",
    ];
    const others = [
      "docs/reference/api.md",
      "sdk/src/index.ts",
      "proto/holdfast/v1/app.proto",
      "docs/development/adr/0002-dependencies.md",
    ];
    const { stdout } = spawnSync("git", ["check-attr", "merge", "--", ...printed, ...others], {
      cwd: root,
      encoding: "utf8",
    });
    const merged = stdout.split("\n").flatMap((line) => /^(.+): merge: holdfast-generated$/.exec(line)?.[1] ?? []);
    expect(merged.toSorted()).toEqual(printed.toSorted());
  });
});
