import { parseArgs } from "node:util";
import { create } from "@bufbuild/protobuf";
import { createMongodbDriver } from "@holdfast/agent/engines/mongodb/driver.ts";
import { documentsSocket } from "@holdfast/agent/engines/mongodb/layout.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { clientListener, openMongodb, openMongodbAt, targetOf } from "@holdfast/testing/engines/mongodb-clients.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { median, ms, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// MongoDB's API: a new service beside its engine without the platform; inserts and finds of a driver beside FerretDB
// alone, at its socket without TLS (as root).
const { values } = parseArgs({
  options: {
    only: { type: "string", default: "service,commands" },
    rounds: { type: "string", default: "5" },
    operations: { type: "string", default: "2000" },
  },
});
const only = new Set(values.only.split(","));
const [rounds, operations] = [Number(values.rounds), Number(values.operations)];
const longMs = 900_000;
const login = { user: "app_user", password: "a password" };

printHost();
if (only.has("service")) await measureService();
if (only.has("commands")) await measureCommands();
process.exit(0);

async function makeMachine(): Promise<EngineMachine> {
  const [port = 0] = await freePorts(1);
  const user = create(EngineUserSchema, {
    username: login.user,
    role: "admin",
    verifier: scramVerifier(login.password),
  });
  const settings = { users: [user], listeners: [clientListener(port)], memoryBytes: 2n << 30n };
  const machine = await createEngineMachine(
    async (deps) => createMongodbDriver(deps),
    "mongodb",
    "ferretdb-2",
    settings,
  );
  await machine.bringUp();
  return machine;
}

async function measureService(): Promise<void> {
  const platform = await startPlatform();
  const services = createServices(platform);
  const [holdfast, peer]: [number[], number[]] = [[], []];
  try {
    // The first of each warms caches.
    for (let round = 0; round <= rounds; round += 1) {
      const startedAt = performance.now();
      const { id } = await services.create(`new-${round}`, { database_type: "mongodb" });
      await services.settled(id, "Running", longMs);
      const { connection, password } = await services.open(id);
      const { host, port, ca_certificate: ca, user } = connection;
      const address = await addressOf(platform, host);
      const client = openMongodb({ ca, address, port, serverName: host }, { user, password });
      await client.db("defaultdb").collection("items").insertOne({ a: 1 });
      const wallMs = performance.now() - startedAt;
      await client.close();
      await services.delete(id);
      const peerStartedAt = performance.now();
      const machine = await makeMachine();
      const bare = openMongodbAt(documentsSocket(machine.instance, "readwrite"), login);
      await bare.db("defaultdb").collection("items").insertOne({ a: 1 });
      const peerMs = performance.now() - peerStartedAt;
      await bare.close();
      await machine.remove();
      if (round === 0) continue;
      holdfast.push(wallMs);
      peer.push(peerMs);
    }
  } finally {
    await platform.remove();
  }
  const ratio = ratios(holdfast, peer);
  print("POST to first document over TLS by name, p50", ms(median(holdfast)));
  print("the engine alone, to its first document, p50", ms(median(peer)));
  print("new service, ratio", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`);
}

async function measureCommands(): Promise<void> {
  const machine = await makeMachine();
  const clients = {
    holdfast: openMongodb(targetOf(machine), login),
    peer: openMongodbAt(documentsSocket(machine.instance, "readwrite"), { ...login }),
  };
  const kinds = ["insertOne", "findOne", "insertMany of 1,000"] as const;
  try {
    for (const kind of kinds) {
      const found: Record<keyof typeof clients, number[]> = { holdfast: [], peer: [] };
      for (let round = 0; round <= rounds; round += 1)
        for (const name of ["holdfast", "peer"] as const) {
          const each = await measured(clients[name], kind, `${name}-${round}`);
          // The first round warms caches.
          if (round > 0) found[name].push(each);
        }
      const ratio = ratios(found.holdfast, found.peer);
      print(`${kind}, one client, mean (FerretDB alone)`, `${ms(median(found.holdfast))} (${ms(median(found.peer))})`);
      print("  ratio", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`);
    }
  } finally {
    for (const client of Object.values(clients)) await client.close();
    await machine.remove();
  }
}

/** Mean time of an operation, in ms. */
async function measured(client: ReturnType<typeof openMongodb>, kind: string, name: string): Promise<number> {
  const collection = client.db("bench").collection<{ _id: number; text: string }>(name);
  const text = "x".repeat(500);
  const count = kind.startsWith("insertMany") ? Math.ceil(operations / 100) : operations;
  const offset = kind === "insertOne" ? 0 : 10_000_000;
  const startedAt = performance.now();
  for (let index = 0; index < count; index += 1) {
    if (kind === "insertOne") await collection.insertOne({ _id: index, text });
    else if (kind === "findOne") await collection.findOne({ _id: index });
    else
      await collection.insertMany(
        Array.from({ length: 1_000 }, (_, item) => ({ _id: offset + index * 1_000 + item, text })),
      );
  }
  return (performance.now() - startedAt) / count;
}
