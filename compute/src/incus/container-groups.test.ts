import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { removeContainerGroups } from "./container-groups.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-groups-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it("removes the empty groups of one project from every tree, and no other project's", () => {
  const removed = [
    "memory/lxc.payload.holdfast-7_hf-a/init.scope",
    "cpu/lxc.monitor.holdfast-7_hf-b",
    "lxc.monitor.holdfast-7_hf-c",
  ];
  const stays = ["memory/lxc.payload.holdfast-77_hf-a", "memory/holdfast-7", "cpu/lxc.payload.web", "lxc.pivot"];
  for (const name of [...removed, ...stays]) mkdirSync(join(root, name), { recursive: true });
  // A stand-in for a group in use: its directory cannot be removed.
  const busy = join(root, "cpu/lxc.payload.holdfast-7_hf-busy");
  mkdirSync(busy);
  writeFileSync(join(busy, "process"), "");

  removeContainerGroups("holdfast-7", root);
  expect(removed.filter((name) => existsSync(join(root, name.split("/").slice(0, 2).join("/"))))).toEqual([]);
  expect(stays.filter((name) => !existsSync(join(root, name)))).toEqual([]);
  expect(existsSync(busy)).toBe(true);
});
