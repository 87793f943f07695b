import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema, Lane, TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { startFakeController } from "../platform/fake-controller.ts";
import { connectPostgresql, scramVerifier } from "./engine-clients.ts";
import { testMachineSpec } from "../machines/machine-spec.ts";
import { startTestMachines } from "../machines/process-machines.ts";
import { waitUntil } from "../wait-until.ts";

/**
 * A machine of the process provider where there are no namespaces, with the installed engine: creates it, enrolls it
 * and creates a database. Prints the result of a user's query. `node host-engine-worker.ts PORT`.
 */
const port = Number(process.argv[2]);
const controller = await startFakeController();
const machines = await startTestMachines({
  command: ({ node, checkout }) => [node, join(checkout, "agent/keeper/main.ts")],
});
const { signal } = new AbortController();
const { id } = testMachineSpec();
try {
  await machines.provider.create(testMachineSpec({ id }), signal);
  const token = randomBytes(16).toString("hex");
  controller.tokens.add(token);
  const { address, caFingerprint, installationId } = controller;
  await machines.provider.start(id, { installationId, controllers: [address], caFingerprint, token }, signal);
  await waitUntil("the agent is connected", () => controller.hellos.length > 0);
  const instance = create(InstanceSpecSchema, {
    serviceId: "s-1",
    nodeId: "n-1",
    engine: "postgresql",
    version: "17",
    generation: 1n,
    term: 1n,
    running: true,
    vcpu: 1,
    memoryBytes: 1n << 30n,
    storageBytes: 1n << 30n,
    allowedCidrs: ["127.0.0.0/8"],
    address: "127.0.0.1",
    port,
    users: [{ username: "app_user", role: "admin", verifier: scramVerifier("secret") }],
    databases: ["defaultdb"],
  });
  const result = await controller.perform({
    ownerId: "s-1",
    generation: 1n,
    term: 1n,
    lane: Lane.CONTROL,
    class: TaskClass.QUICK,
    input: { case: "convergeInstance", value: { instance } },
  });
  if (result.failure !== undefined) throw new Error(result.failure.message);
  const ca = await readFile(join(machines.layout.machine(id).state, "instance/tls/ca.crt"), "utf8");
  const endpoint = { ca, serverName: "db.local.test", instance: { spec: { address: "127.0.0.1", port } } };
  const client = await connectPostgresql(endpoint, { user: "app_user", password: "secret" });
  const { rows } = await client.query<{ version: string }>("SELECT current_setting('server_version') AS version");
  console.log(`answered by ${rows[0]?.version}`);
  await client.end();
} finally {
  await machines.close();
  await controller.close();
}
