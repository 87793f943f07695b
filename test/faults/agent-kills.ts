import { setTimeout as sleep } from "node:timers/promises";
import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { isAlive, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { RunningService, Services } from "@holdfast/testing/platform/services.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import type { AcknowledgedWriter } from "./acknowledged-writer.ts";

export const agentVictims = ["old", "next", "keeper", "machine", "controller"] as const;

export interface AgentKill {
  readonly victim: (typeof agentVictims)[number];
  /** Time of the kill, in ms after the start of the next agent. */
  readonly afterMs: number;
}

export interface AgentKillFixture {
  readonly platform: Platform;
  readonly services: Services;
  readonly service: RunningService;
  readonly writer: AcknowledgedWriter;
  /**
   * Makes the controllers roll out a release of this name to all machines, possibly by a restart; returns its digest.
   */
  readonly offer: (release: string) => Promise<string>;
}

const endsWithinMs = 180_000;

/**
 * Rolls out a working release, and kills the victim during an agent handover. Throws unless every machine then has
 * exactly one agent, the new one, after at most one resume by an operator where the rollout halted; unless an engine
 * that was not killed is still the same process; and unless it accepts writes. Resolves with a description of the
 * outcome.
 */
export async function killAtHandOver(
  { platform, services, service, writer, offer }: AgentKillFixture,
  release: string,
  { victim, afterMs }: AgentKill,
): Promise<string> {
  const { id } = service.service;
  const machine = () => platform.processes().machines[0];
  const status = () =>
    asOperator(platform, AgentRolloutService, (rpcs) => rpcs.getAgentRollout({})).catch(() => undefined);
  const before = machine();
  const old = before?.agents[0] ?? 0;
  const digest = await offer(release);
  const two = await waitUntil(
    "the next agent is beside the old one",
    () => {
      const agents = machine()?.agents ?? [];
      return agents.some((pid) => pid !== old) && agents;
    },
    { everyMs: 5 },
  );
  // Time: the moment of the kill.
  await sleep(afterMs);
  const next = two.find((pid) => pid !== old) ?? 0;
  const moment = isAlive(old) ? "both there" : "old one stopped";
  const { controllers } = platform.processes();
  const pids = {
    old: [old],
    next: [next],
    keeper: [before?.keeper ?? 0],
    machine: [before?.launcher ?? 0],
    controller: controllers,
  };
  for (const pid of pids[victim]) killImmediately(pid);

  let halted = "";
  await waitUntil(
    `all have ${release}`,
    async () => {
      const now = await status();
      if (now?.state === "Halted") {
        if (halted !== "") throw new GiveUp(`it halted again: ${now.reason}`);
        halted = now.reason;
        await asOperator(platform, AgentRolloutService, (rpcs) => rpcs.resumeAgentRollout({}));
      }
      return now?.state === "Completed" && now.digest === digest && now.current === 1;
    },
    {
      withinMs: endsWithinMs,
      everyMs: 200,
      describe: async () =>
        `${halted}\n${(await status())?.state} ${(await status())?.reason}\n${await services.describe(id)}`,
    },
  );
  await services.settled(id, "Running");
  await waitUntil("one agent runs", () => machine()?.agents.length === 1);
  const spared = victim !== "keeper" && victim !== "machine";
  if (spared && machine()?.engine !== before?.engine) throw new Error("the engine is another process");
  const count = writer.acknowledged;
  await waitUntil("the engine acknowledges writes", () => writer.acknowledged > count + 1, {
    describe: () => services.describe(id),
  });
  return `${victim} after ${afterMs} ms (${moment})${halted === "" ? "" : `: halted, resumed: ${halted}`}`;
}
