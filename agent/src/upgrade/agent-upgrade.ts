import { createHash } from "node:crypto";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type AgentPackage, unpackAgent } from "@holdfast/common/agent-package.ts";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { ReadPayloadRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { UpgradeAgent } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { TaskFailed } from "../task-failed.ts";
import { type AgentWork, handOver } from "./handover.ts";
import type { Headroom } from "./headroom.ts";
import type { ReceivedCode } from "./received-code.ts";

/** Upgrades the machine's agent: installs a release and hands over to an agent that runs it. See README.md. */
export interface AgentUpgrade {
  /** Digest of the running code; empty for a checkout. */
  readonly digest: string;
  /** Milliseconds without an agent in charge when this agent took over; 0 if it replaced no other agent. */
  readonly gapMs: number;
  /** Replaces this agent. Never resolves, since this process ends. Rejects if this agent remains in charge. */
  perform(release: UpgradeAgent, task: UpgradeTask): Promise<never>;
}

export interface UpgradeTask {
  readonly id: string;
  readonly signal: AbortSignal;
  readonly progress: (step: string, pct: number) => void;
  readonly channel: () => Promise<ControllerChannel>;
}

export interface AgentUpgradeDeps {
  readonly keeper: KeeperClient;
  readonly code: ReceivedCode;
  readonly headroom: Headroom;
  readonly work: AgentWork;
  readonly stateDir: string;
  readonly gapMs: () => number;
  readonly log: Log;
}

const maxReadyMs = 600_000;
/** Time for memory to become free, such as when a query ends. */
const headroomWithinMs = 30_000;

export function createAgentUpgrade({
  keeper,
  code,
  headroom,
  work,
  stateDir,
  gapMs,
  log,
}: AgentUpgradeDeps): AgentUpgrade {
  async function install(release: UpgradeAgent, { channel, signal }: UpgradeTask): Promise<string> {
    const existing = await code.find(release.digest);
    if (existing !== undefined) return existing;
    const fetched = await fetchPackage(release, await channel(), signal);
    try {
      return await code.store(fetched);
    } catch (error) {
      if (!hasCode(error, "ENOSPC")) throw error;
      await code.removeOthers("");
      throw new TaskFailed("no_room", "The machine's disk has no space for the new agent.", { retryable: true });
    }
  }

  return {
    digest: code.ownVersion.digest,
    get gapMs() {
      return gapMs();
    },
    async perform(release, task) {
      const { id: taskId, signal, progress } = task;
      progress("fetching", 10);
      const main = await install(release, task);
      const readyWithinMs = Math.min(release.readyWithinMs, maxReadyMs);
      progress("waiting for memory", 30);
      await headroom.wait(Math.min(readyWithinMs, headroomWithinMs), signal);
      progress("starting", 40);
      const controller = (await task.channel()).address;
      const deps = { keeper, work, logDir: join(stateDir, "log"), log };
      // Older releases are removed only after the offer: until then the keeper may go back to the previous release if
      // this agent ends.
      const onOffered = () => code.removeOthers(release.digest);
      return handOver(deps, { main, controller, readyWithinMs, taskId, signal, progress, onOffered });
    },
  };
}

const maxPackageBytes = 64 << 20;

/** Fetches the package that the task names. Its checksum and the digest of its code must equal the task's. */
async function fetchPackage(
  { package: payload, release, digest }: UpgradeAgent,
  channel: ControllerChannel,
  signal: AbortSignal,
): Promise<AgentPackage> {
  if (payload === undefined || payload.sizeBytes > maxPackageBytes || !/^[0-9a-f]{32}$/.test(digest)) {
    throw new TaskFailed("invalid_task", "The task names no package of an agent.");
  }
  const hash = createHash("sha256");
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const { data } of channel.readPayload(create(ReadPayloadRequestSchema, { id: payload.id }), signal)) {
    bytes += data.byteLength;
    if (bytes > Number(payload.sizeBytes)) break;
    hash.update(data);
    parts.push(data);
  }
  if (bytes !== Number(payload.sizeBytes) || hash.digest("hex") !== payload.sha256) {
    throw new TaskFailed("payload_corrupt", "The package differs from its reference.", { retryable: true });
  }
  const code = unpackAgent(Buffer.concat(parts));
  if (code.digest !== digest || code.release !== release) {
    throw new TaskFailed(
      "payload_corrupt",
      `The task does not name the received package ${code.release} ${code.digest}.`,
    );
  }
  return code;
}
