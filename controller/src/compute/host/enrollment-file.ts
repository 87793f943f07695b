import { chown } from "node:fs/promises";
import { join } from "node:path";
import type { Enrollment } from "../compute-provider.ts";
import { writeAtomically } from "./atomic-file.ts";

/** User and group that the agent has on this host. */
export interface AgentUser {
  readonly uid: number;
  readonly gid: number;
}

/** Leaves a machine's agent what it enrols with, for its eyes only. Without a user of its own it is this process's. */
export function writeEnrollment(
  stateDirectory: string,
  machineId: string,
  enrollment: Enrollment,
  agent: AgentUser | null,
): Promise<void> {
  return writeAtomically(join(stateDirectory, "enrollment.json"), enrollmentText(machineId, enrollment), {
    mode: 0o600,
    ...(agent !== null && { prepare: (path) => chown(path, agent.uid, agent.gid) }),
  });
}

/** What an agent reads: a document in JSON. */
export function enrollmentText(machineId: string, enrollment: Enrollment): string {
  const content = {
    installation_id: enrollment.installationId,
    machine_id: machineId,
    controllers: enrollment.controllers,
    ca_fingerprint: enrollment.caFingerprint,
    token: enrollment.token,
  };
  return `${JSON.stringify(content)}\n`;
}
