import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { type AgentRolloutSchema, AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { adminPage, type Cursors } from "#kernel/page/cursor.ts";
import type { Fleet } from "../fleet.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { mutate } from "#access/mutate.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { agentFactsOf, allAgentFacts } from "./agent-facts.ts";
import { type AgentRollout, agentRolloutKind, rolloutId, withEvent } from "./agent-rollout.ts";
import { stateOf } from "./agent-rollout-plan.ts";
import { auditOf } from "#access/caller.ts";

export interface AgentRolloutApiDeps {
  readonly rollouts: Collection<AgentRollout>;
  readonly machines: Collection<MachineObject>;
  readonly fleet: Pick<Fleet, "session" | "observation" | "task">;
  readonly begin: () => UnitOfWork;
  readonly cursors: Cursors;
  readonly clock: { now(): number };
  /** Makes the release that this controller ships the target of the rollout. */
  readonly offerOwnRelease: (record: (unit: UnitOfWork) => void, signal: AbortSignal) => Promise<void>;
}

/** Maximum number of versions in a message. */
const versionsMax = 100;

/** AgentRolloutService: operators list agents, and pause, resume and retry their rollout to the newest release. */
export function createAgentRolloutApi(deps: AgentRolloutApiDeps): ServedService {
  const { rollouts, machines, fleet, cursors, clock } = deps;

  function requireRollout(): AgentRollout {
    const stored = rollouts.get(rolloutId);
    if (stored === undefined) throw notOffered();
    return stored.object;
  }

  function rolloutMessage(): MessageInitShape<typeof AgentRolloutSchema> {
    const rollout = requireRollout();
    const { spec, status } = rollout;
    const counts: Record<string, number> = {};
    const versions = new Map<string, { release: string; digest: string; machines: number }>();
    for (const agent of allAgentFacts(rollout, deps)) {
      const state = stateOf(rollout, agent);
      counts[state] = (lookUp(counts, state) ?? 0) + 1;
      if (!agent.online) continue;
      const release = fleet.session(agent.machineId)?.agentVersion ?? "";
      const version = versions.get(`${release} ${agent.digest}`) ?? { release, digest: agent.digest, machines: 0 };
      version.machines += 1;
      versions.set(`${release} ${agent.digest}`, version);
    }
    return {
      release: spec.release,
      digest: spec.digest,
      state: status.state,
      reason: status.reason,
      stage: status.stage,
      ...(status.soakingSince === null ? {} : { soakingSince: timestampFromMs(status.soakingSince) }),
      current: counts["current"] ?? 0,
      behind: counts["behind"] ?? 0,
      upgrading: counts["upgrading"] ?? 0,
      failed: counts["failed"] ?? 0,
      needsStart: counts["needs_start"] ?? 0,
      unreachable: counts["unreachable"] ?? 0,
      versions: [...versions.values()].sort((a, b) => b.machines - a.machines).slice(0, versionsMax),
    };
  }

  async function change(
    call: Call,
    action: string,
    { kind, id }: { readonly kind: NewAudit["objectKind"]; readonly id: string },
    edit: (stored: Stored<AgentRollout>) => AgentRollout,
  ): Promise<MessageInitShape<typeof AgentRolloutSchema>> {
    const mutation = { action: `agent-rollout.${action}`, kind, visibleIn: [rollouts], visibleTimeoutMs: 10_000 };
    await mutate(deps, call, mutation, async (unit) => {
      requireRollout();
      const stored = await rollouts.getCurrent(rolloutId, call.signal);
      if (stored === undefined) throw notOffered();
      unit.update(agentRolloutKind, stored, edit(stored));
      return { id, result: undefined };
    });
    return rolloutMessage();
  }

  const transition =
    (event: "pauseRequested" | "resumeRequested", otherwise: string) => (stored: Stored<AgentRollout>) => {
      const after = withEvent(stored.object, event, clock.now());
      if (after === undefined)
        throw new HoldfastError("WRONG_STATE", `The rollout is ${stored.object.status.state}: ${otherwise}`);
      return after;
    };

  const handlers: Handlers<typeof AgentRolloutService> = {
    getAgentRollout: async () => rolloutMessage(),
    listAgents: async ({ page, state }, call) => {
      const rollout = requireRollout();
      const factsOf = (machine: MachineObject) => agentFactsOf(rollout, machine, deps);
      const accepts = (machine: MachineObject) => state === "" || stateOf(rollout, factsOf(machine)) === state;
      const { items, ...next } = adminPage(machines, accepts, page, call, cursors, `agents ${state}`);
      const agents = items.map((machine) => {
        const { machineId, digest } = factsOf(machine);
        const now = stateOf(rollout, factsOf(machine));
        const { agentVersion: release = "", keeperProtocol = 0 } = fleet.session(machineId) ?? {};
        const failedUpgrade = now === "current" ? undefined : lookUp(rollout.status.failedUpgrades, machineId);
        const { attempts = 0, reason = "" } = failedUpgrade ?? {};
        return { machineId, release, digest, keeperProtocol, state: now, attempts, reason };
      });
      return { agents, ...next };
    },
    pauseAgentRollout: (_, call) =>
      change(call, "pause", rolloutObject, transition("pauseRequested", "it cannot be paused.")),
    resumeAgentRollout: (_, call) =>
      change(
        call,
        "resume",
        rolloutObject,
        transition("resumeRequested", "only a paused or halted rollout can be resumed."),
      ),
    retryAgentUpgrade: ({ machineId }, call) =>
      change(call, "retry", { kind: "machine", id: machineId }, ({ object }) => {
        const failedUpgrade = lookUp(object.status.failedUpgrades, machineId);
        if (failedUpgrade === undefined) {
          throw new HoldfastError("OBJECT_NOT_FOUND", `No upgrade of machine ${machineId} has failed.`);
        }
        const failedUpgrades = {
          ...object.status.failedUpgrades,
          [machineId]: { ...failedUpgrade, retryAt: clock.now() },
        };
        return { ...object, status: { ...object.status, failedUpgrades } };
      }),
    offerAgentRelease: async (_, call) => {
      // oxlint-disable-next-line holdfast/audited -- the offer commits this unit with the rollout
      const record = (unit: UnitOfWork) => unit.audit(auditOf(call, "agent-rollout.offer", "agent-rollout", rolloutId));
      await deps.offerOwnRelease(record, call.signal);
      return rolloutMessage();
    },
  };
  return serve(AgentRolloutService, handlers);
}

/** The object of audit entries about the rollout. */
const rolloutObject = { kind: "agent-rollout", id: rolloutId } as const;

function notOffered(): HoldfastError {
  const detail =
    "No controller has offered an agent release. Controllers do so shortly after their start, unless HOLDFAST_AGENT_UPGRADE is off.";
  return new HoldfastError("WRONG_STATE", detail);
}
