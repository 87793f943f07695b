import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { WatchMachinesRequestSchema } from "@holdfast/proto/holdfast/host/v1/host_pb.ts";
import { backOffMs } from "@holdfast/common/back-off.ts";
import type { HostChannel } from "./host-channel.ts";
import { hostMethods } from "./host-methods.ts";

export interface HostWatchDeps {
  readonly hostId: string;
  readonly channel: HostChannel;
  readonly random: () => number;
  readonly log: Log;
  /** First message of each connection: all controllers, and the generation of the authorities. */
  readonly hello: () => { readonly controllers: readonly string[]; readonly authorityGeneration: number };
  readonly onMachine: (machineId: string) => void;
  /** Called when the host's stream opened or ended. */
  readonly onConnection: (connected: boolean) => void;
}

/** Follows a host's machines across interruptions of the connection, until it is closed. */
export function followHost(deps: HostWatchDeps): { close(): void } {
  const { hostId, channel, random, log, hello, onMachine, onConnection } = deps;
  const closing = new AbortController();
  let attempt = new AbortController();
  channel.onRenewal(() => attempt.abort());

  async function follow(): Promise<void> {
    let failures = 0;
    while (!closing.signal.aborted) {
      attempt = new AbortController();
      const signal = AbortSignal.any([closing.signal, attempt.signal]);
      let connected = false;
      try {
        const { controllers, authorityGeneration } = hello();
        const request = create(WatchMachinesRequestSchema, {
          controllers: [...controllers],
          authorityGeneration: BigInt(authorityGeneration),
        });
        for await (const { machineIds } of channel.stream(hostMethods.watchMachines, request, signal)) {
          if (!connected) {
            connected = true;
            failures = 0;
            log.info("host connected", { host: hostId });
            onConnection(true);
          }
          for (const id of machineIds) onMachine(id);
        }
      } catch (error) {
        // Logged once; callers of the host get every failure.
        if (!signal.aborted && (connected || failures === 0))
          log.warn("host not connected", { host: hostId, reason: error instanceof Error ? error.message : error });
      }
      if (connected) onConnection(false);
      if (signal.aborted) continue;
      failures += 1;
      await sleep(backOffMs(failures, random, { maxMs: 2_000 }), undefined, {
        signal: closing.signal,
        ref: false,
      }).catch(() => undefined);
    }
  }
  inBackground(log, "watch of a host", follow());
  return { close: () => closing.abort() };
}
