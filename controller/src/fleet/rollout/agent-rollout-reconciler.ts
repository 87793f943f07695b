import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { PayloadRefSchema, UpgradeAgentSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "../fleet.ts";
import type { MachineObject } from "../machine/machine.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { allAgentFacts, upgradeTaskId } from "./agent-facts.ts";
import { type AgentRollout, agentRolloutKind, rolloutId, withEvent } from "./agent-rollout.ts";
import { planAgentRollout } from "./agent-rollout-plan.ts";
import type { RolloutRate } from "./rollout-rate.ts";

export interface AgentRolloutDeps {
  readonly rollouts: Collection<AgentRollout>;
  readonly machines: Collection<MachineObject>;
  readonly fleet: Pick<Fleet, "session" | "observation" | "task" | "submit">;
  readonly begin: () => UnitOfWork;
  readonly rate: RolloutRate;
  /** True while automation is paused, such as after a restore of the store: no upgrade starts. */
  readonly isPaused: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

const busyIntervalMs = 2_000;
const idleIntervalMs = 10_000;
const deadlineMs = 15 * 60_000;
const readyWithinMs = 60_000;

/**
 * Rolls the offered release out to all machines, as fast as the rollout rate and their health permit. It has one key,
 * so one controller at a time does it.
 */
export function createAgentRolloutWork(deps: AgentRolloutDeps): ControlLoop {
  const { rollouts, rate, clock, log } = deps;

  async function write(before: Stored<AgentRollout>, after: AgentRollout, signal: AbortSignal): Promise<void> {
    const unit = deps.begin();
    unit.update(agentRolloutKind, before, after);
    await rollouts.untilRevision(await unit.commit(signal), 10_000);
    if (after.status.state === before.object.status.state) return;
    const { release, digest } = after.spec;
    const entry = { release, digest, from: before.object.status.state, to: after.status.state };
    if (after.status.state === "Halted") log.warn("agent rollout halted", { ...entry, reason: after.status.reason });
    else log.info("agent rollout changed", entry);
  }

  async function upgrade(rollout: AgentRollout, machineId: string, signal: AbortSignal): Promise<void> {
    const { release, digest, payloadId: id, sha256, sizeBytes } = rollout.spec;
    const reference = create(PayloadRefSchema, { id, sha256, sizeBytes: BigInt(sizeBytes) });
    const value = create(UpgradeAgentSchema, { release, digest, package: reference, readyWithinMs });
    const input = { case: "upgradeAgent" as const, value };
    const { generation } = rollout.metadata;
    const request = { ownerId: machineId, generation, term: 0, lane: "bulk" as const, input, deadlineMs };
    await deps.fleet.submit(machineId, upgradeTaskId(rollout, machineId), request, signal);
  }

  return {
    reconciler: {
      name: "agent-rollout",
      async reconcile(_key, signal) {
        const stored = rollouts.get(rolloutId);
        if (stored === undefined) return settled;
        if (deps.isPaused()) return again(idleIntervalMs, "automation is paused");
        const { object } = stored;
        const now = clock.now();
        const plan = planAgentRollout(object, allAgentFacts(object, deps), rate, now);
        const planned = { ...object, status: plan.status };
        const after =
          plan.event === undefined ? planned : (withEvent(planned, plan.event, now, plan.reason) ?? planned);
        try {
          if (JSON.stringify(after.status) !== JSON.stringify(object.status)) await write(stored, after, signal);
        } catch (error) {
          if (error instanceof Conflict) return again(0, "conflict");
          throw error;
        }
        for (const machineId of plan.begin) await upgrade(after, machineId, signal);
        const works = after.status.state === "Rolling";
        const longest = works ? Math.max(100, Math.min(busyIntervalMs, rate.soakMs / 2)) : idleIntervalMs;
        return again(Math.max(0, Math.min(longest, (plan.recheckAt ?? now + longest) - now)), "rollout");
      },
    },
    keys: () => [rolloutId],
    subscribe: (onChange) => rollouts.subscribe(() => onChange(rolloutId)),
    concurrency: 1,
  };
}
