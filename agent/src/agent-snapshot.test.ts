import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { RestoreSourceSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { Lane, TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { valkeyClient, valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/store.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const skipped = whyNoAgentMachine("valkey", "8.1");
const password = "a-password-of-the-test";
const newPassword = "another-password";

describe.skipIf(skipped !== undefined)(
  `snapshots of Valkey${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let store: TestStore;
    let source: AgentMachine;
    let target: AgentMachine;
    const key = { id: "k-1", secret: randomBytes(32).toString("base64") };
    const quick = { lane: Lane.CONTROL, class: TaskClass.QUICK };

    beforeAll(async () => {
      store = await startTestStore();
      const machine = (secret: string) =>
        startAgentMachine({
          engine: "valkey",
          version: "8.1",
          spec: { users: [{ username: "app_user", role: "admin", verifier: valkeyVerifier(secret) }] },
        });
      [source, target] = await Promise.all([machine(password), machine(newPassword)]);
      for (const each of [source, target]) each.controller.signer = store.signer;
      expect((await source.converge()).failure).toBeUndefined();
    });
    afterAll(async () => {
      await Promise.all([source?.remove(), target?.remove()]);
      await store?.remove();
    });
    beforeEach(() => onTestFailed(() => console.log(source.log(), target.log())));

    const enter = (machine: AgentMachine, secret: string) =>
      valkeyClient(machine.endpoint, { user: "app_user", password: secret });

    test("a snapshot is stored without a copy on disk, and restored with other passwords", async () => {
      const writer = await enter(source, password);
      for (let i = 0; i < 200; i += 1) await writer.write(`key-${i}`, randomBytes(2_000).toString("hex"));
      await writer.write("kept", "7");
      const value = { backupId: "b-1", attempt: 1, kind: "snapshot", key };
      const input = { case: "startBackup" as const, value };
      expect((await source.controller.perform({ ...source.header, ...quick, input })).failure).toBeUndefined();
      const seen = () => source.controller.observations.at(-1)?.backup;
      await waitUntil("the snapshot is over", () => seen() !== undefined && seen()?.state !== "running");
      expect(seen()).toMatchObject({ state: "stored", error: "", fromPosition: "" });
      await writer.write("kept", "8");
      await writer.close();
      const restore = create(RestoreSourceSchema, {
        restoreId: "r-1",
        serviceId: "s-1",
        backup: { backupId: "b-1", attempt: 1, key, manifestSha256: seen()?.manifestSha256 ?? "" },
        target: { target: { case: "backupEnd", value: true } },
      });
      expect((await target.converge({ source: restore })).failure).toBeUndefined();
      const reader = await enter(target, newPassword);
      expect(await reader.read("kept")).toBe("7");
      expect((await reader.read("key-199"))?.length).toBe(4_000);
      await reader.write("after", "1");
      await reader.close();
      await expect(enter(target, password)).rejects.toThrow("WRONGPASS");
      expect((await target.converge({ source: restore, restartCount: 1n })).failure).toBeUndefined();
      const again = await enter(target, newPassword);
      expect([await again.read("kept"), await again.read("after")]).toEqual(["7", "1"]);
      await again.close();
    });

    test("a backup changed in the store is refused, and its machine never runs", async () => {
      const parts = await store.objects.list("services/s-1/backups/b-1/1/dump.rdb/", { limit: 10 });
      const [part] = parts.objects;
      if (part === undefined) throw new Error("there is no part");
      const before = await Array.fromAsync((await store.objects.get(part.key)) ?? []);
      const changed = Buffer.concat(before);
      changed.writeUInt8(changed.readUInt8(changed.length >> 1) ^ 1, changed.length >> 1);
      await store.objects.put(
        part.key,
        (async function* () {
          yield changed;
        })(),
      );
      const restore = create(RestoreSourceSchema, {
        restoreId: "r-2",
        serviceId: "s-1",
        backup: {
          backupId: "b-1",
          attempt: 1,
          key,
          manifestSha256: source.controller.observations.at(-1)?.backup?.manifestSha256 ?? "",
        },
      });
      const result = await target.converge({ source: restore });
      expect(result.failure?.message).toContain("unable to authenticate");
      await waitUntil("it is reported", () => target.controller.observations.at(-1)?.restore?.errorCode === "damaged");
      expect(target.controller.observations.at(-1)?.restore?.damagedObject).toBe(part.key);
      expect(target.controller.observations.at(-1)?.state).not.toBe("running");
      // Not without a source either: the data are neither the old ones nor the restored ones.
      const without = await target.converge();
      expect(without.failure?.message).toContain("an unfinished restore");
    });
  },
);
