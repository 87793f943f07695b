import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { taskRequest } from "@holdfast/testing/engines/task-request.ts";
import { dial, helloOf, openSession } from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";

let installation: TestInstallation;
let survivor: TestController;

beforeAll(async () => {
  installation = await newInstallation();
  survivor = await startController(installation, "c-survivor", { limits: { checkIntervalMs: 100 } });
});
afterAll(() => installation?.close());

async function startDoomed(controllerId: string, leaseS = 2) {
  const { etcd, masterKey, directory } = installation;
  const settings = { controllerId, etcdUrl: etcd.url, masterKey: masterKey.toString("base64"), directory, leaseS };
  const program = join(import.meta.dirname, "../../../../testing/src/platform/controller-process.ts");
  const child = spawn(process.execPath, [program, JSON.stringify(settings)], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { child, address: line.toString().trim() };
}

test("tasks of a killed controller are delivered again elsewhere, and its presence ends", async () => {
  const { child, address } = await startDoomed("c-doomed");
  const identity = await survivor.newAgent("m-1");
  const { trustBundle } = survivor.authority;
  const session = openSession(dial({ address, trustBundle, identity }), helloOf("m-1"));
  await session.expect("welcome");
  await expect.poll(() => survivor.fleet.session("m-1")?.controllerId).toBe("c-doomed");

  const ids = Array.from({ length: 20 }, (_, n) => `t-${n}`);
  await Promise.all(ids.map((id) => survivor.fleet.submit("m-1", id, taskRequest)));
  const tasks = await Promise.all(ids.map((id) => session.expect("task", (task) => task.id === id)));
  // Half of the results are in flight when the controller with the stream is killed: each is stored and acknowledged,
  // or requested again.
  for (const { id } of tasks.slice(0, 10)) {
    session.send({ case: "taskResult", value: { taskId: id, output: { case: "listEngineUsers", value: {} } } });
  }
  child.kill("SIGKILL");
  await session.ended;
  await expect(survivor.fleet.run("m-1", taskRequest, 500)).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE" });

  const again = openSession(survivor.dial(identity), helloOf("m-1", ids));
  await again.expect("welcome");
  const settled = (id: string) => survivor.fleet.task(id)?.status === "completed";
  const isSent = (id: string) => again.received.some(({ frame }) => frame.case === "task" && frame.value.id === id);
  for (const id of ids) {
    // A result that the killed controller stored may reach the other one after the welcome.
    await expect.poll(() => settled(id) || isSent(id)).toBe(true);
    if (!isSent(id)) continue;
    again.send({ case: "taskResult", value: { taskId: id, output: { case: "listEngineUsers", value: {} } } });
    await again.expect("resultAck", ({ taskId }) => taskId === id);
  }
  await expect.poll(() => ids.every(settled)).toBe(true);
  again.close();
});

test("a killed controller's streams and address disappear within its lease", async () => {
  const { child, address } = await startDoomed("c-brief");
  const identity = await survivor.newAgent("m-2");
  const { trustBundle } = survivor.authority;
  const session = openSession(dial({ address, trustBundle, identity }), helloOf("m-2"));
  await session.expect("welcome");
  await expect.poll(() => survivor.fleet.controllers).toContain(address);
  child.kill("SIGKILL");
  await expect.poll(() => survivor.fleet.session("m-2")).toBeUndefined();
  await expect.poll(() => survivor.fleet.controllers).not.toContain(address);
});

test("a restarted controller has none of its earlier streams, before its old lease ends", async () => {
  const { child, address } = await startDoomed("c-again", 600);
  const identity = await survivor.newAgent("m-3");
  const { trustBundle } = survivor.authority;
  const session = openSession(dial({ address, trustBundle, identity }), helloOf("m-3"));
  await session.expect("welcome");
  await expect.poll(() => survivor.fleet.session("m-3")?.controllerId).toBe("c-again");
  child.kill("SIGKILL");
  const again = await startController(installation, "c-again");
  await expect.poll(() => survivor.fleet.session("m-3")).toBeUndefined();
  expect(again.fleet.session("m-3")).toBeUndefined();
  const next = openSession(again.dial(identity), helloOf("m-3"));
  await next.expect("welcome");
  await expect.poll(() => survivor.fleet.session("m-3")?.controllerId).toBe("c-again");
  next.close();
  await again.close();
});
