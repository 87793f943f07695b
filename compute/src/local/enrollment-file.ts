import { join } from "node:path";
import type { Enrollment } from "../compute-provider.ts";
import { writeAtomically } from "./atomic-file.ts";
import type { MachinePaths } from "./machine-paths.ts";

/** User and group that the agent has on this host. */
export interface AgentUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Leaves a machine's agent what it enrolls with, for its eyes only. Without a user of its own it is this process's. It is made
 * beside the agent's directory, which belongs to the agent: a file that is still root's is nowhere that the agent can swap it.
 */
export function writeEnrollment(
  { state, directory }: Pick<MachinePaths, "state" | "directory">,
  machineId: string,
  enrollment: Enrollment,
  agent: AgentUser | null,
): Promise<void> {
  return writeAtomically(join(state, "enrollment.json"), enrollmentText(machineId, enrollment), {
    mode: 0o600,
    scratch: directory,
    ...(agent !== null && { owner: agent }),
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
