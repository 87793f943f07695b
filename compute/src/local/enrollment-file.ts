import { join } from "node:path";
import type { Enrollment } from "../compute-provider.ts";
import { writeAtomically } from "./atomic-file.ts";
import type { MachinePaths } from "./machine-paths.ts";

/** User and group of the agent on this host. */
export interface AgentUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Writes the enrollment of a machine, readable by its agent only (`agent` null: this process's user). The draft is
 * outside of the agent's directory, so that the agent cannot replace a file that root still owns.
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

/** The enrollment as the JSON document that agents read. */
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
