import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import type { BackupFacet } from "@holdfast/agent/engines/backup-facet.ts";
import type { Instance } from "@holdfast/agent/engines/instance.ts";
import { send, type User } from "./protocol.ts";

type Values = Readonly<Record<string, string>>;

const shards = 3;
const shardOf = (key: string) => Buffer.from(key).reduce((sum, byte) => sum + byte, 0) % shards;
const nameOf = (shard: number) => `shard-${shard}.json`;
const directoryOf = ({ paths }: Instance) => join(paths.data, "cluster");
const partsOf = (instance: Instance) => `${directoryOf(instance)}.parts`;

/** Snapshots of several streams, one for each shard, as an engine with many members has. */
export function createClusterBackup(memberOf: (instance: Instance) => string): BackupFacet {
  return {
    kind: "snapshot",
    // Settings that admit no client end all sessions as soon as they are reloaded.
    untilNoClients: async () => undefined,
    async open(instance, signal) {
      const { version } = await send<{ version: string }>(memberOf(instance), { op: "info" }, signal);
      const dataTime = new Date();
      const all = Object.entries(await send<Values>(memberOf(instance), { op: "dump" }, signal));
      async function* bytesOf(shard: number): AsyncGenerator<Buffer> {
        signal.throwIfAborted();
        yield Buffer.from(JSON.stringify(Object.fromEntries(all.filter(([key]) => shardOf(key) === shard))));
      }
      return {
        streams: Array.from({ length: shards }, (_, shard) => ({ name: nameOf(shard), bytes: bytesOf(shard) })),
        totalBytes: 0,
        end: async () => ({ version, dataTime, positions: null }),
        close: async () => undefined,
      };
    },
    restore: {
      async unpack(instance, stream, bytes, signal) {
        if (!/^shard-\d+\.json$/.test(stream)) throw new Error(`a backup of a cluster has no ${stream}`);
        const content = await buffer(bytes);
        signal.throwIfAborted();
        await mkdir(partsOf(instance), { recursive: true });
        await writeFile(join(partsOf(instance), stream), content);
      },
      async finish(instance, { target, report }) {
        if (target.kind !== "backup_end") throw new Error("a snapshot can only be restored to the end of the backup");
        report({ step: "recovering", position: "", reachedTime: undefined });
        const end = { position: "", reachedTime: undefined, lockedUsers: [] };
        if (existsSync(directoryOf(instance))) return end;
        const values: Values = Object.assign({}, ...(await valuesIn(instance)));
        const users: Record<string, User> = Object.fromEntries(
          instance.spec.users.map(({ username, role, verifier }) => [username, { role, verifier }]),
        );
        await writeFile(join(partsOf(instance), "state.json"), JSON.stringify({ values, users }));
        await rename(partsOf(instance), directoryOf(instance));
        for (let shard = 0; shard < shards; shard += 1) await rm(join(directoryOf(instance), nameOf(shard)));
        return end;
      },
    },
    async examine(instance) {
      const state = JSON.parse(await readFile(join(directoryOf(instance), "state.json"), "utf8")) as { values: Values };
      const detail = `${Object.keys(state.values).length} values`;
      return [{ name: "contents", passed: true, detail }];
    },
  };
}

async function valuesIn(instance: Instance): Promise<Values[]> {
  const names = (await readdir(partsOf(instance))).filter((name) => name.startsWith("shard-"));
  if (names.length !== shards) throw new Error(`${names.length} of ${shards} shards are there`);
  return Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(partsOf(instance), name), "utf8")) as Values),
  );
}
