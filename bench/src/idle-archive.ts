import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startTestStore } from "@holdfast/testing/controller/store.ts";
import { startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { print } from "./support/figures.ts";
import { memoryOf, printHost } from "./support/host.ts";

// Objects that the archive of an idle service writes, and the memory of its component at rest (as root).
const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });

const dayMs = 86_400_000;
const reason = whyNoAgentMachine("postgresql", "17");
if (reason !== undefined) throw new Error(reason);

printHost();
const store = await startTestStore();
const machine = await startAgentMachine({ engine: "postgresql", version: "17", spec: { databases: ["defaultdb"] } });
try {
  machine.controller.signer = store.signer;
  const key = { id: "k-1", secret: randomBytes(32).toString("base64") };
  // The controllers' default.
  const { failure } = await machine.converge({ archive: { archiveId: "a-1", key, idleMs: 55_000 } });
  if (failure !== undefined) throw new Error(failure.message);
  const archive = () => machine.controller.observations.at(-1)?.archive;
  await waitUntil("it is followed", () => archive()?.state === "following" && (archive()?.lastSequence ?? 0n) > 0n);
  // By then the objects of the start are written.
  await sleep(90_000);
  const before = await stored();
  const measuredMs = Number(values.minutes) * 60_000;
  await sleep(measuredMs);
  const after = await stored();
  const aDay = (count: number) => (count * dayMs) / measuredMs;
  print("objects of an idle archive, a day", aDay(after.count - before.count).toFixed(0), "<= 1,500");
  print("their bytes, a day", `${(aDay(after.bytes - before.bytes) / 1e6).toFixed(1)} MB`, "<= 15 MB");
  const [pid] = machine.pidsOfCode("backup");
  const { rssMb, pssMb, privateMb } = memoryOf(pid ?? 0);
  print("its component's private memory at rest, from source files", `${privateMb.toFixed(0)} MB`);
  print("resident; with shared in parts", `${rssMb.toFixed(0)}; ${pssMb.toFixed(0)} MB`);
} finally {
  await machine.remove();
  await store.remove();
}

async function stored(): Promise<{ readonly count: number; readonly bytes: number }> {
  const { objects } = await store.objects.list("", { limit: 10_000 });
  return { count: objects.length, bytes: objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
}
