import type { EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { createOpensearchMachine } from "@holdfast/testing/engines/opensearch-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, call } from "./api.ts";
import { openSnapshot, snapshotStream } from "./backup/snapshot.ts";
import { primaryBytes } from "./figures.ts";

const skip = await requireRecipes(import.meta.filename, "opensearch");
const longMs = 300_000;

/** Settings of indices that the engine leaves out of calls about all indices, or that make it refuse those. */
const blocks = {
  "metadata-blocked": { "index.blocks.metadata": true },
  "read-only": { "index.blocks.read_only": true },
  "read-blocked": { "index.blocks.read": true },
  "write-blocked": { "index.blocks.write": true },
  deletable: { "index.blocks.read_only_allow_delete": true },
} as const;
const names = [".hidden", "closed", ...Object.keys(blocks), "orders"].toSorted();

describe.skipIf(skip !== undefined)("indices of opensearch that are closed or blocked", { timeout: longMs }, () => {
  let machine: EngineMachine;
  let copy: EngineMachine;
  const send = (request: Call, at = machine) => call(at.instance, request, at.signal);

  beforeAll(async () => {
    machine = await createOpensearchMachine("127.9.51.31");
    copy = await createOpensearchMachine("127.9.51.32");
    await machine.bringUp();
    for (const name of names) {
      const settings = { hidden: name.startsWith(".") };
      await send({ method: "PUT", path: `/${name}`, body: { settings } });
      await send({ method: "PUT", path: `/${name}/_doc/1?refresh=true`, body: { name } });
    }
    await send({ method: "POST", path: "/closed/_close" });
    for (const [name, body] of Object.entries(blocks)) await send({ method: "PUT", path: `/${name}/_settings`, body });
  }, longMs);
  afterAll(async () => {
    await machine?.remove();
    await copy?.remove();
  }, longMs);

  const list = async (at = machine) => at.driver.indices?.list(at.instance, at.signal);
  const drop = async (name: string) => machine.driver.indices?.drop(machine.instance, name, machine.signal);

  it("are listed with their figures", async () => {
    const listed = await list();
    expect(listed?.map(({ name }) => name)).toEqual(names);
    for (const { name, health, documents, shards, replicas } of listed ?? []) {
      const isOpen = name !== "closed";
      const expected = { health: isOpen ? "green" : "", documents: isOpen ? 1 : 0, shards: 1, replicas: 0 };
      expect({ health, documents, shards, replicas }, name).toEqual(expected);
    }
    expect(await primaryBytes(machine.instance, machine.signal)).toBeGreaterThan(names.length * 100);
  });

  it("do not concern the deletion of others, and are not deleted while a block protects them", async () => {
    await send({ method: "PUT", path: "/other" });
    expect(await drop("other")).toEqual({ existed: true });
    for (const name of ["metadata-blocked", "read-only"])
      await expect(drop(name), name).rejects.toMatchObject({
        name: "EngineRefused",
        message: expect.stringContaining(`index [${name}] blocked by`),
      });
    expect((await list())?.map(({ name }) => name)).toEqual(names);
  });

  it("are in a backup, with their blocks in its copy", async () => {
    const { instance, run, signal } = machine;
    const source = await openSnapshot({ run }, instance, signal);
    const [stream] = source.streams;
    if (stream === undefined) throw new Error("there is no stream");
    const frames: Uint8Array[] = [];
    for await (const bytes of stream.bytes) frames.push(bytes);
    await source.end();
    await source.close();
    const { backup } = copy.driver;
    const limit = AbortSignal.timeout(longMs);
    const findings = await copy.asComponent(async () => {
      await backup?.restore.unpack(copy.instance, snapshotStream, iterate(frames), limit);
      const target = { kind: "backup_end" } as const;
      await backup?.restore.finish(copy.instance, { target, report: () => undefined } as never, limit);
      return backup?.examine?.(copy.instance, undefined as never, limit);
    });
    expect(findings).toMatchObject([{ name: "contents", passed: true }]);
    expect(findings?.[0]?.detail).toContain(`with ${names.length} documents`);
    await copy.bringUp();
    const listed = await list(copy);
    expect(listed?.map(({ name, documents }) => [name, documents])).toEqual(names.map((name) => [name, 1]));
    const write = send({ method: "PUT", path: "/read-only/_doc/2", body: {} }, copy);
    await expect(write).rejects.toThrow("index [read-only] blocked by");
  });

  it("fail a backup with the engine's reason and their name while they lack a primary shard", async () => {
    const settings = { "index.routing.allocation.include._name": "absent" };
    await send({ method: "PUT", path: "/lost?wait_for_active_shards=0", body: { settings } });
    const isRed = async () => (await list())?.some(({ name, health }) => name === "lost" && health === "red");
    await waitUntil("the index is red", isRed);
    const { instance, run, signal } = machine;
    await expect(openSnapshot({ run }, instance, signal)).rejects.toMatchObject({
      name: "SourceRefused",
      message: "OpenSearch refused the snapshot: Indices don't have primary shards [lost]",
    });
    expect(await drop("lost")).toEqual({ existed: true });
  });
});

async function* iterate<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}
