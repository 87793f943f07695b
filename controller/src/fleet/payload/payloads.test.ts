import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { taskRequest } from "@holdfast/testing/engines/task-request.ts";
import {
  helloOf,
  openSession,
  readPayload,
  type TestSession,
  writePayload,
} from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";

let installation: TestInstallation;
let controller: TestController;

beforeAll(async () => {
  installation = await newInstallation();
  controller = await startController(installation, "c-1", {
    limits: { payloadBytes: 32 << 20, payloadBytesPerSecond: 32 << 20 },
  });
});
afterAll(() => installation?.close());

async function open(machineId: string) {
  const client = controller.dial(await controller.newAgent(machineId));
  const session = openSession(client, helloOf(machineId));
  await session.expect("welcome");
  return { client, session };
}

/** Performs CopyPayload like an agent, and completes other tasks immediately. */
function working(client: Parameters<typeof readPayload>[0], session: TestSession): void {
  session.call.on("data", ({ frame }: TestSession["received"][number]) => {
    if (frame.case !== "task") return;
    const { id: taskId, input } = frame.value;
    if (input.case !== "copyPayload") {
      session.send({ case: "taskResult", value: { taskId, output: { case: "listEngineUsers", value: {} } } });
      return;
    }
    const blocks = readPayload(client, input.value.payload?.id ?? "") as AsyncIterable<{ data: Uint8Array }>;
    void writePayload(
      client,
      (async function* () {
        for await (const { data } of blocks) yield data;
      })(),
    ).then((payload) =>
      session.send({ case: "taskResult", value: { taskId, output: { case: "copyPayload", value: { payload } } } }),
    );
  });
}

const control = { ...taskRequest, deadlineMs: 60_000 };

test("30 MB are sent to a machine and back while control tasks are answered", async () => {
  const { client, session } = await open("carrier");
  working(client, session);
  const transfer = controller.fleet.probeTransfer("carrier", 30_000_000);
  let over = false;
  const done = transfer.finally(() => {
    over = true;
  });
  let answered = 0;
  while (!over) {
    await controller.fleet.run("carrier", control, 60_000);
    answered += 1;
    // Time: the rate of the results, which is below the limit of frames.
    await sleep(2);
  }
  expect((await done).sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(answered).toBeGreaterThan(10);
  session.close();
});

test("a payload is returned unchanged, and only to its own machine", async () => {
  const { client, session } = await open("owner");
  const { client: other, session: otherSession } = await open("other");
  const bytes = randomBytes(200_000);
  const ref = await writePayload(
    client,
    (async function* () {
      yield bytes.subarray(0, 70_000);
      yield bytes.subarray(70_000);
    })(),
  );
  expect(ref).toMatchObject({ sizeBytes: 200_000n, sha256: createHash("sha256").update(bytes).digest("hex") });
  const back: Uint8Array[] = [];
  for await (const { data } of readPayload(client, ref.id) as AsyncIterable<{ data: Uint8Array }>) back.push(data);
  expect(Buffer.concat(back).equals(bytes)).toBe(true);
  for (const id of [ref.id, `../owner/${ref.id}`]) {
    const [error] = (await once(readPayload(other, id).resume(), "error")) as [{ code: number }];
    expect(error.code).toBe(5);
  }
  session.close();
  otherSession.close();
});

test("an interrupted or too large payload leaves no object", async () => {
  const { client, session } = await open("breaks");
  const tooLarge = writePayload(
    client,
    (async function* () {
      for (let n = 0; n < 70; n += 1) yield Buffer.alloc(1 << 20);
    })(),
  );
  await expect(tooLarge).rejects.toThrow("has at most");
  const broken = writePayload(
    client,
    (async function* () {
      yield randomBytes(1_000_000);
      throw new Error("the machine died");
    })(),
  );
  await expect(broken).rejects.toThrow("the machine died");
  const objects = createDirectoryStore(installation.directory);
  await expect.poll(async () => (await objects.list("payloads/breaks/", { limit: 10 })).objects).toEqual([]);
  session.close();
});
