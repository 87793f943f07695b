import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { createIncusClient } from "@holdfast/compute/incus/incus-client.ts";
import { untilServing } from "@holdfast/compute/incus/incus-resources.ts";
import { openBoundedLog } from "@holdfast/local/bounded-log.ts";
import { startChild } from "@holdfast/local/child.ts";
import { incusChild, incusDirectory, incusSocket } from "@holdfast/local/incus-daemon.ts";
import { guardDirectory } from "../platform/directory-guard.ts";
import { claimIncusNumber } from "./incus-machines.ts";

/** A daemon of Incus of another user: with projects, pools, profiles and an instance of that user. */
export interface ForeignIncus {
  readonly socket: string;
  /** The daemon's own files: database, logs, pools. */
  readonly directory: string;
  /** All of its objects by its REST API: equal before and after a platform that touches only its own. */
  everything(): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

export async function startForeignIncus(): Promise<ForeignIncus> {
  const directory = incusDirectory(claimIncusNumber());
  const files = mkdtempSync(join(tmpdir(), "holdfast-foreign-"));
  const guards = [guardDirectory(directory), guardDirectory(files)];
  const signal = AbortSignal.timeout(600_000);
  const log = openBoundedLog(join(files, "incus.log"), { maxBytes: 1 << 20, filesMax: 1 });
  const daemon = startChild(incusChild(directory, files, { PATH: process.env["PATH"] ?? "" }), {
    log,
    print: () => undefined,
    monotonicMs: systemClock.monotonicMs,
  });
  const socket = incusSocket(directory);
  const projects = ["default", "foreign"];
  const [ofDefault, ofForeign] = projects.map((project) => createIncusClient({ socket }, project));
  if (ofDefault === undefined || ofForeign === undefined) throw new Error("there are two");
  await untilServing(ofDefault, signal);
  await ofDefault.call("POST", "/1.0/projects", signal, { name: "foreign", config: { "features.images": "true" } });
  await ofDefault.call("POST", "/1.0/storage-pools", signal, { name: "foreign", driver: "dir" });
  const root = { type: "disk", path: "/", pool: "foreign" };
  for (const [name, incus] of [
    ["first", ofDefault],
    ["second", ofForeign],
  ] as const) {
    await incus.call("POST", "/1.0/profiles", signal, {
      name: "foreign",
      config: { "user.kept": "yes" },
      devices: { root },
    });
    const instance = { name, source: { type: "none" }, profiles: ["foreign"] };
    await incus.run("POST", "/1.0/instances", signal, instance);
  }

  const collections = ["projects", "storage-pools", "profiles", "instances", "images", "networks", "certificates"];
  return {
    socket,
    directory,
    async everything() {
      const all: Record<string, unknown> = {};
      for (const [index, incus] of [ofDefault, ofForeign].entries()) {
        for (const path of collections)
          all[`${projects[index]} ${path}`] = await incus.call("GET", `/1.0/${path}?recursion=1`, signal);
        all["config"] = (await incus.call<{ config: unknown }>("GET", "/1.0", signal)).config;
      }
      return all;
    },
    async close() {
      for (const [name, incus] of [
        ["first", ofDefault],
        ["second", ofForeign],
      ] as const) {
        await incus.run("DELETE", `/1.0/instances/${name}`, signal);
        await incus.close();
      }
      await daemon.stop();
      rmSync(directory, { recursive: true, force: true });
      rmSync(files, { recursive: true, force: true });
      for (const guard of guards) await guard.end();
    },
  };
}
