import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import type { EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { createOpensearchMachine } from "@holdfast/testing/engines/opensearch-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readJsonFrames } from "../../json-frames.ts";
import { call } from "../api.ts";
import { repositoryDirectory } from "../layout.ts";
import { snapshotPath } from "./repository.ts";
import { openSnapshot } from "./snapshot.ts";

const skip = await requireRecipes(import.meta.filename, "opensearch");
const mib = 1 << 20;
const [documents, documentBytes] = [24, mib];
const longMs = 600_000;

interface Header {
  readonly kind: string;
  readonly bytes?: number;
}

describe.skipIf(skip !== undefined)("a snapshot of OpenSearch", { timeout: longMs }, () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    machine = await createOpensearchMachine("127.9.51.21");
    await machine.bringUp();
    // Random texts, which the engine cannot compress, in fields that it does not index.
    const mappings = { properties: { text: { type: "binary" } } };
    const settings = { number_of_replicas: 0 };
    await call(machine.instance, { method: "PUT", path: "/wide", body: { mappings, settings } }, machine.signal);
    for (let n = 0; n < documents; n += 1) {
      const body = { text: randomBytes(documentBytes).toString("base64") };
      await call(machine.instance, { method: "PUT", path: `/wide/_doc/${n}`, body }, machine.signal);
    }
  }, longMs);
  afterAll(() => machine?.remove(), longMs);

  const signal = AbortSignal.timeout(longMs);
  const spoolBytes = async () =>
    Number.parseInt(
      await machine.run(["du", "--summarize", "--block-size=1", repositoryDirectory(machine.instance)], { signal }),
      10,
    );
  const isCanceled = () =>
    call(machine.instance, { method: "GET", path: snapshotPath }, signal).then(
      () => false,
      () => true,
    );

  it("takes a part of the disk, and is repeated more slowly for a store that is slower", async () => {
    const limitBytes = 8 * mib;
    const source = await openSnapshot({ run: machine.run }, machine.instance, signal, { limitBytes });
    let [restarts, bytes, peak] = [0, 0, 0];
    try {
      const [stream] = source.streams;
      if (stream === undefined) throw new Error("there is no stream");
      let hasWaited = false;
      for await (const { header } of readJsonFrames<Header>(stream.bytes, ({ kind, bytes: count = 0 }) =>
        kind === "part" ? count : 0,
      )) {
        if (header.kind === "restart") [restarts, bytes] = [restarts + 1, 0];
        if (header.kind !== "part") continue;
        bytes += header.bytes ?? 0;
        peak = Math.max(peak, await spoolBytes());
        if (hasWaited) continue;
        hasWaited = true;
        await waitUntil("the engine's snapshot is canceled", isCanceled, { withinMs: longMs, everyMs: 100 });
      }
    } finally {
      await source.close();
    }
    expect(restarts).toBeGreaterThanOrEqual(1);
    expect(bytes).toBeGreaterThan(documents * documentBytes);
    // The engine writes on until it notices that the snapshot is canceled.
    expect(peak).toBeLessThan(2 * limitBytes);
    expect(existsSync(repositoryDirectory(machine.instance))).toBe(false);
  });

  it("is removed if nothing reads it and it fills the disk", async () => {
    await openSnapshot({ run: machine.run }, machine.instance, signal, { limitBytes: 1_000 * mib });
    await waitUntil("the snapshot has data", async () => (await spoolBytes()) > 10 * mib, { withinMs: longMs });
    const reclaim = (totalBytes: number) =>
      machine.driver.reclaimSpace?.(machine.instance, { totalBytes, writableBytes: totalBytes }, signal);
    await reclaim(60 * mib);
    expect(existsSync(repositoryDirectory(machine.instance))).toBe(false);
    expect(await isCanceled()).toBe(true);
  });
});
