import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, describe, expect, it, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createEngineMembers, replicationOf } from "@holdfast/testing/engines/engine-members.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { program } from "../layout.ts";
import { rangeOf } from "./discarded.ts";

const diverged = "pg_rewind: servers diverged at WAL location 0/3000148 on timeline 1\n";

test.each([
  ["continues after it diverged from the primary's", diverged, "0/4000028", { from: 0x3000148n, to: 0x4000028n }],
  ["ends where it diverged", diverged, "0/3000148", undefined],
  ["is contained in the primary's", `${diverged}pg_rewind: no rewind required\n`, "0/3000148", undefined],
  ["has an unknown end", diverged, undefined, undefined],
])("log that %s", (_, output, end, range) => {
  expect(rangeOf(output, end)).toEqual(range);
});

const password = "secret";
const user = create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier(password) });
const limitBytes = 64 << 20;

for (const version of ["17", "18"])
  describe.skipIf(!hasEngine("postgresql", version))(`two members of PostgreSQL ${version}`, () => rewinds(version));

function rewinds(version: string): void {
  const members = createEngineMembers(version, { users: [user] });
  const { start, follow } = members;
  afterAll(() => members.remove());

  const untilFollows = (member: EngineMachine) =>
    waitUntil(
      "it follows",
      async () => (await replicationOf(member).status(member.instance, member.signal)).streaming,
      {
        describe: async () => member.output(),
      },
    );

  async function query(member: EngineMachine, sql: string): Promise<unknown[]> {
    const client = await connectPostgresql(member, { user: "app_user", password });
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  it("save the log that only the old primary had, and follow without it", async () => {
    const { primary: old, replica: next } = await members.startPair();
    await untilFollows(next);
    await next.stop();
    await query(old, "CREATE TABLE only_there AS SELECT repeat(md5(i::text), 8) FROM generate_series(1, 80000) AS i");
    await old.stop("SIGKILL");

    follow(old, next);
    await start(next);
    const directory = join(old.instance.paths.data, "discarded");
    const save = (limit: number) =>
      replicationOf(old).saveDiscarded(old.instance, { directory, limitBytes: limit }, old.signal);
    await old.writeConfig();
    const cut = await save(1 << 20);
    expect(cut?.savedBytes).toBe(0);
    const saved = await save(limitBytes);
    expect(saved?.bytes).toBeGreaterThan(16 << 20);
    expect(saved?.savedBytes).toBe(saved?.bytes);
    const [first] = (await readdir(directory)).toSorted();
    const range = [`--start=${saved?.from}`, "--limit=1"];
    const read = await old.run([program(old.instance, "pg_waldump"), ...range, join(directory, first ?? "")], {
      signal: old.signal,
    });
    expect(read).toContain("lsn:");

    await replicationOf(old).rewind(old.instance, old.signal);
    await start(old);
    await untilFollows(old);
    expect(await query(old, "SELECT to_regclass('only_there') AS there")).toEqual([{ there: null }]);
  });
}
