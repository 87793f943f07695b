import type { IncusClient } from "@holdfast/compute/incus/incus-client.ts";
import { instanceName } from "@holdfast/compute/incus/instance-config.ts";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { clientsOf, listeners, openIncusOf } from "@holdfast/testing/machines/incus-machines.ts";
import { type NetworkCuts, openNetworkCuts } from "@holdfast/testing/network/network-cuts.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AcknowledgedWriter, flushOnWrite, writeRows, writeValues } from "./acknowledged-writer.ts";
import { type StatusSampler, sampleStatuses } from "./status-samples.ts";

/** Times in milliseconds until the API reported a fault, and from its end until recovery. */
export interface FaultFigures {
  note(fault: string, figures: { readonly reportedMs?: number; readonly backMs: number }): void;
  /** Prints a table; the documented limit is 15 s on an idle machine. */
  print(): void;
}

/** A service on a separate machine, with a continuous writer. */
export interface WrittenService extends RunningService {
  readonly id: string;
  readonly machineId: string;
  readonly address: string;
  readonly writer: AcknowledgedWriter;
  /** Runs one fault at a time. */
  exclusively(fault: () => Promise<void>): Promise<void>;
}

/** A platform with machines of Incus, as the fixture for faults. */
export interface FaultFixture {
  readonly platform: Platform;
  readonly services: Services;
  readonly statuses: StatusSampler;
  readonly cuts: NetworkCuts;
  readonly figures: FaultFigures;
  readonly incus: IncusClient;
  write(name: string, engine: "postgresql" | "valkey"): Promise<WrittenService>;
  /** Milliseconds from `at` until the service is reported healthy and accepts writes again. */
  recoveredMs(service: WrittenService, at: number): Promise<number>;
  /** Ends all writers; throws when an acknowledged row is lost. */
  settle(): Promise<void>;
  remove(): Promise<void>;
}

const backWithinMs = 120_000;

export async function openFaultFixture(): Promise<FaultFixture> {
  const platform = await startPlatform({ flags: ["--provider", "incus"] });
  const services = createServices(platform);
  const statuses = sampleStatuses(platform);
  const cuts = await openNetworkCuts(listeners(platform).number, clientsOf(platform));
  const incus = openIncusOf(platform);
  const stop = new AbortController();
  const written: WrittenService[] = [];

  return {
    platform,
    services,
    statuses,
    cuts,
    figures: createFaultFigures(),
    incus,
    async write(name, engine) {
      const { id } = await services.create(name, {
        database_type: engine,
        ...(engine === "valkey" && { parameters: flushOnWrite }),
      });
      // The first machine waits until the image is imported.
      await services.settled(id, "Running", 150_000);
      const running = await services.open(id);
      const writer =
        engine === "valkey"
          ? writeValues(platform, running, stop.signal)
          : await writeRows(platform, running, stop.signal);
      let last: Promise<unknown> = Promise.resolve();
      const service: WrittenService = {
        ...running,
        id,
        machineId: running.service.nodes[0]?.id ?? "",
        address: await addressOf(platform, running.connection.host),
        writer,
        exclusively(fault) {
          const run = last.then(fault);
          last = run.catch(() => undefined);
          return run;
        },
      };
      written.push(service);
      return service;
    },
    async recoveredMs({ id, writer }, at) {
      const before = writer.acknowledged;
      const recovered = await statuses.until(
        id,
        "the service is healthy",
        at,
        // An out-of-memory kill remains in the health report for ten minutes.
        ({ status, node, health, unhealthy: ill, busy }) =>
          status === "Running" && node === "Running" && !busy && (health === "healthy" || ill.join() === "memory"),
        backWithinMs,
      );
      await waitUntil("the engine acknowledges writes", () => writer.acknowledged > before, {
        withinMs: backWithinMs,
        describe: () => services.describe(id),
      });
      return recovered;
    },
    async settle() {
      stop.abort();
      for (const { service, writer } of written) {
        await writer.done;
        const missing = await writer.missing();
        if (missing.length > 0)
          throw new Error(
            `${missing.length} acknowledged of ${service.name} are lost, such as ${missing.slice(0, 10)}`,
          );
      }
    },
    async remove() {
      stop.abort();
      await statuses.close();
      await Promise.all(written.map(({ writer }) => writer.done));
      await cuts.close();
      await incus.close();
      await platform.remove();
    },
  };
}

export async function setFrozen(incus: IncusClient, machineId: string, frozen: boolean): Promise<void> {
  const action = frozen ? "freeze" : "unfreeze";
  await incus.run("PUT", `/1.0/instances/${instanceName(machineId)}/state`, AbortSignal.timeout(60_000), { action });
}

function createFaultFigures(): FaultFigures {
  const rows: string[] = [];
  const inSeconds = (ms: number | undefined) => (ms === undefined ? "-" : (ms / 1_000).toFixed(1)).padStart(8);
  return {
    note(fault, { reportedMs, backMs }) {
      rows.push(`${fault.padEnd(44)}${inSeconds(reportedMs)}${inSeconds(backMs)}`);
    },
    print() {
      console.log([`${"fault".padEnd(44)}${"report s".padStart(8)}${"back s".padStart(8)}`, ...rows].join("\n"));
    },
  };
}
