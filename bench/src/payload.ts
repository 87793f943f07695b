import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { create } from "@bufbuild/protobuf";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import { ReadLogsSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { newInstallation, startController, type TestController } from "@holdfast/testing/controller/test-fleet.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { median, ms, percentile, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

/**
 * Control tasks of one machine during a large payload to it and back, against the same tasks alone: real fleet, stream,
 * keeper and agent; caller and controller share this process, as in a controller.
 */
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    tasks: { type: "string", default: "300" },
    megabytes: { type: "string", default: "30" },
  },
});
const [rounds, tasks, megabytes] = [values.rounds, values.tasks, values.megabytes].map(Number) as [
  number,
  number,
  number,
];
const machineId = "m-1";
/** Pause between two tasks, so that no queue of this benchmark is measured. */
const pauseMs = 3;

printHost();
const directory = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
const etcd = await startTestEtcd();
const installation = await newInstallation(etcd);
const controller = await startController(installation, "c-1");
const keeper = await startAgent(controller);
try {
  await measure(controller);
} finally {
  keeper.kill("SIGKILL");
  await controller.close();
  await installation.close();
  await etcd.stop();
  rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
}
process.exit();

async function startAgent({ address, authority, fleet, newMachine }: TestController) {
  const enrollment = {
    installation_id: "inst-test",
    machine_id: machineId,
    controllers: [address],
    ca_fingerprint: authority.fingerprint,
    token: await newMachine(machineId),
  };
  writeFileSync(join(directory, "enrollment.json"), JSON.stringify(enrollment), { mode: 0o600 });
  const launch = dyingWithParent([process.execPath, join(import.meta.dirname, "../../agent/keeper/main.ts")]);
  const child = spawn(launch.command, launch.args, {
    env: {
      PATH: process.env["PATH"],
      HOLDFAST_MACHINE_ID: machineId,
      HOLDFAST_STATE_DIR: directory,
      HOLDFAST_RUN_DIR: join(directory, "run"),
      HOLDFAST_DATA_DIR: join(directory, "data"),
    },
    stdio: "ignore",
  });
  await waitUntil("the agent's stream is open", () => fleet.session(machineId) !== undefined, {
    describe: () => readFileSync(join(directory, "log", "agent.log.1"), "utf8"),
  });
  return child;
}

async function measure({ fleet }: TestController): Promise<void> {
  await timesOf(fleet);
  const quiet: number[][] = [];
  const busy: number[][] = [];
  const rates: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    quiet.push(await timesOf(fleet));
    const stop = new AbortController();
    const transfers = transferUntil(fleet, stop.signal);
    busy.push(await timesOf(fleet));
    stop.abort();
    rates.push(...(await transfers));
  }
  const show = (all: number[][]) =>
    `${ms(median(all.map((each) => percentile(each, 0.5))))} / ${ms(median(all.map((each) => percentile(each, 0.99))))}`;
  print(`control task alone, p50 / p99, ${rounds} x ${tasks}`, show(quiet));
  print(`while ${megabytes} MB go to the machine and back`, show(busy));
  for (const share of [0.5, 0.99]) {
    const ratio = ratios(
      ...([busy, quiet].map((all) => all.map((each) => percentile(each, share))) as [number[], number[]]),
    );
    const spread = `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`;
    print(`p${share * 100} with the payload to without, median (min - max)`, spread, share === 0.99 ? "as it was" : "");
  }
  print("payload, there and back", `${median(rates).toFixed(0)} MB/s each way`);
}

type Fleet = TestController["fleet"];

/** Durations of sequential tasks, milliseconds. */
async function timesOf(fleet: Fleet): Promise<number[]> {
  const input = { case: "readLogs" as const, value: create(ReadLogsSchema, { limit: 1 }) };
  const request = {
    ownerId: "service-of-m-1",
    generation: 1,
    term: 1,
    lane: "control" as const,
    input,
    deadlineMs: 10_000,
  };
  const took: number[] = [];
  while (took.length < tasks) {
    await sleep(pauseMs);
    const startedAt = performance.now();
    const { failure } = await fleet.run(machineId, request, 10_000);
    took.push(performance.now() - startedAt);
    if (failure !== undefined) throw new Error(failure.message);
  }
  return took;
}

/** Sends payloads one after the other; returns the megabytes per second of each. Verifies their checksums. */
async function transferUntil(fleet: Fleet, stop: AbortSignal): Promise<number[]> {
  const rates: number[] = [];
  while (!stop.aborted) {
    const { durationMs } = await fleet.probeTransfer(machineId, megabytes << 20);
    rates.push((megabytes / durationMs) * 1_000);
  }
  return rates;
}
