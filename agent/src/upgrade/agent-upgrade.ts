import { join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { UpgradeAgent } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { TaskFailed } from "../task-failed.ts";
import { fetchPackage } from "./fetch-package.ts";
import type { Headroom } from "./headroom.ts";
import { type AgentWork, handOver } from "./hand-over.ts";
import type { ReceivedCode } from "./received-code.ts";

/** The machine's agent as something that can be replaced. */
export interface AgentUpgrade {
  /** Of what runs now; empty for a checkout. */
  readonly digest: string;
  /** Milliseconds for which nobody was in charge when this agent took over; 0 for one that was just started. */
  readonly gapMs: number;
  /** Resolves never, or rejects while this agent goes on. */
  perform(wanted: UpgradeAgent, task: UpgradeTask): Promise<never>;
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

/** The first version of a keeper that can have agents change places. */
const ableKeeper = 2;
const longestReadyMs = 600_000;
/** A query that took much memory may end by then. */
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
  async function install(wanted: UpgradeAgent, { channel, signal }: UpgradeTask): Promise<string> {
    const there = await code.find(wanted.digest);
    if (there !== undefined) return there;
    const fetched = await fetchPackage(wanted, await channel(), signal);
    try {
      return await code.keep(fetched);
    } catch (error) {
      if (!hasCode(error, "ENOSPC")) throw error;
      await code.removeOthers("");
      throw new TaskFailed("no_room", "There is no room on the machine's disk for the new agent.", { retryable: true });
    }
  }

  return {
    digest: code.own.digest,
    get gapMs() {
      return gapMs();
    },
    async perform(wanted, task) {
      if (keeper.protocol < ableKeeper) {
        throw new TaskFailed(
          "not_supported",
          "The machine's keeper is too old to have agents change places: the machine gets the new agent when it starts again.",
        );
      }
      const { id: taskId, signal, progress } = task;
      progress("fetching", 10);
      const main = await install(wanted, task);
      const readyWithinMs = Math.min(wanted.readyWithinMs, longestReadyMs);
      progress("waiting for memory", 30);
      await headroom.wait(Math.min(readyWithinMs, headroomWithinMs), signal);
      progress("starting", 40);
      const controller = (await task.channel()).address;
      const deps = { keeper, work, logDir: join(stateDir, "log"), log };
      // Only from then on the keeper does not go back to the agent of before, when this one ends.
      const offered = () => code.removeOthers(wanted.digest);
      return handOver(deps, { main, controller, readyWithinMs, taskId, signal, progress, offered });
    },
  };
}
